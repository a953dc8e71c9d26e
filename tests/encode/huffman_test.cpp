// Huffman codes: optimal lengths, their serialisation, and the streams on every target, with
// damage.
#include "encode/huffman.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "support/random.hpp"

namespace firn::encode {
namespace {

using test::Random;

std::vector<std::uint8_t> lengths_of(const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint8_t> lengths(counts.size(), 99);
  ScratchArray<std::uint64_t> scratch;
  build_code_lengths(counts, lengths.data(), scratch);
  return lengths;
}

// In units of 2^-15.
std::uint64_t kraft_sum(const std::vector<std::uint8_t>& lengths) {
  std::uint64_t sum = 0;
  for (const std::uint8_t length : lengths) {
    if (length != 0) sum += std::uint64_t{1} << (kMaxCodeBits - length);
  }
  return sum;
}

std::uint64_t cost_of(const std::vector<std::uint32_t>& counts,
                      const std::vector<std::uint8_t>& lengths) {
  std::uint64_t cost = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) cost += std::uint64_t{counts[s]} * lengths[s];
  return cost;
}

// Of a Huffman code without a limit: the sum of all merged weights.
std::uint64_t least_cost(const std::vector<std::uint32_t>& counts) {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
  for (const std::uint32_t count : counts) {
    if (count != 0) queue.push(count);
  }
  std::uint64_t cost = 0;
  while (queue.size() > 1) {
    const std::uint64_t a = queue.top();
    queue.pop();
    const std::uint64_t b = queue.top();
    queue.pop();
    cost += a + b;
    queue.push(a + b);
  }
  return cost;
}

std::vector<std::uint8_t> serialised(const std::vector<std::uint8_t>& lengths) {
  std::vector<std::uint8_t> bytes(2 * lengths.size() + 2);
  ByteWriter out(bytes.data());
  write_code_lengths(lengths, out);
  EXPECT_LE(out.size(), bytes.size());
  bytes.resize(out.size());
  return bytes;
}

bool parses(const std::vector<std::uint8_t>& bytes, std::size_t symbols) {
  std::vector<std::uint8_t> lengths(symbols);
  ByteReader in(bytes);
  return read_code_lengths(in, lengths);
}

struct Book {
  std::vector<std::uint8_t> lengths;
  std::vector<EncodeTable> encode;
  std::vector<DecodeTable> decode;  // of one, on the heap

