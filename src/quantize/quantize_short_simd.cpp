// Codes of 16 bits with Highway, one copy per target.
#include "quantize/quantize.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/quantize_short_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quantize/quantize_rows-inl.hpp"

#ifndef FIRN_QUANTIZE_SHORT_ONCE
#define FIRN_QUANTIZE_SHORT_ONCE
namespace firn::quantize {

namespace reference {
template <class T>
const ShortKernels<T>& short_kernels();
}  // namespace reference

// For each mask of 8 lanes of 16 bits: from which bytes the lanes come when each that is masked
// repeats the one before it; 128 (zero) where there is none.
struct HoldShuffles {
  alignas(64) std::uint8_t bytes[256][16];
};
constexpr HoldShuffles make_hold_shuffles() {
  HoldShuffles shuffles{};
  for (int mask = 0; mask < 256; ++mask) {
    int from = -1;
    for (int lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) from = lane;
      for (int b = 0; b < 2; ++b) {
        shuffles.bytes[mask][2 * lane + b] =
            static_cast<std::uint8_t>(from < 0 ? 128 : 2 * from + b);
      }
    }
  }
  return shuffles;
}
inline constexpr HoldShuffles kHoldShuffles = make_hold_shuffles();

}  // namespace firn::quantize
#endif  // FIRN_QUANTIZE_SHORT_ONCE

HWY_BEFORE_NAMESPACE();
namespace firn::quantize {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using Shorts = hn::ScalableTag<int16_t>;

// Codes of 32 bits to 16, saturated, in order.
template <class V>
HWY_INLINE hn::Vec<Shorts> shorten(V low, V high) {
  const Shorts d;
#if HWY_TARGET == HWY_AVX2
  const auto pairs = hn::ReorderDemote2To(d, low, high);
  return hn::Vec<Shorts>{_mm256_permute4x64_epi64(pairs.raw, 0xD8)};
#elif HWY_TARGET == HWY_AVX3
  const auto pairs = hn::ReorderDemote2To(d, low, high);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  return hn::Vec<Shorts>{_mm512_permutexvar_epi64(order, pairs.raw)};
#else
  const hn::Half<Shorts> half;
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
}

// Scaled values as far as 32-bit codes reach, also NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V within_reach(D d, V scaled) {
  const auto limit = hn::Set(d, static_cast<hn::TFromD<D>>(kNarrowLimit));
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    // The smaller magnitude, with the sign of the first; of a number and NaN it is the number.
    return V{_mm512_range_pd(scaled.raw, limit.raw, 0b0010)};
  }
#endif
#if HWY_ARCH_X86  // where Min takes its second argument if one is NaN
  return hn::Max(hn::Min(scaled, limit), hn::Neg(limit));
#endif
  return hn::IfThenElse(hn::Le(hn::Abs(scaled), limit), scaled, limit);
}

// f32 errors are compared as integers, in which NaN is the largest of all: one instruction instead
// of a comparison, a conjunction and a maximum.
struct FloatErrors {
  hn::Vec<hn::ScalableTag<int32_t>> worst;
};
HWY_INLINE FloatErrors no_errors(float) { return {hn::Zero(hn::ScalableTag<int32_t>())}; }

// The errors of codes that nobody asks for.
template <class T>
struct NoErrors {};
template <class T>
HWY_INLINE RowOutcome<T> outcome_of(const NoErrors<T>&, const Scale<T>&) {
  return {true, 0};
}

template <Rounding kRounding, class Load>
HWY_INLINE auto short_codes(const float* values, Load& load, const Scale<float>& scale,
                            int32_t base, NoErrors<float>&) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  auto scaled = hn::Mul(load(values), hn::Set(d, scale.inverse_step));
#if !HWY_ARCH_X86  // where what has no code of 32 bits becomes the least of them
  scaled = within_reach(d, scaled);
#endif
  return hn::Sub(nearest_int(from_code_0<kRounding>(d, scaled, scale)), hn::Set(di, base));
}

