// The loops of Huffman coding. They are scalar; being built once per target gives them that
// target's shift instructions.
#include "encode/huffman.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/huffman_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {

struct BitSink {
  uint64_t bits = 0;
  unsigned count = 0;
  uint8_t* out = nullptr;

  HWY_INLINE void put(EncodeTable code) {
    bits |= uint64_t{code & 0xFFFF} << count;
    count += code >> 16;
  }
  // Keeps fewer than 8 bits pending. Writes 8 bytes, of which whole ones count.
  HWY_INLINE void flush() {
    std::memcpy(out, &bits, 8);
    out += count >> 3;
    bits >>= count & 56;
    count &= 7;
  }
  uint8_t* finish() {
    flush();
    if (count > 0) ++out;
    return out;
  }
};

uint8_t* encode(const uint16_t* HWY_RESTRICT symbols, size_t count, const EncodeTable* table,
                uint8_t* HWY_RESTRICT out, uint8_t* HWY_RESTRICT scratch) {
  const size_t quarter = (count + 3) / 4;
  const size_t room = 2 * quarter + 16;
  const uint16_t* from[kHuffmanStreams];
  size_t length[kHuffmanStreams];
  BitSink sink[kHuffmanStreams];
  for (size_t k = 0; k < kHuffmanStreams; ++k) {
    const size_t begin = k * quarter < count ? k * quarter : count;
    const size_t end = (k + 1) * quarter < count ? (k + 1) * quarter : count;
    from[k] = symbols + begin;
    length[k] = end - begin;
    sink[k].out = scratch + k * room;
  }
  // Three codes of at most 15 bits on top of 7 pending bits fit a word.
  BitSink a = sink[0], b = sink[1], c = sink[2], d = sink[3];
  const size_t common = length[kHuffmanStreams - 1];
  size_t i = 0;
  for (; i + 3 <= common; i += 3) {
    for (size_t k = 0; k < 3; ++k) {
      a.put(table[from[0][i + k]]);
      b.put(table[from[1][i + k]]);
      c.put(table[from[2][i + k]]);
      d.put(table[from[3][i + k]]);
    }
    a.flush();
    b.flush();
    c.flush();
    d.flush();
  }
  sink[0] = a, sink[1] = b, sink[2] = c, sink[3] = d;
  size_t bytes[kHuffmanStreams];
  for (size_t k = 0; k < kHuffmanStreams; ++k) {
    for (size_t j = i; j < length[k]; ++j) {
      sink[k].put(table[from[k][j]]);
      sink[k].flush();
    }
    bytes[k] = static_cast<size_t>(sink[k].finish() - (scratch + k * room));
  }
  ByteWriter writer(out);
  for (size_t k = 0; k + 1 < kHuffmanStreams; ++k) writer.write_varint(bytes[k]);
  for (size_t k = 0; k < kHuffmanStreams; ++k) {
    writer.write_bytes({scratch + k * room, bytes[k]});
  }
  return writer.here();
}

struct BitSource {
  uint64_t bits = 0;
  unsigned count = 0;  // valid bits, at least 56 after fill()
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;
  unsigned missing = 0;  // bits invented past the end

