// What the coder's kernels for 32-bit and for wider residuals share, one copy per target: states of
// eight lanes to a vector, their words, and tokens.

#ifndef FIRN_ENCODE_CONTEXT_RANS_LANES_ONCE
#define FIRN_ENCODE_CONTEXT_RANS_LANES_ONCE

#include <array>
#include <bit>
#include <cstdint>

#include "encode/context_rans.hpp"

namespace firn::encode {

// Byte shuffles of eight 16-bit words by a mask of lanes. 0x80 makes a zero byte.
struct WordShuffles {
  alignas(64) std::uint8_t expand[256][16];    // the next words, in order, to the lanes of the mask
  alignas(64) std::uint8_t compress[256][16];  // the words of those lanes, to the vector's end
};

constexpr WordShuffles make_word_shuffles() {
  WordShuffles shuffles{};
  for (int mask = 0; mask < 256; ++mask) {
    int word = 0;
    int place = 8;
    for (int lane = 7; lane >= 0; --lane) {
      if (mask >> lane & 1) --place;
    }
    for (int k = 0; k < 2 * place; ++k) shuffles.compress[mask][k] = 0x80;
    for (int lane = 0; lane < 8; ++lane) {
      const bool taken = mask >> lane & 1;
      for (int byte = 0; byte < 2; ++byte) {
        shuffles.expand[mask][2 * lane + byte] =
            static_cast<std::uint8_t>(taken ? 2 * word + byte : 0x80);
        if (taken) {
          shuffles.compress[mask][2 * place + byte] = static_cast<std::uint8_t>(2 * lane + byte);
        }
      }
      if (taken) ++word, ++place;
    }
  }
  return shuffles;
}
inline constexpr WordShuffles kWordShuffles = make_word_shuffles();

}  // namespace firn::encode
#endif  // once

#if defined(FIRN_ENCODE_CONTEXT_RANS_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIRN_ENCODE_CONTEXT_RANS_LANES_INL
#undef FIRN_ENCODE_CONTEXT_RANS_LANES_INL
#else
#define FIRN_ENCODE_CONTEXT_RANS_LANES_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace context_rans {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

constexpr size_t kVector = 8;
using D32 = hn::FixedTag<int32_t, kVector>;
using DU32 = hn::FixedTag<uint32_t, kVector>;
using D64 = hn::FixedTag<int64_t, kVector / 2>;
using DU64 = hn::FixedTag<uint64_t, kVector / 2>;
using DU16 = hn::FixedTag<uint16_t, kVector>;
using DU8 = hn::FixedTag<uint8_t, 16>;
using DBytes = hn::FixedTag<uint8_t, kRansGroup>;
using V = hn::Vec<D32>;
using M = hn::Mask<D32>;
constexpr D32 d;
constexpr DU32 du;
constexpr DU16 du16;
constexpr DU8 du8;
constexpr DBytes d_bytes;

HWY_INLINE uint32_t bits_of(M mask) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  return bits[0];
}

// Looks up a byte for each of 32 contexts, in 16, 32 or 64 entries.
class ByteMap {
 public:
  HWY_INLINE ByteMap(const std::array<uint8_t, kMaxContexts>& bytes, int context_count)
      : bytes_(bytes.data()),
        parts_(context_count <= 16   ? 1
               : context_count <= 32 ? 2
                                     : 4) {}

  HWY_INLINE hn::Vec<DBytes> operator()(hn::Vec<DBytes> context) const {
    const auto low = hn::And(context, hn::Set(d_bytes, 15));
    const auto first = part(0, low);
    if (parts_ == 1) return first;
    const auto bit4 = is_set(context, 16);
    const auto below_32 = hn::IfThenElse(bit4, part(1, low), first);
    if (parts_ == 2) return below_32;
    return hn::IfThenElse(is_set(context, 32), hn::IfThenElse(bit4, part(3, low), part(2, low)),
                          below_32);
  }

 private:
  HWY_INLINE hn::Vec<DBytes> part(size_t k, hn::Vec<DBytes> low) const {
    return hn::TableLookupBytes(hn::LoadDup128(d_bytes, bytes_ + 16 * k), low);
  }
  static HWY_INLINE hn::Mask<DBytes> is_set(hn::Vec<DBytes> value, uint8_t bit) {
    return hn::TestBit(value, hn::Set(d_bytes, bit));
  }

