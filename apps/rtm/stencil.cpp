#include "stencil.hpp"

namespace rtm {

void step_reference(const Grid& grid, const StepInput& input, int first, int last) {
  const std::array<std::ptrdiff_t, 3> lags{grid.plane(), grid.pitch(), 1};
  for (int z = first; z < last; ++z) {
    for (int y = 0; y < grid.extent(1); ++y) {
      for (int x = 0; x < grid.extent(2); ++x) {
        const std::ptrdiff_t i = grid.at(z, y, x);
        const float* now = input.now + i;
        float laplacian = 3 * kSecondDerivative[0] * now[0];
        for (const std::ptrdiff_t lag : lags) {
          for (int distance = 1; distance <= kHalo; ++distance) {
            laplacian += kSecondDerivative[static_cast<std::size_t>(distance)] *
                         (now[distance * lag] + now[-distance * lag]);
          }
        }
        const float g = input.damping_z[z] * input.damping_y[y] * input.damping_x[x];
        float& old = input.old_then_next[i];
        old = g * (2 * now[0] - g * old + input.factor[i] * laplacian);
      }
    }
  }
}

}  // namespace rtm
