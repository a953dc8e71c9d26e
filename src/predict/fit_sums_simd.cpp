// The sums of a fit with Highway, one copy per target; those of fit_sums_reference.cpp in the same
// order.
#include "predict/fit_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/fit_sums_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
constexpr size_t kBlock = 64;                    // samples that stay in the first cache
constexpr size_t kColumns = kMaxFitWeights + 8;  // with the target, and whole vectors
constexpr int kRows = 8;                         // sums at a time, to hide additions' latency

// Adds a block to kRows rows of sums, in the columns of one vector.
HWY_INLINE void add_tile(const double (*HWY_RESTRICT values)[kColumns],
                         const double (*HWY_RESTRICT scaled)[kColumns], size_t count, int row,
                         int column, FitSums& sums) {
  const D d;
  hn::Vec<D> sum[kRows];
  for (int k = 0; k < kRows; ++k) sum[k] = hn::LoadU(d, &sums[row + k][column]);
  for (size_t j = 0; j < count; ++j) {
    const auto v = hn::LoadU(d, values[j] + column);
    const double* HWY_RESTRICT factors = scaled[j] + row;
    for (int k = 0; k < kRows; ++k) sum[k] = hn::Add(sum[k], hn::Mul(hn::Set(d, factors[k]), v));
  }
  for (int k = 0; k < kRows; ++k) hn::StoreU(sum[k], d, &sums[row + k][column]);
}

void accumulate(const FitSamples& samples, const float* importance, FitSums& sums) {
  const D d;
  const hn::Rebind<float, D> df;
  const int lanes = static_cast<int>(hn::Lanes(d));
  alignas(64) double values[kBlock][kColumns];
  alignas(64) double scaled[kBlock][kColumns];
  for (size_t begin = 0; begin < samples.count; begin += kBlock) {
    const size_t count = HWY_MIN(kBlock, samples.count - begin);
    for (size_t j = 0; j < count; ++j) {
      const float* f = samples.features + (begin + j) * static_cast<size_t>(samples.pitch);
      const auto w = hn::Set(d, static_cast<double>(importance[begin + j]));
      for (int c = 0; c < samples.weights; c += lanes) {
        const auto v = hn::PromoteTo(d, hn::LoadU(df, f + c));
        hn::StoreU(v, d, values[j] + c);
        hn::StoreU(hn::Mul(w, v), d, scaled[j] + c);
      }
      const double target = samples.targets[begin + j];
      scaled[j][samples.weights] = static_cast<double>(importance[begin + j]) * target;
      for (int r = samples.weights + 1; r < samples.weights + kRows; ++r) scaled[j][r] = 0;
    }
    for (int r = 0; r <= samples.weights; r += kRows) {
      for (int c = 0; c < HWY_MIN(r + kRows, samples.weights); c += lanes) {
        add_tile(values, scaled, count, r, c, sums);
      }
    }
  }
}

const FitKernels& fit_table() {
  static constexpr FitKernels kernels{accumulate};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

namespace reference {
const FitKernels& fit_kernels();
}  // namespace reference

const FitKernels& fit_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::fit_kernels();
  FIRN_SELECT_KERNELS(target, fit_table)
}

}  // namespace firn::predict
#endif  // HWY_ONCE
