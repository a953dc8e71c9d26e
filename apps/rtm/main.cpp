// firn-rtm: reverse-time migration of a synthetic survey, its frames in a frame store.
// docs/rtm.md describes it.
#include <fmt/format.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "../firn/failure.hpp"
#include "../firn/interruption.hpp"
#include "../firn/output_file.hpp"
#include "../firn/progress.hpp"
#include "../firn/shared_options.hpp"
#include "migration.hpp"
#include "png.hpp"
#include "velocity_model.hpp"

namespace {

using firn_cli::ExitCode;

struct Arguments {
  std::string model = "layers";
  std::vector<int> size{96, 96, 96};
  int sponge = 20;
  int smoothing = 6;
  rtm::Survey survey;
  std::string policy = "automatic";
  firn_cli::CompressionOptions compression;
  std::string scratch;
  std::uint64_t budget_mb = 0;
  int servants = 1, put_buffers = 2, get_buffers = 2;
  bool direct = false, pin = false, json = false, quiet = false;
  int workers = 0;
  std::string output;
  std::string traces;
  std::string reference;
};

void write_file(const std::string& path, const void* data, std::size_t bytes) {
  firn_cli::OutputFile file(path, true);
  file.write({static_cast<const std::uint8_t*>(data), bytes});
  file.commit();
}

std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) firn_cli::fail(ExitCode::cannot_read, "cannot read {}", path);
  std::vector<float> values(static_cast<std::size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file) firn_cli::fail(ExitCode::cannot_read, "cannot read {}", path);
  return values;
}

// Signal to noise of the image against that of an uncompressed run, in decibels: 20 log10 of the
// ratio of root mean squares.
double image_snr(const std::vector<float>& reference, const std::vector<float>& image) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < image.size(); ++i) {
    const double difference = double{reference[i]} - double{image[i]};
    signal += double{reference[i]} * double{reference[i]};
    noise += difference * difference;
  }
  return noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
}

// A slice with depth downward (or y, for a map), clipped at the 99th percentile.
void write_slice(const std::string& path, int width, int height,
                 const std::function<float(int row, int column)>& value) {
  std::vector<float> values;
  for (int r = 0; r < height; ++r) {
    for (int c = 0; c < width; ++c) values.push_back(value(r, c));
  }
  std::vector<float> magnitudes(values.size());
  std::transform(values.begin(), values.end(), magnitudes.begin(),
                 [](float v) { return std::abs(v); });
  const auto percentile =
      magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() * 99 / 100);
  std::nth_element(magnitudes.begin(), percentile, magnitudes.end());
  const float clip = std::max(*percentile, 1e-30f);
  std::vector<std::uint8_t> pixels(values.size());
  std::transform(values.begin(), values.end(), pixels.begin(), [&](float v) {
    return static_cast<std::uint8_t>(127.5f + 127.5f * std::clamp(v / clip, -1.0f, 1.0f));
  });
  const auto png = rtm::encode_png(width, height, pixels);
  write_file(path, png.data(), png.size());
}

void write_image(const std::string& folder, const rtm::Grid& grid,
                 const std::vector<float>& image) {
  std::filesystem::create_directories(folder);
  const auto& n = grid.imaged;
  const std::string dims = fmt::format("{}x{}x{}", n[0], n[1], n[2]);
  write_file(fmt::format("{}/image_{}.f32", folder, dims), image.data(),
             image.size() * sizeof(float));
  const std::vector<float> sharp = rtm::sharpened(grid, image);
  write_file(fmt::format("{}/image_sharpened_{}.f32", folder, dims), sharp.data(),
             sharp.size() * sizeof(float));
  // Above the first points below the sources the image shows the survey, not the earth.
  const int top = std::min(n[0] / 8, 2 * rtm::kSourceDepth + 4);
  const auto at = [&](int z, int y, int x) {
    return z < top ? 0.0f
                   : sharp[(static_cast<std::size_t>(z) * static_cast<std::size_t>(n[1]) +
                            static_cast<std::size_t>(y)) *
                               static_cast<std::size_t>(n[2]) +
                           static_cast<std::size_t>(x)];
  };
  write_slice(folder + "/slice_xz.png", n[2], n[0],
              [&](int r, int c) { return at(r, n[1] / 2, c); });
  write_slice(folder + "/slice_yz.png", n[1], n[0],
              [&](int r, int c) { return at(r, c, n[2] / 2); });
  write_slice(folder + "/slice_xy.png", n[2], n[1],
              [&](int r, int c) { return at(rtm::first_interface(grid), r, c); });
}

