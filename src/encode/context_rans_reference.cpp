// The plain implementation of the context rANS coder's kernels: groups of residuals, one lane after
// the other. Steps of a lane: docs/format.md, "Lanes and groups".
#include <algorithm>
#include <array>
#include <bit>

#include "base/bytes.hpp"
#include "encode/context_rans.hpp"
#include "encode/residual_tokens.hpp"

namespace firn::encode {
namespace {

// ---- Bit pieces of a state ----

void put_word(RansWriter& writer, std::uint32_t& state) {
  writer.next -= 2;
  store_le(writer.next, static_cast<std::uint16_t>(state));
  state >>= 16;
}

void put_bits(RansWriter& writer, std::uint32_t& state, std::uint32_t value, int bits) {
  if (state >> (31 - bits) != 0) put_word(writer, state);
  state = state << bits | value;
}

bool get_word(RansReader& reader, std::uint32_t& state) {
  if (state >= kRansLow) return true;
  if (reader.end - reader.next < 2) return false;
  state = state << 16 | load_le<std::uint16_t>(reader.next);
  reader.next += 2;
  return true;
}

bool get_bits(RansReader& reader, std::uint32_t& state, int bits, std::uint32_t& value) {
  value = state & ((1u << bits) - 1);
  state >>= bits;
  return get_word(reader, state);
}

template <class Q>
void tokenize(const Q* residuals, const std::uint8_t* contexts, const ContextShifts& shifts,
              std::size_t count, Cell* cells) {
  for (std::size_t i = 0; i < count; ++i) {
    const int token = token_of(residuals[i], shifts.shift[contexts[i]]);
    cells[i] = static_cast<Cell>(contexts[i] * kTokenCount + token_index(token));
  }
}

}  // namespace

// ---- Groups ----

template <class Q>
void encode_escapes(RansWriter& writer, const Q* residuals, const Cell* cells, std::size_t count,
                    Cell* coded) {
  for (std::size_t lane = count; lane-- > 0;) {
    const int context = cells[lane] / kTokenCount;
    const std::size_t token = cells[lane] % kTokenCount;
    coded[lane] = cells[lane];
    const bool absent = (writer.tables[context][token].packed & kTokenAbsent) != 0;
    if (!absent && token != token_index(kEscapeToken)) continue;
    coded[lane] = static_cast<Cell>(context * kTokenCount + token_index(kEscapeToken));
    const Q high = high_part(residuals[lane], writer.shifts.shift[context]);
    const std::uint64_t value = std::uint64_t{magnitude(high)} + 1;
    const int length = static_cast<int>(std::bit_width(value)) - 1;
    // The sign above the bits of value below its first; written from the top piece down.
    const std::uint64_t body = (value ^ std::uint64_t{1} << length);
    std::uint32_t& state = writer.states[lane];
    put_bits(writer, state, high < 0 ? 1 : 0, 1);
    for (int piece = (length + kRawPieceBits - 1) / kRawPieceBits; piece-- > 0;) {
      const int from = piece * kRawPieceBits;
      const int bits = std::min(kRawPieceBits, length - from);
      put_bits(writer, state, static_cast<std::uint32_t>(body >> from) & ((1u << bits) - 1), bits);
    }
    put_bits(writer, state, static_cast<std::uint32_t>(length), 6);
  }
}

template <class Q>
bool decode_escape(RansReader& reader, std::size_t lane, Q& high) {
  std::uint32_t& state = reader.states[lane];
  std::uint32_t part = 0;
  if (!get_bits(reader, state, 6, part)) return false;
  const int length = static_cast<int>(part);
  std::uint64_t body = 0;
  for (int from = 0; from < length; from += kRawPieceBits) {
    if (!get_bits(reader, state, std::min(kRawPieceBits, length - from), part)) return false;
    body |= std::uint64_t{part} << from;
  }
  if (!get_bits(reader, state, 1, part)) return false;
  const std::uint64_t size = (body | std::uint64_t{1} << length) - 1;
  high = static_cast<Q>(part != 0 ? std::uint64_t{0} - size : size);
  return true;
}

namespace {

template <class Q>
void encode_group(RansWriter& writer, const Q* residuals, const Cell* cells, std::size_t count) {
  std::array<Cell, kRansGroup> coded;
  encode_escapes(writer, residuals, cells, count, coded.data());

  // Raw bits of a residual: the extra bits of its class above its low bits. At most 63 + 10.
  std::array<std::uint64_t, kRansGroup> raw;
  std::array<int, kRansGroup> raw_bits;
  int pieces = 0;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const int token = coded[lane] % kTokenCount - 32;
    const int shift = writer.shifts.shift[coded[lane] / kTokenCount];
    const std::uint64_t low_mask = (std::uint64_t{1} << shift) - 1;
    raw[lane] = (static_cast<Unsigned<Q>>(residuals[lane]) + half_step(shift)) & low_mask;
    raw_bits[lane] = shift;
    if (token != kEscapeToken) {
      const int extra = extra_bits(token < 0 ? -token : token);
      if (extra > 0) {
        // A class that has extra bits leaves room for them: |high| >= 16 means shift < 60.
        const std::uint64_t size = magnitude(high_part(residuals[lane], shift));
        raw[lane] |= (size & ((1u << extra) - 1)) << shift;
        raw_bits[lane] += extra;
      }
    }
    pieces = std::max(pieces, (raw_bits[lane] + kRawPieceBits - 1) / kRawPieceBits);
  }
  for (int piece = pieces; piece-- > 0;) {
    const int from = piece * kRawPieceBits;
    for (std::size_t lane = count; lane-- > 0;) {
      const int bits = std::min(kRawPieceBits, raw_bits[lane] - from);
      if (bits <= 0) continue;
      put_bits(writer, writer.states[lane],
               static_cast<std::uint32_t>(raw[lane] >> from) & ((1u << bits) - 1), bits);
    }
  }
  for (std::size_t lane = count; lane-- > 0;) {
    const EncodeToken& token = writer.tables[coded[lane] / kTokenCount][coded[lane] % kTokenCount];
    std::uint32_t& state = writer.states[lane];
    const std::uint32_t complement = token.packed >> 13 & 0xFFF;
    const std::uint32_t frequency = kProbabilityScale - complement;
    if (state >= frequency << (31 - kProbabilityBits)) put_word(writer, state);
    const auto quotient =
        static_cast<std::uint32_t>(std::uint64_t{state} * token.reciprocal >> 32) >>
        (token.packed >> 25 & 0xF);
    state += (token.packed & 0x1FFF) + quotient * complement;
  }
}

}  // namespace

