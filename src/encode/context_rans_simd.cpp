// Context rANS with Highway, one copy per target, for 32-bit residuals. Eight lanes to a vector;
// targets whose vectors are shorter (they have no gathers either) run the plain code.
#include "encode/context_rans.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/context_rans_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cstring>

#ifndef FIRN_CONTEXT_RANS_SHUFFLES
#define FIRN_CONTEXT_RANS_SHUFFLES
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
#endif  // FIRN_CONTEXT_RANS_SHUFFLES

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
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

// One step of lanes whose tokens are all 0, which then have these many slots. False and nothing
// done if some are not. Here states alone wait for each other, and words are rarely due.
template <size_t kLanes>
HWY_INLINE bool decode_zeros(States<kLanes>& states, const uint8_t* zeros, const uint8_t* more,
                             const uint8_t*& next, int32_t* HWY_RESTRICT to) {
  constexpr size_t kVectors = kLanes / kVector;
  const V slot_mask = hn::Set(d, 0xFFF);
  V frequencies[kVectors];
  M zero = hn::FirstN(d, kVector);
  for (size_t k = 0; k < kVectors; ++k) {
    frequencies[k] =
        hn::Add(hn::ShiftLeft<4>(widen(zeros + k * kVector)), widen(more + k * kVector));
    zero = hn::And(zero, hn::Lt(hn::And(states.v[k], slot_mask), frequencies[k]));
  }
  if (HWY_UNLIKELY(!hn::AllTrue(d, zero))) return false;
  M low = hn::FirstN(d, 0);
  for (size_t k = 0; k < kVectors; ++k) {
    states.v[k] = hn::Add(hn::Mul(frequencies[k], hn::ShiftRight<kProbabilityBits>(states.v[k])),
                          hn::And(states.v[k], slot_mask));
    low = hn::Or(low, hn::Lt(states.v[k], hn::Set(d, static_cast<int32_t>(kRansLow))));
    hn::StoreU(hn::Zero(d), d, to + k * kVector);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, low))) {
    for (size_t k = 0; k < kVectors; ++k) states.v[k] = renormalize(states.v[k], next);
  }
  return true;
}

