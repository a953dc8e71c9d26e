// Context rANS with Highway for 64-bit residuals: bounds some 2^31 below the range. States, words
// and tokens as for 32 bits; what goes raw is put together one lane beside the other in plain
// loops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/context_rans_wide_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "encode/context_rans_lanes-inl.hpp"
#include "encode/residual_tokens.hpp"

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using namespace context_rans;

// Of one step: how many bits of each lane go raw, and those bits.
template <size_t kLanes>
struct Raw {
  alignas(64) uint64_t bits[kLanes];
  alignas(64) int32_t count[kLanes];
  int32_t most;

  // So many of them, of the piece from there on.
  HWY_INLINE V count_from(size_t k, int from) const {
    const V left = hn::Sub(hn::Load(d, count + k * kVector), hn::Set(d, from));
    return hn::Min(hn::Max(left, hn::Zero(d)), hn::Set(d, kRawPieceBits));
  }
};

template <size_t kLanes>
bool decode_lanes(RansReader& reader, const uint8_t* contexts, size_t count, int64_t* residuals) {
  constexpr size_t kVectors = kLanes / kVector;
  const ByteMap map_table(reader.table, reader.shifts.context_count);
  const ByteMap map_zeros(reader.zeros, reader.shifts.context_count);
  const ByteMap map_shift(reader.shifts.shift, reader.shifts.context_count);
  const auto* slots = reinterpret_cast<const int32_t*>(reader.tables);
  alignas(64) uint8_t tables[kRansGroup];
  alignas(64) uint8_t zeros[kRansGroup];
  alignas(64) uint8_t shifts[kRansGroup];
  States<kLanes> states(reader.states);
  const uint8_t* next = reader.next;
  const auto refilled = [&] {
    if (HWY_LIKELY(next <= reader.limit)) return true;
    reader.next = next;
    const bool done = reader.refill();
    next = reader.next;
    return done;
  };
  size_t i = 0;
  for (; i + kRansGroup <= count; i += kRansGroup) {
    const auto context = hn::LoadU(d_bytes, contexts + i);
    hn::Store(map_table(context), d_bytes, tables);
    hn::Store(map_zeros(context), d_bytes, zeros);
    const bool shifted = store_shifts(map_shift(context), shifts);
    for (size_t j = 0; j < kRansGroup; j += kLanes) {
      if (!refilled()) return false;
      V tokens[kVectors];
      const V any = decode_tokens(states, slots, tables + j, zeros + j, next, tokens);
      alignas(64) int32_t token[kLanes], first[kLanes];
      for (size_t k = 0; k < kVectors; ++k) hn::Store(tokens[k], d, token + k * kVector);
      int64_t* HWY_RESTRICT to = residuals + i + j;
      if (!shifted && all_zero(hn::AndNot(hn::Set(d, kDirectTokens - 1), any))) {
        for (size_t lane = 0; lane < kLanes; ++lane) to[lane] = token[lane];
        continue;
      }

      Raw<kLanes> raw{};
      V most = hn::Zero(d);
      for (size_t k = 0; k < kVectors; ++k) {
        const ClassOf token_class = class_of(hn::Abs(tokens[k]));
        const V bits = hn::Add(widen(shifts + j + k * kVector), token_class.extra);
        hn::Store(bits, d, raw.count + k * kVector);
        hn::Store(token_class.first, d, first + k * kVector);
        most = hn::Max(most, bits);
      }
      raw.most = hn::GetLane(hn::MaxOfLanes(d, most));
      for (int from = 0; from < raw.most; from += kRawPieceBits) {
        // There is room for two of them.
        if (from >= 2 * kRawPieceBits && !refilled()) return false;
        alignas(64) uint32_t piece[kLanes];
        for (size_t k = 0; k < kVectors; ++k) {
          const V bits = take_raw(states.v[k], raw.count_from(k, from), next);
          hn::Store(hn::BitCast(du, bits), du, piece + k * kVector);
        }
        for (size_t lane = 0; lane < kLanes; ++lane) {
          raw.bits[lane] |= uint64_t{piece[lane]} << from;
        }
      }
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const int shift = shifts[j + lane];
        const uint64_t step = uint64_t{1} << shift;
        const uint64_t size = static_cast<uint64_t>(first[lane]) + (raw.bits[lane] >> shift);
        const uint64_t high = token[lane] < 0 ? 0 - size : size;
        to[lane] =
            static_cast<int64_t>((high << shift) + (raw.bits[lane] & (step - 1)) - (step >> 1));
      }
      if (HWY_LIKELY(all_zero(hn::And(any, hn::Set(d, kEscape))))) continue;
      states.store(reader.states);
      reader.next = next;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        if (token[lane] != kEscapeToken) continue;
        int64_t high = 0;
        if (!decode_escape(reader, lane, high)) return false;
        to[lane] = static_cast<int64_t>(static_cast<uint64_t>(to[lane]) +
                                        (static_cast<uint64_t>(high) << shifts[j + lane]));
      }
      next = reader.next;
      states.load(reader.states);
    }
  }
  states.store(reader.states);
  reader.next = next;
  return context_rans_reference<int64_t>().decode(reader, contexts + i, count - i, residuals + i);
}

bool decode(RansReader& reader, const uint8_t* contexts, size_t count, int64_t* residuals) {
  switch (reader.lanes) {
    case 8:
      return decode_lanes<8>(reader, contexts, count, residuals);
    case 16:
      return decode_lanes<16>(reader, contexts, count, residuals);
    default:
      return decode_lanes<32>(reader, contexts, count, residuals);
  }
}

