// The order in which pipeline `causal` visits a chunk, and how its cells lie in memory.
//
// Axes of extent 1 are dropped and the others padded to four (w, z, y, x), x being any of them.
// Rows of a plane are numbered with two before the first and one behind the last; planes follow
// each other, with one before the first of each w when there are several. The cell at column c of
// row r, c counted from the padding at a row's left, is visited at time c + skew * r and lies at
// r + 32 * time: the 32 rows under way at a time are contiguous, and cells that are a given number
// of rows and columns apart lie a constant distance apart.
//
// A chunk with one axis has 32 rows instead, pieces of it, which are visited side by side.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "predict/causal.hpp"

namespace firn::pipelines {

// Distance of a tap along (w, z, y, x).
using TapOffset = std::array<std::int8_t, 4>;

// Planes differ in what lies before them: bit 0: a plane z - 1, bit 1: a plane w - 1.
inline constexpr int kPlaneKinds = 4;

class Wavefront {
 public:
  static constexpr std::size_t kLanes = predict::kCausalLanes;
  static constexpr std::size_t kTrail = 2;  // padding columns at a row's right
  static constexpr std::size_t kAbove = 2;  // padding rows of a plane
  static constexpr std::size_t kBelow = 1;

  struct Row {
    std::size_t origin = 0;         // of its first value in the chunk
    std::size_t length = 0;         // 0: padding
    std::ptrdiff_t substitute = 0;  // padding: where its cells are copied from
  };
  // Rows [begin, end) whose planes are of one kind.
  struct Run {
    std::ptrdiff_t begin;
    std::ptrdiff_t end;
    int kind;
    bool first_plane;  // what follows takes it as the plane before it, too
  };

  // `fast`: the axis of the chunk that becomes x; `rank`: take the chunk as having one axis.
  void reset(int rank, const std::array<std::size_t, 4>& chunk, int fast);

  bool line() const { return line_; }
  // Padding columns at a row's left: how far taps may reach there.
  std::size_t lead() const { return extents_[1] > 1 ? 2 : 6; }
  std::size_t cell_count() const { return cell_count_; }
  const std::array<std::size_t, 4>& extents() const { return extents_; }
  const std::array<std::size_t, 4>& lags() const { return lags_; }  // in the chunk
  const std::vector<Run>& runs() const { return runs_; }
  std::size_t last() const { return last_; }  // place of the chunk's last value
  std::size_t step_count() const { return step_count_; }
  bool has_kind(int kind) const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [&](const Run& run) { return run.kind == kind; });
  }

  std::ptrdiff_t offset(const TapOffset& tap) const {
    return rows_apart(tap) * row_pitch_ + static_cast<std::ptrdiff_t>(kLanes) * tap[3];
  }

  // visit(T* cells_of_row, stride, row) for each row that has values.
  template <class T, class Visit>
  void for_each_row(T* cells, Visit visit) const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].length == 0) continue;
      visit(cells + index(static_cast<std::ptrdiff_t>(r), static_cast<std::ptrdiff_t>(lead())),
            kLanes, rows_[r]);
    }
  }

  // A step: up to 32 cells, contiguous from `index`, of which those in `coded` have values.
  struct Step {
    std::ptrdiff_t index;
    std::uint32_t coded;
    std::ptrdiff_t first_row;
    std::ptrdiff_t time;
  };
  // Where the value of a lane lies in the chunk.
  std::size_t place(const Step& step, std::size_t lane) const {
    const std::ptrdiff_t r = step.first_row + static_cast<std::ptrdiff_t>(lane);
    const std::ptrdiff_t x = step.time - skew_ * r - static_cast<std::ptrdiff_t>(lead());
    return rows_[static_cast<std::size_t>(r)].origin + static_cast<std::size_t>(x) * lags_[3];
  }

  // Calls run(kind) before the steps of each run and visit(step) for each step that has values, in
  // order; a visit may write all 32 cells and magnitudes. Keeps the padding. Stops when a visit
  // returns false.
  template <class T, class Begin, class Visit>
  bool walk(T* cells, std::uint8_t* magnitudes, Begin begin, Visit visit) const;

 private:
  std::ptrdiff_t rows_apart(const TapOffset& tap) const {
    return (tap[0] * static_cast<std::ptrdiff_t>(planes_) + tap[1]) *
               static_cast<std::ptrdiff_t>(plane_rows_) +
           tap[2];
  }
  std::ptrdiff_t index(std::ptrdiff_t row, std::ptrdiff_t column) const {
    return margin_ + row * row_pitch_ + static_cast<std::ptrdiff_t>(kLanes) * column;
  }
  void reset_line(std::size_t count);
  template <class T, class Visit>
  bool walk_line(T* cells, Visit visit) const;

  std::array<std::size_t, 4> extents_{};
  std::array<std::size_t, 4> lags_{};
  bool line_ = false;
  std::ptrdiff_t skew_ = 0;
  std::ptrdiff_t row_pitch_ = 1;
  std::size_t planes_ = 1;      // for each w
  std::size_t plane_rows_ = 0;  // with padding
  std::ptrdiff_t margin_ = 0;
  std::size_t cell_count_ = 0;
  std::size_t step_count_ = 0;
  std::size_t last_ = 0;
  std::vector<Row> rows_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> real_;  // bit per row, from row -32 on
  // By the time modulo the skew: lanes whose column is a value's, and those whose is padding.
  std::vector<std::uint32_t> value_lanes_;
  std::vector<std::uint32_t> padding_lanes_;
};

