// The plain implementation of the context rANS coder, and its policy: which distribution each
// context gets, and how many lanes.
#include "encode/context_rans.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/bits.hpp"
#include "base/bytes.hpp"

namespace firn::encode {
namespace {

template <class Q>
using Unsigned = std::make_unsigned_t<Q>;

// Descriptions of contexts that are not members of the family.
constexpr std::uint8_t kStoredTable = 126;
constexpr std::uint8_t kUnusedContext = 127;

// A context's description in bits: 0, then a member of the family; or 1 and one of these.
enum class Kind : std::uint8_t { unused, shift, shape, table };
constexpr int kKindBits = 2, kShapeBits = 3, kShiftBits = 6;
constexpr std::uint32_t kNoShape = kShapeCount;  // member 0

// A description follows the one before. Contexts are in order of what goes on around a residual,
// so each is expected to have the shape of the one before, and to spread half an octave further.
struct Expected {
  int shape = 2;
  int level = -1;
  int shift = 0;

  // The level of a context with this shift, which takes two levels a bit.
  int level_for(int next_shift) const {
    return std::clamp(level + 1 - 2 * (next_shift - shift), 0, kTopLevel);
  }
};

// A change of level: 0, or 1, its sign, and its magnitude behind as many zeros as it has bits after
// the first.
void write_level_change(int change, BitWriter& out) {
  out.put(change != 0 ? 1 : 0, 1);
  if (change == 0) return;
  out.put(change < 0 ? 1 : 0, 1);
  const auto size = static_cast<std::uint32_t>(change < 0 ? -change : change);
  const int more = static_cast<int>(std::bit_width(size)) - 1;
  out.put(1u << more, more + 1);
  out.put(size - (1u << more), more);
}
int level_change_bits(int change) {
  const auto size = static_cast<std::uint32_t>(change < 0 ? -change : change);
  return change == 0 ? 1 : 1 + 2 * static_cast<int>(std::bit_width(size));
}

// False when it is too large for any level.
bool read_level_change(BitReader& in, int* change) {
  *change = 0;
  if (in.get(1) == 0) return true;
  const bool negative = in.get(1) != 0;
  int more = 0;
  while (more < 5 && in.get(1) == 0) ++more;
  if (more == 5) return false;
  const int size = static_cast<int>(1u << more | in.get(more));
  *change = negative ? -size : size;
  return true;
}

void write_kind(Kind kind, BitWriter& out) {
  out.put(1 | static_cast<std::uint32_t>(kind) << 1, 1 + kKindBits);
}

// A member, or the one that a table is told from: with its shape, or with the expected one.
// expected.level is that of the context's shift.
void write_member(int member, bool with_shape, Expected& expected, BitWriter& out) {
  if (member == 0) {
    out.put(kNoShape, kShapeBits);
    return;
  }
  const MemberPlace place = place_of_member(member);
  if (with_shape) out.put(static_cast<std::uint32_t>(place.shape), kShapeBits);
  write_level_change(place.level - expected.level, out);
  expected.shape = place.shape;
  expected.level = place.level;
}
bool read_member(BitReader& in, bool with_shape, Expected& expected, int* member) {
  const auto shape = with_shape ? in.get(kShapeBits) : static_cast<std::uint32_t>(expected.shape);
  *member = 0;
  if (shape == kNoShape) return in.ok();
  int change = 0;
  if (shape > kNoShape || !read_level_change(in, &change)) return false;
  expected.shape = static_cast<int>(shape);
  expected.level += change;
  *member = member_at({expected.shape, expected.level});
  return in.ok() && *member > 0;
}
// What a description takes with this member, but for a shift.
int member_bits(int member, int level, const Expected& expected) {
  if (member == 0) return 1 + kKindBits + kShapeBits;
  const MemberPlace place = place_of_member(member);
  return (place.shape == expected.shape ? 1 : 1 + kKindBits + kShapeBits) +
         level_change_bits(place.level - level);
}

// `table` for kStoredTable only.
void write_description(std::uint8_t description, int shift, const StoredTable& table,
                       Expected& expected, BitWriter& out) {
  if (description == kUnusedContext) {
    write_kind(Kind::unused, out);
    expected.level = expected.level_for(expected.shift);
    return;
  }
  const int level = expected.level_for(shift);
  if (shift != expected.shift) {
    write_kind(Kind::shift, out);
    const bool next = shift == expected.shift + 1;
    out.put(next ? 0 : 1, 1);
    if (!next) out.put(static_cast<std::uint32_t>(shift), kShiftBits);
  }
  expected.level = level;
  expected.shift = shift;
  if (description == kStoredTable) {
    write_kind(Kind::table, out);
    write_member(table.member, true, expected, out);
    write_stored_table(table, out);
    return;
  }
  const bool same = description != 0 && place_of_member(description).shape == expected.shape;
  if (same) {
    out.put(0, 1);
  } else {
    write_kind(Kind::shape, out);
  }
  write_member(description, !same, expected, out);
}

// False when it is malformed or cut short.
bool read_description(BitReader& in, Expected& expected, std::uint8_t* description,
                      StoredTable* table) {
  int shift = expected.shift;
  bool plain = in.get(1) == 0;
  auto kind = plain ? Kind::shape : static_cast<Kind>(in.get(kKindBits));
  if (kind == Kind::shift) {
    shift = in.get(1) == 0 ? shift + 1 : static_cast<int>(in.get(kShiftBits));
    plain = in.get(1) == 0;
    kind = plain ? Kind::shape : static_cast<Kind>(in.get(kKindBits));
    if (shift >= 1 << kShiftBits || kind == Kind::shift || kind == Kind::unused) return false;
  }
  expected.level = expected.level_for(shift);
  expected.shift = shift;
  *description = kUnusedContext;
  if (kind == Kind::unused) return in.ok();
  int member = 0;
  if (!read_member(in, !plain, expected, &member)) return false;
  *description = static_cast<std::uint8_t>(member);
  if (kind != Kind::table) return true;
  *description = kStoredTable;
  table->member = member;
  return read_stored_table(in, *table);
}

// A lane's last state: how many bits it has beyond the least, and those below its first.
constexpr int kStateLengthBits = 4, kLeastStateBits = 15;

void write_state(std::uint32_t state, BitWriter& out) {
  const int bits = static_cast<int>(std::bit_width(state)) - 1;
  out.put(static_cast<std::uint32_t>(bits - kLeastStateBits), kStateLengthBits);
  out.put(state - (1u << bits), bits);
}
std::uint32_t read_state(BitReader& in) {
  const int bits = kLeastStateBits + static_cast<int>(in.get(kStateLengthBits));
  return 1u << bits | in.get(bits);
}

// A lane costs about 2 bytes beyond what it holds, so a small payload takes few of them.
constexpr std::size_t lanes_for(std::uint64_t payload_bytes) {
  return payload_bytes < 1024 ? 8 : payload_bytes < 8192 ? 16 : 32;
}

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

// ---- Residual <-> token, raw bits ----

// A corrupt payload may name any shift below 64 whatever the type, so this is 64 bits wide.
std::uint64_t half_step(int shift) { return (std::uint64_t{1} << shift) >> 1; }

// The residual in units of 2^shift, rounded to nearest; its low bits go raw.
template <class Q>
Q high_part(Q residual, int shift) {
  return static_cast<Q>(static_cast<Unsigned<Q>>(residual) + half_step(shift)) >> shift;
}

template <class Q>
Unsigned<Q> magnitude(Q value) {
  const auto bits = static_cast<Unsigned<Q>>(value);
  return value < 0 ? Unsigned<Q>{0} - bits : bits;
}

template <class Q>
int token_of(Q residual, int shift) {
  const Q high = high_part(residual, shift);
  const Unsigned<Q> size = magnitude(high);
  if (size > 4095) return kEscapeToken;
  int token = static_cast<int>(size);
  if (token >= kDirectTokens) {
    const int exponent = static_cast<int>(std::bit_width(size)) - 1;
    token = kDirectTokens + 2 * (exponent - 4) + static_cast<int>(size >> (exponent - 1) & 1);
  }
  return high < 0 ? -token : token;
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
void encode_group(RansWriter& writer, const Q* residuals, const Cell* cells, std::size_t count) {
  // Raw bits of a residual: the extra bits of its class above its low bits. At most 63 + 10.
  std::array<std::uint64_t, kRansGroup> raw;
  std::array<int, kRansGroup> raw_bits;
  std::array<int, kRansGroup> coded;
  int pieces = 0;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const int context = cells[lane] / kTokenCount;
    const int shift = writer.shifts.shift[context];
    const EncodeToken& token = writer.tables[context][cells[lane] % kTokenCount];
    coded[lane] = token.packed & kTokenAbsent ? kEscapeToken : cells[lane] % kTokenCount - 32;
    const std::uint64_t low_mask = (std::uint64_t{1} << shift) - 1;
    raw[lane] = (static_cast<Unsigned<Q>>(residuals[lane]) + half_step(shift)) & low_mask;
    raw_bits[lane] = shift;
    if (coded[lane] != kEscapeToken) {
      const int extra = extra_bits(coded[lane] < 0 ? -coded[lane] : coded[lane]);
      if (extra > 0) {
        // A class that has extra bits leaves room for them: |high| >= 16 means shift < 60.
        const std::uint64_t size = magnitude(high_part(residuals[lane], shift));
        raw[lane] |= (size & ((1u << extra) - 1)) << shift;
        raw_bits[lane] += extra;
      }
    }
    pieces = std::max(pieces, (raw_bits[lane] + kRawPieceBits - 1) / kRawPieceBits);
  }

  for (std::size_t lane = count; lane-- > 0;) {
    if (coded[lane] != kEscapeToken) continue;
    const Q high = high_part(residuals[lane], writer.shifts.shift[cells[lane] / kTokenCount]);
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
    const EncodeToken& token = writer.tables[cells[lane] / kTokenCount][token_index(coded[lane])];
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
    std::uint64_t size = 0;
    bool negative = token < 0;
    const std::uint64_t low = raw[lane] & ((std::uint64_t{1} << shift) - 1);
    if (token == kEscapeToken) {
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
      negative = part != 0;
      size = (body | std::uint64_t{1} << length) - 1;
    } else {
      const int magnitude_token = token < 0 ? -token : token;
      size = first_magnitude(magnitude_token) + (raw[lane] >> shift);
    }
    const std::uint64_t high = negative ? std::uint64_t{0} - size : size;
    residuals[lane] = static_cast<Q>((high << shift) + low - half_step(shift));
  }
  return true;
}

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

namespace {

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

// ---- Policy ----

struct ContextChoice {
  std::uint8_t descriptor;  // a member of the family or kStoredTable
  std::uint64_t cost;       // 1/kCostPerBit, without the raw bits
  StoredTable table;        // this and the next for kStoredTable only
  Frequencies frequencies;
};

std::uint64_t cost_of(const std::uint32_t* counts, const TokenCosts& costs, int last) {
  std::uint64_t cost = std::uint64_t{counts[0]} * costs[0];
  for (int index = 32 - last; index <= 32 + last; ++index) {
    cost += std::uint64_t{counts[index]} * costs[index];
  }
  return cost;
}

// The cheapest distribution for the tokens counted, of a context with this shift.
ContextChoice choose_distribution(const std::uint32_t* counts, std::uint64_t total, int shift,
                                  const Expected& expected) {
  ContextChoice choice;
  int last = 0;
  for (int token = 1; token <= kMaxToken; ++token) {
    if (counts[token_index(token)] + counts[token_index(-token)] > 0) last = token;
  }
  const MemberChoice member = choose_member(counts, last);
  const int level = expected.level_for(shift);
  const auto described = [&](int number, std::uint64_t cost) {
    return cost + static_cast<std::uint64_t>(member_bits(number, level, expected)) * kCostPerBit;
  };
  choice.descriptor = static_cast<std::uint8_t>(member.member);
  choice.cost = described(member.member, member.cost);
  // One of the expected shape may be cheaper to describe.
  if (member.member != 0) {
    const MemberPlace place = place_of_member(member.member);
    for (int near = -1; place.shape != expected.shape && near <= 1; ++near) {
      const int other = member_at({expected.shape, place.level + near});
      if (other < 0) continue;
      const std::uint64_t cost = described(other, cost_of(counts, family().costs[other], last));
      if (cost >= choice.cost) continue;
      choice.cost = cost;
      choice.descriptor = static_cast<std::uint8_t>(other);
    }
  }
  // A table takes 3 to 30 bytes and rarely saves more than a tenth.
  if (choice.cost < 800 * kCostPerBit) return choice;
  const std::uint64_t more = described(member.member, 0) + (kKindBits + kShapeBits) * kCostPerBit;
  for (const bool symmetric : {true, false}) {
    const StoredTable table = fit_stored_table(counts, total, last, symmetric, member.member);
    Frequencies frequencies;
    if (!stored_table_frequencies(table, frequencies)) continue;
    TokenCosts costs;
    build_token_costs(frequencies, costs);
    const std::uint64_t cost = cost_of(counts, costs, last) + more +
                               static_cast<std::uint64_t>(stored_table_bits(table)) * kCostPerBit;
    if (cost < choice.cost) {
      choice.cost = cost;
      choice.descriptor = kStoredTable;
      choice.table = table;
      choice.frequencies = frequencies;
    }
  }
  return choice;
}

// Into four histograms in turn, or two of them twice: equal neighbours do not wait for each other.
void count_cells(const Cell* cells, std::size_t count,
                 const std::array<std::uint32_t*, 4>& histograms) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const auto four = load_le<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(cells + i));
    ++histograms[0][four & 0xFFFF];
    ++histograms[1][four >> 16 & 0xFFFF];
    ++histograms[2][four >> 32 & 0xFFFF];
    ++histograms[3][four >> 48];
  }
  for (; i < count; ++i) ++histograms[0][cells[i]];
}

