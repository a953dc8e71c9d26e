// Time of one small message, compressed and decompressed with contexts that are kept, next to
// memcpy and zfp in the same run (CEAZ's message sizes, table 6). `contexts` and `lorenzo` take
// offline books, so no table is stored. Best of many; all on one thread.
//
//     firn_bench_latency [FOLDER]
//
// With a folder: sizes of messages from its fields.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <firn/firn.hpp>
#include <vector>

#ifdef FIRN_WITH_ZFP
#include <zfp.h>
#endif

#include "fields.hpp"

namespace {

constexpr const char* kUsage = "firn_bench_latency [FOLDER]";

// Nanoseconds of one call: the best of batches that are long enough for the clock and short enough
// to run without a break.
template <class Call>
double best_of(std::size_t values, Call call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 400;
  const int calls = static_cast<int>(std::max<std::size_t>(1, 16384 / values));
  double best = 1e18;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    const double each =
        std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / calls;
    best = std::min(best, each);
  }
  return best;
}

struct Timing {
  double compress, decompress;
  std::size_t bytes;
};

Timing time_firn(const std::vector<float>& message, firn::Options options, double bound) {
  options.bound = firn::Bound::abs(bound);
  firn::Execution execution;
  execution.threads = 1;
  const firn::Shape shape{message.size()};
  firn::Compressor compressor;
  firn::Decompressor decompressor;
  std::vector<std::uint8_t> stream(*firn::worst_case_size(firn::Type::f32, shape, options));
  std::vector<float> decoded(message.size());
  std::size_t size = 0;
  const double compress = best_of(message.size(), [&] {
    size = *compressor.compress_into(firn::view(message.data(), shape), options, stream, execution);
  });
  const double decompress = best_of(message.size(), [&] {
    (void)decompressor.decompress({stream.data(), size}, firn::mutable_view(decoded.data(), shape),
                                  execution);
  });
  return {compress, decompress, size};
}

#ifdef FIRN_WITH_ZFP
Timing time_zfp(const std::vector<float>& message, double bound) {
  std::vector<float> in = message, decoded(message.size());
  zfp_field* field = zfp_field_1d(in.data(), zfp_type_float, in.size());
  zfp_stream* zfp = zfp_stream_open(nullptr);
  zfp_stream_set_accuracy(zfp, bound);
  std::vector<std::uint8_t> out(zfp_stream_maximum_size(zfp, field));
  bitstream* bits = stream_open(out.data(), out.size());
  zfp_stream_set_bit_stream(zfp, bits);
  std::size_t size = 0;
  const double compress = best_of(message.size(), [&] {
    zfp_stream_rewind(zfp);
    size = zfp_compress(zfp, field);
  });
  zfp_field_set_pointer(field, decoded.data());
  const double decompress = best_of(message.size(), [&] {
    zfp_stream_rewind(zfp);
    zfp_decompress(zfp, field);
  });
  stream_close(bits);
  zfp_stream_close(zfp);
  zfp_field_free(field);
  return {compress, decompress, size};
}
#endif

// Bytes of runs of so many values, spread over a field, under a bound.
double bytes_of_messages(const bench::Field& field, std::size_t values, double bound,
                         const firn::Options& asked) {
  constexpr std::size_t kMessages = 200;
  firn::Options options = asked;
  options.bound = firn::Bound::abs(bound);
  options.fill = field.fill;
  firn::Execution execution;
  execution.threads = 1;
  firn::Compressor compressor;
  std::vector<std::uint8_t> stream(*firn::worst_case_size(field.type, {values}, options));
  const std::size_t room = field.view().shape.count() - values, each = firn::size_of(field.type);
  double bytes = 0;
  for (std::size_t i = 0; i < kMessages; ++i) {
    const firn::ArrayView message{
        field.bytes.data() + (2 * i + 1) * room / (2 * kMessages) * each, field.type, {values}, {}};
    bytes += static_cast<double>(*compressor.compress_into(message, options, stream, execution));
  }
  return bytes;
}

double bound_of(const bench::Field& field, double rel) {
  firn::Options options;
  options.preset = firn::Preset::fast;
  options.bound = firn::Bound::rel(rel);
  options.fill = field.fill;
  return firn::inspect(*firn::compress(field.view(), options))->bound_abs;
}

// Geometric means over the fields of what messages take, of what `contexts` does.
void print_sizes(const std::string& folder) {
  constexpr std::size_t kLeastBytes = 100000;  // so that there are runs to choose from
  const auto fields = bench::load_folder(folder, kUsage, kLeastBytes);
  std::printf("%-8s %-10s %9s %9s %9s   of contexts\n", "values", "", "1e-2", "1e-3", "1e-4");
  for (const std::size_t values : {64, 256, 512, 1024, 4096}) {
    for (const auto preset : {firn::Preset::fast, firn::Preset::balanced}) {
      std::printf("%6zu   %-10s", values, firn::name_of(preset));
      for (const double rel : {1e-2, 1e-3, 1e-4}) {
        double sum = 0;
        for (const bench::Field& field : fields) {
          firn::Options options, contexts;
          options.preset = preset;
          contexts.pipeline = firn::Pipeline::contexts;
          const double bound = bound_of(field, rel);
          sum += std::log(bytes_of_messages(field, values, bound, options) /
                          bytes_of_messages(field, values, bound, contexts));
        }
        std::printf(" %9.3f", std::exp(sum / static_cast<double>(fields.size())));
      }
      std::printf("\n");
    }
  }
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count > 2) bench::exit_with_usage(kUsage, "one folder is taken");
  if (argument_count == 2) {
    print_sizes(bench::folder_argument(arguments[1], kUsage));
    return 0;
  }
  std::printf("%-8s %-10s %8s %7s %14s %14s   %s\n", "message", "", "bytes", "of raw",
              "compress ns", "decompress ns", "of zfp's time");
  for (const std::size_t kib : {1, 4, 16, 64}) {
    std::vector<float> message(kib * 256), copy(kib * 256);
    for (std::size_t i = 0; i < message.size(); ++i) {
      message[i] = std::sin(static_cast<float>(i) * 0.02f) * 100.0f;
    }
    const double bound = 0.2;  // 1e-3 of the range
    Timing zfp{0, 0, 0};
#ifdef FIRN_WITH_ZFP
    zfp = time_zfp(message, bound);
#endif
    const auto print = [&](const char* name, const Timing& t) {
      std::printf("%4zu KiB %-10s %8zu %6.1f%% %14.0f %14.0f", kib, name, t.bytes,
                  100.0 * static_cast<double>(t.bytes) / static_cast<double>(1024 * kib),
                  t.compress, t.decompress);
      if (zfp.bytes != 0) {
        std::printf("   %.3f %.3f", t.compress / zfp.compress, t.decompress / zfp.decompress);
      }
      std::printf("\n");
    };
    const double moved = best_of(message.size(), [&] {
      std::memcpy(copy.data(), message.data(), message.size() * sizeof(float));
      asm volatile("" ::"r"(copy.data()) : "memory");
    });
    print("memcpy", {moved, moved, message.size() * sizeof(float)});
    if (zfp.bytes != 0) print("zfp", zfp);
    firn::Options options;
    options.preset = firn::Preset::fast;
    print("fast", time_firn(message, options, bound));
    options.preset = firn::Preset::balanced;
    print("balanced", time_firn(message, options, bound));
    options.pipeline = firn::Pipeline::contexts;
    print("contexts", time_firn(message, options, bound));
    options.pipeline = firn::Pipeline::lorenzo;
    options.books = firn::BookPolicy::offline;
    print("lorenzo", time_firn(message, options, bound));
  }
}
