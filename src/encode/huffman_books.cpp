#include "encode/huffman_books.hpp"

#include <algorithm>
#include <bit>

#include "encode/distributions.hpp"
#include "encode/huffman.hpp"
#include "encode/residual_symbols.hpp"
#include "encode/residual_tokens.hpp"

namespace firn::encode {
namespace {

// Weights are probabilities in units of 2^-30, at least what the longest code stands for.
constexpr int kWeightBits = 30;
constexpr std::uint32_t kLeastWeight = 1u << (kWeightBits - kMaxCodeBits);
constexpr std::uint32_t kMostWeight = 1u << kWeightBits;
constexpr int kModelledClasses = 24;  // beyond them all residuals are escapes at any shift
constexpr int kNarrowClasses = 33;

// A token's frequency, shared by its residuals, times 2^count_log2 of them.
std::uint32_t weight_of(const Frequencies& frequencies, int token, int shift, int count_log2) {
  if (token == kEscapeToken) return kLeastWeight;
  const int spread = shift + extra_bits(token < 0 ? -token : token);
  const std::uint64_t frequency = frequencies[token_index(token)];
  const std::uint64_t weight =
      (frequency << (kWeightBits - kProbabilityBits + count_log2)) >> spread;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(weight, kLeastWeight, kMostWeight));
}

// First residual of a magnitude class, on the positive side.
std::int64_t first_of_class(int width, int range_log2) {
  return (std::int64_t{1} << range_log2) + (width == 0 ? 0 : std::int64_t{1} << (width - 1));
}

}  // namespace

void offline_weights(OfflineBook book, int range_log2, bool wide, std::uint32_t* weights) {
  const Frequencies& frequencies = family().frequencies[book.member];
  const std::int64_t range = std::int64_t{1} << range_log2;
  for (std::int64_t r = -range; r < range; ++r) {
    weights[r + range] = weight_of(frequencies, token_of(r, book.shift), book.shift, 0);
  }
  std::uint32_t* classes = weights + 2 * range;
  for (int width = 0; width < static_cast<int>(kMagnitudeClasses); ++width) {
    if (width < kModelledClasses) {
      const int token = token_of(first_of_class(width, range_log2), book.shift);
      classes[width] = weight_of(frequencies, token, book.shift, width == 0 ? 1 : width);
    } else {
      classes[width] = width < kNarrowClasses || wide ? kLeastWeight : 0;
    }
  }
}

std::span<const std::uint8_t> OfflineBooks::lengths(OfflineBook book, int range_log2, bool wide) {
  const std::size_t alphabet = alphabet_size(range_log2);
  if (book != book_ || range_log2 != range_log2_ || wide != wide_) {
    range_log2_ = -1;
    std::uint32_t* weights = weights_.reserve(alphabet);
    offline_weights(book, range_log2, wide, weights);
    build_code_lengths({weights, alphabet}, lengths_.reserve(alphabet), build_);
    book_ = book;
    range_log2_ = range_log2;
    wide_ = wide;
  }
  return {lengths_.data(), alphabet};
}

OfflineChoice choose_offline_book(std::span<const std::uint32_t> histogram, int range_log2) {
  const std::int64_t range = std::int64_t{1} << range_log2;
  const std::uint32_t* own = histogram.data() + range;  // by residual
  const std::uint32_t* classes = histogram.data() + 2 * range;
  std::uint64_t total = 0;
  for (const std::uint32_t count : histogram) total += count;
  // The shift that brings the median magnitude below 4, and its neighbours.
  std::int64_t median = 0;
  for (std::uint64_t seen = own[0]; 2 * seen < total && median + 1 < range;) {
    ++median;
    seen += std::uint64_t{own[median]} + own[-median];
  }
  const int likely =
      std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(median))) - 2);
  OfflineChoice best{{}, kNoCode};
  for (int shift = std::max(0, likely - 1); shift <= std::min(likely + 1, kMaxBookShift); ++shift) {
    std::array<std::uint32_t, kTokenCount> tokens{};
    std::int64_t raw_bits = 0;
    // `count` residuals, of which 2^count_log2 share a symbol.
    const auto add = [&](std::int64_t residual, std::uint32_t count, int count_log2) {
      if (count == 0) return;
      const int token = token_of(residual, shift);
      tokens[token_index(token)] += count;
      if (token == kEscapeToken) return;
      raw_bits +=
          std::int64_t{count} * (shift + extra_bits(token < 0 ? -token : token) - count_log2);
    };
    for (std::int64_t r = -range; r < range; ++r) add(r, own[r], 0);
    for (int width = 0; width < kModelledClasses; ++width) {
      add(first_of_class(width, range_log2), classes[width], width == 0 ? 1 : width);
    }
    const MemberChoice member = choose_member(tokens.data(), kMaxToken);
    const std::uint64_t bits =
        member.cost / kCostPerBit + static_cast<std::uint64_t>(std::max<std::int64_t>(raw_bits, 0));
    if (bits < best.bits) {
      best = {{static_cast<std::uint8_t>(member.member), static_cast<std::uint8_t>(shift)}, bits};
    }
  }
  return best;
}

std::uint64_t cost_in_bits(std::span<const std::uint32_t> histogram,
                           std::span<const std::uint8_t> lengths) {
  std::uint64_t bits = 0;
  bool coded = true;
  for (std::size_t s = 0; s < histogram.size(); ++s) {
    bits += std::uint64_t{histogram[s]} * lengths[s];
    coded &= histogram[s] == 0 || lengths[s] != 0;
  }
  return coded ? bits : kNoCode;
}

}  // namespace firn::encode
