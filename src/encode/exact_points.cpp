#include "encode/exact_points.hpp"

#include <algorithm>
#include <array>
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

// from[w] ^ words of `map` `lag` bits back, for words [begin, end) that all have such.
void change_by(const std::uint64_t* from, const std::uint64_t* map, std::size_t begin,
               std::size_t end, std::size_t lag, std::uint64_t* to) {
  const std::size_t back = lag / 64;
  const int shift = static_cast<int>(lag % 64);
  if (shift == 0) {
    for (std::size_t w = begin; w < end; ++w) to[w] = from[w] ^ map[w - back];
    return;
  }
  for (std::size_t w = begin; w < end; ++w) {
    to[w] = from[w] ^ (map[w - back] << shift | map[w - back - 1] >> (64 - shift));
  }
}

// Each word exclusive-ored with what it is expected to be. to == map: from becomes a map, in order.
void change(const std::uint64_t* from, const std::uint64_t* map, std::size_t words, std::size_t lag,
            std::size_t row, std::uint64_t* to) {
  const auto one = [&](std::size_t w) { to[w] = from[w] ^ expected_word(map, words, w, lag, row); };
  // Words that lie across a border, one by one.
  const std::size_t near = std::min(words, row / 64 + 1), far = std::min(words, lag / 64 + 1);
  std::size_t w = 0;
  for (; w < near; ++w) one(w);
  if (w < far - 1) {
    change_by(from, map, w, far - 1, row, to);
    w = far - 1;
  }
  for (; w < far; ++w) one(w);
  if (w < words) change_by(from, map, w, words, lag, to);
}

// std::popcount calls a library function where the baseline has no instruction for it.
std::size_t bits_of(const std::uint64_t* words, std::size_t count) {
  constexpr std::size_t kWords = 31;  // whose counts fit the bytes of a word
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < count; begin += kWords) {
    std::uint64_t sums = 0;
    for (std::size_t w = begin; w < std::min(count, begin + kWords); ++w) {
      std::uint64_t word = words[w];
      word -= word >> 1 & 0x5555555555555555u;
      word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
      sums += (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    }
    sums = (sums & 0x00FF00FF00FF00FFu) + (sums >> 8 & 0x00FF00FF00FF00FFu);
    total += static_cast<std::size_t>(sums * 0x0001000100010001u >> 48);
  }
  return total;
}

// ---- Bytes that are not zero. A mask has a bit for each byte of what lies below it; masks have
// masks, kMaskLevels of them.

constexpr int kMaskLevels = 3;

struct MaskSizes {
  std::array<std::size_t, kMaskLevels + 1> bytes;  // of the map, of its mask, ...
  explicit MaskSizes(std::size_t map_bytes) : bytes{map_bytes} {
    for (std::size_t k = 1; k < bytes.size(); ++k) bytes[k] = (bytes[k - 1] + 7) / 8;
  }
  // In words, each level with a zero behind it.
  std::size_t words() const {
    std::size_t total = 0;
    for (std::size_t k = 1; k < bytes.size(); ++k) total += bytes[k] / 8 + 2;
    return total;
  }
};

// All of them in `memory`, level 1 first.
std::array<std::uint8_t*, kMaskLevels + 1> place_masks(const MaskSizes& sizes, std::uint8_t* map,
                                                       std::uint64_t* memory) {
  std::array<std::uint8_t*, kMaskLevels + 1> levels{map};
  for (std::size_t k = 1; k < levels.size(); ++k) {
    levels[k] = reinterpret_cast<std::uint8_t*>(memory);
    memory += sizes.bytes[k] / 8 + 2;
  }
  return levels;
}

std::uint8_t nonzero_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t high_bits = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return static_cast<std::uint8_t>((high_bits >> 7) * 0x0102040810204080 >> 56);
}

// The words below have zeros behind their last byte.
void make_mask(const std::uint8_t* below, std::size_t mask_bytes, std::uint8_t* mask) {
  for (std::size_t i = 0; i < mask_bytes; ++i) {
    mask[i] = nonzero_bytes(load_le<std::uint64_t>(below + 8 * i));
  }
}

