// The blockpack payload with Highway, one copy per target. All vector work stays inside blocks of
// 16 bytes: a vector of 32 bytes does for both halves of a superblock (values from 0 and from 128)
// what one of 16 bytes does for each in turn, so every target gives the same bytes.
#include "encode/blockpack.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/blockpack_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#ifndef FIRN_ENCODE_BLOCKPACK_LAYOUT
#define FIRN_ENCODE_BLOCKPACK_LAYOUT
namespace firn::encode {

namespace reference {
template <class Q>
const BlockpackKernels<Q>& blockpack_kernels();
}  // namespace reference

namespace blockpack_layout {

constexpr int kMaxPlanes = 64;
constexpr int kLongHeader = 15;  // a width that the header's nibble cannot hold
// A plane with more nonzero bytes would not gain a byte from their elimination.
constexpr int kMaxSparse = 27;
constexpr std::size_t kPlaneBytes = kSuperblock / 8;
constexpr std::size_t kHalf = kSuperblock / 2;

// For each mask of 8 bytes: the indices that bring the marked bytes to the front, and those that
// bring them back (128 gives zero).
struct ByteShuffles {
  alignas(64) std::uint8_t compress[256][8];
  alignas(64) std::uint8_t expand[256][8];
};
constexpr ByteShuffles make_byte_shuffles() {
  ByteShuffles shuffles{};
  for (int mask = 0; mask < 256; ++mask) {
    std::uint8_t rank = 0;
    for (std::uint8_t j = 0; j < 8; ++j) {
      shuffles.expand[mask][j] = 128;
      if (mask >> j & 1) {
        shuffles.expand[mask][j] = rank;
        shuffles.compress[mask][rank++] = j;
      }
    }
  }
  return shuffles;
}
inline constexpr ByteShuffles kByteShuffles = make_byte_shuffles();

// From row kMaxPlanes - n on: n rows of ones, then zeros.
struct KeepPlanes {
  alignas(64) std::uint8_t bytes[2 * kMaxPlanes][kPlaneBytes];
};
constexpr KeepPlanes make_keep_planes() {
  KeepPlanes keep{};
  for (int p = 0; p < kMaxPlanes; ++p) {
    for (std::uint8_t& byte : keep.bytes[p]) byte = 0xFF;
  }
  return keep;
}
inline constexpr KeepPlanes kKeepPlanes = make_keep_planes();

}  // namespace blockpack_layout
}  // namespace firn::encode
#endif  // FIRN_ENCODE_BLOCKPACK_LAYOUT

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace blockpack {

#if HWY_TARGET == HWY_SCALAR

// No vectors at all: the reference is as good.
template <class Q>
const BlockpackKernels<Q>& table() {
  return reference::blockpack_kernels<Q>();
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using namespace blockpack_layout;  // NOLINT: this file's own

using Bytes = hn::CappedTag<uint8_t, 32>;
using Words = hn::Repartition<int16_t, Bytes>;
using Ints = hn::Repartition<int32_t, Bytes>;
using Block = hn::FixedTag<uint8_t, 16>;
using ByteVector = hn::Vec<Bytes>;
using WordVector = hn::Vec<Words>;
constexpr bool kBothHalves = hn::MaxLanes(Bytes()) == 32;
// Where a superblock's halves begin for the vector code: one pass over both, or two passes.
constexpr size_t kHalfStep = kBothHalves ? kSuperblock : kHalf;

// 16 bytes at `from`, and when vectors have two blocks also those kHalf elements later.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_halves(D d, const T* from) {
  if constexpr (kBothHalves) {
    const hn::Half<D> half;
    return hn::Combine(d, hn::LoadU(half, from + kHalf), hn::LoadU(half, from));
  } else {
    return hn::LoadU(d, from);
  }
}

template <class D, class T>
HWY_INLINE void store_halves(hn::Vec<D> v, D d, T* to) {
  if constexpr (kBothHalves) {
    const hn::Half<D> half;
    hn::StoreU(hn::LowerHalf(half, v), half, to);
    hn::StoreU(hn::UpperHalf(half, v), half, to + kHalf);
  } else {
    hn::StoreU(v, d, to);
  }
}

// Words to bytes, a's before b's in each block of 16 bytes; saturates.
HWY_INLINE ByteVector narrow(WordVector a, WordVector b) {
#if !HWY_ARCH_X86 || HWY_TARGET == HWY_EMU128
  const hn::Repartition<int8_t, Bytes> d8;
  const hn::Half<decltype(d8)> half;
  return hn::BitCast(Bytes(), hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a)));
