// The logarithmic scale: it holds the bound, indices are monotone, and every SIMD target agrees
// with the definition.
#include "quantize/logarithmic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/exact_bound.hpp"
#include "support/fields.hpp"
#include "support/random.hpp"

namespace firn::quantize {
namespace {

template <class T>
class Logarithmic : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Logarithmic, ValueTypes);

constexpr double kBounds[] = {0.5, 0.1, 0x1p-6, 1e-3, 1e-4, 1e-5};

TYPED_TEST(Logarithmic, HoldsTheBoundForNormalNumbers) {
  using T = TypeParam;
  test::Random random(3);
  for (const double bound : kBounds) {
    const LogScale<T> scale(static_cast<T>(bound));
    ASSERT_TRUE(scale.usable());
    std::vector<T> values, decoded;
    for (int i = 0; i < 20000; ++i) {
      T value = std::fabs(test::finite_of_any_magnitude<T>(random));
      if (i % 4 == 0) value = std::ldexp(T{1}, static_cast<int>(random.below(200)) - 100);
      if (i % 4 == 1) value = std::nextafter(value, T{0});
      if (!std::isnormal(value) || value > std::numeric_limits<T>::max() / 2) continue;
      values.push_back(value);
      decoded.push_back(log_value(log_index(value, scale), scale));
    }
    const auto broken =
        test::broken_pointwise_promise(values, decoded, static_cast<double>(scale.bound));
    EXPECT_FALSE(broken) << *broken;
  }
}

TYPED_TEST(Logarithmic, IndicesGrowWithMagnitudes) {
  using T = TypeParam;
  const LogScale<T> scale(static_cast<T>(0x1p-6));
  auto before = log_index(T{1}, scale);
  const auto first = before;
  for (T value = 1; value < 1024; value *= T(1.0009765625)) {
    const auto index = log_index(value, scale);
    EXPECT_GE(index, before);
    EXPECT_LE(index, before + 1);
    before = index;
  }
  // Steps of an ideal logarithm: log(1024) / (2 log(1 + bound)), here at most 4 % more.
  const double ideal = std::log(1024.0) / (2 * std::log1p(0x1p-6));
  EXPECT_LT(static_cast<double>(before - first), ideal * 1.04);
}

TYPED_TEST(Logarithmic, IsRefusedWhereItCannotHoldTheBound) {
  EXPECT_FALSE(LogScale<TypeParam>(std::numeric_limits<TypeParam>::epsilon()).usable());
}

template <class T>
std::vector<T> mixed_values(std::size_t count) {
  auto values = test::make_field<T>({count}, test::Kind::noise, count);
  const auto wild = test::make_field<T>({count}, test::Kind::any_bits, count);
  for (std::size_t i = 0; i < count; i += 3) values[i] = wild[i];
  return values;
}

template <class T, class Q>
void compare_targets() {
  for (const std::size_t count : {1u, 2u, 3u, 7u, 8u, 9u, 63u, 64u, 65u, 300u}) {
    for (const double bound : kBounds) {
      const LogScale<T> scale(static_cast<T>(bound));
      for (const bool clean : {true, false}) {
        auto values = mixed_values<T>(count);
        for (T& value : values) {
          if (clean && (!std::isnormal(value) || std::fabs(value) > T(1e30))) value = T(-0.75);
        }
        const Q base = static_cast<Q>(log_index(values[0], scale));
        const auto& reference = log_kernels<T, Q>(simd::Target::reference);
        std::vector<Q> codes(count);
        const auto outcome = reference.quantize(values.data(), count, scale, base, codes.data());
        EXPECT_TRUE(outcome.within || !clean);
        std::vector<std::uint64_t> flags((count + 63) / 64), signs(count / 64 + 2);
        const T error = reference.flag(values.data(), count, scale, T(0.5), flags.data());
        reference.signs(values.data(), count, signs.data());
        std::vector<T> back(count);
        reference.dequantize(codes.data(), count, scale, base, signs.data(), 0, back.data());
        for (const simd::Target target : simd::available_targets()) {
          SCOPED_TRACE(simd::name_of(target));
          const auto& kernels = log_kernels<T, Q>(target);
          std::vector<Q> found(count);
          const auto row = kernels.quantize(values.data(), count, scale, base, found.data());
          EXPECT_EQ(found, codes);
          EXPECT_EQ(row.within, outcome.within);
          if (outcome.within) {
            EXPECT_EQ(row.max_error, outcome.max_error);
          }
          std::vector<std::uint64_t> found_flags(flags.size()), found_signs(signs.size());
          EXPECT_EQ(kernels.flag(values.data(), count, scale, T(0.5), found_flags.data()), error);
          EXPECT_EQ(found_flags, flags);
          kernels.signs(values.data(), count, found_signs.data());
          EXPECT_EQ(found_signs, signs);
          std::vector<T> decoded(count);
          kernels.dequantize(codes.data(), count, scale, base, signs.data(), 0, decoded.data());
          for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(test::bits_of(decoded[i]), test::bits_of(back[i])) << i;
          }
          // From the middle of a word on.
          std::vector<T> part(count);
          const std::size_t first = count / 3;
          kernels.dequantize(codes.data() + first, count - first, scale, base, signs.data(), first,
                             part.data());
          for (std::size_t i = first; i < count; ++i) {
            EXPECT_EQ(test::bits_of(part[i - first]), test::bits_of(back[i])) << i;
          }
        }
      }
    }
  }
}

TEST(LogarithmicTargets, GiveTheSameCodes) {
  compare_targets<float, std::int32_t>();
  compare_targets<double, std::int32_t>();
  compare_targets<double, std::int64_t>();
}

TYPED_TEST(Logarithmic, TargetsCodePointsAlike) {
  using T = TypeParam;
  constexpr std::size_t kSlack = 64;
  for (const std::size_t count : {1u, 5u, 8u, 13u, 64u, 200u}) {
    for (const double bound : kBounds) {
      const LogScale<T> scale(static_cast<T>(bound));
      if (scale.wide()) continue;
      auto values = mixed_values<T>(count + kSlack);
      auto predictions = test::make_field<T>({count + kSlack}, test::Kind::noise, count + 1);
      predictions[0] = 0;
      const auto& reference = log_point_kernels<T>(simd::Target::reference);
      std::vector<T> points = predictions;
      std::vector<std::int32_t> codes(count + kSlack);
      T error = 0;
      const bool all = reference.quantize(values.data(), count, scale, T(0.25), points.data(),
                                          codes.data(), &error);
      std::vector<T> restored = predictions;
      reference.restore(codes.data(), count, scale, restored.data());
      for (const simd::Target target : simd::available_targets()) {
        SCOPED_TRACE(simd::name_of(target));
        const auto& kernels = log_point_kernels<T>(target);
        std::vector<T> found = predictions;
        std::vector<std::int32_t> found_codes(count + kSlack);
        T found_error = 0;
        EXPECT_EQ(kernels.quantize(values.data(), count, scale, T(0.25), found.data(),
                                   found_codes.data(), &found_error),
                  all);
        EXPECT_EQ(found_error, error);
        std::vector<T> found_restored = predictions;
        kernels.restore(codes.data(), count, scale, found_restored.data());
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_EQ(found_codes[i], codes[i]) << i;
          EXPECT_EQ(test::bits_of(found[i]), test::bits_of(points[i])) << i;
          EXPECT_EQ(test::bits_of(found_restored[i]), test::bits_of(restored[i])) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace firn::quantize
