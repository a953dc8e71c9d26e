// The stream header: what a stream holds and under which bound. Layout: docs/format.md, "Header".
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <optional>
#include <span>

#include "base/bytes.hpp"

namespace firn::container {

struct Header {
  Type type = Type::f32;
  Shape shape;
  Shape chunk;                 // of the same rank
  Bound bound;                 // as asked for
  double bound_abs = 0;        // of steps, exact in `type`; 0 means lossless; for pwrel a fraction
  std::uint8_t tighter = 0;    // by so many 256ths what holds is tighter than that; of a ratio only
  int margin = 0;              // as in format.hpp
  std::optional<double> fill;  // exact in `type`
  std::uint32_t checksum = 0;  // set by write and read

  // The bound that holds.
  double promised() const { return bound_abs * ((256.0 - tighter) / 256); }
};

inline constexpr std::size_t kMaxHeaderBytes = 7 + 8 * kMaxVarintBytes + 3 * 8 + 2 + 4;

void write_header(Header& header, ByteWriter& out);

// Leaves the reader behind the header.
Result<Header> read_header(ByteReader& in, std::span<const std::uint8_t> stream);

// Low 32 bits of XXH3-64.
std::uint32_t checksum(std::span<const std::uint8_t> bytes, std::uint64_t seed = 0);

}  // namespace firn::container
