#include "pipelines/causal_model.hpp"

#include <algorithm>
#include <cstdlib>

namespace firn::pipelines {
namespace {

constexpr int kMaxWeightShift = 20;
constexpr std::int32_t kMaxWeight = 1 << 24;

}  // namespace

CausalTaps::CausalTaps(int kind, const Wavefront& wavefront) {
  struct Candidate {
    int distance;
    TapOffset offset;
  };
  std::array<Candidate, 128> all{};
  std::size_t found = 0;
  const int lead = static_cast<int>(wavefront.lead());
  for (int w = kind & 2 ? -1 : 0; w <= 0; ++w) {
    for (int z = kind & 1 ? (w == 0 ? -2 : -1) : 0; z <= 0; ++z) {
      const bool same_plane = w == 0 && z == 0;
      if (wavefront.line() && !same_plane) continue;
      for (int y = wavefront.line() ? 0 : -2; y <= (same_plane ? 0 : 1); ++y) {
        for (int x = -lead; x <= 2; ++x) {
          if (same_plane && (y == 0 ? x >= 0 : x > -y)) continue;
          const int axes = (w != 0) + (z != 0) + (y != 0) + (x != 0);
          const int reach = std::max({std::abs(w), std::abs(z), std::abs(y), std::abs(x)});
          if ((axes > 1 && reach > 2) || (axes > 2 && reach > 1)) continue;
          if (axes == 0) continue;
          const int square = w * w + z * z + y * y + x * x;
          all[found++] = {(axes == 1 ? 6 : 10) * square,
                          {static_cast<std::int8_t>(w), static_cast<std::int8_t>(z),
                           static_cast<std::int8_t>(y), static_cast<std::int8_t>(x)}};
        }
      }
    }
  }
  std::sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(found),
            [](const Candidate& a, const Candidate& b) {
              return a.distance != b.distance ? a.distance < b.distance : a.offset > b.offset;
            });
  count = static_cast<int>(std::min<std::size_t>(found, predict::kMaxCausalTaps));
  for (std::size_t g = 0; g < static_cast<std::size_t>(count); ++g) taps[g] = all[g].offset;
}

CausalContextTaps::CausalContextTaps(int kind, bool line) {
  add(left, {0, 0, 0, -1});
  if (line) {
    add(above_row, {0, 0, 0, -2});
    add(around, {0, 0, 0, -3});
    add(around, {0, 0, 0, -4});
    return;
  }
  add(above_row, {0, 0, -1, 0});
  add(around, {0, 0, -1, -1});
  add(around, {0, 0, -1, 1});
  add(around, {0, 0, 0, -2});
  add(around, {0, 0, -2, 0});
  if (kind & 1) add(plane_before, {0, -1, 0, 0});
  if (kind & 2) add(plane_before, {-1, 0, 0, 0});
  if (kind != 0) {
    const std::int8_t z = kind & 1 ? -1 : 0, w = kind & 1 ? 0 : -1;
    add(around_plane_before, {w, z, 0, -1});
    add(around_plane_before, {w, z, 0, 1});
    add(around_plane_before, {w, z, -1, 0});
    add(around_plane_before, {w, z, 1, 0});
  }
}

void CausalModel::write(const Wavefront& wavefront, ByteWriter& out) const {
  out.write(static_cast<std::uint8_t>(fast));
  out.write(static_cast<std::uint8_t>(shift));
  for (const std::uint8_t weight : context_weights) out.write(weight);
  out.write(spread);
  out.write(floor);
  for (int kind = 0; kind < kPlaneKinds; ++kind) {
    if (!wavefront.has_kind(kind)) continue;
    const Stencil& stencil = stencils[static_cast<std::size_t>(kind)];
    out.write(static_cast<std::uint8_t>(stencil.taps));
    if (stencil.taps < 2) continue;
    out.write(static_cast<std::uint8_t>(stencil.shift));
    for (int g = 1; g < stencil.taps; ++g) {
      const std::int64_t weight = stencil.weights[static_cast<std::size_t>(g)];
      out.write_varint(weight < 0 ? static_cast<std::uint64_t>(-2 * weight - 1)
                                  : static_cast<std::uint64_t>(2 * weight));
    }
  }
}

bool CausalModel::read_head(ByteReader& in, int rank) {
  fast = in.read<std::uint8_t>();
  shift = in.read<std::uint8_t>();
  for (std::uint8_t& weight : context_weights) weight = in.read<std::uint8_t>();
  spread = in.read<std::uint8_t>();
  floor = in.read<std::uint8_t>();
  return in.ok() && fast <= rank && shift < 31;
}

bool CausalModel::read_stencils(ByteReader& in, const Wavefront& wavefront) {
  for (int kind = 0; kind < kPlaneKinds; ++kind) {
    if (!wavefront.has_kind(kind)) continue;
    Stencil& stencil = stencils[static_cast<std::size_t>(kind)];
    stencil.taps = in.read<std::uint8_t>();
    if (!in.ok() || stencil.taps < 1 || stencil.taps > CausalTaps(kind, wavefront).count) {
      return false;
    }
    stencil.shift = 0;
    if (stencil.taps > 1) stencil.shift = in.read<std::uint8_t>();
    if (stencil.shift > kMaxWeightShift) return false;
    std::int32_t others = 0;
    for (int g = 1; g < stencil.taps; ++g) {
      const std::uint64_t folded = in.read_varint();
      if (folded > std::uint64_t{2} * kMaxWeight) return false;
      const auto half = static_cast<std::int32_t>(folded / 2);
      stencil.weights[static_cast<std::size_t>(g)] = folded % 2 != 0 ? -half - 1 : half;
      others += stencil.weights[static_cast<std::size_t>(g)];
    }
    stencil.weights[0] = (1 << stencil.shift) - others;
  }
  return in.ok();
}

template <class T>
predict::CausalStencil<T> CausalModel::stencil_of(int kind, const Wavefront& wavefront,
                                                  T inverse_step) const {
  predict::CausalStencil<T> result;
  const Stencil& stencil = stencils[static_cast<std::size_t>(kind)];
  const CausalTaps list(kind, wavefront);
  result.tap_count = stencil.taps;
  for (std::size_t g = 0; g < static_cast<std::size_t>(stencil.taps); ++g) {
    result.offset[g] = wavefront.offset(list.taps[g]);
    result.weight[g] = static_cast<T>(stencil.weights[g]) / static_cast<T>(1 << stencil.shift);
  }
  result.spread_scale =
      inverse_step * (static_cast<T>(spread) / (T(256) * static_cast<T>(1 << shift)));
  const CausalContextTaps around(kind, wavefront.line());
  result.context_taps = around.count;
  for (std::size_t k = 0; k < static_cast<std::size_t>(around.count); ++k) {
    result.context_offset[k] = wavefront.offset(around.taps[k].offset);
    result.context_weight[k] = context_weights[around.taps[k].context_class];
  }
  result.floor = static_cast<float>(floor) / 256;
  return result;
}

template predict::CausalStencil<float> CausalModel::stencil_of(int, const Wavefront&, float) const;
template predict::CausalStencil<double> CausalModel::stencil_of(int, const Wavefront&,
                                                                double) const;

}  // namespace firn::pipelines
