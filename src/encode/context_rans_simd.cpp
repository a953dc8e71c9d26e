// Context rANS with Highway, one copy per target, for 32-bit residuals. Eight lanes to a vector;
// targets whose vectors are shorter (they have no gathers either) run the plain code.
#include "encode/context_rans.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/context_rans_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cstring>

#include "encode/context_rans_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using namespace context_rans;

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
      V any = decode_tokens(states, slots, tables + j, zeros + j, next, tokens);
      if (kZeros) zero_groups = all_zero(any) ? zero_groups + 1 : 0;
      any = hn::AndNot(hn::Set(d, 15), any);
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
  const hn::Rebind<uint8_t, decltype(di)> d8;
  const auto one = hn::Set(di, 1);
  for (size_t k = 0; k < kRansGroup; k += hn::Lanes(di)) {
    const auto bits = hn::PromoteTo(di, hn::LoadU(d8, shifts + k));
    const auto half = hn::ShiftRight<1>(hn::Shl(one, bits));
    const auto high = hn::Shr(hn::Add(hn::LoadU(di, residuals + k), half), bits);
    store_cells(di, high, contexts + k, cells + k);
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
        V sizes[kVectors];
        put_escapes(writer, from, cells + i + j, states, next, entries, sizes);
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
      encode_tokens(states, entries, next);
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

}  // namespace firn::encode
#endif  // HWY_ONCE
