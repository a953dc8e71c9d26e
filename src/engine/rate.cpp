#include "engine/rate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/elementary.hpp"
#include "container/records.hpp"

namespace firn::engine {
namespace {

constexpr std::uint64_t kSampleShare = 24, kLeastSample = 16384;
constexpr std::uint64_t kBoxValues = 8192, kFewestBoxes = 4, kMostBoxes = 64;
// The sizes that hold a ratio, of what it asks for, and the size that is aimed at.
constexpr double kLeast = 0.99, kMost = 1.004, kAim = 0.998;
constexpr int kMaxAttempts = 9;

}  // namespace

std::uint64_t spread(std::uint64_t i, std::uint64_t count) {
  const std::uint64_t turn = (i + 1) * 2654435769u & 0xFFFFFFFFu;  // of the golden ratio
  return (turn * (count & 0xFFFFFFFFu) >> 32) + turn * (count >> 32);
}

std::vector<Region> sample_regions(const Shape& shape, const Shape& chunk, std::uint64_t values) {
  const Grid grid(shape, chunk);
  const std::uint64_t count = chunk.count();
  std::vector<Region> regions;
  if (values >= shape.count()) {
    for (std::uint64_t i = 0; i < grid.count(); ++i) regions.push_back(grid.region(i));
    return regions;
  }
  const std::uint64_t boxes = std::clamp(values / kBoxValues, kFewestBoxes, kMostBoxes);
  if (count * boxes <= values) {
    const std::uint64_t wanted = (values + count - 1) / count;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      regions.push_back(grid.region(spread(i, grid.count())));
    }
    return regions;
  }
  Shape box = chunk;
  while (box.count() * boxes > values) {
    auto* const end = box.extents.begin() + box.rank;
    auto* const longest = std::max_element(box.extents.begin(), end);
    if (*longest == 1) break;
    *longest = (*longest + 1) / 2;
  }
  for (std::uint64_t i = 0; i < boxes; ++i) {
    const Region within = grid.region(spread(i, grid.count()));
    Region region = within;
    for (int k = 0; k < box.rank; ++k) {
      region.shape.extents[k] = std::min(box.extents[k], within.shape.extents[k]);
      const std::uint64_t room = within.shape.extents[k] - region.shape.extents[k];
      region.origin[k] += spread(3 * i + static_cast<std::uint64_t>(k), room + 1);
    }
    regions.push_back(region);
  }
  return regions;
}

std::uint64_t encoded_bytes(const ArrayView& array, const plan::Plan& plan,
                            const std::vector<Region>& regions, pipelines::Workers& workers) {
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  std::atomic<std::uint64_t> total{0};
  workers.for_each(regions.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
    const Region& region = regions[static_cast<std::size_t>(i)];
    std::uint8_t* out = workspace.output.reserve(
        pipelines::payload_capacity(static_cast<std::size_t>(region.shape.count()), array.type));
    const auto encode = [&]<class T>(T) {
      return pipelines::encode<T>(Box<const T>(static_cast<const T*>(array.data), strides, region),
                                  plan.parameters, workspace, out);
    };
    total += container::kMaxRecordOverhead - kMaxVarintBytes +
             (array.type == Type::f32 ? encode(float{}) : encode(double{})).size;
    return true;
  });
  return total;
}

Result<plan::Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                                  pipelines::Workers& workers) {
  Options fixed = options;
  fixed.bound = bound_abs > 0 ? Bound::abs(bound_abs) : Bound::lossless();
  fixed.max_abs.reset();
  auto plan = plan::make_plan(array, fixed, workers);
  if (plan) plan->header.bound = options.bound;
  return plan;
}

RateSearch::RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers)
    : array_(array), options_(options), workers_(workers) {
  target_bytes_ =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
}

double RateSearch::log_sampled_bits(double log_bound) {
  for (const auto& [bound, bits] : samples_) {
    if (bound == log_bound) return bits;
  }
  const auto plan = plan_for_bound(array_, options_, exp2_of(log_bound), workers_);
  if (!plan) {
    error_ = plan.error();
    return 0;
  }
  const auto bytes = static_cast<double>(encoded_bytes(array_, *plan, regions_, workers_));
  const double bits = log2_of(8 * bytes / static_cast<double>(sampled_values_));
  samples_.emplace_back(log_bound, bits);
  return bits;
}

// The log of the bound at which the sample takes about 2^log_bits bits a value.
double RateSearch::solve(double log_bits) {
  constexpr int kSteps = 7;
  constexpr double kClose = 0.015;
  // Below: too many bits. Above: few enough.
  std::optional<std::pair<double, double>> below, above;
  double at = std::clamp(highest_ - 10, lowest_, highest_);
  for (const auto& sample : samples_) {
    auto& side = sample.second > log_bits ? below : above;
    if (!side || (sample.second > log_bits) == (sample.first > side->first)) side = sample;
  }
  if (below || above) at = next_guess(below, above, log_bits);
  for (int step = 0; step < kSteps && !error_; ++step) {
    const double bits = log_sampled_bits(at);
    if (std::fabs(bits - log_bits) < kClose) break;
    (bits > log_bits ? below : above) = {at, bits};
    const double wanted = next_guess(below, above, log_bits);
    if (wanted == at || (below && above && above->first - below->first < 1e-3)) break;
    at = wanted;
  }
  return at;
}

