#include "pipelines/fre.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/spread.hpp"
#include "container/format.hpp"
#include "encode/fre.hpp"
#include "pipelines/chunk_values.hpp"
#include "pipelines/difference_orders.hpp"
#include "pipelines/payload_head.hpp"

namespace firn::pipelines {
namespace {

using encode::FreCodeWords;
using encode::FreCut;
using encode::FreLayout;
using encode::FreParts;

// Values are cut and coded in pieces that stay in the L1 cache.
constexpr std::size_t kPiece = 2048;

// Cuts values one by one; those that must be kept exactly take the place of the one before, which
// costs two bits.
template <class T>
double cut_irregular(const T* values, std::size_t begin, std::size_t count, FreCut cut, T fill,
                     std::size_t total, Workspace& workspace, std::size_t* exact_count,
                     typename FreLayout<T>::Bits* coded) {
  double max_error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] != fill && encode::fre_cut_value(values[i], cut, &coded[i])) {
      const auto back = static_cast<double>(std::bit_cast<T>(coded[i]));
      const auto value = static_cast<double>(values[i]);
      if (value != 0) max_error = std::max(max_error, std::fabs((back - value) / value));
      continue;
    }
    if (*exact_count == 0) {
      workspace.exact_map.reset(total);
      workspace.exact_bytes.reserve(total * sizeof(T));
    }
    workspace.exact_map.set(begin + i);
    reinterpret_cast<T*>(workspace.exact_bytes.data())[(*exact_count)++] = values[i];
    coded[i] = coded[static_cast<std::ptrdiff_t>(i) - 1];
  }
  return max_error * (1 + 0x1p-20);
}

// The code words in the order of how often differences occur in a sample, if that gains anything.
template <class T>
FreCodeWords choose_code_words(const T* values, std::size_t count) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  constexpr std::size_t kSamples = 2048;
  const std::size_t step = std::max<std::size_t>(1, count / kSamples);
  std::array<std::size_t, encode::kFreDifferences> found{};
  for_one_in(step, count - 1, [&](std::size_t i) {
    const Bits before = std::bit_cast<Bits>(values[i]), bits = std::bit_cast<Bits>(values[i + 1]);
    if (bits == before) return;
    const auto difference = static_cast<std::int64_t>(bits >> L::kMantissa & L::kExponentMask) -
                            static_cast<std::int64_t>(before >> L::kMantissa & L::kExponentMask);
    const auto distance = static_cast<std::size_t>(difference < 0 ? -difference : difference);
    if (distance < found.size()) ++found[distance];
  });
  std::array<std::uint8_t, encode::kFreDifferences> order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return found[a] > found[b]; });
  FreCodeWords words;
  std::size_t usual = 0, exchanged = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    words.rank[order[rank]] = static_cast<std::uint8_t>(rank);
    usual += found[rank] * encode::kFreCodeLengths[rank];
    exchanged += found[order[rank]] * encode::kFreCodeLengths[rank];
  }
  // The exchange itself takes 40 bits.
  return (usual - exchanged) * step > 64 ? words : FreCodeWords{};
}

std::uint8_t flags_of(bool exact, bool rounded, bool exchanged) {
  return static_cast<std::uint8_t>((exact ? format::kHasExactPoints : 0) |
                                   (rounded ? format::kFreRounded : 0) |
                                   (exchanged ? format::kFreExchanged : 0));
}

}  // namespace

std::size_t fre_capacity(std::size_t count) {
  return encode::kFreStreams * (kMaxVarintBytes + 8) + count * 8;
}

