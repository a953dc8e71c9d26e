// Interpolation with Highway, one copy per target; the operations of interpolation_reference.cpp
// in the same order.
#include "predict/interpolation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/interpolation_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "predict/feedback-inl.hpp"

#ifndef FIRN_INTERPOLATION_REFERENCE
#define FIRN_INTERPOLATION_REFERENCE
namespace firn::predict::reference {
template <class T>
const InterpolationKernels<T>& interpolation_kernels();
}  // namespace firn::predict::reference
#endif  // FIRN_INTERPOLATION_REFERENCE

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE hn::Vec<hn::ScalableTag<float>> to_float(hn::Vec<hn::ScalableTag<float>> v) { return v; }
HWY_INLINE auto to_float(hn::Vec<hn::ScalableTag<double>> v) {
  return hn::DemoteTo(hn::Rebind<float, hn::ScalableTag<double>>(), v);
}

template <class T>
void every_other(const T* HWY_RESTRICT from, size_t readable, size_t count, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count && 2 * (i + lanes) <= readable; i += lanes) {
    hn::Vec<decltype(d)> even, odd;
    hn::LoadInterleaved2(d, from + 2 * i, even, odd);
    hn::StoreU(even, d, to + i);
  }
  for (; i < count; ++i) to[i] = from[2 * i];
}

template <class T>
void join(const T* HWY_RESTRICT even, const T* HWY_RESTRICT odd, size_t count, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; 2 * (i + lanes) <= count; i += lanes) {
    hn::StoreInterleaved2(hn::LoadU(d, even + i), hn::LoadU(d, odd + i), d, to + 2 * i);
  }
  if (count >= 2 * lanes && count > 2 * i + 1) {  // a few once more
    i = count / 2 - lanes;
    hn::StoreInterleaved2(hn::LoadU(d, even + i), hn::LoadU(d, odd + i), d, to + 2 * i);
    i += lanes;
  }
  for (i *= 2; i < count; ++i) to[i] = i % 2 == 0 ? even[i / 2] : odd[i / 2];
}

// Predictions of one vector of points, and how many steps they may be off but for what the
// magnitudes around them say. kInner: all rows exist, and their weights are constants.
template <bool kPointwise, bool kLinear, bool kInner, int kCount, class T>
HWY_INLINE hn::Vec<hn::Rebind<float, hn::ScalableTag<T>>> predict_vector(
    const Direction<T>* directions, size_t i, T share, T inverse_step,
    T* HWY_RESTRICT predictions) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> chosen[kCount];
  auto sum = hn::Zero(d), bend = hn::Zero(d);
  for (int k = 0; k < kCount; ++k) {
    const Direction<T>& dir = directions[k];
    const auto& cubic_weights = kInner ? kInnerCubic<T> : dir.cubic;
    const auto& linear_weights = kInner ? kInnerLinear<T> : dir.linear;
    const auto row = [&](size_t k) { return hn::LoadU(d, dir.row[k] + i); };
    const auto weigh = [&](hn::Vec<decltype(d)> v, T weight) {
      return hn::Mul(v, hn::Set(d, weight));
    };
    const auto left = row(1), right = row(2);
    const auto near = hn::Add(weigh(left, cubic_weights[1]), weigh(right, cubic_weights[2]));
    const auto far = hn::Add(weigh(row(0), cubic_weights[0]), weigh(row(3), cubic_weights[3]));
    const auto cubic = hn::Add(near, far);
    const auto linear = hn::Add(weigh(left, linear_weights[0]), weigh(right, linear_weights[1]));
    const auto bent = hn::Abs(hn::Sub(cubic, linear));
    chosen[k] = kLinear ? linear : cubic;
    sum = k == 0 && !kPointwise ? chosen[k] : hn::Add(sum, chosen[k]);
    bend = k == 0 ? bent : hn::Add(bend, bent);
  }
  const auto prediction = hn::Mul(sum, hn::Set(d, share));
  auto bent = hn::Mul(bend, hn::Set(d, T(0.35)));
  if (kCount > 1 || kPointwise) {  // one direction does not disagree with itself
    auto spread = hn::Zero(d);
    for (int k = 0; k < kCount; ++k) {
      const auto apart = hn::Abs(hn::Sub(chosen[k], prediction));
      spread = k == 0 ? apart : hn::Add(spread, apart);
    }
    bent = hn::Add(bent, hn::Mul(spread, hn::Set(d, T(0.25))));
  }
  if constexpr (kPointwise) {
    const auto doubt = hn::Mul(bent, hn::Set(d, share));
    const auto size = hn::Abs(prediction);
    const auto reference = hn::IfThenElse(hn::Gt(doubt, size), doubt, size);
    const auto finite = hn::Le(reference, hn::Set(d, hwy::HighestValue<T>()));
    hn::StoreU(hn::IfThenElseZero(finite, hn::CopySign(reference, prediction)), d, predictions + i);
    return to_float(hn::Div(hn::Mul(doubt, hn::Set(d, inverse_step)), reference));
  } else {
    hn::StoreU(prediction, d, predictions + i);
    return to_float(hn::Mul(bent, hn::Set(d, share * inverse_step)));
  }
}

