// Contexts with Highway, one copy per target: 16-bit sums, then the exponent and first fraction bit
// of each sum as a float.
#include "predict/contexts.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/contexts_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Q>
void magnitudes(const Q* HWY_RESTRICT residuals, size_t count, int shift,
                uint16_t* HWY_RESTRICT out) {
  using U = hwy::MakeUnsigned<Q>;
  size_t i = 0;
  if constexpr (sizeof(Q) == 4) {
    const hn::ScalableTag<int32_t> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::Rebind<uint16_t, decltype(d)> d16;
    const size_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(du, kMaxMagnitude);
    for (; i + lanes <= count; i += lanes) {
      const auto magnitude = hn::BitCast(du, hn::Abs(hn::LoadU(d, residuals + i)));
      const auto shifted = hn::Min(hn::ShiftRightSame(magnitude, shift), limit);
      hn::StoreU(hn::TruncateTo(d16, shifted), d16, out + i);
    }
  }
  for (; i < count; ++i) {
    const U bits = static_cast<U>(residuals[i]);
    const U magnitude = (residuals[i] < 0 ? U{0} - bits : bits) >> shift;
    out[i] = static_cast<uint16_t>(magnitude < kMaxMagnitude ? magnitude : kMaxMagnitude);
  }
}

// Context ids of one vector of sums in 32-bit lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V bucket(D d, V sum) {
  const hn::Rebind<float, D> df;
  const auto bits = hn::BitCast(d, hn::ConvertTo(df, sum));
  // Exponent and one fraction bit; a sum of 1 is 2 * 127, which is context 1.
  const auto steps = hn::Sub(hn::ShiftRight<22>(bits), hn::Set(d, 2 * 127 - 1));
  return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), steps);
}

void contexts(const uint16_t* magnitudes, size_t count, const ContextRule& rule,
              uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<uint16_t> d;
  const hn::Repartition<int32_t, decltype(d)> d32;
  const hn::Rebind<uint16_t, decltype(d32)> d16;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  const size_t lanes = hn::Lanes(d);
  const size_t lanes32 = hn::Lanes(d32);
  uint16_t sums[hn::MaxLanes(d)];
  for (size_t i = 0; i < count; i += lanes) {
    auto sum = hn::Zero(d);
    for (int k = 0; k < rule.count; ++k) {
      const auto tap = static_cast<size_t>(k);
      const auto magnitude = hn::LoadU(d, magnitudes + i - rule.distance[tap]);
      sum = hn::Add(sum, hn::Mul(magnitude, hn::Set(d, rule.weight[tap])));
    }
    hn::StoreU(sum, d, sums);
    uint8_t ids[hn::MaxLanes(d)];
    for (size_t k = 0; k < lanes; k += lanes32) {
      const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, sums + k));
      hn::StoreU(hn::DemoteTo(d8, bucket(d32, wide)), d8, ids + k);
    }
    std::memcpy(out + i, ids, count - i < lanes ? count - i : lanes);
  }
}

template <class Q>
const ContextKernels<Q>& table() {
  static constexpr ContextKernels<Q> kernels{magnitudes<Q>, contexts};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

namespace reference {
template <class Q>
const ContextKernels<Q>& context_kernels();
}  // namespace reference

template <class Q>
const ContextKernels<Q>& context_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::context_kernels<Q>();
  FIRN_SELECT_KERNELS(target, table<Q>)
}
template const ContextKernels<std::int32_t>& context_kernels(simd::Target);
template const ContextKernels<std::int64_t>& context_kernels(simd::Target);

}  // namespace firn::predict
#endif  // HWY_ONCE
