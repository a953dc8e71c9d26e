// A chunk's values one behind the other, and back to their places.
#pragma once

#include <cstddef>
#include <limits>

#include "base/geometry.hpp"
#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// The value that is a mask, or NaN, which nothing equals.
template <class T>
T fill_of(const Parameters& parameters) {
  return parameters.fill ? static_cast<T>(*parameters.fill) : std::numeric_limits<T>::quiet_NaN();
}

// Such rows cost more than a copy that has them in one.
template <class T>
bool has_short_rows(const Box<T>& chunk) {
  constexpr std::size_t kShortRow = 512;
  return chunk.row_length() < kShortRow && chunk.row_length() < chunk.count();
}

// Where the chunk's values lie, when they lie one behind the other; null otherwise.
template <class T>
T* contiguous_memory(const Box<T>& chunk) {
  T* whole = nullptr;
  if (chunk.row_stride() == 1 && chunk.row_length() == chunk.count()) {
    chunk.for_each_row([&](T* row, std::size_t) {
      whole = row;
      return true;
    });
  }
  return whole;
}

// A contiguous copy of the chunk, unless it is contiguous already.
template <class T>
const T* contiguous(const Box<const T>& chunk, Workspace& workspace);

// Writes decoded values, which lie one behind the other (or where they belong already), to the
// chunk's place, with the exact points of the workspace on top when there are any.
template <class T>
void write_values(const T* values, bool any_exact, const Box<T>& chunk, Workspace& workspace);

}  // namespace firn::pipelines
