// Counts what this program allocates, from any library in it.
#pragma once

#include <cstddef>

namespace firn::test {

struct Allocations {
  std::size_t calls;       // since reset
  std::size_t peak_bytes;  // most bytes held beyond those held at reset
  std::ptrdiff_t held_bytes;
};

bool counting_works();  // false under a sanitizer, which has its own allocator
void reset_allocations();
Allocations allocations();

}  // namespace firn::test
