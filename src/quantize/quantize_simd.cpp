// Quantisation with Highway, one copy per target. Rows shorter than a vector are padded with one
// of their values, which adds no error. Codes of 16 bits: quantize_short_simd.cpp.
#include "quantize/quantize.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/quantize_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quantize/quantize_rows-inl.hpp"

#ifndef FIRN_QUANTIZE_REFERENCE
#define FIRN_QUANTIZE_REFERENCE
namespace firn::quantize::reference {
template <class T, class Q>
const Kernels<T, Q>& kernels();
template <class T>
const RangeKernels<T>& range_kernels();
}  // namespace firn::quantize::reference
#endif  // FIRN_QUANTIZE_REFERENCE

HWY_BEFORE_NAMESPACE();
namespace firn::quantize {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Accumulator {
  using D = hn::ScalableTag<T>;
  hn::Mask<D> within;
  hn::Vec<D> max_error;
};

// Where errors go: into the totals of a row in which all is expected to be well.
template <class T>
HWY_INLINE void account(hn::Vec<hn::ScalableTag<T>> decoded, hn::Vec<hn::ScalableTag<T>> value,
                        hn::Vec<hn::ScalableTag<T>> bound, Accumulator<T>& total) {
  const auto error = hn::Abs(hn::Sub(decoded, value));
  total.within = hn::And(total.within, hn::Le(error, bound));
  total.max_error = hn::Max(total.max_error, error);
}

// Quantises a vector: stores its codes and returns the values that they decode to.
template <Rounding kRounding, class D, class V = hn::Vec<D>>
HWY_INLINE V quantize_vector(D d, V value, const Scale<float>& scale, int32_t base,
                             int32_t* codes) {
  const hn::RebindToSigned<D> di;
  const auto limit = hn::Set(d, static_cast<float>(kNarrowLimit));
  const auto scaled = hn::Mul(value, hn::Set(d, scale.inverse_step));
  const auto clamped = hn::Max(hn::Min(scaled, limit), hn::Neg(limit));
  auto q = nearest_int(from_code_0<kRounding>(d, clamped, scale));
  if constexpr (kRounding == Rounding::corrected) q = corrected(d, value, q, scale);
  hn::StoreU(hn::Sub(q, hn::Set(di, base)), di, codes);
  return values_of<kRounding>(d, hn::ConvertTo(d, q), scale.levels());
}

template <Rounding kRounding, class D, class Q, class V = hn::Vec<D>>
HWY_INLINE V quantize_vector(D d, V value, const Scale<double>& scale, Q base, Q* codes) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto limit = hn::Set(d, sizeof(Q) == 4 ? kNarrowLimit : kWideLimit);
  const auto magic = hn::Set(d, kMagic);
  const auto scaled = hn::Mul(value, hn::Set(d, scale.inverse_step));
  const auto clamped = hn::Max(hn::Min(scaled, limit), hn::Neg(limit));
  auto shifted = hn::Add(from_code_0<kRounding>(d, clamped, scale), magic);
  if constexpr (kRounding == Rounding::corrected) shifted = corrected(d, value, shifted, scale);
  if constexpr (sizeof(Q) == 4) {
    const hn::Rebind<uint32_t, D> du32;
    const auto q = hn::TruncateTo(du32, hn::BitCast(du, shifted));
    hn::StoreU(hn::Sub(q, hn::Set(du32, static_cast<uint32_t>(base))), du32,
               reinterpret_cast<uint32_t*>(codes));
  } else {
    hn::StoreU(hn::Sub(hn::BitCast(di, shifted), hn::Set(di, magic_plus(base))), di, codes);
  }
  return values_of<kRounding>(d, hn::Sub(shifted, magic), scale.levels());
}

template <Rounding kRounding, class T, class Q>
HWY_INLINE void step(const T* values, const Scale<T>& scale, Q base, Q* codes,
                     Accumulator<T>& total) {
  const hn::ScalableTag<T> d;
  const auto value = hn::LoadU(d, values);
  account<T>(quantize_vector<kRounding>(d, value, scale, base, codes), value,
             hn::Set(d, scale.bound), total);
}

