// The sums that a fit spends its time on: those of the normal equations. Every sum has a
// fixed order, the same on every target. robust_fit.hpp is what uses them.
#pragma once

#include <array>
#include <cstddef>

#include "base/simd_target.hpp"

namespace firn::predict {

inline constexpr int kMaxFitWeights = 32;

// Row r < weights: sums of features r and c, c <= r; row `weights`: of the target and feature c.
// What lies above the diagonal, and in other rows, may hold anything.
using FitSums = std::array<std::array<double, kMaxFitWeights>, kMaxFitWeights + 8>;

// Kernels work on whole vectors: this many features behind the last one may be read.
inline constexpr std::size_t kFitSlack = 8;

struct FitSamples {
  std::size_t count;
  int weights;
  int pitch;  // weights rounded up to fours; the features between are 0
  const float* features;
  const float* targets;
};

struct FitKernels {
  // Adds importance * feature * feature of all samples, one after the other.
  void (*accumulate)(const FitSamples& samples, const float* importance, FitSums& sums);
};
const FitKernels& fit_kernels(simd::Target target);

}  // namespace firn::predict
