// Contexts with Highway, one copy per target: 16-bit sums, then the exponent and first fraction bit
// of each sum as a float.
#include "predict/contexts.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/contexts_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#ifndef FIRN_CONTEXTS_REFERENCE
#define FIRN_CONTEXTS_REFERENCE
namespace firn::predict::reference {
template <class Q>
const ContextKernels<Q>& context_kernels();
}  // namespace firn::predict::reference
#endif  // FIRN_CONTEXTS_REFERENCE

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

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

// Context ids of one vector of sums.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::Rebind<uint8_t, D>> bucket(D d, V sum) {
  const hn::Repartition<int32_t, D> d32;
  const hn::Rebind<float, decltype(d32)> df;
  const hn::RebindToSigned<D> d16;
  const hn::Half<decltype(d)> d_half;
  const hn::Half<decltype(d16)> d16_half;
  // Exponent and one fraction bit.
  const auto steps = [&](hn::Vec<decltype(d_half)> half) {
    const auto bits = hn::BitCast(d32, hn::ConvertTo(df, hn::PromoteTo(d32, half)));
    return hn::DemoteTo(d16_half, hn::ShiftRight<22>(bits));
  };
  const auto both =
      hn::Combine(d16, steps(hn::UpperHalf(d_half, sum)), steps(hn::LowerHalf(d_half, sum)));
  // A sum of 1 is 2 * 127, which is context 1; one of 0 ends below zero.
  return hn::DemoteTo(hn::Rebind<uint8_t, D>(), hn::Sub(both, hn::Set(d16, 2 * 127 - 1)));
}

// Two vectors at a time, so that weights and distances are fetched once for both.
void contexts(const uint16_t* magnitudes, size_t count, const ContextRule& rule,
              uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint16_t, kContextDistance> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < count; i += 2 * lanes) {
    auto low = hn::Zero(d), high = hn::Zero(d);
    for (int k = 0; k < rule.count; ++k) {
      const auto tap = static_cast<size_t>(k);
      const uint16_t* from = magnitudes + i - rule.distance[tap];
      const auto weight = hn::Set(d, rule.weight[tap]);
      low = hn::Add(low, hn::Mul(hn::LoadU(d, from), weight));
      high = hn::Add(high, hn::Mul(hn::LoadU(d, from + lanes), weight));
    }
    if (HWY_LIKELY(count - i >= 2 * lanes)) {
      hn::StoreU(bucket(d, low), d8, out + i);
      hn::StoreU(bucket(d, high), d8, out + i + lanes);
    } else {
      uint8_t ids[2 * hn::MaxLanes(d)];
      hn::StoreU(bucket(d, low), d8, ids);
      hn::StoreU(bucket(d, high), d8, ids + lanes);
      std::memcpy(out + i, ids, count - i);
    }
  }
}

template <class Q>
const ContextKernels<Q>& table() {
  static constexpr ContextKernels<Q> kernels{magnitudes<Q>, contexts};
  return kernels;
}

#else

template <class Q>
const ContextKernels<Q>& table() {
  return reference::context_kernels<Q>();
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

template <class Q>
const ContextKernels<Q>& context_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::context_kernels<Q>();
  FIRN_SELECT_KERNELS(target, table<Q>)
}
template const ContextKernels<std::int32_t>& context_kernels(simd::Target);
template const ContextKernels<std::int64_t>& context_kernels(simd::Target);

}  // namespace firn::predict
#endif  // HWY_ONCE
