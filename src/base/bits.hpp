// Bit strings: bytes are filled from the least significant bit, and so are numbers. For heads of
// payloads; what is large has kernels of its own.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace firn {

// Appends to a ByteWriter. finish() pads the last byte with zeros.
class BitWriter {
 public:
  explicit BitWriter(ByteWriter& out) : out_(out) {}
  // The low `bits` of a value that has no others; at most 32.
  void put(std::uint32_t value, int bits) {
    pending_ |= std::uint64_t{value} << used_;
    used_ += bits;
    if (used_ < 32) return;
    out_.write(static_cast<std::uint32_t>(pending_));
    pending_ >>= 32;
    used_ -= 32;
  }
  void finish() {
    for (; used_ > 0; used_ -= 8, pending_ >>= 8) out_.write(static_cast<std::uint8_t>(pending_));
    used_ = 0;
  }

 private:
  ByteWriter& out_;
  std::uint64_t pending_ = 0;
  int used_ = 0;  // bits of it, below 32
};

// Takes whole bytes from a ByteReader, whose ok() tells whether they were there.
class BitReader {
 public:
  explicit BitReader(ByteReader& in) : in_(in) {}
  // At most 32.
  std::uint32_t get(int bits) {
    for (; left_ < bits; left_ += 8) {
      pending_ |= std::uint64_t{in_.read<std::uint8_t>()} << left_;
    }
    const auto value = static_cast<std::uint32_t>(pending_ & ((std::uint64_t{1} << bits) - 1));
    pending_ >>= bits;
    left_ -= bits;
    return value;
  }
  bool ok() const { return in_.ok(); }
  // Whether what pads the last byte is zeros.
  bool finish() const { return in_.ok() && pending_ == 0; }

 private:
  ByteReader& in_;
  std::uint64_t pending_ = 0;
  int left_ = 0;  // bits of it
};

}  // namespace firn
