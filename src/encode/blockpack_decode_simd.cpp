// Decoding of blockpack payloads with Highway, one copy per target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/blockpack_decode_simd.cpp"  // NOLINT
#define HWY_WANT_AVX3_DL
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "encode/blockpack_gfni-inl.hpp"
#include "encode/blockpack_planes-inl.hpp"

#ifndef FIRN_ENCODE_BLOCKPACK_DECODE_ONCE
#define FIRN_ENCODE_BLOCKPACK_DECODE_ONCE
namespace firn::encode::blockpack_layout {

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

}  // namespace firn::encode::blockpack_layout
#endif  // FIRN_ENCODE_BLOCKPACK_DECODE_ONCE

FIRN_BLOCKPACK_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace blockpack {

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE void planes_to_bytes(ByteVector* v) {
  transpose_bits(v);
  for (int round = 0; round < 3; ++round) shuffle_once(v);
}

#if HWY_TARGET != HWY_AVX3_DL

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

// The sparse planes; pairs: a nibble for each of up to 16 planes. May read 8 bytes more than there
// are.
template <int kPlanes, int kCount>
HWY_INLINE const uint8_t* read_sparse(const uint8_t* in, const uint64_t* pairs, int sparse,
                                      int dense, PlanesUpTo<kCount>& planes) {
  const Bytes d;
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

#endif  // HWY_TARGET != HWY_AVX3_DL

// All kPlanes planes, of which the upper ones are zero, and where they ended; nullptr when damaged.
// May read 64 bytes more than the longest code of so many planes.
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
  return read_sparse<kPlanes>(in, pairs, sparse, dense, planes);
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

#if HWY_TARGET != HWY_AVX3_DL

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

#endif  // HWY_TARGET != HWY_AVX3_DL

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
  constexpr size_t kLongest = 3 + 8 * sizeof(Q) * (kPlaneBytes + 4) + 4 * sizeof(Q) + 64;
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

template const uint8_t* decode(const uint8_t*, const uint8_t*, int16_t*, size_t);
template const uint8_t* decode(const uint8_t*, const uint8_t*, int32_t*, size_t);
template const uint8_t* decode(const uint8_t*, const uint8_t*, int64_t*, size_t);

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace blockpack
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();
