#include "engine/sampled_curve.hpp"

#include <algorithm>
#include <cmath>

#include "base/elementary.hpp"
#include "engine/pass.hpp"

namespace firn::engine {
namespace {

// The sample, which only tells how the size changes, is encoded in the same ways under bounds that
// are not further apart, in octaves.
constexpr double kSameChoice = 8;

// Chunks of boxes have more borders. What predicts across them misses there by about as many codes
// whatever the bound, so that is as many bits a value, except in lines at least so many, and less
// only where there are hardly any bits.
constexpr double kBorders = 0.33, kHardlyAny = 0.1;

// How much more a sample takes because it is not encoded in every way: what is trained on a whole
// chunk, in two and more dimensions, gains the more the fewer bits there are.
double untrained(double bits, int rank) {
  return rank == 1 ? 1.1 : 1.1 + 0.12 * std::clamp((6.5 - bits) / 4, 0.0, 1.0);
}

// The bits that a value of the whole takes when one of a sample takes so many, these among them for
// borders. A mask has borders too.
double bits_of_whole(double bits, double borders, const pipelines::Parameters& parameters,
                     int rank) {
  bits /= (parameters.thorough ? untrained(bits, rank) : 1) * (parameters.fill ? 1.2 : 1);
  if (parameters.pipeline == Pipeline::blockpack) return bits / (rank == 1 ? 1.02 : 1.1);
  // bits = whole + borders * whole / (whole + kHardlyAny)
  const double rest = bits - std::max(borders, rank == 1 ? 0 : kBorders) - kHardlyAny;
  return (rest + std::sqrt(rest * rest + 4 * kHardlyAny * bits)) / 2;
}

// Of evenly(), between two points.
double slope_between(const SampledCurve::Point& a, const SampledCurve::Point& b) {
  return std::clamp((evenly(b.size) - evenly(a.size)) / (b.bound - a.bound),
                    SampledCurve::kSteepest, SampledCurve::kFlattest);
}

}  // namespace

double SampledCurve::take(double log_bound, const plan::Plan& plan, pipelines::Workers& workers) {
  if (points_.empty() || std::fabs(log_bound - chosen_at_) > kSameChoice) {
    points_.clear();
    choices_.clear();
    chosen_at_ = log_bound;
  }
  const double bits = sample_.bits(plan, workers, &choices_);
  // Those that are few here are few elsewhere.
  const bool borders = plan.parameters.pipeline != Pipeline::blockpack;
  if (borders && borders_.value_or(kBorders) >= kBorders) {
    borders_ = sample_.border_bits(plan, bits, workers, choices_);
  }
  const Point point{log_bound,
                    log2_of(bits_of_whole(bits, borders_.value_or(0), plan.parameters, rank_))};
  const auto after = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& each) { return each.bound > log_bound; });
  points_.insert(after, point);
  return point.size;
}

bool SampledCurve::has_near(double log_bound, double distance) const {
  return std::any_of(points_.begin(), points_.end(), [&](const Point& each) {
    return std::fabs(each.bound - log_bound) < distance;
  });
}

// On the line through the two points around it, or through the last two where it lies beyond them.
double SampledCurve::bound_for(double log_bits) const {
  std::size_t after = 1;
  while (after + 1 < points_.size() && points_[after].size >= log_bits) ++after;
  // Two that are near each other tell no slope.
  std::size_t before = after - 1;
  if (points_[after].bound - points_[before].bound < kTrusted / 2) {
    if (before > 0) {
      --before;
    } else if (after + 1 < points_.size()) {
      ++after;
    }
  }
  const Point& from = points_[before];
  return from.bound + (evenly(log_bits) - evenly(from.size)) / slope_between(from, points_[after]);
}

double SampledCurve::slope() const { return slope_between(points_.front(), points_.back()); }

}  // namespace firn::engine
