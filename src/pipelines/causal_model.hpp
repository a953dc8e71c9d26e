// How a chunk is predicted in pipeline `causal`: what its payload says of that, and the points that
// are looked at.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "pipelines/wavefront.hpp"
#include "predict/causal.hpp"

namespace firn::pipelines {

// The nearest known points of a plane of some kind, nearest first; taps along an axis count as
// nearer than others.
struct CausalTaps {
  int count = 0;
  std::array<TapOffset, predict::kMaxCausalTaps> taps{};

  CausalTaps(int kind, const Wavefront& wavefront);
};

// The magnitudes that contexts follow, in classes that share a weight.
struct CausalContextTaps {
  enum Class { left, above_row, around, plane_before, around_plane_before, classes };
  struct Tap {
    Class context_class;
    TapOffset offset;
  };
  int count = 0;
  std::array<Tap, predict::kMaxAroundTaps> taps{};

  CausalContextTaps(int kind, bool line);

 private:
  void add(Class context_class, TapOffset offset) {
    taps[static_cast<std::size_t>(count++)] = {context_class, offset};
  }
};

struct CausalModel {
  int fast = 0;   // axis; the rank when the chunk is taken as a line
  int shift = 0;  // of magnitudes
  std::array<std::uint8_t, CausalContextTaps::classes> context_weights{};
  std::uint8_t spread = 0;  // in 1/256
  std::uint8_t floor = 0;   // in 1/256
  struct Stencil {
    int taps = 0;  // the first one's weight is 1 less the others'
    int shift = 0;
    std::array<std::int32_t, predict::kMaxCausalTaps> weights{};
  };
  std::array<Stencil, kPlaneKinds> stencils{};

  void write(const Wavefront& wavefront, ByteWriter& out) const;
  // The stencils follow once the wavefront of the head's fast axis is known. False: not as they
  // are written.
  bool read_head(ByteReader& in, int rank);
  bool read_stencils(ByteReader& in, const Wavefront& wavefront);

  // For the kernels.
  template <class T>
  predict::CausalStencil<T> stencil_of(int kind, const Wavefront& wavefront, T inverse_step) const;
};

}  // namespace firn::pipelines
