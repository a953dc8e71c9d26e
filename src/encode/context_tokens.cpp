#include "encode/context_tokens.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/spread.hpp"
#include "encode/residual_tokens.hpp"

namespace firn::encode {
namespace {

// Into several histograms in turn, from `size` to `size`: equal neighbours do not wait for each
// other.
template <std::size_t kTables>
void count_cells(const Cell* cells, std::size_t count, std::uint32_t* histograms,
                 std::size_t size) {
  std::size_t i = 0;
  for (; i + kTables <= count; i += kTables) {
    for (std::size_t k = 0; k < kTables; ++k) ++histograms[k * size + cells[i + k]];
  }
  for (; i < count; ++i) ++histograms[cells[i]];
}

// Histograms of a sample: by context, magnitudes by width, twice, and residuals modulo 4.
template <class Q>
constexpr int kWidths = 8 * sizeof(Q) + 1;
constexpr std::size_t kSampleBins = std::size_t{2 * kWidths<std::int64_t> + 4} * kMaxContexts;

// The bins of a group's residuals in a histogram of widths by context. Plain enough for compilers
// to find vectors in it.
template <class Q>
void width_bins(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                std::uint16_t* bins) {
  if constexpr (sizeof(Q) == 4) {
    std::int32_t widths[kRansGroup];
    for (std::size_t i = 0; i < count; ++i) {
      // The exponent of a float tells; without the bits that could round it up.
      const std::uint32_t size = magnitude(residuals[i]);
      const auto first = static_cast<float>(static_cast<std::int32_t>(size & ~(size >> 1)));
      const std::int32_t exponent = std::bit_cast<std::int32_t>(first) >> 23 & 0xFF;
      widths[i] = std::max(exponent, 126) - 126;
    }
    for (std::size_t i = 0; i < count; ++i) {
      bins[i] = static_cast<std::uint16_t>(contexts[i] * kWidths<Q> + widths[i]);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      bins[i] = static_cast<std::uint16_t>(
          contexts[i] * kWidths<Q> + static_cast<int>(std::bit_width(magnitude(residuals[i]))));
    }
  }
}

// visit(begin, length) of about so many groups of residuals.
template <class Visit>
void for_each_sampled(std::size_t count, std::size_t groups, Visit visit) {
  const std::size_t step = std::max<std::size_t>(1, count / (groups * kRansGroup));
  for_one_in(step, (count + kRansGroup - 1) / kRansGroup, [&](std::size_t group) {
    const std::size_t begin = group * kRansGroup;
    visit(begin, std::min<std::size_t>(kRansGroup, count - begin));
  });
}

// The shift of each of the contexts in the set, from the median magnitude of about so many groups:
// it brings that below 4. Returns the set of those of which this is a guess, from a few residuals
// or none.
template <class Q>
std::uint64_t sample_shifts(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                            std::size_t groups, std::uint64_t set, std::uint32_t* histogram,
                            ContextShifts& shifts) {
  constexpr auto kBins = static_cast<std::size_t>(kWidths<Q>);
  const auto number = static_cast<std::size_t>(shifts.context_count);
  // Neighbours are counted apart, so that equal ones do not wait for each other.
  std::uint32_t* const others = histogram + number * kBins;
  std::uint32_t* const modulo = others + number * kBins;
  std::memset(histogram, 0, sizeof *histogram * number * (2 * kBins + 4));
  std::uint16_t bins[kRansGroup];
  for_each_sampled(count, groups, [&](std::size_t group, std::size_t length) {
    width_bins(residuals + group, contexts + group, length, bins);
    std::size_t i = 0;
    for (; i + 2 <= length; i += 2) {
      ++histogram[bins[i]];
      ++others[bins[i + 1]];
    }
    if (i < length) ++histogram[bins[i]];
  });
  constexpr std::uint32_t kEnough = 32, kMany = 256;
  std::array<std::uint32_t, kMaxContexts> totals{};
  std::array<int, kMaxContexts> wanted{};
  std::uint64_t guessed = 0, slight = 0;
  for (std::size_t c = 0; c < number; ++c) {
    if ((set >> c & 1) == 0) continue;
    std::uint32_t* widths = histogram + c * kBins;
    std::uint32_t total = 0;
    for (std::size_t width = 0; width < kBins; ++width) {
      widths[width] += others[c * kBins + width];
      total += widths[width];
    }
    totals[c] = total;
    if (total < kEnough) guessed |= std::uint64_t{1} << c;
    if (total == 0) continue;
    int width = 0;
    for (std::uint32_t seen = widths[0]; 2 * seen < total; seen += widths[width]) ++width;
    wanted[c] = std::max(0, width - 2);
    if (wanted[c] != 0 && wanted[c] <= 2 && total >= kMany) slight |= std::uint64_t{1} << c;
  }
  // Low bits that are not even (integers in disguise) are worth a token.
  if (slight != 0) {
    for_each_sampled(count, groups, [&](std::size_t group, std::size_t length) {
      for (std::size_t i = group; i < group + length; ++i) {
        ++modulo[contexts[i] * 4 + static_cast<std::size_t>(residuals[i] & 3)];
      }
    });
    for (std::size_t c = 0; c < number; ++c) {
      const std::uint32_t most = *std::max_element(modulo + 4 * c, modulo + 4 * c + 4);
      if ((slight >> c & 1) != 0 && 5 * most > 2 * totals[c]) wanted[c] = 0;
    }
  }
  // A context that the sample missed takes the shift of the one below it.
  int shift = 0;
  shifts.max = 0;
  for (std::size_t c = 0; c < number; ++c) {
    if ((set >> c & 1) == 0) continue;
    if (totals[c] > 0) shift = wanted[c];
    shifts.shift[c] = static_cast<std::uint8_t>(shift);
    shifts.max = std::max(shifts.max, shift);
  }
  return guessed;
}

// Returns the set of contexts whose shifts are guesses.
template <class Q>
std::uint64_t choose_shifts(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                            bool roughly, std::uint32_t* histogram, ContextShifts& shifts) {
  constexpr std::size_t kFewGroups = 64, kManyGroups = 256;
  if (shifts.context_count == 1 && count <= kManyGroups * kRansGroup) {
    // Most often the median of the one context is below 4 as it is.
    Unsigned<Q> small = 0;  // as wide as a residual, for a loop without conversions
    constexpr std::size_t kAtOnce = 64;
    for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
      const std::size_t end = std::min(count, begin + kAtOnce);
      for (std::size_t i = begin; i < end; ++i) {
        small += static_cast<Unsigned<Q>>(residuals[i]) + 3 < 7;
      }
      if (2 * small >= count) return 0;
    }
  }
  // At most bounds no context has a shift, and few samples tell.
  const std::uint64_t guessed =
      sample_shifts(residuals, contexts, count, kFewGroups, ~std::uint64_t{0}, histogram, shifts);
  if (count <= kFewGroups * kRansGroup) return 0;
  if (roughly || shifts.max == 0) return guessed;
  std::uint64_t shifted = 0;
  for (int c = 0; c < shifts.context_count; ++c) {
    if (shifts.shift[c] > 0) shifted |= std::uint64_t{1} << c;
  }
  const std::uint64_t still =
      sample_shifts(residuals, contexts, count, kManyGroups, shifted, histogram, shifts);
  return count <= kManyGroups * kRansGroup ? 0 : (guessed & ~shifted) | still;
}

// How many bits more a shift needs to bring the median of these tokens below 4, and about what that
// saves. 0 when that is not worth telling, and for as many as may have a table, which needs none.
int missing_shift(const std::uint32_t* tokens, std::uint64_t* saved_bits) {
  std::uint64_t total = 0;
  for (int index = 0; index < kTokenCount; ++index) total += tokens[index];
  std::uint64_t seen = tokens[token_index(0)];
  int token = 0;
  while (2 * seen < total && ++token <= kMaxToken) {
    seen += std::uint64_t{tokens[token_index(token)]} + tokens[token_index(-token)];
  }
  const int bits = static_cast<int>(std::bit_width(first_magnitude(token))) - 2;
  constexpr std::uint64_t kFewTokens = 200;
  if (bits <= 0 || total > kFewTokens || total * static_cast<std::uint64_t>(bits) < 8) return 0;
  *saved_bits += total * static_cast<std::uint64_t>(bits);
  return bits;
}

// Residuals of the contexts in the set are shifted and counted again where their tokens show that
// the shift was a bad guess, if that saves enough for another look at all contexts. Only of the
// last contexts, those where most goes on: few groups have any of them, which a comparison tells.
template <class Q>
void correct_shifts(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                    std::uint64_t set, ContextShifts& shifts, Cell* cells, std::uint32_t* counts) {
  constexpr std::size_t kValuesPerBit = 256, kValuesPerLook = 4;
  std::size_t looked_at = 0;
  int first_looked_at = shifts.context_count;
  while (set != 0 && first_looked_at > 0) {
    const std::uint32_t* tokens = counts + (first_looked_at - 1) * kTokenCount;
    looked_at = std::accumulate(tokens, tokens + kTokenCount, looked_at);
    if (looked_at * kValuesPerLook > count) break;
    --first_looked_at;
  }
  if (first_looked_at == shifts.context_count) return;
  set &= ~std::uint64_t{0} >> (kMaxContexts - shifts.context_count);
  set &= ~std::uint64_t{0} << first_looked_at;
  while (set != 0) {
    std::array<int, kMaxContexts> more{};
    std::uint64_t wrong = 0, saved_bits = 0;
    for (std::uint64_t rest = set; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::size_t>(std::countr_zero(rest));
      more[c] = missing_shift(counts + c * kTokenCount, &saved_bits);
      if (more[c] != 0) wrong |= std::uint64_t{1} << c;
    }
    if (saved_bits * kValuesPerBit < count) return;
    for (std::uint64_t rest = wrong; rest != 0; rest &= rest - 1) {
      const auto c = static_cast<std::size_t>(std::countr_zero(rest));
      shifts.shift[c] = static_cast<std::uint8_t>(shifts.shift[c] + more[c]);
      shifts.max = std::max<int>(shifts.max, shifts.shift[c]);
      std::fill_n(counts + c * kTokenCount, kTokenCount, 0);
    }
    const auto first = static_cast<std::uint8_t>(std::countr_zero(wrong));
    for (std::size_t group = 0; group < count; group += kRansGroup) {
      const std::size_t end = std::min(count, group + kRansGroup);
      std::uint8_t largest = 0;
      for (std::size_t i = group; i < end; ++i) largest = std::max(largest, contexts[i]);
      if (largest < first) continue;
      for (std::size_t i = group; i < end; ++i) {
        if ((wrong >> contexts[i] & 1) == 0) continue;
        const int token = token_of(residuals[i], shifts.shift[contexts[i]]);
        cells[i] = static_cast<Cell>(contexts[i] * kTokenCount + token_index(token));
        ++counts[cells[i]];
      }
    }
    set = wrong;
  }
}

}  // namespace