std::uint8_t* keep_nonzero(const std::uint8_t* bytes, const std::uint8_t* mask,
                           std::size_t mask_bytes, std::uint8_t* out) {
  for (std::size_t i = 0; i < mask_bytes; ++i) {
    if (mask[i] == 0) continue;
    for (std::size_t j = 0; j < 8; ++j) {  // without a branch: how many there are varies
      *out = bytes[8 * i + j];
      out += mask[i] >> j & 1;
    }
  }
  return out;
}

// Words of changed bits, the last with zeros behind the map's end.
std::size_t pack_map(std::uint64_t* changed, std::size_t map_bytes, std::uint64_t* memory,
                     std::uint8_t* out) {
  const MaskSizes sizes(map_bytes);
  std::memset(memory, 0, sizes.words() * sizeof(std::uint64_t));
  const auto levels = place_masks(sizes, reinterpret_cast<std::uint8_t*>(changed), memory);
  for (std::size_t k = 1; k < levels.size(); ++k)
    make_mask(levels[k - 1], sizes.bytes[k], levels[k]);
  std::memcpy(out, levels.back(), sizes.bytes.back());
  std::uint8_t* next = out + sizes.bytes.back();
  for (std::size_t k = kMaskLevels; k > 0; --k) {
    next = keep_nonzero(levels[k - 1], levels[k], sizes.bytes[k], next);
  }
  return static_cast<std::size_t>(next - out);
}

