// What the quantising pipelines share: a chunk as codes in one array with room for history before
// them, its exact points, and the choice of lags by estimated cost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/geometry.hpp"
#include "encode/exact_points.hpp"
#include "pipelines/payload_head.hpp"
#include "pipelines/pipeline.hpp"
#include "predict/difference.hpp"
#include "quantize/quantize.hpp"

namespace firn::pipelines {

// The value that is a mask, or NaN, which nothing equals.
template <class T>
T fill_of(const Parameters& parameters) {
  return parameters.fill ? static_cast<T>(*parameters.fill) : std::numeric_limits<T>::quiet_NaN();
}

predict::Lags lags_of(const Orders& orders, int rank,
                      const std::array<std::size_t, kMaxRank>& extents);

// Zeros that lie before the codes of a chunk: as many as orders that fit can reach, and one.
std::size_t history_room(int rank, const std::array<std::size_t, kMaxRank>& extents);

template <class T, class Q>
struct QuantizedChunk {
  Q* codes = nullptr;  // count of them, history_room() zeros before
  std::conditional_t<sizeof(Q) == 2, std::int32_t, Q> base = 0;
  std::size_t count = 0;
  std::size_t exact_count = 0;  // in workspace.exact_map, bits in workspace.exact_bytes
  bool exact_alike = false;     // which has one value that all of them have
  bool signs = false;           // point-wise bound: some are negative, in workspace.sign_map
  double max_error = 0;         // relative under a point-wise bound
};

enum class QuantizeOutcome { done, needs_wide, too_many_exact };

// Quantises a chunk: values under an absolute bound, their logarithms under a point-wise one. The
// code of an exact point repeats the one before it; predict::Kernels::fill may choose another.
// Codes of 16 bits need wide ones when they vary too much for differences.
template <class T, class Q>
QuantizeOutcome quantize_chunk(const Box<const T>& chunk, const Parameters& parameters,
                               Workspace& workspace, QuantizedChunk<T, Q>* result);

// Mean squared error of the codes, in bounds. Not for a point-wise bound.
template <class T, class Q>
double mean_square(const Box<const T>& chunk, const Parameters& parameters,
                   const QuantizedChunk<T, Q>& quantized);

// Which orders are tried, and on how many of a chunk's codes.
struct OrderSearch {
  static constexpr std::size_t kMaxSample = 2048;
  int max_lags = predict::kMaxLags;
  std::size_t sample = kMaxSample;
};

// The orders of least estimated cost on a sample of the chunk.
template <class Q>
Orders choose_orders(const Q* codes, std::size_t count, int rank,
                     const std::array<std::size_t, kMaxRank>& extents, const OrderSearch& search,
                     Workspace& workspace);

// Those that the chunk had under another bound, if it was of this pipeline then; otherwise those of
// choose_orders().
template <class Q>
Orders kept_or_chosen_orders(Pipeline pipeline, const Parameters& parameters, const Q* codes,
                             std::size_t count, int rank,
                             const std::array<std::size_t, kMaxRank>& extents,
                             const OrderSearch& search, Workspace& workspace) {
  Orders orders{};
  const Choice& choice = parameters.choice;
  if (choice.candidate.pipeline == pipeline && unpack_orders(choice.orders, rank, &orders)) {
    return orders;
  }
  return choose_orders(codes, count, rank, extents, search, workspace);
}
inline void keep_orders(const Orders& orders, Encoded* encoded) {
  encoded->choice.candidate.pipeline = encoded->pipeline;
  encoded->choice.orders = pack_orders(orders);
}

// Codes with zeroed history before them, in the workspace.
template <class Q>
Q* reserve_codes(std::size_t count, std::size_t history, Workspace& workspace);

// Writes decoded values to the chunk's place: dequantised codes, then the exact points on top.
template <class T, class Q>
void restore_chunk(const Q* codes, const PayloadHead& head, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace);

// Where the chunk's values lie, when they lie one behind the other; null otherwise.
template <class T>
T* contiguous_memory(const Box<T>& chunk) {
  T* whole = nullptr;
  if (chunk.row_stride() == 1 && chunk.row_length() == chunk.count()) {
    chunk.for_each_row([&](T* row, std::size_t) {
      whole = row;
      return true;
    });
  }
  return whole;
}

// A contiguous copy of the chunk, unless it is contiguous already.
template <class T>
const T* contiguous(const Box<const T>& chunk, Workspace& workspace);

// Writes decoded values, which lie one behind the other (or where they belong already), to the
// chunk's place, with the exact points of the workspace on top when there are any.
template <class T>
void write_values(const T* values, bool any_exact, const Box<T>& chunk, Workspace& workspace);

}  // namespace firn::pipelines
