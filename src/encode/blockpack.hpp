// Residuals to bytes at the speed of memory: bit planes of superblocks of 256, the low planes as
// they are, the high ones without their zero bytes. Layout: docs/format.md, "blockpack payload".
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/simd_target.hpp"

namespace firn::encode {

// Values that share a header. A last superblock that is not full is coded as if zeros followed.
inline constexpr std::size_t kSuperblock = 256;
// Runs of zero superblocks end at multiples of this, so coding an array tile by tile gives the
// same bytes as coding it at once. A tile of int32 residuals stays in the first-level cache.
inline constexpr std::size_t kBlockpackTile = 4096;
// What an encoder may write (and leave unspecified) behind the bytes that it returns.
inline constexpr std::size_t kBlockpackSlack = 64;

// Bytes that `out` must have for n residuals of residual_bytes (2, 4 or 8), slack included.
constexpr std::size_t blockpack_capacity(std::size_t n, std::size_t residual_bytes) {
  const std::size_t superblocks = n / kSuperblock + (n % kSuperblock != 0);
  return superblocks * (3 + kSuperblock * residual_bytes) + kBlockpackSlack;
}

// Neither call allocates or fails, except that decode reports damage.
template <class Q>
struct BlockpackKernels {
  // Returns the end of what it wrote; out has blockpack_capacity(n, sizeof(Q)) bytes.
  std::uint8_t* (*encode)(const Q* residuals, std::size_t n, std::uint8_t* out);
  // Reads n residuals from [in, end) and nothing outside it; returns where they ended, or
  // nullptr when the bytes are not the code of n residuals (residuals is then unspecified).
  const std::uint8_t* (*decode)(const std::uint8_t* in, const std::uint8_t* end, Q* residuals,
                                std::size_t n);
};

// Q is std::int16_t, std::int32_t or std::int64_t.
template <class Q>
const BlockpackKernels<Q>& blockpack_kernels(simd::Target target);

}  // namespace firn::encode