template <class T, class Visit>
bool Wavefront::walk_line(T* cells, Visit visit) const {
  const auto length = static_cast<std::ptrdiff_t>(extents_[3]);
  for (std::ptrdiff_t x = 0; x < length; ++x) {
    Step step{index(0, x + static_cast<std::ptrdiff_t>(lead())), 0, 0,
              x + static_cast<std::ptrdiff_t>(lead())};
    for (std::size_t r = 0; r < kLanes; ++r) {
      step.coded |= std::uint32_t{static_cast<std::size_t>(x) < rows_[r].length} << r;
    }
    if (!visit(step)) return false;
    if (x == 0) {  // what lies before the first value is like it
      for (std::size_t i = 0; i < lead() * kLanes; ++i) {
        cells[index(0, 0) + static_cast<std::ptrdiff_t>(i)] =
            cells[step.index + static_cast<std::ptrdiff_t>(i % kLanes)];
      }
    }
  }
  return true;
}

template <class T, class Begin, class Visit>
bool Wavefront::walk(T* cells, std::uint8_t* magnitudes, Begin begin, Visit visit) const {
  constexpr auto kWindow = static_cast<std::ptrdiff_t>(kLanes);
  std::array<T, kLanes> kept_cells;
  std::array<std::uint8_t, kLanes> kept_magnitudes;
  for (const Run& run : runs_) {
    begin(run.kind);
    if (line_) return walk_line(cells, visit);
    std::ptrdiff_t phase = 0;
    std::ptrdiff_t first_row = run.begin - (kWindow - 1);
    const std::ptrdiff_t end = skew_ * (run.end - 1 + kWindow);
    for (std::ptrdiff_t time = skew_ * run.begin; time < end; ++time) {
      const auto bit = static_cast<std::size_t>(first_row + kWindow);
      const std::uint64_t two = std::uint64_t{real_[bit / 32 + 1]} << 32 | real_[bit / 32];
      const auto real = static_cast<std::uint32_t>(two >> (bit % 32));
      std::uint32_t own = ~std::uint32_t{0};
      if (first_row < run.begin) own <<= run.begin - first_row;
      if (first_row + kWindow > run.end)
        own &= ~std::uint32_t{0} >> (first_row + kWindow - run.end);
      const auto at = static_cast<std::size_t>(phase);
      const Step step{margin_ + first_row + kWindow * time, value_lanes_[at] & real & own,
                      first_row, time};
      T* const here = cells + step.index;
      std::uint8_t* const codes_here = magnitudes + step.index;
      if (step.coded != 0) {
        if (own != ~std::uint32_t{0}) {
          std::copy_n(here, kLanes, kept_cells.begin());
          std::copy_n(codes_here, kLanes, kept_magnitudes.begin());
        }
        if (!visit(step)) return false;
        for (std::uint32_t others = ~own; others != 0; others &= others - 1) {
          const int lane = std::countr_zero(others);
          here[lane] = kept_cells[static_cast<std::size_t>(lane)];
          codes_here[lane] = kept_magnitudes[static_cast<std::size_t>(lane)];
        }
      }
      for (std::uint32_t lanes = padding_lanes_[at] & real & own; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        const std::ptrdiff_t column = time - skew_ * (first_row + lane);
        // Left of a row: what lies above and to the right; right of it: what lies to the left.
        here[lane] =
            here[lane +
                 (column < static_cast<std::ptrdiff_t>(lead()) ? kWindow - row_pitch_ : -kWindow)];
      }
      for (std::uint32_t lanes = (value_lanes_[at] | padding_lanes_[at]) & ~real & own; lanes != 0;
           lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        here[lane] = here[lane + rows_[static_cast<std::size_t>(first_row + lane)].substitute];
      }
      if (++phase == skew_) {
        phase = 0;
        ++first_row;
      }
    }
    if (run.first_plane) {
      const auto columns = static_cast<std::ptrdiff_t>(extents_[3] + lead() + kTrail);
      const std::ptrdiff_t back = static_cast<std::ptrdiff_t>(plane_rows_) * row_pitch_;
      for (std::ptrdiff_t r = run.begin; r < run.end; ++r) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) cells[index(r, c) - back] = cells[index(r, c)];
      }
    }
  }
  return true;
}

}  // namespace firn::pipelines
