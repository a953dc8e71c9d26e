// NumPy's .npy files: the header before the values. Only what Firn can hold is taken: little-endian
// f4 and f8. Format: numpy.lib.format's documentation, versions 1.0 to 3.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "firn/firn.hpp"

namespace firn_cli {

struct NpyHeader {
  firn::Type type = firn::Type::f32;
  std::vector<std::uint64_t> extents;  // any rank, slowest first; empty for a single value
  bool fortran_order = false;          // the first axis is the fastest in memory
  std::size_t data_offset = 0;
};

bool has_npy_magic(std::span<const std::uint8_t> bytes);
// A Failure that begins with `name` when the header is broken or the type is not one of ours.
NpyHeader parse_npy_header(const std::string& name, std::span<const std::uint8_t> bytes);

// The bytes that come before the values of a C-ordered array; a multiple of 64 long.
std::string make_npy_header(firn::Type type, const firn::Shape& shape);

}  // namespace firn_cli