  // Needs 8 readable bytes.
  HWY_INLINE void fill_fast() {
    uint64_t word;
    std::memcpy(&word, next, 8);
    bits |= word << count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  void fill() {
    while (count < 56) {
      if (next < end) {
        bits |= uint64_t{*next++} << count;
      } else {
        missing += 8;
      }
      count += 8;
    }
  }
  HWY_INLINE void refill() {
    if (HWY_LIKELY(end - next >= 8)) {
      fill_fast();
    } else {
      fill();
    }
  }
  HWY_INLINE void drop(unsigned n) {
    bits >>= n;
    count -= n;
  }
};

constexpr uint64_t kLookupMask = (uint64_t{1} << kDecodeBits) - 1;

// One symbol, whatever its length, by the canonical order. False: no such code.
bool decode_one(BitSource& source, const DecodeTable& table, uint16_t* symbol) {
  source.fill();
  uint32_t code = 0;
  for (int length = 1; length <= kMaxCodeBits; ++length) {
    code = code << 1 | static_cast<uint32_t>(source.bits >> (length - 1) & 1);
    const uint32_t offset = code - table.first_code[length];
    const uint32_t here = table.first_index[length + 1] - table.first_index[length];
    if (code >= table.first_code[length] && offset < here) {
      *symbol = table.sorted[table.first_index[length] + offset];
      source.drop(static_cast<unsigned>(length));
      return true;
    }
  }
  return false;
}

// A symbol with a code that is longer than a lookup. False: no such code.
HWY_INLINE bool decode_long(BitSource& source, const DecodeTable& table, uint64_t first,
                            uint16_t* symbol) {
  source.refill();
  const uint64_t other = source.bits >> kDecodeBits & (DecodeTable::kOthers - 1);
  const uint32_t entry = table.longer[first + other];
  *symbol = static_cast<uint16_t>(entry);
  source.drop(entry >> 16);
  source.refill();  // as full as the caller's count of lookups supposes
  return entry != 0;
}

// Up to three symbols; 8 bytes are written.
HWY_INLINE bool decode_some(BitSource& source, const DecodeTable& table, uint16_t*& out) {
  const uint64_t entry = table.entries[source.bits & kLookupMask];
  std::memcpy(out, &entry, 8);
  const unsigned count = static_cast<unsigned>(entry >> 56);
  source.drop(static_cast<unsigned>(entry >> 48) & 0xFF);
  out += count;
  if (HWY_UNLIKELY(count == 0)) {
    if (!decode_long(source, table, entry, out)) return false;
    ++out;
  }
  return true;
}

// Two ways to decode symbols of a stream. A full word, 56 bits, is enough for kRounds of them: five
// lookups of 11 bits, or three codes of 15.
struct DecodeMany {
  static constexpr int kRounds = 5;
  HWY_INLINE bool operator()(BitSource& source, const DecodeTable& table, uint16_t*& out) const {
    return decode_some(source, table, out);
  }
};
struct DecodeLong {
  static constexpr int kRounds = 3;
  HWY_INLINE bool operator()(BitSource& source, const DecodeTable& table, uint16_t*& out) const {
    const uint32_t entry = table.longer[source.bits & ((1 << kMaxCodeBits) - 1)];
    *out++ = static_cast<uint16_t>(entry);
    source.drop(entry >> 16);
    return entry != 0;
  }
};

template <class DecodeNext>
bool decode_with(DecodeNext decode_next, std::span<const uint8_t> in, const DecodeTable& table,
                 size_t count, uint16_t* symbols) {
  ByteReader reader(in);
  size_t bytes[kHuffmanStreams] = {};
  for (size_t k = 0; k + 1 < kHuffmanStreams; ++k) bytes[k] = reader.read_varint();
  BitSource source[kHuffmanStreams];
  uint16_t* out[kHuffmanStreams];
  uint16_t* out_end[kHuffmanStreams];
  const size_t quarter = (count + 3) / 4;
  for (size_t k = 0; k < kHuffmanStreams; ++k) {
    const auto part = k + 1 < kHuffmanStreams ? reader.read_bytes(bytes[k]) : reader.read_rest();
    if (!reader.ok()) return false;
    source[k].next = part.data();
    source[k].end = part.data() + part.size();
    out[k] = symbols + (k * quarter < count ? k * quarter : count);
    out_end[k] = symbols + ((k + 1) * quarter < count ? (k + 1) * quarter : count);
  }
  // The overrun of one stream (up to 3 symbols past its last) lands where the next stream's
  // first symbols are: so a stream stops 16 symbols early and is finished one by one.
  constexpr std::ptrdiff_t kMargin = 16;
  BitSource a = source[0], b = source[1], c = source[2], d = source[3];
  uint16_t *out_a = out[0], *out_b = out[1], *out_c = out[2], *out_d = out[3];
  while (out_end[0] - out_a >= kMargin && out_end[1] - out_b >= kMargin &&
         out_end[2] - out_c >= kMargin && out_end[3] - out_d >= kMargin && a.end - a.next >= 8 &&
         b.end - b.next >= 8 && c.end - c.next >= 8 && d.end - d.next >= 8) {
    a.fill_fast();
    b.fill_fast();
    c.fill_fast();
    d.fill_fast();
    bool ok = true;
    for (int round = 0; round < DecodeNext::kRounds; ++round) {
      ok &= decode_next(a, table, out_a);
      ok &= decode_next(b, table, out_b);
      ok &= decode_next(c, table, out_c);
      ok &= decode_next(d, table, out_d);
    }
    if (HWY_UNLIKELY(!ok)) return false;
  }
  source[0] = a, source[1] = b, source[2] = c, source[3] = d;
  out[0] = out_a, out[1] = out_b, out[2] = out_c, out[3] = out_d;
  for (size_t k = 0; k < kHuffmanStreams; ++k) {
    BitSource& s = source[k];
    while (out_end[k] - out[k] >= kMargin && s.end - s.next >= 8) {
      s.fill_fast();
      for (int round = 0; round < DecodeNext::kRounds; ++round) {
        if (!decode_next(s, table, out[k])) return false;
      }
    }
    while (out[k] < out_end[k]) {
      if (!decode_one(s, table, out[k])) return false;
      ++out[k];
    }
    if (s.missing > s.count) return false;
  }
  return true;
}

bool decode(std::span<const uint8_t> in, const DecodeTable& table, size_t count,
            uint16_t* symbols) {
  return table.all_longer ? decode_with(DecodeLong(), in, table, count, symbols)
                          : decode_with(DecodeMany(), in, table, count, symbols);
}

const HuffmanKernels& table() {
  static constexpr HuffmanKernels kernels{encode, decode};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {

const HuffmanKernels& huffman_kernels(simd::Target target) { FIRN_SELECT_KERNELS(target, table) }

}  // namespace firn::encode
#endif  // HWY_ONCE