// By context in the sample: magnitudes by width (0 to 64), then residuals modulo 4.
constexpr int kWidths = 65;
constexpr int kSampleBins = kWidths + 4;

// The shift of each of the contexts in the set, from the median magnitude of about so many groups:
// it brings that below 4.
template <class Q>
void sample_shifts(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                   std::size_t groups, std::uint64_t set, std::uint32_t* histogram,
                   ContextShifts& shifts) {
  const std::size_t step = std::max<std::size_t>(1, count / (groups * kRansGroup));
  std::memset(histogram, 0,
              sizeof *histogram * kSampleBins * static_cast<std::size_t>(shifts.context_count));
  for (std::size_t group = 0; group < count; group += step * kRansGroup) {
    const std::size_t end = std::min(count, group + kRansGroup);
    for (std::size_t i = group; i < end; ++i) {
      if ((set >> contexts[i] & 1) == 0) continue;
      std::uint32_t* bins = histogram + contexts[i] * kSampleBins;
      ++bins[std::bit_width(magnitude(residuals[i]))];
      ++bins[kWidths + (residuals[i] & 3)];
    }
  }
  // A context that the sample missed takes the shift of the one below it.
  int shift = 0;
  shifts.max = 0;
  for (int c = 0; c < shifts.context_count; ++c) {
    if ((set >> c & 1) == 0) continue;
    const std::uint32_t* widths = histogram + c * kSampleBins;
    std::uint32_t total = 0;
    for (int width = 0; width < kWidths; ++width) total += widths[width];
    if (total > 0) {
      int width = 0;
      for (std::uint32_t seen = widths[0]; 2 * seen < total; seen += widths[width]) ++width;
      shift = std::max(0, width - 2);
      // Low bits that are not even (integers in disguise) are worth a token.
      const std::uint32_t* modulo = widths + kWidths;
      const bool uneven = 5 * *std::max_element(modulo, modulo + 4) > 2 * total && total >= 256;
      if (uneven && shift <= 2) shift = 0;
    }
    shifts.shift[c] = static_cast<std::uint8_t>(shift);
    shifts.max = std::max(shifts.max, shift);
  }
}

