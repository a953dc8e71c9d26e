// What the quantising pipelines share: a chunk as codes in one array with room for history before
// them, and its exact points.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/geometry.hpp"
#include "encode/exact_points.hpp"
#include "pipelines/chunk_values.hpp"
#include "pipelines/difference_orders.hpp"
#include "pipelines/payload_head.hpp"
#include "pipelines/pipeline.hpp"
#include "quantize/quantize.hpp"

namespace firn::pipelines {

template <class T, class Q>
struct QuantizedChunk {
  Q* codes = nullptr;  // count of them, history_room() zeros before
  std::conditional_t<sizeof(Q) == 2, std::int32_t, Q> base = 0;
  std::size_t count = 0;
  std::size_t exact_count = 0;  // in workspace.exact_map, bits in workspace.exact_bytes
  bool exact_alike = false;     // which has one value that all of them have
  bool signs = false;           // point-wise bound: some are negative, in workspace.sign_map
  double max_error = 0;         // relative under a point-wise bound
  std::uint8_t phase = 0;       // of the codes, in 256ths
};

// A phase as a number of T.
template <class T>
T phase_of(std::uint8_t phase) {
  return static_cast<T>(phase) / 256;
}

enum class QuantizeOutcome { done, needs_wide, too_many_exact };

// Quantises a chunk: values under an absolute bound, their logarithms under a point-wise one. The
// code of an exact point repeats the one before it; predict::Kernels::fill may choose another.
// Codes of 16 bits need wide ones when they vary too much for differences. `roughly`: for a size
// only; finite values that are beyond the bound may keep their codes, and there is no largest
// error.
template <class T, class Q>
QuantizeOutcome quantize_chunk(const Box<const T>& chunk, const Parameters& parameters,
                               Workspace& workspace, QuantizedChunk<T, Q>* result,
                               bool roughly = false);

// Mean squared error of the codes, in bounds. Not for a point-wise bound.
template <class T, class Q>
double mean_square(const Box<const T>& chunk, const Parameters& parameters,
                   const QuantizedChunk<T, Q>& quantized);

// Codes with zeroed history before them, in the workspace.
template <class Q>
Q* reserve_codes(std::size_t count, std::size_t history, Workspace& workspace);

// Writes decoded values to the chunk's place: dequantised codes, then the exact points on top.
template <class T, class Q>
void restore_chunk(const Q* codes, const PayloadHead& head, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace);

}  // namespace firn::pipelines
