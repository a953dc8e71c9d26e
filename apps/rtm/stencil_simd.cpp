// The stencil with Highway, in tiles of rows whose nine planes stay in a core's cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stencil_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include <algorithm>

#include "stencil.hpp"

HWY_BEFORE_NAMESPACE();
namespace rtm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The values of a row's vector at `now` and the results at `out`; what lies behind the row's end is
// multiplied by a damping of 0.
struct Row {
  const float* now;
  const float* factor;
  const float* damping_x;
  float* out;
  float damping;
};

HWY_INLINE void step_row(const Row& row, std::ptrdiff_t pitch, std::ptrdiff_t plane, int count) {
  const hn::ScalableTag<float> d;
  const auto c0 = hn::Set(d, 3 * kSecondDerivative[0]);
  const auto c1 = hn::Set(d, kSecondDerivative[1]);
  const auto c2 = hn::Set(d, kSecondDerivative[2]);
  const auto c3 = hn::Set(d, kSecondDerivative[3]);
  const auto c4 = hn::Set(d, kSecondDerivative[4]);
  const auto damping = hn::Set(d, row.damping);
  for (int x = 0; x < count; x += static_cast<int>(hn::Lanes(d))) {
    const float* HWY_RESTRICT p = row.now + x;
    const auto ring = [&](std::ptrdiff_t n) {
      const auto along_x = hn::Add(hn::LoadU(d, p - n), hn::LoadU(d, p + n));
      const auto along_y = hn::Add(hn::LoadU(d, p - n * pitch), hn::LoadU(d, p + n * pitch));
      const auto along_z = hn::Add(hn::LoadU(d, p - n * plane), hn::LoadU(d, p + n * plane));
      return hn::Add(hn::Add(along_x, along_y), along_z);
    };
    const auto now = hn::LoadU(d, p);
    auto laplacian = hn::Mul(c0, now);
    laplacian = hn::MulAdd(c1, ring(1), laplacian);
    laplacian = hn::MulAdd(c2, ring(2), laplacian);
    laplacian = hn::MulAdd(c3, ring(3), laplacian);
    laplacian = hn::MulAdd(c4, ring(4), laplacian);
    const auto g = hn::Mul(damping, hn::LoadU(d, row.damping_x + x));
    const auto old = hn::LoadU(d, row.out + x);
    const auto inner = hn::MulAdd(hn::LoadU(d, row.factor + x), laplacian,
                                  hn::NegMulAdd(g, old, hn::Add(now, now)));
    hn::StoreU(hn::Mul(g, inner), d, row.out + x);
  }
}

void step_planes(const Grid& grid, const StepInput& input, int first, int last) {
  const std::ptrdiff_t pitch = grid.pitch(), plane = grid.plane();
  constexpr std::ptrdiff_t kTileBytes = 192 << 10;  // of the nine planes: within a 512 KiB cache
  const int rows = std::max<int>(
      4, static_cast<int>(kTileBytes / (9 * pitch * static_cast<std::ptrdiff_t>(sizeof(float)))));
  for (int tile = 0; tile < grid.extent(1); tile += rows) {
    const int end = std::min(tile + rows, grid.extent(1));
    for (int z = first; z < last; ++z) {
      for (int y = tile; y < end; ++y) {
        const std::ptrdiff_t i = grid.at(z, y, 0);
        step_row({input.now + i, input.factor + i, input.damping_x, input.old_then_next + i,
                  input.damping_z[z] * input.damping_y[y]},
                 pitch, plane, grid.extent(2));
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rtm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rtm {
HWY_EXPORT(step_planes);

void step(const Grid& grid, const StepInput& input, int first, int last) {
  HWY_DYNAMIC_DISPATCH(step_planes)(grid, input, first, last);
}
}  // namespace rtm
#endif
