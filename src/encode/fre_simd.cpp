// The codes with Highway. Encoding makes the code words of a vector at once and joins neighbours
// before they are appended; decoding runs the streams of a chunk side by side, one in each lane.
#include "encode/fre.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/fre_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"

#ifndef FIRN_ENCODE_FRE_REFERENCE
#define FIRN_ENCODE_FRE_REFERENCE
namespace firn::encode::reference {
template <class T>
const FreKernels<T>& fre_kernels();
}  // namespace firn::encode::reference
#endif

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

// No vectors at all: the reference is as good.
template <class T>
const FreKernels<T>& table() {
  return reference::fre_kernels<T>();
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// ---- Cutting -----------------------------------------------------------------------------------

template <class T>
FreCutOutcome cut_values(const T* HWY_RESTRICT values, size_t count, FreCut cut,
                         typename FreLayout<T>::Bits* HWY_RESTRICT coded) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const size_t lanes = hn::Lanes(d);
  const int dropped = L::kMantissa - cut.mantissa_bits;
  const Bits low = (Bits{1} << dropped) - 1;
  const auto keep = hn::Set(du, static_cast<Bits>(~low));
  const auto half = hn::Set(du, cut.rounded ? (low >> 1) + 1 : Bits{0});
  const auto exponents = hn::Set(du, L::kExponentMask << L::kMantissa);
  const auto smallest = hn::BitCast(d, hn::Set(du, Bits{1} << L::kMantissa));
  auto irregular = hn::Zero(du);  // lanes are not 0 where a value was
  auto largest = hn::Zero(d);
  const auto step = [&](const T* from, Bits* to) HWY_ATTR {
    const auto value = hn::LoadU(d, from);
    const auto bits = hn::BitCast(du, value);
    const auto exponent = hn::And(bits, exponents);
    const auto rounded = hn::And(hn::Add(bits, half), keep);
    const auto out = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), bits, rounded);
    // Infinite exponents stay, and rounding may make one.
    const auto infinite =
        hn::Or(hn::Eq(exponent, exponents), hn::Eq(hn::And(out, exponents), exponents));
    irregular = hn::Or(irregular, hn::VecFromMask(du, infinite));
    // Denormals are exact: any divisor will do for them.
    const auto magnitude = hn::Max(hn::Abs(value), smallest);
    largest = hn::Max(largest, hn::Div(hn::Abs(hn::Sub(hn::BitCast(d, out), value)), magnitude));
    hn::StoreU(out, du, to);
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) step(values + i, coded + i);
  if (i < count) {
    T padded[hn::MaxLanes(d)] = {};
    Bits padded_coded[hn::MaxLanes(d)];
    std::memcpy(padded, values + i, (count - i) * sizeof(T));
    step(padded, padded_coded);
    std::memcpy(coded + i, padded_coded, (count - i) * sizeof(T));
  }
  const bool regular = hn::AllTrue(du, hn::Eq(irregular, hn::Zero(du)));
  const T error = regular ? hn::GetLane(hn::MaxOfLanes(d, largest)) : T{0};
  return {regular, static_cast<double>(error) * (1 + 0x1p-20)};
}

// ---- Encoding ----------------------------------------------------------------------------------

constexpr int kMaxPut = 56;  // bits that fit behind the 7 that may wait

HWY_INLINE void put(FreWriter& writer, uint64_t word, int bits) {
  writer.buffer |= word << writer.filled;
  store_le(writer.next, writer.buffer);
  writer.filled += bits;
  writer.next += writer.filled >> 3;
  writer.buffer >>= writer.filled & ~7;
  writer.filled &= 7;
}

HWY_INLINE void put_long(FreWriter& writer, uint64_t word, int bits) {
  if (bits > kMaxPut) {
    put(writer, word & 0xFFFFFFFF, 32);
    word >>= 32;
    bits -= 32;
  }
  put(writer, word, bits);
}

// Code and length (with the sign) of each difference, in bytes as TableLookupBytes takes them.
struct EncodeTables {
  alignas(16) uint8_t code[16] = {};
  alignas(16) uint8_t length[16] = {};

  explicit EncodeTables(const FreCodeWords& words) {
    for (size_t d = 0; d < kFreDifferences; ++d) {
      code[d] = kFreCodeBits[words.rank[d]];
      length[d] = static_cast<uint8_t>(kFreCodeLengths[words.rank[d]] + (d != 0 ? 1 : 0));
    }
  }
};

