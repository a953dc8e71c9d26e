// Where each chunk's codebook comes from, measured over a folder of fields:
//
//     firn_bench_books [FOLDER] [--rel 1e-2 1e-3 1e-4]
//
// 1. Real streams of `lorenzo` under every policy and update size (CEAZ's 4.3), against the same
//    with a perfect book for every chunk that is free to store.
// 2. The coder for contexts: family and stored tables against every context's own entropy.
// 3. One global book over all fields, cuSZ's way, against a book chosen for each chunk.
// 4. What keeping the previous chunk's book costs, by the change chi (CEAZ's figure 9).
#include "plan/books.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "encode/context_rans.hpp"
#include "fields.hpp"
#include "symbol_histogram.hpp"

namespace {

using bench::Field;
using bench::Histogram;

constexpr const char* kUsage =
    "firn_bench_books [FOLDER, data when not given] [--rel 1e-2 1e-3 1e-4]";
constexpr std::uint64_t kDefaultChunk = std::uint64_t{1} << 18;

std::size_t compressed_bytes(const Field& field, double rel, std::uint64_t chunk_values,
                             firn::BookPolicy policy) {
  firn::Options options;
  options.bound = firn::Bound::rel(rel);
  options.fill = field.fill;
  options.pipeline = firn::Pipeline::lorenzo;
  options.chunk = firn::choose_chunk(field.shape, chunk_values);
  options.books = policy;
  firn::Execution execution;
  execution.threads = 1;
  const auto stream = firn::compress(field.view(), options, execution);
  return stream ? stream->size() : 0;
}

// Bytes that the books of a stream take when every chunk stores one.
double stored_book_bytes(const Field& field, double rel, std::uint64_t chunk_values) {
  double bytes = 0;
  bench::for_each_chunk(field, rel, chunk_values, [&](const bench::Residuals& chunk) {
    Histogram histogram(bench::range_for(chunk.values));
    histogram.add(chunk.values);
    const auto lengths = bench::lengths_for(histogram.counts);
    const auto present =
        lengths.size() - static_cast<std::size_t>(std::count(lengths.begin(), lengths.end(), 0));
    if (present > 1) bytes += static_cast<double>(firn::encode::code_lengths_bytes(lengths));
  });
  return bytes;
}

void compare_policies(const std::vector<Field>& fields, const std::vector<double>& bounds) {
  std::printf(
      "\n1. lorenzo: size against a perfect book that is free (geometric mean of %zu "
      "fields x %zu bounds)\n",
      fields.size(), bounds.size());
  std::printf("%-14s %9s %9s %9s %9s\n", "update, values", "cost", "chi", "stored", "offline");
  for (std::uint64_t chunk = 1024; chunk <= std::uint64_t{1} << 20; chunk *= 4) {
    std::map<firn::BookPolicy, std::vector<double>> over;
    for (const double rel : bounds) {
      for (const Field& field : fields) {
        const auto stored = compressed_bytes(field, rel, chunk, firn::BookPolicy::stored);
        const double perfect = static_cast<double>(stored) - stored_book_bytes(field, rel, chunk);
        for (const auto policy : {firn::BookPolicy::cost, firn::BookPolicy::chi,
                                  firn::BookPolicy::stored, firn::BookPolicy::offline}) {
          const auto size = policy == firn::BookPolicy::stored
                                ? stored
                                : compressed_bytes(field, rel, chunk, policy);
          over[policy].push_back(static_cast<double>(size) / perfect);
        }
      }
    }
    std::printf("%14llu", static_cast<unsigned long long>(chunk));
    for (const auto& [policy, ratios] : over) {
      std::printf(" %+8.2f%%", 100 * (bench::geometric_mean(ratios) - 1));
    }
    std::printf("\n");
  }
}

// The residuals of a chunk coded with contexts, and the least that any tables could do with them.
struct ContextSizes {
  double quick = 0, coded = 0, perfect = 0;  // bytes
};

template <class Q>
ContextSizes context_sizes(const std::vector<Q>& residuals,
                           const std::vector<std::uint8_t>& contexts) {
  using namespace firn::encode;
  const auto target = firn::simd::default_target();
  ContextRansEncoder encoder;
  std::vector<std::uint8_t> out(context_rans_capacity<Q>(residuals.size()));
  const auto encode = [&](bool thorough) {
    encoder.set_thorough(thorough);
    return encoder.encode(residuals.data(), contexts.data(), residuals.size(), {}, target,
                          out.data());
  };
  const std::size_t quick = encode(false), size = encode(true);
  ContextRansDecoder decoder;
  if (!decoder.start({out.data(), size}, target)) std::abort();
  const ContextShifts& shifts = decoder.shifts();
  std::vector<Cell> cells(residuals.size());
  context_rans_kernels<Q>(target).tokenize(residuals.data(), contexts.data(), shifts,
                                           residuals.size(), cells.data());
  std::vector<std::uint32_t> counts(kMaxContexts * kTokenCount);
  double bits = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ++counts[cells[i]];
    const int token = cells[i] % kTokenCount - 32;
    bits += shifts.shift[cells[i] / kTokenCount];
    if (token != kEscapeToken) {
      bits += extra_bits(std::abs(token));
    } else {
      const auto r = static_cast<std::int64_t>(residuals[i]);
      const auto magnitude = static_cast<std::uint64_t>(r < 0 ? -r : r);
      bits += 6 + std::bit_width((magnitude >> shifts.shift[cells[i] / kTokenCount]) + 1);
    }
  }
  for (int c = 0; c < kMaxContexts; ++c) {
    double total = 0;
    for (int t = 0; t < kTokenCount; ++t) total += counts[static_cast<std::size_t>(c * 64 + t)];
    for (int t = 0; t < kTokenCount; ++t) {
      const double count = counts[static_cast<std::size_t>(c * 64 + t)];
      if (count > 0) bits += count * std::log2(total / count);
    }
  }
  // The states hold 15 bits a lane that any coder of so many lanes would pay.
  return {static_cast<double>(quick), static_cast<double>(size),
          bits / 8 + 2.0 * static_cast<double>(decoder.lanes()) + 2};
}

