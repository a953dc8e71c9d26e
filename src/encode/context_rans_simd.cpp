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
using DU64 = hn::FixedTag<uint64_t, kVector / 2>;
using DU16 = hn::FixedTag<uint16_t, kVector>;
using DU8 = hn::FixedTag<uint8_t, 16>;
using D8 = hn::FixedTag<int8_t, kVector>;
using V = hn::Vec<D32>;
using M = hn::Mask<D32>;
constexpr D32 d;
constexpr DU32 du;
constexpr DU16 du16;
constexpr DU8 du8;

HWY_INLINE uint32_t bits_of(M mask) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  return bits[0];
}

// 64 bytes indexed by bytes below 64, 16 at a time.
struct ByteMap {
  hn::Vec<DU8> part[4];

  HWY_INLINE explicit ByteMap(const std::array<uint8_t, kMaxContexts>& bytes) {
    for (size_t k = 0; k < 4; ++k) part[k] = hn::LoadU(du8, bytes.data() + 16 * k);
  }
  HWY_INLINE hn::Vec<DU8> operator()(hn::Vec<DU8> index) const {
    const auto low = hn::And(index, hn::Set(du8, 15));
    const auto bit4 = hn::Ne(hn::And(index, hn::Set(du8, 16)), hn::Zero(du8));
    const auto bit5 = hn::Ne(hn::And(index, hn::Set(du8, 32)), hn::Zero(du8));
    const auto a = hn::IfThenElse(bit4, hn::TableLookupBytes(part[1], low),
                                  hn::TableLookupBytes(part[0], low));
    const auto b = hn::IfThenElse(bit4, hn::TableLookupBytes(part[3], low),
                                  hn::TableLookupBytes(part[2], low));
    return hn::IfThenElse(bit5, b, a);
  }
};

// Table and shift of up to 32 contexts, as bytes.
template <size_t kLanes>
HWY_INLINE void look_up(const ByteMap& tables, const ByteMap& shifts, const uint8_t* contexts,
                        uint8_t* HWY_RESTRICT table, uint8_t* HWY_RESTRICT shift) {
  if constexpr (kLanes == 8) {
    alignas(16) uint8_t padded[16] = {};
    std::memcpy(padded, contexts, 8);
    const auto index = hn::Load(du8, padded);
    hn::Store(tables(index), du8, table);
    hn::Store(shifts(index), du8, shift);
  } else {
    for (size_t i = 0; i < kLanes; i += 16) {
      const auto index = hn::LoadU(du8, contexts + i);
      hn::Store(tables(index), du8, table + i);
      hn::Store(shifts(index), du8, shift + i);
    }
  }
}

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
  next += 2 * static_cast<size_t>(std::popcount(bits));
  return hn::Or(hn::IfThenElse(low, hn::ShiftLeft<16>(state), state), added);
}