  const uint8_t* bytes_;
  int parts_;
};

HWY_INLINE V widen(const uint8_t* bytes) {
  return hn::PromoteTo(d, hn::LoadU(hn::FixedTag<uint8_t, kVector>(), bytes));
}

// Lanes below 2^15 take the next words.
HWY_INLINE V renormalize(V state, const uint8_t*& next) {
  const M low = hn::Lt(state, hn::Set(d, static_cast<int32_t>(kRansLow)));
  const uint32_t bits = bits_of(low);
  const auto words = hn::LoadU(du8, next);
  const auto placed = hn::TableLookupBytes(words, hn::Load(du8, kWordShuffles.expand[bits]));
  const V added = hn::PromoteTo(d, hn::BitCast(du16, placed));
  next += 2 * hn::CountTrue(d, low);
  return hn::Or(hn::IfThenElse(low, hn::ShiftLeft<16>(state), state), added);
}

// |token| of an escape.
constexpr int32_t kEscape = 32;
HWY_INLINE M is_escape(V size) { return hn::Eq(size, hn::Set(d, kEscape)); }

// The raw bits of a token beside the low bits of its residual: extra bits of its class. Of escapes
// there are none, and nothing is known.
struct ClassOf {
  V extra;
  V first;  // smallest magnitude
};
HWY_INLINE ClassOf class_of(V size) {
  // 16 + 2 e + m is the class from (2 + m) << (3 + e) on.
  const M is_class = hn::Gt(size, hn::Set(d, kDirectTokens - 1));
  const V extra = hn::IfThenElseZero(
      is_class, hn::Sub(hn::ShiftRight<1>(size), hn::Set(d, kDirectTokens / 2 - 3)));
  const V top = hn::Or(hn::And(size, hn::Set(d, 1)), hn::Set(d, 2));
  const V first = hn::IfThenElse(is_class, hn::Shl(top, extra), size);
  const M escape = is_escape(size);
  return {hn::IfThenZeroElse(escape, extra), hn::IfThenZeroElse(escape, first)};
}

HWY_INLINE bool all_zero(V v) { return hn::AllTrue(d, hn::Eq(v, hn::Zero(d))); }

// Whether any is not 0.
HWY_INLINE bool store_shifts(hn::Vec<DBytes> from, uint8_t* shifts) {
  hn::Store(from, d_bytes, shifts);
  return !hn::AllTrue(d_bytes, hn::Eq(from, hn::Zero(d_bytes)));
}

HWY_INLINE bool any_above(V v, int32_t most) {
  return !hn::AllFalse(d, hn::Gt(v, hn::Set(d, most)));
}

// So many bits of each lane, at most kRawPieceBits.
HWY_INLINE V take_raw(V& state, V bits, const uint8_t*& next) {
  const V one = hn::Set(d, 1);
  const V raw = hn::And(state, hn::Sub(hn::Shl(one, bits), one));
  state = renormalize(hn::Shr(state, bits), next);
  return raw;
}

template <size_t kLanes>
struct States {
  static constexpr size_t kVectors = kLanes / kVector;
  V v[kVectors];

  HWY_INLINE explicit States(const std::array<uint32_t, kRansGroup>& from) { load(from); }
  HWY_INLINE void load(const std::array<uint32_t, kRansGroup>& from) {
    for (size_t k = 0; k < kVectors; ++k) {
      v[k] = hn::BitCast(d, hn::Load(du, from.data() + k * kVector));
    }
  }
  HWY_INLINE void store(std::array<uint32_t, kRansGroup>& to) const {
    for (size_t k = 0; k < kVectors; ++k) {
      hn::Store(hn::BitCast(du, v[k]), du, to.data() + k * kVector);
    }
  }
};

// Lanes in which `room` is negative give up their low words, which go below `next`.
HWY_INLINE V emit(V state, V room, uint8_t*& next) {
  const uint32_t bits = bits_of(hn::Lt(room, hn::Zero(d)));
  const auto words = hn::DemoteTo(du16, hn::And(state, hn::Set(d, 0xFFFF)));
  const auto packed =
      hn::TableLookupBytes(hn::BitCast(du8, words), hn::Load(du8, kWordShuffles.compress[bits]));
  hn::StoreU(packed, du8, next - 16);
  next -= 2 * static_cast<size_t>(std::popcount(bits));
  // The next step waits for this: shifts are quicker than masks.
  const auto sixteen_if = hn::ShiftLeft<4>(hn::ShiftRight<31>(hn::BitCast(du, room)));
  return hn::Shr(state, hn::BitCast(d, sixteen_if));
}