// Two vectors of points at a time: magnitudes are added up, and contexts narrowed, for both.
template <bool kPointwise, bool kLinear, bool kInner, int kCount, class T>
void predict_n(const Direction<T>* from, size_t count, T inverse_step, uint8_t first_context,
               T* HWY_RESTRICT predictions, uint8_t* HWY_RESTRICT contexts) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const hn::RebindToUnsigned<decltype(di)> du;
  const hn::Twice<decltype(d16)> d16_both;
  const hn::Rebind<uint8_t, decltype(d16_both)> d8_both;
  const size_t lanes = hn::Lanes(d);
  const T share = T(1) / static_cast<T>(kCount);
  const T weight = kPointwise ? T(0.1) : T(0.2);
  const auto around = hn::Set(df, static_cast<float>(share * weight));
  Direction<T> directions[kCount];  // out of the way of what is written
  for (int k = 0; k < kCount; ++k) directions[k] = from[k];
  for (size_t i = 0; i < count; i += 2 * lanes) {
    auto magnitude = hn::Zero(d16_both);
    for (int k = 0; k < kCount; ++k) {
      for (const uint8_t* side : directions[k].magnitude) {
        magnitude = hn::Add(magnitude, hn::PromoteTo(d16_both, hn::LoadU(d8_both, side + i)));
      }
    }
    const auto context_of = [&](hn::Vec<decltype(d16)> sum, hn::Vec<decltype(df)> steps) {
      const auto size = hn::ConvertTo(df, hn::PromoteTo(di, sum));
      const auto activity = hn::Add(hn::Add(steps, hn::Mul(size, around)), hn::Set(df, 0.03125f));
      const auto bits = hn::BitCast(di, hn::ShiftRight<22>(hn::BitCast(du, activity)));
      return hn::DemoteTo(d16, bits);
    };
    const auto low = context_of(hn::LowerHalf(d16, magnitude),
                                predict_vector<kPointwise, kLinear, kInner, kCount>(
                                    directions, i, share, inverse_step, predictions));
    const auto high = context_of(hn::UpperHalf(d16, magnitude),
                                 predict_vector<kPointwise, kLinear, kInner, kCount>(
                                     directions, i + lanes, share, inverse_step, predictions));
    const auto context =
        hn::Sub(hn::Combine(d16_both, high, low), hn::Set(d16_both, 2 * (127 - 5)));
    const auto clamped = hn::Min(hn::DemoteTo(d8_both, context),
                                 hn::Set(d8_both, static_cast<uint8_t>(kActivityContexts - 1)));
    hn::StoreU(hn::Add(clamped, hn::Set(d8_both, first_context)), d8_both, contexts + i);
  }
}