template <size_t kLanes>
bool decode_groups(RansReader& reader, const uint8_t* contexts, size_t count, int32_t* residuals) {
  constexpr size_t kVectors = kLanes / kVector;
  const ByteMap tables(reader.context.table);
  const ByteMap shifts(reader.context.shift);
  const auto* slots = reinterpret_cast<const int32_t*>(reader.tables);
  alignas(64) uint8_t table[32];
  alignas(64) uint8_t shift[32];
  const V slot_mask = hn::Set(d, 0xFFF);
  V states[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    states[v] = hn::BitCast(d, hn::Load(du, reader.states.data() + v * kVector));
  }
  const uint8_t* next = reader.next;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (HWY_UNLIKELY(next > reader.limit)) {
      reader.next = next;
      if (!reader.refill()) return false;
      next = reader.next;
    }
    look_up<kLanes>(tables, shifts, contexts + i, table, shift);
    V tokens[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      const V base = hn::ShiftLeft<kProbabilityBits>(widen(table + v * kVector));
      const V slot = hn::GatherIndex(d, slots, hn::Or(base, hn::And(states[v], slot_mask)));
      tokens[v] = hn::ShiftRight<24>(slot);
      const V frequency = hn::And(hn::ShiftRight<12>(slot), slot_mask);
      states[v] = hn::Add(hn::Mul(frequency, hn::ShiftRight<kProbabilityBits>(states[v])),
                          hn::And(slot, slot_mask));
    }
    for (size_t v = 0; v < kVectors; ++v) states[v] = renormalize(states[v], next);

    // Raw bits: none, up to 15 in each lane, or (escapes, large shifts) anything.
    V raw_bits[kVectors];
    V sizes[kVectors];
    V any = hn::Zero(d);
    V beyond = hn::Zero(d);
    for (size_t v = 0; v < kVectors; ++v) {
      sizes[v] = hn::Abs(tokens[v]);
      raw_bits[v] = widen(shift + v * kVector);
      any = hn::Or(any, hn::Or(raw_bits[v], hn::AndNot(hn::Set(d, 15), sizes[v])));
    }
    if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d)))) {
      for (size_t v = 0; v < kVectors; ++v) hn::StoreU(tokens[v], d, residuals + i + v * kVector);
      continue;
    }
    V first[kVectors];
    V extra[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      // 16 + 2 e + m is the class from (2 + m) << (3 + e) on.
      const M is_class = hn::Gt(sizes[v], hn::Set(d, kDirectTokens - 1));
      extra[v] = hn::IfThenElseZero(
          is_class, hn::Sub(hn::ShiftRight<1>(sizes[v]), hn::Set(d, kDirectTokens / 2 - 3)));
      const V top = hn::Or(hn::And(sizes[v], hn::Set(d, 1)), hn::Set(d, 2));
      first[v] = hn::IfThenElse(is_class, hn::Shl(top, extra[v]), sizes[v]);
      // 32 marks an escape.
      beyond = hn::Or(beyond, hn::And(sizes[v], hn::Set(d, 32)));
      raw_bits[v] = hn::Add(raw_bits[v], extra[v]);
      beyond = hn::Or(beyond, hn::AndNot(hn::Set(d, 15), raw_bits[v]));
    }
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(beyond, hn::Zero(d))))) {
      alignas(64) int32_t plain[kLanes];
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(hn::BitCast(du, states[v]), du, reader.states.data() + v * kVector);
        hn::Store(tokens[v], d, plain + v * kVector);
      }
      reader.next = next;
      if (!decode_raw_bits(reader, contexts + i, plain, kLanes, residuals + i)) return false;
      next = reader.next;
      for (size_t v = 0; v < kVectors; ++v) {
        states[v] = hn::BitCast(d, hn::Load(du, reader.states.data() + v * kVector));
      }
      continue;
    }
    const V one = hn::Set(d, 1);
    for (size_t v = 0; v < kVectors; ++v) {
      const V mask = hn::Sub(hn::Shl(one, raw_bits[v]), one);
      const V raw = hn::And(states[v], mask);
      states[v] = renormalize(hn::Shr(states[v], raw_bits[v]), next);
      const V low_bits = hn::Sub(raw_bits[v], extra[v]);
      const V step = hn::Shl(one, low_bits);
      const V size = hn::Add(first[v], hn::Shr(raw, low_bits));
      const V high = hn::IfThenElse(hn::Lt(tokens[v], hn::Zero(d)), hn::Neg(size), size);
      const V low = hn::Sub(hn::And(raw, hn::Sub(step, one)), hn::ShiftRight<1>(step));
      hn::StoreU(hn::Add(hn::Shl(high, low_bits), low), d, residuals + i + v * kVector);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    hn::Store(hn::BitCast(du, states[v]), du, reader.states.data() + v * kVector);
  }
  reader.next = next;
  return i == count || decode_group(reader, contexts + i, count - i, residuals + i);
}

bool decode(RansReader& reader, const uint8_t* contexts, size_t count, int32_t* residuals) {
  return reader.lanes == kRansGroup ? decode_groups<kRansGroup>(reader, contexts, count, residuals)
                                    : decode_groups<kVector>(reader, contexts, count, residuals);
}