// kZeros: groups of zeros are looked for. Payloads with few lanes are almost all zeros. Others may
// be in places, which begin with some groups of them; that pays where pieces are short, because
// their residuals are waited for.
constexpr size_t kManyZeroGroups = 4;
template <size_t kLanes, bool kZeros>
bool decode_lanes(RansReader& reader, const uint8_t* contexts, size_t count, int32_t* residuals) {
  constexpr size_t kVectors = kLanes / kVector;
  const ByteMap map_table(reader.table, reader.shifts.context_count);
  const ByteMap map_zeros(reader.zeros, reader.shifts.context_count);
  const ByteMap map_more(reader.more_zeros, reader.shifts.context_count);
  const ByteMap map_shift(reader.shifts.shift, reader.shifts.context_count);
  const int max_shift = reader.shifts.max;
  const auto* slots = reinterpret_cast<const int32_t*>(reader.tables);
  alignas(64) uint8_t tables[kRansGroup];
  alignas(64) uint8_t zeros[kRansGroup];
  alignas(64) uint8_t more[kRansGroup];
  alignas(64) uint8_t shifts[kRansGroup] = {};
  bool shifted = false;  // any of the group
  const V slot_mask = hn::Set(d, 0xFFF);
  const V one = hn::Set(d, 1);
  States<kLanes> states(reader.states);
  const uint8_t* next = reader.next;
  size_t zero_groups = reader.zero_groups;
  size_t i = 0;
  for (; i + kRansGroup <= count; i += kRansGroup) {
    const auto context = hn::LoadU(d_bytes, contexts + i);
    hn::Store(map_table(context), d_bytes, tables);
    hn::Store(map_zeros(context), d_bytes, zeros);
    const bool zeros_expected = kZeros && (kLanes < kRansGroup || zero_groups >= kManyZeroGroups);
    if (zeros_expected) hn::Store(map_more(context), d_bytes, more);
    if (max_shift > 0) shifted = store_shifts(map_shift(context), shifts);

    for (size_t j = 0; j < kRansGroup; j += kLanes) {
      if (HWY_UNLIKELY(next > reader.limit)) {
        reader.next = next;
        if (!reader.refill()) return false;
        next = reader.next;
      }
      int32_t* HWY_RESTRICT to = residuals + i + j;
      if (zeros_expected && !shifted && decode_zeros(states, zeros + j, more + j, next, to)) {
        continue;
      }
      V tokens[kVectors];
      V any = hn::Zero(d);
      for (size_t k = 0; k < kVectors; ++k) {
        const V state = states.v[k];
        const V table = hn::ShiftLeft<kProbabilityBits>(widen(tables + j + k * kVector));
        // Tables are large for the cache nearest to the core. For most of the slots of token 0 the
        // last of these is read instead, which is at hand.
        const V at = hn::And(state, slot_mask);
        const V surely_zero = hn::ShiftLeft<4>(widen(zeros + j + k * kVector));
        const V slot = hn::GatherIndex(d, slots, hn::Or(table, hn::Max(at, surely_zero)));
        const V frequency = hn::And(hn::ShiftRight<12>(slot), slot_mask);
        states.v[k] = hn::Add(hn::Mul(frequency, hn::ShiftRight<kProbabilityBits>(state)),
                              hn::Sub(at, hn::And(slot, slot_mask)));
        tokens[k] = hn::ShiftRight<24>(slot);
        any = hn::Or(any, hn::Abs(tokens[k]));
      }
      if (kZeros) zero_groups = all_zero(any) ? zero_groups + 1 : 0;
      any = hn::AndNot(hn::Set(d, 15), any);
      for (size_t k = 0; k < kVectors; ++k) states.v[k] = renormalize(states.v[k], next);
      // Raw bits: none; the low bits alone, at most a piece; or classes, escapes, large shifts.
      if (HWY_LIKELY(all_zero(any))) {
        if (!shifted) {
          for (size_t k = 0; k < kVectors; ++k) hn::StoreU(tokens[k], d, to + k * kVector);
          continue;
        }
        if (HWY_LIKELY(max_shift <= kRawPieceBits)) {
          for (size_t k = 0; k < kVectors; ++k) {
            const V low_bits = widen(shifts + j + k * kVector);
            const V step = hn::Shl(one, low_bits);
            const V low =
                hn::Sub(hn::And(states.v[k], hn::Sub(step, one)), hn::ShiftRight<1>(step));
            states.v[k] = renormalize(hn::Shr(states.v[k], low_bits), next);
            hn::StoreU(hn::Add(hn::Shl(tokens[k], low_bits), low), d, to + k * kVector);
          }
          continue;
        }
      }

      V raw_bits[kVectors];
      V most_bits = hn::Zero(d), escapes = hn::Zero(d);
      for (size_t k = 0; k < kVectors; ++k) {
        const V size = hn::Abs(tokens[k]);
        raw_bits[k] = hn::Add(widen(shifts + j + k * kVector), class_of(size).extra);
        most_bits = hn::Max(most_bits, raw_bits[k]);
        escapes = hn::Or(escapes, hn::And(size, hn::Set(d, kEscape)));
      }
      if (HWY_UNLIKELY(any_above(most_bits, 2 * kRawPieceBits))) {
        alignas(64) int32_t plain[kLanes];
        for (size_t k = 0; k < kVectors; ++k) hn::Store(tokens[k], d, plain + k * kVector);
        states.store(reader.states);
        reader.next = next;
        if (!decode_raw_bits(reader, contexts + i + j, plain, kLanes, to)) return false;
        next = reader.next;
        states.load(reader.states);
        continue;
      }
      const V piece = hn::Set(d, kRawPieceBits);
      V raw[kVectors];
      for (size_t k = 0; k < kVectors; ++k) {
        raw[k] = take_raw(states.v[k], hn::Min(raw_bits[k], piece), next);
      }
      if (HWY_UNLIKELY(any_above(most_bits, kRawPieceBits))) {
        for (size_t k = 0; k < kVectors; ++k) {
          const V above =
              take_raw(states.v[k], hn::Max(hn::Sub(raw_bits[k], piece), hn::Zero(d)), next);
          raw[k] = hn::Or(raw[k], hn::ShiftLeft<kRawPieceBits>(above));
        }
      }
      for (size_t k = 0; k < kVectors; ++k) {
        const V low_bits = widen(shifts + j + k * kVector);
        const V step = hn::Shl(one, low_bits);
        const V size = hn::Add(class_of(hn::Abs(tokens[k])).first, hn::Shr(raw[k], low_bits));
        const V high = hn::IfThenElse(hn::Lt(tokens[k], hn::Zero(d)), hn::Neg(size), size);
        const V low = hn::Sub(hn::And(raw[k], hn::Sub(step, one)), hn::ShiftRight<1>(step));
        hn::StoreU(hn::Add(hn::Shl(high, low_bits), low), d, to + k * kVector);
      }
      if (HWY_LIKELY(all_zero(escapes))) continue;
      states.store(reader.states);
      reader.next = next;
      for (size_t k = 0; k < kVectors; ++k) {
        uint32_t lanes = bits_of(is_escape(hn::Abs(tokens[k])));
        for (; lanes != 0; lanes &= lanes - 1) {
          const size_t lane = k * kVector + static_cast<size_t>(std::countr_zero(lanes));
          int32_t high = 0;
          if (!decode_escape(reader, lane, high)) return false;
          to[lane] = static_cast<int32_t>(static_cast<uint32_t>(to[lane]) +
                                          (static_cast<uint32_t>(high) << shifts[j + lane]));
        }
      }
      next = reader.next;
      states.load(reader.states);
    }
  }
  states.store(reader.states);
  reader.next = next;
  reader.zero_groups = zero_groups;
  return context_rans_reference<int32_t>().decode(reader, contexts + i, count - i, residuals + i);
}

