// Causal prediction with Highway, one copy per target; the operations of causal_reference.cpp in
// the same order.
#include "predict/causal.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/causal_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "predict/feedback-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most 8 lanes, four to a block: enough additions at a time to hide their latency,
// few enough sums for the registers.
template <class T>
using D = hn::CappedTag<T, 8>;
constexpr size_t kVectors = 4;

HWY_INLINE hn::Vec<D<float>> to_float(hn::Vec<D<float>> v) { return v; }
HWY_INLINE auto to_float(hn::Vec<D<double>> v) {
  return hn::DemoteTo(hn::Rebind<float, D<double>>(), v);
}

// True in the lanes from `first` on whose bits are set.
template <class DI>
HWY_INLINE hn::Mask<DI> lanes_of(DI di, uint32_t bits, size_t first) {
  const auto shifted = hn::Set(di, static_cast<int32_t>(bits >> first));
  return hn::TestBit(shifted, hn::Shl(hn::Set(di, 1), hn::Iota(di, 0)));
}

// The same as a mask of T.
template <class T>
HWY_INLINE hn::Mask<D<T>> value_lanes(uint32_t bits, size_t first) {
  const D<T> d;
  const hn::RebindToSigned<D<T>> di;
  using Int = hn::TFromD<decltype(di)>;
  const auto shifted = hn::Set(di, static_cast<Int>(bits >> first));
  return hn::RebindMask(d,
                        hn::TestBit(shifted, hn::Shl(hn::Set(di, Int{1}), hn::Iota(di, Int{0}))));
}

// The weighted magnitudes around each lane.
template <class T>
HWY_INLINE void sum_around(const CausalStencil<T>& stencil, const uint8_t* magnitudes,
                           uint16_t* HWY_RESTRICT around) {
  const hn::CappedTag<uint16_t, 16> d16;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  const size_t lanes = hn::Lanes(d16);
  for (size_t i = 0; i < kCausalLanes; i += 2 * lanes) {
    auto first = hn::Zero(d16);
    auto second = hn::Zero(d16);
    for (int k = 0; k < stencil.context_taps; ++k) {
      const uint8_t* from = magnitudes + i + stencil.context_offset[k];
      const auto weight = hn::Set(d16, stencil.context_weight[k]);
      first = hn::Add(first, hn::Mul(hn::PromoteTo(d16, hn::LoadU(d8, from)), weight));
      second = hn::Add(second, hn::Mul(hn::PromoteTo(d16, hn::LoadU(d8, from + lanes)), weight));
    }
    hn::Store(first, d16, around + i);
    hn::Store(second, d16, around + i + lanes);
  }
}

template <class T>
void predict(const CausalStencil<T>& stencil, const T* cells, const uint8_t* magnitudes,
             uint32_t coded, T* HWY_RESTRICT predictions, uint8_t* HWY_RESTRICT contexts) {
  const D<T> d;
  const hn::Rebind<float, D<T>> df;
  const hn::Rebind<int32_t, D<T>> di;
  const hn::Rebind<uint8_t, D<T>> d8;
  const hn::Rebind<uint16_t, D<T>> d16;
  using V = hn::Vec<D<T>>;
  const size_t lanes = hn::Lanes(d);
  alignas(64) uint16_t around[kCausalLanes];
  sum_around(stencil, magnitudes, around);
  const int count = stencil.tap_count;
  for (size_t i = 0; i < kCausalLanes; i += kVectors * lanes) {
    V even[kVectors], odd[kVectors];
    for (size_t k = 0; k < kVectors; ++k) even[k] = odd[k] = hn::Zero(d);
    int g = count;
    if (count % 2 != 0) {
      --g;
      const auto weight = hn::Set(d, stencil.weight[g]);
      const T* from = cells + i + stencil.offset[g];
      for (size_t k = 0; k < kVectors; ++k) {
        even[k] = hn::Add(even[k], hn::Mul(hn::LoadU(d, from + k * lanes), weight));
      }
    }
    for (; g > 0; g -= 2) {
      const auto odd_weight = hn::Set(d, stencil.weight[g - 1]);
      const auto even_weight = hn::Set(d, stencil.weight[g - 2]);
      const T* odd_from = cells + i + stencil.offset[g - 1];
      const T* even_from = cells + i + stencil.offset[g - 2];
      for (size_t k = 0; k < kVectors; ++k) {
        odd[k] = hn::Add(odd[k], hn::Mul(hn::LoadU(d, odd_from + k * lanes), odd_weight));
        even[k] = hn::Add(even[k], hn::Mul(hn::LoadU(d, even_from + k * lanes), even_weight));
      }
    }
    const auto largest = hn::Set(d, hwy::HighestValue<T>());
    V prediction[kVectors], spread[kVectors];
    for (size_t k = 0; k < kVectors; ++k) {
      const V sum = hn::Add(even[k], odd[k]);
      prediction[k] = hn::IfThenElseZero(hn::Le(hn::Abs(sum), largest), sum);
      hn::StoreU(prediction[k], d, predictions + i + k * lanes);
      spread[k] = hn::Zero(d);
    }
    for (int tap = count < kSpreadTaps ? count : kSpreadTaps; tap-- > 0;) {
      const T* from = cells + i + stencil.offset[tap];
      for (size_t k = 0; k < kVectors; ++k) {
        spread[k] =
            hn::Add(spread[k], hn::Abs(hn::Sub(hn::LoadU(d, from + k * lanes), prediction[k])));
      }
    }
    for (size_t k = 0; k < kVectors; ++k) {
      const size_t at = i + k * lanes;
      const auto steps = to_float(hn::Mul(spread[k], hn::Set(d, stencil.spread_scale)));
      const auto sum = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(d16, around + at)));
      const auto activity =
          hn::Add(hn::Add(steps, hn::Mul(sum, hn::Set(df, 0x1p-6f))), hn::Set(df, stencil.floor));
      const hn::RebindToUnsigned<decltype(di)> du;
      const auto bits = hn::BitCast(di, hn::ShiftRight<22>(hn::BitCast(du, activity)));
      const auto context = hn::Sub(bits, hn::Set(di, 2 * (127 - 6)));
      const auto clamped =
          hn::Min(hn::Max(context, hn::Zero(di)), hn::Set(di, kCausalContexts - 1));
      const auto used = hn::IfThenElse(lanes_of(di, coded, at), clamped,
                                       hn::Set(di, static_cast<int32_t>(kNotCoded)));
      hn::StoreU(hn::DemoteTo(d8, used), d8, contexts + at);
    }
  }
}

