// CereSZ's block code: see ceresz.hpp.
#include "encode/ceresz.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace firn::encode {
namespace {

constexpr std::size_t kPlaneBytes = kCereszBlock / 8;

// A plane is one bit of each value, the block's first in the lowest bit of the first byte.
std::uint8_t* put_word(std::uint32_t word, std::uint8_t* out) {
  for (std::size_t b = 0; b < kPlaneBytes; ++b) *out++ = static_cast<std::uint8_t>(word >> (8 * b));
  return out;
}

std::uint32_t get_word(const std::uint8_t* in) {
  std::uint32_t word = 0;
  for (std::size_t b = 0; b < kPlaneBytes; ++b) word |= std::uint32_t{in[b]} << (8 * b);
  return word;
}

using Block = std::array<std::uint32_t, kCereszBlock>;

// Transposes 32 x 32 bits (bit j of word i <-> bit i of word j) by exchanging ever smaller
// squares; turns values into planes and back.
void transpose(Block& words) {
  std::uint32_t mask = 0x0000FFFF;
  for (unsigned size = 16; size != 0; size /= 2, mask ^= mask << size) {
    for (unsigned i = 0; i < kCereszBlock; i = (i + size + 1) & ~size) {
      const std::uint32_t differing = ((words[i] >> size) ^ words[i + size]) & mask;
      words[i] ^= differing << size;
      words[i + size] ^= differing;
    }
  }
}

}  // namespace

std::uint8_t* ceresz_encode(const std::int32_t* codes, std::size_t n, CereszHeader header,
                            std::uint8_t* out) {
  for (std::size_t start = 0; start < n; start += kCereszBlock) {
    const std::size_t count = std::min(kCereszBlock, n - start);
    Block magnitudes{};
    std::uint32_t signs = 0, all = 0, previous = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto code = static_cast<std::uint32_t>(codes[start + i]);
      const std::uint32_t difference = code - previous;
      previous = code;
      const std::uint32_t negative = difference >> 31;
      magnitudes[i] = (difference ^ (0 - negative)) + negative;
      signs |= negative << i;
      all |= magnitudes[i];
    }
    const int length = std::bit_width(all);
    *out++ = static_cast<std::uint8_t>(length);
    for (int b = 1; b < static_cast<int>(header); ++b) *out++ = 0;
    if (length == 0) continue;
    out = put_word(signs, out);
    transpose(magnitudes);
    for (int p = 0; p < length; ++p) out = put_word(magnitudes[p], out);
  }
  return out;
}

const std::uint8_t* ceresz_decode(const std::uint8_t* in, const std::uint8_t* end,
                                  CereszHeader header, std::int32_t* codes, std::size_t n) {
  const auto header_bytes = static_cast<std::size_t>(header);
  for (std::size_t start = 0; start < n; start += kCereszBlock) {
    const std::size_t count = std::min(kCereszBlock, n - start);
    if (static_cast<std::size_t>(end - in) < header_bytes) return nullptr;
    const std::size_t length = in[0];
    if (length > 32 ||
        std::any_of(in + 1, in + header_bytes, [](auto byte) { return byte != 0; })) {
      return nullptr;
    }
    in += header_bytes;
    if (length == 0) {
      std::fill_n(codes + start, count, 0);
      continue;
    }
    if (static_cast<std::size_t>(end - in) < (1 + length) * kPlaneBytes) return nullptr;
    const std::uint32_t signs = get_word(in);
    Block magnitudes{};
    for (std::size_t p = 0; p < length; ++p) magnitudes[p] = get_word(in + (1 + p) * kPlaneBytes);
    in += (1 + length) * kPlaneBytes;
    transpose(magnitudes);
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t negative = signs >> i & 1;
      code += (magnitudes[i] ^ (0 - negative)) + negative;
      codes[start + i] = static_cast<std::int32_t>(code);
    }
  }
  return in;
}

}  // namespace firn::encode