template <class Q>
void choose_shifts(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                   bool roughly, std::uint32_t* histogram, ContextShifts& shifts) {
  constexpr std::size_t kFewGroups = 64, kManyGroups = 256;
  if (shifts.context_count == 1 && count <= kManyGroups * kRansGroup) {
    // Most often the median of the one context is below 4 as it is.
    Unsigned<Q> small = 0;  // as wide as a residual, for a loop without conversions
    for (std::size_t i = 0; i < count; ++i) {
      small += static_cast<Unsigned<Q>>(residuals[i]) + 3 < 7;
    }
    if (2 * small >= count) return;
  }
  // At most bounds no context has a shift, and few samples tell.
  sample_shifts(residuals, contexts, count, kFewGroups, ~std::uint64_t{0}, histogram, shifts);
  if (roughly || shifts.max == 0 || count <= kFewGroups * kRansGroup) return;
  std::uint64_t shifted = 0;
  for (int c = 0; c < shifts.context_count; ++c) {
    if (shifts.shift[c] > 0) shifted |= std::uint64_t{1} << c;
  }
  sample_shifts(residuals, contexts, count, kManyGroups, shifted, histogram, shifts);
}

// log2 of a positive number, to 2e-4.
double rough_log2(std::uint32_t value) {
  const int exponent = static_cast<int>(std::bit_width(value)) - 1;
  const double mantissa = static_cast<double>(value) / static_cast<double>(1u << exponent);
  // ln m = 2 artanh((m - 1) / (m + 1))
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
  return exponent + 2.885390081777927 * s * (1 + square * (1.0 / 3 + square * 0.2));
}

}  // namespace

