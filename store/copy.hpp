// Values between the caller's memory, which may have strides, and a slot, which has none.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <firn/firn.hpp>

namespace firn::store {

// Calls copy(caller's bytes, offset in the slot, bytes) for every piece that is contiguous in both.
template <class Byte, class View, class Copy>
void for_each_run(const View& view, Copy copy) {
  const auto value_bytes = static_cast<std::int64_t>(size_of(view.type));
  auto* base = static_cast<Byte*>(view.data);
  const std::uint64_t count = view.shape.count();
  if (!view.strides || count == 0) {
    if (count > 0) copy(base, std::uint64_t{0}, count * static_cast<std::uint64_t>(value_bytes));
    return;
  }
  const int rank = view.shape.rank;
  const auto& extents = view.shape.extents;
  const auto& strides = *view.strides;
  const auto last = static_cast<std::size_t>(rank - 1);
  const bool whole_rows = strides[last] == 1;
  const std::uint64_t run = whole_rows ? extents[last] : 1;
  const std::uint64_t run_bytes = run * static_cast<std::uint64_t>(value_bytes);
  std::array<std::uint64_t, kMaxRank> at{};
  for (std::uint64_t i = 0; i < count / run; ++i) {
    std::int64_t offset = 0;
    for (int k = 0; k < rank; ++k) {
      const auto axis = static_cast<std::size_t>(k);
      offset += static_cast<std::int64_t>(at[axis]) * strides[axis];
    }
    copy(base + offset * value_bytes, i * run_bytes, run_bytes);
    for (int k = whole_rows ? rank - 2 : rank - 1; k >= 0; --k) {
      const auto axis = static_cast<std::size_t>(k);
      if (++at[axis] < extents[axis]) break;
      at[axis] = 0;
    }
  }
}

inline void copy_in(const ArrayView& from, std::uint8_t* slot) {
  for_each_run<const std::uint8_t>(
      from, [&](const std::uint8_t* run, std::uint64_t offset, std::uint64_t bytes) {
        std::memcpy(slot + offset, run, static_cast<std::size_t>(bytes));
      });
}

inline void copy_out(const std::uint8_t* slot, const MutableArrayView& to) {
  for_each_run<std::uint8_t>(to, [&](std::uint8_t* run, std::uint64_t offset, std::uint64_t bytes) {
    std::memcpy(run, slot + offset, static_cast<std::size_t>(bytes));
  });
}

}  // namespace firn::store
