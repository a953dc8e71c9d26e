// CEAZ's offline codewords (its 3.2.2), beside the static family. Fields are brought to one bit
// rate by eb' = 2^(B - B_target) eb, their symbol frequencies averaged, and one book made of the
// average. Prints what it costs for each field, made with and without that field, next to the best
// member of the family and a book of the field's own that is free; --out writes the book's code
// lengths, a line "residual length" each.
//
//     firn_bench_average_book [FOLDER] [--bits 3.05] [--out BOOK.txt]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fields.hpp"
#include "symbol_histogram.hpp"

namespace {

constexpr const char* kUsage =
    "firn_bench_average_book [FOLDER, data when not given] [--bits B] [--out BOOK.txt]";
constexpr int kRangeLog2 = 9;  // the paper's 1,024 symbols
constexpr double kFirstBound = 1e-4;
constexpr std::uint64_t kChunkValues = std::uint64_t{1} << 18;

std::vector<std::int64_t> residuals_at(const bench::Field& field, double rel) {
  std::vector<std::int64_t> all;
  bench::for_each_chunk(field, rel, kChunkValues, [&](const bench::Residuals& chunk) {
    all.insert(all.end(), chunk.values.begin(), chunk.values.end());
  });
  return all;
}

bench::Histogram histogram_of(const std::vector<std::int64_t>& residuals, int range_log2) {
  bench::Histogram histogram(range_log2);
  histogram.add(residuals);
  return histogram;
}

double own_bits(const bench::Histogram& histogram) {
  return bench::bits_with(histogram, bench::lengths_for(histogram.counts)) /
         static_cast<double>(histogram.total);
}

// Frequencies of each field count alike, whatever its size.
std::vector<std::uint32_t> average(const std::vector<bench::Histogram>& histograms,
                                   std::size_t without) {
  std::vector<double> sum(histograms[0].counts.size());
  for (std::size_t f = 0; f < histograms.size(); ++f) {
    if (f == without || histograms[f].total == 0) continue;
    for (std::size_t s = 0; s < sum.size(); ++s) {
      sum[s] += histograms[f].counts[s] / static_cast<double>(histograms[f].total);
    }
  }
  std::vector<std::uint32_t> counts(sum.size());
  for (std::size_t s = 0; s < sum.size(); ++s) {
    counts[s] = static_cast<std::uint32_t>(
        sum[s] / static_cast<double>(histograms.size()) * 16777216.0 + 0.5);
  }
  return counts;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::string folder = "data", out;
  double target = 3.05;  // a ratio of 10.5 for f32
  for (int i = 1; i < argument_count; ++i) {
    const bool has_value = i + 1 < argument_count;
    if (std::strcmp(arguments[i], "--bits") == 0 && has_value) {
      target = std::atof(arguments[++i]);
    } else if (std::strcmp(arguments[i], "--out") == 0 && has_value) {
      out = arguments[++i];
    } else {
      folder = bench::folder_argument(arguments[i], kUsage);
    }
  }
  if (!(target > 0)) bench::exit_with_usage(kUsage, "--bits takes a number above 0");
  const auto fields = bench::load_folder(folder, kUsage);
  std::vector<bench::Histogram> histograms;
  std::vector<double> family_bits;
  std::vector<std::string> notes;
  for (const bench::Field& field : fields) {
    // The rule assumes that halving the bound adds a bit, which fails far from the target; two
    // more turns of it make up for that.
    double bound = kFirstBound;
    double bits = own_bits(histogram_of(residuals_at(field, bound), kRangeLog2));
    const double first_bits = bits, first_bound = std::exp2(bits - target) * bound;
    double once = 0;
    for (int turn = 0; turn < 3; ++turn) {
      bound = std::min(0.25, std::exp2(bits - target) * bound);
      bits = own_bits(histogram_of(residuals_at(field, bound), kRangeLog2));
      if (turn == 0) once = bits;
    }
    const auto residuals = residuals_at(field, bound);
    histograms.push_back(histogram_of(residuals, kRangeLog2));
    // The family's books are made for the alphabet that `lorenzo` would choose.
    family_bits.push_back(
        bench::bits_offline(histogram_of(residuals, bench::range_for(residuals))));
    char note[160];
    std::snprintf(note, sizeof note, "%6.2f %10.2e %6.2f %10.2e", first_bits, first_bound, once,
                  bound);
    notes.emplace_back(note);
  }
  std::printf("Books for %zu fields brought to %.2f bits a value from rel %.0e\n", fields.size(),
              target, kFirstBound);
  std::printf("%-24s %6s %10s %6s %10s | %9s %9s %9s %9s\n", "", "B", "eb'", "gives", "eb used",
              "own book", "average", "without", "family");
  std::vector<double> with, without, family;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const bench::Histogram& histogram = histograms[f];
    const auto values = static_cast<double>(histogram.total);
    const double own = own_bits(histogram);
    const auto cost = [&](std::size_t left_out) {
      return bench::bits_with(histogram, bench::lengths_for_all(average(histograms, left_out))) /
             values;
    };
    with.push_back(cost(fields.size()) / own);
    without.push_back(cost(f) / own);
    family.push_back(family_bits[f] / values / own);
    std::printf("%-24s %s | %9.3f %8.1f%% %8.1f%% %8.1f%%\n", fields[f].name.c_str(),
                notes[f].c_str(), own, 100 * (with.back() - 1), 100 * (without.back() - 1),
                100 * (family.back() - 1));
  }
  std::printf("%-24s %35s | %9s %8.1f%% %8.1f%% %8.1f%%\n", "geometric mean", "", "",
              100 * (bench::geometric_mean(with) - 1), 100 * (bench::geometric_mean(without) - 1),
              100 * (bench::geometric_mean(family) - 1));
  if (!out.empty()) {
    std::FILE* file = std::fopen(out.c_str(), "w");
    if (file == nullptr) {
      std::perror(out.c_str());
      return 1;
    }
    const auto lengths = bench::lengths_for_all(average(histograms, fields.size()));
    for (int r = -(1 << kRangeLog2); r < 1 << kRangeLog2; ++r) {
      std::fprintf(file, "%d %d\n", r, lengths[static_cast<std::size_t>(r + (1 << kRangeLog2))]);
    }
    if (std::fclose(file) != 0) {
      std::perror(out.c_str());
      return 1;
    }
  }
}
