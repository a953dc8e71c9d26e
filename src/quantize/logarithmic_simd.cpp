// The logarithmic scale with Highway, one copy per target; the operations of logarithmic.hpp in
// the same order.
#include "quantize/logarithmic.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/logarithmic_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#ifndef FIRN_QUANTIZE_LOGARITHMIC_REFERENCE
#define FIRN_QUANTIZE_LOGARITHMIC_REFERENCE
namespace firn::quantize::reference {
template <class T, class Q>
const LogKernels<T, Q>& log_kernels();
template <class T>
const LogPointKernels<T>& log_point_kernels();
}  // namespace firn::quantize::reference
#endif

HWY_BEFORE_NAMESPACE();
namespace firn::quantize {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

// No vectors at all: the reference is as good.
template <class T, class Q>
const LogKernels<T, Q>& table() {
  return reference::log_kernels<T, Q>();
}
template <class T>
const LogPointKernels<T>& point_table() {
  return reference::log_point_kernels<T>();
}

#else
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Values = hn::ScalableTag<T>;
template <class T>
using Indices = hn::ScalableTag<typename LogLayout<T>::Bits>;

// log_index and log_value of a vector.
template <class T>
struct Mapper;

template <>
struct Mapper<float> {
  using D = Values<float>;
  using DU = Indices<float>;
  LogScale<float> scale;

  explicit Mapper(const LogScale<float>& s) : scale(s) {}

  HWY_INLINE hn::Vec<DU> index(hn::Vec<D> value) const {
    const D d;
    const DU du;
    const hn::RebindToSigned<DU> di;
    const hn::Repartition<uint64_t, DU> d64;
    const auto bits =
        hn::And(hn::BitCast(du, value), hn::Set(du, LogLayout<float>::kMagnitudeMask));
    const auto exponent = hn::ShiftRight<23>(bits);
    const auto mantissa = hn::And(bits, hn::Set(du, 0x7FFFFFu));
    const auto y = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, mantissa)), hn::Set(d, 0x1p-23f));
    const auto root = hn::Sqrt(hn::Add(hn::Set(d, static_cast<float>(kLogSquare)),
                                       hn::Mul(y, hn::Set(d, static_cast<float>(kLogFour)))));
    const auto fraction = hn::Mul(hn::Sub(root, hn::Set(d, static_cast<float>(kLogLinear))),
                                  hn::Set(d, static_cast<float>(kLogHalf)));
    const auto low = hn::BitCast(du, hn::ConvertTo(di, hn::Mul(fraction, hn::Set(d, 0x1p24f))));
    const auto position =
        hn::Add(hn::Add(hn::ShiftLeft<24>(exponent), low), hn::Set(du, scale.step / 2));
    const auto inverse = hn::Set(du, scale.inverse);
    const auto even = hn::ShiftRight<32>(hn::MulEven(position, inverse));
    const auto odd =
        hn::MulEven(hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(d64, position))), inverse);
    const auto high = hn::Or(even, hn::And(odd, hn::Set(d64, 0xFFFFFFFF00000000u)));
    return hn::ShiftRightSame(hn::BitCast(du, high), scale.shift);
  }

  HWY_INLINE hn::Vec<D> value(hn::Vec<DU> index) const {
    const D d;
    const DU du;
    const hn::RebindToSigned<DU> di;
    const auto position = hn::Mul(index, hn::Set(du, scale.step));
    const auto exponent = hn::ShiftRight<24>(position);
    const auto low = hn::And(position, hn::Set(du, 0xFFFFFFu));
    const auto f = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, low)), hn::Set(d, 0x1p-24f));
    const auto slope = hn::Add(hn::Mul(f, hn::Set(d, static_cast<float>(kLogQuadratic))),
                               hn::Set(d, static_cast<float>(kLogLinear)));
    const auto mantissa = hn::Add(hn::Mul(f, slope), hn::Set(d, 1.0f));
    return hn::BitCast(d, hn::Sub(hn::Add(hn::BitCast(du, mantissa), hn::ShiftLeft<23>(exponent)),
                                  hn::Set(du, 127u << 23)));
  }
};

template <>
struct Mapper<double> {
  using D = Values<double>;
  using DU = Indices<double>;
  LogScale<double> scale;

  explicit Mapper(const LogScale<double>& s) : scale(s) {}

  // An integer below 2^52 as a double, exactly.
  HWY_INLINE static hn::Vec<D> exact(hn::Vec<DU> integer) {
    const D d;
    const DU du;
    const auto magic = hn::Set(du, 0x4330000000000000u);  // 2^52
    return hn::Sub(hn::BitCast(d, hn::Or(integer, magic)), hn::BitCast(d, magic));
  }

