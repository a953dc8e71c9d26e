#include "encode/exact_points.hpp"

#include <algorithm>
#include <cstring>

namespace firn::encode {
namespace {

constexpr int kLevel = 3;

// 64 bits of the map from bit `first` on, which may be negative or run over the end: zeros there.
std::uint64_t bits_at(const std::uint64_t* words, std::size_t word_count, std::ptrdiff_t first) {
  const std::ptrdiff_t word = first >> 6;
  const int shift = static_cast<int>(first & 63);
  const auto get = [&](std::ptrdiff_t w) {
    return w < 0 || w >= static_cast<std::ptrdiff_t>(word_count) ? 0 : words[w];
  };
  return shift == 0 ? get(word) : get(word) >> shift | get(word + 1) << (64 - shift);
}

// What a word of the map is expected to be: the bits one lag back, and where there are none yet
// those one row back.
std::uint64_t expected_word(const std::uint64_t* words, std::size_t word_count, std::size_t word,
                            std::size_t lag, std::size_t row) {
  const auto first = static_cast<std::ptrdiff_t>(word * 64);
  const std::uint64_t far = bits_at(words, word_count, first - static_cast<std::ptrdiff_t>(lag));
  if (first >= static_cast<std::ptrdiff_t>(lag)) return far;
  const std::uint64_t near = bits_at(words, word_count, first - static_cast<std::ptrdiff_t>(row));
  const std::size_t early = lag - word * 64;  // so many bits of this word lie before the lag
  const std::uint64_t use_near = early >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << early) - 1;
  return (near & use_near) | (far & ~use_near);
}

// std::popcount calls a library function where the baseline has no instruction for it.
std::size_t bits_of(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return static_cast<std::size_t>(word * 0x0101010101010101u >> 56);
}

// A lag shorter than a word would make a word depend on itself.
bool usable(std::size_t lag) { return lag >= 64; }
// So "one row back" is as many rows as fill a word.
std::size_t row_reference(std::size_t row_length) {
  return (63 + row_length) / row_length * row_length;
}

// Fills `size` bytes, a multiple of the pattern's.
void repeat(std::span<const std::uint8_t> pattern, std::uint8_t* to, std::size_t size) {
  if (size == 0) return;
  std::memcpy(to, pattern.data(), pattern.size());
  for (std::size_t done = pattern.size(); done < size;) {
    const std::size_t more = std::min(done, size - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

}  // namespace

void BitMap::reset(std::size_t bits) {
  bits_ = bits;
  std::uint64_t* words = words_.reserve(word_count() + 1);
  std::memset(words, 0, (word_count() + 1) * sizeof(std::uint64_t));
}

std::size_t BitMap::count() const {
  std::size_t total = 0;
  for (std::size_t i = 0; i < word_count(); ++i) {
    total += bits_of(words_.data()[i]);
  }
  return total;
}

std::size_t map_capacity(std::size_t bits) {
  return 2 * kMaxVarintBytes + Lossless::capacity((bits + 63) / 64 * 8);
}

std::size_t exact_points_capacity(std::size_t values, std::size_t exact_bytes) {
  return map_capacity(values) + kMaxVarintBytes + Lossless::capacity(exact_bytes);
}

void write_map(const BitMap& map, std::span<const std::size_t> lags, Lossless& lossless,
               ExactPointsScratch& scratch, ByteWriter& out) {
  const std::size_t words = map.word_count();
  const std::size_t row = row_reference(lags[0]);
  std::size_t best_lag = 0;
  std::size_t best_bits = map.count();
  for (std::size_t lag : lags) {
    if (lag == lags[0]) lag = row;
    if (!usable(lag) || lag >= map.bits()) continue;
    std::size_t bits = 0;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t word = map.words()[w] ^ expected_word(map.words(), words, w, lag, row);
      bits += bits_of(word);
    }
    if (bits < best_bits) best_bits = bits, best_lag = lag;
  }
  std::uint64_t* changed = scratch.words.reserve(words);
  for (std::size_t w = 0; w < words; ++w) {
    changed[w] = map.words()[w];
    if (best_lag != 0) changed[w] ^= expected_word(map.words(), words, w, best_lag, row);
  }
  if (map.bits() % 64 != 0) changed[words - 1] &= (std::uint64_t{1} << map.bits() % 64) - 1;
  const std::size_t map_bytes = (map.bits() + 7) / 8;
  std::uint8_t* packed = scratch.bytes.reserve(Lossless::capacity(map_bytes));
  const std::size_t packed_size =
      lossless.compress({reinterpret_cast<const std::uint8_t*>(changed), map_bytes}, packed,
                        scratch.bytes.size(), kLevel);
  out.write_varint(best_lag);
  out.write_varint(packed_size);
  out.write_bytes({packed, packed_size});
}

void write_exact_points(const BitMap& map, std::span<const std::size_t> lags,
                        std::size_t value_bytes, std::span<const std::uint8_t> exact_bytes,
                        Lossless& lossless, ExactPointsScratch& scratch, ByteWriter& out) {
  write_map(map, lags, lossless, scratch, out);
  // A mask has one value. No zstd frame is as short as that.
  if (!exact_bytes.empty() && std::memcmp(exact_bytes.data(), exact_bytes.data() + value_bytes,
                                          exact_bytes.size() - value_bytes) == 0) {
    out.write_varint(value_bytes);
    out.write_bytes(exact_bytes.first(value_bytes));
    return;
  }
  const std::size_t room = Lossless::capacity(exact_bytes.size());
  std::uint8_t* list = scratch.bytes.reserve(room);
  const std::size_t list_size = lossless.compress(exact_bytes, list, room, kLevel);
  out.write_varint(list_size);
  out.write_bytes({list, list_size});
}

bool read_map(ByteReader& in, std::size_t row_length, Lossless& lossless,
              ExactPointsScratch& scratch, BitMap& map) {
  const std::uint64_t lag = in.read_varint();
  const auto packed = in.read_bytes(in.read_varint());
  if (!in.ok() || (lag != 0 && !usable(lag)) || lag > map.bits()) return false;
  const std::size_t words = map.word_count();
  const std::size_t map_bytes = (map.bits() + 7) / 8;
  std::uint64_t* changed = scratch.words.reserve(words);
  std::memset(changed, 0, words * sizeof(std::uint64_t));
  if (!lossless.decompress(packed, {reinterpret_cast<std::uint8_t*>(changed), map_bytes})) {
    return false;
  }
  const std::size_t row = row_reference(row_length);
  for (std::size_t w = 0; w < words; ++w) {
    map.words()[w] = changed[w];
    if (lag != 0) {
      map.words()[w] ^= expected_word(map.words(), words, w, static_cast<std::size_t>(lag), row);
    }
  }
  if (map.bits() % 64 != 0) map.words()[words - 1] &= (std::uint64_t{1} << map.bits() % 64) - 1;
  return true;
}

bool read_exact_points(ByteReader& in, std::size_t row_length, std::size_t value_bytes,
                       Lossless& lossless, ExactPointsScratch& scratch, BitMap& map,
                       ScratchArray<std::uint8_t>& exact_bytes) {
  if (!read_map(in, row_length, lossless, scratch, map)) return false;
  const auto list = in.read_bytes(in.read_varint());
  if (!in.ok()) return false;
  const std::size_t bytes = map.count() * value_bytes;
  if (list.size() == value_bytes) {
    repeat(list, exact_bytes.reserve(bytes + 1), bytes);
    return true;
  }
  return lossless.decompress(list, {exact_bytes.reserve(bytes + 1), bytes});
}

}  // namespace firn::encode
