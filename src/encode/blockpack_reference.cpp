// The blockpack payload straight from its specification: what every SIMD target must reproduce.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "encode/blockpack.hpp"

namespace firn::encode::reference {
namespace {

constexpr std::size_t kPlaneBytes = kSuperblock / 8;
constexpr int kMaxPlanes = 64;
// A plane with more nonzero bytes would not gain a byte from their elimination.
constexpr int kMaxSparse = 27;
constexpr int kLongHeader = 15;  // a width that the header's nibble cannot hold

using Plane = std::array<std::uint8_t, kPlaneBytes>;

template <class Q>
std::make_unsigned_t<Q> zigzag(Q value) {
  using U = std::make_unsigned_t<Q>;
  return static_cast<U>((static_cast<U>(value) << 1) ^ (value < 0 ? ~U(0) : U(0)));
}

template <class U>
std::make_signed_t<U> unzigzag(U code) {
  return static_cast<std::make_signed_t<U>>((code >> 1) ^ ((code & 1) != 0 ? ~U(0) : U(0)));
}

// One bit for each byte of the plane, set where the byte is not zero.
std::uint32_t nonzero_bytes(const Plane& plane) {
  std::uint32_t mask = 0;
  for (std::size_t j = 0; j < kPlaneBytes; ++j) mask |= std::uint32_t(plane[j] != 0) << j;
  return mask;
}

// One bit for each byte of the mask, set where the byte is not zero.
unsigned nonzero_mask_bytes(std::uint32_t mask) {
  unsigned nibble = 0;
  for (int b = 0; b < 4; ++b) nibble |= unsigned((mask >> (8 * b) & 0xFF) != 0) << b;
  return nibble;
}

template <class Q>
std::uint8_t* encode_superblock(const Q* residuals, std::size_t count, std::uint8_t* out) {
  std::array<Plane, kMaxPlanes> planes{};
  int width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = zigzag(residuals[i]);
    width = std::max(width, static_cast<int>(std::bit_width(code)));
    for (int p = 0; p < width; ++p) {
      planes[p][i / 8] |= static_cast<std::uint8_t>((code >> p & 1) << (i % 8));
    }
  }
  // Dense planes end with the last that has more than kMaxSparse nonzero bytes.
  int dense = width;
  while (dense > 0 && std::popcount(nonzero_bytes(planes[dense - 1])) <= kMaxSparse) --dense;
  if (width < kLongHeader) {
    *out++ = static_cast<std::uint8_t>(width << 4 | dense);
  } else {
    *out++ = kLongHeader << 4;
    *out++ = static_cast<std::uint8_t>(width);
    *out++ = static_cast<std::uint8_t>(dense);
  }
  for (int p = 0; p < dense; ++p) out = std::copy(planes[p].begin(), planes[p].end(), out);
  for (int p = dense; p < width; p += 2) {
    unsigned pair = nonzero_mask_bytes(nonzero_bytes(planes[p]));
    if (p + 1 < width) pair |= nonzero_mask_bytes(nonzero_bytes(planes[p + 1])) << 4;
    *out++ = static_cast<std::uint8_t>(pair);
  }
  for (int p = dense; p < width; ++p) {
    const std::uint32_t mask = nonzero_bytes(planes[p]);
    for (int b = 0; b < 4; ++b) {
      if ((mask >> (8 * b) & 0xFF) != 0) *out++ = static_cast<std::uint8_t>(mask >> (8 * b));
    }
  }
  for (int p = dense; p < width; ++p) {
    for (std::uint8_t byte : planes[p]) {
      if (byte != 0) *out++ = byte;
    }
  }
  return out;
}

template <class Q>
std::uint8_t* encode(const Q* residuals, std::size_t n, std::uint8_t* out) {
  std::uint8_t* run = nullptr;  // the header of the run of zero superblocks that we are in
  for (std::size_t i = 0; i < n; i += kSuperblock) {
    if (i % kBlockpackTile == 0) run = nullptr;
    const std::size_t count = std::min(kSuperblock, n - i);
    if (std::all_of(residuals + i, residuals + i + count, [](Q value) { return value == 0; })) {
      if (run != nullptr) {
        ++*run;
      } else {
        run = out;
        *out++ = 0;
      }
    } else {
      run = nullptr;
      out = encode_superblock(residuals + i, count, out);
    }
  }
  return out;
}

// Takes bytes from the front of what is left, and remembers if there were too few.
class Reader {
 public:
  Reader(const std::uint8_t* in, const std::uint8_t* end) : in_(in), end_(end) {}
  std::uint8_t byte() {
    if (in_ == end_) {
      failed_ = true;
      return 0;
    }
    return *in_++;
  }
  bool failed() const { return failed_; }
  const std::uint8_t* position() const { return in_; }