#elif HWY_MAX_BYTES >= 32
  return ByteVector{_mm256_packs_epi16(a.raw, b.raw)};
#else
  return ByteVector{_mm_packs_epi16(a.raw, b.raw)};
#endif
}

HWY_INLINE uint32_t nonzero_bytes(const uint8_t* plane) {
  const Bytes d;
  uint8_t bits[8] = {};
  for (size_t j = 0; j < kPlaneBytes; j += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, plane + j);
    hn::StoreMaskBits(d, hn::Ne(v, hn::Zero(d)), bits + j / 8);
  }
  uint32_t mask;
  std::memcpy(&mask, bits, sizeof(mask));
  return mask;
}

// ---- Bytes of values <-> bit planes

// One perfect shuffle of the 128 bytes in each half's eight vectors. As an address, (vector,
// byte) rotates by one bit: four shuffles bring value 16 m + 8 g + k from vector m, byte 8 g + k to
// vector k, byte 2 m + g; three more bring it back.
HWY_INLINE void shuffle_once(ByteVector* v) {
  const Bytes d;
  ByteVector s[8];
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = hn::InterleaveLower(d, v[i], v[i + 4]);
    s[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + 4]);
  }
  for (int i = 0; i < 8; ++i) v[i] = s[i];
}

// Exchanges the bits of a that `mask << kShift` covers with those of b that `mask` covers.
template <int kShift>
HWY_INLINE void exchange_bits(ByteVector& a, ByteVector& b, uint8_t mask) {
  const Bytes d;
  const hn::Repartition<uint16_t, Bytes> d16;
  const auto shifted = hn::BitCast(d, hn::ShiftRight<kShift>(hn::BitCast(d16, a)));
  const auto differing = hn::And(hn::Xor(shifted, b), hn::Set(d, mask));
  b = hn::Xor(b, differing);
  a = hn::Xor(a, hn::BitCast(d, hn::ShiftLeft<kShift>(hn::BitCast(d16, differing))));
}

// In every byte position: bit j of vector i <-> bit i of vector j. Its own inverse.
HWY_INLINE void transpose_bits(ByteVector* v) {
  for (int i = 0; i < 4; ++i) exchange_bits<4>(v[i], v[i + 4], 0x0F);
  for (int i = 0; i < 8; i += 4) {
    exchange_bits<2>(v[i], v[i + 2], 0x33);
    exchange_bits<2>(v[i + 1], v[i + 3], 0x33);
  }
  for (int i = 0; i < 8; i += 2) exchange_bits<1>(v[i], v[i + 1], 0x55);
}

// One byte of each value (v[m]: values 16 m ... of each half) to the eight planes of that byte.
HWY_INLINE void bytes_to_planes(ByteVector* v) {
  for (int round = 0; round < 4; ++round) shuffle_once(v);
  transpose_bits(v);
}

HWY_INLINE void planes_to_bytes(ByteVector* v) {
  transpose_bits(v);
  for (int round = 0; round < 3; ++round) shuffle_once(v);
}

// A superblock's planes, and for each the mask of its nonzero bytes. Code that works on kPlanes
// planes (8, 16, 32 or 64, the next above the width) does so without looking at the width: a
// branch that is hard to predict costs more than some planes of zeros.
template <int kCount>
struct PlanesUpTo {
  alignas(32) uint8_t plane[kCount][kPlaneBytes];
  alignas(32) uint32_t mask[kCount + 1];  // a zero behind the last
};
using Planes = PlanesUpTo<kMaxPlanes>;

// Planes of the two's complement as planes first ... of the zigzag code: there plane 0 is the sign,
// and the others are one place up and exclusive-ored with it.
template <int kCount>
HWY_INLINE void store_planes(const ByteVector* v, int count, ByteVector sign, int first,
                             size_t half, PlanesUpTo<kCount>& planes) {
  const Bytes d;
  for (int p = 0; p < count; ++p) {
    hn::Store(hn::Xor(v[p], sign), d, planes.plane[first + p] + half / 8);
  }
}

