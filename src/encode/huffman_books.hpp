// Huffman books over the residual symbols of `lorenzo`: those that follow from the static family
// of distributions and need no storage, and what any book costs for a histogram. Part of the
// format: docs/format.md, "Offline books".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/scratch.hpp"

namespace firn::encode {

// A member of the family stretched by 2^shift.
struct OfflineBook {
  std::uint8_t member = 0;
  std::uint8_t shift = 0;
  bool operator==(const OfflineBook&) const = default;
};
inline constexpr int kMaxBookShift = 12;

// Code lengths of offline books. Keeps the last one made: chunks of a field mostly agree.
class OfflineBooks {
 public:
  // For the alphabet of `range_log2`; magnitude classes that only 64-bit residuals can have get a
  // code when `wide`. Every other symbol has one.
  std::span<const std::uint8_t> lengths(OfflineBook book, int range_log2, bool wide);

 private:
  OfflineBook book_;
  int range_log2_ = -1;
  bool wide_ = false;
  ScratchArray<std::uint32_t> weights_;
  ScratchArray<std::uint8_t> lengths_;
  ScratchArray<std::uint64_t> build_;
};

// The weights that these lengths follow from.
void offline_weights(OfflineBook book, int range_log2, bool wide, std::uint32_t* weights);

// The offline book that suits a histogram of symbols best, by the family's own probabilities, and
// about how many bits its codes take.
struct OfflineChoice {
  OfflineBook book;
  std::uint64_t bits;
};
OfflineChoice choose_offline_book(std::span<const std::uint32_t> histogram, int range_log2);

// Bits of all symbols with these lengths. A symbol without a code makes it kNoCode.
inline constexpr std::uint64_t kNoCode = ~std::uint64_t{0};
std::uint64_t cost_in_bits(std::span<const std::uint32_t> histogram,
                           std::span<const std::uint8_t> lengths);

}  // namespace firn::encode