constexpr size_t kShortPiece = 2 * kRansGroup;
bool decode(RansReader& reader, const uint8_t* contexts, size_t count, int32_t* residuals) {
  switch (reader.lanes) {
    case 8:
      return decode_lanes<8, true>(reader, contexts, count, residuals);
    case 16:
      return decode_lanes<16, true>(reader, contexts, count, residuals);
    default:
      return count <= kShortPiece ? decode_lanes<32, true>(reader, contexts, count, residuals)
                                  : decode_lanes<32, false>(reader, contexts, count, residuals);
  }
}

HWY_INLINE void tokenize_group(const int32_t* residuals, const uint8_t* contexts,
                               const uint8_t* shifts, Cell* cells) {
  const hn::CappedTag<int32_t, kRansGroup> di;
  const hn::RebindToUnsigned<decltype(di)> du32;
  const hn::Rebind<float, decltype(di)> df;
  const hn::Rebind<uint8_t, decltype(di)> d8;
  const hn::Rebind<uint16_t, decltype(di)> d_cell;
  const auto one = hn::Set(di, 1);
  for (size_t k = 0; k < kRansGroup; k += hn::Lanes(di)) {
    const auto bits = hn::PromoteTo(di, hn::LoadU(d8, shifts + k));
    const auto half = hn::ShiftRight<1>(hn::Shl(one, bits));
    const auto high = hn::Shr(hn::Add(hn::LoadU(di, residuals + k), half), bits);
    // Unsigned, because |-2^31| stays negative.
    const auto size =
        hn::BitCast(di, hn::Min(hn::BitCast(du32, hn::Abs(high)), hn::Set(du32, 4096u)));
    // Exponent and first mantissa bit of a float count the classes; those of 16.0f are 262.
    const auto classed = hn::Sub(hn::ShiftRight<22>(hn::BitCast(di, hn::ConvertTo(df, size))),
                                 hn::Set(di, 262 - kDirectTokens));
    const auto token = hn::IfThenElse(hn::Lt(size, hn::Set(di, kDirectTokens)), size, classed);
    const auto negative = hn::Or(hn::Lt(high, hn::Zero(di)), hn::Eq(token, hn::Set(di, 32)));
    const auto index = hn::Add(hn::IfThenElse(negative, hn::Neg(token), token), hn::Set(di, 32));
    const auto context = hn::PromoteTo(di, hn::LoadU(d8, contexts + k));
    const auto cell = hn::Add(hn::ShiftLeft<6>(context), index);
    hn::StoreU(hn::DemoteTo(d_cell, cell), d_cell, cells + k);
  }
}

