// Kernels of interpolation: every SIMD target against the reference.
#include "predict/interpolation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "container/format.hpp"
#include "support/exact_bound.hpp"

namespace firn::predict {
namespace {

template <class T>
class Interpolation : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Interpolation, Types);

// Rows of neighbours for up to kMaxDirections directions, some with weights of a border.
template <class T>
struct Rows {
  Rows(std::size_t count, int directions) : values(count + kRowSlack) {
    std::mt19937 random(static_cast<unsigned>(count + 7));
    std::normal_distribution<double> noise;
    const auto fill = [&](std::vector<T>& row) {
      row.resize(count + kRowSlack);
      for (T& value : row) value = static_cast<T>(noise(random));
      if (count > 5) row[count / 2] = std::numeric_limits<T>::quiet_NaN();
      if (count > 9) row[count / 3] = std::numeric_limits<T>::max();
    };
    fill(values);
    neighbours.resize(static_cast<std::size_t>(directions) * kStencilTaps);
    for (auto& row : neighbours) fill(row);
    for (int k = 0; k < directions; ++k) {
      Direction<T> direction{};
      for (std::size_t tap = 0; tap < kStencilTaps; ++tap) {
        direction.row[tap] = neighbours[static_cast<std::size_t>(k) * kStencilTaps + tap].data();
      }
      set_weights(k != 1, k != 2, k == 0, direction);
      list.push_back(direction);
    }
  }
  std::vector<T> values;
  std::vector<std::vector<T>> neighbours;
  std::vector<Direction<T>> list;
};

TYPED_TEST(Interpolation, CostsOfBasesAreTheReferencesOnEveryTarget) {
  for (const std::size_t count : {1, 3, 8, 17, 64, 127, 1000}) {
    for (int directions = 1; directions <= kMaxDirections; ++directions) {
      const Rows<TypeParam> rows(count, directions);
      const auto costs_of = [&](simd::Target target) {
        std::vector<std::uint32_t> costs(32, 5);
        interpolation_kernels<TypeParam>(target).base_costs(
            rows.list.data(), directions, rows.values.data(), count, TypeParam(100), costs.data());
        return costs;
      };
      const auto expected = costs_of(simd::Target::reference);
      EXPECT_GT(expected[1], 5u);
      for (const simd::Target target : simd::available_targets()) {
        EXPECT_EQ(costs_of(target), expected)
            << count << ' ' << directions << ' ' << simd::name_of(target);
      }
    }
  }
}

TYPED_TEST(Interpolation, CorrectionsAreTheReferencesOnEveryTarget) {
  using T = TypeParam;
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  for (const std::size_t count : {1, 3, 8, 17, 64, 127, 1000}) {
    std::vector<T> cells(3 * (count + kRowSlack));
    for (T& cell : cells) cell = static_cast<T>(noise(random));
    cells[count] = std::numeric_limits<T>::quiet_NaN();
    cells[count + 9] = std::numeric_limits<T>::max();
    for (int pairs = 0; pairs <= kMaxStencilPairs; ++pairs) {
      Stencil<T> stencil;
      stencil.pairs = pairs;
      stencil.own = static_cast<T>(noise(random));
      for (int g = 0; g < pairs; ++g) {
        const auto place = static_cast<std::size_t>(g);
        stencil.offset[place] = {g % 7 - 3, 2 * static_cast<std::ptrdiff_t>(kRowSlack) - g};
        stencil.weight[place] = static_cast<T>(noise(random));
      }
      const auto corrected = [&](simd::Target target) {
        std::vector<T> points(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(count));
        points.resize(count + kRowSlack);
        interpolation_kernels<T>(target).correct(stencil, cells.data() + 3, count, points.data());
        points.resize(count);
        std::vector<std::uint8_t> bytes(count * sizeof(T));
        std::memcpy(bytes.data(), points.data(), bytes.size());
        return bytes;
      };
      const auto expected = corrected(simd::Target::reference);
      for (const simd::Target target : simd::available_targets()) {
        EXPECT_EQ(corrected(target), expected)
            << count << ' ' << pairs << ' ' << simd::name_of(target);
      }
    }
  }
}

TYPED_TEST(Interpolation, PredictionsAndContextsAreTheReferencesOnEveryTarget) {
  using T = TypeParam;
  for (const std::size_t count : {1, 3, 8, 17, 64, 127, 1000}) {
    std::vector<std::uint8_t> magnitudes(count + 2 * kRowSlack);
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      magnitudes[i] = static_cast<std::uint8_t>(i % 5 == 0 ? 255 : i % 7);
    }
    for (int directions = 1; directions <= kMaxDirections; ++directions) {
      Rows<T> rows(count, directions);
      for (Direction<T>& each : rows.list) each.magnitude = {&magnitudes[0], &magnitudes[3]};
      for (const bool linear : {false, true}) {
        for (const bool pointwise : {false, true}) {
          const auto predicted = [&](simd::Target target) {
            const auto& kernels = interpolation_kernels<T>(target);
            std::vector<T> points(count + kRowSlack);
            std::vector<std::uint8_t> contexts(count + kRowSlack);
            (pointwise ? kernels.predict_pointwise : kernels.predict)(
                rows.list.data(), directions, linear, count, T(30), 20, points.data(),
                contexts.data());
            contexts.resize(count);
            // NaN of any sign and payload is the same.
            for (std::size_t i = 0; i < count; ++i) {
              const T point = points[i] == points[i] ? points[i] : T(12345);
              const auto* bytes = reinterpret_cast<const std::uint8_t*>(&point);
              contexts.insert(contexts.end(), bytes, bytes + sizeof(T));
            }
            return contexts;
          };
          const auto expected = predicted(simd::Target::reference);
          for (const simd::Target target : simd::available_targets()) {
            EXPECT_EQ(predicted(target), expected) << count << ' ' << directions << ' ' << linear
                                                   << pointwise << ' ' << simd::name_of(target);
          }
        }
      }
    }
  }
}

