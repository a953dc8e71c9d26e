// The grids of a chunk while `interp` refines it: levels, parity classes, and the known neighbours
// that the points of a class are predicted from. docs/format.md, "interp".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "pipelines/point_coder.hpp"
#include "pipelines/workspace.hpp"
#include "predict/interpolation.hpp"

namespace firn::pipelines {

using Extents = std::array<std::size_t, kMaxRank>;

// Grids are padded to four axes, slowest first.
struct Geometry {
  Extents extents{1, 1, 1, 1};
  unsigned frozen = 0;  // bits of padded axes
  int levels = 0;

  Geometry(int rank, const Extents& chunk, unsigned frozen_axes) {
    const int shift = kMaxRank - rank;
    for (int k = 0; k < rank; ++k) extents[static_cast<std::size_t>(k + shift)] = chunk[k];
    frozen = frozen_axes << shift;
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      if (frozen >> k & 1) continue;
      while ((std::size_t{1} << levels) < extents[k]) ++levels;
    }
  }
  // Points of the grid of spacing s along axis k.
  std::size_t on_grid(std::size_t k, std::size_t s) const {
    return frozen >> k & 1 ? extents[k] : (extents[k] + s - 1) / s;
  }
  // Spacing along an axis in the chunk of points s apart on the grid.
  std::size_t spacing(std::size_t k, std::size_t s) const { return frozen >> k & 1 ? 1 : s; }
};

// Which of a class' odd axes its points are interpolated along, and how.
struct Base {
  unsigned axes = 15;  // bits of padded axes; those that are not odd do not count
  bool linear = false;
};

// Classes of fewer points have no choice of base.
inline constexpr std::size_t kMinBasePoints = 512;

// A base in a byte: bits 0 to 3: axes, of the odd ones, slowest first; bit 4: linear. Bit 5 says
// that a stencil follows.
inline constexpr std::uint8_t kStencilFollows = 32;
inline std::uint8_t pack_base(const Base& base, unsigned odd) {
  unsigned packed = base.linear ? 16 : 0;
  int place = 0;
  for (unsigned k = 0; k < kMaxRank; ++k) {
    if (odd >> k & 1) packed |= (base.axes >> k & 1) << place++;
  }
  return static_cast<std::uint8_t>(packed);
}
inline bool unpack_base(std::uint8_t packed, unsigned odd, Base* base) {
  base->axes = 0;
  base->linear = packed >> 4 & 1;
  int place = 0;
  for (unsigned k = 0; k < kMaxRank; ++k) {
    if (odd >> k & 1) base->axes |= (static_cast<unsigned>(packed) >> place++ & 1) << k;
  }
  return base->axes != 0 && packed < 64 && (packed & 15) >> place == 0;
}

// Classes in the order in which they are coded: the fastest axis counts lowest. Its own inverse.
constexpr unsigned class_order(unsigned i) {
  return (i & 1) << 3 | (i >> 1 & 1) << 2 | (i >> 2 & 1) << 1 | i >> 3;
}

// One parity class of a level: points that lie at odd multiples of the spacing s along the axes in
// `odd`, at even ones along the others (any along frozen axes).
template <class T>
struct Class {
  Extents extents{};
  std::size_t count = 0;
  T* points = nullptr;
  std::uint8_t* magnitudes = nullptr;

  std::size_t row(std::size_t a, std::size_t b, std::size_t c) const {
    return ((a * extents[1] + b) * extents[2] + c) * extents[3];
  }
};

