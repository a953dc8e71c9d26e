// A wave field that marches in time. Steps are linear and their own adjoint: values injected at
// points A and recorded at points B give the same inner products as values injected backward in
// time at B and recorded at A (a test checks it).
#pragma once

#include <vector>

#include "grid.hpp"
#include "team.hpp"

namespace rtm {

class Propagator {
 public:
  // `velocity` is of a whole grid, in metres a second.
  Propagator(const Grid& grid, const Field& velocity, float dt, Team& team);

  void clear();
  void step();
  // Adds to the newest field, scaled by m g of the step, at an index of the grid.
  void inject(std::ptrdiff_t at, float value) { now_[at] += scale(at) * value; }
  float value(std::ptrdiff_t at) const { return now_[at]; }
  const float* field() const { return now_.data(); }

  const Grid& grid() const { return grid_; }

  // The largest stable step for this velocity, with a little to spare.
  static float stable_step(const Grid& grid, const Field& velocity);

 private:
  float scale(std::ptrdiff_t at) const { return scale_[at]; }

  Grid grid_;
  Team& team_;
  Field factor_, scale_, now_, other_;
  std::array<std::vector<float>, 3> damping_;
};

}  // namespace rtm
