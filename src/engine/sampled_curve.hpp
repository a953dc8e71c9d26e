// What a sample of an array takes against the bound: a falling curve on which the bound for a ratio
// is sought.
#pragma once

#include <firn/firn.hpp>
#include <optional>
#include <vector>

#include "engine/sample.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

class SampledCurve {
 public:
  // log2 of a bound, and of the bits that a value of the array takes under it, about.
  struct Point {
    double bound;
    double size;
  };
  // How far from a point the curve is trusted, in octaves of the bound.
  static constexpr double kTrusted = 0.3;
  // What the slope of log2 of the size may be.
  static constexpr double kSteepest = -4, kFlattest = -0.02;

  SampledCurve(const ArrayView& array, const Shape& chunk, std::optional<double> fill,
               std::uint64_t values)
      : sample_(array, chunk, fill, values), rank_(array.shape.rank) {}

  const Sample& sample() const { return sample_; }
  const Roughness& whole() const { return sample_.whole(); }

  // Encodes the sample by this plan, which is for about that bound, and returns the size.
  double take(double log_bound, const plan::Plan& plan, pipelines::Workers& workers);
  const std::vector<Point>& points() const { return points_; }  // by bound
  bool has_near(double log_bound, double distance) const;

  // With at least two points: the bound for a size, and the slope of evenly() from end to end.
  double bound_for(double log_bits) const;
  double slope() const;

 private:
  Sample sample_;
  int rank_;
  std::vector<Point> points_;
  std::vector<pipelines::Choice> choices_;  // of the sample's chunks, made at this bound:
  double chosen_at_ = 0;
  std::optional<double> borders_;  // bits a value for borders that chunks do not have, seen last
};

}  // namespace firn::engine
