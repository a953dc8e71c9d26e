// Magnitudes to integers and back on a scale that is nearly logarithmic, for bounds relative to
// each value. An octave [2^e, 2^(e+1)) is mapped to [e, e + 1) by the inverse of
//
//   2^e (1 + f (21/32 + f 11/32)),   0 <= f < 1
//
// a parabola whose slope, relative to its value, stays between 0.656 and 0.7075 (that of 2^f is
// 0.693), and positions on that scale are multiples of a step in fixed point. Only integers and
// correctly rounded operations: the same on every machine.
//
// x = f^-1 is a square root. Half a step, h octaves, moves a value by a factor of at most
// exp(0.7075 h); so a step of 2 ln(1 + bound) / 0.7075, less what rounding takes, holds the bound.
// The test |x' - x| < bound |x| is exact as far as it goes: the difference of values within a
// factor of two does not round, and what lies strictly below a rounded product is not above the
// product. Values that fail (zeros, most denormals, NaN) are stored exactly.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/simd_target.hpp"
#include "quantize/quantize.hpp"

namespace firn::quantize {

template <class T>
struct LogLayout {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr int kFraction = sizeof(T) == 4 ? 24 : 52;  // bits of a position below an octave
  static constexpr Bits kMagnitudeMask = ~(Bits{1} << (sizeof(T) * 8 - 1));
};

// Coefficients of the parabola and of its inverse, (sqrt(kSquare + kFour y) - kLinear) * kHalf.
inline constexpr double kLogLinear = 21.0 / 32, kLogQuadratic = 11.0 / 32;
inline constexpr double kLogSquare = kLogLinear * kLogLinear, kLogFour = 4 * kLogQuadratic;
inline constexpr double kLogHalf = 16.0 / 11;

template <class T>
struct LogScale {
  using Bits = typename LogLayout<T>::Bits;
  T bound;
  Bits step = 0;  // in units of 2^-kFraction octaves; 0: the bound is too tight for this scale
  // f32: position / step = high half of (position * inverse) >> shift. f64: octaves * per_octave.
  std::uint32_t inverse = 0;
  int shift = 0;
  double per_octave = 0;

  explicit LogScale(T relative_bound) : bound(relative_bound) {
    constexpr double kOne = sizeof(T) == 4 ? 0x1p24 : 0x1p52;
    constexpr double kSlack = sizeof(T) == 4 ? 8 : 4096;  // what rounding may take, generously
    const double r = static_cast<double>(relative_bound);
    // r - r^2 / 2 <= ln(1 + r); 1.4134 < 1 / 0.7075.
    const double units = 2 * (r - r * r / 2) * 1.4134 * kOne - kSlack;
    if (!(units >= kSlack)) return;
    step = static_cast<Bits>(units);
    if constexpr (sizeof(T) == 4) {
      shift = std::bit_width(step) - 1;
      const std::uint64_t quotient = (std::uint64_t{1} << (32 + shift)) / step;
      inverse = static_cast<std::uint32_t>(quotient < 0xFFFFFFFF ? quotient : 0xFFFFFFFF);
    } else {
      per_octave = kOne / static_cast<double>(step);
    }
  }
  bool usable() const { return step != 0; }
  // Indices need more than 28 bits, so that twice a difference of two does not fit 32.
  bool wide() const { return sizeof(T) == 8 && std::uint64_t{step} < (std::uint64_t{1} << 35); }
};

// The definition of a magnitude's index and of an index's magnitude.
template <class T>
typename LogLayout<T>::Bits log_index(T value, const LogScale<T>& scale) {
  using L = LogLayout<T>;
  using Bits = typename L::Bits;
  const Bits bits = std::bit_cast<Bits>(value) & L::kMagnitudeMask;
  const Bits exponent = bits >> L::kMantissa;
  const Bits mantissa = bits & ((Bits{1} << L::kMantissa) - 1);
  const T y = static_cast<T>(mantissa) * (T{1} / static_cast<T>(Bits{1} << L::kMantissa));
  const T root = std::sqrt(T(kLogSquare) + y * T(kLogFour));
  const T fraction = (root - T(kLogLinear)) * T(kLogHalf);
  if constexpr (sizeof(T) == 4) {
    const Bits position = (exponent << 24) + static_cast<Bits>(fraction * T{0x1p24});
    const std::uint64_t product =
        std::uint64_t{position + scale.step / 2} * std::uint64_t{scale.inverse};
    return static_cast<Bits>(product >> 32) >> scale.shift;
  } else {
    // Adding 1.5 * 2^52 leaves the nearest integer in the low bits.
    const T shifted = (static_cast<T>(exponent) + fraction) * scale.per_octave + T{0x1.8p52};
    return std::bit_cast<Bits>(shifted) - 0x4338000000000000u;
  }
}

template <class T>
T log_value(typename LogLayout<T>::Bits index, const LogScale<T>& scale) {
  using L = LogLayout<T>;
  using Bits = typename L::Bits;
  const Bits position = index * scale.step;
  const Bits exponent = position >> L::kFraction;
  const Bits low = position & ((Bits{1} << L::kFraction) - 1);
  const T f = static_cast<T>(low) * (T{1} / static_cast<T>(Bits{1} << L::kFraction));
  const T mantissa = f * (f * T(kLogQuadratic) + T(kLogLinear)) + T{1};
  return std::bit_cast<T>(std::bit_cast<Bits>(mantissa) + (exponent << L::kMantissa) -
                          (Bits{L::kBias} << L::kMantissa));
}

// The code of `value` against a signed prediction: twice the difference of the indices, plus one
// when the signs differ. False: the value must be stored exactly.
template <class T>
bool log_quantize_point(T value, const LogScale<T>& scale, T fill, T* point, std::int32_t* code,
                        T* error);
template <class T>
T log_restore_point(std::int32_t code, const LogScale<T>& scale, T prediction);

template <class T, class Q>
struct LogKernels {
  // Indices minus base of all magnitudes; errors are relative.
  RowOutcome<T> (*quantize)(const T* values, std::size_t count, const LogScale<T>& scale, Q base,
                            Q* codes);
  // As Kernels::flag.
  T(*flag)
  (const T* values, std::size_t count, const LogScale<T>& scale, T fill, std::uint64_t* bits);
  // Sign bits of the values, ceil(count / 64) words.
  void (*signs)(const T* values, std::size_t count, std::uint64_t* bits);
  // The inverse, with the signs from bit `first` of `signs` on; null: all positive. A word behind
  // the last one may be read.
  void (*dequantize)(const Q* codes, std::size_t count, const LogScale<T>& scale, Q base,
                     const std::uint64_t* signs, std::size_t first, T* values);
};
template <class T, class Q>
const LogKernels<T, Q>& log_kernels(simd::Target target);

// For pipelines that predict values: see log_quantize_point. Up to 64 values behind a row's end
// may be read, and written with anything.
template <class T>
struct LogPointKernels {
  bool (*quantize)(const T* values, std::size_t count, const LogScale<T>& scale, T fill, T* points,
                   std::int32_t* codes, T* max_error);
  void (*restore)(const std::int32_t* codes, std::size_t count, const LogScale<T>& scale,
                  T* points);
};
template <class T>
const LogPointKernels<T>& log_point_kernels(simd::Target target);

}  // namespace firn::quantize