// `changed`, all zero, gets the map's bytes. False: malformed.
bool unpack_map(std::span<const std::uint8_t> packed, std::size_t map_bytes, std::uint64_t* memory,
                std::uint64_t* changed) {
  const MaskSizes sizes(map_bytes);
  if (packed.size() < sizes.bytes.back()) return false;
  std::memset(memory, 0, sizes.words() * sizeof(std::uint64_t));
  const auto levels = place_masks(sizes, reinterpret_cast<std::uint8_t*>(changed), memory);
  std::memcpy(levels.back(), packed.data(), sizes.bytes.back());
  const std::uint8_t* next = packed.data() + sizes.bytes.back();
  const std::uint8_t* const end = packed.data() + packed.size();
  for (std::size_t k = kMaskLevels; k > 0; --k) {
    for (std::size_t i = 0; i < sizes.bytes[k]; ++i) {
      for (unsigned mask = levels[k][i]; mask != 0; mask &= mask - 1) {
        const std::size_t at = 8 * i + static_cast<std::size_t>(std::countr_zero(mask));
        if (next == end || at >= sizes.bytes[k - 1]) return false;
        levels[k - 1][at] = *next++;
      }
    }
  }
  return next == end;
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

std::size_t BitMap::count() const { return bits_of(words_.data(), word_count()); }

std::size_t map_capacity(std::size_t bits) {
  const std::size_t bytes = (bits + 63) / 64 * 8;
  // Masks take less than a quarter of what they are of.
  return 2 * kMaxVarintBytes + Lossless::capacity(bytes) + bytes / 4 + 16;
}

std::size_t exact_points_capacity(std::size_t values, std::size_t exact_bytes) {
  return map_capacity(values) + kMaxVarintBytes + Lossless::capacity(exact_bytes);
}

void write_map(const BitMap& map, std::span<const std::size_t> lags, MapCoding coding,
               Lossless& lossless, ExactPointsScratch& scratch, ByteWriter& out) {
  const std::size_t words = map.word_count();
  const std::size_t row = row_reference(lags[0]);
  std::uint64_t* const changed = scratch.words.reserve(words + 1);
  std::size_t best_lag = 0;
  std::size_t best_bits = map.count();
  std::size_t lag_there = 0;
  for (std::size_t lag : lags) {
    if (lag == lags[0]) lag = row;
    if (!usable(lag) || lag >= map.bits()) continue;
    lag_there = lag;
    change(map.words(), map.words(), words, lag, row, changed);
    const std::size_t bits = bits_of(changed, words);
    if (bits < best_bits) best_bits = bits, best_lag = lag;
  }
  if (best_lag == 0) {
    std::memcpy(changed, map.words(), words * sizeof(std::uint64_t));
  } else if (best_lag != lag_there) {
    change(map.words(), map.words(), words, best_lag, row, changed);
  }
  if (map.bits() % 64 != 0) changed[words - 1] &= (std::uint64_t{1} << map.bits() % 64) - 1;
  changed[words] = 0;
  const std::size_t map_bytes = (map.bits() + 7) / 8;
  std::uint8_t* const packed = scratch.bytes.reserve(map_capacity(map.bits()));
  const std::size_t packed_size =
      coding == MapCoding::nonzero_bytes
          ? pack_map(changed, map_bytes, scratch.masks.reserve(MaskSizes(map_bytes).words()),
                     packed)
          : lossless.compress({reinterpret_cast<const std::uint8_t*>(changed), map_bytes}, packed,
                              scratch.bytes.size(), kLevel);
  out.write_varint(best_lag);
  out.write_varint(packed_size);
  out.write_bytes({packed, packed_size});
}

void write_exact_points(const BitMap& map, std::span<const std::size_t> lags, MapCoding coding,
                        std::size_t value_bytes, std::span<const std::uint8_t> exact_bytes,
                        Lossless& lossless, ExactPointsScratch& scratch, ByteWriter& out) {
  write_map(map, lags, coding, lossless, scratch, out);
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

bool read_map(ByteReader& in, std::size_t row_length, MapCoding coding, Lossless& lossless,
              ExactPointsScratch& scratch, BitMap& map) {
  const std::uint64_t lag = in.read_varint();
  const auto packed = in.read_bytes(in.read_varint());
  if (!in.ok() || (lag != 0 && !usable(lag)) || lag > map.bits()) return false;
  const std::size_t words = map.word_count();
  const std::size_t map_bytes = (map.bits() + 7) / 8;
  std::uint64_t* changed = scratch.words.reserve(words + 1);
  std::memset(changed, 0, words * sizeof(std::uint64_t));
  if (coding == MapCoding::nonzero_bytes) {
    std::uint64_t* const masks = scratch.masks.reserve(MaskSizes(map_bytes).words());
    if (!unpack_map(packed, map_bytes, masks, changed)) return false;
  } else if (!lossless.decompress(packed, {reinterpret_cast<std::uint8_t*>(changed), map_bytes})) {
    return false;
  }
  if (lag == 0) {
    std::memcpy(map.words(), changed, words * sizeof(std::uint64_t));
  } else {
    change(changed, map.words(), words, static_cast<std::size_t>(lag), row_reference(row_length),
           map.words());
  }
  if (map.bits() % 64 != 0) map.words()[words - 1] &= (std::uint64_t{1} << map.bits() % 64) - 1;
  return true;
}

bool read_exact_points(ByteReader& in, std::size_t row_length, MapCoding coding,
                       std::size_t value_bytes, Lossless& lossless, ExactPointsScratch& scratch,
                       BitMap& map, ScratchArray<std::uint8_t>& exact_bytes, bool* alike) {
  if (!read_map(in, row_length, coding, lossless, scratch, map)) return false;
  const auto list = in.read_bytes(in.read_varint());
  if (!in.ok()) return false;
  if (alike != nullptr) {
    *alike = list.size() == value_bytes;
    if (*alike) {
      std::memcpy(exact_bytes.reserve(value_bytes), list.data(), value_bytes);
      return true;
    }
  }
  const std::size_t bytes = map.count() * value_bytes;
  if (list.size() == value_bytes) {
    repeat(list, exact_bytes.reserve(bytes + 1), bytes);
    return true;
  }
  return lossless.decompress(list, {exact_bytes.reserve(bytes + 1), bytes});
}

}  // namespace firn::encode