 private:
  const std::uint8_t* in_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

// The bytes that `mask` says are present, zeros for the others.
template <std::size_t kCount>
std::array<std::uint8_t, kCount> read_sparse(Reader& reader, std::uint32_t mask) {
  std::array<std::uint8_t, kCount> bytes{};
  for (std::size_t j = 0; j < kCount; ++j) {
    if (mask >> j & 1) bytes[j] = reader.byte();
  }
  return bytes;
}

template <class Q>
bool decode_superblock(Reader& reader, int width, int dense, Q* residuals, std::size_t count) {
  std::array<Plane, kMaxPlanes> planes{};
  for (int p = 0; p < dense; ++p) {
    for (std::uint8_t& byte : planes[p]) byte = reader.byte();
  }
  std::array<unsigned, kMaxPlanes + 1> nibbles{};
  for (int p = dense; p < width; p += 2) {
    const unsigned pair = reader.byte();
    nibbles[p] = pair & 15;
    nibbles[p + 1] = pair >> 4;
  }
  if (nibbles[width] != 0) return false;
  std::array<std::uint32_t, kMaxPlanes> masks{};
  for (int p = dense; p < width; ++p) {
    const auto bytes = read_sparse<4>(reader, nibbles[p]);
    for (int b = 0; b < 4; ++b) masks[p] |= std::uint32_t(bytes[b]) << (8 * b);
  }
  for (int p = dense; p < width; ++p) planes[p] = read_sparse<kPlaneBytes>(reader, masks[p]);
  if (reader.failed()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    std::make_unsigned_t<Q> code = 0;
    for (int p = 0; p < width; ++p) {
      code |= static_cast<std::make_unsigned_t<Q>>(planes[p][i / 8] >> (i % 8) & 1) << p;
    }
    residuals[i] = unzigzag(code);
  }
  return true;
}

template <class Q>
const std::uint8_t* decode(const std::uint8_t* in, const std::uint8_t* end, Q* residuals,
                           std::size_t n) {
  Reader reader(in, end);
  for (std::size_t i = 0; i < n;) {
    const std::uint8_t header = reader.byte();
    if (reader.failed()) return nullptr;
    int width = header >> 4, dense = header & 15;
    if (width == 0) {
      // Up to the end of the tile at most, the last superblock may be short.
      const std::size_t length = (std::size_t(dense) + 1) * kSuperblock;
      const std::size_t whole = (n - i + kSuperblock - 1) / kSuperblock * kSuperblock;
      if (length > whole || length > kBlockpackTile - i % kBlockpackTile) return nullptr;
      const std::size_t count = std::min(length, n - i);
      std::fill_n(residuals + i, count, Q(0));
      i += count;
      continue;
    }
    if (width == kLongHeader) {
      if (dense != 0) return nullptr;
      width = reader.byte();
      dense = reader.byte();
      if (width < kLongHeader || width > static_cast<int>(8 * sizeof(Q))) return nullptr;
    }
    if (dense > width) return nullptr;
    const std::size_t count = std::min(kSuperblock, n - i);
    if (!decode_superblock(reader, width, dense, residuals + i, count)) return nullptr;
    i += count;
  }
  return reader.position();
}

}  // namespace

template <class Q>
const BlockpackKernels<Q>& blockpack_kernels() {
  static constexpr BlockpackKernels<Q> table{encode<Q>, decode<Q>};
  return table;
}
template const BlockpackKernels<std::int16_t>& blockpack_kernels();
template const BlockpackKernels<std::int32_t>& blockpack_kernels();
template const BlockpackKernels<std::int64_t>& blockpack_kernels();

}  // namespace firn::encode::reference