  HWY_INLINE hn::Vec<DU> index(hn::Vec<D> value) const {
    const D d;
    const DU du;
    const auto bits =
        hn::And(hn::BitCast(du, value), hn::Set(du, LogLayout<double>::kMagnitudeMask));
    const auto exponent = exact(hn::ShiftRight<52>(bits));
    const auto mantissa = exact(hn::And(bits, hn::Set(du, 0xFFFFFFFFFFFFFu)));
    const auto y = hn::Mul(mantissa, hn::Set(d, 0x1p-52));
    const auto root = hn::Sqrt(hn::Add(hn::Set(d, kLogSquare), hn::Mul(y, hn::Set(d, kLogFour))));
    const auto fraction = hn::Mul(hn::Sub(root, hn::Set(d, kLogLinear)), hn::Set(d, kLogHalf));
    const auto shifted = hn::Add(hn::Mul(hn::Add(exponent, fraction), hn::Set(d, scale.per_octave)),
                                 hn::Set(d, 0x1.8p52));
    return hn::Sub(hn::BitCast(du, shifted), hn::Set(du, 0x4338000000000000u));
  }

  HWY_INLINE hn::Vec<D> value(hn::Vec<DU> index) const {
    const D d;
    const DU du;
    const hn::Repartition<uint32_t, DU> d32;
    // The low 64 bits of the product, from halves.
    const auto step = hn::Set(du, scale.step);
    const auto low_low = hn::MulEven(hn::BitCast(d32, index), hn::BitCast(d32, step));
    const auto low_high =
        hn::MulEven(hn::BitCast(d32, index), hn::BitCast(d32, hn::ShiftRight<32>(step)));
    const auto high_low =
        hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(index)), hn::BitCast(d32, step));
    const auto position = hn::Add(low_low, hn::ShiftLeft<32>(hn::Add(low_high, high_low)));
    const auto exponent = hn::ShiftRight<52>(position);
    const auto low = hn::And(position, hn::Set(du, 0xFFFFFFFFFFFFFu));
    const auto f = hn::Mul(exact(low), hn::Set(d, 0x1p-52));
    const auto slope = hn::Add(hn::Mul(f, hn::Set(d, kLogQuadratic)), hn::Set(d, kLogLinear));
    const auto mantissa = hn::Add(hn::Mul(f, slope), hn::Set(d, 1.0));
    return hn::BitCast(d, hn::Sub(hn::Add(hn::BitCast(du, mantissa), hn::ShiftLeft<52>(exponent)),
                                  hn::Set(du, uint64_t{1023} << 52)));
  }
};

// Whether a magnitude holds the bound; the relative error where it does, 0 elsewhere.
template <class D, class V = hn::Vec<D> >
HWY_INLINE hn::Mask<D> within(D, V magnitude, V decoded, V bound, V* error) {
  const auto difference = hn::Abs(hn::Sub(decoded, magnitude));
  const auto good = hn::Lt(difference, hn::Mul(bound, magnitude));
  *error = hn::IfThenElseZero(good, hn::Div(difference, magnitude));
  return good;
}

