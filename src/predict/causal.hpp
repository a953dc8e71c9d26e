// Prediction of 32 points at a time from points decoded before them, with trained weights, for
// pipeline `causal`. The points lie on a wavefront: 32 neighbouring rows, each some columns behind
// the one above, stored so that the 32 are contiguous and every tap is a constant distance.
//
// Floating-point operations are in the order written in causal_reference.cpp, none fused: every
// target computes the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/simd_target.hpp"
#include "quantize/quantize.hpp"

namespace firn::predict {

inline constexpr std::size_t kCausalLanes = 32;
inline constexpr int kMaxCausalTaps = 24;
inline constexpr int kMaxAroundTaps = 12;
inline constexpr int kSpreadTaps = 4;  // as many of the first taps tell how much values vary
inline constexpr int kCausalContexts = 32;
inline constexpr std::uint8_t kNotCoded = kCausalContexts;  // the context of lanes without a code

template <class T>
struct CausalStencil {
  int tap_count = 0;
  std::array<std::ptrdiff_t, kMaxCausalTaps> offset{};
  std::array<T, kMaxCausalTaps> weight{};
  T spread_scale = 0;
  int context_taps = 0;
  std::array<std::ptrdiff_t, kMaxAroundTaps> context_offset{};
  std::array<std::uint16_t, kMaxAroundTaps> context_weight{};  // in 1/64
  float floor = 0;
};

template <class T>
struct CausalKernels {
  // Predictions (finite) and contexts of the lanes at `cells`; lanes whose bit in `coded` is 0 get
  // kNotCoded.
  void (*predict)(const CausalStencil<T>& stencil, const T* cells, const std::uint8_t* magnitudes,
                  std::uint32_t coded, T* predictions, std::uint8_t* contexts);
  // cells: values -> what the decoder will have; codes of lanes outside `coded` are 0, and the
  // cells their predictions. Returns the lanes of `coded` that must be stored exactly (code 0 too).
  std::uint32_t (*quantize)(const quantize::Scale<T>& scale, T fill, int shift, std::uint32_t coded,
                            const T* predictions, T* cells, std::int32_t* codes,
                            std::uint8_t* magnitudes, T* max_error);
  // cells = predictions + codes * step; magnitudes = min(|code| >> shift, 255)
  void (*restore)(T step, int shift, const T* predictions, const std::int32_t* codes, T* cells,
                  std::uint8_t* magnitudes);
};
template <class T>
const CausalKernels<T>& causal_kernels(simd::Target target);

}  // namespace firn::predict