// From the file when it is there, else by the model, and then into the file.
std::vector<rtm::Traces> observed_traces(const Arguments& given, rtm::Migrator& migrator) {
  if (given.traces.empty() || !std::filesystem::exists(given.traces)) {
    auto observed = migrator.observe();
    if (!given.traces.empty()) {
      rtm::Traces all;
      for (const auto& traces : observed) all.insert(all.end(), traces.begin(), traces.end());
      write_file(given.traces, all.data(), all.size() * sizeof(float));
    }
    return observed;
  }
  const rtm::Traces all = read_floats(given.traces);
  const std::size_t shot = migrator.samples_per_shot();
  if (all.size() != shot * static_cast<std::size_t>(given.survey.shots)) {
    firn_cli::fail(ExitCode::size_mismatch,
                   "{} holds {} samples, this survey has {}: it is another survey's", given.traces,
                   all.size(), shot * static_cast<std::size_t>(given.survey.shots));
  }
  std::vector<rtm::Traces> observed;
  for (std::size_t i = 0; i < all.size(); i += shot) {
    observed.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                          all.begin() + static_cast<std::ptrdiff_t>(i + shot));
  }
  return observed;
}

firn::StoreOptions store_options(const Arguments& given, int workers) {
  firn::StoreOptions options;
  options.policy = firn_cli::value_or_fail(firn::parse_store_policy(given.policy), "--policy");
  const bool compressed =
      options.policy != firn::StorePolicy::memory && options.policy != firn::StorePolicy::disk;
  if (compressed) options.compression = given.compression.options(firn::Bound::rel(1e-4));
  const std::string folder =
      given.scratch.empty() ? std::filesystem::temp_directory_path().string() : given.scratch;
  options.path = fmt::format("{}/firn-rtm-{}.frames", folder, getpid());
  options.temporary = true;
  options.direct = given.direct;
  options.memory_budget = given.budget_mb << 20;
  options.servants = given.servants;
  options.put_buffers = given.put_buffers;
  options.get_buffers = given.get_buffers;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (given.pin) {
    for (int core = std::min(workers, cores - 1); core < cores; ++core) {
      options.servant_cores.push_back(core);
    }
  }
  return options;
}

void report(const Arguments& given, const rtm::Migrator& migrator, const rtm::Migration& result,
            int workers) {
  const firn::StoreStats& store = result.store;
  const double ratio = store.encoded_bytes == 0 ? 1.0
                                                : static_cast<double>(store.encoded_raw_bytes) /
                                                      static_cast<double>(store.encoded_bytes);
  double snr = INFINITY;
  if (!given.reference.empty()) {
    const std::vector<float> reference = read_floats(given.reference);
    if (reference.size() != result.image.size()) {
      firn_cli::fail(ExitCode::size_mismatch, "{} has not the size of the image", given.reference);
    }
    snr = image_snr(reference, result.image);
  }
  const double waited = store.put_wait_seconds + store.get_wait_seconds;
  if (given.json) {
    const nlohmann::json all{
        {"policy", given.policy},
        {"workers", workers},
        {"servants", given.servants},
        {"steps", migrator.survey().steps},
        {"frames", result.frames},
        {"frame_bytes", result.frame_bytes},
        {"total_seconds", result.times.total()},
        {"forward_seconds", result.times.forward},
        {"backward_seconds", result.times.backward},
        {"caller_cpu_seconds", result.times.caller_cpu},
        {"put_seconds", result.times.put},
        {"get_seconds", result.times.get},
        {"put_wait_seconds", store.put_wait_seconds},
        {"put_copy_seconds", store.put_copy_seconds},
        {"get_wait_seconds", store.get_wait_seconds},
        {"compress_seconds", store.compress_seconds},
        {"decompress_seconds", store.decompress_seconds},
        {"write_seconds", store.write_seconds},
        {"read_seconds", store.read_seconds},
        {"ratio", ratio},
        {"written_bytes", store.written_bytes},
        {"read_bytes", store.read_bytes},
        {"gets_ready", store.gets_ready},
        {"queue_depth_max", store.queue_depth_max},
        {"store_memory_bytes_max", store.memory_bytes_max},
        {"snr_db", std::isinf(snr) ? nlohmann::json(nullptr) : nlohmann::json(snr)}};
    fmt::print("{}\n", all.dump(2));
    return;
  }
  const double frames_gb = static_cast<double>(result.frames * result.frame_bytes) * 1e-9;
  fmt::print("{} steps, {} frames of {:.1f} MB ({:.2f} GB), policy {}, {} worker{}\n",
             migrator.survey().steps, result.frames, static_cast<double>(result.frame_bytes) * 1e-6,
             frames_gb, given.policy, workers, workers == 1 ? "" : "s");
  fmt::print("total    {:8.2f} s  (forward {:.2f} s, backward {:.2f} s)\n", result.times.total(),
             result.times.forward, result.times.backward);
  fmt::print("waiting  {:8.2f} s  ({:.1f} % of the total: put {:.2f} s, get {:.2f} s)\n", waited,
             100 * waited / result.times.total(), store.put_wait_seconds, store.get_wait_seconds);
  fmt::print("store    {:8.1f} MB of memory at most, {:.1f} MB written, ratio {:.2f}\n",
             static_cast<double>(store.memory_bytes_max) * 1e-6,
             static_cast<double>(store.written_bytes) * 1e-6, ratio);
  if (!given.reference.empty())
    fmt::print("image    {:8.1f} dB against {} ({:.1f} dB as 20 log of mean squares)\n", snr,
               given.reference, 2 * snr);
}

