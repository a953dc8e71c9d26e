// Symbols of residuals counted, and what books cost for them; for the benchmarks of books.
#pragma once

#include <cstdint>
#include <vector>

#include "encode/huffman.hpp"
#include "encode/huffman_books.hpp"
#include "encode/residual_symbols.hpp"

namespace bench {

struct Histogram {
  int range_log2 = 0;
  std::vector<std::uint32_t> counts;
  std::uint64_t total = 0;
  std::uint64_t extra_bits = 0;  // raw bits of the magnitude classes

  explicit Histogram(int range) : range_log2(range), counts(firn::encode::alphabet_size(range)) {}

  void add(const std::vector<std::int64_t>& residuals) {
    const std::int64_t range = std::int64_t{1} << range_log2;
    for (const std::int64_t r : residuals) {
      if (r >= -range && r < range) {
        ++counts[static_cast<std::size_t>(r + range)];
        continue;
      }
      const auto magnitude = static_cast<std::uint64_t>((r < 0 ? ~r : r) - range);
      const auto width = static_cast<std::size_t>(std::bit_width(magnitude));
      ++counts[static_cast<std::size_t>(2 * range) + width];
      extra_bits += width == 0 ? 1 : width;
    }
    total += residuals.size();
  }
  void add(const Histogram& other) {
    for (std::size_t s = 0; s < counts.size(); ++s) counts[s] += other.counts[s];
    total += other.total;
    extra_bits += other.extra_bits;
  }
};

// As `lorenzo` chooses it: at most 1 residual in 256 outside.
inline int range_for(const std::vector<std::int64_t>& residuals) {
  for (int k = firn::encode::kMinRangeLog2; k < firn::encode::kMaxRangeLog2; ++k) {
    std::size_t outside = 0;
    for (const std::int64_t r : residuals) outside += (r < 0 ? ~r : r) >> k != 0;
    if (outside * 256 <= residuals.size()) return k;
  }
  return firn::encode::kMaxRangeLog2;
}

inline std::vector<std::uint8_t> lengths_for(const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint8_t> lengths(counts.size());
  firn::ScratchArray<std::uint64_t> scratch;
  firn::encode::build_code_lengths(counts, lengths.data(), scratch);
  return lengths;
}

// The same for a book that others than these counts will use: every symbol gets a code.
inline std::vector<std::uint8_t> lengths_for_all(std::vector<std::uint32_t> counts) {
  for (std::uint32_t& count : counts) count = 16 * count + 1;
  return lengths_for(counts);
}

inline double bits_with(const Histogram& histogram, const std::vector<std::uint8_t>& lengths) {
  return static_cast<double>(firn::encode::cost_in_bits(histogram.counts, lengths) +
                             histogram.extra_bits);
}

inline double bits_offline(const Histogram& histogram) {
  firn::encode::OfflineBooks books;
  const auto choice = firn::encode::choose_offline_book(histogram.counts, histogram.range_log2);
  return static_cast<double>(
      firn::encode::cost_in_bits(histogram.counts,
                                 books.lengths(choice.book, histogram.range_log2, true)) +
      histogram.extra_bits + 16);
}

}  // namespace bench
