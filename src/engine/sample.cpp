#include "engine/sample.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/spread.hpp"
#include "container/records.hpp"

namespace firn::engine {
namespace {

constexpr std::uint64_t kRegionValues = 65536, kFewestRegions = 4, kMostRegions = 64;
// Of a line, which has few borders, smaller ones.
constexpr std::uint64_t kBoxValues = 4096, kLineValues = 1024;
constexpr double kChoiceShare = 0.25;
// Points that are looked at for roughness, a few neighbours at a time.
constexpr std::uint64_t kRuns = 128, kRun = 4;
// The largest of their residuals is scaled to about 2 to this power, so that floats hold them.
constexpr int kLargest = 60;

// log2 of a number of at least 1, to about 0.09, and continuous; in units of 2^-12, so that many
// can be added at once.
constexpr double kRoughUnit = 0x1p-12;
std::uint32_t rough_log2(float value) {
  return (std::bit_cast<std::uint32_t>(value) - (127u << 23)) >> 11;
}

// A chunk's shape, halved until it has at most so many values.
Shape box_in(Shape chunk, std::uint64_t values) {
  while (chunk.count() > values) {
    auto* const end = chunk.extents.begin() + chunk.rank;
    auto* const longest = std::max_element(chunk.extents.begin(), end);
    if (*longest == 1) break;
    *longest = (*longest + 1) / 2;
  }
  return chunk;
}

plan::Plan quickly(const plan::Plan& plan) {
  plan::Plan result = plan;
  result.parameters.thorough = false;
  result.parameters.trial = true;
  return result;
}

Bits bits_of(const ArrayView& array, const std::vector<Region>& regions, const plan::Plan& plan,
             pipelines::Workers& workers, std::vector<pipelines::Choice>* choices) {
  Bits result;
  result.bits = 8 * static_cast<double>(encoded_bytes(array, plan, regions, workers, choices));
  for (const Region& region : regions) result.values += static_cast<double>(region.shape.count());
  return result;
}

}  // namespace

std::vector<Region> sample_regions(const Shape& shape, const Shape& chunk, std::uint64_t values) {
  const Grid grid(shape, chunk);
  const std::uint64_t count = chunk.count();
  std::vector<Region> regions;
  if (values >= shape.count()) {
    for (std::uint64_t i = 0; i < grid.count(); ++i) regions.push_back(grid.region(i));
    return regions;
  }
  const std::uint64_t boxes = std::clamp(values / kRegionValues, kFewestRegions, kMostRegions);
  if (count * boxes <= values) {
    const std::uint64_t wanted = (values + count - 1) / count;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      regions.push_back(grid.region(spread(i + 1, grid.count())));
    }
    return regions;
  }
  const Shape box = box_in(chunk, values / boxes);
  for (std::uint64_t i = 0; i < boxes; ++i) {
    const Region within = grid.region(spread(i + 1, grid.count()));
    Region region = within;
    for (int k = 0; k < box.rank; ++k) {
      region.shape.extents[k] = std::min(box.extents[k], within.shape.extents[k]);
      const std::uint64_t room = within.shape.extents[k] - region.shape.extents[k];
      region.origin[k] += spread(3 * i + static_cast<std::uint64_t>(k) + 1, room + 1);
    }
    regions.push_back(region);
  }
  return regions;
}

std::uint64_t encoded_bytes(const ArrayView& array, const plan::Plan& plan,
                            const std::vector<Region>& regions, pipelines::Workers& workers,
                            std::vector<pipelines::Choice>* choices) {
  if (choices != nullptr) choices->resize(regions.size());
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  std::atomic<std::uint64_t> total{0};
  workers.for_each(regions.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
    const Region& region = regions[static_cast<std::size_t>(i)];
    std::uint8_t* out = workspace.output.reserve(
        pipelines::payload_capacity(static_cast<std::size_t>(region.shape.count()), array.type));
    auto parameters = plan.parameters;
    if (choices != nullptr) parameters.choice = (*choices)[static_cast<std::size_t>(i)];
    const auto encode = [&]<class T>(T) {
      return pipelines::encode<T>(Box<const T>(static_cast<const T*>(array.data), strides, region),
                                  parameters, workspace, out);
    };
    const auto encoded = array.type == Type::f32 ? encode(float{}) : encode(double{});
    if (choices != nullptr) (*choices)[static_cast<std::size_t>(i)] = encoded.choice;
    total += container::kMaxRecordOverhead - kMaxVarintBytes + encoded.size;
    return true;
  });
  return total;
}