// At most kRawPieceBits bits of each lane.
HWY_INLINE V put_raw(V state, V raw, V bits, uint8_t*& next) {
  const V excess = hn::Shr(state, hn::Sub(hn::Set(d, 31), bits));
  return hn::Or(hn::Shl(emit(state, hn::Neg(excess), next), bits), raw);
}

// (a * b) >> 32 in each lane.
HWY_INLINE V multiply_high(V a, V b) {
  const DU64 du64;
  const auto ua = hn::BitCast(du, a);
  const auto ub = hn::BitCast(du, b);
  const auto even = hn::ShiftRight<32>(hn::MulEven(ua, ub));
  const auto odd = hn::MulEven(hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(du64, ua))),
                               hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(du64, ub))));
  return hn::BitCast(d, hn::OddEven(hn::BitCast(du, odd), hn::BitCast(du, even)));
}

// Four entries of a table. Loads one by one are quicker than a gather.
HWY_INLINE hn::Vec<D64> load_entries(const int64_t* entries, const Cell* cells) {
  const hn::FixedTag<int64_t, 1> d_one;
  const hn::FixedTag<int64_t, 2> d_two;
  const auto entry = [&](size_t k) { return hn::LoadU(d_one, entries + cells[k]); };
  return hn::Combine(D64(), hn::Combine(d_two, entry(3), entry(2)),
                     hn::Combine(d_two, entry(1), entry(0)));
}

// Of a step's tokens.
template <size_t kLanes>
struct TableEntries {
  static constexpr size_t kVectors = kLanes / kVector;
  V reciprocals[kVectors];
  V packed[kVectors];

  HWY_INLINE void load(const int64_t* table, const Cell* cells) {
    for (size_t k = 0; k < kVectors; ++k) {
      const Cell* const at = cells + k * kVector;
      const auto low = load_entries(table, at), high = load_entries(table, at + kVector / 2);
      reciprocals[k] = hn::ConcatEven(d, hn::BitCast(d, high), hn::BitCast(d, low));
      packed[k] = hn::ConcatOdd(d, hn::BitCast(d, high), hn::BitCast(d, low));
    }
  }
  HWY_INLINE V flags() const {
    V all = packed[0];
    for (size_t k = 1; k < kVectors; ++k) all = hn::Or(all, packed[k]);
    return all;
  }
};

HWY_INLINE V sizes_of(const Cell* cells) {
  const V cell = hn::PromoteTo(d, hn::LoadU(du16, cells));
  return hn::Abs(hn::Sub(hn::And(cell, hn::Set(d, 63)), hn::Set(d, kEscape)));
}

// Codes the escapes of a step, if there are any: their entries become those of escapes. Sets the
// magnitudes of the tokens as they are coded.
template <size_t kLanes, class Q>
HWY_INLINE void put_escapes(RansWriter& writer, const Q* residuals, const Cell* cells,
                            States<kLanes>& states, uint8_t*& next, TableEntries<kLanes>& entries,
                            V* sizes) {
  V escapes = hn::ShiftRight<31>(entries.flags());
  for (size_t k = 0; k < States<kLanes>::kVectors; ++k) {
    sizes[k] = sizes_of(cells + k * kVector);
    escapes = hn::Or(escapes, hn::And(sizes[k], hn::Set(d, kEscape)));
  }
  if (HWY_LIKELY(all_zero(escapes))) return;
  Cell coded[kLanes];
  states.store(writer.states);
  writer.next = next;
  encode_escapes(writer, residuals, cells, kLanes, coded);
  next = writer.next;
  states.load(writer.states);
  entries.load(reinterpret_cast<const int64_t*>(writer.tables), coded);
  for (size_t k = 0; k < States<kLanes>::kVectors; ++k) sizes[k] = sizes_of(coded + k * kVector);
}

// ---- Tokens ----