void compare_contexts(const std::vector<Field>& fields, const std::vector<double>& bounds) {
  std::printf("\n2. contexts: section against every context's own entropy, its tables free\n");
  std::printf("%-14s %9s %12s %28s\n", "chunk, values", "quickly", "thoroughly",
              "where these are 16 KB or more");
  for (std::uint64_t chunk_values = 1024; chunk_values <= std::uint64_t{1} << 20;
       chunk_values *= 4) {
    std::vector<double> quick, over, large;
    for (const double rel : bounds) {
      for (const Field& field : fields) {
        ContextSizes sum;
        bench::for_each_chunk(field, rel, chunk_values, [&](const bench::Residuals& chunk) {
          const auto& values = chunk.values;
          const std::size_t history = chunk.rule.history();
          std::vector<std::uint16_t> magnitudes(history + values.size() + 64);
          const auto& kernels =
              firn::predict::context_kernels<std::int64_t>(firn::simd::default_target());
          kernels.magnitudes(values.data(), values.size(), 0, magnitudes.data() + history);
          std::vector<std::uint8_t> contexts(values.size() + 64);
          kernels.contexts(magnitudes.data() + history, values.size(), chunk.rule, contexts.data());
          if (values.empty()) return;
          contexts.resize(values.size());
          const ContextSizes sizes = context_sizes(values, contexts);
          sum.quick += sizes.quick;
          sum.coded += sizes.coded;
          sum.perfect += sizes.perfect;
        });
        if (sum.perfect > 0) quick.push_back(sum.quick / sum.perfect);
        if (sum.perfect > 0) over.push_back(sum.coded / sum.perfect);
        if (sum.perfect >= 16384) large.push_back(sum.coded / sum.perfect);
      }
    }
    const auto percent = [](const std::vector<double>& sizes) {
      return 100 * (bench::geometric_mean(sizes) - 1);
    };
    std::printf("%14llu %+8.2f%% %+11.2f%% %+27.2f%%\n",
                static_cast<unsigned long long>(chunk_values), percent(quick), percent(over),
                percent(large));
  }
}

