// Interpolation of a row of new points from rows of known ones, and the quantisation of what it
// misses. A direction contributes four known rows around the new one, at -3, -1, 1 and 3 steps;
// the prediction is the mean of the directions' cubic (or linear) interpolants. The points'
// activity (how far cubic and linear, and the directions, disagree, and how large the codes around
// are) chooses their contexts.
//
// Floating-point operations are in the order written in interpolation_reference.cpp, none fused:
// every target computes the same bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/simd_target.hpp"
#include "quantize/quantize.hpp"

namespace firn::predict {

inline constexpr int kMaxDirections = 4;
inline constexpr std::size_t kStencilTaps = 4;

// One direction: rows of values with their weights, and the magnitudes of the codes of the two
// nearest rows. A row that does not exist repeats another one with weight 0.
template <class T>
struct Direction {
  std::array<const T*, kStencilTaps> row;
  std::array<T, kStencilTaps> cubic;
  std::array<T, 2> linear;  // of the two nearest
  std::array<const std::uint8_t*, 2> magnitude;
};

// Weights where all four rows exist.
template <class T>
inline constexpr std::array<T, kStencilTaps> kInnerCubic{T(-0.0625), T(0.5625), T(0.5625),
                                                         T(-0.0625)};
template <class T>
inline constexpr std::array<T, 2> kInnerLinear{T(0.5), T(0.5)};

// Weights for the neighbours that exist: those that a straight line through the rest gives
// stand in for the others.
template <class T>
void set_weights(bool far_left, bool right, bool far_right, Direction<T>& direction);

inline constexpr int kActivityContexts = 20;

// `predict`, `quantize` and `base_costs` work on whole vectors: up to kRowSlack values behind a
// row's end may be read, and written with anything.
inline constexpr std::size_t kRowSlack = 64;

// Pairs of known points opposite each other, and what the mean of a pair counts for beside the
// interpolated prediction. Offsets are from the cell of the point to predict.
inline constexpr int kMaxStencilPairs = 12;
template <class T>
struct Stencil {
  int pairs = 0;
  T own = 1;  // weight of the interpolated prediction
  std::array<std::array<std::ptrdiff_t, 2>, kMaxStencilPairs> offset{};
  std::array<T, kMaxStencilPairs> weight{};  // of the sum of two
};

template <class T>
struct InterpolationKernels {
  // to[i] = from[2 i]; `readable` values lie at `from`.
  void (*every_other)(const T* from, std::size_t readable, std::size_t count, T* to);
  // The other way: even and odd places in turn, beginning with an even one, `count` in all.
  void (*join)(const T* even, const T* odd, std::size_t count, T* to);
  // Predictions and contexts (first_context and up, kActivityContexts of them) of `count` points.
  void (*predict)(const Direction<T>* directions, int direction_count, bool linear,
                  std::size_t count, T inverse_step, std::uint8_t first_context, T* predictions,
                  std::uint8_t* contexts);
  // The same for a bound relative to each value. The prediction is at least as large as the doubt
  // about it, with its own sign; inverse_step is that of a magnitude of 1.
  void (*predict_pointwise)(const Direction<T>* directions, int direction_count, bool linear,
                            std::size_t count, T inverse_step, std::uint8_t first_context,
                            T* predictions, std::uint8_t* contexts);
  // predictions = own * predictions + sums of pairs * weights, pair after pair
  void (*correct)(const Stencil<T>& stencil, const T* cells, std::size_t count, T* predictions);
  // values -> codes and their magnitudes; `points` holds the predictions and becomes what the
  // decoder will have. False when some value is the fill value or cannot be held below the bound:
  // see quantize_point.
  bool (*quantize)(const T* values, std::size_t count, const quantize::Scale<T>& scale, T fill,
                   T* points, std::int32_t* codes, std::uint8_t* magnitudes, T* max_error);
  // points += codes * step; magnitudes as below
  void (*restore)(const std::int32_t* codes, std::size_t count, T step, T* points,
                  std::uint8_t* magnitudes);
  // magnitudes[i] = min(|codes[i]|, 255)
  void (*magnitudes)(const std::int32_t* codes, std::size_t count, std::uint8_t* magnitudes);
  // Adds what `count` values would cost, in 2^-15 bits: with cubic interpolation at costs[subset],
  // with linear at costs[16 + subset], for each set of directions (bit k: directions[k]).
  void (*base_costs)(const Direction<T>* directions, int direction_count, const T* values,
                     std::size_t count, T inverse_step, std::uint32_t* costs);
};
template <class T>
const InterpolationKernels<T>& interpolation_kernels(simd::Target target);

// About log2(1 + 2 |residual|) in 2^-15 bits, by the exponent and mantissa of a float; 0 for what
// would be stored exactly.
inline std::uint32_t base_cost(float residual) {
  const float size = residual < 0 ? -residual : residual;
  if (!(size < 1e8f)) return 0;
  return (std::bit_cast<std::uint32_t>(1 + 2 * size) - (127u << 23)) >> 8;
}

// One value: false when it must be stored exactly; its code is then 0 and its point the prediction.
template <class T>
bool quantize_point(T value, const quantize::Scale<T>& scale, T fill, T* point, std::int32_t* code,
                    T* error);

}  // namespace firn::predict
