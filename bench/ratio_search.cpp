// What it costs to ask for a ratio: processor time of a compression under Bound::ratio over that of
// one compression at the bound which it found, and how near it came. One thread; the two take
// turns, best of several, of more when they take less than a millisecond. Fields of at least a
// megabyte.
//
//     firn_bench_ratio_search FOLDER [--ratio R] [--tile MB] [--repeat N] [--preset NAME]
//
// R is for f32, f64 takes twice that (10.5 and 21 unless told).
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "fields.hpp"

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Outcome {
  double ratio = 0;
  double asked = 0;
  int attempts = 0;
  double passes = 0;  // over the array, those of attempts that were given up in part
  double times = 0;   // the time of one compression
  double bound = 0;   // that was found

  double off() const { return ratio / asked - 1; }
};

Outcome measure(const bench::Field& field, firn::Preset preset, double ratio, int repeat) {
  firn::Options ask, fixed;
  ask.preset = fixed.preset = preset;
  ask.fill = fixed.fill = field.fill;
  Outcome outcome;
  outcome.asked = field.type == firn::Type::f64 ? 2 * ratio : ratio;
  ask.bound = firn::Bound::ratio(outcome.asked);
  firn::Execution counting, quiet;
  counting.threads = quiet.threads = 1;
  std::uint64_t last = ~std::uint64_t{0};
  counting.progress = [&](std::uint64_t done, std::uint64_t total) {
    const bool again = done <= last;
    outcome.attempts += again;
    outcome.passes += static_cast<double>(done - (again ? 0 : last)) / static_cast<double>(total);
    last = done;
    return true;
  };
  firn::Compressor compressor;
  const auto found = compressor.compress(field.view(), ask, counting);
  if (!found) {
    std::fprintf(stderr, "%s: %s\n", field.name.c_str(), found.error().message.c_str());
    std::exit(1);
  }
  outcome.ratio = static_cast<double>(field.bytes.size()) / static_cast<double>(found->size());
  const double bound = outcome.bound = firn::inspect(*found)->bound_abs;
  fixed.bound = bound > 0 ? firn::Bound::abs(bound) : firn::Bound::lossless();
  // Into memory that is there, so that what an allocator does is not measured.
  std::vector<std::uint8_t> out(
      static_cast<std::size_t>(*firn::worst_case_size(field.type, field.view().shape, ask)));
  double searched = 1e9, once = 1e9;
  constexpr double kEnough = 0.2;
  double spent = 0;
  for (int i = 0; i < repeat || spent < kEnough; ++i) {
    const double begin = processor_seconds();
    (void)compressor.compress_into(field.view(), ask, out, quiet);
    const double middle = processor_seconds();
    (void)compressor.compress_into(field.view(), fixed, out, quiet);
    searched = std::min(searched, middle - begin);
    const double end = processor_seconds();
    once = std::min(once, end - middle);
    spent += end - begin;
  }
  outcome.times = searched / once;
  return outcome;
}

constexpr const char* kUsage =
    "firn_bench_ratio_search FOLDER [--ratio R] [--tile MB] [--repeat N] [--preset NAME]";
constexpr std::size_t kLeastBytes = 1000000;

}  // namespace

int main(int count, char** arguments) {
  std::string folder, only;
  double ratio = 10.5;
  std::size_t tile_bytes = 0;
  int repeat = 5;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const char* const value = i + 1 < count ? arguments[i + 1] : "";
    if (argument == "--ratio") {
      ratio = std::atof(value);
    } else if (argument == "--tile") {
      tile_bytes = static_cast<std::size_t>(std::atof(value) * 1e6);
    } else if (argument == "--repeat") {
      repeat = std::max(1, std::atoi(value));
    } else if (argument == "--preset") {
      only = value;
    } else {
      folder = bench::folder_argument(argument, kUsage);
      continue;
    }
    ++i;
  }
  if (!(ratio > 1)) bench::exit_with_usage(kUsage, "--ratio takes a number above 1");
  if (!only.empty() && !firn::parse_preset(only)) {
    bench::exit_with_usage(kUsage, firn::parse_preset(only).error().message);
  }
  auto fields = bench::load_folder(folder, kUsage, kLeastBytes);
  if (tile_bytes != 0) {
    for (bench::Field& field : fields) bench::tile(&field, tile_bytes);
  }
  std::printf(
      "preset    field                  ratio      off   attempts  passes  time of one      "
      "bound\n");
  for (const auto preset : {firn::Preset::fast, firn::Preset::balanced, firn::Preset::small}) {
    const char* const name = firn::name_of(preset);
    if (!only.empty() && only != name) continue;
    double off = 0, times = 0, worst = 0, attempts = 0, passes = 0;
    for (const bench::Field& field : fields) {
      const Outcome outcome = measure(field, preset, ratio, repeat);
      std::printf("%-9s %-20s %7.3f %7.2f %% %8d %9.2f %11.2f %12.4g\n", name, field.name.c_str(),
                  outcome.ratio, 100 * outcome.off(), outcome.attempts, outcome.passes,
                  outcome.times, outcome.bound);
      std::fflush(stdout);
      off = std::max(off, std::abs(outcome.off()));
      worst = std::max(worst, outcome.times);
      attempts += outcome.attempts;
      passes += outcome.passes;
      times += outcome.times;
    }
    const auto divisor = static_cast<double>(fields.size());
    std::printf("%-9s %-20s %7s %7.2f %% %8.2f %9.2f %11.2f   worst %.2f\n\n", name,
                "mean (off: worst)", "", 100 * off, attempts / divisor, passes / divisor,
                times / divisor, worst);
  }
}
