// The context of a residual: how large the residuals around it are. A weighted sum of magnitudes
// at fixed distances back, in half octaves. Every distance is at least kContextDistance, so the
// contexts of that many residuals are known before any of them is decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/simd_target.hpp"

namespace firn::predict {

inline constexpr std::size_t kContextDistance = 32;
inline constexpr int kMaxContextTaps = 16;
// Weights of a rule sum to at most 32 and magnitudes stay below 2^11, so sums fit 16 bits.
inline constexpr std::uint32_t kMaxMagnitude = 2047;
inline constexpr int kMaxWeightSum = 32;
// Contexts are 0 (sum 0) to 32.
inline constexpr int kContextCount = 33;

struct ContextRule {
  int count = 0;
  std::array<std::size_t, kMaxContextTaps> distance{};
  std::array<std::uint16_t, kMaxContextTaps> weight{};

  void add(std::size_t tap_distance, std::uint16_t tap_weight) {
    distance[static_cast<std::size_t>(count)] = tap_distance;
    weight[static_cast<std::size_t>(count++)] = tap_weight;
  }
  // Zeros that must lie before the first magnitude.
  std::size_t history() const {
    std::size_t longest = 0;
    for (int k = 0; k < count; ++k) longest = distance[k] > longest ? distance[k] : longest;
    return longest;
  }
  // Residuals whose contexts are known at once: a multiple of kContextDistance.
  std::size_t stride() const {
    std::size_t shortest = std::size_t{1} << 12;
    for (int k = 0; k < count; ++k) shortest = distance[k] < shortest ? distance[k] : shortest;
    return shortest / kContextDistance * kContextDistance;
  }
};

// The rule for a chunk: previous row and plane, or in one dimension a window of 16.
ContextRule context_rule(int rank, const std::array<std::size_t, 4>& lags);

template <class Q>
struct ContextKernels {
  // magnitudes[i] = min(|residuals[i]| >> shift, kMaxMagnitude)
  void (*magnitudes)(const Q* residuals, std::size_t count, int shift, std::uint16_t* magnitudes);
  // Contexts of the residuals whose magnitudes will stand at magnitudes[0, count).
  void (*contexts)(const std::uint16_t* magnitudes, std::size_t count, const ContextRule& rule,
                   std::uint8_t* contexts);
};
template <class Q>
const ContextKernels<Q>& context_kernels(simd::Target target);

}  // namespace firn::predict
