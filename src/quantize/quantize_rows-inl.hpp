// What the kernels of quantisation share, one copy per target: passes over rows, and codes to
// values.

#if defined(FIRN_QUANTIZE_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIRN_QUANTIZE_ROWS_INL
#undef FIRN_QUANTIZE_ROWS_INL
#else
#define FIRN_QUANTIZE_ROWS_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The bodies of loops, called several times in each.
#undef FIRN_ALWAYS_INLINE
#define FIRN_ALWAYS_INLINE HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace firn::quantize {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's NearestInt also repairs overflow, which the clamp has excluded.
#if HWY_TARGET == HWY_AVX2
HWY_INLINE hn::Vec256<int32_t> nearest_int(hn::Vec256<float> v) {
  return hn::Vec256<int32_t>{_mm256_cvtps_epi32(v.raw)};
}
#elif HWY_TARGET == HWY_AVX3
HWY_INLINE hn::Vec512<int32_t> nearest_int(hn::Vec512<float> v) {
  return hn::Vec512<int32_t>{_mm512_cvtps_epi32(v.raw)};
}
#else
template <class V>
HWY_INLINE auto nearest_int(V v) {
  return hn::NearestInt(v);
}
#endif

// The value that stands for 1.5 * 2^52: adding it leaves a double's nearest integer in the low
// bits of its representation.
constexpr double kMagic = 6755399441055744.0;
constexpr int64_t kMagicBits = 0x4338000000000000;

// Wraps: a damaged stream may hold any base.
HWY_INLINE int64_t magic_plus(int64_t base) {
  return static_cast<int64_t>(static_cast<uint64_t>(kMagicBits) + static_cast<uint64_t>(base));
}

// How values become codes under a scale: by rounding alone, with a phase, or with a grain.
enum class Rounding { plain, phased, corrected };
template <class T, class Call>
HWY_INLINE auto with_rounding(const Scale<T>& scale, Call call) {
  if (scale.grain > 0) return call(std::integral_constant<Rounding, Rounding::corrected>());
  if (scale.phase != 0) return call(std::integral_constant<Rounding, Rounding::phased>());
  return call(std::integral_constant<Rounding, Rounding::plain>());
}

// How many steps from the value of code 0, given those from 0.
template <Rounding kRounding, class D, class V = hn::Vec<D>>
HWY_INLINE V from_code_0(D d, V steps, const Scale<hn::TFromD<D>>& scale) {
  if constexpr (kRounding != Rounding::phased) return steps;
  return hn::Sub(steps, hn::Set(d, scale.phase));
}

// The values of codes, given as numbers of T.
template <Rounding kRounding = Rounding::phased, class D, class V = hn::Vec<D>>
HWY_INLINE V values_of(D d, V q, const Levels<hn::TFromD<D>>& levels) {
  if constexpr (kRounding == Rounding::phased) q = hn::Add(q, hn::Set(d, levels.phase));
  return hn::Mul(q, hn::Set(d, levels.step));
}

// The code, off by one at most, of a value under a scale with a grain: where a product with the
// inverse was rounded to the wrong side, the rest tells. Of NaN the code stays where it is, but for
// one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rest_of(D d, V value, V q, const Scale<hn::TFromD<D>>& scale) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  const auto decoded = hn::Mul(q, hn::Set(d, scale.step));
  const auto rest = hn::Mul(hn::Sub(value, decoded), hn::Set(d, scale.inverse_step));
  return hn::Max(hn::Min(rest, one), hn::Neg(one));  // the second is taken where one is NaN
}
template <class D, class VI>
HWY_INLINE VI corrected(D d, hn::Vec<D> value, VI q, const Scale<float>& scale) {
  return hn::Add(q, nearest_int(rest_of(d, value, hn::ConvertTo(d, q), scale)));
}
// The same for a code that kMagic has been added to.
template <class D>
HWY_INLINE hn::Vec<D> corrected(D d, hn::Vec<D> value, hn::Vec<D> shifted,
                                const Scale<double>& scale) {
  const auto magic = hn::Set(d, kMagic);
  const auto rest = rest_of(d, value, hn::Sub(shifted, magic), scale);
  return hn::Add(shifted, hn::Sub(hn::Add(rest, magic), magic));
}

