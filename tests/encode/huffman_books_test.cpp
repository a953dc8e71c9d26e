// Construction of code lengths, and the offline books that follow from the static family.
#include "encode/huffman_books.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "encode/distributions.hpp"
#include "encode/huffman.hpp"
#include "encode/residual_symbols.hpp"
#include "support/random.hpp"

namespace firn::encode {
namespace {

using test::Random;

std::vector<std::uint8_t> lengths_of(const std::vector<std::uint32_t>& counts, int max_bits,
                                     Construction construction) {
  std::vector<std::uint8_t> lengths(counts.size(), 99);
  ScratchArray<std::uint64_t> scratch;
  build_code_lengths(counts, max_bits, construction, lengths.data(), scratch);
  return lengths;
}

void expect_complete(const std::vector<std::uint32_t>& counts,
                     const std::vector<std::uint8_t>& lengths, int max_bits) {
  std::uint64_t kraft = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    ASSERT_EQ(lengths[s] != 0, counts[s] != 0) << s;
    ASSERT_LE(lengths[s], max_bits) << s;
    if (lengths[s] != 0) kraft += std::uint64_t{1} << (max_bits - lengths[s]);
  }
  ASSERT_EQ(kraft, std::uint64_t{1} << max_bits);
}

// The least cost of any code within the limit, by trying every number of codes of each length
// (longest codes for the smallest counts).
std::uint64_t least_cost(std::vector<std::uint32_t> counts, int max_bits) {
  std::sort(counts.begin(), counts.end(), std::greater<>());
  std::uint64_t best = kNoCode;
  const auto place = [&](auto&& self, std::size_t from, int bits, std::uint64_t room,
                         std::uint64_t cost) -> void {
    if (from == counts.size()) {
      best = std::min(best, cost);
      return;
    }
    if (bits > max_bits) return;
    // `room` codes of this length are free; the next `used` symbols take some of them.
    std::uint64_t spent = cost;
    for (std::uint64_t used = 0; used <= room && from + used <= counts.size(); ++used) {
      if (used > 0) spent += std::uint64_t{counts[from + used - 1]} * static_cast<unsigned>(bits);
      self(self, from + used, bits + 1, 2 * (room - used), spent);
    }
  };
  place(place, 0, 1, 2, 0);
  return best;
}

constexpr Construction kExact{SymbolOrder::sorted, LengthLimit::exact};

TEST(CodeLengths, OfPackageMergeAreTheBestWithinTheLimit) {
  Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::uint32_t> counts(2 + random.below(9));
    for (std::uint32_t& count : counts) {
      count = 1 + static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(20)));
    }
    for (const int max_bits : {4, 5, 7}) {
      const auto lengths = lengths_of(counts, max_bits, kExact);
      expect_complete(counts, lengths, max_bits);
      ASSERT_EQ(cost_in_bits(counts, lengths), least_cost(counts, max_bits)) << trial;
    }
  }
}

TEST(CodeLengths, OfTheLibraryAreCloseToTheBest) {
  Random random(6);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<std::uint32_t> counts(100 + random.below(4000));
    for (std::uint32_t& count : counts) {
      count = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(26)));
    }
    const auto lengths = lengths_of(counts, kMaxCodeBits, {});
    expect_complete(counts, lengths, kMaxCodeBits);
    const auto best =
        static_cast<double>(cost_in_bits(counts, lengths_of(counts, kMaxCodeBits, kExact)));
    ASSERT_LE(static_cast<double>(cost_in_bits(counts, lengths)), 1.002 * best) << trial;
  }
}

TEST(CodeLengths, OfEveryConstructionAreComplete) {
  Random random(4);
  for (const std::size_t symbols : {2u, 3u, 17u, 500u, 5000u}) {
    std::vector<std::uint32_t> counts(symbols);
    for (std::size_t s = 0; s < symbols; ++s) {
      const std::size_t away = s < symbols / 2 ? symbols / 2 - s : s - symbols / 2;
      const double height = 1e6 / (1.0 + static_cast<double>(away * away));
      counts[s] = static_cast<std::uint32_t>(height) + static_cast<std::uint32_t>(random.below(3));
    }
    counts.front() = counts.back() = 1;
    std::uint64_t exact = 0;
    for (const auto order : {SymbolOrder::sorted, SymbolOrder::outward}) {
      for (const auto limit : {LengthLimit::raised, LengthLimit::exact, LengthLimit::repaired}) {
        for (const int max_bits : {13, 15, 24}) {
          const auto lengths = lengths_of(counts, max_bits, {order, limit});
          expect_complete(counts, lengths, max_bits);
          const std::uint64_t cost = cost_in_bits(counts, lengths);
          if (order == SymbolOrder::sorted && limit == LengthLimit::exact && max_bits == 24) {
            exact = cost;
          }
          if (max_bits == 24) {
            EXPECT_GE(cost, exact);
          }
        }
      }
    }
  }
}