void tokenize(const int32_t* residuals, const uint8_t* contexts, const RansContext& context,
              size_t count, int8_t* tokens) {
  const ByteMap tables(context.table);
  const ByteMap shifts(context.shift);
  alignas(64) uint8_t table[32];
  alignas(64) uint8_t shift[32];
  const hn::FixedTag<float, kVector> df;
  const V one = hn::Set(d, 1);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    look_up<32>(tables, shifts, contexts + i, table, shift);
    for (size_t v = 0; v < 32; v += kVector) {
      const V bits = widen(shift + v);
      const V half = hn::ShiftRight<1>(hn::Shl(one, bits));
      const V high = hn::Shr(hn::Add(hn::LoadU(d, residuals + i + v), half), bits);
      // Unsigned, because |-2^31| stays negative.
      const V size = hn::BitCast(d, hn::Min(hn::BitCast(du, hn::Abs(high)), hn::Set(du, 4096u)));
      // Exponent and first mantissa bit of a float count the classes: 16.0f >> 22 is 262.
      const V classed = hn::Sub(hn::ShiftRight<22>(hn::BitCast(d, hn::ConvertTo(df, size))),
                                hn::Set(d, 262 - 16));
      const V token = hn::IfThenElse(hn::Lt(size, hn::Set(d, kDirectTokens)), size, classed);
      const M negative = hn::Or(hn::Lt(high, hn::Zero(d)), hn::Eq(token, hn::Set(d, 32)));
      hn::StoreU(hn::DemoteTo(D8(), hn::IfThenElse(negative, hn::Neg(token), token)), D8(),
                 tokens + i + v);
    }
  }
  context_rans_reference<int32_t>().tokenize(residuals + i, contexts + i, context, count - i,
                                             tokens + i);
}