template <class T>
bool encode_fre(const Box<const T>& chunk, const Parameters& parameters, bool rounded,
                Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  using Bits = typename FreLayout<T>::Bits;
  const FreCut cut{encode::fre_mantissa_bits(parameters.bound_abs, rounded), rounded};
  if (cut.mantissa_bits > FreLayout<T>::kMaxMantissaBits) return false;
  const std::size_t count = chunk.count();
  const T* const values = contiguous(chunk, workspace);
  const T fill =
      parameters.fill ? static_cast<T>(*parameters.fill) : std::numeric_limits<T>::quiet_NaN();
  const FreCodeWords words = choose_code_words(values, count);
  const auto& kernels = encode::fre_kernels<T>(workspace.target);

  // Bit strings one after the other, their sizes not yet before them.
  const FreParts parts(count);
  std::array<std::size_t, encode::kFreStreams> sizes{};
  std::uint8_t* const streams = workspace.streams.reserve(
      count * sizeof(std::uint64_t) + encode::kFreStreams * sizeof(std::uint64_t));
  std::uint8_t* next = streams;
  std::size_t exact_count = 0;
  double max_error = 0;
  Bits pieces[kPiece + 1];
  for (std::size_t j = 0; j < parts.streams; ++j) {
    encode::FreWriter writer{next};
    pieces[0] = 0;
    for (std::size_t i = parts.begin(j); i < parts.begin(j + 1); i += kPiece) {
      const std::size_t length = std::min(kPiece, parts.begin(j + 1) - i);
      const auto outcome = kernels.cut(values + i, length, cut, pieces + 1);
      double error = outcome.max_error;
      if (!outcome.regular || parameters.fill) {
        error = cut_irregular(values + i, i, length, cut, fill, count, workspace, &exact_count,
                              pieces + 1);
      }
      max_error = std::max(max_error, error);
      kernels.encode(pieces + 1, length, cut, words, writer);
      pieces[0] = pieces[length];
    }
    std::uint8_t* const end = writer.finish();
    sizes[j] = static_cast<std::size_t>(end - next);
    next = end;
  }
  if (exact_count == count) return false;

  ByteWriter writer(out);
  const bool exchanged = !(words == FreCodeWords{});
  writer.write<std::uint8_t>(flags_of(exact_count != 0, rounded, exchanged));
  writer.write<std::uint8_t>(static_cast<std::uint8_t>(cut.mantissa_bits));
  if (exchanged) {
    for (std::size_t d = 0; d < words.rank.size(); d += 2) {
      writer.write<std::uint8_t>(static_cast<std::uint8_t>(words.rank[d] | words.rank[d + 1] << 4));
    }
  }
  if (exact_count != 0) {
    write_exact_points_of(chunk.rank(), chunk.extents(), exact_count, encode::MapCoding::zstd,
                          sizeof(T), workspace, writer);
  }
  for (std::size_t j = 0; j + 1 < parts.streams; ++j) writer.write_varint(sizes[j]);
  writer.write_bytes({streams, static_cast<std::size_t>(next - streams)});
  *encoded = {Pipeline::fre, writer.size(), std::min(max_error, parameters.bound_abs)};
  return true;
}

template <class T>
bool decode_fre(std::span<const std::uint8_t> payload, const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  ByteReader in(payload);
  const unsigned flags = in.read<std::uint8_t>();
  FreCut cut;
  cut.mantissa_bits = in.read<std::uint8_t>();
  cut.rounded = (flags & format::kFreRounded) != 0;
  if (!in.ok() || cut.mantissa_bits > FreLayout<T>::kMaxMantissaBits ||
      (flags & ~(format::kHasExactPoints | format::kFreRounded | format::kFreExchanged)) != 0) {
    return false;
  }
  FreCodeWords words;
  if ((flags & format::kFreExchanged) != 0) {
    unsigned seen = 0;
    for (std::size_t d = 0; d < words.rank.size(); d += 2) {
      const unsigned pair = in.read<std::uint8_t>();
      words.rank[d] = pair & 15;
      words.rank[d + 1] = static_cast<std::uint8_t>(pair >> 4);
      seen |= 1u << words.rank[d] | 1u << words.rank[d + 1];
    }
    if (seen != (1u << encode::kFreDifferences) - 1) return false;
  }
  const bool any_exact = (flags & format::kHasExactPoints) != 0;
  if (any_exact) {
    workspace.exact_map.reset(count);
    if (!read_exact_points(in, chunk.extents()[chunk.rank() - 1], encode::MapCoding::zstd,
                           sizeof(T), workspace.lossless, workspace.exact_scratch,
                           workspace.exact_map, workspace.exact_bytes)) {
      return false;
    }
  }
  const FreParts parts(count);
  std::array<std::size_t, encode::kFreStreams> sizes{};
  std::uint64_t sum = 0;
  for (std::size_t j = 0; j + 1 < parts.streams; ++j) {
    const std::uint64_t size = in.read_varint();
    if (!in.ok() || size > payload.size()) return false;
    sizes[j] = static_cast<std::size_t>(size);
    sum += size;
  }
  const auto bytes = in.read_rest();
  if (sum > bytes.size()) return false;
  sizes[parts.streams - 1] = bytes.size() - static_cast<std::size_t>(sum);

  T* const whole = contiguous_memory(chunk);
  T* const values =
      whole != nullptr ? whole : reinterpret_cast<T*>(workspace.values.reserve(count * sizeof(T)));
  if (!encode::fre_kernels<T>(workspace.target)
           .decode(bytes, {sizes.data(), parts.streams}, count, cut, words, values)) {
    return false;
  }
  write_values(values, any_exact, chunk, workspace);
  return true;
}

std::string describe_fre(std::span<const std::uint8_t> payload) {
  if (payload.size() < 2) return "damaged";
  std::string text = std::to_string(payload[1]) + " mantissa bits";
  text += (payload[0] & format::kFreRounded) != 0 ? ", rounded" : ", cut";
  if ((payload[0] & format::kFreExchanged) != 0) text += ", code words exchanged";
  if ((payload[0] & format::kHasExactPoints) != 0) text += ", exact points";
  return text;
}

#define FIRN_INSTANTIATE(T)                                                          \
  template bool encode_fre(const Box<const T>&, const Parameters&, bool, Workspace&, \
                           std::uint8_t*, Encoded*);                                 \
  template bool decode_fre(std::span<const std::uint8_t>, const Box<T>&, Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