template <class Q>
const std::uint32_t* ContextRansEncoder::count_tokens(const Q* residuals,
                                                      const std::uint8_t* contexts,
                                                      std::size_t count, bool roughly,
                                                      simd::Target target, ContextShifts& shifts) {
  std::uint8_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, contexts[i]);
  shifts.context_count = largest + 1;
  const std::size_t size = static_cast<std::size_t>(shifts.context_count) * kTokenCount;
  // More of them only where that is no more work than counting.
  const std::size_t tables = 2 * size <= count ? 4 : 2;
  std::uint32_t* counts = histogram_.reserve(4 * kSampleBins * kMaxContexts);
  choose_shifts(residuals, contexts, count, roughly, counts, shifts);
  Cell* cells = cells_.reserve(count);
  context_rans_kernels<Q>(target).tokenize(residuals, contexts, shifts, count, cells);
  std::memset(counts, 0, tables * size * sizeof *counts);
  count_cells(cells, count,
              {counts, counts + size, counts + 2 % tables * size, counts + 3 % tables * size});
  for (std::size_t table = 1; table < tables; ++table) {
    for (std::size_t k = 0; k < size; ++k) counts[k] += counts[table * size + k];
  }
  return counts;
}

template <class Q>
std::size_t ContextRansEncoder::estimate(const Q* residuals, const std::uint8_t* contexts,
                                         std::size_t count, simd::Target target) {
  if (count == 0) return 0;
  ContextShifts shifts;
  const std::uint32_t* counts = count_tokens(residuals, contexts, count, true, target, shifts);
  double bits = 0;
  for (int c = 0; c < shifts.context_count; ++c) {
    const std::uint32_t* tokens = counts + c * kTokenCount;
    std::uint32_t total = 0;
    for (int index = 0; index < kTokenCount; ++index) {
      const std::uint32_t seen = tokens[index];
      if (seen == 0) continue;
      total += seen;
      const int token = index < 32 ? 32 - index : index - 32;
      // An escape takes some 20 bits; describing the distribution, 2 bits for each token.
      const int raw = token == 32 ? 20 : extra_bits(token);
      bits += static_cast<double>(seen) * (raw - rough_log2(seen)) + 2;
    }
    if (total == 0) continue;
    bits += static_cast<double>(total) * (shifts.shift[c] + rough_log2(total)) + 8;
  }
  return static_cast<std::size_t>(bits / 8);
}

