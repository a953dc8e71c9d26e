// Reverse-time migration of a survey of shots: each is propagated forward, its frames kept in a
// frame store; its recorded traces are propagated backward, and at every frame's time the two
// fields are multiplied into the image.
#pragma once

#include <cstdint>
#include <firn/store.hpp>
#include <functional>
#include <string>
#include <vector>

#include "grid.hpp"
#include "propagator.hpp"
#include "team.hpp"

namespace rtm {

struct Survey {
  Grid grid;
  float frequency = 0;  // of the Ricker wavelet, hertz; 0: what the grid can carry
  int steps = 0;        // 0: down to the bottom and up again
  int frame_interval = 8;
  int shots = 1;
  int receiver_spacing = 2;  // grid points
};

// Receivers and sources lie this many points below the top of the imaged part.
inline constexpr int kSourceDepth = 3;

struct Times {
  double forward = 0, backward = 0;  // with everything in them
  double put = 0, get = 0;           // spent in calls of the store
  double caller_cpu = 0;             // of the thread that calls the store and works, without waits
  double total() const { return forward + backward; }
};

struct Migration {
  std::vector<float> image;  // of the imaged part
  Times times;
  firn::StoreStats store;  // sums over the shots
  std::uint64_t frames = 0;
  std::uint64_t frame_bytes = 0;
};

// One float for every step and receiver.
using Traces = std::vector<float>;

class Migrator {
 public:
  // Told after every step how many are done, and of how many; may be empty.
  using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;
  Migrator(Survey survey, const Field& velocity, const Field& smooth_velocity, Team& team,
           Progress progress = {});

  // What the receivers record of every shot in the true model: the survey's data.
  std::vector<Traces> observe();

  // `store` needs no type and shape. Throws firn_cli::Failure when the store fails.
  Migration migrate(const std::vector<Traces>& observed, firn::StoreOptions store);

  const Survey& survey() const { return survey_; }
  std::size_t samples_per_shot() const {
    return static_cast<std::size_t>(survey_.steps) * receivers_.size();
  }

 private:
  std::ptrdiff_t source_of(int shot) const;
  // Steps the shot through the model; `after(step)` sees every new field.
  void shoot(Propagator& waves, int shot, const std::function<void(int step)>& after);
  void record(const Propagator& waves, int step, Traces& traces) const;
  void migrate_shot(const Traces& observed, int shot, firn::FrameStore& store, Migration& result);
  void plan(int phases);  // how many times the shots are stepped through from now on
  void tell();

  Survey survey_;
  Team& team_;
  Progress progress_;
  std::uint64_t done_ = 0, total_ = 0;  // steps
  float dt_;
  std::vector<float> wavelet_;
  std::vector<std::ptrdiff_t> receivers_;
  Propagator true_waves_, smooth_waves_;
};

// The image's Laplacian, negated: without the smooth part that waves make on their way.
std::vector<float> sharpened(const Grid& grid, const std::vector<float>& image);

}  // namespace rtm