// ---- Encoding

// The width of the widest zigzag code, given the extremes of a superblock's words.
HWY_INLINE int width_of(WordVector low, WordVector high) {
  const auto low_code = hn::Xor(hn::Add(low, low), hn::ShiftRight<15>(low));
  const auto high_code = hn::Xor(hn::Add(high, high), hn::ShiftRight<15>(high));
  const hn::RebindToUnsigned<Words> du;
  const auto all = hn::BitCast(du, hn::Or(low_code, high_code));
  if constexpr (kBothHalves) {
    const hn::Half<decltype(du)> half;
    const auto both = hn::Max(hn::LowerHalf(half, all), hn::UpperHalf(half, all));
    return std::bit_width(hn::GetLane(hn::MaxOfLanes(half, both)));
  } else {
    return std::bit_width(hn::GetLane(hn::MaxOfLanes(du, all)));
  }
}

// Planes from the bytes of wide values, one array of kSuperblock bytes for each byte of a value.
template <class Q>
HWY_NOINLINE int wide_planes(const Q* residuals, Planes& planes) {
  using U = std::make_unsigned_t<Q>;
  constexpr int kBytes = sizeof(Q);
  const Bytes d;
  alignas(32) uint8_t slices[kBytes][kSuperblock];
  U all = 0;
  for (size_t i = 0; i < kSuperblock; ++i) {
    const U value = static_cast<U>(residuals[i]);
    all |= static_cast<U>(value << 1) ^ static_cast<U>(residuals[i] >> (8 * kBytes - 1));
    for (int b = 0; b < kBytes; ++b) slices[b][i] = static_cast<uint8_t>(value >> (8 * b));
  }
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    ByteVector sign = hn::Zero(d);
    for (int b = kBytes - 1; b >= 0; --b) {
      ByteVector v[8];
      for (int m = 0; m < 8; ++m) v[m] = load_halves(d, slices[b] + half + 16 * m);
      bytes_to_planes(v);
      if (b == kBytes - 1) {
        sign = v[7];
        hn::Store(sign, d, planes.plane[0] + half / 8);
      }
      store_planes(v, b == kBytes - 1 ? 7 : 8, sign, 8 * b + 1, half, planes);
    }
  }
  return static_cast<int>(std::bit_width(all));
}

// A superblock as words: [half / kHalfStep][m][0 and 1] holds values 16 m ... and 16 m + 8 ... of
// each half.
using SuperblockWords = WordVector[kSuperblock / kHalfStep][8][2];

// Loads a superblock; returns the width that its words need, 16 when 32-bit values may not fit.
template <class Q>
HWY_INLINE int load_words(const Q* residuals, SuperblockWords& words) {
  const Words d16;
  auto low = hn::Zero(d16), high = hn::Zero(d16);
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    for (int m = 0; m < 8; ++m) {
      for (int e = 0; e < 2; ++e) {
        const Q* from = residuals + half + 16 * m + 8 * e;
        WordVector v;
        if constexpr (sizeof(Q) == 2) {
          v = load_halves(d16, from);
        } else {
          const Ints d32;
          v = hn::ReorderDemote2To(d16, load_halves(d32, from), load_halves(d32, from + 4));
        }
        low = hn::Min(low, v);
        high = hn::Max(high, v);
        words[half / kHalfStep][m][e] = v;
      }
    }
  }
  return width_of(low, high);
}

HWY_INLINE void planes_of_words(const SuperblockWords& words, int width, PlanesUpTo<16>& planes) {
  const Bytes d;
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    const auto& w = words[half / kHalfStep];
    ByteVector v[8];
    ByteVector sign;
    if (width <= 8) {
      for (int m = 0; m < 8; ++m) v[m] = narrow(w[m][0], w[m][1]);
      bytes_to_planes(v);
      sign = v[7];
      store_planes(v, 7, sign, 1, half, planes);
    } else {
      for (int m = 0; m < 8; ++m) {
        v[m] = narrow(hn::ShiftRight<8>(w[m][0]), hn::ShiftRight<8>(w[m][1]));
      }
      bytes_to_planes(v);
      sign = v[7];
      store_planes(v, 7, sign, 9, half, planes);
      for (int m = 0; m < 8; ++m) {
        v[m] = narrow(hn::ShiftRight<8>(hn::ShiftLeft<8>(w[m][0])),
                      hn::ShiftRight<8>(hn::ShiftLeft<8>(w[m][1])));
      }
      bytes_to_planes(v);
      store_planes(v, 8, sign, 1, half, planes);
    }
    hn::Store(sign, d, planes.plane[0] + half / 8);
  }
}