template <class Q>
std::size_t ContextRansEncoder::encode(const Q* residuals, const std::uint8_t* contexts,
                                       std::size_t count, std::span<const std::size_t> segments,
                                       simd::Target target, std::uint8_t* out,
                                       std::size_t capacity) {
  if (count == 0) return 0;
  const ContextRansKernels<Q>& kernels = context_rans_kernels<Q>(target);
  RansWriter writer;
  const std::uint32_t* counts =
      count_tokens(residuals, contexts, count, false, target, writer.shifts);
  const int context_count = writer.shifts.context_count;
  const Cell* cells = cells_.data();

  // Distributions and the head of the payload.
  const Family& members = family();
  EncodeTokens* tables = tables_.reserve(kMaxContexts);
  writer.tables = tables;
  ByteWriter head(out + 1);
  head.write(static_cast<std::uint8_t>(context_count));
  BitWriter bits(head);
  Expected expected;
  std::uint64_t cost = 0;
  for (int c = 0; c < context_count; ++c) {
    const std::uint32_t* tokens = counts + c * kTokenCount;
    const std::uint64_t total = std::accumulate(tokens, tokens + kTokenCount, std::uint64_t{0});
    if (total == 0) {
      write_description(kUnusedContext, 0, {}, expected, bits);
      continue;
    }
    const std::uint8_t shift = writer.shifts.shift[c];
    const ContextChoice choice = choose_distribution(tokens, total, shift, expected);
    write_description(choice.descriptor, shift, choice.table, expected, bits);
    if (choice.descriptor == kStoredTable) {
      build_encode_tokens(choice.frequencies, tables[c]);
    } else {
      tables[c] = members.encode[choice.descriptor];
    }
    cost += choice.cost + total * shift * kCostPerBit;
  }
  writer.lanes = lanes_for(cost / (8 * kCostPerBit));
  out[0] = static_cast<std::uint8_t>(std::countr_zero(writer.lanes));

  // Words from the end of `out` down, then moved behind the head.
  std::uint8_t* const end = out + capacity;
  writer.next = end;
  writer.states.fill(kRansLow);
  const std::size_t whole[] = {count};
  if (segments.empty()) segments = whole;
  std::size_t segment_end = count;
  for (std::size_t s = segments.size(); s-- > 0;) {
    const std::size_t begin = segment_end - segments[s];
    kernels.encode(writer, residuals + begin, contexts + begin, cells + begin, segments[s]);
    segment_end = begin;
  }
  for (std::size_t lane = 0; lane < writer.lanes; ++lane) write_state(writer.states[lane], bits);
  bits.finish();
  const auto words = static_cast<std::size_t>(end - writer.next);
  std::memmove(head.here(), writer.next, words);
  return 1 + head.size() + words;
}

