// The sums of a fit from their definition: what every SIMD target must reproduce.
#include "predict/fit_sums.hpp"

namespace firn::predict::reference {

void accumulate(const FitSamples& samples, const float* importance, FitSums& sums) {
  const float* f = samples.features;
  for (std::size_t j = 0; j < samples.count; ++j, f += samples.pitch) {
    const double w = importance[j];
    for (int r = 0; r <= samples.weights; ++r) {
      const double scaled = w * (r < samples.weights ? f[r] : samples.targets[j]);
      for (int c = 0; c <= r && c < samples.weights; ++c) sums[r][c] += scaled * f[c];
    }
  }
}

const FitKernels& fit_kernels() {
  static constexpr FitKernels kernels{accumulate};
  return kernels;
}

}  // namespace firn::predict::reference