  explicit Book(std::vector<std::uint8_t> code_lengths)
      : lengths(std::move(code_lengths)), encode(lengths.size()), decode(1) {
    build_encode_table(lengths, encode.data());
    build_decode_table(lengths, decode[0]);
  }
};

std::vector<std::uint8_t> encoded(simd::Target target, const Book& book,
                                  const std::vector<std::uint16_t>& symbols) {
  std::vector<std::uint8_t> out(huffman_capacity(symbols.size()));
  std::vector<std::uint8_t> scratch(huffman_capacity(symbols.size()));
  const std::uint8_t* end = huffman_kernels(target).encode(
      symbols.data(), symbols.size(), book.encode.data(), out.data(), scratch.data());
  EXPECT_LE(static_cast<std::size_t>(end - out.data()), out.size());
  out.resize(static_cast<std::size_t>(end - out.data()));
  out.shrink_to_fit();  // so that the sanitizer sees reads past the end
  return out;
}

bool decoded(simd::Target target, const Book& book, const std::vector<std::uint8_t>& bytes,
             std::size_t count, std::vector<std::uint16_t>* symbols) {
  symbols->assign(count + 4, 0xFFFF);
  const bool ok = huffman_kernels(target).decode(bytes, book.decode[0], count, symbols->data());
  symbols->resize(count);
  return ok;
}

void expect_round_trip(const std::vector<std::uint16_t>& symbols, std::size_t alphabet,
                       const std::string& what) {
  std::vector<std::uint32_t> counts(alphabet);
  for (const std::uint16_t symbol : symbols) ++counts[symbol];
  const std::vector<std::uint8_t> lengths = lengths_of(counts);
  for (std::size_t s = 0; s < alphabet; ++s) {
    ASSERT_EQ(lengths[s] != 0, counts[s] != 0) << what;
    ASSERT_LE(lengths[s], kMaxCodeBits) << what;
  }
  std::vector<std::uint8_t> read_back(alphabet, 7);
  const std::vector<std::uint8_t> bytes = serialised(lengths);
  ByteReader in(bytes);
  ASSERT_TRUE(read_code_lengths(in, read_back)) << what;
  EXPECT_EQ(in.remaining(), 0u);
  ASSERT_EQ(read_back, lengths) << what;

  const Book book(lengths);
  const std::vector<std::uint8_t> expected = encoded(simd::Target::reference, book, symbols);
  for (const simd::Target target : simd::available_targets()) {
    SCOPED_TRACE(what + " on " + simd::name_of(target));
    ASSERT_EQ(encoded(target, book, symbols), expected);
    std::vector<std::uint16_t> restored;
    ASSERT_TRUE(decoded(target, book, expected, symbols.size(), &restored));
    ASSERT_EQ(restored, symbols);
  }
}

std::vector<std::uint16_t> skewed_symbols(std::size_t count, std::uint16_t alphabet, int skew,
                                          std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint16_t> symbols(count);
  for (std::uint16_t& symbol : symbols) {
    std::uint64_t value = random.below(alphabet);
    for (int i = 0; i < skew; ++i) value = std::min(value, random.below(alphabet));
    symbol = static_cast<std::uint16_t>(value);
  }
  return symbols;
}

TEST(Huffman, SymbolsReturn) {
  for (const std::size_t count : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 63u, 64u, 65u, 1000u, 40000u}) {
    for (const int skew : {0, 3, 40}) {
      const auto text = std::to_string(count) + " symbols, skew " + std::to_string(skew);
      expect_round_trip(skewed_symbols(count, 300, skew, count), 300, text);
    }
  }
}

TEST(Huffman, OneSymbolTakesOneBitEach) {
  expect_round_trip(std::vector<std::uint16_t>(1000, 5), 17, "one symbol");
  std::vector<std::uint32_t> counts(17);
  counts[5] = 1000;
  EXPECT_EQ(lengths_of(counts)[5], 1);
}

TEST(Huffman, TwoSymbolsTakeOneBitEach) {
  std::vector<std::uint16_t> symbols(999, 3);
  symbols[500] = 16;
  expect_round_trip(symbols, 17, "two symbols");
  EXPECT_EQ(lengths_of({1, 1000000}), (std::vector<std::uint8_t>{1, 1}));
}

TEST(Huffman, EightThousandSymbols) {
  expect_round_trip(skewed_symbols(100000, 8257, 0, 1), 8257, "even");
  expect_round_trip(skewed_symbols(100000, 8257, 9, 2), 8257, "skewed");
}

TEST(Huffman, NoSymbolsGiveNoLengths) {
  EXPECT_EQ(lengths_of({0, 0, 0}), (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST(Huffman, LengthsAreOptimalBelowTheLimit) {
  Random random(8);
  int checked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::uint32_t> counts(2 + random.below(60));
    for (std::uint32_t& count : counts) {
      count = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(12)));
    }
    if (counts.size() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0u)) <
        2) {
      continue;
    }
    const std::vector<std::uint8_t> lengths = lengths_of(counts);
    ASSERT_EQ(kraft_sum(lengths), std::uint64_t{1} << kMaxCodeBits);
    if (*std::max_element(lengths.begin(), lengths.end()) == kMaxCodeBits) continue;
    ASSERT_EQ(cost_of(counts, lengths), least_cost(counts));
    ++checked;
  }
  EXPECT_GT(checked, 300);
}