// Fills the planes below the width, which it returns; 17 or more: they do not fit.
constexpr int kTooWide = 17;
HWY_INLINE int narrow_planes(const int16_t* residuals, PlanesUpTo<16>& planes) {
  SuperblockWords words;
  const int width = load_words(residuals, words);
  if (width != 0) planes_of_words(words, width, planes);
  return width;
}

HWY_INLINE int narrow_planes(const int32_t* residuals, PlanesUpTo<16>& planes) {
  SuperblockWords words;
  const int width = load_words(residuals, words);
  // Words that may have been saturated.
  if (width == 16) return kTooWide;
  if (width != 0) planes_of_words(words, width, planes);
  return width;
}

// Most int64 superblocks fit int32.
HWY_INLINE int narrow_planes(const int64_t* residuals, PlanesUpTo<16>& planes) {
  const hn::CappedTag<int64_t, 4> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint32_t, decltype(d)> du32;
  alignas(32) int32_t narrowed[kSuperblock];
  auto changed = hn::Zero(d);
  for (size_t i = 0; i < kSuperblock; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, residuals + i);
    const auto v32 = hn::BitCast(d32, hn::TruncateTo(du32, hn::BitCast(du, v)));
    hn::StoreU(v32, d32, narrowed + i);
    changed = hn::Or(changed, hn::Xor(v, hn::PromoteTo(d, v32)));
  }
  if (!hn::AllTrue(d, hn::Eq(changed, hn::Zero(d)))) return kTooWide;
  return narrow_planes(narrowed, planes);
}

using EightBytes = hn::FixedTag<uint8_t, 8>;

// Stores 8 bytes, of which those that the mask marks come first.
HWY_INLINE void compress8(hn::Vec<EightBytes> bytes, unsigned mask, uint8_t* out) {
  const EightBytes d;
  const auto indices = hn::Load(d, kByteShuffles.compress[mask]);
  hn::StoreU(hn::TableLookupBytes(bytes, indices), d, out);
}
HWY_INLINE void compress8(const uint8_t* bytes, unsigned mask, uint8_t* out) {
  compress8(hn::LoadU(EightBytes(), bytes), mask, out);
}

// Which bytes of `bytes` are not zero.
HWY_INLINE unsigned nonzero_bytes(uint64_t bytes) {
  constexpr uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  const uint64_t high_bits = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return static_cast<unsigned>((high_bits >> 7) * 0x0102040810204080 >> 56);
}

HWY_INLINE uint8_t* compress_plane(const uint8_t* plane, uint32_t mask, uint8_t* out) {
  compress8(plane, mask & 0xFF, out);
  compress8(plane + 8, mask >> 8 & 0xFF, out + std::popcount(mask & 0xFF));
  compress8(plane + 16, mask >> 16 & 0xFF, out + std::popcount(mask & 0xFFFF));
  compress8(plane + 24, mask >> 24, out + std::popcount(mask & 0xFFFFFF));
  return out + std::popcount(mask);
}

// Sets the masks of all kPlanes planes; returns how many planes are dense: they end with the last
// that has more than kMaxSparse nonzero bytes.
template <int kPlanes, int kCount>
HWY_INLINE int mark_planes(PlanesUpTo<kCount>& planes) {
  uint64_t crowded = 0;
  for (int p = 0; p < kPlanes; ++p) {
    planes.mask[p] = nonzero_bytes(planes.plane[p]);
    crowded |= static_cast<uint64_t>(std::popcount(planes.mask[p]) > kMaxSparse) << p;
  }
  planes.mask[kPlanes] = 0;
  return static_cast<int>(std::bit_width(crowded));
}

