// Quantising what predictions from decoded values miss, a vector at a time, one copy per target:
// the operations of quantize_point() in interpolation_reference.cpp.

#if defined(FIRN_PREDICT_FEEDBACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIRN_PREDICT_FEEDBACK_INL
#undef FIRN_PREDICT_FEEDBACK_INL
#else
#define FIRN_PREDICT_FEEDBACK_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "quantize/quantize.hpp"

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// nearest_even of a clamped number, as 32-bit integers and as T.
template <class D, class V = hn::Vec<D>, class DI = hn::Rebind<int32_t, D>>
HWY_INLINE V round_vector(D d, V scaled, hn::Vec<DI>& code) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    code = hn::NearestInt(scaled);
    return hn::ConvertTo(d, code);
  } else {
    const auto magic = hn::Set(d, 6755399441055744.0);  // 1.5 * 2^52
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint32_t, D> du32;
    const auto shifted = hn::Add(scaled, magic);
    code = hn::BitCast(DI(), hn::TruncateTo(du32, hn::BitCast(du, shifted)));
    return hn::Sub(shifted, magic);
  }
}

template <class D>
struct QuantizedPoints {
  hn::Vec<hn::Rebind<int32_t, D>> code;
  hn::Vec<D> decoded, error;
  hn::Mask<D> good;  // or to be stored exactly
};

// kGrid: the scale has a grain.
template <bool kGrid, class D, class T = hn::TFromD<D>>
HWY_INLINE QuantizedPoints<D> quantize_points(D d, hn::Vec<D> value, hn::Vec<D> prediction,
                                              const quantize::Scale<T>& scale, T fill) {
  QuantizedPoints<D> result;
  const auto limit = hn::Set(d, static_cast<T>(quantize::kNarrowLimit));
  const auto step = hn::Set(d, scale.step), inverse_step = hn::Set(d, scale.inverse_step);
  const auto scaled = hn::Mul(hn::Sub(value, prediction), inverse_step);
  const auto clamped = hn::Max(hn::Min(scaled, limit), hn::Neg(limit));
  auto rounded = round_vector(d, clamped, result.code);
  result.decoded = hn::Add(prediction, hn::Mul(rounded, step));
  auto allowed = hn::Set(d, scale.below_bound());
  if constexpr (kGrid) {
    const auto one = hn::Set(d, T{1});
    const auto rest = hn::Mul(hn::Sub(value, result.decoded), inverse_step);
    hn::Vec<hn::Rebind<int32_t, D>> more;
    rounded = hn::Add(rounded, round_vector(d, hn::Max(hn::Min(rest, one), hn::Neg(one)), more));
    result.code = hn::Add(result.code, more);
    result.decoded = hn::Add(prediction, hn::Mul(rounded, step));
    const auto large = hn::Ge(hn::Abs(value), hn::Set(d, scale.tie_floor()));
    allowed = hn::IfThenElse(large, hn::Set(d, scale.bound), allowed);
  }
  result.error = hn::Abs(hn::Sub(result.decoded, value));
  result.good = hn::And(hn::Le(result.error, allowed),
                        hn::And(hn::Eq(scaled, clamped), hn::Not(hn::Eq(value, hn::Set(d, fill)))));
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#endif  // per target
