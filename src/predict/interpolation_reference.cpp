// Interpolation from its definition: what every SIMD target must reproduce.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "predict/interpolation.hpp"

namespace firn::predict {

template <class T>
void set_weights(bool far_left, bool right, bool far_right, Direction<T>& direction) {
  const auto set = [&](double a, double b, double c, double d) {
    direction.cubic = {static_cast<T>(a / 16), static_cast<T>(b / 16), static_cast<T>(c / 16),
                       static_cast<T>(d / 16)};
  };
  direction.linear = right ? std::array<T, 2>{T(0.5), T(0.5)} : std::array<T, 2>{T(1), T(0)};
  if (right) {
    if (far_left && far_right) return set(-1, 9, 9, -1);
    if (far_left) return set(-1, 10, 7, 0);
    if (far_right) return set(0, 7, 10, -1);
    return set(0, 8, 8, 0);
  }
  if (far_left) return set(-8, 24, 0, 0);
  set(0, 16, 0, 0);
}
template void set_weights(bool, bool, bool, Direction<float>&);
template void set_weights(bool, bool, bool, Direction<double>&);

template <class T>
bool quantize_point(T value, const quantize::Scale<T>& scale, T fill, T* point, std::int32_t* code,
                    T* error) {
  *code = 0;
  if (value == fill) return false;
  const T prediction = *point;
  const T scaled = (value - prediction) * scale.inverse_step;
  constexpr T kLimit = static_cast<T>(quantize::kNarrowLimit);
  if (!(scaled <= kLimit && scaled >= -kLimit)) return false;
  auto rounded = static_cast<std::int32_t>(std::nearbyint(scaled));
  T decoded = prediction + static_cast<T>(rounded) * scale.step;
  if (scale.grain > 0) {
    // As in quantize_value().
    const T rest = std::clamp((value - decoded) * scale.inverse_step, T(-1), T(1));
    rounded += static_cast<std::int32_t>(std::nearbyint(rest));
    decoded = prediction + static_cast<T>(rounded) * scale.step;
  }
  *error = std::fabs(decoded - value);
  if (!scale.holds(value, *error)) return false;
  *code = rounded;
  *point = decoded;
  return true;
}
template bool quantize_point(float, const quantize::Scale<float>&, float, float*, std::int32_t*,
                             float*);
template bool quantize_point(double, const quantize::Scale<double>&, double, double*, std::int32_t*,
                             double*);

namespace reference {

template <bool kPointwise, class T>
void predict(const Direction<T>* directions, int direction_count, bool use_linear,
             std::size_t count, T inverse_step, std::uint8_t first_context, T* predictions,
             std::uint8_t* contexts) {
  const T share = T(1) / static_cast<T>(direction_count);
  for (std::size_t i = 0; i < count; ++i) {
    T chosen[kMaxDirections];
    T sum = 0, bend = 0, spread = 0;
    std::uint32_t magnitude = 0;
    for (int k = 0; k < direction_count; ++k) {
      const Direction<T>& d = directions[k];
      const T near = d.row[1][i] * d.cubic[1] + d.row[2][i] * d.cubic[2];
      const T far = d.row[0][i] * d.cubic[0] + d.row[3][i] * d.cubic[3];
      const T cubic = near + far;
      const T linear = d.row[1][i] * d.linear[0] + d.row[2][i] * d.linear[1];
      chosen[k] = use_linear ? linear : cubic;
      // From 0 on where the sign of a zero counts; under an absolute bound restoring removes it.
      sum = k == 0 && !kPointwise ? chosen[k] : sum + chosen[k];
      bend = bend + std::fabs(cubic - linear);
      magnitude += std::uint32_t{d.magnitude[0][i]} + d.magnitude[1][i];
    }
    const T prediction = sum * share;
    for (int k = 0; k < direction_count; ++k) {
      spread = spread + std::fabs(chosen[k] - prediction);
    }
    // 0.35 bend + 0.25 spread in steps, 0.4 of the mean magnitude, and a floor.
    const T bent = bend * T(0.35) + spread * T(0.25);
    float steps = 0;
    if constexpr (kPointwise) {
      const T doubt = bent * share;
      const T size = std::fabs(prediction);
      const T reference = doubt > size ? doubt : size;
      predictions[i] =
          reference <= std::numeric_limits<T>::max() ? std::copysign(reference, prediction) : T{0};
      steps = static_cast<float>(doubt * inverse_step / reference);
    } else {
      predictions[i] = prediction;
      steps = static_cast<float>(bent * (share * inverse_step));
    }
    // Point-wise codes count double.
    const T weight = kPointwise ? T(0.1) : T(0.2);
    const float around = static_cast<float>(magnitude) * static_cast<float>(share * weight);
    const float activity = (steps + around) + 0.03125f;
    // Half octaves above 2^-5; NaN (from damaged streams) and infinity are the last.
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(activity) >> 22);
    const std::int32_t context = bits - 2 * (127 - 5);
    const std::int32_t clamped =
        context < kActivityContexts ? (context < 0 ? 0 : context) : kActivityContexts - 1;
    contexts[i] = static_cast<std::uint8_t>(first_context + clamped);
  }
}

template <class T>
void correct(const Stencil<T>& stencil, const T* cells, std::size_t count, T* predictions) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum = predictions[i] * stencil.own;
    for (int g = 0; g < stencil.pairs; ++g) {
      const T* const from = cells + i;
      const T both = from[stencil.offset[g][0]] + from[stencil.offset[g][1]];
      sum = sum + both * stencil.weight[g];
    }
    predictions[i] = sum;
  }
}