// Of one step. Returns what their magnitudes have in common.
template <size_t kLanes>
HWY_INLINE V decode_tokens(States<kLanes>& states, const int32_t* slots, const uint8_t* tables,
                           const uint8_t* zeros, const uint8_t*& next, V* tokens) {
  const V slot_mask = hn::Set(d, 0xFFF);
  V any = hn::Zero(d);
  for (size_t k = 0; k < States<kLanes>::kVectors; ++k) {
    const V state = states.v[k];
    const V table = hn::ShiftLeft<kProbabilityBits>(widen(tables + k * kVector));
    // Tables are large for the cache nearest to the core. For most of the slots of token 0 the
    // last of these is read instead, which is at hand.
    const V at = hn::And(state, slot_mask);
    const V surely_zero = hn::ShiftLeft<4>(widen(zeros + k * kVector));
    const V slot = hn::GatherIndex(d, slots, hn::Or(table, hn::Max(at, surely_zero)));
    const V frequency = hn::And(hn::ShiftRight<12>(slot), slot_mask);
    states.v[k] = hn::Add(hn::Mul(frequency, hn::ShiftRight<kProbabilityBits>(state)),
                          hn::Sub(at, hn::And(slot, slot_mask)));
    tokens[k] = hn::ShiftRight<24>(slot);
    any = hn::Or(any, hn::Abs(tokens[k]));
  }
  for (size_t k = 0; k < States<kLanes>::kVectors; ++k) {
    states.v[k] = renormalize(states.v[k], next);
  }
  return any;
}

template <size_t kLanes>
HWY_INLINE void encode_tokens(States<kLanes>& states, const TableEntries<kLanes>& entries,
                              uint8_t*& next) {
  const V one = hn::Set(d, 1);
  const V scale = hn::Set(d, static_cast<int32_t>(kProbabilityScale));
  for (size_t k = States<kLanes>::kVectors; k-- > 0;) {
    const V packed = entries.packed[k];
    const V complement = hn::And(hn::ShiftRight<13>(packed), hn::Set(d, 0xFFF));
    const V limit = hn::ShiftLeft<31 - kProbabilityBits>(hn::Sub(scale, complement));
    const V room = hn::Sub(hn::Sub(limit, one), states.v[k]);
    const V state = emit(states.v[k], room, next);
    const V shift = hn::And(hn::ShiftRight<25>(packed), hn::Set(d, 0xF));
    const V quotient = hn::Shr(multiply_high(state, entries.reciprocals[k]), shift);
    states.v[k] =
        hn::Add(hn::Add(state, hn::And(packed, hn::Set(d, 0x1FFF))), hn::Mul(quotient, complement));
  }
}

// The cells of residuals, given their parts above the low bits.
template <class DI>
HWY_INLINE void store_cells(DI di, hn::Vec<DI> high, const uint8_t* contexts, Cell* cells) {
  const hn::RebindToUnsigned<DI> du32;
  const hn::Rebind<float, DI> df;
  const hn::Rebind<uint8_t, DI> d8;
  const hn::Rebind<uint16_t, DI> d_cell;
  // Unsigned, because |-2^31| stays negative.
  const auto size =
      hn::BitCast(di, hn::Min(hn::BitCast(du32, hn::Abs(high)), hn::Set(du32, 4096u)));
  // Exponent and first mantissa bit of a float count the classes; those of 16.0f are 262.
  const auto classed = hn::Sub(hn::ShiftRight<22>(hn::BitCast(di, hn::ConvertTo(df, size))),
                               hn::Set(di, 262 - kDirectTokens));
  const auto token = hn::IfThenElse(hn::Lt(size, hn::Set(di, kDirectTokens)), size, classed);
  const auto negative = hn::Or(hn::Lt(high, hn::Zero(di)), hn::Eq(token, hn::Set(di, 32)));
  const auto index = hn::Add(hn::IfThenElse(negative, hn::Neg(token), token), hn::Set(di, 32));
  const auto context = hn::PromoteTo(di, hn::LoadU(d8, contexts));
  const auto cell = hn::Add(hn::ShiftLeft<6>(context), index);
  hn::StoreU(hn::DemoteTo(d_cell, cell), d_cell, cells);
}

#endif

}  // namespace context_rans
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#endif  // per target
