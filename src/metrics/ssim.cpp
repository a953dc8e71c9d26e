// Structural similarity with uniform windows of 7 values an axis and sample covariances, averaged
// over the windows that lie in the field: what scikit-image computes by default.
#include <algorithm>
#include <cmath>
#include <vector>

#include "metrics/parts.hpp"

namespace firn::metrics {
namespace {

constexpr std::size_t kWindow = 7;
constexpr std::size_t kHalo = kWindow - 1;

// What a window's statistics are made of, as sums over it.
enum Quantity { kX, kY, kXX, kYY, kXY, kQuantities };

// Adds to each of `count` values the kWindow - 1 that follow it at `stride`.
void sum_along(double* values, std::size_t count, std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i) {
    double sum = values[i];
    for (std::size_t k = 1; k < kWindow; ++k) sum += values[i + k * stride];
    values[i] = sum;
  }
}

struct Sum {
  double similarity = 0;
  std::uint64_t windows = 0;
};

class Similarity {
 public:
  Similarity(double range, bool is_volume)
      : c1_(0.01 * range * 0.01 * range),
        c2_(0.03 * range * 0.03 * range),
        size_(is_volume ? kWindow * kWindow * kWindow : kWindow * kWindow) {}

  // Of one window; NaN when it has an excluded value. Values are shifted by `middle`.
  double operator()(const double* sums, double middle) const {
    const auto n = static_cast<double>(size_);
    const double x = sums[kX] / n, y = sums[kY] / n;
    const double sample = n / (n - 1);
    const double xx = sample * (sums[kXX] / n - x * x);
    const double yy = sample * (sums[kYY] / n - y * y);
    const double xy = sample * (sums[kXY] / n - x * y);
    const double mean_x = x + middle, mean_y = y + middle;
    return (2 * mean_x * mean_y + c1_) * (2 * xy + c2_) /
           ((mean_x * mean_x + mean_y * mean_y + c1_) * (xx + yy + c2_));
  }

 private:
  double c1_, c2_;
  std::size_t size_;
};

}  // namespace

std::optional<double> measure_ssim(const PairReader& pair, double range, double middle,
                                   pipelines::Workers& workers) {
  const Shape& shape = pair.shape();
  const int rank = shape.rank;
  if (rank < 2 || !(range > 0)) return {};
  const bool is_volume = rank >= 3;
  for (int k = is_volume ? rank - 3 : 0; k < rank; ++k) {
    if (shape.extents[k] < kWindow) return {};
  }
  // First values of the windows, cut into tiles; the slowest axis of rank 4 one by one.
  Shape firsts = shape;
  Shape tile_shape;
  tile_shape.rank = rank;
  for (int k = 0; k < rank; ++k) {
    const bool windowed = k >= rank - 3;
    if (windowed) firsts.extents[k] -= kHalo;
    tile_shape.extents[k] = !windowed ? 1 : k == rank - 3 ? 16 : 64;
  }
  const Grid grid(firsts, tile_shape);
  const Similarity similarity(range, is_volume);
  std::vector<Sum> sums(grid.count());
  workers.for_each(grid.count(), [&](std::uint64_t number, auto&) {
    const Region region = grid.region(number);
    const int last = rank - 1;
    const std::size_t out_width = region.shape.extents[last];
    const std::size_t out_height = region.shape.extents[last - 1];
    const std::size_t out_depth = is_volume ? region.shape.extents[last - 2] : 1;
    const std::size_t width = out_width + kHalo;
    const std::size_t height = out_height + kHalo;
    const std::size_t depth = is_volume ? out_depth + kHalo : 1;
    const std::size_t plane = height * width;
    const std::size_t size = depth * plane;
    std::vector<double> memory(size * kQuantities);
    std::array<double*, kQuantities> quantity;
    for (int q = 0; q < kQuantities; ++q) quantity[q] = memory.data() + q * size;

    for (std::size_t z = 0; z < depth; ++z) {
      for (std::size_t y = 0; y < height; ++y) {
        Position at = region.origin;
        at[last - 1] += y;
        if (is_volume) at[last - 2] += z;
        const std::size_t row = z * plane + y * width;
        double* const x_row = quantity[kX] + row;
        double* const y_row = quantity[kY] + row;
        pair.read(at, width, x_row, y_row);
        for (std::size_t i = 0; i < width; ++i) {
          x_row[i] -= middle;
          y_row[i] += x_row[i];
          quantity[kXX][row + i] = x_row[i] * x_row[i];
          quantity[kYY][row + i] = y_row[i] * y_row[i];
          quantity[kXY][row + i] = x_row[i] * y_row[i];
        }
      }
    }
    // Along each axis in turn, in place: a sum only reads what follows it.
    for (double* values : quantity) {
      for (std::size_t row = 0; row < depth * height; ++row) {
        sum_along(values + row * width, out_width, 1);
      }
      for (std::size_t z = 0; z < depth; ++z) {
        sum_along(values + z * plane, out_height * width, width);
      }
      if (is_volume) sum_along(values, out_depth * plane, plane);
    }
    Sum& sum = sums[number];
    for (std::size_t z = 0; z < out_depth; ++z) {
      for (std::size_t y = 0; y < out_height; ++y) {
        for (std::size_t x = 0; x < out_width; ++x) {
          double window[kQuantities];
          for (int q = 0; q < kQuantities; ++q) {
            window[q] = quantity[q][z * plane + y * width + x];
          }
          const double value = similarity(window, middle);
          if (std::isnan(value)) continue;
          sum.similarity += value;
          ++sum.windows;
        }
      }
    }
    return true;
  });
  Sum all;
  for (const Sum& sum : sums) {
    all.similarity += sum.similarity;
    all.windows += sum.windows;
  }
  if (all.windows == 0) return {};
  return all.similarity / static_cast<double>(all.windows);
}

}  // namespace firn::metrics