template <bool kPointwise, bool kLinear, bool kInner, class T>
void predict_kind(const Direction<T>* directions, int direction_count, size_t count, T inverse_step,
                  uint8_t first_context, T* predictions, uint8_t* contexts) {
  const auto run = [&](auto predict) {
    predict(directions, count, inverse_step, first_context, predictions, contexts);
  };
  switch (direction_count) {
    case 1:
      return run(predict_n<kPointwise, kLinear, kInner, 1, T>);
    case 2:
      return run(predict_n<kPointwise, kLinear, kInner, 2, T>);
    case 3:
      return run(predict_n<kPointwise, kLinear, kInner, 3, T>);
    default:
      return run(predict_n<kPointwise, kLinear, kInner, 4, T>);
  }
}

template <bool kPointwise, class T>
void predict(const Direction<T>* directions, int direction_count, bool linear, size_t count,
             T inverse_step, uint8_t first_context, T* predictions, uint8_t* contexts) {
  const auto run = [&](auto predict) {
    predict(directions, direction_count, count, inverse_step, first_context, predictions, contexts);
  };
  bool inner = true;
  for (int k = 0; k < direction_count; ++k) {
    inner &= std::memcmp(&directions[k].cubic, &kInnerCubic<T>, sizeof kInnerCubic<T>) == 0;
  }
  if (linear) {
    inner ? run(predict_kind<kPointwise, true, true, T>)
          : run(predict_kind<kPointwise, true, false, T>);
  } else {
    inner ? run(predict_kind<kPointwise, false, true, T>)
          : run(predict_kind<kPointwise, false, false, T>);
  }
}

// Four vectors at a time, so that weights and offsets are fetched once for all of them.
template <class T>
void correct(const Stencil<T>& stencil, const T* cells, size_t count, T* HWY_RESTRICT predictions) {
  const hn::CappedTag<T, kRowSlack / 4> d;
  constexpr size_t kVectors = 4;
  const size_t lanes = hn::Lanes(d);
  const auto own = hn::Set(d, stencil.own);
  for (size_t i = 0; i < count; i += kVectors * lanes) {
    hn::Vec<decltype(d)> sum[kVectors];
    for (size_t k = 0; k < kVectors; ++k) {
      sum[k] = hn::Mul(hn::LoadU(d, predictions + i + k * lanes), own);
    }
    for (int g = 0; g < stencil.pairs; ++g) {
      const T* one = cells + i + stencil.offset[g][0];
      const T* other = cells + i + stencil.offset[g][1];
      const auto weight = hn::Set(d, stencil.weight[g]);
      for (size_t k = 0; k < kVectors; ++k) {
        const auto both = hn::Add(hn::LoadU(d, one + k * lanes), hn::LoadU(d, other + k * lanes));
        sum[k] = hn::Add(sum[k], hn::Mul(both, weight));
      }
    }
    for (size_t k = 0; k < kVectors; ++k) hn::StoreU(sum[k], d, predictions + i + k * lanes);
  }
}

// min(|code|, 255) of a vector of codes.
template <class DI, class V = hn::Vec<DI>>
HWY_INLINE void store_magnitudes(DI, V code, uint8_t* HWY_RESTRICT out) {
  const hn::RebindToUnsigned<DI> du;
  const hn::Rebind<uint8_t, DI> d8;
  const auto capped = hn::Min(hn::BitCast(du, hn::Abs(code)), hn::Set(du, 255u));
  hn::StoreU(hn::TruncateTo(d8, capped), d8, out);
}
HWY_INLINE uint8_t magnitude_of(int32_t code) {
  const uint32_t bits = static_cast<uint32_t>(code);
  const uint32_t magnitude = code < 0 ? 0 - bits : bits;
  return static_cast<uint8_t>(magnitude < 255 ? magnitude : 255);
}