TYPED_TEST(Interpolation, RowsAreSplitAndJoinedOnEveryTarget) {
  using T = TypeParam;
  for (const simd::Target target : simd::available_targets()) {
    const auto& kernels = interpolation_kernels<T>(target);
    for (const std::size_t count : {1, 2, 3, 15, 16, 17, 33, 64, 100, 127}) {
      // No more than is readable, so that a sanitizer sees what is read beyond it.
      std::vector<T> row(count);
      for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<T>(i);
      std::vector<T> even((count + 1) / 2), odd(count / 2), joined(count);
      kernels.every_other(row.data(), count, even.size(), even.data());
      if (count > 1) kernels.every_other(row.data() + 1, count - 1, odd.size(), odd.data());
      for (std::size_t i = 0; i < even.size(); ++i) ASSERT_EQ(even[i], row[2 * i]);
      for (std::size_t i = 0; i < odd.size(); ++i) ASSERT_EQ(odd[i], row[2 * i + 1]);
      kernels.join(even.data(), odd.data(), count, joined.data());
      EXPECT_EQ(joined, row) << count << ' ' << simd::name_of(target);
    }
  }
}

// Values and predictions at and around small multiples of half the bound, where differences are
// ties or are rounded to the bound: what passes is truly within it, on every target.
TYPED_TEST(Interpolation, WhatIsQuantizedIsWithinTheBound) {
  using T = TypeParam;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const int margin : {10, 5, format::kGrid, format::kGrid + 2, format::kGrid + 6}) {
    for (const double bound : {0x1p-10, 0x1.8p-10, 0x1.4p3, 1e-3}) {
      const quantize::Scale<T> scale(static_cast<T>(bound), margin);
      std::vector<T> values, predictions;
      const auto around = [&](int halves) {
        const T at = static_cast<T>(halves) * scale.bound / 2;
        return std::array<T, 3>{std::nextafter(at, -kInfinity), at, std::nextafter(at, kInfinity)};
      };
      for (int a = -9; a <= 9; ++a) {
        for (int b = -9; b <= 9; ++b) {
          for (const T value : around(a)) {
            for (const T prediction : around(b)) {
              values.push_back(value);
              predictions.push_back(prediction);
            }
          }
        }
      }
      const std::size_t count = values.size();
      values.resize(count + kRowSlack);
      predictions.resize(count + kRowSlack);
      std::size_t ties = 0;
      for (std::size_t i = 0; i < count; ++i) {
        T point = predictions[i], error = 0;
        std::int32_t code = 0;
        const bool good = quantize_point(values[i], scale, kInfinity, &point, &code, &error);
        const bool within =
            test::within_exactly(static_cast<double>(point), static_cast<double>(values[i]),
                                 static_cast<double>(scale.bound));
        ASSERT_TRUE(!good || within) << std::hexfloat << values[i] << " " << predictions[i] << " "
                                     << scale.bound << " " << margin;
        ties += good && error == scale.bound;
        for (const simd::Target target : simd::available_targets()) {
          std::vector<T> row(1 + kRowSlack, values[i]), points(1 + kRowSlack, predictions[i]);
          std::vector<std::int32_t> codes(1 + kRowSlack);
          std::vector<std::uint8_t> magnitudes(1 + kRowSlack);
          T largest = 0;
          const bool same = interpolation_kernels<T>(target).quantize(
              row.data(), 1, scale, kInfinity, points.data(), codes.data(), magnitudes.data(),
              &largest);
          ASSERT_EQ(same, good) << simd::name_of(target);
          ASSERT_EQ(codes[0], code);
          ASSERT_EQ(points[0], point);
        }
      }
      if (scale.step == 2 * scale.bound) {
        EXPECT_GT(ties, 10u);
      }
    }
  }
}

TEST(InterpolationCost, ACostIsAboutTheBitsOfAResidual) {
  EXPECT_EQ(base_cost(0), 0u);
  EXPECT_EQ(base_cost(0.5f), 1u << 15);
  EXPECT_EQ(base_cost(-1.5f), 2u << 15);
  EXPECT_EQ(base_cost(std::numeric_limits<float>::quiet_NaN()), 0u);
  EXPECT_EQ(base_cost(std::numeric_limits<float>::infinity()), 0u);
}

}  // namespace
}  // namespace firn::predict