Roughness::Roughness(const ArrayView& array, std::optional<double> fill,
                     const std::vector<Region>& regions) {
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  // Of points among others, and of those beside specials from the end down.
  std::array<double, kRuns * kRun> residuals;
  std::size_t among = 0, beside = residuals.size();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  constexpr int kOctaves = 8;
  std::array<std::uint16_t, 2048 / kOctaves> magnitudes{};  // how many, by exponent
  const auto look = [&]<class T>(const T* data) {
    const T mask = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
    for (std::uint64_t run = 0; run < kRuns; ++run) {
      const Region& region = regions[static_cast<std::size_t>(run % regions.size())];
      std::uint64_t rest = spread(run / regions.size() + 1, region.shape.count());
      // The first point, and the way to the ones before it along the two fastest axes; or to
      // those after it at the array's border.
      std::int64_t at = 0;
      std::array<std::int64_t, 2> step{};
      std::uint64_t length = kRun;
      for (int k = region.shape.rank - 1, axis = 0; k >= 0; --k, ++axis) {
        const std::uint64_t place = rest % region.shape.extents[k] + region.origin[k];
        rest /= region.shape.extents[k];
        at += static_cast<std::int64_t>(place) * strides[k];
        if (axis == 0)
          length = std::min(length, region.origin[k] + region.shape.extents[k] - place);
        if (axis > 1 || array.shape.extents[k] == 1) continue;
        step[static_cast<std::size_t>(axis)] = place > 0 ? -strides[k] : strides[k];
        if (axis == 0 && place == 0) length = 1;
      }
      const auto special = [&](T value) { return !std::isfinite(value) || value == mask; };
      for (; length > 0; --length, at += strides[region.shape.rank - 1]) {
        const T corner = data[at];
        const T others[] = {data[at + step[0]], data[at + step[1]], data[at + step[0] + step[1]]};
        const auto value = static_cast<double>(corner);
        // A special value leaves nothing finite.
        double residual = value - static_cast<double>(others[0]);
        if (step[1] != 0) {
          residual -= static_cast<double>(others[1]) - static_cast<double>(others[2]);
        }
        const bool plain = !fill && std::isfinite(residual);
        if (!plain && special(corner)) {
          residuals[among++] = 0;
          continue;
        }
        if (value != 0)
          ++magnitudes[(std::bit_cast<std::uint64_t>(std::fabs(value)) >> 52) / kOctaves];
        low = std::min(low, value);
        high = std::max(high, value);
        if (plain || (!special(others[0]) && !special(others[1]) && !special(others[2]))) {
          residuals[among++] = std::fabs(residual);
          continue;
        }
        const bool first = !special(others[0]), second = !special(others[1]);
        const T neighbour = first ? others[0] : second ? others[1] : corner;
        residuals[--beside] = std::fabs(value - static_cast<double>(neighbour));
      }
    }
  };
  array.type == Type::f32 ? look(static_cast<const float*>(array.data))
                          : look(static_cast<const double*>(array.data));
  low_ = low;
  high_ = high;
  const std::uint32_t seen = std::accumulate(magnitudes.begin(), magnitudes.end(), 0u);
  std::size_t bin = 0;
  for (std::uint32_t below = magnitudes[0]; 8 * below < seen; below += magnitudes[bin]) ++bin;
  small_magnitude_ = static_cast<int>(bin) * kOctaves - 1023;
  // Where a mask ends little is seen; where specials are everywhere nothing else is.
  constexpr std::size_t kMany = 8;
  const bool many = residuals.size() - beside > among / kMany;
  if (!many) std::fill(residuals.begin() + static_cast<std::ptrdiff_t>(beside), residuals.end(), 0);
  residuals_.resize(among + residuals.size() - beside);
  double largest = 0;
  const auto each = [&](std::size_t i) { return residuals[i < among ? i : i - among + beside]; };
  for (std::size_t i = 0; i < residuals_.size(); ++i) largest = std::max(largest, each(i));
  largest = std::min(largest, std::numeric_limits<double>::max());
  if (largest > 0) scale_ = std::ldexp(1, std::min(kLargest - std::ilogb(largest), 1023));
  for (std::size_t i = 0; i < residuals_.size(); ++i) {
    residuals_[i] = static_cast<float>(std::min(each(i), largest) * scale_);
  }
}