void compare_global(const std::vector<Field>& fields, const std::vector<double>& bounds) {
  constexpr int kCuszRange = 9;  // its 1,024 bins
  std::printf("\n3. all fields as one: bits a value, symbols and books\n");
  std::printf("%-8s %12s %12s %12s %14s\n", "rel", "global book", "per chunk", "perfect, free",
              "global is over");
  for (const double rel : bounds) {
    Histogram global(kCuszRange);
    double chosen = 0, perfect = 0, values = 0;
    for (const Field& field : fields) {
      bench::for_each_chunk(field, rel, kDefaultChunk, [&](const bench::Residuals& chunk) {
        global.add(chunk.values);
        Histogram own(bench::range_for(chunk.values));
        own.add(chunk.values);
        const auto lengths = bench::lengths_for(own.counts);
        const double bits = bench::bits_with(own, lengths);
        perfect += bits;
        chosen +=
            std::min(bits + 8.0 * static_cast<double>(firn::encode::code_lengths_bytes(lengths)),
                     bench::bits_offline(own));
        values += static_cast<double>(chunk.values.size());
      });
    }
    const auto lengths = bench::lengths_for(global.counts);
    const double bits = bench::bits_with(global, lengths) +
                        8.0 * static_cast<double>(firn::encode::code_lengths_bytes(lengths));
    std::printf("%-8.0e %12.4f %12.4f %12.4f %+13.1f%%\n", rel, bits / values, chosen / values,
                perfect / values, 100 * (bits / chosen - 1));
  }
}

void show_chi(const std::vector<Field>& fields, const std::vector<double>& bounds) {
  const std::vector<double> edges = {0.5,  1, 2, firn::plan::kChiKeep, firn::plan::kChiOffline,
                                     1e300};
  std::vector<double> drop(edges.size()), gain(edges.size()), pairs(edges.size());
  for (const double rel : bounds) {
    // The chunks of all fields follow each other, so that some changes are large.
    std::vector<std::int64_t> previous;
    const auto deviation = [](const std::vector<std::int64_t>& residuals) {
      Histogram histogram(firn::encode::kMaxRangeLog2);
      histogram.add(residuals);
      return firn::plan::frequency_deviation(histogram.counts, histogram.total);
    };
    for (const Field& field : fields) {
      bench::for_each_chunk(field, rel, 16384, [&](const bench::Residuals& chunk) {
        if (chunk.values.empty()) return;
        if (!previous.empty()) {
          const double chi = std::fabs(deviation(chunk.values) - deviation(previous));
          std::size_t bin = 0;
          while (chi > edges[bin]) ++bin;
          Histogram before(bench::range_for(previous)), now(before.range_log2);
          before.add(previous);
          now.add(chunk.values);
          Histogram own(bench::range_for(chunk.values));
          own.add(chunk.values);
          const auto lengths = bench::lengths_for(own.counts);
          const double best = bench::bits_with(own, lengths);
          const double kept = bench::bits_with(now, bench::lengths_for_all(before.counts));
          drop[bin] += 1 - best / kept;
          gain[bin] += 8.0 * static_cast<double>(firn::encode::code_lengths_bytes(lengths)) / best;
          pairs[bin] += 1;
        }
        previous = chunk.values;
      });
    }
  }
  std::printf("\n4. keeping the previous chunk's book (16 Ki values), by chi\n");
  std::printf("%-10s %8s %22s %22s\n", "chi up to", "chunks", "ratio drops by", "a new book takes");
  for (std::size_t bin = 0; bin < edges.size(); ++bin) {
    if (pairs[bin] == 0) continue;
    char edge[32];
    std::snprintf(edge, sizeof edge, edges[bin] > 1e9 ? "more" : "%.2f", edges[bin]);
    std::printf("%-10s %8.0f %21.1f%% %21.1f%%\n", edge, pairs[bin], 100 * drop[bin] / pairs[bin],
                100 * gain[bin] / pairs[bin]);
  }
}

}  // namespace

int main(int argument_count, char** arguments) {
  const auto [folder, bounds] = bench::folder_and_bounds(argument_count, arguments, kUsage);
  const auto fields = bench::load_folder(folder, kUsage);
  compare_policies(fields, bounds);
  compare_contexts(fields, bounds);
  compare_global(fields, bounds);
  show_chi(fields, bounds);
}
