#include "velocity_model.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <vector>

#include "../firn/failure.hpp"

namespace rtm {
namespace {

// velocity(z, y, x) with indices of the imaged part, of whose border the sponge takes the nearest.
Field fill(const Grid& grid, const std::function<float(int, int, int)>& velocity) {
  Field field(grid);
  const auto inside = [&](int i, int axis) {
    return std::clamp(i - grid.sponge, 0, grid.imaged[static_cast<std::size_t>(axis)] - 1);
  };
  for (int z = 0; z < grid.extent(0); ++z) {
    for (int y = 0; y < grid.extent(1); ++y) {
      for (int x = 0; x < grid.extent(2); ++x) {
        field[grid.at(z, y, x)] = velocity(inside(z, 0), inside(y, 1), inside(x, 2));
      }
    }
  }
  return field;
}

Field layers(const Grid& grid) {
  const double depth = grid.imaged[0];
  return fill(grid, [&](int z, int, int) {
    if (z < first_interface(grid)) return 1500.0f;
    if (z < 0.65 * depth) return 2000.0f;
    if (z < 0.85 * depth) return 2600.0f;
    return 3200.0f;
  });
}

// A body like a mushroom in sediments that grow faster with depth.
Field salt(const Grid& grid) {
  const auto& n = grid.imaged;
  return fill(grid, [&](int z, int y, int x) {
    const double depth = static_cast<double>(z) / n[0];
    const double v = (static_cast<double>(y) + 0.5) / n[1] - 0.5;
    const double u = (static_cast<double>(x) + 0.5) / n[2] - 0.5;
    const double ripple = 0.03 * std::sin(9 * u) * std::cos(7 * v);
    const double head =
        std::pow(u / 0.3, 2) + std::pow(v / 0.26, 2) + std::pow((depth - 0.48 + ripple) / 0.14, 2);
    const double stem = std::pow(u / 0.1, 2) + std::pow(v / 0.1, 2);
    if (head < 1 || (depth > 0.48 && stem < 1)) return 4500.0f;
    const double bed = std::floor(8 * (depth + 0.05 * std::cos(4 * u + 2 * v)));
    return static_cast<float>(1500 + 220 * std::max(0.0, bed));
  });
}

Field from_file(const Grid& grid, const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw firn_cli::Failure(
        firn_cli::ExitCode::cannot_read,
        "no model and no readable file: " + path + " (models are layers and salt)");
  }
  const auto size = static_cast<std::size_t>(file.tellg());
  if (size != grid.imaged_count() * sizeof(float)) {
    throw firn_cli::Failure(firn_cli::ExitCode::size_mismatch,
                            path + " has " + std::to_string(size) +
                                " bytes; a velocity of f32 for every point of --size takes " +
                                std::to_string(grid.imaged_count() * sizeof(float)));
  }
  std::vector<float> values(grid.imaged_count());
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size));
  const bool sane = std::all_of(values.begin(), values.end(),
                                [](float v) { return v >= 100.0f && v <= 20000.0f; });
  if (!file || !sane) {
    throw firn_cli::Failure(firn_cli::ExitCode::cannot_read,
                            path + " holds values that are no velocities in metres a second");
  }
  return fill(grid, [&](int z, int y, int x) {
    return values[(static_cast<std::size_t>(z) * static_cast<std::size_t>(grid.imaged[1]) +
                   static_cast<std::size_t>(y)) *
                      static_cast<std::size_t>(grid.imaged[2]) +
                  static_cast<std::size_t>(x)];
  });
}

// A running mean over 2 * radius + 1 values, the ends continued.
void box_filter(float* values, std::ptrdiff_t lag, int count, int radius,
                std::vector<float>& copy) {
  copy.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) copy[static_cast<std::size_t>(i)] = values[i * lag];
  const auto at = [&](int i) {
    return double{copy[static_cast<std::size_t>(std::clamp(i, 0, count - 1))]};
  };
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) sum += at(i);
  for (int i = 0; i < count; ++i) {
    values[i * lag] = static_cast<float>(sum / (2 * radius + 1));
    sum += at(i + radius + 1) - at(i - radius);
  }
}

}  // namespace

int first_interface(const Grid& grid) { return static_cast<int>(0.4 * grid.imaged[0]); }

Field make_model(const Grid& grid, const std::string& name) {
  if (name == "layers") return layers(grid);
  if (name == "salt") return salt(grid);
  return from_file(grid, name);
}

Field smoothed(const Grid& grid, const Field& velocity, int radius) {
  Field result(grid);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    if (velocity[at] > 0) result[at] = 1 / velocity[at];
  }
  std::vector<float> copy;
  for (int pass = 0; pass < 3 && radius > 0; ++pass) {
    for (int a = 0; a < grid.extent(0); ++a) {
      for (int b = 0; b < grid.extent(1); ++b) {
        box_filter(&result[grid.at(a, b, 0)], 1, grid.extent(2), radius, copy);
      }
      for (int b = 0; b < grid.extent(2); ++b) {
        box_filter(&result[grid.at(a, 0, b)], grid.pitch(), grid.extent(1), radius, copy);
      }
    }
    for (int a = 0; a < grid.extent(1); ++a) {
      for (int b = 0; b < grid.extent(2); ++b) {
        box_filter(&result[grid.at(0, a, b)], grid.plane(), grid.extent(0), radius, copy);
      }
    }
  }
  return fill(grid, [&](int z, int y, int x) { return 1 / result[grid.imaged_at(z, y, x)]; });
}

}  // namespace rtm