bool RansReader::refill() {
  if (in_tail) return false;
  const auto left = static_cast<std::size_t>(end - next);
  tail.fill(0);
  std::memcpy(tail.data(), next, left);
  next = tail.data();
  end = limit = tail.data() + left;
  in_tail = true;
  return true;
}

bool ContextRansDecoder::start(std::span<const std::uint8_t> payload, simd::Target target) {
  target_ = target;
  RansReader& reader = reader_;
  reader.lanes = 0;
  reader.in_tail = false;
  reader.shifts = {};
  reader.table.fill(0);
  reader.next = reader.limit = reader.end = payload.data() + payload.size();
  if (payload.empty()) return true;

  ByteReader in(payload);
  const int log_lanes = in.read<std::uint8_t>();
  const int described = in.read<std::uint8_t>();
  if (!in.ok() || log_lanes < 3 || log_lanes > 5 || described > kMaxContexts) return false;
  const Family& members = family();
  reader.tables = members.decode.data();
  std::array<Frequencies, kMaxContexts> frequencies;
  bool any_stored = false;
  BitReader bits(in);
  Expected expected;
  for (int c = 0; c < described; ++c) {
    std::uint8_t description = 0;
    StoredTable table;
    if (!read_description(bits, expected, &description, &table)) return false;
    if (description == kUnusedContext) continue;
    reader.shifts.shift[c] = static_cast<std::uint8_t>(expected.shift);
    reader.shifts.max = std::max(reader.shifts.max, expected.shift);
    if (description == kStoredTable) {
      if (!stored_table_frequencies(table, frequencies[c])) return false;
      any_stored = true;
    }
    reader.table[c] = description;
  }
  reader.shifts.context_count = std::max(1, described);
  if (any_stored) {
    DecodeSlots* slots = slots_.reserve(kFamilySize + kMaxContexts);
    for (int c = 0; c < kMaxContexts; ++c) {  // those not described count as member 0
      const std::uint8_t member = reader.table[c];
      if (member == kStoredTable) {
        reader.table[c] = static_cast<std::uint8_t>(kFamilySize + c);
        build_decode_slots(frequencies[c], slots[kFamilySize + c]);
      } else if (!copied_[member]) {
        slots[member] = members.decode[member];
        copied_[member] = true;
      }
    }
    reader.tables = slots;
  }
  reader.zeros.fill(0);
  reader.more_zeros.fill(0);
  reader.zero_groups = 0;
  for (int c = 0; c < described; ++c) {
    const DecodeSlot first = reader.tables[reader.table[c]][0];
    if (first >> 24 != 0) continue;
    const std::uint32_t frequency = first >> 12 & 0xFFF;
    reader.zeros[c] = static_cast<std::uint8_t>((frequency - 1) / 16);
    reader.more_zeros[c] = static_cast<std::uint8_t>(frequency - 16 * reader.zeros[c]);
  }
  const std::size_t lanes = std::size_t{1} << log_lanes;
  for (std::size_t lane = 0; lane < lanes; ++lane) reader.states[lane] = read_state(bits);
  if (!bits.finish()) return false;
  const std::span<const std::uint8_t> words = in.read_rest();
  if (!in.ok() || words.size() % 2 != 0) return false;
  reader.lanes = lanes;
  reader.next = words.data();
  reader.end = words.data() + words.size();
  if (words.size() < RansReader::kMargin) {
    reader.refill();
  } else {
    reader.limit = reader.end - RansReader::kMargin;
  }
  return true;
}

