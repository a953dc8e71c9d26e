// How often codes are differenced along each axis, and the choice of that by estimated cost.
#pragma once

#include <array>
#include <cstddef>

#include "pipelines/payload_head.hpp"
#include "pipelines/pipeline.hpp"
#include "predict/difference.hpp"

namespace firn::pipelines {

predict::Lags lags_of(const Orders& orders, int rank,
                      const std::array<std::size_t, kMaxRank>& extents);

// Zeros that lie before the codes of a chunk: as many as orders that fit can reach, and one.
std::size_t history_room(int rank, const std::array<std::size_t, kMaxRank>& extents);

// Which orders are tried, and on how many of a chunk's codes: a sixteenth of them, within limits,
// in short pieces from all over it; or all, if they are no more than the least.
struct OrderSearch {
  static constexpr std::size_t kLeast = 2048;
  int max_lags = predict::kMaxLags;
  std::size_t least = kLeast, most = 8192;  // least <= kLeast
  // By what codes take when packed, or by a model of what an entropy coder makes of them.
  bool packed = false;
};

// The orders of least estimated cost on a sample of the chunk.
template <class Q>
Orders choose_orders(const Q* codes, std::size_t count, int rank,
                     const std::array<std::size_t, kMaxRank>& extents, const OrderSearch& search,
                     Workspace& workspace);

// Those that the chunk had under another bound, if it was of this pipeline then, or that another
// one had, if they fit its shape; otherwise those of choose_orders().
template <class Q>
Orders kept_or_chosen_orders(Pipeline pipeline, const Parameters& parameters, const Q* codes,
                             std::size_t count, int rank,
                             const std::array<std::size_t, kMaxRank>& extents,
                             const OrderSearch& search, Workspace& workspace) {
  Orders orders{};
  const Choice& choice = parameters.choice;
  if (choice.candidate.pipeline == pipeline && unpack_orders(choice.orders, rank, &orders) &&
      orders_fit(orders, rank, extents)) {
    return orders;
  }
  return choose_orders(codes, count, rank, extents, search, workspace);
}
inline void keep_orders(const Orders& orders, Encoded* encoded) {
  encoded->choice.candidate.pipeline = encoded->pipeline;
  encoded->choice.orders = pack_orders(orders);
}

}  // namespace firn::pipelines