double RateSearch::next_guess(const std::optional<Point>& below, const std::optional<Point>& above,
                              double log_bits) const {
  if (below && above) {
    // By a straight line, but not all the way to either end.
    const double part = (below->second - log_bits) / std::max(below->second - above->second, 1e-9);
    return below->first + (above->first - below->first) * std::clamp(part, 0.05, 0.95);
  }
  // One bit for each doubling of the bound, and more of those where there are few bits.
  const Point& known = below ? *below : *above;
  const double away = exp2_of(known.second) - exp2_of(log_bits) + (known.second - log_bits);
  return std::clamp(known.first + std::clamp(away, -12.0, 12.0), lowest_, highest_);
}

Result<double> RateSearch::first() {
  if (const auto checked = plan::check_options(array_.type, array_.shape, options_); !checked) {
    return checked.error();
  }
  auto plan = plan_for_bound(array_, options_, 0, workers_);
  if (!plan) return plan.error();
  const std::uint64_t count = array_.shape.count();
  const auto range = plan::value_range(array_, plan->parameters.fill, workers_);
  if (count == 0 || !(range.high > range.low) || !std::isfinite(range.high - range.low)) return 0.0;
  regions_ = sample_regions(array_.shape, plan->header.chunk,
                            std::max(kLeastSample, count / kSampleShare));
  for (const Region& region : regions_) sampled_values_ += region.shape.count();
  const bool boxes = regions_[0].shape.count() < plan->header.chunk.count();
  highest_ = log2_of(range.high - range.low);
  lowest_ = highest_ - (array_.type == Type::f32 ? 26 : 55);
  if (options_.max_abs) highest_ = std::min(highest_, log2_of(*options_.max_abs));
  lowest_ = std::min(lowest_, highest_);
  const double wanted =
      log2_of(8 * kAim * (boxes ? kBoxOverhead : 1) * target_bytes_ / static_cast<double>(count));
  const double found = solve(wanted);
  if (error_) return *error_;
  if (found > lowest_) return exp2_of(found);
  // Perhaps nothing needs to be lost.
  const auto lossless = static_cast<double>(encoded_bytes(array_, *plan, regions_, workers_));
  const bool enough = log2_of(8 * lossless / static_cast<double>(sampled_values_)) <= wanted;
  return enough ? 0.0 : exp2_of(found);
}

std::optional<double> RateSearch::next(double bound_abs, std::uint64_t size) {
  const double got = static_cast<double>(size) / target_bytes_;
  if (bound_abs == 0 ? got <= 1 : got > kLeast && got <= kMost) return {};
  if (++attempts_ == kMaxAttempts) return {};
  if (bound_abs == 0) {
    // The sample promised too much.
    return exp2_of(lowest_);
  }
  const double here = log2_of(bound_abs);
  if (here >= highest_ && got > 1) return {};
  // Real sizes on both sides of what is wanted are better than the sample.
  (got > kAim ? too_large_ : small_enough_) = {here, log2_of(got)};
  double wanted = 0;
  if (too_large_ && small_enough_) {
    // A straight line that stays on one side of a curve does not get there: halve then.
    const bool again = last_too_large_ == (got > kAim);
    wanted = again ? (too_large_->first + small_enough_->first) / 2
                   : next_guess(too_large_, small_enough_, log2_of(kAim));
    last_too_large_ = got > kAim;
  } else {
    wanted = solve(log_sampled_bits(here) + log2_of(kAim) - log2_of(got));
  }
  wanted = std::clamp(wanted, lowest_, highest_);
  if (error_ || std::fabs(wanted - here) < 1e-4) return {};
  return exp2_of(wanted);
}

Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  struct Try {
    double bound_abs;
    double off;  // how far the ratio is from what was asked for; missing it counts for more
  };
  std::optional<Try> best;
  const double target =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
  const auto attempt = [&](double bound_abs) -> Status {
    output.rewind();
    auto plan = plan_for_bound(array, options, bound_abs, workers);
    if (!plan) return plan.error();
    return compress(array, *plan, execution, workers, scratch, output);
  };
  RateSearch search(array, options, workers);
  const auto first = search.first();
  if (!first) return first.error();
  for (double bound_abs = *first;;) {
    if (const Status status = attempt(bound_abs); !status) return status;
    const double got = static_cast<double>(output.size()) / target;
    const double off = got <= kMost ? std::fabs(got - kAim) : 10 * (got - kAim);
    if (!best || off < best->off) best = Try{bound_abs, off};
    const auto next = search.next(bound_abs, output.size());
    if (next) {
      bound_abs = *next;
      continue;
    }
    return best->bound_abs == bound_abs ? Status(std::monostate{}) : attempt(best->bound_abs);
  }
}

}  // namespace firn::engine