template <class Q>
bool ContextRansDecoder::decode(const std::uint8_t* contexts, std::size_t count, Q* residuals) {
  if (count == 0) return true;
  if (reader_.lanes == 0) return false;
  return context_rans_kernels<Q>(target_).decode(reader_, contexts, count, residuals);
}

bool ContextRansDecoder::finish() const {
  if (reader_.next != reader_.end) return false;
  for (std::size_t lane = 0; lane < reader_.lanes; ++lane) {
    if (reader_.states[lane] != kRansLow) return false;
  }
  return true;
}

template <class Q>
const ContextRansKernels<Q>& context_rans_reference() {
  static constexpr ContextRansKernels<Q> kernels{tokenize<Q>, encode_segment<Q>, decode_piece<Q>};
  return kernels;
}

#define FIRN_INSTANTIATE(Q)                                                                     \
  template std::size_t ContextRansEncoder::encode(const Q*, const std::uint8_t*, std::size_t,   \
                                                  std::span<const std::size_t>, simd::Target,   \
                                                  std::uint8_t*, std::size_t);                  \
  template std::size_t ContextRansEncoder::estimate(const Q*, const std::uint8_t*, std::size_t, \
                                                    simd::Target);                              \
  template bool ContextRansDecoder::decode(const std::uint8_t*, std::size_t, Q*);               \
  template const ContextRansKernels<Q>& context_rans_reference();                               \
  template void encode_group(RansWriter&, const Q*, const Cell*, std::size_t);                  \
  template bool decode_group(RansReader&, const std::uint8_t*, std::size_t, Q*);                \
  template bool decode_raw_bits(RansReader&, const std::uint8_t*, const std::int32_t*,          \
                                std::size_t, Q*);
FIRN_INSTANTIATE(std::int32_t)
FIRN_INSTANTIATE(std::int64_t)
#undef FIRN_INSTANTIATE

}  // namespace firn::encode
