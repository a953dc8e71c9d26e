#include "migration.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "../firn/failure.hpp"

namespace rtm {
namespace {

using Clock = std::chrono::steady_clock;

// Adds the time of its life to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), start_(Clock::now()) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  double& sum_;
  Clock::time_point start_;
};

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void check(const firn::Status& status) { firn_cli::value_or_fail(status, "the frame store"); }

void add(const firn::StoreStats& one, firn::StoreStats& sum) {
  sum.puts += one.puts;
  sum.gets += one.gets;
  sum.gets_ready += one.gets_ready;
  sum.put_wait_seconds += one.put_wait_seconds;
  sum.put_copy_seconds += one.put_copy_seconds;
  sum.get_wait_seconds += one.get_wait_seconds;
  sum.compress_seconds += one.compress_seconds;
  sum.decompress_seconds += one.decompress_seconds;
  sum.write_seconds += one.write_seconds;
  sum.read_seconds += one.read_seconds;
  sum.frames_encoded += one.frames_encoded;
  sum.encoded_raw_bytes += one.encoded_raw_bytes;
  sum.encoded_bytes += one.encoded_bytes;
  sum.written_bytes += one.written_bytes;
  sum.read_bytes += one.read_bytes;
  sum.queue_depth_max = std::max(sum.queue_depth_max, one.queue_depth_max);
  sum.memory_bytes_max = std::max(sum.memory_bytes_max, one.memory_bytes_max);
}

std::pair<float, float> range_of(const Grid& grid, const Field& velocity) {
  std::pair<float, float> range{velocity[grid.at(0, 0, 0)], 0.0f};
  for (int z = 0; z < grid.extent(0); ++z) {
    for (int y = 0; y < grid.extent(1); ++y) {
      for (int x = 0; x < grid.extent(2); ++x) {
        range.first = std::min(range.first, velocity[grid.at(z, y, x)]);
        range.second = std::max(range.second, velocity[grid.at(z, y, x)]);
      }
    }
  }
  return range;
}

// Time down to the bottom and up again at the speed of each depth, and for the wavelet.
double two_way_time(const Grid& grid, const Field& velocity, double frequency) {
  double time = 0;
  for (int z = 0; z < grid.imaged[0]; ++z) {
    const float speed = velocity[grid.imaged_at(z, grid.imaged[1] / 2, grid.imaged[2] / 2)];
    time += 2 * double{grid.spacing} / double{speed};
  }
  return time + 2.5 / frequency;
}

}  // namespace

Migrator::Migrator(Survey survey, const Field& velocity, const Field& smooth_velocity, Team& team,
                   Progress progress)
    : survey_(survey),
      team_(team),
      progress_(std::move(progress)),
      dt_(Propagator::stable_step(survey.grid, velocity)),
      true_waves_(survey.grid, velocity, dt_, team),
      smooth_waves_(survey.grid, smooth_velocity, dt_, team) {
  const Grid& grid = survey_.grid;
  // Ten points for the length of the slowest wave at the peak: four at the highest frequency.
  if (survey_.frequency <= 0) {
    survey_.frequency = range_of(grid, velocity).first / (10 * grid.spacing);
  }
  if (survey_.steps <= 0) {
    survey_.steps =
        static_cast<int>(two_way_time(grid, velocity, double{survey_.frequency}) / double{dt_});
  }
  wavelet_.resize(static_cast<std::size_t>(survey_.steps));
  for (int n = 0; n < survey_.steps; ++n) {
    const double phase = 3.14159265358979 * double{survey_.frequency} *
                         (n * double{dt_} - 1.2 / double{survey_.frequency});
    wavelet_[static_cast<std::size_t>(n)] =
        static_cast<float>((1 - 2 * phase * phase) * std::exp(-phase * phase));
  }
  for (int y = 0; y < grid.imaged[1]; y += survey_.receiver_spacing) {
    for (int x = 0; x < grid.imaged[2]; x += survey_.receiver_spacing) {
      receivers_.push_back(grid.imaged_at(kSourceDepth, y, x));
    }
  }
}

std::ptrdiff_t Migrator::source_of(int shot) const {
  const Grid& grid = survey_.grid;
  return grid.imaged_at(kSourceDepth, grid.imaged[1] / 2,
                        (2 * shot + 1) * grid.imaged[2] / (2 * survey_.shots));
}

void Migrator::plan(int phases) {
  total_ = done_ + static_cast<std::uint64_t>(phases) * static_cast<std::uint64_t>(survey_.shots) *
                       static_cast<std::uint64_t>(survey_.steps);
}

void Migrator::tell() {
  ++done_;
  if (progress_) progress_(done_, total_);
}

void Migrator::shoot(Propagator& waves, int shot, const std::function<void(int)>& after) {
  const std::ptrdiff_t source = source_of(shot);
  waves.clear();
  for (int n = 0; n < survey_.steps; ++n) {
    waves.step();
    waves.inject(source, wavelet_[static_cast<std::size_t>(n)]);
    after(n);
    tell();
  }
}