// Fibonacci counts ask for codes as long as there are symbols.
TEST(Huffman, LongCodesAreCutToTheLimitAndStayComplete) {
  for (const std::size_t symbols : {17u, 25u, 40u}) {
    std::vector<std::uint32_t> counts(symbols, 1);
    for (std::size_t i = 2; i < symbols; ++i) counts[i] = counts[i - 1] + counts[i - 2];
    const std::vector<std::uint8_t> lengths = lengths_of(counts);
    EXPECT_EQ(kraft_sum(lengths), std::uint64_t{1} << kMaxCodeBits);
    EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), kMaxCodeBits);
    // Within a hundredth of what no limit would cost.
    EXPECT_LE(static_cast<double>(cost_of(counts, lengths)),
              1.01 * static_cast<double>(least_cost(counts)));
  }
  // And symbols with such codes return: every symbol often enough to use the long codes.
  std::vector<std::uint16_t> text;
  for (std::uint16_t s = 0; s < 20; ++s) {
    for (std::uint32_t i = 0; i < (1u << s); i += 1 + (1u << s) / 3000) text.push_back(s);
    for (std::uint32_t i = 0; i < (1u << s) / 40 && s > 14; ++i) text.push_back(19);
  }
  Random random(4);
  for (std::size_t i = text.size(); i > 1; --i) std::swap(text[i - 1], text[random.below(i)]);
  expect_round_trip(text, 20, "long codes");
}

TEST(Huffman, MalformedLengthsAreRefused) {
  EXPECT_TRUE(parses(serialised({1, 1}), 2));
  EXPECT_TRUE(parses(serialised({0, 1, 0}), 3));
  EXPECT_FALSE(parses(serialised({1, 1, 1}), 3)) << "too many codes";
  EXPECT_FALSE(parses(serialised({1, 2}), 2)) << "an incomplete code";
  EXPECT_FALSE(parses(serialised({0, 0, 0}), 3)) << "no code";
  EXPECT_FALSE(parses({0x10, 0x00}, 1)) << "a run of absent symbols past the last";
  EXPECT_FALSE(parses({0x00, 0x0F}, 100)) << "a run that ends too early";
  std::vector<std::uint8_t> bytes = serialised(lengths_of(std::vector<std::uint32_t>(1000, 1)));
  while (!bytes.empty()) {
    bytes.pop_back();
    EXPECT_FALSE(parses(bytes, 1000)) << bytes.size();
  }
}

TEST(Huffman, EveryTruncationIsRefused) {
  // Codes that one lookup tells, some that it does not, and many.
  for (const std::uint16_t alphabet : {200, 1800, 8000}) {
    const std::vector<std::uint16_t> symbols = skewed_symbols(2000, alphabet, 5, 3);
    std::vector<std::uint32_t> counts(alphabet, alphabet > 2000);
    for (const std::uint16_t symbol : symbols) ++counts[symbol];
    const Book book(lengths_of(counts));
    EXPECT_EQ(book.decode[0].all_longer, alphabet == 8000);
    const std::vector<std::uint8_t> bytes = encoded(simd::Target::reference, book, symbols);
    for (const simd::Target target : simd::available_targets()) {
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        std::vector<std::uint8_t> cut(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
        std::vector<std::uint16_t> restored;
        ASSERT_FALSE(decoded(target, book, cut, symbols.size(), &restored)) << size;
      }
    }
  }
}

TEST(Huffman, GarbageDecodesToValidSymbolsOrIsRefused) {
  Random random(21);
  for (int trial = 0; trial < 2000; ++trial) {
    // Of all lengths in some trials.
    const bool many = trial % 8 == 0;
    std::vector<std::uint32_t> counts(1 + random.below(many ? 9000 : 500));
    for (std::uint32_t& count : counts) count = static_cast<std::uint32_t>(random.below(50));
    counts[0] += random.below(2) == 0 ? 1 : 100000;
    const Book book(lengths_of(counts));
    std::vector<std::uint8_t> bytes(random.below(600));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    // Small first bytes give stream sizes that fit.
    for (std::size_t i = 0; i < std::min<std::size_t>(3, bytes.size()); ++i) bytes[i] &= 0x7F;
    for (const simd::Target target : simd::available_targets()) {
      std::vector<std::uint16_t> restored;
      const std::size_t count = random.below(1500);
      if (!decoded(target, book, bytes, count, &restored)) continue;
      for (const std::uint16_t symbol : restored) {
        ASSERT_LT(symbol, counts.size());
        ASSERT_NE(book.lengths[symbol], 0);
      }
    }
  }
}

}  // namespace
}  // namespace firn::encode