// step(i, place) for every whole vector of `width` values; returns where they end. Long rows are
// read at four places at once: hardware prefetches each stream on its own, and one alone gets half
// of the memory's bandwidth.
constexpr size_t kPlaces = 4;
template <class Step>
HWY_INLINE size_t for_each_vector(size_t count, size_t width, Step step) {
  constexpr size_t kLong = 8192;
  size_t i = 0;
  if (count >= kLong) {
    const size_t quarter = count / kPlaces / width * width;
    for (; i < quarter; i += width) {
      step(i, 0);
      step(i + quarter, 1);
      step(i + 2 * quarter, 2);
      step(i + 3 * quarter, 3);
    }
    i = kPlaces * quarter;
  }
  for (; i + kPlaces * width <= count; i += kPlaces * width) {
    step(i, 0);
    step(i + width, 1);
    step(i + 2 * width, 2);
    step(i + 3 * width, 3);
  }
  for (; i + width <= count; i += width) step(i, 0);
  return i;
}

// For a pass with for_each_vector that computes a lot: what it needs a little later.
template <class T>
HWY_INLINE void prefetch_values(const T* values, size_t count) {
  constexpr size_t kAhead = 1024, kLine = 64;
  const char* const bytes = reinterpret_cast<const char*>(values) + kAhead;
  for (size_t i = 0; i < count * sizeof(T); i += kLine) hwy::Prefetch(bytes + i);
}

// As few bytes as the mask has are read again: a load of more would have to wait for the store.
template <class D, class M>
HWY_INLINE uint64_t bits_of(D d, M mask) {
  constexpr size_t kBytes = (hn::MaxLanes(D()) + 7) / 8;
  uint8_t bytes[8];
  hn::StoreMaskBits(d, mask, bytes);
  if constexpr (kBytes == 1) {
    return bytes[0];
  } else {
    uint16_t two;
    static_assert(kBytes == sizeof two);
    std::memcpy(&two, bytes, sizeof two);
    return two;
  }
}

// Codes of 16 bits are 32-bit ones from here on.
template <class D>
HWY_INLINE auto load_codes(D d, const int32_t* codes) {
  return hn::LoadU(d, codes);
}
template <class D>
HWY_INLINE auto load_codes(D d, const int16_t* codes) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<int16_t, D>(), codes));
}

template <class Q>
HWY_INLINE auto restore(const Q* codes, const Levels<float>& levels, int32_t base) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto q = hn::ConvertTo(d, hn::Add(load_codes(di, codes), hn::Set(di, base)));
  return values_of(d, q, levels);
}

template <class Q>
HWY_INLINE auto restore(const Q* codes, const Levels<double>& levels, int32_t base) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> di32;
  const auto q = hn::PromoteTo(d, hn::Add(load_codes(di32, codes), hn::Set(di32, base)));
  return values_of(d, q, levels);
}

// Exact for codes within +-2^51; damaged streams may hold others, which give some value.
HWY_INLINE auto restore(const int64_t* codes, const Levels<double>& levels, int64_t base) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto shifted = hn::Add(hn::LoadU(di, codes), hn::Set(di, magic_plus(base)));
  return values_of(d, hn::Sub(hn::BitCast(d, shifted), hn::Set(d, kMagic)), levels);
}

template <class T, class Q, class Base>
void dequantize(const Q* HWY_RESTRICT codes, size_t count, Levels<T> levels, Base base,
                T* HWY_RESTRICT values) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(restore(codes + i, levels, base), d, values + i);
  }
  if (i < count && count >= lanes) {
    hn::StoreU(restore(codes + count - lanes, levels, base), d, values + count - lanes);
  } else if (i < count) {
    Q padded[hn::MaxLanes(d)] = {};
    T padded_values[hn::MaxLanes(d)];
    std::memcpy(padded, codes, count * sizeof(Q));
    hn::StoreU(restore(padded, levels, base), d, padded_values);
    std::memcpy(values, padded_values, count * sizeof(T));
  }
}

template <class T, class Q, class Base>
void dequantize_streaming(const Q* HWY_RESTRICT codes, size_t count, Levels<T> levels, Base base,
                          T* HWY_RESTRICT values) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const size_t misaligned = reinterpret_cast<uintptr_t>(values) % (lanes * sizeof(T));
  if (misaligned % sizeof(T) != 0) return dequantize(codes, count, levels, base, values);
  const size_t head = misaligned == 0 ? 0 : lanes - misaligned / sizeof(T);
  size_t i = head < count ? head : count;
  dequantize(codes, i, levels, base, values);
  for (; i + lanes <= count; i += lanes) {
    hn::Stream(restore(codes + i, levels, base), d, values + i);
  }
  dequantize(codes + i, count - i, levels, base, values + i);
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::quantize
HWY_AFTER_NAMESPACE();

#endif  // per target
