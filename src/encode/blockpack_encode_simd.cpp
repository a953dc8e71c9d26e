// Encoding of blockpack payloads with Highway, one copy per target; every target writes the same
// bytes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/blockpack_encode_simd.cpp"  // NOLINT
#define HWY_WANT_AVX3_DL
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "encode/blockpack_gfni-inl.hpp"
#include "encode/blockpack_planes-inl.hpp"

FIRN_BLOCKPACK_BEFORE_NAMESPACE();
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

// One byte of each value (v[m]: values 16 m ... of each half) to the eight planes of that byte.
HWY_INLINE void bytes_to_planes(ByteVector* v) {
  for (int round = 0; round < 4; ++round) shuffle_once(v);
  transpose_bits(v);
}

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

#if HWY_TARGET == HWY_AVX3_DL

using SuperblockWords = V512[8];

#else

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

#endif  // HWY_TARGET == HWY_AVX3_DL

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

#if HWY_TARGET != HWY_AVX3_DL

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
  for (int p = kPlanes; p < (kPlanes == 8 ? 16 : kPlanes + 1); ++p) planes.mask[p] = 0;
  return static_cast<int>(std::bit_width(crowded));
}

// The sparse planes in their three parts. Each step may write too much, which the next ones
// overwrite.
template <int kPlanes, int kCount>
HWY_INLINE uint8_t* write_sparse(const PlanesUpTo<kCount>& planes, int width, int dense,
                                 uint8_t* out) {
  uint8_t* pairs = out;
  out += (width - dense + 1) / 2;
  if constexpr (kPlanes == 8) {
    // How many masks there are is hard to predict; those behind the last are zero.
    const auto* masks = reinterpret_cast<const uint8_t*>(planes.mask + dense);
    const uint32_t nonzero = nonzero_bytes(masks);
    std::memcpy(pairs, &nonzero, sizeof nonzero);
    for (int i = 0; i < 4; ++i) {
      const unsigned pair = nonzero >> 8 * i & 0xFF;
      compress8(masks + 8 * i, pair, out);
      out += std::popcount(pair);
    }
  } else {
    for (int p = dense; p < width; p += 2) {
      const uint64_t masks = planes.mask[p] | static_cast<uint64_t>(planes.mask[p + 1]) << 32;
      const unsigned pair = nonzero_bytes(masks);
      *pairs++ = static_cast<uint8_t>(pair);
      compress8(hn::BitCast(EightBytes(), hn::Set(hn::FixedTag<uint64_t, 1>(), masks)), pair, out);
      out += std::popcount(pair);
    }
  }
  for (int p = dense; p < width; ++p) {
    out = compress_plane(planes.plane[p], planes.mask[p], out);
  }
  return out;
}

#endif  // HWY_TARGET != HWY_AVX3_DL

// Writes a superblock of nonzero width whose kPlanes planes are all set and marked.
template <int kPlanes, int kCount>
HWY_INLINE uint8_t* write_planes(const PlanesUpTo<kCount>& planes, int width, int dense,
                                 uint8_t* out) {
  const hn::CappedTag<uint8_t, 2 * kPlaneBytes> d;
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
  return write_sparse<kPlanes>(planes, width, dense, out);
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
