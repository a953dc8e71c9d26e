// firn bench INPUT...: ratio, speed and error in memory, beside memcpy and zfp in the same run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench_field.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "stopwatch.hpp"
#include "table.hpp"
#include "zfp_peer.hpp"

namespace firn_cli {
namespace {

// The best of several timings, as a speed.
class BestTime {
 public:
  template <class Work>
  void measure(Work&& work) {
    const Stopwatch stopwatch;
    work();
    seconds_ = std::min(seconds_, stopwatch.seconds());
  }
  double megabytes_per_second_of(std::uint64_t bytes) const {
    return megabytes_per_second(bytes, seconds_);
  }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

struct Measurement {
  std::string name;
  firn::Type type = firn::Type::f32;
  firn::Shape shape;
  Report firn;
  std::optional<Report> zfp;
};

// Of `value` of the report that `choose` finds in each measurement.
template <class Choose, class Value>
double geometric_mean(const std::vector<Measurement>& measurements, Choose choose, Value value) {
  if (measurements.size() == 1) return value(choose(measurements[0]));
  double logarithms = 0;
  for (const Measurement& measurement : measurements) {
    logarithms += std::log(value(choose(measurement)));
  }
  return std::exp(logarithms / static_cast<double>(measurements.size()));
}

const Report& firn_report(const Measurement& measurement) { return measurement.firn; }
const Report& zfp_report(const Measurement& measurement) { return *measurement.zfp; }

template <class Choose>
Report mean_report(const std::vector<Measurement>& measurements, Choose choose) {
  if (measurements.size() == 1) return choose(measurements[0]);
  Report mean;
  for (const Measurement& measurement : measurements) {
    mean.original_bytes += choose(measurement).original_bytes;
    mean.compressed_bytes += choose(measurement).compressed_bytes;
  }
  mean.compress_mb_s =
      geometric_mean(measurements, choose, [](const Report& r) { return *r.compress_mb_s; });
  mean.decompress_mb_s =
      geometric_mean(measurements, choose, [](const Report& r) { return *r.decompress_mb_s; });
  mean.memcpy_mb_s =
      geometric_mean(measurements, choose, [](const Report& r) { return *r.memcpy_mb_s; });
  return mean;
}

template <class Choose>
double mean_ratio(const std::vector<Measurement>& measurements, Choose choose) {
  return geometric_mean(measurements, choose, [](const Report& r) { return r.ratio(); });
}

template <class Choose>
double worst_error_over_bound(const std::vector<Measurement>& measurements, Choose choose) {
  double worst = 0;
  for (const Measurement& measurement : measurements) {
    worst = std::max(worst, choose(measurement).error_over_bound());
  }
  return worst;
}

const firn::Bound kWithoutBound = firn::Bound::rel(1e-3);

struct BenchCommand {
  FieldOptions field;
  CompressionOptions compression;
  ThreadOption threads{1};
  int repeat = 5;
  std::string tile;
  bool json = false;
  std::vector<std::string> inputs;

  void run() const {
    compression.options(kWithoutBound);  // mistakes in them come before a missing file
    tile_megabytes();
    if (const auto ignored = ignored_simd_target()) {
      fail(ExitCode::usage, "FIRN_SIMD={}: this machine has {}", *ignored,
           fmt::join(firn::simd_targets(), ", "));
    }
    std::vector<Measurement> measurements;
    {
      ProgressBar bar("measuring");
      const auto progress = bar.callback();
      for (const std::string& path : inputs) {
        if (progress) progress(measurements.size(), inputs.size());
        measurements.push_back(measure(path));
      }
    }
    const firn::Options options = compression.options(kWithoutBound, measurements[0].type);
    if (json) {
      print_as_json(measurements, options);
    } else {
      print_as_table(measurements, options);
    }
  }

 private:
  double tile_megabytes() const {
    if (tile.empty() || parse_number(tile) == 0) return 0;
    const double megabytes = parse_positive("--tile", tile, "64");
    if (megabytes > 1e9) fail(ExitCode::usage, "--tile takes at most 1e9 (MB), not '{}'", tile);
    return megabytes;
  }

  Measurement measure(const std::string& path) const {
    const Field source = open_field(path, field.request());
    const firn::Options options = compression.options(kWithoutBound, source.view.type);
    if (source.view.shape.count() == 0) {
      fail(ExitCode::usage, "{} has no values: there is nothing to measure", source.name);
    }
    const BenchField original =
        make_bench_field(source.view, static_cast<std::uint64_t>(tile_megabytes() * 1e6));
    BenchMemory decoded(original.memory.size());

    Measurement measurement;
    measurement.name = source.name.substr(source.name.rfind('/') + 1);
    measurement.type = original.view.type;
    measurement.shape = original.view.shape;
    measurement.firn = measure_firn(source.name, original, options, decoded);
    if (ZfpPeer::available()) {
      measurement.zfp = measure_zfp(original, options, bound_of(measurement.firn), decoded);
      measurement.zfp->memcpy_mb_s = measurement.firn.memcpy_mb_s;
    }
    return measurement;
  }

