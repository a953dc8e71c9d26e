// Trained stencils of `interp`: which known points around those of a class take part, how their
// weights are fitted, and the classes of a level in padded arrays of one shape, in which a
// neighbour is a constant distance away from any point. docs/format.md, "Trained stencils".
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/bytes.hpp"
#include "pipelines/refinement.hpp"
#include "pipelines/workspace.hpp"
#include "predict/interpolation.hpp"
#include "predict/robust_fit.hpp"

namespace firn::pipelines {

// Weights of pairs of points, in units of 2^-shift; no pairs: not trained.
struct StencilWeights {
  int pairs = 0;
  int shift = 0;
  std::array<std::int32_t, predict::kMaxStencilPairs> weights{};
};
inline constexpr int kMaxStencilShift = 20;
inline constexpr std::int32_t kMaxStencilWeight = 1 << 24;
inline constexpr std::size_t kMaxStencilBytes = 1 + 4 * predict::kMaxStencilPairs;

// How far a point is from another, in points of the level's grid.
using GridOffset = std::array<std::int8_t, kMaxRank>;
struct PairList {
  int count = 0;
  std::array<GridOffset, predict::kMaxStencilPairs> pairs{};  // one of two opposite ones
};

// The neighbourhood of the points of a level, and how far its arrays are padded for it.
class StencilShape {
 public:
  StencilShape(const Geometry& geometry, std::size_t spacing);

  // Whether there are enough points along all axes of a class' interpolation.
  bool can_train(unsigned odd) const { return (odd & ~active_) == 0; }
  // The nearest pairs of points known before a class; those along an axis count as nearer.
  PairList list_pairs(unsigned odd) const;

  // The class of the point at that distance from those of a class.
  unsigned class_at(unsigned odd, const GridOffset& offset) const;
  // How many cells it is away along an axis.
  int cells_along(std::size_t k, unsigned odd, const GridOffset& offset) const;
  // Padding along an axis.
  std::size_t before(std::size_t k) const { return active_ >> k & 1 ? reach_ / 2 : 0; }
  std::size_t behind(std::size_t k) const { return active_ >> k & 1 ? reach_ / 2 + 1 : 0; }

 private:
  unsigned frozen_;
  unsigned active_ = 0;    // bits of the axes with enough points
  std::size_t reach_ = 3;  // along an axis; one less where more than one changes
};

void write_stencil(const StencilWeights& weights, ByteWriter& out);
bool read_stencil(ByteReader& in, int pairs, StencilWeights* weights);

// The known points of a level.
template <class T>
class StencilGrid {
 public:
  StencilGrid(const Geometry& geometry, std::size_t spacing, Workspace& workspace)
      : shape_(geometry, spacing), workspace_(workspace) {}

  const StencilShape& shape() const { return shape_; }

  // Takes in all that is known before a class.
  void complete(const Refinement<T>& refinement, unsigned odd) {
    if (cells_ == nullptr) open(refinement);
    for (; added_ < class_order(odd); ++added_) {
      add(class_order(added_), refinement.at(class_order(added_)));
    }
  }

  // The cell of a row's first point.
  const T* row(std::size_t a, std::size_t b, std::size_t c) const {
    return cells_ + place(a, b, c);
  }

  predict::Stencil<T> make_stencil(unsigned odd, const StencilWeights& weights) const {
    predict::Stencil<T> stencil = find_pairs(odd);
    const T unit = T(1) / static_cast<T>(std::int32_t{2} << weights.shift);
    std::int32_t others = 0;
    for (std::size_t g = 0; g < static_cast<std::size_t>(weights.pairs); ++g) {
      stencil.weight[g] = static_cast<T>(weights.weights[g]) * unit;
      others += weights.weights[g];
    }
    stencil.own = static_cast<T>((std::int32_t{1} << weights.shift) - others) * (2 * unit);
    return stencil;
  }

