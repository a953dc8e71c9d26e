#include "engine/estimate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "base/spread.hpp"
#include "container/header.hpp"
#include "container/records.hpp"
#include "engine/pass.hpp"
#include "engine/rate_search.hpp"
#include "engine/sample.hpp"

namespace firn::engine {
namespace {

// A share of a large array; of a small one so much that it holds what happens at a few places only.
constexpr std::uint64_t kShare = 100, kLeastValues = std::uint64_t{1} << 19;

struct Sums {
  std::uint64_t bytes = 0;  // of the record
  double squares = 0;       // of the errors, over the range
  std::uint64_t count = 0;  // of values that have one
};

// Encodes one region and decodes it again.
template <class T>
bool measure(const ArrayView& array, const std::array<std::int64_t, kMaxRank>& strides,
             const plan::Plan& plan, const Region& region, pipelines::Workspace& workspace,
             double range, Sums& sums) {
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
      if (error != 0) sums.squares += error / range * (error / range);
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
    const std::uint64_t begin = spread(run + 1, count);
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

// Looks at the array once, then tells about one bound after the other.
class Estimator {
 public:
  Estimator(const ArrayView& array, const Options& options, const plan::Plan& plan,
            pipelines::Workers& workers)
      : array_(array),
        options_(options),
        workers_(workers),
        regions_(sample_regions(array.shape, plan.header.chunk,
                                std::max(kLeastValues, array.shape.count() / kShare))),
        strides_(array.strides ? *array.strides : contiguous_strides(array.shape)) {
    const auto& fill = plan.parameters.fill;
    for (const Region& region : regions_) sampled_values_ += region.shape.count();
    if (sampled_values_ == array.shape.count()) {
      const auto all = plan::value_range(array, fill, workers);
      if (all.high > all.low) range_ = all.high - all.low;
    } else {
      range_ = array.type == Type::f32 ? sampled_range<float>(array, strides_, fill)
                                       : sampled_range<double>(array, strides_, fill);
      Region whole;
      whole.shape = array.shape;
      whole_roughness_ = Roughness(array, fill, {whole});
      sample_roughness_ = Roughness(array, fill, regions_);
    }
  }

  double range() const { return range_; }

  // Under abs, pwrel or lossless.
  Result<Estimate> at(const Bound& bound) const {
    Options options = options_;
    options.bound = bound;
    options.max_abs.reset();
    auto plan = plan::make_plan(array_, options, workers_);
    if (!plan) return plan.error();
    plan->header.bound = options_.bound;
    if (options_.bound.kind == BoundKind::psnr) plan->parameters.gathering.reset();
    Estimate result;
    result.bound = options_.bound;
    result.bound_abs = plan->parameters.pointwise ? 0 : plan->parameters.bound_abs;
    result.sampled_values = sampled_values_;
    std::vector<Sums> measured(regions_.size());
    std::atomic<bool> decoded{true};
    workers_.for_each(regions_.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
      const auto number = static_cast<std::size_t>(i);
      const Region& region = regions_[number];
      const bool done =
          array_.type == Type::f32
              ? measure<float>(array_, strides_, *plan, region, workspace, range_, measured[number])
              : measure<double>(array_, strides_, *plan, region, workspace, range_,
                                measured[number]);
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
    const std::uint64_t count = array_.shape.count();
    auto bytes = static_cast<double>(sums.bytes);
    if (sampled_values_ < count) {
      if (regions_[0].shape.count() < plan->header.chunk.count()) bytes /= kBoxOverhead;
      // The sample may be rougher or smoother than the whole.
      if (result.bound_abs > 0) {
        bytes *= whole_roughness_.bits(result.bound_abs) / sample_roughness_.bits(result.bound_abs);
      }
    }
    const double share = static_cast<double>(sampled_values_) / static_cast<double>(count);
    bytes = bytes / share + bytes_around_records(*plan);
    result.ratio = static_cast<double>(count * size_of(array_.type)) / bytes;
    const double mean = sums.count == 0 ? 0 : sums.squares / static_cast<double>(sums.count);
    result.psnr_db = mean > 0 && std::isfinite(mean) ? -10 * std::log10(mean)
                                                     : std::numeric_limits<double>::infinity();
    return result;
  }

 private:
  const ArrayView& array_;
  const Options& options_;
  pipelines::Workers& workers_;
  std::vector<Region> regions_;
  std::array<std::int64_t, kMaxRank> strides_;
  std::uint64_t sampled_values_ = 0;
  double range_ = 0;
  Roughness whole_roughness_, sample_roughness_;  // unless the sample is the whole
};

// How many times coarser the bound should be, log2, for what is wanted.
double missing(const Estimate& estimate, const Options& options, Type type) {
  const double wanted = options.bound.value;
  if (options.bound.kind == BoundKind::psnr) {
    constexpr double kExact = 24, kDoubling = 6.02;  // dB
    return (std::isfinite(estimate.psnr_db) ? estimate.psnr_db - wanted : kExact) / kDoubling;
  }
  const double value_bits = 8 * static_cast<double>(size_of(type));
  return evenly(std::log2(value_bits / estimate.ratio)) - evenly(std::log2(value_bits / wanted));
}

// The bound that is wanted of a ratio or a PSNR.
Result<Estimate> search(const Estimator& estimator, const Options& options, Type type) {
  constexpr int kMostTries = 6;
  constexpr double kNear = 0.02, kFirst = -10;
  struct Side {
    double bound, off;  // log2
  };
  if (options.bound.kind == BoundKind::ratio &&
      options.bound.value < most_lossless(type, options.preset)) {
    const auto lossless = estimator.at(Bound::lossless());
    if (!lossless || lossless->ratio >= options.bound.value) return lossless;
  }
  double largest = std::min(estimator.range(), plan::largest_bound(type));
  if (options.max_abs) largest = std::min(largest, *options.max_abs);
  const double least = plan::least_bound(type);
  if (largest < least) return estimator.at(Bound::lossless());
  const double range = std::log2(estimator.range()), highest = std::log2(largest);
  const double lowest =
      std::clamp(range - (type == Type::f32 ? 36 : 65), std::log2(least), highest);
  double at = std::clamp(range + kFirst, lowest, highest);
  std::optional<Side> fine, coarse;  // too much so
  std::optional<Estimate> best;
  double best_off = 0;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto here = estimator.at(Bound::abs(std::clamp(std::exp2(at), least, largest)));
    if (!here) return here;
    const double off = missing(*here, options, type);
    if (!best || std::fabs(off) <= best_off) {
      best = *here;
      best_off = std::fabs(off);
    }
    (off > 0 ? fine : coarse) = {at, off};
    double next = at + off;
    if (fine && coarse) {
      const double share = std::clamp(fine->off / (fine->off - coarse->off), 0.1, 0.9);
      next = fine->bound + share * (coarse->bound - fine->bound);
    }
    next = std::clamp(next, lowest, highest);
    if (std::fabs(off) < kNear || next == at) break;
    at = next;
  }
  // Finer than any bound.
  if (options.bound.kind == BoundKind::psnr && !fine && at == std::log2(least)) {
    return estimator.at(Bound::lossless());
  }
  return *best;
}

}  // namespace

Result<Estimate> estimate(const ArrayView& array, const Options& options,
                          pipelines::Workers& workers) {
  const auto plan = plan::check_options(array.type, array.shape, options);
  if (!plan) return plan.error();
  if (array.shape.count() == 0 || array.data == nullptr) {
    return Error{ErrorCode::invalid_argument, "the array has no values to look at"};
  }
  const Bound& bound = options.bound;
  Options tuned = options;
  if (bound.kind == BoundKind::psnr) tuned.tune = Tune::psnr;  // as compression does
  const Estimator estimator(array, tuned, *plan, workers);
  if (bound.kind == BoundKind::pwrel || bound.kind == BoundKind::abs) return estimator.at(bound);
  const double range = estimator.range();
  if (bound.kind == BoundKind::lossless || !(range > 0) || !std::isfinite(range)) {
    return estimator.at(Bound::lossless());
  }
  if (bound.kind == BoundKind::rel) {
    const double bound_abs = std::min(bound.value * range, plan::largest_bound(array.type));
    return estimator.at(bound_abs > 0 ? Bound::abs(bound_abs) : Bound::lossless());
  }
  return search(estimator, options, array.type);
}

}  // namespace firn::engine
