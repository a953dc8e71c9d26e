#include "encode/code_lengths.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace firn::encode {
namespace {

// Lengths of an unrestricted Huffman code for ascending weights, in place (Moffat and Katajainen):
// first parents, then depths of inner nodes, then depths of leaves. Of equal weights a leaf is
// taken before an inner node. Weights that do not ascend give a valid code as well.
void minimum_redundancy(std::uint64_t* weight, int count) {
  if (count == 1) {
    weight[0] = 1;
    return;
  }
  weight[0] += weight[1];
  int root = 0, leaf = 2;
  for (int next = 1; next < count - 1; ++next) {
    if (leaf >= count || weight[root] < weight[leaf]) {
      weight[next] = weight[root];
      weight[root++] = static_cast<std::uint64_t>(next);
    } else {
      weight[next] = weight[leaf++];
    }
    if (leaf >= count || (root < next && weight[root] < weight[leaf])) {
      weight[next] += weight[root];
      weight[root++] = static_cast<std::uint64_t>(next);
    } else {
      weight[next] += weight[leaf++];
    }
  }
  weight[count - 2] = 0;
  for (int next = count - 3; next >= 0; --next) weight[next] = weight[weight[next]] + 1;
  int available = 1, used = 0, depth = 0, next = count - 1;
  root = count - 2;
  while (available > 0) {
    while (root >= 0 && static_cast<int>(weight[root]) == depth) {
      ++used;
      --root;
    }
    while (available > used) {
      weight[next--] = static_cast<std::uint64_t>(depth);
      --available;
    }
    available = 2 * used;
    ++depth;
    used = 0;
  }
}

// The smallest counts make the longest codes: they are taken for `least`, which grows by a quarter
// until no code is beyond the limit. Close to the best code, and a fraction of its time.
void raise_counts(const std::uint64_t* order, std::uint64_t* weight, std::size_t count,
                  int max_bits) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += order[i] >> 32;
  for (std::uint64_t least = std::max<std::uint64_t>(1, total >> (max_bits + 1));
       weight[0] > static_cast<std::uint64_t>(max_bits); least += least / 4 + 1) {
    for (std::size_t i = 0; i < count; ++i) weight[i] = std::max(order[i] >> 32, least);
    minimum_redundancy(weight, static_cast<int>(count));
  }
}

// Codes beyond the limit are moved to it; then the longest codes below it are lengthened until
// Kraft's sum is at most one again, and what is left goes to the longest that can use it.
void repair(std::uint64_t* length, std::size_t count, int max_bits) {
  std::array<std::uint64_t, kLongestCodeBits + 1> of_length{};
  std::uint64_t kraft = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto limited = static_cast<int>(std::min<std::uint64_t>(length[i], max_bits));
    ++of_length[limited];
    kraft += std::uint64_t{1} << (max_bits - limited);
  }
  const std::uint64_t whole = std::uint64_t{1} << max_bits;
  while (kraft > whole) {
    int longest = max_bits - 1;
    while (of_length[longest] == 0) --longest;
    --of_length[longest];
    ++of_length[longest + 1];
    kraft -= std::uint64_t{1} << (max_bits - longest - 1);
  }
  for (int bits = max_bits; bits > 1; --bits) {
    const std::uint64_t gain = std::uint64_t{1} << (max_bits - bits);
    while (whole - kraft >= gain && of_length[bits] > 0) {
      --of_length[bits];
      ++of_length[bits - 1];
      kraft += gain;
    }
  }
  std::size_t i = 0;
  for (int bits = max_bits; bits > 0; --bits) {
    for (std::uint64_t k = 0; k < of_length[bits]; ++k) length[i++] = static_cast<unsigned>(bits);
  }
}

// Package-merge: level by level from the longest codes up, a list of the leaves and of pairs from
// the list before, cheapest first. Which of the cheapest 2 count - 2 of the last list are leaves,
// and which of those inside their pairs, says how long each leaf's code is: all that has to be
// kept of a list is a bit an item.
class PackageMerge {
 public:
  static std::size_t scratch_words(std::size_t count, int max_bits) {
    return 4 * count + static_cast<std::size_t>(max_bits) * words(count);
  }

