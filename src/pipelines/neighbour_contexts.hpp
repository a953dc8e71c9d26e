// The contexts of `contexts` and `bits`: how large the residuals around one are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/geometry.hpp"
#include "pipelines/payload_head.hpp"
#include "pipelines/workspace.hpp"
#include "predict/contexts.hpp"

namespace firn::pipelines {

// Magnitudes with zeroed history before them.
std::uint16_t* reserve_magnitudes(std::size_t count, const predict::ContextRule& rule,
                                  Workspace& workspace);

// Sets workspace.contexts; returns the shift of the magnitudes.
template <class Q>
int find_contexts(const Q* residuals, std::size_t count, int rank,
                  const std::array<std::size_t, kMaxRank>& extents, Workspace& workspace);

// Residuals are decoded in pieces of so many at most.
inline constexpr std::size_t kMaxPiece = 1024;
// From the decoder, which has been started. mark(begin, end, contexts) may change contexts;
// take(begin, length, residuals) has them piece by piece. False when the payload ends too soon or
// late.
template <class Q, class Mark, class Take>
bool decode_residuals(std::size_t count, int rank, const std::array<std::size_t, kMaxRank>& extents,
                      int shift, Workspace& workspace, Mark mark, Take take) {
  const auto rule = predict::context_rule(rank, axis_lags(rank, extents));
  const auto& kernels = predict::context_kernels<Q>(workspace.target);
  std::uint16_t* magnitudes = reserve_magnitudes(count, rule, workspace);
  const std::size_t piece = std::min(kMaxPiece, rule.stride());
  std::uint8_t contexts[kMaxPiece + 64];
  Q residuals[kMaxPiece + 64];
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t length = std::min(piece, count - begin);
    kernels.contexts(magnitudes + begin, length, rule, contexts);
    mark(begin, begin + length, contexts);
    if (!workspace.rans_decoder.decode(contexts, length, residuals)) return false;
    kernels.magnitudes(residuals, length, shift, magnitudes + begin);
    take(begin, length, residuals);
  }
  return workspace.rans_decoder.finish();
}

}  // namespace firn::pipelines