// The codes of a vector of 32-bit codes' worth of values, which `load` loads.
template <Rounding kRounding, class Load>
HWY_INLINE auto short_codes(const float* values, Load& load, const Scale<float>& scale,
                            int32_t base, FloatErrors& errors) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto value = load(values);
  // One that does not fit 32 bits becomes a code far from both the value and the base.
  const auto scaled = hn::Mul(value, hn::Set(d, scale.inverse_step));
  auto q = nearest_int(from_code_0<kRounding>(d, scaled, scale));
  if constexpr (kRounding == Rounding::corrected) q = corrected(d, value, q, scale);
  const auto decoded = values_of<kRounding>(d, hn::ConvertTo(d, q), scale.levels());
  const auto error = hn::Sub(decoded, value);
#if HWY_TARGET == HWY_AVX3
  // The larger magnitude. It passes over NaN, whose code is among those far from the base.
  errors.worst.raw = _mm512_castps_si512(
      _mm512_range_ps(_mm512_castsi512_ps(errors.worst.raw), error.raw, 0b1011));
#else
  errors.worst = hn::Max(errors.worst, hn::BitCast(di, hn::Abs(error)));
#endif
  return hn::Sub(q, hn::Set(di, base));
}

HWY_INLINE RowOutcome<float> outcome_of(const FloatErrors& errors, const Scale<float>& scale) {
  const int32_t worst = hn::GetLane(hn::MaxOfLanes(hn::ScalableTag<int32_t>(), errors.worst));
  RowOutcome<float> outcome;
  std::memcpy(&outcome.max_error, &worst, sizeof worst);
  outcome.within = outcome.max_error <= scale.bound;
  return outcome;
}

struct DoubleErrors {
  hn::Mask<hn::ScalableTag<double>> within;  // AVX3: as far as `worst` does not tell, all
  hn::Vec<hn::ScalableTag<double>> worst;
};
HWY_INLINE DoubleErrors no_errors(double) {
  const hn::ScalableTag<double> d;
  return {hn::Eq(hn::Zero(d), hn::Zero(d)), hn::Zero(d)};
}

template <Rounding kRounding, class Load>
HWY_INLINE auto short_codes(const double* values, Load& load, const Scale<double>& scale,
                            int32_t base, DoubleErrors& errors) {
  const hn::ScalableTag<double> d;
  const hn::ScalableTag<int32_t> di;
  const auto magic = hn::Set(d, kMagic);
  const auto half = [&](const double* from) FIRN_ALWAYS_INLINE {
    const auto value = load(from);
    const auto scaled = within_reach(d, hn::Mul(value, hn::Set(d, scale.inverse_step)));
    auto shifted = hn::Add(from_code_0<kRounding>(d, scaled, scale), magic);
    if constexpr (kRounding == Rounding::corrected) shifted = corrected(d, value, shifted, scale);
    const auto decoded = values_of<kRounding>(d, hn::Sub(shifted, magic), scale.levels());
    const auto error = hn::Sub(decoded, value);
#if HWY_TARGET == HWY_AVX3
    // Passes over NaN as for f32; its code is the limit.
    errors.worst.raw = _mm512_range_pd(errors.worst.raw, error.raw, 0b1011);
#else
    errors.within = hn::And(errors.within, hn::Le(hn::Abs(error), hn::Set(d, scale.bound)));
    errors.worst = hn::Max(errors.worst, hn::Abs(error));
#endif
    return hn::BitCast(di, shifted);
  };
  const auto low = half(values);
  const auto high = half(values + hn::Lanes(d));
  return hn::Sub(hn::ConcatEven(di, high, low), hn::Set(di, base));
}