// The grids of a chunk while it is refined. Class 0 of a level is the grid of the level before.
template <class T>
class Refinement {
 public:
  Refinement(const Geometry& geometry, const PointCoder<T>& coder, Workspace& workspace)
      : geometry_(geometry), coder_(coder) {
    const std::size_t count =
        geometry.extents[0] * geometry.extents[1] * geometry.extents[2] * geometry.extents[3];
    // Three sets: the grid so far, the classes that join it, and the grid of both.
    const std::size_t capacity = count + 16 * kPadding;
    points_ =
        reinterpret_cast<T*>(workspace.points.reserve((3 * capacity + kPadding) * sizeof(T))) +
        kPadding;
    magnitudes_ = workspace.point_magnitudes.reserve(3 * capacity);
    class_points_ = points_ + capacity;
    class_magnitudes_ = magnitudes_ + capacity;
    next_points_ = points_ + 2 * capacity;
    next_magnitudes_ = magnitudes_ + 2 * capacity;
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid_[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
  }

  T* grid() { return points_; }
  std::uint8_t* grid_magnitudes() { return magnitudes_; }
  std::size_t grid_count() const { return grid_[0] * grid_[1] * grid_[2] * grid_[3]; }

  // Sets up the classes of the level whose new spacing is s.
  void open_level(std::size_t s) {
    spacing_ = s;
    std::size_t used = 0;
    for (unsigned odd = 0; odd < 16; ++odd) {
      Class<T>& cls = classes_[odd];
      cls.count = 1;
      for (std::size_t k = 0; k < kMaxRank; ++k) {
        const std::size_t total = geometry_.on_grid(k, s);
        const std::size_t even = grid_[k];
        cls.extents[k] = odd >> k & 1 ? total - even : even;
        if (geometry_.frozen >> k & 1 && odd >> k & 1) cls.extents[k] = 0;
        cls.count *= cls.extents[k];
      }
      if (odd == 0) {
        cls.points = points_;
        cls.magnitudes = magnitudes_;
      } else {
        cls.points = class_points_ + used;
        cls.magnitudes = class_magnitudes_ + used;
        used += cls.count == 0 ? 0 : cls.count + kPadding;
      }
    }
  }

  const Class<T>& at(unsigned odd) const { return classes_[odd]; }

  bool has_base(const Class<T>& cls) const {
    return !coder_.pointwise() && cls.count >= kMinBasePoints;
  }
  // visit(spacing, odd) for each class that has a base, in the order of coding, as long as it
  // returns true.
  template <class Visit>
  bool for_each_base(Visit visit) const {
    for (std::size_t s = std::size_t{1} << geometry_.levels >> 1; s != 0; s >>= 1) {
      for (unsigned i = 1; i < 16; ++i) {
        const unsigned odd = class_order(i);
        std::size_t count = 1;
        for (std::size_t k = 0; k < kMaxRank; ++k) {
          const std::size_t total = geometry_.on_grid(k, s);
          const std::size_t even = geometry_.on_grid(k, 2 * s);
          count *= odd >> k & 1 ? total - even : even;
        }
        if (!coder_.pointwise() && count >= kMinBasePoints && !visit(s, odd)) return false;
      }
    }
    return true;
  }

  // Rows of a class that follow each other and are predicted alike, so that they can be taken as
  // one: the first one's number, how many they are, where in the chunk the first point of the first
  // is, how much further that of the next, and how far apart a row's points are.
  struct Run {
    std::size_t a, b, c;
    std::size_t rows, offset, along, step;
  };
  static constexpr std::size_t kMaxRun = 2048;  // points, unless a row has more: for the caches
  // visit(run); `single`: runs of one row.
  template <class Visit>
  void for_each_run(unsigned odd, const Base& base, bool single, Visit visit) const {
    const Class<T>& cls = classes_[odd];
    Run run{};
    run.along = row_offset(odd, 0, 0, 1, &run.step) - row_offset(odd, 0, 0, 0, &run.step);
    const unsigned axes = odd & base.axes;
    const std::size_t most =
        single || axes >> 3 & 1 ? 1 : std::max<std::size_t>(1, kMaxRun / cls.extents[3]);
    // Along axis 2 the first row and the last two may have weights of their own.
    const std::size_t known = classes_[odd & ~4u].extents[2];
    const std::size_t inner = axes >> 2 & 1 ? (known > 2 ? known - 2 : 0) : cls.extents[2];
    for (run.a = 0; run.a < cls.extents[0]; ++run.a) {
      for (run.b = 0; run.b < cls.extents[1]; ++run.b) {
        run.offset = row_offset(odd, run.a, run.b, 0, &run.step);
        for (run.c = 0; run.c < cls.extents[2]; run.c += run.rows) {
          const bool edge = axes >> 2 & 1 && (run.c == 0 || run.c >= inner);
          run.rows = edge ? 1 : std::min(most, inner - run.c);
          visit(run);
          run.offset += run.rows * run.along;
        }
      }
    }
  }

  // Where in the chunk a row of a class begins, and how far apart its points are there.
  std::size_t row_offset(unsigned odd, std::size_t a, std::size_t b, std::size_t c,
                         std::size_t* step) const {
    const Extents lag = lags();
    const auto place = [&](std::size_t k, std::size_t i) {
      if (geometry_.frozen >> k & 1) return i;
      return (2 * i + (odd >> k & 1)) * spacing_;
    };
    *step = geometry_.frozen >> 3 & 1 ? 1 : 2 * spacing_;
    return place(0, a) * lag[0] + place(1, b) * lag[1] + place(2, c) * lag[2] + place(3, 0);
  }

  // Predictions of a row of a class, or of so many that are predicted alike, into its points, and
  // its contexts.
  void predict_rows(unsigned odd, const Base& base, std::size_t a, std::size_t b, std::size_t c,
                    std::size_t rows, std::uint8_t first_context, std::uint8_t* contexts) {
    const Class<T>& cls = classes_[odd];
    predict::Direction<T> directions[predict::kMaxDirections];
    ContinuedRow line;
    const int count = find_directions(odd, base.axes, a, b, c, directions, line);
    coder_.predict(directions, count, base.linear, rows * cls.extents[3], first_context,
                   cls.points + cls.row(a, b, c), contexts);
  }

  // A known row whose ends a straight line continues: one point before it, two and a magnitude
  // behind it. These lie where other rows or paddings have theirs, which return at the end.
  class ContinuedRow {
   public:
    ContinuedRow() = default;
    ContinuedRow(const ContinuedRow&) = delete;
    ContinuedRow& operator=(const ContinuedRow&) = delete;
    ~ContinuedRow() {
      if (first_ == nullptr) return;
      first_[-1] = before_;
      end_[0] = behind_[0];
      end_[1] = behind_[1];
      *magnitude_end_ = magnitude_behind_;
    }
    void open(T* points, std::uint8_t* magnitudes, std::size_t length) {
      first_ = points;
      end_ = points + length;
      magnitude_end_ = magnitudes + length;
      before_ = first_[-1];
      behind_ = {end_[0], end_[1]};
      magnitude_behind_ = *magnitude_end_;
      const T first = first_[0], last = end_[-1];
      const T second = length > 1 ? first_[1] : first, before_last = length > 1 ? end_[-2] : last;
      first_[-1] = first + (first - second);
      end_[0] = last + (last - before_last);
      end_[1] = end_[0] + (last - before_last);
      *magnitude_end_ = magnitude_end_[-1];
    }

   private:
    T* first_ = nullptr;
    T* end_ = nullptr;
    std::uint8_t* magnitude_end_ = nullptr;
    T before_ = 0;
    std::array<T, 2> behind_{};
    std::uint8_t magnitude_behind_ = 0;
  };

  // The neighbours of a row along those of its odd axes that are in `axes`. That along the fastest
  // axis is valid as long as `line`.
  int find_directions(unsigned odd, unsigned axes, std::size_t a, std::size_t b, std::size_t c,
                      predict::Direction<T>* directions, ContinuedRow& line) const {
    const std::array<std::size_t, 3> at{a, b, c};
    int count = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      if (((odd & axes) >> k & 1) == 0) continue;
      // Neighbours along axis k are in the class that is even there, at i and i + 1.
      const Class<T>& known = classes_[odd & ~(1u << k)];
      const std::size_t i = at[k];
      const std::size_t length = known.extents[k];
      predict::Direction<T>& direction = directions[count++];
      set_weights(i >= 1, i + 1 < length, i + 2 < length, direction);
      std::size_t lag = known.extents[3];
      for (std::size_t j = 2; j > k; --j) lag *= known.extents[j];
      const std::size_t left = known.row(a, b, c);
      const std::size_t right = i + 1 < length ? left + lag : left;
      direction.row = {known.points + (i >= 1 ? left - lag : left), known.points + left,
                       known.points + right, known.points + (i + 2 < length ? right + lag : left)};
      direction.magnitude = {known.magnitudes + left, known.magnitudes + right};
    }
    if ((odd & axes) >> 3 & 1) {
      const Class<T>& known = classes_[odd & ~8u];
      const std::size_t row = known.row(a, b, c);
      T* const points = known.points + row;
      std::uint8_t* const magnitudes = known.magnitudes + row;
      line.open(points, magnitudes, known.extents[3]);
      predict::Direction<T>& direction = directions[count++];
      set_weights(true, true, true, direction);
      direction.row = {points - 1, points, points + 1, points + 2};
      direction.magnitude = {magnitudes, magnitudes + 1};
    }
    return count;
  }

