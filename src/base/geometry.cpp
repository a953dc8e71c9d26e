#include "base/geometry.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace firn {

Status check_shapes(Type type, const Shape& shape, const Shape& chunk,
                    std::uint64_t max_chunk_values) {
  if (shape.rank < 1 || shape.rank > kMaxRank) {
    return Error{ErrorCode::invalid_argument,
                 "rank " + std::to_string(shape.rank) + "; Firn takes arrays of rank 1 to 4"};
  }
  std::uint64_t count = 1;
  const std::uint64_t limit =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size_of(type);
  for (int k = 0; k < shape.rank; ++k) {
    const std::uint64_t extent = shape.extents[k];
    if (extent != 0 && count > limit / extent) {
      return Error{ErrorCode::invalid_argument, "the extents' product does not fit 63 bits"};
    }
    count *= extent;
  }
  if (chunk.rank != shape.rank) {
    return Error{ErrorCode::invalid_argument,
                 "chunk of rank " + std::to_string(chunk.rank) + " for an array of rank " +
                     std::to_string(shape.rank) + "; they must be equal"};
  }
  std::uint64_t values = 1;
  for (int k = 0; k < chunk.rank; ++k) {
    const std::uint64_t extent = chunk.extents[k];
    if (extent == 0 && shape.extents[k] != 0) {
      return Error{ErrorCode::invalid_argument, "a chunk extent is 0"};
    }
    if (extent != 0 && values > max_chunk_values / extent) {
      return Error{ErrorCode::invalid_argument, "a chunk of more than " +
                                                    std::to_string(max_chunk_values) +
                                                    " values; about 262144 is usual"};
    }
    values *= extent;
  }
  return std::monostate{};
}

namespace {

// a + b - 1 could overflow: shapes come here before they are checked.
std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

}  // namespace

Shape choose_chunk(const Shape& shape, std::uint64_t target) {
  Shape chunk = shape;
  if (shape.count() <= target) return chunk;
  // Whole planes, if they are small: the slowest axis is where a cut costs least, and memory is
  // read in order.
  constexpr std::uint64_t kLeastPlanes = 24;
  if (shape.rank == 3 && shape.extents[1] <= target && shape.extents[2] <= target &&
      shape.extents[1] * shape.extents[2] <= target / kLeastPlanes) {
    const std::uint64_t planes = target / (shape.extents[1] * shape.extents[2]);
    chunk.extents[0] = ceil_divide(shape.extents[0], ceil_divide(shape.extents[0], planes));
    return chunk;
  }
  // The largest side s such that the box of min(extent, s), or 2 s along rows, holds at most
  // target values.
  std::uint64_t low = 1, high = target;
  while (low < high) {
    const std::uint64_t side = low + (high - low + 1) / 2;
    std::uint64_t values = 1;
    for (int k = 0; k < shape.rank; ++k) {
      const std::uint64_t extent = std::min(shape.extents[k], k + 1 < shape.rank ? side : 2 * side);
      values = extent != 0 && values > target / extent ? target + 1 : values * extent;
    }
    (values <= target ? low : high) = values <= target ? side : side - 1;
  }
  for (int k = 0; k < shape.rank; ++k) {
    const std::uint64_t extent = shape.extents[k];
    const std::uint64_t side = k + 1 < shape.rank ? low : 2 * low;
    chunk.extents[k] = ceil_divide(extent, ceil_divide(extent, side));
  }
  // Rows of whole vectors, unless that is the array's own length.
  std::uint64_t& row = chunk.extents[shape.rank - 1];
  row = std::min(shape.extents[shape.rank - 1], (row + 15) / 16 * 16);
  return chunk;
}

Shape choose_slab(const Shape& shape, std::uint64_t target) {
  Shape chunk = shape;
  if (shape.count() == 0) return chunk;
  std::uint64_t faster = 1;
  for (int k = shape.rank - 1; k >= 0; --k) {
    const std::uint64_t extent = shape.extents[k];
    const std::uint64_t room = std::max<std::uint64_t>(1, target / faster);
    if (extent > room) {
      chunk.extents[k] = ceil_divide(extent, ceil_divide(extent, room));
      for (int j = 0; j < k; ++j) chunk.extents[j] = 1;
      return chunk;
    }
    faster *= extent;
  }
  return chunk;
}

Grid::Grid(const Shape& shape, const Shape& chunk) : shape_(shape), chunk_(chunk), count_(1) {
  for (int k = 0; k < shape.rank; ++k) {
    const std::uint64_t extent = shape.extents[k];
    // Divisions are what small messages wait for.
    pieces_[k] = extent == 0                  ? 0
                 : extent <= chunk.extents[k] ? 1
                                              : ceil_divide(extent, chunk.extents[k]);
    count_ *= pieces_[k];
  }
}

Grid::Part Grid::part(const Region& box) const {
  Part part{*this, {}, {}, box.shape.count() == 0 ? 0u : 1u};
  for (int k = 0; part.count != 0 && k < shape_.rank; ++k) {
    part.first[k] = box.origin[k] / chunk_.extents[k];
    const std::uint64_t last = (box.origin[k] + box.shape.extents[k] - 1) / chunk_.extents[k];
    part.pieces[k] = last - part.first[k] + 1;
    part.count *= part.pieces[k];
  }
  return part;
}

std::uint64_t Grid::Part::number(std::uint64_t i) const {
  std::uint64_t number = 0, stride = 1;
  for (int k = grid.shape_.rank - 1; k >= 0; --k) {
    number += first[k] * stride;
    if (pieces[k] != 1) {
      number += i % pieces[k] * stride;
      i /= pieces[k];
    }
    stride *= grid.pieces_[k];
  }
  return number;
}

Region Grid::region(std::uint64_t number) const {
  Region region;
  region.shape.rank = shape_.rank;
  for (int k = shape_.rank - 1; k >= 0; --k) {
    std::uint64_t begin = 0;
    if (pieces_[k] != 1) {
      begin = number % pieces_[k] * chunk_.extents[k];
      number /= pieces_[k];
    }
    region.origin[k] = begin;
    region.shape.extents[k] = std::min(chunk_.extents[k], shape_.extents[k] - begin);
  }
  return region;
}

std::array<std::int64_t, kMaxRank> contiguous_strides(const Shape& shape) {
  std::array<std::int64_t, kMaxRank> strides{};
  std::uint64_t stride = 1;  // wraps only where another extent is 0
  for (int k = shape.rank - 1; k >= 0; --k) {
    strides[k] = static_cast<std::int64_t>(stride);
    stride *= shape.extents[k];
  }
  return strides;
}

}  // namespace firn
