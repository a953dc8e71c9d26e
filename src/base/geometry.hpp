// How an array is cut into chunks, and how the rows of one lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <firn/firn.hpp>

namespace firn {

// Extents that cannot overflow: values and bytes fit 63 bits, a chunk holds at most so many values.
Status check_shapes(Type type, const Shape& shape, const Shape& chunk,
                    std::uint64_t max_chunk_values);

// A chunk shape of about `target` values, near to a cube, whose pieces are of even size.
Shape choose_chunk(const Shape& shape, std::uint64_t target);
// The same, but contiguous in memory: whole rows and planes as far as they fit.
Shape choose_slab(const Shape& shape, std::uint64_t target);

// The chunks of an array, numbered in row-major order.
class Grid {
 public:
  Grid() = default;
  Grid(const Shape& shape, const Shape& chunk);
  std::uint64_t count() const { return count_; }
  Region region(std::uint64_t number) const;

  // The chunks that touch a box, as the i-th of `count`; ascending.
  struct Part {
    const Grid& grid;
    std::array<std::uint64_t, kMaxRank> first;
    std::array<std::uint64_t, kMaxRank> pieces;
    std::uint64_t count;
    std::uint64_t number(std::uint64_t i) const;
  };
  Part part(const Region& box) const;

 private:
  Shape shape_;
  Shape chunk_;
  std::array<std::uint64_t, kMaxRank> pieces_{};
  std::uint64_t count_ = 0;
};

// Row-major strides of a contiguous array, in values.
std::array<std::int64_t, kMaxRank> contiguous_strides(const Shape& shape);

// A box of an array in memory, row by row. Rows that follow each other without a gap are joined.
template <class T>
class Box {
 public:
  // `data` is the array's first value.
  Box(T* data, const std::array<std::int64_t, kMaxRank>& strides, const Region& region);

  int rank() const { return rank_; }
  const std::array<std::size_t, kMaxRank>& extents() const { return extents_; }
  std::size_t count() const { return count_; }
  // Values of a row lie `row_stride` apart; 1 unless the caller's array is strided there.
  std::size_t row_length() const { return row_length_; }
  std::int64_t row_stride() const { return row_stride_; }

  // The box inside this one at `origin`.
  Box part(const std::array<std::size_t, kMaxRank>& origin,
           const std::array<std::size_t, kMaxRank>& extents) const {
    Region region;
    region.shape.rank = rank_;
    for (int k = 0; k < rank_; ++k) {
      region.origin[k] = origin[k];
      region.shape.extents[k] = extents[k];
    }
    return Box(data_, strides_, region);
  }

  // visit(T* row, size_t offset_in_chunk) for each row, in order; stops when it returns false.
  template <class Visit>
  bool for_each_row(Visit visit) const;

 private:
  T* data_;
  int rank_;
  std::array<std::int64_t, kMaxRank> strides_;
  std::array<std::size_t, kMaxRank> extents_{};
  std::size_t count_ = 1;
  // The same box after joining.
  int loops_ = 0;
  std::array<std::size_t, kMaxRank> loop_extents_{};
  std::array<std::int64_t, kMaxRank> loop_strides_{};
  std::size_t row_length_ = 1;
  std::int64_t row_stride_ = 1;
};

template <class T>
Box<T>::Box(T* data, const std::array<std::int64_t, kMaxRank>& strides, const Region& region)
    : data_(data), rank_(region.shape.rank), strides_(strides) {
  for (int k = 0; k < rank_; ++k) {
    extents_[k] = static_cast<std::size_t>(region.shape.extents[k]);
    count_ *= extents_[k];
    data_ += static_cast<std::int64_t>(region.origin[k]) * strides[k];
  }
  row_length_ = extents_[rank_ - 1];
  row_stride_ = row_length_ == 1 ? 1 : strides[rank_ - 1];
  int k = rank_ - 2;
  for (; k >= 0; --k) {
    if (extents_[k] == 1) continue;
    if (strides[k] != row_stride_ * static_cast<std::int64_t>(row_length_)) break;
    row_length_ *= extents_[k];
  }
  for (int j = 0; j <= k; ++j) {
    if (extents_[j] == 1) continue;
    loop_extents_[loops_] = extents_[j];
    loop_strides_[loops_] = strides[j];
    ++loops_;
  }
}

template <class T>
template <class Visit>
bool Box<T>::for_each_row(Visit visit) const {
  if (count_ == 0) return true;
  std::array<std::size_t, kMaxRank> at{};
  T* row = data_;
  for (std::size_t offset = 0;; offset += row_length_) {
    if (!visit(row, offset)) return false;
    int k = loops_ - 1;
    while (k >= 0 && at[k] + 1 == loop_extents_[k]) {
      row -= static_cast<std::int64_t>(at[k]) * loop_strides_[k];
      at[k] = 0;
      --k;
    }
    if (k < 0) return true;
    ++at[k];
    row += loop_strides_[k];
  }
}

}  // namespace firn
