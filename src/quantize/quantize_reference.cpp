// Quantisation one value at a time: what every SIMD target must reproduce.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "quantize/quantize.hpp"

namespace firn::quantize {
namespace {

// Nearest integer, ties to even, by adding and subtracting a constant: needs |value| below half
// of it, which the clamp ensures.
template <class T>
T nearest_even(T value) {
  constexpr T kMagic = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);  // 1.5 * 2^23 | 2^52
  constexpr T kExact = sizeof(T) == 4 ? T(4194304.0) : T(2251799813685248.0);   // 2^22 | 2^51
  if (!(std::fabs(value) < kExact)) return value;  // f32 beyond 2^22 has at most one fraction bit
  return (value + kMagic) - kMagic;
}

// f32 values between 2^22 and 2^23 may still end in .5.
float round_code(float value) {
  const float magnitude = std::fabs(value);
  if (magnitude >= 4194304.0f && magnitude < 8388608.0f) {
    return static_cast<float>(nearest_even<double>(value));
  }
  return nearest_even<float>(value);
}
double round_code(double value) { return nearest_even<double>(value); }

template <class Q>
constexpr double limit() {
  return sizeof(Q) == 4 ? kNarrowLimit : kWideLimit;
}

}  // namespace

template <class T, class Q>
bool quantize_value(T value, const Scale<T>& scale, Q* q, T* error) {
  T scaled = value * scale.inverse_step;
  if (!(std::fabs(scaled) <= std::numeric_limits<T>::max())) return false;
  const T bound_of_code = static_cast<T>(limit<Q>());
  if (scaled > bound_of_code) scaled = bound_of_code;
  if (scaled < -bound_of_code) scaled = -bound_of_code;
  *q = static_cast<Q>(round_code(scaled - scale.phase));
  if (scale.grain > 0) {
    const T rest = (value - dequantize_value<T, Q>(*q, scale.levels())) * scale.inverse_step;
    *q += static_cast<Q>(round_code(std::clamp(rest, T(-1), T(1))));
  }
  *error = std::fabs(dequantize_value<T, Q>(*q, scale.levels()) - value);
  return *error <= scale.bound;
}

template <class T>
bool needs_wide(T value, const Scale<T>& scale) {
  const T scaled = std::fabs(value * scale.inverse_step);
  return scaled > static_cast<T>(kNarrowLimit) && scaled <= static_cast<T>(kWideLimit);
}

namespace reference {

template <class T, class Q>
RowOutcome<T> quantize(const T* values, std::size_t count, Scale<T> scale, Q base, Q* codes) {
  using U = std::make_unsigned_t<Q>;
  RowOutcome<T> outcome{true, 0};
  for (std::size_t i = 0; i < count; ++i) {
    T error = 0;
    Q q = 0;
    if (!quantize_value<T, Q>(values[i], scale, &q, &error)) outcome.within = false;
    codes[i] = static_cast<Q>(static_cast<U>(q) - static_cast<U>(base));
    if (error > outcome.max_error) outcome.max_error = error;
  }
  return outcome;
}

template <class T>
RowOutcome<T> quantize_short(const T* values, std::size_t count, Scale<T> scale, std::int32_t base,
                             std::int16_t* codes) {
  RowOutcome<T> outcome{true, 0};
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t code = 0;
    const auto one = quantize<T, std::int32_t>(values + i, 1, scale, base, &code);
    if (!one.within || code < -kShortLimit || code > kShortLimit) outcome.within = false;
    codes[i] = static_cast<std::int16_t>(std::clamp(code, -32768, 32767));
    if (one.max_error > outcome.max_error) outcome.max_error = one.max_error;
  }
  return outcome;
}

template <class T>
RowOutcome<T> quantize_roughly(const T* values, std::size_t count, Scale<T> scale,
                               std::int32_t base, std::int16_t* codes) {
  RowOutcome<T> outcome{true, 0};
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t code = 0;
    T error = 0;
    (void)quantize_value<T, std::int32_t>(values[i], scale, &code, &error);
    const std::int64_t relative = std::int64_t{code} - base;
    if (!std::isfinite(values[i] * scale.inverse_step) || std::abs(relative) > kShortLimit) {
      outcome.within = false;
    }
    codes[i] = static_cast<std::int16_t>(std::clamp<std::int64_t>(relative, -32768, 32767));
  }
  return outcome;
}