void tokenize(const int64_t* residuals, const uint8_t* contexts, const ContextShifts& shifts,
              size_t count, Cell* cells) {
  const hn::CappedTag<int32_t, kRansGroup> di;
  const ByteMap map_shift(shifts.shift, shifts.context_count);
  alignas(64) uint8_t shift[kRansGroup];
  alignas(64) int32_t high[kRansGroup];
  size_t i = 0;
  for (; i + kRansGroup <= count; i += kRansGroup) {
    hn::Store(map_shift(hn::LoadU(d_bytes, contexts + i)), d_bytes, shift);
    for (size_t lane = 0; lane < kRansGroup; ++lane) {
      constexpr int64_t kBeyond = 4096;
      const int64_t part = high_part(residuals[i + lane], shift[lane]);
      high[lane] = static_cast<int32_t>(std::clamp(part, -kBeyond, kBeyond));
    }
    for (size_t k = 0; k < kRansGroup; k += hn::Lanes(di)) {
      store_cells(di, hn::Load(di, high + k), contexts + i + k, cells + i + k);
    }
  }
  context_rans_reference<int64_t>().tokenize(residuals + i, contexts + i, shifts, count - i,
                                             cells + i);
}

template <size_t kLanes>
void encode_lanes(RansWriter& writer, const int64_t* residuals, const uint8_t* contexts,
                  const Cell* cells, size_t count) {
  constexpr size_t kVectors = kLanes / kVector;
  const size_t whole = count / kRansGroup * kRansGroup;
  context_rans_reference<int64_t>().encode(writer, residuals + whole, contexts + whole,
                                           cells + whole, count - whole);
  const auto* table = reinterpret_cast<const int64_t*>(writer.tables);
  const ByteMap map_shift(writer.shifts.shift, writer.shifts.context_count);
  alignas(64) uint8_t shifts[kRansGroup];
  States<kLanes> states(writer.states);
  uint8_t* next = writer.next;
  for (size_t i = whole; i > 0;) {
    i -= kRansGroup;
    const bool shifted = store_shifts(map_shift(hn::LoadU(d_bytes, contexts + i)), shifts);
    for (size_t j = kRansGroup; j > 0;) {
      j -= kLanes;
      const int64_t* const from = residuals + i + j;
      TableEntries<kLanes> entries;
      entries.load(table, cells + i + j);
      const V rare = hn::Set(d, static_cast<int32_t>(kTokenAbsent | kTokenHasExtraBits));
      if (shifted || !all_zero(hn::And(entries.flags(), rare))) {
        V sizes[kVectors];
        put_escapes(writer, from, cells + i + j, states, next, entries, sizes);
        alignas(64) int32_t extra[kLanes];
        Raw<kLanes> raw;
        V most = hn::Zero(d);
        for (size_t k = 0; k < kVectors; ++k) {
          const V extra_bits = class_of(sizes[k]).extra;
          const V bits = hn::Add(widen(shifts + j + k * kVector), extra_bits);
          hn::Store(extra_bits, d, extra + k * kVector);
          hn::Store(bits, d, raw.count + k * kVector);
          most = hn::Max(most, bits);
        }
        raw.most = hn::GetLane(hn::MaxOfLanes(d, most));
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const int shift = shifts[j + lane];
          const uint64_t step = uint64_t{1} << shift;
          const uint64_t rounded = static_cast<uint64_t>(from[lane]) + (step >> 1);
          const int64_t high = static_cast<int64_t>(rounded) >> shift;
          const uint64_t size =
              high < 0 ? 0 - static_cast<uint64_t>(high) : static_cast<uint64_t>(high);
          const uint64_t above = size & ((uint64_t{1} << extra[lane]) - 1);
          raw.bits[lane] = (rounded & (step - 1)) | above << shift;
        }
        for (int at = (raw.most - 1) / kRawPieceBits * kRawPieceBits; raw.most > 0 && at >= 0;
             at -= kRawPieceBits) {
          alignas(64) uint32_t piece[kLanes];
          for (size_t lane = 0; lane < kLanes; ++lane) {
            piece[lane] = static_cast<uint32_t>(raw.bits[lane] >> at) & ((1u << kRawPieceBits) - 1);
          }
          for (size_t k = kVectors; k-- > 0;) {
            const V bits = hn::BitCast(d, hn::Load(du, piece + k * kVector));
            states.v[k] = put_raw(states.v[k], bits, raw.count_from(k, at), next);
          }
        }
      }
      encode_tokens(states, entries, next);
    }
  }
  states.store(writer.states);
  writer.next = next;
}

void encode(RansWriter& writer, const int64_t* residuals, const uint8_t* contexts,
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

const ContextRansKernels<int64_t>& table64() {
  static constexpr ContextRansKernels<int64_t> kernels{tokenize, encode, decode};
  return kernels;
}

#else

const ContextRansKernels<int64_t>& table64() { return context_rans_reference<int64_t>(); }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {
namespace {

const ContextRansKernels<std::int64_t>& vector_kernels(simd::Target target) {
  FIRN_SELECT_KERNELS(target, table64)
}

}  // namespace

template <>
const ContextRansKernels<std::int64_t>& context_rans_kernels(simd::Target target) {
  return target == simd::Target::reference ? context_rans_reference<std::int64_t>()
                                           : vector_kernels(target);
}

}  // namespace firn::encode
#endif  // HWY_ONCE