HWY_INLINE void set_magnitudes(const int32_t* HWY_RESTRICT codes, int shift,
                               uint8_t* HWY_RESTRICT magnitudes) {
  const hn::CappedTag<int32_t, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < kCausalLanes; i += lanes) {
    const auto size = hn::BitCast(du, hn::Abs(hn::LoadU(d, codes + i)));
    const auto capped = hn::Min(hn::ShiftRightSame(size, shift), hn::Set(du, 255u));
    hn::StoreU(hn::TruncateTo(d8, capped), d8, magnitudes + i);
  }
}

// kGrid: the scale has a grain, and errors may be as large as the bound.
template <bool kGrid, class T>
uint32_t quantize_with(const quantize::Scale<T>& scale, T fill, int shift, uint32_t coded,
                       const T* HWY_RESTRICT predictions, T* HWY_RESTRICT cells,
                       int32_t* HWY_RESTRICT codes, uint8_t* magnitudes, T* max_error) {
  const D<T> d;
  const hn::Rebind<int32_t, D<T>> di;
  const size_t lanes = hn::Lanes(d);
  auto largest = hn::Set(d, *max_error);
  uint32_t exact = 0;
  for (size_t i = 0; i < kCausalLanes; i += lanes) {
    const auto prediction = hn::LoadU(d, predictions + i);
    const auto points = quantize_points<kGrid>(d, hn::LoadU(d, cells + i), prediction, scale, fill);
    const auto wanted = value_lanes<T>(coded, i);
    const auto done = hn::And(points.good, wanted);
    largest = hn::Max(largest, hn::IfThenElseZero(done, points.error));
    hn::StoreU(hn::IfThenElse(done, points.decoded, prediction), d, cells + i);
    hn::StoreU(points.code, di, codes + i);
    if (HWY_UNLIKELY(!hn::AllTrue(d, done))) {
      uint8_t mask[8] = {};
      hn::StoreMaskBits(d, done, mask);
      const uint32_t kept = mask[0];
      for (size_t k = 0; k < lanes; ++k) {
        if ((kept >> k & 1) == 0) codes[i + k] = 0;
      }
      exact |= (coded >> i & ~kept & ((1u << lanes) - 1)) << i;
    }
  }
  *max_error = hn::GetLane(hn::MaxOfLanes(d, largest));
  set_magnitudes(codes, shift, magnitudes);
  return exact;
}

template <class T>
uint32_t quantize(const quantize::Scale<T>& scale, T fill, int shift, uint32_t coded,
                  const T* HWY_RESTRICT predictions, T* HWY_RESTRICT cells,
                  int32_t* HWY_RESTRICT codes, uint8_t* magnitudes, T* max_error) {
  return scale.grain > 0 ? quantize_with<true>(scale, fill, shift, coded, predictions, cells, codes,
                                               magnitudes, max_error)
                         : quantize_with<false>(scale, fill, shift, coded, predictions, cells,
                                                codes, magnitudes, max_error);
}

template <class T>
void restore(T step, int shift, const T* HWY_RESTRICT predictions,
             const int32_t* HWY_RESTRICT codes, T* HWY_RESTRICT cells, uint8_t* magnitudes) {
  const D<T> d;
  const hn::Rebind<int32_t, D<T>> di;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < kCausalLanes; i += lanes) {
    hn::Vec<D<T>> code;
    if constexpr (sizeof(T) == 4) {
      code = hn::ConvertTo(d, hn::LoadU(di, codes + i));
    } else {
      code = hn::PromoteTo(d, hn::LoadU(di, codes + i));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, predictions + i), hn::Mul(code, hn::Set(d, step))), d,
               cells + i);
  }
  set_magnitudes(codes, shift, magnitudes);
}

template <class T>
const CausalKernels<T>& causal_table() {
  static constexpr CausalKernels<T> kernels{predict<T>, quantize<T>, restore<T>};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

namespace reference {
template <class T>
const CausalKernels<T>& causal_kernels();
}  // namespace reference

template <class T>
const CausalKernels<T>& causal_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::causal_kernels<T>();
  FIRN_SELECT_KERNELS(target, causal_table<T>)
}
template const CausalKernels<float>& causal_kernels(simd::Target);
template const CausalKernels<double>& causal_kernels(simd::Target);

}  // namespace firn::predict
#endif  // HWY_ONCE
