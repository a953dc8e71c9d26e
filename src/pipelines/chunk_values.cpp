#include "pipelines/chunk_values.hpp"

#include <cstdint>
#include <cstring>

#include "pipelines/workspace.hpp"

namespace firn::pipelines {

template <class T>
const T* contiguous(const Box<const T>& chunk, Workspace& workspace) {
  if (const T* whole = contiguous_memory(chunk)) return whole;
  T* copy = reinterpret_cast<T*>(workspace.values.reserve(chunk.count() * sizeof(T)));
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    if (chunk.row_stride() == 1) {
      std::memcpy(copy + offset, row, chunk.row_length() * sizeof(T));
      return true;
    }
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      copy[offset + i] = row[static_cast<std::int64_t>(i) * chunk.row_stride()];
    }
    return true;
  });
  return copy;
}

template <class T>
void write_values(const T* values, bool any_exact, const Box<T>& chunk, Workspace& workspace) {
  const std::uint8_t* exact = workspace.exact_bytes.data();
  const std::size_t length = chunk.row_length();
  const std::int64_t stride = chunk.row_stride();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    if (stride != 1) {
      for (std::size_t i = 0; i < length; ++i) {
        row[static_cast<std::int64_t>(i) * stride] = values[offset + i];
      }
    } else if (row != values + offset) {
      std::memcpy(row, values + offset, length * sizeof(T));
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

template const float* contiguous(const Box<const float>&, Workspace&);
template const double* contiguous(const Box<const double>&, Workspace&);
template void write_values(const float*, bool, const Box<float>&, Workspace&);
template void write_values(const double*, bool, const Box<double>&, Workspace&);

}  // namespace firn::pipelines
