// What the pipelines that predict from decoded values share: the points that end up exact.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/geometry.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

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
  // Those whose bits cost something: not zeros, which only a point-wise bound makes exact.
  std::size_t costly(bool pointwise) const {
    if (found_ == 0 || !pointwise) return found_;
    std::size_t costly = 0;
    workspace_.exact_map.for_each(0, count_, [&](std::size_t i) { costly += values_[i] != 0; });
    return costly;
  }
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

}  // namespace firn::pipelines