template <class Q>
const std::uint32_t* count_tokens(const Q* residuals, const std::uint8_t* contexts,
                                  std::size_t count, std::size_t one_in, simd::Target target,
                                  ContextShifts& shifts, Cell* cells,
                                  ScratchArray<std::uint32_t>& memory) {
  std::uint8_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, contexts[i]);
  shifts.context_count = largest + 1;
  const std::size_t size = static_cast<std::size_t>(shifts.context_count) * kTokenCount;
  // More of them only where that is no more work than counting.
  const std::size_t tables = 2 * size <= count ? 4 : 2;
  const auto count_into = tables == 4 ? count_cells<4> : count_cells<2>;
  std::uint32_t* counts = memory.reserve(std::max(kSampleBins, tables * size));
  const std::uint64_t guessed =
      choose_shifts(residuals, contexts, count, one_in != 0, counts, shifts);
  const auto tokenize = context_rans_kernels<Q>(target).tokenize;
  std::memset(counts, 0, tables * size * sizeof *counts);
  constexpr std::size_t kMany = 65536, kBlock = 64;
  const bool all = one_in <= 1 || count < kMany;
  const std::size_t block = all ? count : kBlock, blocks = all ? 1 : count / (one_in * kBlock);
  for (std::size_t i = 0; i < blocks; ++i) {
    // Not always the same of its neighbours.
    const std::size_t begin = all ? 0 : (i * one_in + spread(i, one_in)) * block;
    tokenize(residuals + begin, contexts + begin, shifts, block, cells + begin);
    count_into(cells + begin, block, counts, size);
  }
  for (std::size_t table = 1; table < tables; ++table) {
    for (std::size_t k = 0; k < size; ++k) counts[k] += counts[table * size + k];
  }
  if (one_in == 0) correct_shifts(residuals, contexts, count, guessed, shifts, cells, counts);
  return counts;
}

#define FIRN_INSTANTIATE(Q)                                                                    \
  template const std::uint32_t* count_tokens(const Q*, const std::uint8_t*, std::size_t,       \
                                             std::size_t, simd::Target, ContextShifts&, Cell*, \
                                             ScratchArray<std::uint32_t>&);
FIRN_INSTANTIATE(std::int32_t)
FIRN_INSTANTIATE(std::int64_t)
#undef FIRN_INSTANTIATE

}  // namespace firn::encode