void magnitudes(const std::int32_t* codes, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(codes[i]);
    const std::uint32_t magnitude = codes[i] < 0 ? 0 - bits : bits;
    out[i] = static_cast<std::uint8_t>(magnitude < 255 ? magnitude : 255);
  }
}

template <class T>
void every_other(const T* from, std::size_t, std::size_t count, T* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[2 * i];
}

template <class T>
void join(const T* even, const T* odd, std::size_t count, T* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = i % 2 == 0 ? even[i / 2] : odd[i / 2];
}

template <class T>
bool quantize(const T* values, std::size_t count, const quantize::Scale<T>& scale, T fill,
              T* points, std::int32_t* codes, std::uint8_t* out, T* max_error) {
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    T error = 0;
    if (!quantize_point(values[i], scale, fill, &points[i], &codes[i], &error)) {
      all = false;
    } else if (error > *max_error) {
      *max_error = error;
    }
  }
  magnitudes(codes, count, out);
  return all;
}

template <class T>
void restore(const std::int32_t* codes, std::size_t count, T step, T* points, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    points[i] = points[i] + static_cast<T>(codes[i]) * step;
  }
  magnitudes(codes, count, out);
}

template <class T>
void base_costs(const Direction<T>* directions, int direction_count, const T* values,
                std::size_t count, T inverse_step, std::uint32_t* costs) {
  for (std::size_t i = 0; i < count; ++i) {
    float missed[2][kMaxDirections];
    for (int k = 0; k < direction_count; ++k) {
      const Direction<T>& d = directions[k];
      const T near = d.row[1][i] * d.cubic[1] + d.row[2][i] * d.cubic[2];
      const T far = d.row[0][i] * d.cubic[0] + d.row[3][i] * d.cubic[3];
      const T linear = d.row[1][i] * d.linear[0] + d.row[2][i] * d.linear[1];
      missed[0][k] = static_cast<float>((values[i] - (near + far)) * inverse_step);
      missed[1][k] = static_cast<float>((values[i] - linear) * inverse_step);
    }
    for (int kind = 0; kind < 2; ++kind) {
      for (unsigned subset = 1; subset < 1u << direction_count; ++subset) {
        float sum = 0;
        for (int k = direction_count; k-- > 0;) {
          if (subset >> k & 1) sum = sum + missed[kind][k];
        }
        const float share = 1.0f / static_cast<float>(std::popcount(subset));
        costs[16 * kind + static_cast<int>(subset)] += base_cost(sum * share);
      }
    }
  }
}

template <class T>
const InterpolationKernels<T>& interpolation_kernels() {
  static constexpr InterpolationKernels<T> table{every_other<T>,   join<T>,    predict<false, T>,
                                                 predict<true, T>, correct<T>, quantize<T>,
                                                 restore<T>,       magnitudes, base_costs<T>};
  return table;
}
template const InterpolationKernels<float>& interpolation_kernels();
template const InterpolationKernels<double>& interpolation_kernels();

}  // namespace reference
}  // namespace firn::predict