// A 16-byte table in every block of a vector of Bits.
template <class D>
HWY_INLINE hn::Vec<D> load_table(D d, const uint8_t* table) {
  const hn::Repartition<uint8_t, D> d8;
  return hn::BitCast(d, hn::LoadDup128(d8, table));
}

// table[index] for indices below 16 in each lane of Bits; the lane's other bytes become 0.
template <class D, class V = hn::Vec<D> >
HWY_INLINE V look_up(D d, V table, V index) {
  using Bits = hn::TFromD<D>;
  const hn::Repartition<uint8_t, D> d8;
  const auto others = hn::Set(d, static_cast<Bits>(0x8080808080808000u));
  return hn::BitCast(
      d, hn::TableLookupBytesOr0(hn::BitCast(d8, table), hn::BitCast(d8, hn::Or(index, others))));
}

template <class T>
struct Coder {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  using D = hn::ScalableTag<Bits>;
  using V = hn::Vec<D>;

  int kept;
  V code_table, length_table;

  Coder(FreCut cut, const EncodeTables& tables)
      : kept(cut.mantissa_bits),
        code_table(load_table(D(), tables.code)),
        length_table(load_table(D(), tables.length)) {}

  HWY_INLINE void make(V value, V before, V* code, V* length) const {
    const D d;
    const auto exponents = hn::Set(d, L::kExponentMask);
    const auto exponent = hn::And(hn::ShiftRight<L::kMantissa>(value), exponents);
    const auto exponent_before = hn::And(hn::ShiftRight<L::kMantissa>(before), exponents);
    const auto sign = hn::ShiftRight<L::kSignShift>(value);
    const auto mantissa = hn::And(value, hn::Set(d, L::kMantissaMask));
    const auto difference = hn::Sub(exponent, exponent_before);
    const auto negative = hn::ShiftRight<sizeof(Bits) * 8 - 1>(difference);
    const auto distance = hn::Add(hn::Xor(difference, hn::Sub(hn::Zero(d), negative)), negative);
    const auto one = hn::Set(d, Bits{1});
    const auto bits = look_up(d, length_table, hn::And(distance, hn::Set(d, Bits{15})));
    const auto word = hn::Or(look_up(d, code_table, hn::And(distance, hn::Set(d, Bits{15}))),
                             hn::Shl(negative, hn::Sub(bits, hn::Min(one, bits))));
    const auto top = hn::ShiftRightSame(mantissa, L::kMantissa - kept);
    auto out = hn::Or(hn::Or(one, hn::ShiftLeft<1>(sign)),
                      hn::Or(hn::ShiftLeft<2>(top), hn::ShiftLeftSame(word, 2 + kept)));
    auto out_bits = hn::Add(bits, hn::Set(d, static_cast<Bits>(2 + kept)));
    const auto far = hn::Gt(distance, hn::Set(d, Bits{kFreDifferences - 1}));
    const auto denormal = hn::Eq(exponent, hn::Zero(d));
    const auto equal = hn::Eq(value, before);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::AndNot(equal, hn::Or(far, denormal))))) {
      const auto signed_head = hn::ShiftLeft<3>(sign);
      const auto far_code =
          hn::Or(hn::Or(hn::Set(d, Bits{0b110}), signed_head),
                 hn::Or(hn::ShiftLeft<4>(exponent), hn::ShiftLeft<4 + L::kExponent>(top)));
      const auto denormal_code =
          hn::Or(hn::Or(hn::Set(d, Bits{0b010}), signed_head), hn::ShiftLeft<4>(mantissa));
      out = hn::IfThenElse(far, far_code, out);
      out_bits =
          hn::IfThenElse(far, hn::Set(d, static_cast<Bits>(4 + L::kExponent + kept)), out_bits);
      out = hn::IfThenElse(denormal, denormal_code, out);
      out_bits = hn::IfThenElse(denormal, hn::Set(d, Bits{4 + L::kMantissa}), out_bits);
    }
    *code = hn::IfThenZeroElse(equal, out);
    *length = hn::IfThenElse(equal, hn::Set(d, Bits{2}), out_bits);
  }
};

