// Bit planes on AVX-512 with GFNI and VBMI2, for 16 bits and less: one instruction transposes
// 8 x 8 bits, one drops the zero bytes of two planes or puts them back. The other targets'
// code for the same is in blockpack_encode_simd.cpp and blockpack_decode_simd.cpp.

#ifndef FIRN_ENCODE_BLOCKPACK_GFNI_ONCE
#define FIRN_ENCODE_BLOCKPACK_GFNI_ONCE

#include <array>
#include <cstdint>

namespace firn::encode::blockpack_layout {

// Indices for permutations of the 128 bytes in two vectors.
struct ByteIndices {
  alignas(64) std::array<std::uint8_t, 64> at;
};
template <class Rule>
constexpr ByteIndices byte_indices(Rule rule) {
  ByteIndices indices{};
  for (int j = 0; j < 64; ++j)
    indices.at[static_cast<unsigned>(j)] = static_cast<std::uint8_t>(rule(j));
  return indices;
}

// One byte of 64 words, in each eight of them the last first: as rows of a matrix of bits.
inline constexpr ByteIndices kLowBytes =
    byte_indices([](int j) { return 2 * (j / 8 * 8 + 7 - j % 8); });
inline constexpr ByteIndices kHighBytes =
    byte_indices([](int j) { return 2 * (j / 8 * 8 + 7 - j % 8) + 1; });
// Bytes 8 q + p to 16 p + q: those of the planes 0 to 3, then 4 to 7; and back, q from 0 and
// from 8.
inline constexpr ByteIndices kToPlanes[2] = {
    byte_indices([](int j) { return 8 * (j % 16) + j / 16; }),
    byte_indices([](int j) { return 8 * (j % 16) + j / 16 + 4; })};
inline constexpr ByteIndices kFromPlanes[2] = {
    byte_indices([](int j) { return 16 * (j % 8) + j / 8; }),
    byte_indices([](int j) { return 16 * (j % 8) + j / 8 + 8; })};
// Low bytes and high bytes to words.
inline constexpr ByteIndices kToWords[2] = {
    byte_indices([](int j) { return j / 2 + j % 2 * 64; }),
    byte_indices([](int j) { return j / 2 + j % 2 * 64 + 32; })};

// Rows of matrices. Bits as they are; and the highest bit, then the exclusive or of the highest
// with each of the others: from two's complement to zigzag and back.
inline constexpr std::uint64_t kBits = 0x8040201008040201;
inline constexpr std::uint64_t kZigzagBits = 0xC0A0908884828180;

}  // namespace firn::encode::blockpack_layout
#endif  // FIRN_ENCODE_BLOCKPACK_GFNI_ONCE

#if defined(FIRN_ENCODE_BLOCKPACK_GFNI_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIRN_ENCODE_BLOCKPACK_GFNI_INL
#undef FIRN_ENCODE_BLOCKPACK_GFNI_INL
#else
#define FIRN_ENCODE_BLOCKPACK_GFNI_INL
#endif

#include "encode/blockpack_planes-inl.hpp"

#if HWY_TARGET == HWY_AVX3_DL

FIRN_BLOCKPACK_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace blockpack {

using V512 = __m512i;

HWY_INLINE V512 load512(const void* from) { return _mm512_loadu_si512(from); }
HWY_INLINE void store512(V512 v, void* to) { _mm512_storeu_si512(to, v); }
HWY_INLINE V512 pick(V512 a, const ByteIndices& indices, V512 b) {
  return _mm512_permutex2var_epi8(a, _mm512_load_si512(indices.at.data()), b);
}

// Each 8 bytes of `rows` as a matrix: byte p of the result holds the parity of each row with byte p
// of `columns`.
HWY_INLINE V512 transpose_bits(V512 rows, uint64_t columns) {
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(static_cast<int64_t>(columns)), rows, 0);
}

// Eight planes of 256 values, two to a vector, from one byte of each value.
HWY_INLINE void planes_of_bytes(const V512* words, const ByteIndices& byte, uint64_t columns,
                                V512* planes) {
  V512 z[4];
  for (int m = 0; m < 4; ++m) {
    z[m] = transpose_bits(pick(words[2 * m], byte, words[2 * m + 1]), columns);
  }
  const V512 first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const V512 second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int h = 0; h < 2; ++h) {
    const V512 low = pick(z[0], kToPlanes[h], z[1]), high = pick(z[2], kToPlanes[h], z[3]);
    planes[2 * h] = _mm512_permutex2var_epi64(low, first, high);
    planes[2 * h + 1] = _mm512_permutex2var_epi64(low, second, high);
  }
}