void Migrator::record(const Propagator& waves, int step, Traces& traces) const {
  float* row = traces.data() + static_cast<std::size_t>(step) * receivers_.size();
  for (std::size_t i = 0; i < receivers_.size(); ++i) row[i] = waves.value(receivers_[i]);
}

std::vector<Traces> Migrator::observe() {
  plan(3);
  std::vector<Traces> all;
  for (int shot = 0; shot < survey_.shots; ++shot) {
    Traces& traces = all.emplace_back(samples_per_shot());
    shoot(true_waves_, shot, [&](int n) { record(true_waves_, n, traces); });
  }
  return all;
}

void Migrator::migrate_shot(const Traces& observed, int shot, firn::FrameStore& store,
                            Migration& result) {
  const Grid& grid = survey_.grid;
  Propagator& waves = smooth_waves_;
  Traces residual(observed.size());
  {
    const Timed timed(result.times.forward);
    firn::ArrayView frame = firn::view(waves.field(), store.shape());
    frame.strides = {grid.plane(), grid.pitch(), 1, 0};
    shoot(waves, shot, [&](int n) {
      record(waves, n, residual);
      if (n % survey_.frame_interval != 0) return;
      const Timed putting(result.times.put);
      frame.data = waves.field() + grid.imaged_at(0, 0, 0);
      check(store.put(static_cast<std::uint64_t>(n), frame));
      ++result.frames;
    });
  }
  // What the smooth model does not explain: the reflections.
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = observed[i] - residual[i];

  const Timed timed(result.times.backward);
  waves.clear();
  const int rows = grid.imaged[0] * grid.imaged[1];
  for (int n = survey_.steps - 1; n >= 0; --n) {
    waves.step();
    const float* row = residual.data() + static_cast<std::size_t>(n) * receivers_.size();
    for (std::size_t i = 0; i < receivers_.size(); ++i) waves.inject(receivers_[i], row[i]);
    if (n % survey_.frame_interval == 0) {
      const auto frame = [&] {
        const Timed getting(result.times.get);
        return firn_cli::value_or_fail(store.hold(static_cast<std::uint64_t>(n)),
                                       "the frame store");
      }();
      const auto* values = static_cast<const float*>(frame.data());
      team_.run([&](int member) {
        const Share share = share_of(rows, member, team_.members());
        for (int r = share.first; r < share.last; ++r) {
          const float* here =
              waves.field() + grid.imaged_at(r / grid.imaged[1], r % grid.imaged[1], 0);
          const std::size_t first =
              static_cast<std::size_t>(r) * static_cast<std::size_t>(grid.imaged[2]);
          for (int x = 0; x < grid.imaged[2]; ++x) {
            result.image[first + static_cast<std::size_t>(x)] +=
                values[first + static_cast<std::size_t>(x)] * here[x];
          }
        }
      });
    }
    tell();
  }
}

Migration Migrator::migrate(const std::vector<Traces>& observed, firn::StoreOptions options) {
  const auto& n = survey_.grid.imaged;
  plan(2);
  Migration result;
  result.image.assign(survey_.grid.imaged_count(), 0.0f);
  result.frame_bytes = survey_.grid.imaged_count() * sizeof(float);
  options.type = firn::Type::f32;
  options.shape = {static_cast<std::uint64_t>(n[0]), static_cast<std::uint64_t>(n[1]),
                   static_cast<std::uint64_t>(n[2])};
  for (int shot = 0; shot < survey_.shots; ++shot) {
    firn::FrameStore store =
        firn_cli::value_or_fail(firn::FrameStore::create(options), "the frame store");
    const double cpu_before = thread_cpu_seconds();
    migrate_shot(observed[static_cast<std::size_t>(shot)], shot, store, result);
    result.times.caller_cpu += thread_cpu_seconds() - cpu_before;
    add(store.stats(), result.store);
  }
  return result;
}

std::vector<float> sharpened(const Grid& grid, const std::vector<float>& image) {
  const auto& n = grid.imaged;
  const auto index = [&](int z, int y, int x) {
    return (static_cast<std::size_t>(z) * static_cast<std::size_t>(n[1]) +
            static_cast<std::size_t>(y)) *
               static_cast<std::size_t>(n[2]) +
           static_cast<std::size_t>(x);
  };
  std::vector<float> result(image.size(), 0.0f);
  for (int z = 1; z + 1 < n[0]; ++z) {
    for (int y = 1; y + 1 < n[1]; ++y) {
      for (int x = 1; x + 1 < n[2]; ++x) {
        result[index(z, y, x)] = 6 * image[index(z, y, x)] - image[index(z - 1, y, x)] -
                                 image[index(z + 1, y, x)] - image[index(z, y - 1, x)] -
                                 image[index(z, y + 1, x)] - image[index(z, y, x - 1)] -
                                 image[index(z, y, x + 1)];
      }
    }
  }
  return result;
}

}  // namespace rtm