// At least one value, and behind them the first again.
template <class D, class T>
HWY_INLINE void pad(D d, const T* values, size_t count, T* padded) {
  for (size_t k = 0; k < hn::Lanes(d); ++k) padded[k] = values[k < count ? k : 0];
}

template <Rounding kRounding, class T, class Q>
RowOutcome<T> quantize_with(const T* HWY_RESTRICT values, size_t count, const Scale<T>& scale,
                            Q base, Q* HWY_RESTRICT codes) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  // Two accumulators: a chain of maxima would otherwise bound the loop.
  Accumulator<T> even{hn::Eq(hn::Zero(d), hn::Zero(d)), hn::Zero(d)};
  Accumulator<T> odd = even;
  size_t i = for_each_vector(count, 2 * lanes, [&](size_t at, size_t) FIRN_ALWAYS_INLINE {
    step<kRounding>(values + at, scale, base, codes + at, even);
    step<kRounding>(values + at + lanes, scale, base, codes + at + lanes, odd);
  });
  if (i + lanes <= count) {
    step<kRounding>(values + i, scale, base, codes + i, even);
    i += lanes;
  }
  if (i < count && count >= lanes) {
    // The last vector again covers values that are done: the same codes and errors.
    step<kRounding>(values + count - lanes, scale, base, codes + count - lanes, odd);
  } else if (i < count) {
    T padded[hn::MaxLanes(d)];
    Q padded_codes[hn::MaxLanes(d)];
    pad(d, values, count, padded);
    step<kRounding>(padded, scale, base, padded_codes, even);
    std::memcpy(codes, padded_codes, count * sizeof(Q));
  }
  RowOutcome<T> outcome;
  outcome.within = hn::AllTrue(d, hn::And(even.within, odd.within));
  outcome.max_error = hn::GetLane(hn::MaxOfLanes(d, hn::Max(even.max_error, odd.max_error)));
  return outcome;
}

template <class T, class Q>
RowOutcome<T> quantize(const T* HWY_RESTRICT values, size_t count, Scale<T> scale, Q base,
                       Q* HWY_RESTRICT codes) {
  return with_rounding(scale, [&](auto rounding) HWY_ATTR {
    return quantize_with<rounding()>(values, count, scale, base, codes);
  });
}

template <class T, class Q>
T flag(const T* HWY_RESTRICT values, size_t count, Scale<T> scale, T fill,
       uint64_t* HWY_RESTRICT bits) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto bound = hn::Set(d, scale.bound);
  const auto fills = hn::Set(d, fill);
  auto max_error = hn::Zero(d);
  for (size_t w = 0; w < (count + 63) / 64; ++w) bits[w] = 0;
  T padded[hn::MaxLanes(d)];
  Q codes[hn::MaxLanes(d)];
  for (size_t i = 0; i < count; i += lanes) {
    const size_t rest = count - i;
    if (rest < lanes) pad(d, values + i, rest, padded);
    const auto value = hn::LoadU(d, rest < lanes ? padded : values + i);
    const auto decoded = with_rounding(scale, [&](auto rounding) HWY_ATTR {
      return quantize_vector<rounding()>(d, value, scale, Q{0}, codes);
    });
    const auto error = hn::Abs(hn::Sub(decoded, value));
    const auto good = hn::And(hn::Le(error, bound), hn::Not(hn::Eq(value, fills)));
    max_error = hn::Max(max_error, hn::IfThenElseZero(good, error));
    uint64_t word = bits_of(d, hn::Not(good));
    if (rest < lanes) word &= (uint64_t{1} << rest) - 1;
    bits[i / 64] |= word << (i % 64);
  }
  return hn::GetLane(hn::MaxOfLanes(d, max_error));
}