// Appends the words of a vector of 64-bit lanes, two at a time where all pairs are short enough.
template <class D64, class V = hn::Vec<D64> >
HWY_INLINE void append(D64 d, V code, V length, size_t lanes, FreWriter& writer) {
  alignas(64) uint64_t codes[hn::MaxLanes(d)];
  alignas(64) uint64_t lengths[hn::MaxLanes(d)];
  if (lanes % 2 == 0) {
    const auto sum = hn::Add(length, hn::Shuffle01(length));
    const hn::Repartition<uint32_t, D64> d32;  // lengths are small: their low halves will do
    if (HWY_LIKELY(
            hn::AllFalse(d32, hn::Gt(hn::BitCast(d32, sum), hn::Set(d32, uint32_t{kMaxPut}))))) {
      hn::Store(hn::Or(code, hn::Shl(hn::Shuffle01(code), length)), d, codes);
      hn::Store(sum, d, lengths);
      for (size_t i = 0; i < lanes; i += 2) put(writer, codes[i], static_cast<int>(lengths[i]));
      return;
    }
  }
  hn::Store(code, d, codes);
  hn::Store(length, d, lengths);
  for (size_t i = 0; i < lanes; ++i) put_long(writer, codes[i], static_cast<int>(lengths[i]));
}

template <class T>
void encode(const typename FreLayout<T>::Bits* HWY_RESTRICT coded, size_t count, FreCut cut,
            const FreCodeWords& words, FreWriter& result) {
  using Bits = typename FreLayout<T>::Bits;
  const hn::ScalableTag<Bits> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const size_t lanes = hn::Lanes(d);
  const EncodeTables tables(words);
  const Coder<T> coder(cut, tables);
  FreWriter writer = result;
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d)> code, length;
    coder.make(hn::LoadU(d, coded + i), hn::LoadU(d, coded + i - 1), &code, &length);
    if constexpr (sizeof(T) == 8) {
      append(d64, code, length, lanes, writer);
    } else {
      // Two words of at most 32 bits in each lane of 64.
      const auto low = hn::Set(d64, uint64_t{0xFFFFFFFF});
      const auto pairs = hn::BitCast(d64, code), lengths = hn::BitCast(d64, length);
      const auto first = hn::And(lengths, low);
      const auto joined = hn::Or(hn::And(pairs, low), hn::Shl(hn::ShiftRight<32>(pairs), first));
      append(d64, joined, hn::Add(first, hn::ShiftRight<32>(lengths)), lanes / 2, writer);
    }
  }
  if (i < count) {
    Bits padded[hn::MaxLanes(d) + 1];
    Bits codes[hn::MaxLanes(d)], lengths[hn::MaxLanes(d)];
    std::memset(padded, 0, sizeof padded);
    std::memcpy(padded, coded + i - 1, (count - i + 1) * sizeof(Bits));
    hn::Vec<decltype(d)> code, length;
    coder.make(hn::LoadU(d, padded + 1), hn::LoadU(d, padded), &code, &length);
    hn::StoreU(code, d, codes);
    hn::StoreU(length, d, lengths);
    for (size_t k = 0; i + k < count; ++k) put_long(writer, codes[k], static_cast<int>(lengths[k]));
  }
  result = writer;
}

// ---- Decoding ----------------------------------------------------------------------------------

// Difference and length (with the sign) by the low and the high half of a code word's byte.
struct DecodeTables {
  alignas(16) uint8_t low_difference[16], low_length[16];
  alignas(16) uint8_t high_difference[16], high_length[16];

  explicit DecodeTables(const FreCodeWords& words) {
    uint8_t difference_of[kFreDifferences];
    for (size_t d = 0; d < kFreDifferences; ++d) {
      difference_of[words.rank[d]] = static_cast<uint8_t>(d);
    }
    const auto set = [&](unsigned byte, uint8_t* difference, uint8_t* length) {
      for (size_t rank = 0; rank < kFreDifferences; ++rank) {
        const unsigned mask = (1u << kFreCodeLengths[rank]) - 1;
        if ((byte & mask) != kFreCodeBits[rank]) continue;
        *difference = difference_of[rank];
        *length = static_cast<uint8_t>(kFreCodeLengths[rank] + (*difference != 0 ? 1 : 0));
      }
    };
    for (unsigned half = 0; half < 16; ++half) {
      low_difference[half] = low_length[half] = 0;
      if (half != 15) set(half, &low_difference[half], &low_length[half]);
      set(half << 4 | 15, &high_difference[half], &high_length[half]);
    }
  }
};

