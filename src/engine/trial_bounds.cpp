#include "engine/trial_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/elementary.hpp"
#include "base/geometry.hpp"

namespace firn::engine {

double TrialBounds::Try::step() const { return log2_of(bound_abs * ((256.0 - finer) / 256)); }

TrialBounds::TrialBounds(const ArrayView& array, const Options& options, const Shape& pieces,
                         pipelines::Workers& workers)
    : array_(array), options_(options), workers_(workers), pieces_(pieces) {
  // Short lines take hardly more in pieces.
  is_cut_ = pieces.rank == 1 && options.preset == Preset::balanced;
}

Status TrialBounds::begin() {
  auto plan = plan::plan_for_bound(array_, options_, 0, workers_);
  if (!plan) return plan.error();
  plan_ = *plan;
  grained_ = plan_;
  // A few chunks cannot make up for each other's.
  constexpr std::uint64_t kFewChunks = 4;
  const Grid grid(array_.shape, pieces_.rank > 0 ? pieces_ : plan_.header.chunk);
  on_stairs_ =
      plan::near_last_bits(array_.type, options_.bound.value) && grid.count() >= kFewChunks;
  plan_.magnitude = 0;  // steps are so much finer than bounds that the usual margin will do
  return std::monostate{};
}

bool TrialBounds::set_values(double low, double high, bool all, int small_magnitude) {
  knows_highest_ = all;
  const double width = std::min(high - low, std::numeric_limits<double>::max());
  highest_ = highest_for(width);
  const double floor = log2_of(plan::least_bound(array_.type));
  if (!(high > low) || highest_ < floor) return false;
  const double below = array_.type == Type::f32 ? 26 : 55;
  // Most values may be much smaller than a few are.
  constexpr double kMuch = 16;
  double largest = log2_of(width);
  if (largest - small_magnitude > kMuch) largest = small_magnitude + kMuch / 2;
  lowest_ = std::clamp(largest - below, floor, highest_);
  return true;
}

plan::Plan TrialBounds::plan(const Try& attempt) const {
  plan::Plan plan = plan_;
  if (attempt.bound_abs == 0) return plan;
  double bound = attempt.bound_abs;
  if (attempt.margin < format::kGrid) bound /= 1 - exp2_of(-attempt.margin);
  if (options_.max_abs) bound = std::min(bound, *options_.max_abs);
  plan::change_bound(array_, bound, workers_, &plan);
  plan.header.margin = plan.parameters.margin = attempt.margin;
  if (is_cut_) plan.header.chunk = pieces_;
  plan.parameters.finer = static_cast<std::uint8_t>(attempt.finer);
  return plan;
}

// No bound above the width of the range is of use.
double TrialBounds::highest_for(double width) const {
  double bound = std::min(width, plan::largest_bound(array_.type));
  if (options_.max_abs) bound = std::min(bound, *options_.max_abs);
  return log2_of(bound);
}

double TrialBounds::bound_of(double log_bound) const {
  return std::clamp(exp2_of(log_bound), plan::least_bound(array_.type),
                    plan::largest_bound(array_.type));
}

double TrialBounds::within_reach(double log_bound) {
  if (log_bound > highest_ && !knows_highest_) {
    const auto range = plan::value_range(array_, plan_.parameters.fill, workers_);
    knows_highest_ = true;
    const double width = range.high - range.low;
    if (std::isfinite(width)) highest_ = std::max(highest_, highest_for(width));
  }
  return std::clamp(log_bound, lowest_, highest_);
}

void TrialBounds::go_deeper() {
  constexpr double kDeeper = 10;
  deeper_ = true;
  lowest_ = std::max(lowest_ - kDeeper, log2_of(plan::least_bound(array_.type)));
}

TrialBounds::Try TrialBounds::with_reserve(double log_step) {
  const double step = bound_of(log_step);
  if (const auto stair = nearest_stair(step)) return *stair;
  const double bound = std::min(2 * step, bound_of(highest_));
  const auto finer = static_cast<unsigned>(256 * (1 - step / bound));
  return {std::min(step / ((256.0 - finer) / 256), bound), finer};
}

// Near values' last bits the multiples of their distance are good steps, and where that is not the
// same for all, or more than a step, the powers of two: the nearest of them, under a bound that is
// a power of two at least twice as coarse.
std::optional<TrialBounds::Try> TrialBounds::nearest_stair(double half_step) {
  if (!on_stairs_) return {};
  constexpr double kMiddle = 1.4142135623730951;
  constexpr int kFewBits = 6;  // else roundings are much less than a step
  // A few values tell whether these are near, all of them where they are.
  const bool knows = std::exchange(grained_.knows_magnitude, true);
  plan::change_bound(array_, half_step, workers_, &grained_);
  int bits = grained_.parameters.margin - format::kGrid;
  grained_.knows_magnitude = knows;
  if (bits < 0 || bits > kFewBits) return {};
  plan::change_bound(array_, half_step, workers_, &grained_);
  bits = grained_.parameters.margin - format::kGrid;
  const double power = std::ldexp(1, std::ilogb(half_step)), grain = std::ldexp(power, -bits);
  const double nearest = bits > 0 ? grain * std::nearbyint(half_step / grain)
                                  : power * (half_step < kMiddle * power ? 1 : 2);
  const double bound = std::ldexp(power, nearest > power ? 2 : 1);
  if (bound > bound_of(highest_)) return {};
  Try result;
  result.bound_abs = bound;
  result.finer = 256 - static_cast<unsigned>(std::nearbyint(256 * nearest / bound));
  // Two octaves of powers of two, or the same grain.
  result.margin = format::kGrid + (bits == 0 ? 2 : std::ilogb(bound / grain));
  result.stair = bits == 0 ? 0 : static_cast<unsigned>(256 * grain / bound);
  return result;
}

}  // namespace firn::engine
