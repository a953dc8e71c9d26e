#include "parameters.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace firn::hdf5 {
namespace {

// The stored form begins with this word; a user's begins with a kind of bound, at most 3.
constexpr unsigned kStoredMark = 0x4649524e;  // "FIRN"
constexpr unsigned kStoredVersion = 1;
// Words before the extents.
constexpr std::size_t kStoredHeadWords = 8;

constexpr unsigned kTypeMask = 0xff;
constexpr unsigned kBigEndianBit = 1u << 8;
constexpr unsigned kDatasetFillBit = 1u << 9;
constexpr unsigned kUserFillBit = 1u << 10;
constexpr unsigned kKnownBits = kTypeMask | kBigEndianBit | kDatasetFillBit | kUserFillBit;

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, "Firn filter parameters: " + std::move(message)};
}

unsigned high_word(double value) {
  return static_cast<unsigned>(std::bit_cast<std::uint64_t>(value) >> 32);
}
unsigned low_word(double value) {
  return static_cast<unsigned>(std::bit_cast<std::uint64_t>(value) & 0xffffffffu);
}
double from_words(unsigned high, unsigned low) {
  return std::bit_cast<double>(std::uint64_t{high} << 32 | low);
}

bool is_pipeline(unsigned number) {
  if (number > 0xff) return false;
  const auto pipeline = static_cast<Pipeline>(number);
  const Result<Pipeline> known = parse_pipeline(name_of(pipeline));
  return known && *known == pipeline;
}

Result<FilterRequest> parse_request(unsigned kind, unsigned preset, double value,
                                    unsigned pipeline) {
  FilterRequest request;
  if (kind > static_cast<unsigned>(BoundKind::pwrel)) {
    return invalid("kind of bound " + std::to_string(kind) +
                   "; 0 is lossless, 1 abs, 2 rel (of the chunk's value range), 3 psnr, 4 pwrel");
  }
  if (preset > static_cast<unsigned>(Preset::small)) {
    return invalid("preset " + std::to_string(preset) + "; 0 is fast, 1 balanced, 2 small");
  }
  if (!is_pipeline(pipeline)) return invalid("there is no pipeline " + std::to_string(pipeline));
  request.bound.kind = static_cast<BoundKind>(kind);
  request.preset = static_cast<Preset>(preset);
  request.pipeline = static_cast<Pipeline>(pipeline);
  if (request.bound.kind == BoundKind::lossless) return request;
  if (!std::isfinite(value) || value <= 0) {
    return invalid(
        "the bound must be a positive number; its bits are given as two words, the "
        "high half first ('firn h5 params' prints them)");
  }
  request.bound.value = value;
  return request;
}

Result<FilterParameters> parse_user_form(std::span<const unsigned> words) {
  const bool lossless = words[0] == static_cast<unsigned>(BoundKind::lossless);
  const std::size_t count = words.size();
  if (!(count == 4 || count == 5 || count == 7 || (lossless && count == 2))) {
    return invalid(std::to_string(count) +
                   " given; it takes kind, preset, and the two halves of the bound's bits, then "
                   "optionally a pipeline and the halves of a fill value ('firn h5 params' prints "
                   "them)");
  }
  const double value = count >= 4 ? from_words(words[2], words[3]) : 0;
  Result<FilterRequest> request =
      parse_request(words[0], words[1], value, count >= 5 ? words[4] : 0);
  if (!request) return request.error();
  if (count == 7) {
    const double fill = from_words(words[5], words[6]);
    if (!std::isnan(fill)) request->fill = fill;  // NaN is kept exactly anyway
  }
  return FilterParameters{*request, {}};
}

Result<FilterParameters> parse_stored_form(std::span<const unsigned> words) {
  const Error damaged = {ErrorCode::corrupt,
                         "the Firn filter's parameters in this file are damaged"};
  if (words.size() < 2) return damaged;
  if (words[1] != kStoredVersion) {
    return Error{ErrorCode::newer_version, "the Firn filter's parameters have layout version " +
                                               std::to_string(words[1]) + "; this plugin knows " +
                                               std::to_string(kStoredVersion) +
                                               ": a newer plugin wrote the file"};
  }
  if (words.size() < kStoredHeadWords) return damaged;
  // 2 kind, preset and pipeline, 3-4 bound, 5 type and flags, 6-7 fill, then the high and low half
  // of each extent.
  Result<FilterRequest> request = parse_request(words[2] & 0xff, words[2] >> 8 & 0xff,
                                                from_words(words[3], words[4]), words[2] >> 16);
  if (!request) return request.error();
  FilterParameters parameters{*request, {}};
  ChunkLayout& layout = parameters.layout;
  const unsigned flags = words[5];
  const unsigned type = flags & kTypeMask;
  if (type != static_cast<unsigned>(Type::f32) && type != static_cast<unsigned>(Type::f64)) {
    return damaged;
  }
  if ((flags & ~kKnownBits) != 0) return damaged;
  layout.type = static_cast<Type>(type);
  layout.big_endian = (flags & kBigEndianBit) != 0;
  const double fill = from_words(words[6], words[7]);
  if ((flags & kDatasetFillBit) != 0) layout.fill = fill;
  if ((flags & kUserFillBit) != 0) parameters.request.fill = fill;
  const std::size_t rank = (words.size() - kStoredHeadWords) / 2;
  if (rank < 1 || rank > kMaxRank || words.size() != kStoredHeadWords + 2 * rank) return damaged;
  layout.shape.rank = static_cast<int>(rank);
  std::uint64_t count = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const unsigned high = words[kStoredHeadWords + 2 * axis];
    const unsigned low = words[kStoredHeadWords + 2 * axis + 1];
    const std::uint64_t extent = std::uint64_t{high} << 32 | low;
    if (extent == 0 || extent > (std::uint64_t{1} << 56) / count) return damaged;
    count *= extent;
    layout.shape.extents[axis] = extent;
  }
  return parameters;
}

