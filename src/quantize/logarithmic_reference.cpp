// The logarithmic scale one value at a time: what every SIMD target must reproduce.
#include "quantize/logarithmic.hpp"

namespace firn::quantize {
namespace {

template <class T>
bool within(T value, T decoded, const LogScale<T>& scale, T* error) {
  const T magnitude = std::fabs(value);
  const T difference = std::fabs(decoded - magnitude);
  *error = difference / magnitude;
  return difference < scale.bound * magnitude;
}

template <class T>
bool negative(T value) {
  return std::signbit(value);
}

}  // namespace

template <class T>
bool log_quantize_point(T value, const LogScale<T>& scale, T fill, T* point, std::int32_t* code,
                        T* error) {
  using Bits = typename LogLayout<T>::Bits;
  *code = 0;
  if (value == fill) return false;
  const Bits index = log_index(value, scale);
  T relative = 0;
  const T decoded = log_value(index, scale);
  if (!within(value, decoded, scale, &relative)) return false;
  const Bits difference = index - log_index(*point, scale);
  *code = static_cast<std::int32_t>(2 * static_cast<std::uint32_t>(difference) +
                                    (negative(value) != negative(*point) ? 1 : 0));
  *point = negative(value) ? -decoded : decoded;
  *error = relative;
  return true;
}
template bool log_quantize_point(float, const LogScale<float>&, float, float*, std::int32_t*,
                                 float*);
template bool log_quantize_point(double, const LogScale<double>&, double, double*, std::int32_t*,
                                 double*);

template <class T>
T log_restore_point(std::int32_t code, const LogScale<T>& scale, T prediction) {
  using Bits = typename LogLayout<T>::Bits;
  const auto difference = static_cast<Bits>(std::int64_t{code >> 1});
  const T magnitude = log_value<T>(log_index(prediction, scale) + difference, scale);
  return negative(prediction) != ((code & 1) != 0) ? -magnitude : magnitude;
}
template float log_restore_point(std::int32_t, const LogScale<float>&, float);
template double log_restore_point(std::int32_t, const LogScale<double>&, double);

namespace reference {

template <class T, class Q>
RowOutcome<T> quantize(const T* values, std::size_t count, const LogScale<T>& scale, Q base,
                       Q* codes) {
  using U = std::make_unsigned_t<Q>;
  RowOutcome<T> outcome{true, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = log_index(values[i], scale);
    T error = 0;
    if (!within(values[i], log_value(index, scale), scale, &error)) {
      outcome.within = false;
    } else if (error > outcome.max_error) {
      outcome.max_error = error;
    }
    codes[i] = static_cast<Q>(static_cast<U>(index) - static_cast<U>(base));
  }
  return outcome;
}

template <class T, class Q>
T flag(const T* values, std::size_t count, const LogScale<T>& scale, T fill, std::uint64_t* bits) {
  T max_error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    T error = 0;
    if (values[i] == fill ||
        !within(values[i], log_value(log_index(values[i], scale), scale), scale, &error)) {
      bits[i / 64] |= std::uint64_t{1} << i % 64;
    } else if (error > max_error) {
      max_error = error;
    }
  }
  return max_error;
}

template <class T>
void signs(const T* values, std::size_t count, std::uint64_t* bits) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) bits[i / 64] = 0;
    bits[i / 64] |= std::uint64_t{negative(values[i])} << i % 64;
  }
}

template <class T, class Q>
void dequantize(const Q* codes, std::size_t count, const LogScale<T>& scale, Q base,
                const std::uint64_t* sign_words, std::size_t first, T* values) {
  using Bits = typename LogLayout<T>::Bits;
  using U = std::make_unsigned_t<Q>;
  for (std::size_t i = 0; i < count; ++i) {
    const auto index =
        static_cast<Bits>(static_cast<U>(static_cast<U>(codes[i]) + static_cast<U>(base)));
    const std::size_t bit = first + i;
    const bool minus = sign_words != nullptr && (sign_words[bit / 64] >> bit % 64 & 1) != 0;
    const T magnitude = log_value<T>(index, scale);
    values[i] = minus ? -magnitude : magnitude;
  }
}

template <class T>
bool quantize_points(const T* values, std::size_t count, const LogScale<T>& scale, T fill,
                     T* points, std::int32_t* codes, T* max_error) {
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    T error = 0;
    if (!log_quantize_point(values[i], scale, fill, &points[i], &codes[i], &error)) {
      all = false;
    } else if (error > *max_error) {
      *max_error = error;
    }
  }
  return all;
}

template <class T>
void restore_points(const std::int32_t* codes, std::size_t count, const LogScale<T>& scale,
                    T* points) {
  for (std::size_t i = 0; i < count; ++i) {
    points[i] = log_restore_point(codes[i], scale, points[i]);
  }
}

template <class T, class Q>
const LogKernels<T, Q>& log_kernels() {
  static constexpr LogKernels<T, Q> table{quantize<T, Q>, flag<T, Q>, signs<T>, dequantize<T, Q>};
  return table;
}
template const LogKernels<float, std::int32_t>& log_kernels();
template const LogKernels<double, std::int32_t>& log_kernels();
template const LogKernels<double, std::int64_t>& log_kernels();

template <class T>
const LogPointKernels<T>& log_point_kernels() {
  static constexpr LogPointKernels<T> table{quantize_points<T>, restore_points<T>};
  return table;
}
template const LogPointKernels<float>& log_point_kernels();
template const LogPointKernels<double>& log_point_kernels();

}  // namespace reference
}  // namespace firn::quantize