  // The base of least estimated cost on some runs of points of a class.
  Base choose_base(unsigned odd, const T* values) {
    const Class<T>& cls = classes_[odd];
    constexpr std::size_t kSamples = 384, kRun = 32;
    const std::size_t length = cls.extents[3];
    const std::size_t rows = cls.count / length;
    const std::size_t run = std::min(length, kRun);
    const std::size_t wanted = std::min(rows, std::max<std::size_t>(2, kSamples / length));
    const std::size_t every = rows / wanted;
    const std::size_t runs = std::clamp<std::size_t>(kSamples / (wanted * run), 1, length / run);
    std::array<std::uint32_t, 32> costs{};
    T sample[kRun + predict::kRowSlack] = {};
    for (std::size_t number = every / 2, visited = 0; visited < wanted; number += every) {
      ++visited;
      const std::size_t c = number % cls.extents[2];
      const std::size_t b = number / cls.extents[2] % cls.extents[1];
      const std::size_t a = number / cls.extents[2] / cls.extents[1];
      std::size_t step = 0;
      const std::size_t offset = row_offset(odd, a, b, c, &step);
      predict::Direction<T> known[predict::kMaxDirections];
      ContinuedRow line;
      const int directions = find_directions(odd, odd, a, b, c, known, line);
      for (std::size_t place = 0; place < runs; ++place) {
        // Evenly spread, not at the same place in every row.
        const std::size_t begin = (length - run) * (2 * place + visited % 2 + 1) / (2 * runs + 1);
        for (std::size_t i = 0; i < run; ++i) sample[i] = values[offset + (begin + i) * step];
        predict::Direction<T> here[predict::kMaxDirections];
        for (int k = 0; k < directions; ++k) {
          here[k] = known[k];
          for (const T*& row : here[k].row) row += begin;
        }
        coder_.base_costs(here, directions, sample, run, costs.data());
      }
    }
    const unsigned all = (1u << std::popcount(odd)) - 1;
    unsigned best = all;
    std::uint32_t least = costs[best] / 32 * 27;
    for (unsigned choice = 1; choice < 32; ++choice) {
      if ((choice & 15) == 0 || (choice & 15) > all || costs[choice] >= least) continue;
      least = costs[choice];
      best = choice;
    }
    Base base;
    unpack_base(static_cast<std::uint8_t>(best), odd, &base);
    return base;
  }