void run(const Arguments& given) {
  rtm::Survey survey = given.survey;
  survey.grid.imaged = {given.size[0], given.size[1], given.size[2]};
  survey.grid.sponge = given.sponge;
  if (*std::min_element(given.size.begin(), given.size.end()) < 16) {
    firn_cli::fail(ExitCode::usage, "--size: every axis needs at least 16 points");
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int workers = given.workers > 0 ? given.workers : std::max(1, cores - 1);
  rtm::Team team(workers, [&](int member) {
#ifdef __SSE2__
    // Denormals to zero, both ways: they would cost a hundred times as much.
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
    if (given.pin) firn_cli::value_or_fail(firn::bind_thread({member % cores}), "--pin");
  });
  const rtm::Field velocity = rtm::make_model(survey.grid, given.model);
  const rtm::Field smooth = rtm::smoothed(survey.grid, velocity, given.smoothing);
  firn_cli::ProgressBar bar("firn-rtm");
  rtm::Migrator migrator(survey, velocity, smooth, team,
                         given.quiet ? rtm::Migrator::Progress{} : bar.callback());
  const auto observed = observed_traces(given, migrator);
  const rtm::Migration result = migrator.migrate(observed, store_options(given, workers));
  if (!given.output.empty()) write_image(given.output, survey.grid, result.image);
  report(given, migrator, result, workers);
}

void add_options(CLI::App& program, Arguments& given) {
  program.add_option("--model", given.model,
                     "layers, salt, or a file of f32 velocities (m/s) of --size");
  program.add_option("--size", given.size, "Points in depth, y and x, without the sponge")
      ->expected(3)
      ->capture_default_str();
  program.add_option("--steps", given.survey.steps, "Time steps; 0: down and up again");
  program.add_option("--every", given.survey.frame_interval, "Steps from frame to frame")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  program.add_option("--shots", given.survey.shots, "Shots along x")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  program.add_option("--spacing", given.survey.grid.spacing, "Metres between points")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--frequency", given.survey.frequency,
                     "Of the wavelet, hertz; 0: what the grid can carry");
  program.add_option("--sponge", given.sponge, "Points that absorb, on every side")
      ->check(CLI::Range(0, 200))
      ->capture_default_str();
  program
      .add_option("--smoothing", given.smoothing,
                  "Radius of the migration model's smoothing, in points")
      ->check(CLI::Range(0, 200))
      ->capture_default_str();
  program
      .add_option("--policy", given.policy,
                  "memory, disk, compressed-memory, compressed-disk or automatic")
      ->capture_default_str();
  given.compression.add_to(program);
  program.add_option("--budget", given.budget_mb, "Memory of the store, MiB; 0: as needed");
  program.add_option("--scratch", given.scratch, "Folder for the store's file");
  program.add_flag("--direct", given.direct, "Past the operating system's cache");
  program.add_option("--workers", given.workers, "Threads that compute; 0: all cores but one");
  program.add_option("--servants", given.servants, "Threads of the store")->capture_default_str();
  program.add_option("--put-buffers", given.put_buffers)->capture_default_str();
  program.add_option("--get-buffers", given.get_buffers)->capture_default_str();
  program.add_flag("--pin", given.pin, "Bind workers and servants to cores of their own");
  program.add_option("--traces", given.traces,
                     "File of the survey's recorded data: read if it exists, else written");
  program.add_option("--output", given.output, "Folder for the image, raw and as PNG slices");
  program.add_option("--reference", given.reference,
                     "Image of an uncompressed run (f32): prints the signal-to-noise ratio");
  program.add_flag("--json", given.json, "Print the results as JSON");
  program.add_flag("--quiet", given.quiet, "No progress bar");
}

int report_failure(ExitCode code, const std::string& message) {
  fmt::print(stderr, "firn-rtm: {}\n", message);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  firn_cli::handle_signals();
  CLI::App program("Reverse-time migration of a synthetic survey, its frames in a frame store");
  Arguments given;
  add_options(program, given);
  try {
    program.parse(argc, argv);
    run(given);
    return 0;
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    return report_failure(ExitCode::usage, std::string(error.what()) + " (see firn-rtm --help)");
  } catch (const firn_cli::Failure& failure) {
    return report_failure(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return report_failure(ExitCode::out_of_memory, "no memory for fields of this size");
  } catch (const std::exception& problem) {
    return report_failure(ExitCode::cannot_write, problem.what());
  }
}