TEST(CodeLengths, SizeOfTheStoredLengthsIsKnownBefore) {
  Random random(5);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::uint8_t> lengths(1 + random.below(2000));
    for (std::uint8_t& length : lengths) {
      length = random.below(4) == 0 ? static_cast<std::uint8_t>(random.below(16)) : 0;
    }
    std::vector<std::uint8_t> bytes(2 * lengths.size() + 2);
    ByteWriter out(bytes.data());
    write_code_lengths(lengths, out);
    ASSERT_EQ(code_lengths_bytes(lengths), out.size());
  }
}

TEST(OfflineBooks, CodeEverySymbolThatResidualsCanHave) {
  OfflineBooks books;
  for (const bool wide : {false, true}) {
    const auto lengths = books.lengths({60, 2}, 5, wide);
    ASSERT_EQ(lengths.size(), alphabet_size(5));
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      EXPECT_EQ(lengths[s] != 0, wide || s < 64 + 33) << s;
    }
  }
}

// A histogram of a two-sided geometric distribution with this mean magnitude.
std::vector<std::uint32_t> laplace(int range_log2, double mean, double total) {
  std::vector<std::uint32_t> histogram(alphabet_size(range_log2));
  const double ratio = mean / (1 + mean);
  double left = total;
  double probability = (1 - ratio) / (1 + ratio);
  const std::int64_t range = std::int64_t{1} << range_log2;
  for (std::int64_t m = 0; m < range; ++m) {
    const auto count = static_cast<std::uint32_t>(total * probability);
    histogram[range + m] += count;
    if (m > 0) histogram[range - m] += count;
    left -= (m > 0 ? 2 : 1) * static_cast<double>(count);
    probability *= ratio;
  }
  histogram[2 * range] = static_cast<std::uint32_t>(std::max(0.0, left));
  return histogram;
}

TEST(OfflineBooks, CostLittleMoreThanABookOfOnesOwn) {
  OfflineBooks books;
  ScratchArray<std::uint64_t> scratch;
  for (const double mean : {0.3, 1.0, 3.0, 10.0, 50.0, 300.0}) {
    int range_log2 = kMinRangeLog2;
    while ((1 << range_log2) < 6 * mean && range_log2 < kMaxRangeLog2) ++range_log2;
    const auto histogram = laplace(range_log2, mean, 1e6);
    std::vector<std::uint8_t> own(histogram.size());
    build_code_lengths(histogram, own.data(), scratch);
    const OfflineChoice choice = choose_offline_book(histogram, range_log2);
    const std::uint64_t offline =
        cost_in_bits(histogram, books.lengths(choice.book, range_log2, false));
    const std::uint64_t best = cost_in_bits(histogram, own);
    EXPECT_LE(static_cast<double>(offline), 1.02 * static_cast<double>(best)) << mean;
  }
}

TEST(OfflineBooks, AreRememberedByAllThatNamesThem) {
  OfflineBooks books, fresh;
  const auto copy = [](std::span<const std::uint8_t> s) {
    return std::vector<std::uint8_t>(s.begin(), s.end());
  };
  const auto first = copy(books.lengths({50, 1}, 6, false));
  for (const auto& [book, range, wide] : {std::tuple{OfflineBook{51, 1}, 6, false},
                                          {{50, 2}, 6, false},
                                          {{50, 1}, 7, false},
                                          {{50, 1}, 6, true}}) {
    const auto other = copy(books.lengths(book, range, wide));
    EXPECT_NE(other, first);
    EXPECT_EQ(other, copy(fresh.lengths(book, range, wide)));
  }
  EXPECT_EQ(copy(books.lengths({50, 1}, 6, false)), first);
}

}  // namespace
}  // namespace firn::encode
