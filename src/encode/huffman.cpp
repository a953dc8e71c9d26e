// Serialisation of Huffman codes and their tables.
#include "encode/huffman.hpp"

#include <algorithm>

namespace firn::encode {
void build_code_lengths(std::span<const std::uint32_t> counts, std::uint8_t* lengths,
                        ScratchArray<std::uint64_t>& scratch) {
  build_code_lengths(counts, kMaxCodeBits, {}, lengths, scratch);
}

std::size_t code_lengths_bytes(std::span<const std::uint8_t> lengths) {
  std::size_t nibbles = 0, run = 0;
  for (const std::uint8_t length : lengths) {
    if (length != 0) {
      ++nibbles;
      run = 0;
    } else {
      if (run % 256 == 0) nibbles += 3;
      ++run;
    }
  }
  return (nibbles + 1) / 2;
}

void write_code_lengths(std::span<const std::uint8_t> lengths, ByteWriter& out) {
  int half = -1;
  const auto put = [&](unsigned nibble) {
    if (half < 0) {
      half = static_cast<int>(nibble);
    } else {
      out.write<std::uint8_t>(static_cast<std::uint8_t>(half | nibble << 4));
      half = -1;
    }
  };
  for (std::size_t i = 0; i < lengths.size();) {
    if (lengths[i] != 0) {
      put(lengths[i++]);
      continue;
    }
    std::size_t run = 1;
    while (i + run < lengths.size() && lengths[i + run] == 0 && run < 256) ++run;
    put(0);
    put((run - 1) & 15);
    put(static_cast<unsigned>(run - 1) >> 4);
    i += run;
  }
  if (half >= 0) put(0);
}

bool read_code_lengths(ByteReader& in, std::span<std::uint8_t> lengths) {
  int half = -1;
  const auto get = [&]() -> unsigned {
    if (half >= 0) {
      const unsigned nibble = static_cast<unsigned>(half);
      half = -1;
      return nibble;
    }
    const unsigned byte = in.read<std::uint8_t>();
    half = static_cast<int>(byte >> 4);
    return byte & 15;
  };
  std::uint64_t kraft = 0;
  std::size_t present = 0;
  for (std::size_t i = 0; i < lengths.size();) {
    if (!in.ok()) return false;
    const unsigned length = get();
    if (length != 0) {
      lengths[i++] = static_cast<std::uint8_t>(length);
      kraft += std::uint64_t{1} << (kMaxCodeBits - length);
      ++present;
      continue;
    }
    const unsigned low = get();
    const std::size_t run = (low | get() << 4) + 1;
    if (run > lengths.size() - i) return false;
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), run, std::uint8_t{0});
    i += run;
  }
  if (!in.ok()) return false;
  return kraft == std::uint64_t{1} << kMaxCodeBits || (present == 1 && kraft > 0);
}

namespace {

struct Canonical {
  std::array<std::uint32_t, kMaxCodeBits + 2> first_code{};
  std::array<std::uint32_t, kMaxCodeBits + 2> first_index{};
};

Canonical canonical_order(std::span<const std::uint8_t> lengths) {
  std::array<std::uint32_t, kMaxCodeBits + 2> of_length{};
  for (const std::uint8_t length : lengths) ++of_length[length];
  of_length[0] = 0;
  Canonical order;
  for (int length = 1; length <= kMaxCodeBits; ++length) {
    order.first_code[length + 1] = (order.first_code[length] + of_length[length]) << 1;
    order.first_index[length + 1] = order.first_index[length] + of_length[length];
  }
  return order;
}

std::uint32_t reversed(std::uint32_t code, int length) {
  std::uint32_t result = 0;
  for (int i = 0; i < length; ++i) result |= (code >> i & 1) << (length - 1 - i);
  return result;
}

}  // namespace

void build_encode_table(std::span<const std::uint8_t> lengths, EncodeTable* table) {
  Canonical order = canonical_order(lengths);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const int length = lengths[s];
    table[s] = length == 0 ? 0
                           : reversed(order.first_code[length]++, length) |
                                 static_cast<std::uint32_t>(length) << 16;
  }
}

void build_decode_table(std::span<const std::uint8_t> lengths, DecodeTable& table) {
  const Canonical order = canonical_order(lengths);
  table.first_code = order.first_code;
  table.first_index = order.first_index;
  Canonical next = order;
  // How often codes are long, if they are as frequent as their lengths say.
  constexpr std::uint32_t kAll = 1 << kMaxCodeBits, kMany = kAll / 8;
  std::uint32_t often = 0;
  for (const std::uint8_t length : lengths) {
    if (length > kDecodeBits) often += kAll >> length;
  }
  table.all_longer = often > kMany;
  std::fill_n(table.longer.begin(), table.all_longer ? kAll : DecodeTable::kOthers, 0);
  // Single-symbol entries first: count 1, or 0 where the code is longer than the lookup.
  table.entries.fill(0);
  std::uint32_t used = DecodeTable::kOthers;  // where 0 points to is no code
  constexpr std::size_t kSize = std::size_t{1} << kDecodeBits;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const int length = lengths[s];
    if (length == 0) continue;
    table.sorted[next.first_index[length]++] = static_cast<std::uint16_t>(s);
    const std::uint32_t code = reversed(next.first_code[length]++, length);
    const std::uint32_t longer = static_cast<std::uint32_t>(s) | static_cast<std::uint32_t>(length)
                                                                     << 16;
    if (table.all_longer) {
      for (std::size_t i = code; i < kAll; i += std::size_t{1} << length) table.longer[i] = longer;
      continue;
    }
    if (length > kDecodeBits) {
      std::uint64_t& first = table.entries[code % kSize];
      if (first == 0) {
        first = used;
        std::fill_n(table.longer.begin() + used, DecodeTable::kOthers, 0);
        used += DecodeTable::kOthers;
      }
      for (std::size_t i = code >> kDecodeBits; i < DecodeTable::kOthers;
           i += std::size_t{1} << (length - kDecodeBits)) {
        table.longer[first + i] = longer;
      }
      continue;
    }
    const std::uint64_t entry = s | std::uint64_t(length) << 48 | std::uint64_t{1} << 56;
    for (std::size_t i = code; i < kSize; i += std::size_t{1} << length) table.entries[i] = entry;
  }
  if (table.all_longer) return;
  // Then join up to three: the bits after the first code are an index of their own. Indices with
  // more symbols only look at single-symbol entries of the copy below.
  const auto single = table.entries;
  for (std::size_t i = 0; i < kSize; ++i) {
    std::uint64_t entry = single[i];
    if (entry >> 56 == 0) continue;
    int bits = static_cast<int>(entry >> 48 & 0xFF);
    std::uint64_t symbols = entry & 0xFFFF;
    int count = 1;
    while (count < 3) {
      const std::uint64_t following = single[i >> bits];
      const int length = static_cast<int>(following >> 48 & 0xFF);
      if (following >> 56 == 0 || bits + length > kDecodeBits) break;
      symbols |= (following & 0xFFFF) << (16 * count);
      bits += length;
      ++count;
    }
    table.entries[i] = symbols | std::uint64_t(bits) << 48 | std::uint64_t(count) << 56;
  }
}

}  // namespace firn::encode