  // `leaves` ascend; writes lengths, which do not.
  static void run(const std::uint64_t* leaves, std::size_t count, int max_bits,
                  std::uint64_t* length, std::uint64_t* scratch) {
    std::uint64_t* before = scratch;
    std::uint64_t* list = before + 2 * count;
    std::uint64_t* is_pair = list + 2 * count;  // by level
    std::fill_n(is_pair, static_cast<std::size_t>(max_bits) * words(count), std::uint64_t{0});
    std::copy_n(leaves, count, before);
    std::size_t size = count;
    const std::size_t wanted = 2 * count - 2;
    for (int level = 1; level < max_bits; ++level) {
      std::uint64_t* bits = is_pair + static_cast<std::size_t>(level) * words(count);
      std::size_t leaf = 0, pair = 0, made = 0;
      for (; made < wanted && (leaf < count || pair + 1 < size); ++made) {
        const bool take_pair =
            pair + 1 < size && (leaf == count || before[pair] + before[pair + 1] < leaves[leaf]);
        if (take_pair) {
          list[made] = before[pair] + before[pair + 1];
          bits[made / 64] |= std::uint64_t{1} << made % 64;
          pair += 2;
        } else {
          list[made] = leaves[leaf++];
        }
      }
      size = made;
      std::swap(before, list);
    }
    // The leaves of a level are its lightest ones: one bit more for each of these.
    std::fill_n(length, count, std::uint64_t{0});
    std::size_t take = wanted;
    for (int level = max_bits; level-- > 0;) {
      const std::uint64_t* bits = is_pair + static_cast<std::size_t>(level) * words(count);
      std::size_t pairs = 0;
      for (std::size_t w = 0; w < take / 64; ++w) {
        pairs += static_cast<std::size_t>(std::popcount(bits[w]));
      }
      if (take % 64 != 0) {
        const std::uint64_t mask = (std::uint64_t{1} << take % 64) - 1;
        pairs += static_cast<std::size_t>(std::popcount(bits[take / 64] & mask));
      }
      if (take > pairs) ++length[take - pairs - 1];
      take = 2 * pairs;
    }
    for (std::size_t i = count - 1; i-- > 0;) length[i] += length[i + 1];
  }

 private:
  static std::size_t words(std::size_t count) { return 2 * count / 64 + 1; }
};

// Sorts keys count << 32 | symbol whose symbols ascend; many of them by the counts' bytes, lowest
// first. `spare` has as much room.
void sort_by_count(std::uint64_t* keys, std::size_t count, std::uint64_t* spare) {
  if (count < 256) {
    std::sort(keys, keys + count);
    return;
  }
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all |= keys[i];
  std::uint64_t* from = keys;
  std::uint64_t* to = spare;
  for (int bit = 32; bit < 64 && all >> bit != 0; bit += 8) {
    std::array<std::uint32_t, 257> begin{};
    for (std::size_t i = 0; i < count; ++i) ++begin[(from[i] >> bit & 255) + 1];
    for (std::size_t digit = 0; digit < 256; ++digit) begin[digit + 1] += begin[digit];
    for (std::size_t i = 0; i < count; ++i) to[begin[from[i] >> bit & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != keys) std::copy_n(from, count, keys);
}

// Keys count << 32 | symbol of the symbols present, sorted or outward from the middle of the
// alphabet; returns how many.
std::size_t order_symbols(std::span<const std::uint32_t> counts, SymbolOrder kind,
                          std::uint64_t* order) {  // room for twice the symbols
  std::size_t present = 0;
  const auto key = [&](std::size_t s) { return std::uint64_t{counts[s]} << 32 | s; };
  if (kind == SymbolOrder::sorted) {
    for (std::size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] != 0) order[present++] = key(s);
    }
    sort_by_count(order, present, order + counts.size());
    return present;
  }
  // The paper filters symbols of count 0 first; skipping them here is the same but for which two
  // make a pair. Filled from the back, where the largest belong.
  present = counts.size() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0u));
  std::size_t left = counts.size() / 2, right = left + 1, at = present;
  if (left < counts.size() && counts[left] != 0) order[--at] = key(left);
  while (at > 0) {
    while (left > 0 && counts[left - 1] == 0) --left;
    while (right < counts.size() && counts[right] == 0) ++right;
    const bool has_left = left > 0, has_right = right < counts.size();
    if (has_left && (!has_right || counts[left - 1] > counts[right])) {
      order[--at] = key(--left);
      if (has_right) order[--at] = key(right++);
    } else {
      order[--at] = key(right++);
      if (has_left) order[--at] = key(--left);
    }
  }
  return present;
}

}  // namespace

void build_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                        Construction construction, std::uint8_t* lengths,
                        ScratchArray<std::uint64_t>& scratch) {
  const std::size_t symbols = counts.size();
  std::fill_n(lengths, symbols, std::uint8_t{0});
  if (symbols == 0) return;
  std::uint64_t* order =
      scratch.reserve(3 * symbols + PackageMerge::scratch_words(symbols, max_bits));
  std::uint64_t* weight = order + symbols;
  const std::size_t present = order_symbols(counts, construction.order, order);
  if (present == 0) return;
  for (std::size_t i = 0; i < present; ++i) weight[i] = order[i] >> 32;
  minimum_redundancy(weight, static_cast<int>(present));
  if (weight[0] > static_cast<std::uint64_t>(max_bits)) {  // the first is the longest
    if (construction.limit == LengthLimit::raised) {
      raise_counts(order, weight, present, max_bits);
    } else if (construction.limit == LengthLimit::repaired) {
      repair(weight, present, max_bits);
    } else {
      std::uint64_t* leaves = weight + symbols;
      for (std::size_t i = 0; i < present; ++i) leaves[i] = order[i] >> 32;
      PackageMerge::run(leaves, present, max_bits, weight, leaves + symbols);
    }
  }
  for (std::size_t i = 0; i < present; ++i) {
    lengths[order[i] & 0xFFFFFFFF] = static_cast<std::uint8_t>(weight[i]);
  }
}

}  // namespace firn::encode