// Writes a superblock of nonzero width whose kPlanes planes are all set and marked.
template <int kPlanes, int kCount>
HWY_INLINE uint8_t* write_planes(const PlanesUpTo<kCount>& planes, int width, int dense,
                                 uint8_t* out) {
  const Bytes d;
  const int sparse = width - dense;
  if (kPlanes <= 8 || width < kLongHeader) {
    *out++ = static_cast<uint8_t>(width << 4 | dense);
  } else {
    *out++ = kLongHeader << 4;
    *out++ = static_cast<uint8_t>(width);
    *out++ = static_cast<uint8_t>(dense);
  }
  // Each of the following steps may write too much, which the next ones overwrite.
  for (size_t j = 0; j < kPlanes * kPlaneBytes; j += hn::Lanes(d)) {
    hn::StoreU(hn::Load(d, reinterpret_cast<const uint8_t*>(planes.plane) + j), d, out + j);
  }
  out += dense * kPlaneBytes;
  uint8_t* pairs = out;
  out += (sparse + 1) / 2;
  for (int p = dense; p < width; p += 2) {
    const uint64_t masks = planes.mask[p] | static_cast<uint64_t>(planes.mask[p + 1]) << 32;
    const unsigned pair = nonzero_bytes(masks);
    *pairs++ = static_cast<uint8_t>(pair);
    compress8(hn::BitCast(EightBytes(), hn::Set(hn::FixedTag<uint64_t, 1>(), masks)), pair, out);
    out += std::popcount(pair);
  }
  for (int p = dense; p < width; ++p) {
    out = compress_plane(planes.plane[p], planes.mask[p], out);
  }
  return out;
}

template <class Q>
HWY_NOINLINE uint8_t* write_wide(const Q* residuals, uint8_t* out) {
  if constexpr (sizeof(Q) == 2) {
    return out;  // they all fit
  } else {
    Planes planes;
    const int width = wide_planes(residuals, planes);
    if (sizeof(Q) == 4 || width <= 32) {
      return write_planes<32>(planes, width, mark_planes<32>(planes), out);
    }
    return write_planes<kMaxPlanes>(planes, width, mark_planes<kMaxPlanes>(planes), out);
  }
}

// Up to a tile of whole superblocks, in two steps, so that several can be in flight in each: the
// planes of all, then their bytes, whose places depend on those before.
template <class Q>
HWY_INLINE uint8_t* encode_tile(const Q* residuals, size_t count, uint8_t* out) {
  struct Superblock {
    PlanesUpTo<16> planes;
    int width, dense;
  };
  Superblock blocks[kBlockpackTile / kSuperblock];
  for (size_t i = 0; i < count; ++i) {
    Superblock& block = blocks[i];
    block.width = narrow_planes(residuals + i * kSuperblock, block.planes);
    if (block.width != 0) {
      block.dense = block.width <= 8 ? mark_planes<8>(block.planes) : mark_planes<16>(block.planes);
    }
  }
  uint8_t* run = nullptr;  // the header of the run of zero superblocks that we are in
  for (size_t i = 0; i < count; ++i) {
    const Superblock& block = blocks[i];
    if (block.width != 0) {
      run = nullptr;
      out = block.width <= 8    ? write_planes<8>(block.planes, block.width, block.dense, out)
            : block.width <= 16 ? write_planes<16>(block.planes, block.width, block.dense, out)
                                : write_wide(residuals + i * kSuperblock, out);
    } else if (run != nullptr) {
      ++*run;
    } else {
      run = out;
      *out++ = 0;
    }
  }
  return out;
}

template <class Q>
uint8_t* encode(const Q* residuals, size_t n, uint8_t* out) {
  for (; n >= kBlockpackTile; residuals += kBlockpackTile, n -= kBlockpackTile) {
    out = encode_tile(residuals, kBlockpackTile / kSuperblock, out);
  }
  if (n % kSuperblock == 0) return encode_tile(residuals, n / kSuperblock, out);
  alignas(32) Q padded[kBlockpackTile];
  const size_t count = n / kSuperblock + 1;
  std::memcpy(padded, residuals, n * sizeof(Q));
  std::memset(padded + n, 0, (count * kSuperblock - n) * sizeof(Q));
  return encode_tile(padded, count, out);
}