// One byte of each of 256 values from its eight planes; `bits`: of each byte, highest plane first.
HWY_INLINE void bytes_of_planes(const V512* planes, uint64_t bits, V512* bytes) {
  const V512 low = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13);
  const V512 high = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
  const V512 each = _mm512_set1_epi64(static_cast<int64_t>(bits));
  for (int h = 0; h < 2; ++h) {
    const V512 half = h == 0 ? low : high;
    const V512 t0 = _mm512_permutex2var_epi64(planes[0], half, planes[1]);
    const V512 t1 = _mm512_permutex2var_epi64(planes[2], half, planes[3]);
    for (int q = 0; q < 2; ++q) {
      bytes[2 * h + q] = _mm512_gf2p8affine_epi64_epi8(
          transpose_bits(pick(t0, kFromPlanes[q], t1), kBits), each, 0);
    }
  }
}

HWY_INLINE V512 twice(const uint8_t* plane) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(plane)));
}

// ---- Encoding

// 256 values as words, saturated; returns the width that these need.
HWY_INLINE int load_words(const int16_t* residuals, V512* words) {
  V512 low = _mm512_setzero_si512(), high = low;
  for (int m = 0; m < 8; ++m) {
    words[m] = load512(residuals + 32 * m);
    low = _mm512_min_epi16(low, words[m]);
    high = _mm512_max_epi16(high, words[m]);
  }
  // low is not above 0, high not below.
  const V512 magnitudes = _mm512_or_si512(_mm512_xor_si512(low, _mm512_srai_epi16(low, 15)), high);
  const auto both = static_cast<uint32_t>(_mm512_reduce_or_epi32(magnitudes));
  const auto magnitude = static_cast<uint16_t>(both | both >> 16);
  if (magnitude != 0) return std::bit_width(magnitude) + 1;
  // There may be nothing but 0 and -1.
  return _mm512_movepi16_mask(low) != 0 ? 1 : 0;
}
HWY_INLINE int load_words(const int32_t* residuals, V512* words) {
  const V512 order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  alignas(64) int16_t narrowed[kSuperblock];
  for (int m = 0; m < 8; ++m) {
    const V512 packed =
        _mm512_packs_epi32(load512(residuals + 32 * m), load512(residuals + 32 * m + 16));
    store512(_mm512_permutexvar_epi64(order, packed), narrowed + 32 * m);
  }
  return load_words(narrowed, words);
}

HWY_INLINE void planes_of_words(const V512* words, int width, PlanesUpTo<16>& planes) {
  V512 v[4];
  if (width <= 8) {
    planes_of_bytes(words, kLowBytes, kZigzagBits, v);
    for (int i = 0; i < 4; ++i) store512(v[i], planes.plane[2 * i]);
    return;
  }
  // Plane 0, then 9 to 15.
  planes_of_bytes(words, kHighBytes, kZigzagBits, v);
  store512(v[0], planes.plane[8]);
  for (int i = 1; i < 4; ++i) store512(v[i], planes.plane[8 + 2 * i]);
  const V512 sign = _mm512_broadcast_i64x4(_mm512_castsi512_si256(v[0]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes.plane[0]), _mm512_castsi512_si256(v[0]));
  planes_of_bytes(words, kLowBytes, kBits, v);
  for (int i = 0; i < 4; ++i) store512(_mm512_xor_si512(v[i], sign), planes.plane[1 + 2 * i]);
}

// Sets the masks of all kPlanes planes, and those behind to 0; returns how many planes are dense.
template <int kPlanes, int kCount>
HWY_INLINE int mark_planes(PlanesUpTo<kCount>& planes) {
  uint64_t crowded = 0;
  for (int p = 0; p < kPlanes; p += 8) {
    uint64_t pairs[4];
    for (int i = 0; i < 4; ++i) {
      const V512 v = load512(planes.plane[p + 2 * i]);
      pairs[i] = _mm512_test_epi8_mask(v, v);
    }
    const __m256i masks =
        _mm256_set_epi64x(static_cast<int64_t>(pairs[3]), static_cast<int64_t>(pairs[2]),
                          static_cast<int64_t>(pairs[1]), static_cast<int64_t>(pairs[0]));
    _mm256_store_si256(reinterpret_cast<__m256i*>(planes.mask + p), masks);
    const unsigned full =
        _mm256_cmpgt_epi32_mask(_mm256_popcnt_epi32(masks), _mm256_set1_epi32(kMaxSparse));
    crowded |= static_cast<uint64_t>(full) << p;
  }
  if constexpr (kPlanes == 8) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(planes.mask + 8), _mm256_setzero_si256());
  }
  planes.mask[kPlanes] = 0;
  return static_cast<int>(std::bit_width(crowded));
}

