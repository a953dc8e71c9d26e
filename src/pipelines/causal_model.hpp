// How a chunk is predicted in pipeline `causal`: what its payload says of that.
#pragma once

#include <array>
#include <cstdint>

#include "pipelines/wavefront.hpp"
#include "predict/causal.hpp"

namespace firn::pipelines {

inline constexpr int kCausalContextClasses = 5;  // magnitudes that share a weight

struct CausalModel {
  int fast = 0;   // axis; the rank when the chunk is taken as a line
  int shift = 0;  // of magnitudes
  std::array<std::uint8_t, kCausalContextClasses> context_weights{};
  std::uint8_t spread = 0;  // in 1/256
  std::uint8_t floor = 0;   // in 1/256
  struct Stencil {
    int taps = 0;  // the first one's weight is 1 less the others'
    int shift = 0;
    std::array<std::int32_t, predict::kMaxCausalTaps> weights{};
  };
  std::array<Stencil, kPlaneKinds> stencils{};
};

}  // namespace firn::pipelines