template <class Word>
Word swapped(Word value) {
  if constexpr (sizeof(Word) == 4) {
    return __builtin_bswap32(value);
  } else {
    return __builtin_bswap64(value);
  }
}

template <class Word>
void swap_all(void* values, std::uint64_t count) {
  auto* bytes = static_cast<unsigned char*>(values);
  for (std::uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    word = swapped(word);
    std::memcpy(bytes + i * sizeof(Word), &word, sizeof(Word));
  }
}

}  // namespace

Options FilterParameters::options() const {
  Options options;
  options.bound = request.bound;
  options.preset = request.preset;
  options.pipeline = request.pipeline;
  options.fill = request.fill ? request.fill : layout.fill;
  return options;
}

Result<FilterParameters> parse_parameters(std::span<const unsigned> words) {
  if (words.empty()) {
    return invalid("none given; how exact? 'firn h5 params' prints the numbers for a bound");
  }
  return words[0] == kStoredMark ? parse_stored_form(words) : parse_user_form(words);
}

std::vector<unsigned> user_parameters(const FilterRequest& request) {
  std::vector<unsigned> words = {static_cast<unsigned>(request.bound.kind),
                                 static_cast<unsigned>(request.preset),
                                 high_word(request.bound.value), low_word(request.bound.value)};
  if (request.pipeline != Pipeline::automatic || request.fill) {
    words.push_back(static_cast<unsigned>(request.pipeline));
  }
  if (request.fill) {
    words.push_back(high_word(*request.fill));
    words.push_back(low_word(*request.fill));
  }
  return words;
}

std::vector<unsigned> stored_parameters(const FilterParameters& parameters) {
  const FilterRequest& request = parameters.request;
  const ChunkLayout& layout = parameters.layout;
  const double fill = parameters.options().fill.value_or(0);
  unsigned flags = static_cast<unsigned>(layout.type);
  if (layout.big_endian) flags |= kBigEndianBit;
  if (request.fill) {
    flags |= kUserFillBit;
  } else if (layout.fill) {
    flags |= kDatasetFillBit;
  }
  std::vector<unsigned> words = {kStoredMark,
                                 kStoredVersion,
                                 static_cast<unsigned>(request.bound.kind) |
                                     static_cast<unsigned>(request.preset) << 8 |
                                     static_cast<unsigned>(request.pipeline) << 16,
                                 high_word(request.bound.value),
                                 low_word(request.bound.value),
                                 flags,
                                 high_word(fill),
                                 low_word(fill)};
  for (int axis = 0; axis < layout.shape.rank; ++axis) {
    words.push_back(static_cast<unsigned>(layout.shape.extents[axis] >> 32));
    words.push_back(static_cast<unsigned>(layout.shape.extents[axis] & 0xffffffffu));
  }
  return words;
}

Shape chunk_shape(std::span<const unsigned long long> extents) {
  std::vector<std::uint64_t> kept;
  for (const unsigned long long extent : extents) {
    if (extent != 1) kept.push_back(extent);
  }
  if (kept.empty()) kept.push_back(1);
  while (kept.size() > kMaxRank) {
    kept[1] *= kept[0];
    kept.erase(kept.begin());
  }
  Shape shape;
  shape.rank = static_cast<int>(kept.size());
  for (std::size_t axis = 0; axis < kept.size(); ++axis) shape.extents[axis] = kept[axis];
  return shape;
}

void swap_bytes(void* values, std::uint64_t count, Type type) {
  if (type == Type::f32) {
    swap_all<std::uint32_t>(values, count);
  } else {
    swap_all<std::uint64_t>(values, count);
  }
}

}  // namespace firn::hdf5