  // Fits the weights of a class, to some of its points, or to fewer if roughly will do. False, and
  // no weights, when that does not pay.
  bool train(unsigned odd, Refinement<T>& refinement, const Base& base, const T* values,
             const PointCoder<T>& coder, bool roughly, StencilWeights* weights) {
    constexpr std::size_t kMinSamples = 512;
    const std::size_t kMaxSamples = roughly ? 768 : 2048, kRows = roughly ? 64 : 128;
    const Class<T>& cls = refinement.at(odd);
    const predict::Stencil<T> stencil = find_pairs(odd);
    const std::size_t length = cls.extents[3];
    const std::size_t rows = cls.count / length;
    const std::size_t visited = std::min(rows, kRows);
    const std::size_t samples = std::clamp(cls.count / 16, kMinSamples, kMaxSamples);
    const std::size_t parts = std::min(length, std::max<std::size_t>(1, samples / visited));
    const std::size_t part = length / parts;
    predict::RobustFit& fit = workspace_.fit;
    fit.reset(visited * parts, stencil.pairs);
    std::uint8_t* contexts = workspace_.stencil_contexts.reserve(length + predict::kRowSlack);
    for (std::size_t r = 0; r < visited; ++r) {
      const std::size_t number = rows * (2 * r + 1) / (2 * visited);
      const std::size_t c = number % cls.extents[2];
      const std::size_t b = number / cls.extents[2] % cls.extents[1];
      const std::size_t a = number / cls.extents[2] / cls.extents[1];
      std::size_t step = 0;
      const std::size_t offset = refinement.row_offset(odd, a, b, c, &step);
      refinement.predict_rows(odd, base, a, b, c, 1, 0, contexts);
      const T* predictions = cls.points + cls.row(a, b, c);
      for (std::size_t j = 0; j < parts; ++j) {
        const std::size_t i = j * part + (r * 7919 + j * 104729) % part;
        add_sample(stencil, row(a, b, c) + i, predictions[i], values[offset + i * step],
                   contexts[i], coder);
      }
    }
    const predict::RobustFit::Outcome outcome = fit.fit(roughly ? 2 : 4, workspace_.target);
    if (!outcome.found) return false;
    weights->pairs = stencil.pairs;
    weights->shift = outcome.shift;
    float bits = 8;
    for (std::size_t g = 0; g < static_cast<std::size_t>(stencil.pairs); ++g) {
      weights->weights[g] = outcome.weights[g];
      bits += std::abs(outcome.weights[g]) < 64 ? 8 : 16;
    }
    // Costs of a fit are about half as much again as what a coder with contexts takes.
    const bool pays =
        static_cast<float>(cls.count) * (outcome.base_cost - outcome.cost) > 1.5f * bits;
    if (!pays) *weights = {};
    return pays;
  }

 private:
  void open(const Refinement<T>& refinement) {
    std::size_t volume = 1;
    for (std::size_t k = kMaxRank; k-- > 0;) {
      pitch_[k] = volume;
      padded_[k] = shape_.before(k) + refinement.at(0).extents[k] + shape_.behind(k);
      volume *= padded_[k];
    }
    const std::size_t class_cells = volume + predict::kRowSlack;
    std::size_t used = 0;
    for (unsigned i = 0; i < 16; ++i) {
      first_cell_[class_order(i)] = used;
      if (refinement.at(class_order(i)).count != 0) used += class_cells;
    }
    cells_ = reinterpret_cast<T*>(workspace_.cells.reserve(used * sizeof(T)));
  }

  // What is outside the chunk continues a class in straight lines.
  void add(unsigned odd, const Class<T>& cls) {
    if (cls.count == 0) return;
    T* const cells = cells_ + first_cell_[odd];
    const auto corner = [&](std::size_t axes) {
      std::size_t back = 0;
      for (std::size_t k = axes; k < kMaxRank; ++k) back += shape_.before(k) * pitch_[k];
      return back;
    };
    for (std::size_t a = 0; a < cls.extents[0]; ++a) {
      for (std::size_t b = 0; b < cls.extents[1]; ++b) {
        for (std::size_t c = 0; c < cls.extents[2]; ++c) {
          T* const to = cells + place(a, b, c);
          std::memcpy(to, cls.points + cls.row(a, b, c), cls.extents[3] * sizeof(T));
          extend(3, cls.extents[3], to);
        }
        extend(2, cls.extents[2], cells + place(a, b, 0) - corner(3));
      }
      extend(1, cls.extents[1], cells + place(a, 0, 0) - corner(2));
    }
    extend(0, cls.extents[0], cells + place(0, 0, 0) - corner(1));
  }