  Report measure_firn(const std::string& name, const BenchField& original,
                      const firn::Options& options, BenchMemory& decoded) const {
    const firn::ArrayView& view = original.view;
    const std::uint64_t bytes = original.memory.size();
    BenchMemory stream(value_or_fail(firn::worst_case_size(view.type, view.shape, options), name));
    const firn::MutableArrayView out{decoded.data(), view.type, view.shape, {}};
    const firn::Execution execution{threads.threads(), {}};
    firn::Compressor compressor;
    firn::Decompressor decompressor;
    std::size_t stream_bytes = 0;
    BestTime copy_time;
    BestTime compress_time;
    BestTime decompress_time;
    const auto compress = [&] {
      stream_bytes = value_or_fail(
          compressor.compress_into(view, options, {stream.data(), stream.size()}, execution), name);
    };
    const auto decompress = [&] {
      value_or_fail(decompressor.decompress({stream.data(), stream_bytes}, out, execution), name);
    };
    // One round that is not timed, then the three in turn, so that all meet the same conditions.
    compress();
    decompress();
    for (int round = 0; round < repeat; ++round) {
      copy_time.measure([&] { copy(decoded.data(), original.memory.data(), bytes); });
      compress_time.measure(compress);
      decompress_time.measure(decompress);
    }

    const firn::Info info = value_or_fail(firn::inspect({stream.data(), stream_bytes}), name);
    Report report;
    report.set_bound(info, 0, 0);
    report = compare(view, decoded, bound_of(report), options.fill);
    report.original_bytes = bytes;
    report.compressed_bytes = stream_bytes;
    report.compress_mb_s = compress_time.megabytes_per_second_of(bytes);
    report.decompress_mb_s = decompress_time.megabytes_per_second_of(bytes);
    report.memcpy_mb_s = copy_time.megabytes_per_second_of(bytes);
    return report;
  }

  // memcpy on as many threads as the codecs have.
  void copy(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) const {
    const auto count = static_cast<std::uint64_t>(
        threads.threads() > 0 ? threads.threads()
                              : std::max(1U, std::thread::hardware_concurrency()));
    const auto copy_part = [&](std::uint64_t part) {
      const std::uint64_t begin = bytes * part / count;
      std::memcpy(to + begin, from + begin, bytes * (part + 1) / count - begin);
    };
    std::vector<std::thread> others;
    for (std::uint64_t part = 1; part < count; ++part) others.emplace_back(copy_part, part);
    copy_part(0);
    for (std::thread& other : others) other.join();
  }

  // The bound that a report's errors are measured against.
  static firn::Bound bound_of(const Report& report) {
    return report.bound_pwrel ? firn::Bound::pwrel(*report.bound_pwrel)
                              : firn::Bound::abs(report.bound_abs.value_or(0));
  }

  Report measure_zfp(const BenchField& original, const firn::Options& options,
                     const firn::Bound& bound, BenchMemory& decoded) const {
    std::optional<BenchField> unmasked;
    if (options.fill) unmasked = without_fill(original.view, *options.fill);
    const firn::ArrayView& view = unmasked ? unmasked->view : original.view;
    ZfpPeer zfp(view, bound, threads.threads());
    std::size_t stream_bytes = zfp.compress();
    zfp.decompress(decoded.data());
    BestTime compress_time;
    BestTime decompress_time;
    for (int round = 0; round < repeat; ++round) {
      compress_time.measure([&] { stream_bytes = zfp.compress(); });
      decompress_time.measure([&] { zfp.decompress(decoded.data()); });
    }
    Report report = compare(view, decoded, bound, {});
    report.original_bytes = original.memory.size();
    report.compressed_bytes = stream_bytes;
    report.compress_mb_s = compress_time.megabytes_per_second_of(report.original_bytes);
    report.decompress_mb_s = decompress_time.megabytes_per_second_of(report.original_bytes);
    return report;
  }

  static Report compare(const firn::ArrayView& original, const BenchMemory& decoded,
                        const firn::Bound& bound, std::optional<double> fill) {
    const firn::ArrayView view{decoded.data(), original.type, original.shape, {}};
    const firn::Comparison comparison =
        value_or_fail(firn::compare(original, view, bound, fill), "bench");
    Report report;
    if (bound.kind == firn::BoundKind::pwrel) {
      report.bound_pwrel = bound.value;
      report.max_pwrel_error = comparison.max_pwrel_error;
    } else {
      report.bound_abs = bound.value;
      report.max_abs_error = comparison.max_abs_error;
    }
    report.psnr_db = comparison.psnr_db;
    return report;
  }