// kGrid: the scale has a grain, and errors may be as large as the bound.
template <bool kGrid, class T>
bool quantize_with(const T* HWY_RESTRICT values, size_t count, const quantize::Scale<T>& scale,
                   T fill, T* HWY_RESTRICT points, int32_t* HWY_RESTRICT codes,
                   uint8_t* HWY_RESTRICT magnitudes, T* max_error) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  auto largest = hn::Set(d, *max_error);
  auto all = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (size_t i = 0; i < count; i += lanes) {
    const auto prediction = hn::LoadU(d, points + i);
    const auto quantized =
        quantize_points<kGrid>(d, hn::LoadU(d, values + i), prediction, scale, fill);
    auto good = quantized.good;
    if (count - i < lanes) {
      const auto in_row = hn::FirstN(d, count - i);
      largest = hn::Max(largest, hn::IfThenElseZero(hn::And(good, in_row), quantized.error));
      good = hn::Or(good, hn::Not(in_row));
    } else {
      largest = hn::Max(largest, hn::IfThenElseZero(good, quantized.error));
    }
    all = hn::And(all, good);
    hn::StoreU(hn::IfThenElse(good, quantized.decoded, prediction), d, points + i);
    hn::StoreU(quantized.code, di, codes + i);
    store_magnitudes(di, quantized.code, magnitudes + i);
    if (HWY_UNLIKELY(!hn::AllTrue(d, good))) {
      uint8_t mask[8] = {};
      hn::StoreMaskBits(d, good, mask);
      for (size_t k = 0; k < lanes; ++k) {
        if ((mask[k / 8] >> (k % 8) & 1) == 0) codes[i + k] = magnitudes[i + k] = 0;
      }
    }
  }
  *max_error = hn::GetLane(hn::MaxOfLanes(d, largest));
  return hn::AllTrue(d, all);
}

template <class T>
bool quantize(const T* HWY_RESTRICT values, size_t count, const quantize::Scale<T>& scale, T fill,
              T* HWY_RESTRICT points, int32_t* HWY_RESTRICT codes, uint8_t* HWY_RESTRICT magnitudes,
              T* max_error) {
  return scale.grain > 0
             ? quantize_with<true>(values, count, scale, fill, points, codes, magnitudes, max_error)
             : quantize_with<false>(values, count, scale, fill, points, codes, magnitudes,
                                    max_error);
}

template <class T>
void restore(const int32_t* HWY_RESTRICT codes, size_t count, T step, T* HWY_RESTRICT points,
             uint8_t* HWY_RESTRICT magnitudes) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto loaded = hn::LoadU(di, codes + i);
    store_magnitudes(di, loaded, magnitudes + i);
    hn::Vec<decltype(d)> code;
    if constexpr (sizeof(T) == 4) {
      code = hn::ConvertTo(d, loaded);
    } else {
      code = hn::PromoteTo(d, loaded);
    }
    hn::StoreU(hn::Add(hn::LoadU(d, points + i), hn::Mul(code, hn::Set(d, step))), d, points + i);
  }
  for (; i < count; ++i) {
    points[i] = points[i] + static_cast<T>(codes[i]) * step;
    magnitudes[i] = magnitude_of(codes[i]);
  }
}

void magnitudes(const int32_t* HWY_RESTRICT codes, size_t count, uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<int32_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) store_magnitudes(d, hn::LoadU(d, codes + i), out + i);
  for (; i < count; ++i) out[i] = magnitude_of(codes[i]);
}

// base_cost of a vector, 0 outside the mask.
template <class DF, class M, class V = hn::Vec<DF>>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> base_cost_vector(DF df, V residual, M counted) {
  const hn::RebindToUnsigned<DF> du;
  const auto size = hn::Abs(residual);
  const auto grown = hn::Add(hn::Set(df, 1.0f), hn::Add(size, size));
  const auto bits = hn::Sub(hn::BitCast(du, grown), hn::Set(du, 127u << 23));
  const auto finite = hn::RebindMask(du, hn::And(hn::Lt(size, hn::Set(df, 1e8f)), counted));
  return hn::IfThenElseZero(finite, hn::ShiftRight<8>(bits));
}