double Roughness::bits(double bound_abs) const {
  // Noise of this magnitude takes about so much; the least keeps quotients of smooth arrays apart
  // from 0 / 0.
  constexpr double kNoise = 8, kLeast = 0.05;
  const double most = std::ldexp(1, 126 - kLargest);
  const auto inverse = static_cast<float>(std::min(kNoise / (2 * bound_abs) / scale_, most));
  std::uint32_t sum = 0;
  for (const float residual : residuals_) sum += rough_log2(1 + residual * inverse);
  return kLeast + kRoughUnit * static_cast<double>(sum) / static_cast<double>(residuals_.size());
}

Stack::Stack(const ArrayView& array, const std::vector<Region>& boxes, std::uint64_t chunk_values)
    : box_(boxes[0].shape) {
  values_.resize(boxes.size() * static_cast<std::size_t>(box_.count()) * size_of(array.type));
  array_ = {values_.data(), array.type, box_, {}};
  array_.shape.extents[0] *= boxes.size();
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  const auto copy = [&]<class T>(const T* data) {
    T* to = reinterpret_cast<T*>(values_.data());
    for (const Region& box : boxes) {
      const Box<const T> from(data, strides, box);
      const std::size_t length = from.row_length();
      const std::int64_t stride = from.row_stride();
      from.for_each_row([&](const T* row, std::size_t) {
        if (stride == 1) {
          std::memcpy(to, row, length * sizeof(T));
        } else {
          for (std::size_t i = 0; i < length; ++i)
            to[i] = row[static_cast<std::int64_t>(i) * stride];
        }
        to += length;
        return true;
      });
    }
  };
  array.type == Type::f32 ? copy(static_cast<const float*>(array.data))
                          : copy(static_cast<const double*>(array.data));
  const std::uint64_t in_chunk = std::max<std::uint64_t>(1, chunk_values / box_.count());
  for (std::uint64_t first = 0; first < boxes.size(); first += in_chunk) {
    Region region;
    region.shape = box_;
    region.origin[0] = first * box_.extents[0];
    region.shape.extents[0] *= std::min(in_chunk, boxes.size() - first);
    chunks_.push_back(region);
  }
}

Sample::Sample(const ArrayView& array, const Shape& chunk, std::optional<double> fill,
               std::uint64_t values)
    : chunk_(chunk) {
  const Shape& shape = array.shape;
  const Shape box = box_in(chunk, shape.rank == 1 ? kLineValues : kBoxValues);
  values = std::min(values, shape.count());
  const std::uint64_t boxes = std::max<std::uint64_t>(1, values / box.count());
  std::vector<Region> regions(static_cast<std::size_t>(boxes));
  // A few are rather at the array's borders than in its middle; many are everywhere alike.
  constexpr std::uint64_t kMany = 16;
  for (std::uint64_t i = 0; i < boxes; ++i) {
    Region& region = regions[static_cast<std::size_t>(i)];
    region.shape = box;
    std::uint64_t rest = spread(i + 1, shape.count());
    for (int k = shape.rank - 1; k >= 0; --k) {
      const std::uint64_t place = rest % shape.extents[k], room = shape.extents[k] - box.extents[k];
      region.origin[k] =
          boxes < kMany ? std::min(place, room) : place * (room + 1) / shape.extents[k];
      rest /= shape.extents[k];
    }
  }
  boxes_ = Stack(array, regions, chunk.count());
  // Their values have been read just now.
  sampled_ = Roughness(array, fill, regions);
  Region all;
  all.shape = shape;
  whole_ = Roughness(array, fill, {all});
}