template <class T, class Q>
void dequantize(const Q* codes, std::size_t count, Levels<T> levels, Q base, T* values) {
  using U = std::make_unsigned_t<Q>;
  for (std::size_t i = 0; i < count; ++i) {
    const Q q = static_cast<Q>(static_cast<U>(codes[i]) + static_cast<U>(base));
    values[i] = dequantize_value<T, Q>(q, levels);
  }
}

template <class T>
void dequantize_short(const std::int16_t* codes, std::size_t count, Levels<T> levels,
                      std::int32_t base, T* values) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t code = codes[i];
    dequantize<T, std::int32_t>(&code, 1, levels, base, values + i);
  }
}

template <class T, class Q>
T flag(const T* values, std::size_t count, Scale<T> scale, T fill, std::uint64_t* bits) {
  T max_error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    Q q = 0;
    T error = 0;
    if (values[i] == fill || !quantize_value<T, Q>(values[i], scale, &q, &error)) {
      bits[i / 64] |= std::uint64_t{1} << i % 64;
    } else if (error > max_error) {
      max_error = error;
    }
  }
  return max_error;
}

template <class T>
void widen(const T* values, std::size_t count, T fill, T* low, T* high) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i]) || values[i] == fill) continue;
    if (values[i] < *low) *low = values[i];
    if (values[i] > *high) *high = values[i];
  }
}

template <class T>
bool unmask(const T* values, std::size_t count, T fill, T instead, T* out, std::uint64_t* bits) {
  bool all_fill = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    out[i] = values[i];
    if (std::isfinite(values[i]) && values[i] != fill) continue;
    bits[i / 64] |= std::uint64_t{1} << i % 64;
    out[i] = instead;
    all_fill = all_fill && values[i] == fill;
  }
  return all_fill;
}

template <class T>
RowOutcome<T> quantize_masked(const T* values, std::size_t count, Scale<T> scale, std::int32_t base,
                              T fill, T instead, std::int16_t* codes, std::uint64_t* bits,
                              bool* all_fill) {
  RowOutcome<T> outcome{true, 0};
  *all_fill = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    T value = 0;
    std::uint64_t bit = 0;
    *all_fill = unmask(values + i, 1, fill, instead, &value, &bit) && *all_fill;
    bits[i / 64] |= bit << i % 64;
    const auto one = quantize_short(&value, 1, scale, base, codes + i);
    outcome.within = outcome.within && one.within;
    outcome.max_error = std::max(outcome.max_error, one.max_error);
    if (bit != 0) codes[i] = codes[static_cast<std::ptrdiff_t>(i) - 1];
  }
  return outcome;
}

template <class T>
void dequantize_masked(const std::int16_t* codes, std::size_t count, Levels<T> levels,
                       std::int32_t base, const Masked<T>& masked, bool, T* values) {
  dequantize_short(codes, count, levels, base, values);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bit = masked.first + i;
    if (masked.bits[bit / 64] >> bit % 64 & 1) values[i] = masked.value;
  }
}

template <class T, class Q>
const Kernels<T, Q>& kernels() {
  static constexpr Kernels<T, Q> table{quantize<T, Q>, flag<T, Q>, dequantize<T, Q>,
                                       dequantize<T, Q>};
  return table;
}
template const Kernels<float, std::int32_t>& kernels();
template const Kernels<double, std::int32_t>& kernels();
template const Kernels<double, std::int64_t>& kernels();

template <class T>
const ShortKernels<T>& short_kernels() {
  static constexpr ShortKernels<T> table{quantize_short<T>,   quantize_roughly<T>,
                                         quantize_masked<T>,  dequantize_short<T>,
                                         dequantize_short<T>, dequantize_masked<T>};
  return table;
}
template const ShortKernels<float>& short_kernels();
template const ShortKernels<double>& short_kernels();

template <class T>
const RangeKernels<T>& range_kernels() {
  static constexpr RangeKernels<T> table{widen<T>, unmask<T>};
  return table;
}
template const RangeKernels<float>& range_kernels();
template const RangeKernels<double>& range_kernels();

}  // namespace reference

template bool quantize_value(float, const Scale<float>&, std::int32_t*, float*);
template bool quantize_value(double, const Scale<double>&, std::int32_t*, double*);
template bool quantize_value(double, const Scale<double>&, std::int64_t*, double*);
template bool needs_wide(float, const Scale<float>&);
template bool needs_wide(double, const Scale<double>&);

}  // namespace firn::quantize
