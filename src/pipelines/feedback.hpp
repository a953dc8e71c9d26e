// What the pipelines that predict from decoded values share: the points that end up exact, and how
// far the others are from the originals.
#pragma once

#include <algorithm>
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

// Mean squared error, in units of the bound, of some 4,096 of a chunk's points, not in step with
// any axis; exact ones do not count. Sums in a fixed order.
template <class T>
class ErrorSample {
 public:
  ErrorSample(double bound, std::size_t count)
      : inverse_bound_(1 / bound),
        every_(std::max<std::size_t>(1, count / 4096)),
        drift_(7919 % every_) {}

  // The next point to add; they ascend. Of each `every_` it is one, another as it drifts.
  std::size_t next() const { return begin_ + within_; }
  void advance() {
    begin_ += every_;
    within_ += drift_;
    if (within_ >= every_) within_ -= every_;
  }
  void add(T value, T decoded) {
    const double error =
        (static_cast<double>(decoded) - static_cast<double>(value)) * inverse_bound_;
    if (!(error * error <= 1)) return;
    sum_ += error * error;
    ++added_;
  }
  double mean_square() const { return added_ == 0 ? 0 : sum_ / static_cast<double>(added_); }

 private:
  double inverse_bound_;
  std::size_t every_, drift_;
  std::size_t begin_ = 0, within_ = 0;
  double sum_ = 0;
  std::size_t added_ = 0;
};

}  // namespace firn::pipelines