// Sums are whole numbers, so their order does not matter.
template <int kCount, class T>
void base_costs_n(const Direction<T>* directions, const T* HWY_RESTRICT values, size_t count,
                  T inverse_step, uint32_t* HWY_RESTRICT costs) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  constexpr unsigned kSets = 1u << kCount;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, inverse_step);
  alignas(64) uint32_t parts[hn::MaxLanes(du)];
  for (unsigned kind = 0; kind < 2; ++kind) {
    hn::Vec<decltype(du)> sums[kSets];
    for (unsigned set = 1; set < kSets; ++set) sums[set] = hn::Zero(du);
    for (size_t i = 0; i < count; i += lanes) {
      const auto counted = hn::FirstN(df, count - i);
      const auto value = hn::LoadU(d, values + i);
      hn::Vec<decltype(df)> missed[kSets];
      missed[0] = hn::Zero(df);
      for (int k = 0; k < kCount; ++k) {
        const Direction<T>& dir = directions[k];
        const auto left = hn::LoadU(d, dir.row[1] + i);
        const auto right = hn::LoadU(d, dir.row[2] + i);
        auto prediction = hn::Add(hn::Mul(left, hn::Set(d, dir.linear[0])),
                                  hn::Mul(right, hn::Set(d, dir.linear[1])));
        if (kind == 0) {
          prediction =
              hn::Add(hn::Add(hn::Mul(left, hn::Set(d, dir.cubic[1])),
                              hn::Mul(right, hn::Set(d, dir.cubic[2]))),
                      hn::Add(hn::Mul(hn::LoadU(d, dir.row[0] + i), hn::Set(d, dir.cubic[0])),
                              hn::Mul(hn::LoadU(d, dir.row[3] + i), hn::Set(d, dir.cubic[3]))));
        }
        missed[1u << k] = to_float(hn::Mul(hn::Sub(value, prediction), scale));
      }
      for (unsigned set = 1; set < kSets; ++set) {
        const unsigned rest = set & (set - 1);
        if (rest != 0) missed[set] = hn::Add(missed[rest], missed[set ^ rest]);
        const float share = 1.0f / static_cast<float>(hwy::PopCount(set));
        sums[set] = hn::Add(
            sums[set], base_cost_vector(df, hn::Mul(missed[set], hn::Set(df, share)), counted));
      }
    }
    for (unsigned set = 1; set < kSets; ++set) {
      hn::Store(sums[set], du, parts);
      for (size_t lane = 0; lane < hn::Lanes(du); ++lane) costs[16 * kind + set] += parts[lane];
    }
  }
}

template <class T>
void base_costs(const Direction<T>* directions, int direction_count, const T* values, size_t count,
                T inverse_step, uint32_t* costs) {
  switch (direction_count) {
    case 1:
      return base_costs_n<1>(directions, values, count, inverse_step, costs);
    case 2:
      return base_costs_n<2>(directions, values, count, inverse_step, costs);
    case 3:
      return base_costs_n<3>(directions, values, count, inverse_step, costs);
    default:
      return base_costs_n<4>(directions, values, count, inverse_step, costs);
  }
}

template <class T>
const InterpolationKernels<T>& table() {
  static constexpr InterpolationKernels<T> kernels{every_other<T>,   join<T>,    predict<false, T>,
                                                   predict<true, T>, correct<T>, quantize<T>,
                                                   restore<T>,       magnitudes, base_costs<T>};
  return kernels;
}

#else

template <class T>
const InterpolationKernels<T>& table() {
  return reference::interpolation_kernels<T>();
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

template <class T>
const InterpolationKernels<T>& interpolation_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::interpolation_kernels<T>();
  FIRN_SELECT_KERNELS(target, table<T>)
}
template const InterpolationKernels<float>& interpolation_kernels(simd::Target);
template const InterpolationKernels<double>& interpolation_kernels(simd::Target);

}  // namespace firn::predict
#endif  // HWY_ONCE
