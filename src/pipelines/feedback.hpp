// What the pipelines that predict from decoded values share: the chunk as one array, the points
// that end up exact, and the way back into the chunk's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/geometry.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

// A contiguous copy of the chunk, unless it is contiguous already.
template <class T>
const T* contiguous(const Box<const T>& chunk, Workspace& workspace) {
  const T* whole = nullptr;
  if (chunk.row_stride() == 1 && chunk.row_length() == chunk.count()) {
    chunk.for_each_row([&](const T* row, std::size_t) {
      whole = row;
      return true;
    });
    return whole;
  }
  T* copy = reinterpret_cast<T*>(workspace.values.reserve(chunk.count() * sizeof(T)));
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      copy[offset + i] = row[static_cast<std::int64_t>(i) * chunk.row_stride()];
    }
    return true;
  });
  return copy;
}

// The exact points of a chunk, gathered in any order but listed in that of the chunk.
template <class T>
class ExactPoints {
 public:
  ExactPoints(const T* values, std::size_t count, Workspace& workspace)
      : values_(values), count_(count), workspace_(workspace) {}
  void add(std::size_t i) {
    if (found_++ == 0) workspace_.exact_map.reset(count_);
    workspace_.exact_map.set(i);
  }
  std::size_t found() const { return found_; }
  void list() {
    if (found_ == 0) return;
    T* exact = reinterpret_cast<T*>(workspace_.exact_bytes.reserve(found_ * sizeof(T)));
    workspace_.exact_map.for_each(0, count_, [&](std::size_t i) { *exact++ = values_[i]; });
  }

 private:
  const T* values_;
  std::size_t count_;
  Workspace& workspace_;
  std::size_t found_ = 0;
};

// Writes decoded points to the chunk's place, then the exact ones on top.
template <class T>
void store_points(const T* points, bool any_exact, const Box<T>& chunk, Workspace& workspace) {
  const std::uint8_t* exact = workspace.exact_bytes.data();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    const std::size_t length = chunk.row_length();
    const std::int64_t stride = chunk.row_stride();
    if (stride == 1) {
      std::memcpy(row, points + offset, length * sizeof(T));
    } else {
      for (std::size_t i = 0; i < length; ++i) {
        row[static_cast<std::int64_t>(i) * stride] = points[offset + i];
      }
    }
    if (any_exact) {
      workspace.exact_map.for_each(offset, offset + length, [&](std::size_t i) {
        std::memcpy(&row[static_cast<std::int64_t>(i - offset) * stride], exact, sizeof(T));
        exact += sizeof(T);
      });
    }
    return true;
  });
}

}  // namespace firn::pipelines
