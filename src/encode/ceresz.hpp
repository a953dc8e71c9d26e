// CereSZ's block code as its paper describes it, for comparison (variant of pipeline blockpack):
// blocks of 32 codes, each with its own first difference, one length, a sign plane and magnitude
// planes. Layout: docs/format.md, "ceresz payload".
#pragma once

#include <cstddef>
#include <cstdint>

namespace firn::encode {

inline constexpr std::size_t kCereszBlock = 32;

// Bytes of a block's header, which holds its length: one, or the four of the wafer's messages.
enum class CereszHeader : std::uint8_t { one_byte = 1, four_bytes = 4 };

// The most bytes that n codes take.
constexpr std::size_t ceresz_capacity(std::size_t n, CereszHeader header) {
  const std::size_t blocks = n / kCereszBlock + (n % kCereszBlock != 0);
  return blocks * (static_cast<std::size_t>(header) + (1 + 32) * (kCereszBlock / 8));
}

// Returns the end of what it wrote; out has ceresz_capacity(n, header) bytes. Takes quantised
// values, not residuals: each block restarts its differences. Neither call allocates.
std::uint8_t* ceresz_encode(const std::int32_t* codes, std::size_t n, CereszHeader header,
                            std::uint8_t* out);

// Reads n codes from [in, end) and nothing outside it; returns where they ended, or nullptr when
// the bytes are not the code of n values (codes is then unspecified).
const std::uint8_t* ceresz_decode(const std::uint8_t* in, const std::uint8_t* end,
                                  CereszHeader header, std::int32_t* codes, std::size_t n);

}  // namespace firn::encode