// ---- Decoding

HWY_INLINE hn::Vec<hn::FixedTag<uint8_t, 8> > expand8(const uint8_t* from, unsigned mask) {
  const hn::FixedTag<uint8_t, 8> d;
  const auto indices = hn::Load(d, kByteShuffles.expand[mask]);
  return hn::TableLookupBytesOr0(hn::LoadU(d, from), indices);
}

// One store where vectors are that long: a load of the plane would have to wait for two.
template <class D>
HWY_INLINE void store_plane(D d, hn::Vec<Block> low, hn::Vec<Block> high, uint8_t* plane) {
  if constexpr (kBothHalves) {
    hn::Store(hn::Combine(d, high, low), d, plane);
  } else {
    hn::Store(low, d, plane);
    hn::Store(high, d, plane + 16);
  }
}

// All kPlanes planes, of which the upper ones are zero, and where they ended; nullptr when damaged.
// May read 8 bytes more than the longest code of so many planes.
template <int kPlanes, int kCount>
HWY_INLINE const uint8_t* read_planes(const uint8_t* in, int width, int dense,
                                      PlanesUpTo<kCount>& planes) {
  const Bytes d;
  const uint8_t* keep = kKeepPlanes.bytes[kMaxPlanes - dense];
  uint8_t* const all = reinterpret_cast<uint8_t*>(planes.plane);
  for (size_t j = 0; j < kPlanes * kPlaneBytes; j += hn::Lanes(d)) {
    hn::Store(hn::And(hn::LoadU(d, in + j), hn::Load(d, keep + j)), d, all + j);
  }
  in += dense * kPlaneBytes;
  const int sparse = width - dense;
  // One nibble for each of up to 16 planes; those behind the sparse planes are other bytes.
  uint64_t pairs[(kPlanes + 15) / 16] = {};
  std::memcpy(pairs, in, kPlanes / 2);
  for (int g = 0; g < (kPlanes + 15) / 16; ++g) {
    const int here = std::clamp(sparse - 16 * g, 0, 16);
    const uint64_t nibbles = here == 16 ? ~uint64_t{0} : (uint64_t{1} << (4 * here)) - 1;
    if (here % 2 != 0 && (pairs[g] & ~nibbles & (nibbles << 4)) != 0) return nullptr;
    pairs[g] &= nibbles;
  }
  in += (sparse + 1) / 2;
  for (int i = 0; i < kPlanes / 2; ++i) {
    const unsigned pair = pairs[i / 8] >> (8 * (i % 8)) & 0xFF;
    hn::Store(expand8(in, pair), EightBytes(), reinterpret_cast<uint8_t*>(planes.mask + 2 * i));
    in += std::popcount(pair);
  }
  for (int p = 0; p < sparse; ++p) {
    const uint32_t mask = planes.mask[p];
    const Block block;
    const auto low = hn::Combine(block, expand8(in + std::popcount(mask & 0xFF), mask >> 8 & 0xFF),
                                 expand8(in, mask & 0xFF));
    const auto high = hn::Combine(block, expand8(in + std::popcount(mask & 0xFFFFFF), mask >> 24),
                                  expand8(in + std::popcount(mask & 0xFFFF), mask >> 16 & 0xFF));
    store_plane(d, low, high, planes.plane[dense + p]);
    in += std::popcount(mask);
  }
  return in;
}

// Byte `byte` of the values' two's complement, from the zigzag planes; `top`: it is the last.
template <int kCount>
HWY_INLINE void load_bytes(const PlanesUpTo<kCount>& planes, int byte, bool top, size_t half,
                           ByteVector* v) {
  const Bytes d;
  const auto sign = hn::Load(d, planes.plane[0] + half / 8);
  for (int p = 0; p < 7; ++p) {
    v[p] = hn::Xor(sign, hn::Load(d, planes.plane[8 * byte + 1 + p] + half / 8));
  }
  v[7] = top ? sign : hn::Xor(sign, hn::Load(d, planes.plane[8 * byte + 8] + half / 8));
  planes_to_bytes(v);
}

