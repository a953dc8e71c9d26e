// Places for samples that no period of what is sampled, such as the length of its rows, can fall in
// with: multiples of the golden section, whose fractions are spread as evenly as can be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firn {

// One of `count` for each i below 2^32; the first, which may be of a kind of its own, for 0.
inline std::uint64_t spread(std::uint64_t i, std::uint64_t count) {
  constexpr std::uint32_t kGoldenSection = 2654435769;  // times 2^32
  const std::uint64_t fraction = static_cast<std::uint32_t>(i) * kGoldenSection;
  return (fraction * (count & 0xFFFFFFFFu) >> 32) + fraction * (count >> 32);
}

// One of each `step` neighbours, not always the same: function(i) for those below `count`.
template <class Function>
void for_one_in(std::size_t step, std::size_t count, Function function) {
  if (step == 1) {
    for (std::size_t i = 0; i < count; ++i) function(i);
    return;
  }
  for (std::size_t turn = 0, begin = 0; begin < count; ++turn, begin += step) {
    const std::size_t i = begin + static_cast<std::size_t>(spread(turn, step));
    if (i < count) function(i);
  }
}

}  // namespace firn
