// One time step of the acoustic wave equation, second order in time and eighth in space: for every
// point, with the Laplacian L of 25 points,
//
//     next = g (2 now - g old + m L now),    m = (velocity * dt / spacing)^2,
//
// where g is 1 but for the sponge, in which it falls towards the outside and damps the wave.
#pragma once

#include <array>
#include <cstddef>

#include "grid.hpp"

namespace rtm {

// Of the second derivative: centre, then distance 1 to 4 on both sides.
inline constexpr std::array<float, 5> kSecondDerivative{-205.0f / 72, 8.0f / 5, -1.0f / 5,
                                                        8.0f / 315, -1.0f / 560};

struct StepInput {
  const float* now;
  const float* factor;     // m
  const float* damping_x;  // g along x, 0 behind the last value; whole vectors
  const float* damping_y;  // the factors along y and z
  const float* damping_z;
  float* old_then_next;
};

// Planes [first, last) of the grid. step_reference says what step computes.
void step(const Grid& grid, const StepInput& input, int first, int last);
void step_reference(const Grid& grid, const StepInput& input, int first, int last);

}  // namespace rtm
