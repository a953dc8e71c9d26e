#include "propagator.hpp"

#include <algorithm>
#include <cmath>

#include "stencil.hpp"

namespace rtm {
namespace {

// Damping along one axis: a Gaussian fall within the sponge (Cerjan and others, 1985), whose width
// it is made for; zeros behind, to the end of any vector.
std::vector<float> damping_of(int imaged, int sponge) {
  const int extent = imaged + 2 * sponge;
  std::vector<float> damping(static_cast<std::size_t>(extent) + 64, 0.0f);
  for (int i = 0; i < extent; ++i) {
    const int depth = std::max({0, sponge - i, i - (extent - 1 - sponge)});
    const double fall = sponge == 0 ? 0 : 0.3 * depth / sponge;
    damping[static_cast<std::size_t>(i)] = static_cast<float>(std::exp(-fall * fall));
  }
  return damping;
}

}  // namespace

Propagator::Propagator(const Grid& grid, const Field& velocity, float dt, Team& team)
    : grid_(grid),
      team_(team),
      factor_(grid),
      scale_(grid),
      now_(grid),
      other_(grid),
      damping_{damping_of(grid.imaged[0], grid.sponge), damping_of(grid.imaged[1], grid.sponge),
               damping_of(grid.imaged[2], grid.sponge)} {
  for (int z = 0; z < grid.extent(0); ++z) {
    for (int y = 0; y < grid.extent(1); ++y) {
      for (int x = 0; x < grid.extent(2); ++x) {
        const std::ptrdiff_t i = grid.at(z, y, x);
        const float courant = velocity[i] * dt / grid.spacing;
        factor_[i] = courant * courant;
        scale_[i] = factor_[i] * damping_[0][static_cast<std::size_t>(z)] *
                    damping_[1][static_cast<std::size_t>(y)] *
                    damping_[2][static_cast<std::size_t>(x)];
      }
    }
  }
}

void Propagator::clear() {
  now_.clear();
  other_.clear();
}

void Propagator::step() {
  const StepInput input{now_.data(),        factor_.data(),     damping_[2].data(),
                        damping_[1].data(), damping_[0].data(), other_.data()};
  team_.run([&](int member) {
    const Share share = share_of(grid_.extent(0), member, team_.members());
    rtm::step(grid_, input, share.first, share.last);
  });
  now_.swap(other_);
}

float Propagator::stable_step(const Grid& grid, const Field& velocity) {
  float fastest = 0;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    fastest = std::max(fastest, velocity[static_cast<std::ptrdiff_t>(i)]);
  }
  // The highest frequency of the grid must stay: m * 3 * sum |coefficients| <= 4.
  double sum = std::abs(double{kSecondDerivative[0]});
  for (std::size_t k = 1; k < kSecondDerivative.size(); ++k) {
    sum += 2 * std::abs(double{kSecondDerivative[k]});
  }
  return static_cast<float>(0.9 * 2 / std::sqrt(3 * sum)) * grid.spacing / fastest;
}

}  // namespace rtm
