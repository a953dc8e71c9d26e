// What encoding and decoding of blockpack payloads share, one copy per target: the bit planes of a
// superblock. All vector work stays inside blocks of 16 bytes: a vector of 32 bytes does for both
// halves of a superblock (values from 0 and from 128) what one of 16 bytes does for each in turn.

#ifndef FIRN_ENCODE_BLOCKPACK_PLANES_ONCE
#define FIRN_ENCODE_BLOCKPACK_PLANES_ONCE

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "encode/blockpack.hpp"

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

}  // namespace blockpack_layout
}  // namespace firn::encode
#endif  // FIRN_ENCODE_BLOCKPACK_PLANES_ONCE

#if defined(FIRN_ENCODE_BLOCKPACK_PLANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIRN_ENCODE_BLOCKPACK_PLANES_INL
#undef FIRN_ENCODE_BLOCKPACK_PLANES_INL
#else
#define FIRN_ENCODE_BLOCKPACK_PLANES_INL
#endif

#include <hwy/highway.h>

// Processors with AVX3_DL have GFNI as well (base/simd_target.cpp makes sure); Highway does not say
// so.
#undef FIRN_BLOCKPACK_BEFORE_NAMESPACE
#if HWY_TARGET == HWY_AVX3_DL
#define FIRN_BLOCKPACK_BEFORE_NAMESPACE()     \
  HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",gfni") \
  static_assert(true, "")
#else
#define FIRN_BLOCKPACK_BEFORE_NAMESPACE() HWY_BEFORE_NAMESPACE()
#endif

FIRN_BLOCKPACK_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace blockpack {

// Defined with the decoder, for the table that the encoder's file has.
template <class Q>
const uint8_t* decode(const uint8_t* in, const uint8_t* end, Q* residuals, size_t n);

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;
using namespace blockpack_layout;  // NOLINT: these files' own

using Bytes = hn::CappedTag<uint8_t, 32>;
using Words = hn::Repartition<int16_t, Bytes>;
using Ints = hn::Repartition<int32_t, Bytes>;
using Block = hn::FixedTag<uint8_t, 16>;
using EightBytes = hn::FixedTag<uint8_t, 8>;
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

// A superblock's planes, and for each the mask of its nonzero bytes. Code that works on kPlanes
// planes (8, 16, 32 or 64, the next above the width) does so without looking at the width: a
// branch that is hard to predict costs more than some planes of zeros.
template <int kCount>
struct PlanesUpTo {
  alignas(
      64) uint8_t plane[kCount + 1][kPlaneBytes];  // the last one: planes may be stored in pairs
  alignas(64) uint32_t mask[kCount + 1];           // a zero behind the last
};
using Planes = PlanesUpTo<kMaxPlanes>;

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace blockpack
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#endif  // per target