template <Rounding kRounding, class Load>
HWY_INLINE auto short_codes(const double* values, Load& load, const Scale<double>& scale,
                            int32_t base, NoErrors<double>&) {
  const hn::ScalableTag<double> d;
  const hn::ScalableTag<int32_t> di;
  const auto half = [&](const double* from) FIRN_ALWAYS_INLINE {
    const auto scaled = within_reach(d, hn::Mul(load(from), hn::Set(d, scale.inverse_step)));
    const auto shifted = hn::Add(from_code_0<kRounding>(d, scaled, scale), hn::Set(d, kMagic));
    return hn::BitCast(di, shifted);
  };
  const auto low = half(values);
  const auto high = half(values + hn::Lanes(d));
  return hn::Sub(hn::ConcatEven(di, high, low), hn::Set(di, base));
}

HWY_INLINE RowOutcome<double> outcome_of(const DoubleErrors& errors, const Scale<double>& scale) {
  const hn::ScalableTag<double> d;
  RowOutcome<double> outcome;
  outcome.max_error = hn::GetLane(hn::MaxOfLanes(d, errors.worst));
  outcome.within = hn::AllTrue(d, errors.within) && outcome.max_error <= scale.bound;
  return outcome;
}

// Quantises vectors of a row and keeps what the row's outcome needs.
template <class T, Rounding kRounding, class Errors = decltype(no_errors(T{}))>
struct ShortQuantizer {
  const Scale<T> scale;
  const int32_t base;
  Errors even, odd = even;
  hn::Vec<Shorts> lowest = hn::Zero(Shorts()), highest = lowest;

  template <class Load>
  HWY_INLINE void step(const T* from, Load& load, int16_t* to) {
    const Shorts d;
    const size_t half = hn::Lanes(d) / 2;
    const auto low = short_codes<kRounding>(from, load, scale, base, even);
    const auto both = shorten(low, short_codes<kRounding>(from + half, load, scale, base, odd));
    lowest = hn::Min(lowest, both);
    highest = hn::Max(highest, both);
    hn::StoreU(both, d, to);
  }

  HWY_INLINE RowOutcome<T> outcome() const {
    const Shorts d;
    const RowOutcome<T> first = outcome_of(even, scale), second = outcome_of(odd, scale);
    RowOutcome<T> outcome;
    outcome.within = first.within && second.within &&
                     hn::GetLane(hn::MinOfLanes(d, lowest)) >= -kShortLimit &&
                     hn::GetLane(hn::MaxOfLanes(d, highest)) <= kShortLimit;
    outcome.max_error = first.max_error < second.max_error ? second.max_error : first.max_error;
    return outcome;
  }
};

template <Rounding kRounding, class T, class Errors>
RowOutcome<T> quantize_short_with(const T* HWY_RESTRICT values, size_t count, const Scale<T>& scale,
                                  int32_t base, int16_t* HWY_RESTRICT codes, Errors errors) {
  const Shorts d;
  constexpr size_t kMaxLanes = hn::MaxLanes(d);
  const size_t lanes = hn::Lanes(d);
  ShortQuantizer<T, kRounding, Errors> quantizer{scale, base, errors};
  const auto load = [](const T* from)
                        FIRN_ALWAYS_INLINE { return hn::LoadU(hn::ScalableTag<T>(), from); };
  const size_t i = for_each_vector(count, lanes, [&](size_t at, size_t) FIRN_ALWAYS_INLINE {
    prefetch_values(values + at, lanes);
    quantizer.step(values + at, load, codes + at);
  });
  if (i < count) {
    T padded[kMaxLanes];
    int16_t padded_codes[kMaxLanes];
    for (size_t k = 0; k < lanes; ++k) padded[k] = values[i + k < count ? i + k : i];
    quantizer.step(padded, load, padded_codes);
    std::memcpy(codes + i, padded_codes, (count - i) * sizeof(int16_t));
  }
  return quantizer.outcome();
}

