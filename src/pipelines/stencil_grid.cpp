#include "pipelines/stencil_grid.hpp"

#include <bit>

namespace firn::pipelines {

StencilShape::StencilShape(const Geometry& geometry, std::size_t spacing)
    : frozen_(geometry.frozen) {
  // With fewer points borders would be everywhere.
  constexpr std::size_t kMinExtent = 8;
  for (std::size_t k = 0; k < kMaxRank; ++k) {
    if (geometry.on_grid(k, spacing) >= kMinExtent) active_ |= 1u << k;
  }
  // The fewer the axes, the further the nearest of a fixed number of points are.
  reach_ = std::popcount(active_) <= 2 ? 5 : 3;
}

PairList StencilShape::list_pairs(unsigned odd) const {
  struct Tap {
    int distance;
    GridOffset offset;
    bool operator<(const Tap& other) const {
      return distance != other.distance ? distance < other.distance : offset < other.offset;
    }
  };
  std::array<Tap, predict::kMaxStencilPairs + 1> nearest{};
  int count = 0;
  const auto consider = [&](const std::array<int, kMaxRank>& at, int factor) {
    GridOffset offset{};
    int square = 0;
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      offset[k] = static_cast<std::int8_t>(at[k]);
      // Neighbours along a frozen axis count as two points away.
      square += at[k] * at[k] * (frozen_ >> k & 1 ? 4 : 1);
    }
    if (offset <= GridOffset{} || class_order(class_at(odd, offset)) >= class_order(odd)) return;
    int place = count;
    const Tap candidate{factor * square, offset};
    for (; place > 0 && candidate < nearest[static_cast<std::size_t>(place - 1)]; --place) {
      nearest[static_cast<std::size_t>(place)] = nearest[static_cast<std::size_t>(place - 1)];
    }
    nearest[static_cast<std::size_t>(place)] = candidate;
    count = std::min(count + 1, predict::kMaxStencilPairs);
  };
  const int reach = static_cast<int>(reach_);
  std::array<int, kMaxRank> most{};
  for (std::size_t k = 0; k < kMaxRank; ++k) {
    if ((active_ >> k & 1) == 0) continue;
    most[k] = frozen_ >> k & 1 ? 1 : (reach + 1) / 2;
    for (int far = 1; far <= reach; ++far) {
      std::array<int, kMaxRank> at{};
      at[k] = far;
      consider(at, 6);
    }
  }
  for (int a = -most[0]; a <= most[0]; ++a) {
    for (int b = -most[1]; b <= most[1]; ++b) {
      for (int c = -most[2]; c <= most[2]; ++c) {
        for (int d = -most[3]; d <= most[3]; ++d) {
          if ((a != 0) + (b != 0) + (c != 0) + (d != 0) > 1) consider({a, b, c, d}, 10);
        }
      }
    }
  }
  PairList list;
  list.count = count;
  for (std::size_t g = 0; g < static_cast<std::size_t>(count); ++g) {
    list.pairs[g] = nearest[g].offset;
  }
  return list;
}

unsigned StencilShape::class_at(unsigned odd, const GridOffset& offset) const {
  for (std::size_t k = 0; k < kMaxRank; ++k) {
    if ((frozen_ >> k & 1) == 0) odd ^= static_cast<unsigned>(offset[k] & 1) << k;
  }
  return odd;
}

int StencilShape::cells_along(std::size_t k, unsigned odd, const GridOffset& offset) const {
  return frozen_ >> k & 1 ? offset[k] : (static_cast<int>(odd >> k & 1) + offset[k]) >> 1;
}

void write_stencil(const StencilWeights& weights, ByteWriter& out) {
  out.write(static_cast<std::uint8_t>(weights.shift));
  for (int g = 0; g < weights.pairs; ++g) {
    const std::int64_t weight = weights.weights[static_cast<std::size_t>(g)];
    out.write_varint(static_cast<std::uint64_t>(weight < 0 ? -2 * weight - 1 : 2 * weight));
  }
}

bool read_stencil(ByteReader& in, int pairs, StencilWeights* weights) {
  weights->pairs = pairs;
  weights->shift = in.read<std::uint8_t>();
  for (int g = 0; g < pairs; ++g) {
    const std::uint64_t folded = in.read_varint();
    if (folded > std::uint64_t{2} * kMaxStencilWeight) return false;
    const auto half = static_cast<std::int32_t>(folded / 2);
    weights->weights[static_cast<std::size_t>(g)] = folded % 2 != 0 ? -half - 1 : half;
  }
  return in.ok() && weights->shift <= kMaxStencilShift;
}

}  // namespace firn::pipelines