template <class T>
void widen(const T* HWY_RESTRICT values, size_t count, T fill, T* low, T* high) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto finite = hn::Set(d, hwy::HighestValue<T>());
  // Values that do not count are taken for one that does.
  size_t first = 0;
  while (first < count &&
         !(std::fabs(values[first]) <= hwy::HighestValue<T>() && values[first] != fill)) {
    ++first;
  }
  if (first == count) return;
  const auto instead = hn::Set(d, values[first]);
  // One for each place that is read, or chains of minima would bound the loop.
  struct Range {
    hn::Vec<hn::ScalableTag<T>> low, high;
  } ranges[kPlaces];
  for (Range& range : ranges) range = {instead, instead};
  const auto take = [&](hn::Vec<decltype(d)> v, Range& range) FIRN_ALWAYS_INLINE {
    const auto counts = hn::AndNot(hn::Eq(v, hn::Set(d, fill)), hn::Le(hn::Abs(v), finite));
    const auto valid = hn::IfThenElse(counts, v, instead);
    range.low = hn::Min(range.low, valid);
    range.high = hn::Max(range.high, valid);
  };
  size_t i = for_each_vector(count, 2 * lanes, [&](size_t at, size_t place) FIRN_ALWAYS_INLINE {
    take(hn::LoadU(d, values + at), ranges[place]);
    take(hn::LoadU(d, values + at + lanes), ranges[place]);
  });
  for (; i < count; ++i) take(hn::Set(d, values[i]), ranges[0]);
  for (size_t k = 1; k < kPlaces; ++k) {
    ranges[0].low = hn::Min(ranges[0].low, ranges[k].low);
    ranges[0].high = hn::Max(ranges[0].high, ranges[k].high);
  }
  const T lowest = hn::GetLane(hn::MinOfLanes(d, ranges[0].low));
  const T highest = hn::GetLane(hn::MaxOfLanes(d, ranges[0].high));
  if (lowest < *low) *low = lowest;
  if (highest > *high) *high = highest;
}

template <class T>
bool unmask(const T* HWY_RESTRICT values, size_t count, T fill, T instead, T* HWY_RESTRICT out,
            uint64_t* HWY_RESTRICT bits) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto fills = hn::Set(d, fill);
  auto stranger = hn::FirstN(d, 0);
  // 64 values and their bits.
  const auto step = [&](const T* from, T* to) FIRN_ALWAYS_INLINE {
    uint64_t word = 0;
    for (size_t i = 0; i < 64; i += lanes) {
      const auto v = hn::LoadU(d, from + i);
      const auto filled = hn::Eq(v, fills);
      const auto strange = hn::Not(hn::Le(hn::Abs(v), hn::Set(d, hwy::HighestValue<T>())));
      const auto masked = hn::Or(filled, strange);
      stranger = hn::Or(stranger, hn::AndNot(filled, strange));
      hn::StoreU(hn::IfThenElse(masked, hn::Set(d, instead), v), d, to + i);
      word |= bits_of(d, masked) << i;
    }
    return word;
  };
  const size_t i = for_each_vector(count, 64, [&](size_t at, size_t) FIRN_ALWAYS_INLINE {
    prefetch_values(values + at, 64);
    bits[at / 64] = step(values + at, out + at);
  });
  if (i < count) {
    T padded[64];
    for (size_t k = 0; k < 64; ++k) padded[k] = i + k < count ? values[i + k] : instead;
    bits[i / 64] = step(padded, padded);
    std::memcpy(out + i, padded, (count - i) * sizeof(T));
  }
  return hn::AllFalse(d, stranger);
}

template <class T, class Q>
const Kernels<T, Q>& table() {
  static constexpr Kernels<T, Q> kernels{quantize<T, Q>, flag<T, Q>, dequantize<T, Q, Q>,
                                         dequantize_streaming<T, Q, Q>};
  return kernels;
}

template <class T>
const RangeKernels<T>& range_table() {
  static constexpr RangeKernels<T> kernels{widen<T>, unmask<T>};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::quantize
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::quantize {

template <class T, class Q>
const Kernels<T, Q>& kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::kernels<T, Q>();
  FIRN_SELECT_KERNELS(target, table<T, Q>)
}
template const Kernels<float, std::int32_t>& kernels(simd::Target);
template const Kernels<double, std::int32_t>& kernels(simd::Target);
template const Kernels<double, std::int64_t>& kernels(simd::Target);

template <class T>
const RangeKernels<T>& range_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::range_kernels<T>();
  FIRN_SELECT_KERNELS(target, range_table<T>)
}
template const RangeKernels<float>& range_kernels(simd::Target);
template const RangeKernels<double>& range_kernels(simd::Target);

}  // namespace firn::quantize
#endif  // HWY_ONCE
