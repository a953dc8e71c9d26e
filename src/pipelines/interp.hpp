// Pipeline `interp`: interpolation with feedback, from a coarse grid to the whole chunk. Each level
// halves the spacing; within it the points of one parity class depend only on points that are
// known, so a class is predicted, coded and decoded as a whole. Payload: docs/format.md, "interp".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// 0: one step for all points; up to 5: ever finer ones for the points of coarse levels.
inline constexpr int kMaxFineness = 5;
// The one that costs next to no size: few points are on coarse levels, and many lean on them. The
// fewer the axes, the more of the points they are.
inline constexpr int cheap_fineness(int axes) { return axes <= 1 ? 0 : axes == 2 ? 2 : 3; }

// Bit k of `frozen`: axis k (slowest is 0) is not interpolated along. False when the chunk is
// better stored losslessly.
template <class T>
bool encode_interp(const Box<const T>& chunk, const Parameters& parameters, unsigned frozen,
                   int fineness, bool trained, Workspace& workspace, std::uint8_t* out,
                   Encoded* encoded);
// Every factor-th value along each axis, from the beginning of the payload alone. `factor` is a
// power of two, `extents` are the chunk's, `out` has a factor-th of them, rounded up.
template <class T>
bool preview_interp(std::span<const std::uint8_t> payload, const Parameters& parameters, int rank,
                    const std::array<std::size_t, kMaxRank>& extents, std::size_t factor,
                    const Box<T>& out, Workspace& workspace);
template <class T>
bool decode_interp(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace);
// Bytes behind the head of a payload, at most.
std::size_t interp_capacity(std::size_t count);
std::string describe_interp(std::span<const std::uint8_t> payload, int rank, unsigned tighter);

}  // namespace firn::pipelines
