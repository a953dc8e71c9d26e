#include "pipelines/difference_orders.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "encode/blockpack.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

using Extents = std::array<std::size_t, kMaxRank>;

predict::Lags lags_of(const Orders& orders, int rank, const Extents& extents) {
  const auto axis = axis_lags(rank, extents);
  predict::Lags lags;
  for (int k = 0; k < rank; ++k) {
    for (int i = 0; i < orders[k]; ++i) lags.add(axis[k]);
  }
  return lags;
}

std::size_t history_room(int rank, const Extents& extents) {
  const auto lags = axis_lags(rank, extents);
  std::size_t room = 1;
  for (int k = 0; k < rank; ++k) {
    if (extents[k] != 0) room += lags[k] * std::min<std::size_t>(2, extents[k] - 1);
  }
  return (room + 15) / 16 * 16;
}

template <class Q>
Orders choose_orders(const Q* codes, std::size_t count, int rank, const Extents& extents,
                     const OrderSearch& search, Workspace& workspace) {
  constexpr std::size_t kShare = 16, kPiece = 64, kTile = OrderSearch::kLeast;
  const std::size_t sample = std::clamp(count / kShare, search.least, search.most);
  const bool all = count <= sample;
  const std::size_t length = all ? count : kPiece, pieces = all ? 1 : sample / kPiece;
  const auto& kernels = predict::kernels<Q>(workspace.target);
  const auto& packing = encode::blockpack_kernels<Q>(workspace.target);
  Q* const residuals = reinterpret_cast<Q*>(workspace.sampled_residuals.reserve(kTile));
  std::uint8_t* const packed = workspace.sampled_output.reserve(
      search.packed ? encode::blockpack_capacity(kTile, sizeof(Q)) : 0);
  const auto cost_at = [&](const Q* from, std::size_t n) {
    return search.packed ? static_cast<std::uint64_t>(packing.encode(from, n, packed) - packed)
                         : kernels.cost(from, n);
  };
  const auto piece_at = [&](std::size_t piece) {
    return codes + (count - length) * (2 * piece + 1) / (2 * pieces);
  };
  const auto cost_of = [&](const Orders& orders) {
    const predict::Lags lags = lags_of(orders, rank, extents);
    if (all && lags.count == 0) return cost_at(codes, count);
    std::uint64_t cost = 0;
    std::size_t filled = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const Q* const from = piece_at(piece);
      if (lags.count == 0) {
        std::memcpy(residuals + filled, from, length * sizeof(Q));
      } else {
        kernels.difference(from, length, lags, residuals + filled);
      }
      filled += length;
      if (filled + length <= kTile && piece + 1 < pieces) continue;
      cost += cost_at(residuals, filled);
      filled = 0;
    }
    return cost;
  };

  Orders best{};
  if (rank == 1 && !search.packed) {
    std::uint64_t costs[predict::kLineCosts] = {};
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      kernels.line_costs(piece_at(piece), length, costs);
    }
    if (extents[0] > 1 && costs[1] < costs[0]) best[0] = 1;
    if (best[0] == 1 && extents[0] > 2 && costs[2] < costs[1]) best[0] = 2;
    return best;
  }
  std::uint64_t best_cost = cost_of(best);
  const auto consider = [&](const Orders& orders) {
    const std::uint64_t cost = cost_of(orders);
    if (cost < best_cost) best_cost = cost, best = orders;
  };
  // Every set of axes, then one more difference along each axis of the best set.
  for (unsigned set = 1; set < (1u << rank); ++set) {
    Orders orders{};
    bool sensible = std::popcount(set) <= search.max_lags;
    for (int k = 0; k < rank; ++k) {
      orders[k] = set >> k & 1;
      if (orders[k] != 0 && extents[k] == 1) sensible = false;
    }
    if (sensible) consider(orders);
  }
  const Orders first = best;
  int lags = 0;
  for (int k = 0; k < rank; ++k) lags += first[k];
  for (int k = 0; k < rank && lags < search.max_lags; ++k) {
    if (first[k] != 1 || extents[k] < 3) continue;
    Orders orders = first;
    orders[k] = 2;
    consider(orders);
  }
  return best;
}

template Orders choose_orders(const std::int16_t*, std::size_t, int, const Extents&,
                              const OrderSearch&, Workspace&);
template Orders choose_orders(const std::int32_t*, std::size_t, int, const Extents&,
                              const OrderSearch&, Workspace&);
template Orders choose_orders(const std::int64_t*, std::size_t, int, const Extents&,
                              const OrderSearch&, Workspace&);

}  // namespace firn::pipelines