double Sample::to_whole(double bits, const plan::Plan& plan) const {
  const double bound = plan.parameters.bound_abs;
  // Where both take next to nothing their quotient tells little, but that blocks are all zero.
  const double little = plan.parameters.pipeline == Pipeline::blockpack ? 0 : 0.2;
  return bits * (whole_.bits(bound) + little) / (sampled_.bits(bound) + little);
}

std::vector<Region> Sample::boxes_between(double from, double to) const {
  std::vector<Region> regions = boxes_.chunks();
  const std::uint64_t in_box = boxes_.box().extents[0];
  for (Region& region : regions) {
    const auto boxes = static_cast<double>(region.shape.extents[0] / in_box);
    const auto begin = static_cast<std::uint64_t>(std::ceil(from * boxes));
    const auto end = static_cast<std::uint64_t>(std::ceil(to * boxes));
    region.origin[0] += begin * in_box;
    region.shape.extents[0] = (end - begin) * in_box;
  }
  std::erase_if(regions, [](const Region& region) { return region.shape.extents[0] == 0; });
  return regions;
}

Bits Sample::lossless_bits(const plan::Plan& lossless, pipelines::Workers& workers, double from,
                           double to) const {
  return bits_of(boxes_.array(), boxes_between(from, to), quickly(lossless), workers, nullptr);
}

double Sample::bits(const plan::Plan& plan, pipelines::Workers& workers,
                    std::vector<pipelines::Choice>* choices) const {
  const plan::Plan quick = quickly(plan);
  const bool choose = plan.parameters.pipeline == Pipeline::automatic;
  if (choose && choices != nullptr && choices->empty()) {
    // Some of the boxes tell which way is good.
    const std::vector<Region> parts = boxes_between(0, kChoiceShare);
    // All of them are encoded below.
    const bool some = parts[0].shape.extents[0] < boxes_.chunks()[0].shape.extents[0];
    if (some) encoded_bytes(boxes_.array(), quick, parts, workers, choices);
  }
  return to_whole(bits_of(boxes_.array(), boxes_.chunks(), quick, workers, choices).each(), plan);
}

void Sample::cut() {
  const Shape& box = boxes_.box();
  Shape half = box;
  double borders = 0, of_halves = 0, of_chunks = 0;  // a value has
  for (int k = 0; k < box.rank; ++k) {
    // Short rows are much work.
    const bool halved = k + 1 < box.rank || box.rank == 1;
    if (halved) half.extents[k] = std::max<std::uint64_t>(1, box.extents[k] / 2);
    borders += 1 / static_cast<double>(box.extents[k]);
    of_halves += 1 / static_cast<double>(half.extents[k]);
    of_chunks += 1 / static_cast<double>(chunk_.extents[k]);
  }
  if (of_halves <= borders) return;
  share_ = (borders - of_chunks) / (of_halves - borders);
  std::vector<Region> regions;
  for (std::uint64_t i = 0; i < boxes_.boxes(); ++i) {
    for (unsigned corner = 0; corner < 1u << box.rank; ++corner) {
      Region region;
      region.shape = half;
      bool inside = true;
      for (int k = 0; k < box.rank; ++k) {
        region.origin[k] = (corner >> k & 1) * half.extents[k];
        inside = inside && region.origin[k] + half.extents[k] <= box.extents[k];
      }
      region.origin[0] += i * box.extents[0];
      if (inside) regions.push_back(region);
    }
  }
  // As many boxes' in a chunk as before, so that there are as many chunks.
  const std::uint64_t values = boxes_.chunks()[0].shape.extents[0] / box.extents[0] *
                               (regions.size() / boxes_.boxes() * half.count());
  halves_ = Stack(boxes_.array(), regions, values);
}

double Sample::border_bits(const plan::Plan& plan, double sampled, pipelines::Workers& workers,
                           std::vector<pipelines::Choice> choices) {
  if (halves_.chunks().empty()) cut();
  if (share_ == 0) return 0;
  const double bits = to_whole(
      bits_of(halves_.array(), halves_.chunks(), quickly(plan), workers, &choices).each(), plan);
  return share_ * (bits - sampled);
}

}  // namespace firn::engine