template <class Q>
bool decode_raw_bits(RansReader& reader, const std::uint8_t* contexts, const std::int32_t* tokens,
                     std::size_t count, Q* residuals) {
  std::array<std::uint64_t, kRansGroup> raw{};
  std::array<int, kRansGroup> raw_bits;
  int pieces = 0;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const int token = tokens[lane];
    raw_bits[lane] = reader.shifts.shift[contexts[lane] % kMaxContexts];
    if (token != kEscapeToken) raw_bits[lane] += extra_bits(token < 0 ? -token : token);
    pieces = std::max(pieces, (raw_bits[lane] + kRawPieceBits - 1) / kRawPieceBits);
  }
  for (int piece = 0; piece < pieces; ++piece) {
    const int from = piece * kRawPieceBits;
    for (std::size_t lane = 0; lane < count; ++lane) {
      const int bits = std::min(kRawPieceBits, raw_bits[lane] - from);
      if (bits <= 0) continue;
      std::uint32_t value = 0;
      if (!get_bits(reader, reader.states[lane], bits, value)) return false;
      // A corrupt payload may ask for more than 64 bits; what falls off does not matter.
      if (from < 64) raw[lane] |= std::uint64_t{value} << from;
    }
  }
  for (std::size_t lane = 0; lane < count; ++lane) {
    const int token = tokens[lane];
    const int shift = reader.shifts.shift[contexts[lane] % kMaxContexts];
    const std::uint64_t low = raw[lane] & ((std::uint64_t{1} << shift) - 1);
    std::uint64_t high = 0;
    if (token == kEscapeToken) {
      Q escaped = 0;
      if (!decode_escape(reader, lane, escaped)) return false;
      high = static_cast<std::uint64_t>(std::int64_t{escaped});
    } else {
      const std::uint64_t size = first_magnitude(token < 0 ? -token : token) + (raw[lane] >> shift);
      high = token < 0 ? std::uint64_t{0} - size : size;
    }
    residuals[lane] = static_cast<Q>((high << shift) + low - half_step(shift));
  }
  return true;
}

namespace {

template <class Q>
bool decode_group(RansReader& reader, const std::uint8_t* contexts, std::size_t count,
                  Q* residuals) {
  std::array<std::int32_t, kRansGroup> tokens;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const DecodeSlots& table = reader.tables[reader.table[contexts[lane] % kMaxContexts]];
    std::uint32_t& state = reader.states[lane];
    const std::uint32_t place = state % kProbabilityScale;
    const DecodeSlot slot = table[place];
    tokens[lane] = static_cast<std::int32_t>(slot) >> 24;
    state = (slot >> 12 & 0xFFF) * (state >> kProbabilityBits) + (place - (slot & 0xFFF));
    if (!get_word(reader, state)) return false;
  }
  return decode_raw_bits(reader, contexts, tokens.data(), count, residuals);
}

template <class Q>
void encode_segment(RansWriter& writer, const Q* residuals, const std::uint8_t*, const Cell* cells,
                    std::size_t count) {
  for (std::size_t end = count; end > 0;) {
    const std::size_t begin = (end - 1) / writer.lanes * writer.lanes;
    encode_group(writer, residuals + begin, cells + begin, end - begin);
    end = begin;
  }
}

template <class Q>
bool decode_piece(RansReader& reader, const std::uint8_t* contexts, std::size_t count,
                  Q* residuals) {
  for (std::size_t i = 0; i < count; i += reader.lanes) {
    const std::size_t lanes = std::min(reader.lanes, count - i);
    if (!decode_group(reader, contexts + i, lanes, residuals + i)) return false;
  }
  return true;
}

}  // namespace

template <class Q>
const ContextRansKernels<Q>& context_rans_reference() {
  static constexpr ContextRansKernels<Q> kernels{tokenize<Q>, encode_segment<Q>, decode_piece<Q>};
  return kernels;
}

#define FIRN_INSTANTIATE(Q)                                                             \
  template const ContextRansKernels<Q>& context_rans_reference();                       \
  template void encode_escapes(RansWriter&, const Q*, const Cell*, std::size_t, Cell*); \
  template bool decode_escape(RansReader&, std::size_t, Q&);                            \
  template bool decode_raw_bits(RansReader&, const std::uint8_t*, const std::int32_t*,  \
                                std::size_t, Q*);
FIRN_INSTANTIATE(std::int32_t)
FIRN_INSTANTIATE(std::int64_t)
#undef FIRN_INSTANTIATE

}  // namespace firn::encode