  // A row of the grid that the classes of the level make up; its magnitudes unless null.
  void join_row(std::size_t a, std::size_t b, std::size_t c, T* points,
                std::uint8_t* magnitudes) const {
    unsigned odd = 0;
    std::array<std::size_t, 3> at{a, b, c};
    for (std::size_t k = 0; k < 3; ++k) {
      if (geometry_.frozen >> k & 1) continue;
      odd |= static_cast<unsigned>(at[k] & 1) << k;
      at[k] >>= 1;
    }
    const Class<T>& even = classes_[odd];
    const Class<T>& other = classes_[odd | 8];
    const std::size_t first = even.row(at[0], at[1], at[2]);
    const std::size_t second = other.row(at[0], at[1], at[2]);
    const std::size_t length = even.extents[3] + other.extents[3];
    if (other.extents[3] == 0) {
      std::memcpy(points, even.points + first, length * sizeof(T));
      if (magnitudes != nullptr) std::memcpy(magnitudes, even.magnitudes + first, length);
      return;
    }
    coder_.kernels().join(even.points + first, other.points + second, length, points);
    if (magnitudes == nullptr) return;
    const std::uint8_t* __restrict evens = even.magnitudes + first;
    const std::uint8_t* __restrict odds = other.magnitudes + second;
    for (std::size_t i = 0; i < length / 2; ++i) {
      magnitudes[2 * i] = evens[i];
      magnitudes[2 * i + 1] = odds[i];
    }
    if (length % 2 != 0) magnitudes[length - 1] = evens[length / 2];
  }

  // Joins the classes of the level into the grid.
  void close_level() {
    Extents total{};
    for (std::size_t k = 0; k < kMaxRank; ++k) total[k] = geometry_.on_grid(k, spacing_);
    std::size_t to = 0;
    for (std::size_t a = 0; a < total[0]; ++a) {
      for (std::size_t b = 0; b < total[1]; ++b) {
        for (std::size_t c = 0; c < total[2]; ++c, to += total[3]) {
          join_row(a, b, c, next_points_ + to, next_magnitudes_ + to);
        }
      }
    }
    std::swap(points_, next_points_);
    std::swap(magnitudes_, next_magnitudes_);
    grid_ = total;
  }

  Extents lags() const {
    Extents lag{};
    lag[3] = 1;
    for (std::size_t k = 3; k-- > 0;) lag[k] = lag[k + 1] * geometry_.extents[k + 1];
    return lag;
  }

 private:
  // Between arrays: what kernels write behind a row, and the point before the next array.
  static constexpr std::size_t kPadding = predict::kRowSlack + 16;

  Geometry geometry_;
  const PointCoder<T>& coder_;
  T* points_ = nullptr;
  std::uint8_t* magnitudes_ = nullptr;
  T* class_points_ = nullptr;
  std::uint8_t* class_magnitudes_ = nullptr;
  T* next_points_ = nullptr;
  std::uint8_t* next_magnitudes_ = nullptr;
  Extents grid_{};
  std::size_t spacing_ = 0;
  std::array<Class<T>, 16> classes_{};
};

}  // namespace firn::pipelines