  static std::string codec_name(const firn::Options& options) {
    return options.pipeline == firn::Pipeline::automatic ? firn::name_of(options.preset)
                                                         : firn::name_of(options.pipeline);
  }

  void print_as_json(const std::vector<Measurement>& measurements,
                     const firn::Options& options) const {
    nlohmann::ordered_json object = to_json(mean_report(measurements, firn_report));
    object["ratio"] = mean_ratio(measurements, firn_report);
    object["max_error_over_bound"] = worst_error_over_bound(measurements, firn_report);
    object["zfp"] = nullptr;
    if (ZfpPeer::available()) {
      object["zfp"] = to_json(mean_report(measurements, zfp_report));
      object["zfp"]["ratio"] = mean_ratio(measurements, zfp_report);
      object["zfp"]["max_error_over_bound"] = worst_error_over_bound(measurements, zfp_report);
    }
    object["codec"] = codec_name(options);
    object["bound"] = {{"kind", firn::name_of(options.bound.kind)}, {"value", options.bound.value}};
    object["threads"] = threads.threads();
    object["repeat"] = repeat;
    object["simd_target"] = firn::simd_target();
    auto results = nlohmann::ordered_json::array();
    for (const Measurement& measurement : measurements) {
      nlohmann::ordered_json result = {{"name", measurement.name}};
      result.update(to_json(measurement.firn));
      result["max_error_over_bound"] = measurement.firn.error_over_bound();
      add_array(result, measurement.type, measurement.shape);
      result["zfp"] = nullptr;
      if (measurement.zfp) {
        result["zfp"] = to_json(*measurement.zfp);
        result["zfp"]["max_error_over_bound"] = measurement.zfp->error_over_bound();
      }
      results.push_back(std::move(result));
    }
    object["results"] = std::move(results);
    print_json(object);
  }

  void print_as_table(const std::vector<Measurement>& measurements,
                      const firn::Options& options) const {
    Table table({"field", "codec", "\nMB", "\nratio", "compress\nMB/s", "decompress\nMB/s",
                 "memcpy\nMB/s", "max error\n/ bound", "PSNR\ndB"},
                2);
    const auto add = [&](const std::string& field_name, const std::string& codec,
                         const Report& report, double ratio, double error, bool single) {
      table.add_row({field_name, codec,
                     fmt::format("{:.1f}", static_cast<double>(report.original_bytes) / 1e6),
                     fmt::format("{:.2f}", ratio), fmt::format("{:.0f}", *report.compress_mb_s),
                     fmt::format("{:.0f}", *report.decompress_mb_s),
                     fmt::format("{:.0f}", *report.memcpy_mb_s), fmt::format("{:.4f}", error),
                     single ? format_decibels(*report.psnr_db) : ""});
    };
    for (const Measurement& m : measurements) {
      add(m.name, codec_name(options), m.firn, m.firn.ratio(), m.firn.error_over_bound(), true);
      if (m.zfp) add("", "zfp", *m.zfp, m.zfp->ratio(), m.zfp->error_over_bound(), true);
    }
    if (measurements.size() > 1) {
      table.add_rule();
      add("geometric mean", codec_name(options), mean_report(measurements, firn_report),
          mean_ratio(measurements, firn_report), worst_error_over_bound(measurements, firn_report),
          false);
      if (ZfpPeer::available()) {
        add("", "zfp", mean_report(measurements, zfp_report), mean_ratio(measurements, zfp_report),
            worst_error_over_bound(measurements, zfp_report), false);
      }
    }
    const std::string bound =
        options.bound.kind == firn::BoundKind::lossless
            ? "lossless"
            : fmt::format("{} {:g}", firn::name_of(options.bound.kind), options.bound.value);
    fmt::print("bound {}, {} thread{}, {}, best of {}; 1 MB = 1e6 bytes of the original\n\n{}",
               bound, threads.threads() == 0 ? "all" : std::to_string(threads.threads()),
               threads.threads() == 1 ? "" : "s", firn::simd_target(), repeat, table.to_text());
  }
};

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "Measure ratio, speed and error in memory, beside memcpy's speed in the same run");
  const auto state = std::make_shared<BenchCommand>();
  command->add_option("INPUT", state->inputs, "Fields: raw, .npy, or - for standard input")
      ->required()
      ->type_name("");
  state->field.add_to(*command);
  state->compression.add_to(*command);
  state->threads.add_to(*command);
  command
      ->add_option("--repeat", state->repeat,
                   "Timed runs, of which the best counts; 5 when not given")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000).description(""));
  command
      ->add_option("--tile", state->tile,
                   "Repeat each field along its slowest axis until it has this many\n"
                   "megabytes")
      ->type_name("MB");
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer(
      "Without a bound: --rel 1e-3. Example: firn bench --rel 1e-3 --tile 64 u_25x125x125.f32");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