template <class Q>
HWY_NOINLINE void wide_values(const Planes& planes, Q* residuals) {
  using U = std::make_unsigned_t<Q>;
  constexpr int kBytes = sizeof(Q);
  alignas(32) uint8_t slices[kBytes][kSuperblock];
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    for (int b = 0; b < kBytes; ++b) {
      ByteVector v[8];
      load_bytes(planes, b, b == kBytes - 1, half, v);
      for (int m = 0; m < 8; ++m) store_halves(v[m], Bytes(), slices[b] + half + 16 * m);
    }
  }
  for (size_t i = 0; i < kSuperblock; ++i) {
    U value = 0;
    for (int b = 0; b < kBytes; ++b) value |= static_cast<U>(slices[b][i]) << (8 * b);
    residuals[i] = static_cast<Q>(value);
  }
}

template <class Narrow, class Q>
HWY_INLINE void widen(const Narrow* from, Q* residuals) {
  const hn::CappedTag<Q, 32 / sizeof(Q)> d;
  const hn::Rebind<Narrow, decltype(d)> narrow;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < kSuperblock; i += 4 * lanes) {
    const auto v0 = hn::PromoteTo(d, hn::LoadU(narrow, from + i));
    const auto v1 = hn::PromoteTo(d, hn::LoadU(narrow, from + i + lanes));
    const auto v2 = hn::PromoteTo(d, hn::LoadU(narrow, from + i + 2 * lanes));
    const auto v3 = hn::PromoteTo(d, hn::LoadU(narrow, from + i + 3 * lanes));
    hn::StoreU(v0, d, residuals + i);
    hn::StoreU(v1, d, residuals + i + lanes);
    hn::StoreU(v2, d, residuals + i + 2 * lanes);
    hn::StoreU(v3, d, residuals + i + 3 * lanes);
  }
}

// Values of at most 8 bits.
HWY_INLINE void byte_values(const PlanesUpTo<16>& planes, int8_t* values) {
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    ByteVector v[8];
    load_bytes(planes, 0, true, half, v);
    for (int m = 0; m < 8; ++m) {
      store_halves(v[m], Bytes(), reinterpret_cast<uint8_t*>(values) + half + 16 * m);
    }
  }
}

HWY_INLINE void word_values(const PlanesUpTo<16>& planes, int16_t* values) {
  const Bytes d;
  const Words d16;
  for (size_t half = 0; half < kSuperblock; half += kHalfStep) {
    ByteVector low[8], high[8];
    load_bytes(planes, 0, false, half, low);
    load_bytes(planes, 1, true, half, high);
    for (int m = 0; m < 8; ++m) {
      int16_t* to = values + half + 16 * m;
      store_halves(hn::BitCast(d16, hn::InterleaveLower(d, low[m], high[m])), d16, to);
      store_halves(hn::BitCast(d16, hn::InterleaveUpper(d, low[m], high[m])), d16, to + 8);
    }
  }
}

template <class Q>
HWY_INLINE void narrow_values(const PlanesUpTo<16>& planes, int width, Q* residuals) {
  if constexpr (sizeof(Q) == 8) {
    alignas(32) int32_t ints[kSuperblock];
    narrow_values(planes, width, ints);
    widen(ints, residuals);
  } else if (width <= 8) {
    alignas(32) int8_t bytes[kSuperblock];
    byte_values(planes, bytes);
    widen(bytes, residuals);
  } else if constexpr (sizeof(Q) == 2) {
    word_values(planes, residuals);
  } else {
    alignas(32) int16_t words[kSuperblock];
    word_values(planes, words);
    widen(words, residuals);
  }
}

// A superblock of more than 16 planes; returns where they ended, or nullptr when they are damaged.
template <class Q>
HWY_NOINLINE const uint8_t* read_wide(const uint8_t* in, int width, int dense, Q* residuals) {
  if constexpr (sizeof(Q) == 2) {
    return nullptr;  // there are none
  } else {
    Planes planes;
    if (sizeof(Q) == 8 && width > 32) {
      in = read_planes<kMaxPlanes>(in, width, dense, planes);
      if (in != nullptr) wide_values(planes, residuals);
      return in;
    }
    in = read_planes<32>(in, width, dense, planes);
    if (in == nullptr) return nullptr;
    if constexpr (sizeof(Q) == 4) {
      wide_values(planes, residuals);
    } else {
      alignas(32) int32_t ints[kSuperblock];
      wide_values(planes, ints);
      widen(ints, residuals);
    }
    return in;
  }
}

