// The coder for contexts alone, on the residuals of real fields in 24 contexts, beside zfp on the
// fields themselves: both in the original bytes over time, on one core, best of several.
//
//     firn_bench_context_coder [FOLDER] [--rel 1e-2 1e-3 1e-4]
//
// Decoding is told the contexts of a whole chunk at once: what finding them takes is not counted.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "encode/context_rans.hpp"
#include "fields.hpp"
#include "zfp_peer.hpp"

namespace {

using bench::Field;

constexpr std::uint8_t kContexts = 24;
constexpr std::uint64_t kChunkValues = std::uint64_t{1} << 18;

struct Times {
  double encode = 0, decode = 0;  // seconds
};

template <class Call>
double best_of(Call call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e18, spent = 0;
  for (int i = 0; i < 5 || (i < 100 && spent < 0.02); ++i) {
    const auto begin = Clock::now();
    call();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

template <class Q>
Times time_coder(const std::vector<Q>& residuals, const std::vector<std::uint8_t>& contexts) {
  using namespace firn::encode;
  const auto target = firn::simd::default_target();
  static ContextRansEncoder encoder;
  static ContextRansDecoder decoder;
  const std::size_t count = residuals.size();
  std::vector<std::uint8_t> out(context_rans_capacity<Q>(count));
  std::vector<Q> decoded(count);
  Times times;
  std::size_t size = 0;
  times.encode = best_of([&] {
    size = encoder.encode(residuals.data(), contexts.data(), count, {}, target, out.data());
  });
  bool good = true;
  times.decode = best_of([&] {
    good = good && decoder.start({out.data(), size}, target) &&
           decoder.decode(contexts.data(), count, decoded.data()) && decoder.finish();
  });
  if (!good || decoded != residuals) std::abort();
  return times;
}

Times time_chunk(const bench::Residuals& chunk) {
  const auto& values = chunk.values;
  const std::size_t history = chunk.rule.history();
  std::vector<std::uint16_t> magnitudes(history + values.size() + 64);
  const auto& kernels = firn::predict::context_kernels<std::int64_t>(firn::simd::default_target());
  kernels.magnitudes(values.data(), values.size(), 0, magnitudes.data() + history);
  std::vector<std::uint8_t> contexts(values.size() + 64);
  kernels.contexts(magnitudes.data() + history, values.size(), chunk.rule, contexts.data());
  contexts.resize(values.size());
  for (std::uint8_t& context : contexts) {
    context = std::min<std::uint8_t>(context, kContexts - 1);
  }
  using Narrow = std::numeric_limits<std::int32_t>;
  const bool narrow = std::all_of(values.begin(), values.end(), [](std::int64_t value) {
    return value >= Narrow::min() && value <= Narrow::max();
  });
  if (!narrow) return time_coder(values, contexts);
  return time_coder(std::vector<std::int32_t>(values.begin(), values.end()), contexts);
}

template <class T>
double range_of(const Field& field) {
  const auto* values = reinterpret_cast<const T*>(field.bytes.data());
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::size_t i = 0; i < field.shape.count(); ++i) {
    const auto value = static_cast<double>(values[i]);
    if (!std::isfinite(value) || value == field.fill) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return most - least;
}

Times time_zfp(const Field& field, double rel) {
  const double range =
      field.type == firn::Type::f32 ? range_of<float>(field) : range_of<double>(field);
  firn_cli::ZfpPeer zfp(field.view(), firn::Bound::abs(rel * range), 1);
  std::vector<std::uint8_t> decoded(field.bytes.size());
  Times times;
  times.encode = best_of([&] { zfp.compress(); });
  times.decode = best_of([&] { zfp.decompress(decoded.data()); });
  return times;
}

constexpr const char* kUsage = "firn_bench_context_coder [FOLDER] [--rel 1e-2 1e-3 1e-4]";

}  // namespace

int main(int argument_count, char** arguments) {
  const auto [folder, bounds] = bench::folder_and_bounds(argument_count, arguments, kUsage);
  const auto fields = bench::load_folder(folder, kUsage);
  const bool with_zfp = firn_cli::ZfpPeer::available();
  std::printf("rANS with %d contexts: MB/s, and as a multiple of zfp's\n", kContexts);
  std::printf("%-8s %-24s %8s %8s %9s %9s\n", "rel", "field", "encode", "decode", "of zfp's",
              "of zfp's");
  std::vector<double> all_encode, all_decode;
  for (const double rel : bounds) {
    for (const Field& field : fields) {
      Times coder;
      std::size_t values = 0;
      bench::for_each_chunk(field, rel, kChunkValues, [&](const bench::Residuals& chunk) {
        if (chunk.values.empty()) return;
        const Times times = time_chunk(chunk);
        coder.encode += times.encode;
        coder.decode += times.decode;
        values += chunk.values.size();
      });
      if (values == 0) continue;
      const double megabytes = static_cast<double>(values * firn::size_of(field.type)) / 1e6;
      std::printf("%-8.0e %-24s %8.0f %8.0f", rel, field.name.c_str(), megabytes / coder.encode,
                  megabytes / coder.decode);
      if (with_zfp) {
        const Times zfp = time_zfp(field, rel);
        const double zfp_megabytes = static_cast<double>(field.bytes.size()) / 1e6;
        all_encode.push_back(megabytes / coder.encode / (zfp_megabytes / zfp.encode));
        all_decode.push_back(megabytes / coder.decode / (zfp_megabytes / zfp.decode));
        std::printf(" %9.2f %9.2f", all_encode.back(), all_decode.back());
      }
      std::printf("\n");
    }
  }
  if (with_zfp) {
    std::printf("geometric mean: encoding %.2f x zfp's speed, decoding %.2f x\n",
                bench::geometric_mean(all_encode), bench::geometric_mean(all_decode));
  }
}