// Each code whose bit is set repeats the one before it; so many words of 64 codes.
HWY_INLINE void hold_codes(const uint64_t* bits, size_t words, int16_t* codes) {
  const hn::FixedTag<int16_t, 8> d;
  const hn::FixedTag<uint8_t, 16> d8;
  const hn::FixedTag<int8_t, 16> di8;
  auto before = hn::Set(d, codes[-1]);
  for (size_t w = 0; w < words; ++w, codes += 64) {
    if (bits[w] == 0) {
      before = hn::Set(d, codes[63]);
    } else if (bits[w] == ~uint64_t{0}) {
      for (size_t i = 0; i < 64; i += 8) hn::StoreU(before, d, codes + i);
    } else {
      for (size_t i = 0; i < 64; i += 8) {
        const auto from = hn::Load(d8, kHoldShuffles.bytes[bits[w] >> i & 0xFF]);
        const auto none = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di8, from)));
        const auto here = hn::BitCast(d8, hn::LoadU(d, codes + i));
        const auto known = hn::BitCast(d, hn::TableLookupBytesOr0(here, from));
        hn::StoreU(hn::Or(known, hn::And(none, before)), d, codes + i);
        // What the next wait for is no more than two operations.
        before = hn::Or(hn::Broadcast<7>(known), hn::And(hn::Broadcast<7>(none), before));
      }
    }
  }
}

template <Rounding kRounding, class T>
RowOutcome<T> quantize_masked_with(const T* HWY_RESTRICT values, size_t count,
                                   const Scale<T>& scale, int32_t base, T fill, T instead,
                                   int16_t* HWY_RESTRICT codes, uint64_t* HWY_RESTRICT bits,
                                   bool* all_fill) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(Shorts());
  ShortQuantizer<T, kRounding> quantizer{scale, base, no_errors(T{})};
  auto stranger = hn::FirstN(d, 0);
  // 64 values; returns their bits.
  const auto step = [&](const T* from, int16_t* to) FIRN_ALWAYS_INLINE {
    uint64_t word = 0;
    const auto load = [&](const T* at) FIRN_ALWAYS_INLINE {
      const auto v = hn::LoadU(d, at);
      const auto filled = hn::Eq(v, hn::Set(d, fill));
      const auto strange = hn::Not(hn::Le(hn::Abs(v), hn::Set(d, hwy::HighestValue<T>())));
      const auto masked = hn::Or(filled, strange);
      stranger = hn::Or(stranger, hn::AndNot(filled, strange));
      word |= bits_of(d, masked) << (at - from);
      return hn::IfThenElse(masked, hn::Set(d, instead), v);
    };
    for (size_t i = 0; i < 64; i += lanes) quantizer.step(from + i, load, to + i);
    return word;
  };
  const size_t i = for_each_vector(count, 64, [&](size_t at, size_t) FIRN_ALWAYS_INLINE {
    prefetch_values(values + at, 64);
    bits[at / 64] = step(values + at, codes + at);
  });
  if (i < count) {
    T padded[64];
    int16_t padded_codes[64];
    for (size_t k = 0; k < 64; ++k) padded[k] = i + k < count ? values[i + k] : instead;
    bits[i / 64] = step(padded, padded_codes);
    std::memcpy(codes + i, padded_codes, (count - i) * sizeof(int16_t));
  }
  hold_codes(bits, count / 64, codes);
  for (size_t k = count / 64 * 64; k < count; ++k) {
    if (bits[k / 64] >> k % 64 & 1) codes[k] = codes[static_cast<ptrdiff_t>(k) - 1];
  }
  *all_fill = hn::AllFalse(d, stranger);
  return quantizer.outcome();
}

template <class T>
RowOutcome<T> quantize_short(const T* HWY_RESTRICT values, size_t count, Scale<T> scale,
                             int32_t base, int16_t* HWY_RESTRICT codes) {
  return with_rounding(scale, [&](auto rounding) HWY_ATTR {
    return quantize_short_with<rounding()>(values, count, scale, base, codes, no_errors(T{}));
  });
}

