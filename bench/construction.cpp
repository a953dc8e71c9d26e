// Construction of Huffman books from 128 to 65,536 symbols (CEAZ's figure 4, cuSZ's table 3):
// time and loss of symbols sorted or taken outward from the middle (CEAZ's algorithm 1), and of
// lengths within a limit: by raising small counts, exactly (package-merge), or repaired.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "encode/code_lengths.hpp"
#include "usage.hpp"

namespace {

using firn::encode::Construction;
using firn::encode::LengthLimit;
using firn::encode::SymbolOrder;

// Residuals as Lorenzo leaves them: two-sided, peaked, tails of a few counts, nothing quite even.
std::vector<std::uint32_t> residual_counts(std::size_t symbols, double values) {
  std::vector<std::uint32_t> counts(symbols);
  const double scale = static_cast<double>(symbols) / 14;
  std::uint64_t random = 88172645463325252u;
  for (std::size_t s = 0; s < symbols; ++s) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const double noise = static_cast<double>(random >> 11) / 9007199254740992.0 - 0.5;
    const double away = std::fabs(static_cast<double>(s) - static_cast<double>(symbols / 2));
    const double expected = values / (2 * scale) * std::exp(-away / scale);
    const double count = expected + 2 * noise * std::sqrt(3 * expected);
    counts[s] = static_cast<std::uint32_t>(std::max(0.0, count + 0.5));
  }
  return counts;
}

struct Outcome {
  double microseconds;
  double bits;  // a symbol
};

Outcome run(const std::vector<std::uint32_t>& counts, int max_bits, Construction construction) {
  using Clock = std::chrono::steady_clock;
  firn::ScratchArray<std::uint64_t> scratch;
  std::vector<std::uint8_t> lengths(counts.size());
  Outcome outcome{1e18, 0};
  for (int repeat = 0; repeat < 40; ++repeat) {
    const auto begin = Clock::now();
    build_code_lengths(counts, max_bits, construction, lengths.data(), scratch);
    const double time = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    outcome.microseconds = std::min(outcome.microseconds, time);
  }
  double total = 0, bits = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    total += counts[s];
    bits += static_cast<double>(counts[s]) * lengths[s];
  }
  outcome.bits = bits / total;
  return outcome;
}

}  // namespace

int main(int argument_count, char** arguments) {
  bench::refuse_arguments(argument_count, arguments, "firn_bench_construction");
  std::printf(
      "64 Mi residuals; limit: 15 bits, or 2 more than the symbols need. Loss against Huffman "
      "without a limit.\n");
  std::printf("%8s %6s %8s | %-20s | %-20s | %-20s | %-20s | %-20s\n", "symbols", "limit", "bits",
              "sorted, raised", "sorted, exact", "sorted, repaired", "outward, raised",
              "outward, repaired");
  constexpr Construction kConstructions[] = {
      {SymbolOrder::sorted, LengthLimit::raised},    {SymbolOrder::sorted, LengthLimit::exact},
      {SymbolOrder::sorted, LengthLimit::repaired},  {SymbolOrder::outward, LengthLimit::raised},
      {SymbolOrder::outward, LengthLimit::repaired},
  };
  for (std::size_t symbols = 128; symbols <= 65536; symbols *= 2) {
    const auto counts = residual_counts(symbols, 64.0 * 1048576);
    int needed = 0;
    while ((std::size_t{1} << needed) < symbols) ++needed;
    const int limit = std::max(15, needed + 2);
    const Outcome ideal = run(counts, firn::encode::kLongestCodeBits, {});
    std::printf("%8zu %6d %8.4f", symbols, limit, ideal.bits);
    for (const Construction& construction : kConstructions) {
      const Outcome outcome = run(counts, limit, construction);
      std::printf(" | %8.1f us %7.4f%%", outcome.microseconds,
                  100 * (outcome.bits / ideal.bits - 1));
    }
    std::printf("\n");
  }
}