  // Continues `length` slices of cells along an axis.
  void extend(std::size_t axis, std::size_t length, T* first) {
    const std::size_t before = shape_.before(axis);
    if (before == 0) return;
    const std::size_t size = pitch_[axis];
    const T* const second = first + (length > 1 ? size : 0);
    const T* const last = first + (length - 1) * size;
    const T* const before_last = length > 1 ? last - size : last;
    for (std::size_t j = 1; j <= before; ++j) {
      T* const to = first - j * size;
      for (std::size_t i = 0; i < size; ++i) to[i] = to[size + i] + (first[i] - second[i]);
    }
    for (std::size_t j = length; j < padded_[axis] - before; ++j) {
      T* const to = first + j * size;
      for (std::size_t i = 0; i < size; ++i) to[i] = (to - size)[i] + (last[i] - before_last[i]);
    }
  }

  std::size_t place(std::size_t a, std::size_t b, std::size_t c) const {
    return (a + shape_.before(0)) * pitch_[0] + (b + shape_.before(1)) * pitch_[1] +
           (c + shape_.before(2)) * pitch_[2] + shape_.before(3);
  }

  // The pairs of a class, without their weights.
  predict::Stencil<T> find_pairs(unsigned odd) const {
    const auto distance = [&](const GridOffset& offset) {
      auto cells = static_cast<std::ptrdiff_t>(first_cell_[shape_.class_at(odd, offset)]);
      for (std::size_t k = 0; k < kMaxRank; ++k) {
        cells += shape_.cells_along(k, odd, offset) * static_cast<std::ptrdiff_t>(pitch_[k]);
      }
      return cells;
    };
    const PairList list = shape_.list_pairs(odd);
    predict::Stencil<T> stencil;
    stencil.pairs = list.count;
    for (std::size_t g = 0; g < static_cast<std::size_t>(list.count); ++g) {
      GridOffset opposite = list.pairs[g];
      for (std::int8_t& d : opposite) d = static_cast<std::int8_t>(-d);
      stencil.offset[g] = {distance(list.pairs[g]), distance(opposite)};
    }
    return stencil;
  }

  // One point: how far the means of pairs, and the value, are from the interpolated prediction.
  void add_sample(const predict::Stencil<T>& stencil, const T* cell, T prediction, T value,
                  std::uint8_t context, const PointCoder<T>& coder) {
    predict::RobustFit& fit = workspace_.fit;
    const auto in_steps = [&](T from) {
      return static_cast<float>((from - prediction) * coder.inverse_step());
    };
    float* features = fit.features();
    float size = std::fabs(in_steps(value));
    for (std::size_t g = 0; g < static_cast<std::size_t>(stencil.pairs); ++g) {
      const T both = cell[stencil.offset[g][0]] + cell[stencil.offset[g][1]];
      features[g] = in_steps(both * T(0.5));
      size += std::fabs(features[g]);
    }
    if (!(size < 1e9f) || value == coder.fill()) return;
    // Contexts are half octaves of the activity.
    const auto octave = static_cast<float>(std::uint32_t{1} << context / 2);
    fit.add(in_steps(value), octave * (context % 2 != 0 ? 1.5f : 1.0f) * 0x1p-5f);
  }

  StencilShape shape_;
  Workspace& workspace_;
  T* cells_ = nullptr;
  std::array<std::size_t, 16> first_cell_{};  // of each class
  unsigned added_ = 0;                        // classes, in the order of coding
  Extents padded_{}, pitch_{};
};

}  // namespace firn::pipelines