// In two steps, as they were encoded: the planes of a tile's superblocks, then their values.
template <class Q>
const uint8_t* decode(const uint8_t* in, const uint8_t* end, Q* residuals, size_t n) {
  struct Superblock {
    PlanesUpTo<16> planes;
    int width;  // 0: its values are there
  };
  // The longest code of a superblock (every plane sparse yet full), and what is read behind it.
  constexpr size_t kLongest = 3 + 8 * sizeof(Q) * (kPlaneBytes + 4) + 4 * sizeof(Q) + 8;
  // Where fewer bytes than that are left, they are read from a copy with zeros behind it.
  alignas(32) uint8_t copy[2 * kLongest];
  const uint8_t* original_end = nullptr;
  Superblock blocks[kBlockpackTile / kSuperblock];
  alignas(32) Q last[kSuperblock];  // of which not all may be there
  for (size_t tile = 0; tile < n; tile += kBlockpackTile) {
    const size_t tile_end = std::min(n, tile + kBlockpackTile);
    const auto place_of = [&](size_t i) HWY_ATTR {
      if (n - i < kSuperblock) return static_cast<Q*>(last);
      return residuals + i;
    };
    for (size_t i = tile; i < tile_end;) {
      if (original_end == nullptr && static_cast<size_t>(end - in) < kLongest) {
        const size_t left = static_cast<size_t>(end - in);
        if (left != 0) std::memcpy(copy, in, left);
        std::memset(copy + left, 0, kLongest);
        original_end = end;
        in = copy;
        end = copy + left;
      }
      if (in >= end) return nullptr;
      Superblock* const block = blocks + (i - tile) / kSuperblock;
      int width = *in >> 4, dense = *in & 15;
      ++in;
      block->width = 0;
      if (width == 0) {
        const size_t length = (static_cast<size_t>(dense) + 1) * kSuperblock;
        const size_t whole = (tile_end - i + kSuperblock - 1) / kSuperblock * kSuperblock;
        if (length > whole) return nullptr;
        for (int k = 1; k <= dense; ++k) block[k].width = 0;
        std::memset(residuals + i, 0, std::min(length, n - i) * sizeof(Q));
        if (length > n - i) std::memset(last, 0, sizeof last);
        i += length;
        continue;
      }
      if (width == kLongHeader) {
        if (dense != 0) return nullptr;
        width = in[0];
        dense = in[1];
        in += 2;
        if (width < kLongHeader || width > static_cast<int>(8 * sizeof(Q))) return nullptr;
      }
      if (dense > width) return nullptr;
      if (width <= 16) {
        block->width = width;
        in = width <= 8 ? read_planes<8>(in, width, dense, block->planes)
                        : read_planes<16>(in, width, dense, block->planes);
      } else {
        in = read_wide(in, width, dense, place_of(i));
      }
      if (in == nullptr || in > end) return nullptr;
      i += kSuperblock;
    }
    for (size_t i = tile; i < tile_end; i += kSuperblock) {
      const Superblock& block = blocks[(i - tile) / kSuperblock];
      if (block.width != 0) narrow_values(block.planes, block.width, place_of(i));
    }
  }
  if (const size_t rest = n % kSuperblock; rest != 0) {
    std::memcpy(residuals + n - rest, last, rest * sizeof(Q));
  }
  return original_end == nullptr ? in : original_end - (end - in);
}

template <class Q>
const BlockpackKernels<Q>& table() {
  static constexpr BlockpackKernels<Q> kernels{encode<Q>, decode<Q>};
  return kernels;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace blockpack
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {

template <class Q>
const BlockpackKernels<Q>& blockpack_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::blockpack_kernels<Q>();
  FIRN_SELECT_KERNELS(target, blockpack::table<Q>)
}
template const BlockpackKernels<std::int16_t>& blockpack_kernels(simd::Target);
template const BlockpackKernels<std::int32_t>& blockpack_kernels(simd::Target);
template const BlockpackKernels<std::int64_t>& blockpack_kernels(simd::Target);

}  // namespace firn::encode
#endif  // HWY_ONCE