// Groups of small residuals without low bits are tokens as they are. False and nothing done if they
// are not.
HWY_INLINE bool tokenize_small(const int32_t* residuals, const uint8_t* contexts, Cell* cells) {
  const hn::CappedTag<int16_t, kRansGroup> d16;
  const hn::RebindToUnsigned<decltype(d16)> d_cells;
  const hn::RepartitionToWide<decltype(d16)> d32;
  const hn::Half<decltype(d16)> d16_half;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  constexpr size_t kLanes16 = hn::MaxLanes(d16), kVectors = kRansGroup / kLanes16;
  hn::Vec<decltype(d16)> tokens[kVectors];
  auto large = hn::Zero(d_cells);
  for (size_t k = 0; k < kVectors; ++k) {
    const int32_t* const from = residuals + k * kLanes16;
    const auto low = hn::DemoteTo(d16_half, hn::LoadU(d32, from));
    const auto high = hn::DemoteTo(d16_half, hn::LoadU(d32, from + kLanes16 / 2));
    tokens[k] = hn::Combine(d16, high, low);
    const auto raised = hn::Add(tokens[k], hn::Set(d16, kDirectTokens - 1));
    large = hn::Max(large, hn::BitCast(d_cells, raised));
  }
  const auto most = hn::Set(d_cells, 2 * (kDirectTokens - 1));
  if (!hn::AllTrue(d_cells, hn::Eq(hn::Max(large, most), most))) return false;
  for (size_t k = 0; k < kVectors; ++k) {
    const auto context = hn::PromoteTo(d16, hn::LoadU(d8, contexts + k * kLanes16));
    const auto first = hn::Add(hn::ShiftLeft<6>(context), hn::Set(d16, 32));
    hn::StoreU(hn::BitCast(d_cells, hn::Add(first, tokens[k])), d_cells, cells + k * kLanes16);
  }
  return true;
}

void tokenize(const int32_t* residuals, const uint8_t* contexts, const ContextShifts& shifts,
              size_t count, Cell* cells) {
  const ByteMap map_shift(shifts.shift, shifts.context_count);
  alignas(64) uint8_t shift[kRansGroup] = {};
  bool shifted = false;  // any of the group
  size_t i = 0;
  for (; i + kRansGroup <= count; i += kRansGroup) {
    if (shifts.max > 0) {
      shifted = store_shifts(map_shift(hn::LoadU(d_bytes, contexts + i)), shift);
    }
    if (!shifted && tokenize_small(residuals + i, contexts + i, cells + i)) continue;
    tokenize_group(residuals + i, contexts + i, shift, cells + i);
  }
  context_rans_reference<int32_t>().tokenize(residuals + i, contexts + i, shifts, count - i,
                                             cells + i);
}

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