template <class D, class M>
HWY_INLINE uint64_t bits_of(D d, M mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Index minus base, to codes of 32 or 64 bits.
template <class DU, class Q, class V = hn::Vec<DU> >
HWY_INLINE void store_codes(DU du, V index, Q base, Q* codes) {
  using U = std::make_unsigned_t<Q>;
  if constexpr (sizeof(hn::TFromD<DU>) == sizeof(Q)) {
    hn::StoreU(hn::Sub(index, hn::Set(du, static_cast<U>(base))), du, reinterpret_cast<U*>(codes));
  } else {
    const hn::Rebind<uint32_t, DU> d32;
    hn::StoreU(hn::Sub(hn::TruncateTo(d32, index), hn::Set(d32, static_cast<U>(base))), d32,
               reinterpret_cast<U*>(codes));
  }
}

// ... and the sum with the base as an index again.
template <class DU, class Q>
HWY_INLINE hn::Vec<DU> load_index(DU du, const Q* codes, Q base) {
  using U = std::make_unsigned_t<Q>;
  if constexpr (sizeof(hn::TFromD<DU>) == sizeof(Q)) {
    return hn::Add(hn::LoadU(du, reinterpret_cast<const U*>(codes)),
                   hn::Set(du, static_cast<U>(base)));
  } else {
    const hn::Rebind<uint32_t, DU> d32;
    return hn::PromoteTo(du, hn::Add(hn::LoadU(d32, reinterpret_cast<const U*>(codes)),
                                     hn::Set(d32, static_cast<U>(base))));
  }
}

template <class T, class Q>
RowOutcome<T> quantize(const T* HWY_RESTRICT values, size_t count, const LogScale<T>& scale, Q base,
                       Q* HWY_RESTRICT codes) {
  const Values<T> d;
  const Indices<T> du;
  const size_t lanes = hn::Lanes(d);
  const Mapper<T> mapper(scale);
  const auto bound = hn::Set(d, scale.bound);
  auto all = hn::Eq(hn::Zero(d), hn::Zero(d));
  auto largest = hn::Zero(d);
  const auto step = [&](const T* from, Q* to) HWY_ATTR {
    const auto value = hn::LoadU(d, from);
    const auto index = mapper.index(value);
    hn::Vec<Values<T> > error;
    all = hn::And(all, within(d, hn::Abs(value), mapper.value(index), bound, &error));
    largest = hn::Max(largest, error);
    store_codes(du, index, base, to);
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) step(values + i, codes + i);
  if (i < count) {
    T padded[hn::MaxLanes(d)];
    Q padded_codes[hn::MaxLanes(d)];
    for (size_t k = 0; k < lanes; ++k) padded[k] = values[i + k < count ? i + k : count - 1];
    step(padded, padded_codes);
    std::memcpy(codes + i, padded_codes, (count - i) * sizeof(Q));
  }
  return {hn::AllTrue(d, all), hn::GetLane(hn::MaxOfLanes(d, largest))};
}

template <class T, class Q>
T flag(const T* HWY_RESTRICT values, size_t count, const LogScale<T>& scale, T fill,
       uint64_t* HWY_RESTRICT bits) {
  const Values<T> d;
  const size_t lanes = hn::Lanes(d);
  const Mapper<T> mapper(scale);
  const auto bound = hn::Set(d, scale.bound);
  auto largest = hn::Zero(d);
  for (size_t w = 0; w < (count + 63) / 64; ++w) bits[w] = 0;
  T padded[hn::MaxLanes(d)] = {};
  for (size_t i = 0; i < count; i += lanes) {
    const size_t rest = count - i;
    if (rest < lanes) std::memcpy(padded, values + i, rest * sizeof(T));
    const auto value = hn::LoadU(d, rest < lanes ? padded : values + i);
    hn::Vec<Values<T> > error;
    const auto good =
        hn::And(within(d, hn::Abs(value), mapper.value(mapper.index(value)), bound, &error),
                hn::Not(hn::Eq(value, hn::Set(d, fill))));
    largest = hn::Max(largest, hn::IfThenElseZero(good, error));
    uint64_t word = bits_of(d, hn::Not(good));
    if (rest < lanes) word &= (uint64_t{1} << rest) - 1;
    bits[i / 64] |= word << (i % 64);
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class T>
void signs(const T* HWY_RESTRICT values, size_t count, uint64_t* HWY_RESTRICT bits) {
  const Values<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  for (size_t w = 0; w < (count + 63) / 64; ++w) bits[w] = 0;
  T padded[hn::MaxLanes(d)] = {};
  for (size_t i = 0; i < count; i += lanes) {
    const size_t rest = count - i;
    if (rest < lanes) std::memcpy(padded, values + i, rest * sizeof(T));
    const auto value = hn::LoadU(d, rest < lanes ? padded : values + i);
    uint64_t word = bits_of(di, hn::Lt(hn::BitCast(di, value), hn::Zero(di)));
    if (rest < lanes) word &= (uint64_t{1} << rest) - 1;
    bits[i / 64] |= word << (i % 64);
  }
}

template <class T, class Q>
void dequantize(const Q* HWY_RESTRICT codes, size_t count, const LogScale<T>& scale, Q base,
                const uint64_t* HWY_RESTRICT sign_words, size_t first, T* HWY_RESTRICT values) {
  const Values<T> d;
  const Indices<T> du;
  const size_t lanes = hn::Lanes(d);
  const Mapper<T> mapper(scale);
  const auto minus = hn::SignBit(d);
  const auto* sign_bytes = reinterpret_cast<const uint8_t*>(sign_words);
  const auto step = [&](const Q* from, size_t i, T* to) HWY_ATTR {
    auto value = mapper.value(load_index(du, from, base));
    if (sign_words != nullptr) {
      const size_t bit = first + i;
      uint64_t word = 0;
      std::memcpy(&word, sign_bytes + bit / 8, sizeof word);
      word >>= bit % 8;
      uint8_t mask[8];
      std::memcpy(mask, &word, sizeof mask);
      value = hn::IfThenElse(hn::LoadMaskBits(d, mask), hn::Xor(value, minus), value);
    }
    hn::StoreU(value, d, to);
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) step(codes + i, i, values + i);
  if (i < count) {
    Q padded[hn::MaxLanes(d)] = {};
    T padded_values[hn::MaxLanes(d)];
    std::memcpy(padded, codes + i, (count - i) * sizeof(Q));
    step(padded, i, padded_values);
    std::memcpy(values + i, padded_values, (count - i) * sizeof(T));
  }
}

template <class T>
bool quantize_points(const T* HWY_RESTRICT values, size_t count, const LogScale<T>& scale, T fill,
                     T* HWY_RESTRICT points, int32_t* HWY_RESTRICT codes, T* max_error) {
  const Values<T> d;
  const Indices<T> du;
  const hn::Rebind<int32_t, decltype(d)> di32;
  const size_t lanes = hn::Lanes(d);
  const Mapper<T> mapper(scale);
  const auto bound = hn::Set(d, scale.bound);
  const auto sign = hn::SignBit(d);
  auto largest = hn::Set(d, *max_error);
  auto all = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (size_t i = 0; i < count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    const auto prediction = hn::LoadU(d, points + i);
    const auto index = mapper.index(value);
    const auto decoded = mapper.value(index);
    hn::Vec<Values<T> > error;
    auto good = hn::And(within(d, hn::Abs(value), decoded, bound, &error),
                        hn::Not(hn::Eq(value, hn::Set(d, fill))));
    if (count - i < lanes) {
      const auto in_row = hn::FirstN(d, count - i);
      largest = hn::Max(largest, hn::IfThenElseZero(hn::And(good, in_row), error));
      all = hn::And(all, hn::Or(good, hn::Not(in_row)));
    } else {
      largest = hn::Max(largest, hn::IfThenElseZero(good, error));
      all = hn::And(all, good);
    }
    const auto difference = hn::Sub(index, mapper.index(prediction));
    const auto flipped = hn::ShiftRight<sizeof(T) * 8 - 1>(
        hn::BitCast(du, hn::And(hn::Xor(value, prediction), sign)));
    const auto code = hn::IfThenElseZero(hn::RebindMask(du, good),
                                         hn::Add(hn::Add(difference, difference), flipped));
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(hn::BitCast(di32, code), di32, codes + i);
    } else {
      const hn::Rebind<uint32_t, Indices<T> > d32;
      hn::StoreU(hn::BitCast(di32, hn::TruncateTo(d32, code)), di32, codes + i);
    }
    hn::StoreU(hn::IfThenElse(good, hn::CopySign(decoded, value), prediction), d, points + i);
  }
  *max_error = hn::GetLane(hn::MaxOfLanes(d, largest));
  return hn::AllTrue(d, all);
}

template <class T>
void restore_points(const int32_t* HWY_RESTRICT codes, size_t count, const LogScale<T>& scale,
                    T* HWY_RESTRICT points) {
  const Values<T> d;
  const Indices<T> du;
  const hn::RebindToSigned<Indices<T> > di;
  const hn::Rebind<int32_t, decltype(d)> di32;
  const size_t lanes = hn::Lanes(d);
  const Mapper<T> mapper(scale);
  const auto sign = hn::SignBit(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto prediction = hn::LoadU(d, points + i);
    hn::Vec<decltype(di)> code;
    if constexpr (sizeof(T) == 4) {
      code = hn::LoadU(di, codes + i);
    } else {
      code = hn::PromoteTo(di, hn::LoadU(di32, codes + i));
    }
    const auto difference = hn::BitCast(du, hn::ShiftRight<1>(code));
    const auto magnitude = mapper.value(hn::Add(mapper.index(prediction), difference));
    const auto flipped = hn::BitCast(d, hn::ShiftLeft<sizeof(T) * 8 - 1>(hn::BitCast(du, code)));
    // As the reference negates: an index from a damaged stream may have a sign of its own.
    hn::StoreU(hn::Xor(magnitude, hn::Xor(hn::And(prediction, sign), flipped)), d, points + i);
  }
  for (; i < count; ++i) points[i] = log_restore_point(codes[i], scale, points[i]);
}

template <class T, class Q>
const LogKernels<T, Q>& table() {
  static constexpr LogKernels<T, Q> kernels{quantize<T, Q>, flag<T, Q>, signs<T>, dequantize<T, Q>};
  return kernels;
}

template <class T>
const LogPointKernels<T>& point_table() {
  static constexpr LogPointKernels<T> kernels{quantize_points<T>, restore_points<T>};
  return kernels;
}

#endif  // HWY_TARGET == HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace firn::quantize
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::quantize {

template <class T, class Q>
const LogKernels<T, Q>& log_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::log_kernels<T, Q>();
  FIRN_SELECT_KERNELS(target, table<T, Q>)
}
template const LogKernels<float, std::int32_t>& log_kernels(simd::Target);
template const LogKernels<double, std::int32_t>& log_kernels(simd::Target);
template const LogKernels<double, std::int64_t>& log_kernels(simd::Target);

template <class T>
const LogPointKernels<T>& log_point_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::log_point_kernels<T>();
  FIRN_SELECT_KERNELS(target, point_table<T>)
}
template const LogPointKernels<float>& log_point_kernels(simd::Target);
template const LogPointKernels<double>& log_point_kernels(simd::Target);

}  // namespace firn::quantize
#endif  // HWY_ONCE
