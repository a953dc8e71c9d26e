#include "engine/estimate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "container/header.hpp"
#include "container/records.hpp"
#include "engine/rate.hpp"
#include "engine/sample.hpp"

namespace firn::engine {
namespace {

// A share of a large array; of a small one so much that it holds what happens at a few places only.
constexpr std::uint64_t kShare = 100, kLeastValues = std::uint64_t{1} << 19;

struct Sums {
  std::uint64_t bytes = 0;  // of the record
  double squares = 0;       // of the errors
  std::uint64_t count = 0;  // of values that have one
};

// Encodes one region and decodes it again.
template <class T>
bool measure(const ArrayView& array, const std::array<std::int64_t, kMaxRank>& strides,
             const plan::Plan& plan, const Region& region, pipelines::Workspace& workspace,
             Sums& sums) {
  const Box<const T> box(static_cast<const T*>(array.data), strides, region);
  std::uint8_t* payload =
      workspace.output.reserve(pipelines::payload_capacity(box.count(), array.type));
  const auto encoded = pipelines::encode<T>(box, plan.parameters, workspace, payload);
  sums.bytes = container::kMaxRecordOverhead - kMaxVarintBytes + encoded.size;
  std::vector<T> decoded(box.count());
  Region whole;
  whole.shape = region.shape;
  if (!pipelines::decode<T>(encoded.pipeline, {payload, encoded.size}, plan.parameters,
                            Box<T>(decoded.data(), contiguous_strides(region.shape), whole),
                            workspace)) {
    return false;
  }
  return box.for_each_row([&](const T* row, std::size_t offset) {
    for (std::size_t i = 0; i < box.row_length(); ++i) {
      const T value = row[static_cast<std::int64_t>(i) * box.row_stride()];
      if (!std::isfinite(value) ||
          (plan.parameters.fill && value == static_cast<T>(*plan.parameters.fill))) {
        continue;
      }
      const double error = static_cast<double>(decoded[offset + i]) - static_cast<double>(value);
      sums.squares += error * error;
      ++sums.count;
    }
    return true;
  });
}

// The header, and about what the index takes that several chunks have.
double bytes_around_records(plan::Plan& plan) {
  constexpr std::uint64_t kIndexEntry = 5, kIndexEnds = 14;
  std::uint8_t bytes[container::kMaxHeaderBytes];
  ByteWriter writer(bytes);
  container::write_header(plan.header, writer);
  const std::uint64_t chunks = Grid(plan.header.shape, plan.header.chunk).count();
  const std::uint64_t index = chunks == 1 ? 0 : kIndexEnds + chunks * kIndexEntry;
  return static_cast<double>(writer.size() + index);
}

// Maximum less minimum of short runs of values all over the array: extremes lie anywhere, and a few
// boxes miss them. Of a large array not more runs but longer ones: each is a page, of a disk
// perhaps.
template <class T>
double sampled_range(const ArrayView& array, const std::array<std::int64_t, kMaxRank>& strides,
                     std::optional<double> fill) {
  constexpr std::uint64_t kLeastRun = 16, kLeastRuns = 4096, kMostRuns = 16384;
  const std::uint64_t count = array.shape.count();
  const std::uint64_t runs =
      std::clamp(count / kShare / kLeastRun, std::min(kLeastRuns, count / kLeastRun), kMostRuns);
  const std::uint64_t length =
      std::max(kLeastRun, count / kShare / std::max<std::uint64_t>(runs, 1));
  T low = std::numeric_limits<T>::infinity(), high = -low;
  for (std::uint64_t run = 0; run < std::max<std::uint64_t>(runs, 1); ++run) {
    const std::uint64_t begin = spread(run, count);
    for (std::uint64_t i = begin; i < std::min(begin + length, count); ++i) {
      std::int64_t offset = array.strides ? 0 : static_cast<std::int64_t>(i);
      std::uint64_t index = i;
      for (int k = array.shape.rank - 1; array.strides && k >= 0; --k) {
        offset += static_cast<std::int64_t>(index % array.shape.extents[k]) * strides[k];
        index /= array.shape.extents[k];
      }
      const T value = static_cast<const T*>(array.data)[offset];
      if (!std::isfinite(value) || (fill && value == static_cast<T>(*fill))) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  return low <= high ? static_cast<double>(high) - static_cast<double>(low) : 0;
}

}  // namespace

Result<Estimate> estimate(const ArrayView& array, const Options& options,
                          pipelines::Workers& workers) {
  auto plan = plan::check_options(array.type, array.shape, options);
  if (!plan) return plan.error();
  if (options.bound.kind != BoundKind::abs && options.bound.kind != BoundKind::rel) {
    return Error{ErrorCode::unsupported,
                 std::string("estimates are made for abs and rel bounds, not for ") +
                     name_of(options.bound.kind)};
  }
  const std::uint64_t count = array.shape.count();
  if (count == 0 || array.data == nullptr) {
    return Error{ErrorCode::invalid_argument, "the array has no values to look at"};
  }
  const auto regions =
      sample_regions(array.shape, plan->header.chunk, std::max(kLeastValues, count / kShare));
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  Estimate result;
  for (const Region& region : regions) result.sampled_values += region.shape.count();
  double range = 0;
  if (result.sampled_values == count) {
    const auto all = plan::value_range(array, plan->parameters.fill, workers);
    if (all.high > all.low) range = all.high - all.low;
  } else {
    range = array.type == Type::f32 ? sampled_range<float>(array, strides, plan->parameters.fill)
                                    : sampled_range<double>(array, strides, plan->parameters.fill);
  }
  result.bound = options.bound;
  result.bound_abs = options.bound.value * (options.bound.kind == BoundKind::rel ? range : 1);
  plan = plan_for_bound(array, options, range > 0 ? result.bound_abs : 0, workers);
  if (!plan) return plan.error();

  std::vector<Sums> measured(regions.size());
  std::atomic<bool> decoded{true};
  workers.for_each(regions.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
    const auto number = static_cast<std::size_t>(i);
    const bool done =
        array.type == Type::f32
            ? measure<float>(array, strides, *plan, regions[number], workspace, measured[number])
            : measure<double>(array, strides, *plan, regions[number], workspace, measured[number]);
    if (!done) decoded = false;
    return done;
  });
  if (!decoded) return Error{ErrorCode::corrupt, "a sample could not be decoded again"};
  Sums sums;
  for (const Sums& each : measured) {
    sums.bytes += each.bytes;
    sums.squares += each.squares;
    sums.count += each.count;
  }
  auto bytes = static_cast<double>(sums.bytes);
  if (regions[0].shape.count() < plan->header.chunk.count() && result.sampled_values < count) {
    bytes /= kBoxOverhead;
  }
  if (result.sampled_values < count && result.bound_abs > 0) {
    // The sample may be rougher or smoother than the whole.
    Region whole;
    whole.shape = array.shape;
    const auto bits = [&](const std::vector<Region>& parts) {
      return Roughness(array, plan->parameters.fill, parts).bits(result.bound_abs);
    };
    bytes *= bits({whole}) / bits(regions);
  }
  const double share = static_cast<double>(result.sampled_values) / static_cast<double>(count);
  bytes = bytes / share + bytes_around_records(*plan);
  result.ratio = static_cast<double>(count * size_of(array.type)) / bytes;
  const double mean = sums.count == 0 ? 0 : sums.squares / static_cast<double>(sums.count);
  result.psnr_db = mean == 0 || !(range > 0) ? std::numeric_limits<double>::infinity()
                                             : 10 * std::log10(range * range / mean);
  return result;
}

}  // namespace firn::engine