template <size_t kLanes>
void encode_lanes(RansWriter& writer, const int32_t* residuals, const uint8_t* contexts,
                  const Cell* cells, size_t count) {
  constexpr size_t kVectors = kLanes / kVector;
  const size_t whole = count / kRansGroup * kRansGroup;
  context_rans_reference<int32_t>().encode(writer, residuals + whole, contexts + whole,
                                           cells + whole, count - whole);
  const auto* table = reinterpret_cast<const int64_t*>(writer.tables);
  const ByteMap map_shift(writer.shifts.shift, writer.shifts.context_count);
  const int max_shift = writer.shifts.max;
  alignas(64) uint8_t shifts[kRansGroup] = {};
  bool shifted = false;  // any of the group
  const V one = hn::Set(d, 1);
  const V scale = hn::Set(d, static_cast<int32_t>(kProbabilityScale));
  States<kLanes> states(writer.states);
  uint8_t* next = writer.next;
  for (size_t i = whole; i > 0;) {
    i -= kRansGroup;
    if (max_shift > 0) shifted = store_shifts(map_shift(hn::LoadU(d_bytes, contexts + i)), shifts);

    for (size_t j = kRansGroup; j > 0;) {
      j -= kLanes;
      const int32_t* from = residuals + i + j;
      TableEntries<kLanes> entries;
      entries.load(table, cells + i + j);
      const V rare = hn::Set(d, static_cast<int32_t>(kTokenAbsent | kTokenHasExtraBits));
      if (HWY_LIKELY(all_zero(hn::And(entries.flags(), rare)) && max_shift <= kRawPieceBits)) {
        for (size_t k = shifted ? kVectors : 0; k-- > 0;) {
          const V low_bits = widen(shifts + j + k * kVector);
          const V step = hn::Shl(one, low_bits);
          const V rounded = hn::Add(hn::LoadU(d, from + k * kVector), hn::ShiftRight<1>(step));
          states.v[k] = put_raw(states.v[k], hn::And(rounded, hn::Sub(step, one)), low_bits, next);
        }
      } else {
        V sizes[kVectors];  // |token|
        V escapes = hn::ShiftRight<31>(entries.flags());
        for (size_t k = 0; k < kVectors; ++k) {
          sizes[k] = sizes_of(cells + i + j + k * kVector);
          escapes = hn::Or(escapes, hn::And(sizes[k], hn::Set(d, kEscape)));
        }
        if (HWY_UNLIKELY(!all_zero(escapes))) {
          Cell coded[kLanes];
          states.store(writer.states);
          writer.next = next;
          encode_escapes(writer, from, cells + i + j, kLanes, coded);
          next = writer.next;
          states.load(writer.states);
          entries.load(table, coded);
          for (size_t k = 0; k < kVectors; ++k) sizes[k] = sizes_of(coded + k * kVector);
        }
        // At most 30 in a lane: of a residual's bits the first one and the sign are known.
        V raw[kVectors];
        V raw_bits[kVectors];
        V most_bits = hn::Zero(d);
        for (size_t k = 0; k < kVectors; ++k) {
          const V low_bits = widen(shifts + j + k * kVector);
          const V extra = class_of(sizes[k]).extra;
          const V step = hn::Shl(one, low_bits);
          const V rounded = hn::Add(hn::LoadU(d, from + k * kVector), hn::ShiftRight<1>(step));
          const V size = hn::Abs(hn::Shr(rounded, low_bits));
          const V above = hn::And(size, hn::Sub(hn::Shl(one, extra), one));
          raw[k] = hn::Or(hn::And(rounded, hn::Sub(step, one)), hn::Shl(above, low_bits));
          raw_bits[k] = hn::Add(low_bits, extra);
          most_bits = hn::Max(most_bits, raw_bits[k]);
        }
        const V piece = hn::Set(d, kRawPieceBits);
        if (HWY_UNLIKELY(any_above(most_bits, kRawPieceBits))) {
          for (size_t k = kVectors; k-- > 0;) {
            states.v[k] = put_raw(states.v[k], hn::ShiftRight<kRawPieceBits>(raw[k]),
                                  hn::Max(hn::Sub(raw_bits[k], piece), hn::Zero(d)), next);
          }
        }
        for (size_t k = kVectors; k-- > 0;) {
          states.v[k] = put_raw(states.v[k], hn::And(raw[k], hn::Set(d, (1 << kRawPieceBits) - 1)),
                                hn::Min(raw_bits[k], piece), next);
        }
      }
      for (size_t k = kVectors; k-- > 0;) {
        const V packed = entries.packed[k];
        const V complement = hn::And(hn::ShiftRight<13>(packed), hn::Set(d, 0xFFF));
        const V limit = hn::ShiftLeft<31 - kProbabilityBits>(hn::Sub(scale, complement));
        const V room = hn::Sub(hn::Sub(limit, one), states.v[k]);
        const V state = emit(states.v[k], room, next);
        const V shift = hn::And(hn::ShiftRight<25>(packed), hn::Set(d, 0xF));
        const V quotient = hn::Shr(multiply_high(state, entries.reciprocals[k]), shift);
        states.v[k] = hn::Add(hn::Add(state, hn::And(packed, hn::Set(d, 0x1FFF))),
                              hn::Mul(quotient, complement));
      }
    }
  }
  states.store(writer.states);
  writer.next = next;
}

void encode(RansWriter& writer, const int32_t* residuals, const uint8_t* contexts,
            const Cell* cells, size_t count) {
  switch (writer.lanes) {
    case 8:
      return encode_lanes<8>(writer, residuals, contexts, cells, count);
    case 16:
      return encode_lanes<16>(writer, residuals, contexts, cells, count);
    default:
      return encode_lanes<32>(writer, residuals, contexts, cells, count);
  }
}

const ContextRansKernels<int32_t>& table32() {
  static constexpr ContextRansKernels<int32_t> kernels{tokenize, encode, decode};
  return kernels;
}

#else

const ContextRansKernels<int32_t>& table32() { return context_rans_reference<int32_t>(); }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {
namespace {

const ContextRansKernels<std::int32_t>& vector_kernels(simd::Target target) {
  FIRN_SELECT_KERNELS(target, table32)
}

}  // namespace

template <>
const ContextRansKernels<std::int32_t>& context_rans_kernels(simd::Target target) {
  return target == simd::Target::reference ? context_rans_reference<std::int32_t>()
                                           : vector_kernels(target);
}

// Residuals of more than 32 bits mean bounds some 2^31 below the range: rare, and then raw bits
// dominate. They take the plain code.
template <>
const ContextRansKernels<std::int64_t>& context_rans_kernels(simd::Target) {
  return context_rans_reference<std::int64_t>();
}

}  // namespace firn::encode
#endif  // HWY_ONCE