// The streams [first, first + lanes) side by side, as far as all have `steps` values and nothing
// behind the end of `bytes` is read; leaves where they are in `readers`. Returns the values done.
template <class T>
size_t decode_lanes(FreReader<T>* readers, size_t steps, FreCut cut, const DecodeTables& tables,
                    T* HWY_RESTRICT values, size_t apart) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  const hn::CappedTag<Bits, kFreStreams> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const std::span<const uint8_t> bytes = readers[0].bytes;
  constexpr size_t kBlock = 8;
  constexpr size_t kReach = kBlock * 8 + 16;  // bytes that a block may read on
  if (bytes.size() < kReach) return 0;
  const Bits limit = static_cast<Bits>((bytes.size() - kReach) * 8);
  alignas(64) Bits positions[kFreStreams], before[kFreStreams];
  for (size_t j = 0; j < lanes; ++j) {
    positions[j] = static_cast<Bits>(readers[j].position);
    before[j] = readers[j].previous;
  }
  auto position = hn::Load(d, positions);
  auto previous = hn::Load(d, before);
  const int kept = cut.mantissa_bits;
  const auto mantissa_mask = hn::Set(d, (Bits{1} << kept) - 1);
  const auto low_difference = load_table(d, tables.low_difference);
  const auto low_length = load_table(d, tables.low_length);
  const auto high_difference = load_table(d, tables.high_difference);
  const auto high_length = load_table(d, tables.high_length);
  const auto one = hn::Set(d, Bits{1}), two = hn::Set(d, Bits{2}), three = hn::Set(d, Bits{3});
  const auto fifteen = hn::Set(d, Bits{15});
  const auto exponents = hn::Set(d, L::kExponentMask << L::kMantissa);
  const auto head_bits = hn::Set(d, static_cast<Bits>(2 + kept));
  const auto* base = reinterpret_cast<const Bits*>(bytes.data());
  alignas(64) Bits block[kBlock][kFreStreams];
  size_t done = 0;
  for (; done + kBlock <= steps; done += kBlock) {
    if (!hn::AllFalse(di, hn::Gt(hn::BitCast(di, position), hn::BitCast(di, hn::Set(d, limit))))) {
      break;
    }
    for (size_t k = 0; k < kBlock; ++k) {
      const auto offset = hn::BitCast(di, hn::ShiftRight<3>(position));
      const auto word =
          hn::Shr(hn::GatherOffset(d, base, offset), hn::And(position, hn::Set(d, Bits{7})));
      const auto sign = hn::ShiftLeftSame(hn::And(word, two), L::kSignShift - 1);
      const auto mantissa = hn::And(hn::ShiftRight<2>(word), mantissa_mask);
      const auto code = hn::ShiftRightSame(word, 2 + kept);
      const auto low = hn::And(code, fifteen);
      const auto high = hn::And(hn::ShiftRight<4>(code), fifteen);
      const auto is_long = hn::Eq(low, fifteen);
      const auto distance = hn::IfThenElse(is_long, look_up(d, high_difference, high),
                                           look_up(d, low_difference, low));
      const auto bits =
          hn::IfThenElse(is_long, look_up(d, high_length, high), look_up(d, low_length, low));
      const auto sign_bit = hn::And(hn::Shr(code, hn::Sub(bits, one)), one);
      const auto minus = hn::Sub(hn::Zero(d), sign_bit);
      const auto difference = hn::Sub(hn::Xor(distance, minus), minus);
      const auto exponent =
          hn::And(hn::Add(hn::And(previous, exponents), hn::ShiftLeft<L::kMantissa>(difference)),
                  exponents);
      const auto near =
          hn::Or(hn::Or(sign, exponent), hn::ShiftLeftSame(mantissa, L::kMantissa - kept));
      const auto is_near = hn::Eq(hn::And(word, one), one);
      previous = hn::IfThenElse(is_near, near, previous);
      position = hn::Add(position, hn::IfThenElse(is_near, hn::Add(head_bits, bits), two));
      const auto rare = hn::Eq(hn::And(word, three), two);
      if (HWY_UNLIKELY(!hn::AllFalse(d, rare))) {
        uint8_t mask[8] = {};
        hn::StoreMaskBits(d, rare, mask);
        hn::Store(position, d, positions);
        hn::Store(previous, d, before);
        for (size_t j = 0; j < lanes; ++j) {
          if ((mask[0] >> j & 1) == 0) continue;
          const size_t at = static_cast<size_t>(positions[j] - 2);
          const uint64_t rest = load_le<uint64_t>(bytes.data() + at / 8) >> at % 8;
          const Bits rare_sign = static_cast<Bits>(rest >> 3 & 1) << L::kSignShift;
          if ((rest & 4) == 0) {
            // A denormal's mantissa may reach beyond the first 64 bits from the byte on.
            const size_t from = at + 4;
            const uint64_t word8 = load_le<uint64_t>(bytes.data() + from / 8) >> from % 8;
            before[j] = rare_sign | (static_cast<Bits>(word8) & L::kMantissaMask);
            positions[j] = static_cast<Bits>(from + L::kMantissa);
          } else {
            const size_t from = at + 4;
            const uint64_t word8 = load_le<uint64_t>(bytes.data() + from / 8) >> from % 8;
            const Bits top = static_cast<Bits>(word8 >> L::kExponent) & ((Bits{1} << kept) - 1);
            before[j] = rare_sign | (static_cast<Bits>(word8) & L::kExponentMask) << L::kMantissa |
                        top << (L::kMantissa - kept);
            positions[j] = static_cast<Bits>(from + L::kExponent + static_cast<size_t>(kept));
          }
        }
        position = hn::Load(d, positions);
        previous = hn::Load(d, before);
      }
      hn::Store(previous, d, block[k]);
    }
    for (size_t j = 0; j < lanes; ++j) {
      Bits row[kBlock];
      for (size_t k = 0; k < kBlock; ++k) row[k] = block[k][j];
      std::memcpy(values + j * apart + done, row, sizeof row);
    }
  }
  hn::Store(position, d, positions);
  hn::Store(previous, d, before);
  for (size_t j = 0; j < lanes; ++j) {
    readers[j].position = static_cast<size_t>(positions[j]);
    readers[j].previous = before[j];
  }
  return done;
}