template <class T>
RowOutcome<T> quantize_roughly(const T* HWY_RESTRICT values, size_t count, Scale<T> scale,
                               int32_t base, int16_t* HWY_RESTRICT codes) {
  return scale.phase == 0 ? quantize_short_with<Rounding::plain>(values, count, scale, base, codes,
                                                                 NoErrors<T>())
                          : quantize_short_with<Rounding::phased>(values, count, scale, base, codes,
                                                                  NoErrors<T>());
}

template <class T>
RowOutcome<T> quantize_masked(const T* HWY_RESTRICT values, size_t count, Scale<T> scale,
                              int32_t base, T fill, T instead, int16_t* HWY_RESTRICT codes,
                              uint64_t* HWY_RESTRICT bits, bool* all_fill) {
  return with_rounding(scale, [&](auto rounding) HWY_ATTR {
    return quantize_masked_with<rounding()>(values, count, scale, base, fill, instead, codes, bits,
                                            all_fill);
  });
}

template <class T>
void dequantize_masked(const int16_t* HWY_RESTRICT codes, size_t count, Levels<T> levels,
                       int32_t base, const Masked<T>& masked, bool streaming,
                       T* HWY_RESTRICT values) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto fills = hn::Set(d, masked.value);
  const size_t first = masked.first % 64;
  const uint64_t* words = masked.bits + masked.first / 64;
  // Up to 64 values from the i-th on, and their bits.
  const auto bits_at = [&](size_t i, size_t length) FIRN_ALWAYS_INLINE {
    uint64_t word = words[i / 64] >> first;
    if (first + length > 64) word |= words[i / 64 + 1] << (64 - first);
    return word;
  };
  const auto restored = [&](const int16_t* from, uint64_t bits) FIRN_ALWAYS_INLINE {
    const auto mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
    return hn::IfThenElse(mask, fills, restore(from, levels, base));
  };
  size_t i = 0;
  if (streaming && reinterpret_cast<uintptr_t>(values) % (lanes * sizeof(T)) == 0) {
    for (; i + 64 <= count; i += 64) {
      const uint64_t word = bits_at(i, 64);
      for (size_t k = 0; k < 64; k += lanes) {
        hn::Stream(restored(codes + i + k, word >> k), d, values + i + k);
      }
    }
    hwy::FlushStream();
  }
  for (; i + 64 <= count; i += 64) {
    const uint64_t word = bits_at(i, 64);
    for (size_t k = 0; k < 64; k += lanes) {
      hn::StoreU(restored(codes + i + k, word >> k), d, values + i + k);
    }
  }
  if (i < count) {
    const uint64_t word = bits_at(i, count - i);
    int16_t padded[64] = {};
    T padded_values[64];
    std::memcpy(padded, codes + i, (count - i) * sizeof(int16_t));
    for (size_t k = 0; k < 64; k += lanes) {
      hn::StoreU(restored(padded + k, word >> k), d, padded_values + k);
    }
    std::memcpy(values + i, padded_values, (count - i) * sizeof(T));
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

template <class T>
const ShortKernels<T>& short_table() {
#if HWY_TARGET == HWY_SCALAR
  return reference::short_kernels<T>();  // no vectors at all: the reference is as good
#else
  static constexpr ShortKernels<T> kernels{quantize_short<T>,
                                           quantize_roughly<T>,
                                           quantize_masked<T>,
                                           dequantize<T, int16_t, int32_t>,
                                           dequantize_streaming<T, int16_t, int32_t>,
                                           dequantize_masked<T>};
  return kernels;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::quantize
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::quantize {

template <class T>
const ShortKernels<T>& short_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::short_kernels<T>();
  FIRN_SELECT_KERNELS(target, short_table<T>)
}
template const ShortKernels<float>& short_kernels(simd::Target);
template const ShortKernels<double>& short_kernels(simd::Target);

}  // namespace firn::quantize
#endif  // HWY_ONCE
