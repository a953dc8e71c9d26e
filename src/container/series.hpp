// Several streams one after the other, read as one array that grows along its slowest axis, with a
// directory behind the last. Layout: docs/format.md, "Series".
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "container/header.hpp"

namespace firn::container {

// One stream of a series.
struct Part {
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t extent;  // along the slowest axis
};

struct Series {
  std::vector<Part> parts;
  std::uint64_t end = 0;  // where those that are there whole end: more may be appended here
  // Bytes follow that are neither a directory nor a whole stream that fits the others.
  bool ragged = false;
  bool cut = false;      // they are such a stream, cut off, and the last of the parts
  bool foreign = false;  // they are a stream that does not fit the others
};

// Through the directory, or else by walking from stream to stream.
Series find_parts(std::span<const std::uint8_t> bytes);

// True when `bytes` end like a directory does.
bool ends_in_directory(std::span<const std::uint8_t> bytes);

// Two parts of one array: the same type and extents but for the slowest.
bool same_series(const Header& a, const Header& b);
// What is wrong where they are not, behind so many along the slowest axis.
Error foreign_part(std::uint64_t steps);

std::size_t directory_capacity(std::size_t parts);
void write_directory(std::span<const Part> parts, ByteWriter& out);

}  // namespace firn::container