template <class T>
bool decode(std::span<const uint8_t> bytes, std::span<const size_t> sizes, size_t count, FreCut cut,
            const FreCodeWords& words, T* values) {
  using Bits = typename FreLayout<T>::Bits;
  const FreParts parts(count);
  const DecodeTables tables(words);
  FreReader<T> readers[kFreStreams];
  size_t begin = 0;
  for (size_t j = 0; j < parts.streams; ++j) {
    readers[j].bytes = bytes;
    readers[j].position = begin * 8;
    begin += sizes[j];
    readers[j].end = begin * 8;
  }
  // A lane sees 25 (57) bits from any position on: enough for all but very tight bounds of f32.
  const bool fits = 2 + cut.mantissa_bits + 9 <= static_cast<int>(sizeof(Bits) * 8) - 7;
  const size_t lanes = hn::Lanes(hn::CappedTag<Bits, kFreStreams>());
  size_t done[kFreStreams] = {};
  if (parts.streams == kFreStreams && fits && bytes.size() < (size_t{1} << 27)) {
    for (size_t j = 0; j < kFreStreams; j += lanes) {
      const size_t steps = decode_lanes<T>(readers + j, parts.size(j + lanes - 1), cut, tables,
                                           values + parts.begin(j), parts.length);
      for (size_t k = 0; k < lanes; ++k) done[j + k] = steps;
    }
  }
  for (size_t j = 0; j < parts.streams; ++j) {
    if (readers[j].position > readers[j].end ||
        !readers[j].decode(parts.size(j) - done[j], cut, words,
                           values + parts.begin(j) + done[j]) ||
        !readers[j].finished()) {
      return false;
    }
  }
  return true;
}

template <class T>
const FreKernels<T>& table() {
  static constexpr FreKernels<T> kernels{cut_values<T>, encode<T>, decode<T>};
  return kernels;
}

#endif  // HWY_TARGET == HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {

template <class T>
const FreKernels<T>& fre_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::fre_kernels<T>();
  FIRN_SELECT_KERNELS(target, table<T>)
}
template const FreKernels<float>& fre_kernels(simd::Target);
template const FreKernels<double>& fre_kernels(simd::Target);

}  // namespace firn::encode
#endif  // HWY_ONCE