// The lanes of the mask give up their low words, which go below `next`.
HWY_INLINE V emit(V state, M mask, uint8_t*& next) {
  const uint32_t bits = bits_of(mask);
  const auto words = hn::DemoteTo(du16, hn::And(state, hn::Set(d, 0xFFFF)));
  const auto packed =
      hn::TableLookupBytes(hn::BitCast(du8, words), hn::Load(du8, kWordShuffles.compress[bits]));
  hn::StoreU(packed, du8, next - 16);
  next -= 2 * static_cast<size_t>(std::popcount(bits));
  return hn::IfThenElse(mask, hn::ShiftRight<16>(state), state);
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

template <size_t kLanes>
void encode_groups(RansWriter& writer, const int32_t* residuals, const uint8_t* contexts,
                   const int8_t* tokens, size_t count) {
  constexpr size_t kVectors = kLanes / kVector;
  const size_t whole = count / kLanes * kLanes;
  if (whole < count) {
    encode_group(writer, residuals + whole, contexts + whole, tokens + whole, count - whole);
  }
  const ByteMap tables(writer.context.table);
  const ByteMap shifts(writer.context.shift);
  const auto* entries = reinterpret_cast<const int32_t*>(writer.tables);
  alignas(64) uint8_t table[32];
  alignas(64) uint8_t shift[32];
  const V one = hn::Set(d, 1);
  V states[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    states[v] = hn::BitCast(d, hn::Load(du, writer.states.data() + v * kVector));
  }
  uint8_t* next = writer.next;
  for (size_t i = whole; i > 0;) {
    i -= kLanes;
    look_up<kLanes>(tables, shifts, contexts + i, table, shift);
    V reciprocal[kVectors];
    V packed[kVectors];
    V raw_bits[kVectors];
    V sizes[kVectors];
    V any = hn::Zero(d);
    V absent = hn::Zero(d);
    for (size_t v = 0; v < kVectors; ++v) {
      const V token = hn::PromoteTo(d, hn::LoadU(D8(), tokens + i + v * kVector));
      const V index = hn::Add(hn::ShiftLeft<7>(widen(table + v * kVector)),
                              hn::ShiftLeft<1>(hn::Add(token, hn::Set(d, 32))));
      reciprocal[v] = hn::GatherIndex(d, entries, index);
      packed[v] = hn::GatherIndex(d, entries + 1, index);
      sizes[v] = hn::Abs(token);
      raw_bits[v] = widen(shift + v * kVector);
      any = hn::Or(any, hn::Or(raw_bits[v], hn::AndNot(hn::Set(d, 15), sizes[v])));
      absent = hn::Or(absent, packed[v]);
    }
    if (!hn::AllTrue(d, hn::Eq(any, hn::Zero(d))) ||
        !hn::AllFalse(d, hn::Lt(absent, hn::Zero(d)))) {
      V raw[kVectors];
      V beyond = hn::ShiftRight<31>(absent);
      for (size_t v = 0; v < kVectors; ++v) {
        const M is_class = hn::Gt(sizes[v], hn::Set(d, kDirectTokens - 1));
        const V extra = hn::IfThenElseZero(
            is_class, hn::Sub(hn::ShiftRight<1>(sizes[v]), hn::Set(d, kDirectTokens / 2 - 3)));
        const V step = hn::Shl(one, raw_bits[v]);
        const V rounded =
            hn::Add(hn::LoadU(d, residuals + i + v * kVector), hn::ShiftRight<1>(step));
        const V size = hn::Abs(hn::Shr(rounded, raw_bits[v]));
        const V above = hn::And(size, hn::Sub(hn::Shl(one, extra), one));
        raw[v] = hn::Or(hn::And(rounded, hn::Sub(step, one)), hn::Shl(above, raw_bits[v]));
        raw_bits[v] = hn::Add(raw_bits[v], extra);
        beyond = hn::Or(beyond, hn::And(sizes[v], hn::Set(d, 32)));
        beyond = hn::Or(beyond, hn::AndNot(hn::Set(d, 15), raw_bits[v]));
      }
      if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(beyond, hn::Zero(d))))) {
        for (size_t v = 0; v < kVectors; ++v) {
          hn::Store(hn::BitCast(du, states[v]), du, writer.states.data() + v * kVector);
        }
        writer.next = next;
        encode_group(writer, residuals + i, contexts + i, tokens + i, kLanes);
        next = writer.next;
        for (size_t v = 0; v < kVectors; ++v) {
          states[v] = hn::BitCast(d, hn::Load(du, writer.states.data() + v * kVector));
        }
        continue;
      }
      for (size_t v = kVectors; v-- > 0;) {
        const V room = hn::Shr(states[v], hn::Sub(hn::Set(d, 31), raw_bits[v]));
        states[v] = emit(states[v], hn::Gt(room, hn::Zero(d)), next);
        states[v] = hn::Or(hn::Shl(states[v], raw_bits[v]), raw[v]);
      }
    }
    for (size_t v = kVectors; v-- > 0;) {
      const V complement = hn::And(hn::ShiftRight<13>(packed[v]), hn::Set(d, 0xFFF));
      const V frequency = hn::Sub(hn::Set(d, static_cast<int32_t>(kProbabilityScale)), complement);
      const V limit = hn::ShiftLeft<31 - kProbabilityBits>(frequency);
      const V state = emit(states[v], hn::Not(hn::Lt(states[v], limit)), next);
      const V quotient =
          hn::Shr(multiply_high(state, reciprocal[v]), hn::ShiftRight<25>(packed[v]));
      states[v] = hn::Add(hn::Add(state, hn::And(packed[v], hn::Set(d, 0x1FFF))),
                          hn::Mul(quotient, complement));
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    hn::Store(hn::BitCast(du, states[v]), du, writer.states.data() + v * kVector);
  }
  writer.next = next;
}

void encode(RansWriter& writer, const int32_t* residuals, const uint8_t* contexts,
            const int8_t* tokens, size_t count) {
  if (writer.lanes == kRansGroup) {
    encode_groups<kRansGroup>(writer, residuals, contexts, tokens, count);
  } else {
    encode_groups<kVector>(writer, residuals, contexts, tokens, count);
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