// The sparse planes in their three parts.
template <int kPlanes, int kCount>
HWY_INLINE uint8_t* write_sparse(const PlanesUpTo<kCount>& planes, int width, int dense,
                                 uint8_t* out) {
  constexpr int kGroups = (kPlanes + 15) / 16;
  const int sparse = width - dense;
  V512 masks[kGroups];
  uint64_t nonzero[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    const int here = std::clamp(sparse - 16 * g, 0, 16);
    masks[g] = _mm512_maskz_loadu_epi8(_bzhi_u64(~uint64_t{0}, static_cast<unsigned>(4 * here)),
                                       planes.mask + dense + 16 * g);
    nonzero[g] = _mm512_test_epi8_mask(masks[g], masks[g]);
    std::memcpy(out + 8 * g, &nonzero[g], sizeof nonzero[g]);
  }
  out += (sparse + 1) / 2;
  for (int g = 0; g < kGroups; ++g) {
    store512(_mm512_maskz_compress_epi8(nonzero[g], masks[g]), out);
    out += std::popcount(nonzero[g]);
  }
  // How many there are is hard to predict; those behind the last have no bytes.
  for (int p = dense; p < (kPlanes == 8 ? dense + 8 : width); p += 2) {
    uint64_t mask;
    std::memcpy(&mask, planes.mask + p, sizeof mask);
    store512(_mm512_maskz_compress_epi8(mask, load512(planes.plane[p])), out);
    out += std::popcount(mask);
  }
  return out;
}

// ---- Decoding

// The inverse of write_sparse; pairs: a nibble for each plane. May read 64 bytes more.
template <int kPlanes, int kCount>
HWY_INLINE const uint8_t* read_sparse(const uint8_t* in, const uint64_t* pairs, int sparse,
                                      int dense, PlanesUpTo<kCount>& planes) {
  for (int g = 0; g < (kPlanes + 15) / 16; ++g) {
    store512(_mm512_maskz_expand_epi8(pairs[g], load512(in)), planes.mask + 16 * g);
    in += std::popcount(pairs[g]);
  }
  for (int p = 0; p < sparse; p += 2) {
    uint64_t mask;
    std::memcpy(&mask, planes.mask + p, sizeof mask);
    store512(_mm512_maskz_expand_epi8(mask, load512(in)), planes.plane[dense + p]);
    in += std::popcount(mask);
  }
  return in;
}

HWY_INLINE void load_byte_values(const PlanesUpTo<16>& planes, V512* bytes) {
  V512 v[4];
  for (int i = 0; i < 4; ++i) v[i] = load512(planes.plane[2 * i]);
  bytes_of_planes(v, kZigzagBits, bytes);
}

// Values of at most 8 bits.
HWY_INLINE void byte_values(const PlanesUpTo<16>& planes, int8_t* values) {
  V512 bytes[4];
  load_byte_values(planes, bytes);
  for (int m = 0; m < 4; ++m) store512(bytes[m], values + 64 * m);
}

HWY_INLINE void word_values(const PlanesUpTo<16>& planes, int16_t* values) {
  const V512 sign = twice(planes.plane[0]);
  V512 v[4], low[4], high[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm512_xor_si512(load512(planes.plane[1 + 2 * i]), sign);
  bytes_of_planes(v, kBits, low);
  v[0] = _mm512_mask_blend_epi64(0x0F, load512(planes.plane[8]), sign);
  for (int i = 1; i < 4; ++i) v[i] = load512(planes.plane[8 + 2 * i]);
  bytes_of_planes(v, kZigzagBits, high);
  for (int m = 0; m < 4; ++m) {
    store512(pick(low[m], kToWords[0], high[m]), values + 64 * m);
    store512(pick(low[m], kToWords[1], high[m]), values + 64 * m + 32);
  }
}

}  // namespace blockpack
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3_DL
#endif  // per target
