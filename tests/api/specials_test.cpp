// NaN, infinities, zeros, subnormal numbers and masks.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

template <class T>
class Specials : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Specials, ValueTypes);

TYPED_TEST(Specials, ReturnBitForBitWhereverTheyAre) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const std::size_t points : {1u, 10u, 300u, 2000u}) {
      for (const Bound bound :
           {Bound::abs(1e-3), Bound::rel(1e-3), Bound::psnr(60), Bound::lossless()}) {
        auto values = make_field<TypeParam>({13, 15, 17}, Kind::smooth);
        test::sprinkle_specials(values, points, points);
        Options options;
        options.pipeline = pipeline;
        options.bound = bound;
        test::expect_promises(values, {13, 15, 17}, options);
      }
    }
  }
}

TYPED_TEST(Specials, AloneMakeAnArray) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const TypeParam value : test::special_values<TypeParam>()) {
      for (const Bound bound : {Bound::abs(1e-3), Bound::rel(1e-3), Bound::psnr(60)}) {
        Options options;
        options.pipeline = pipeline;
        options.bound = bound;
        test::expect_promises(std::vector<TypeParam>(100, value), {100}, options);
        test::expect_promises(std::vector<TypeParam>{value}, {1}, options);
      }
    }
    auto specials = test::special_values<TypeParam>();
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1.0);
    test::expect_promises(specials, {specials.size()}, options);
  }
}

// Nothing has a code yet when the second row, or piece of one, comes.
TYPED_TEST(Specials, MayFillWholeRowsBehindAHugeValue) {
  constexpr auto kNaN = std::numeric_limits<TypeParam>::quiet_NaN();
  constexpr auto kHuge = std::numeric_limits<TypeParam>::max() / TypeParam(1e8);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const TypeParam huge : {kHuge, -kHuge}) {
      for (const auto& [shape, chunk] : {std::pair(Shape{8, 1024}, Shape{8, 512}),
                                         {Shape{8, 1024}, Shape{8, 50}},
                                         {Shape{200000}, Shape{200000}}}) {
        auto values = make_field<TypeParam>(shape, Kind::smooth);
        std::fill_n(values.begin(), shape.rank == 1 ? 140000 : 2 * 1024, kNaN);
        values[5] = huge;
        Options options;
        options.pipeline = pipeline;
        options.chunk = chunk;
        options.bound = Bound::abs(1e-3);
        test::expect_promises(values, shape, options);
      }
    }
  }
}

TYPED_TEST(Specials, NaNsWithPayloadsFillAWholeChunk) {
  std::vector<TypeParam> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto infinity = test::bits_of(std::numeric_limits<TypeParam>::infinity());
    values[i] =
        test::from_bits<TypeParam>(static_cast<test::BitsOf<TypeParam>>(infinity | (1 + i % 1000)));
  }
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1e-3);
    test::expect_promises(values, {5000}, options);
  }
}

TYPED_TEST(Specials, DoNotDisturbTheirNeighbours) {
  const auto plain = make_field<TypeParam>({64, 64}, Kind::noisy);
  auto holed = plain;
  for (std::size_t i = 0; i < holed.size(); i += 97) {
    holed[i] = std::numeric_limits<TypeParam>::quiet_NaN();
  }
  Options options;
  options.bound = Bound::abs(1e-2);
  options.pipeline = Pipeline::contexts;  // quantises each value by itself
  const auto decoded_plain =
      test::decompressed<TypeParam>(test::compressed(plain, {64, 64}, options), {64, 64});
  const auto decoded_holed =
      test::decompressed<TypeParam>(test::compressed(holed, {64, 64}, options), {64, 64});
  for (std::size_t i = 0; i < holed.size(); ++i) {
    if (i % 97 != 0) {
      ASSERT_EQ(decoded_plain[i], decoded_holed[i]) << i;
    }
  }
}

TYPED_TEST(Specials, FillValuesAreAMask) {
  const Shape shape{6, 40, 50};
  auto values = make_field<TypeParam>(shape, Kind::smooth);
  std::size_t masked = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t y = i / 50 % 40, x = i % 50;
    if ((y - 20) * (y - 20) + (x - 25) * (x - 25) < 150) values[i] = TypeParam(1e20), ++masked;
  }
  ASSERT_GT(masked, values.size() / 10);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Bound bound :
         {Bound::abs(1e-3), Bound::rel(1e-4), Bound::psnr(80), Bound::lossless()}) {
      Options options;
      options.pipeline = pipeline;
      options.bound = bound;
      options.fill = 1e20;
      const Info info = test::expect_promises(values, shape, options);
      ASSERT_TRUE(info.fill.has_value());
      EXPECT_EQ(static_cast<TypeParam>(*info.fill), TypeParam(1e20));
    }
  }
}

TYPED_TEST(Specials, MasksOfRegionsCostLittle) {
  const Shape shape{8, 64, 64};
  const auto plain = make_field<TypeParam>(shape, Kind::smooth);
  auto masked = plain;
  for (std::size_t i = 0; i < masked.size(); ++i) {
    const std::size_t y = i / 64 % 64, x = i % 64;
    if (x + y < 60) masked[i] = TypeParam(-9999);
  }
  Options options;
  options.pipeline = Pipeline::lorenzo;
  options.bound = Bound::abs(1e-2);
  const auto whole = test::compressed(plain, shape, options);
  options.fill = -9999;
  const auto with_mask = test::compressed(masked, shape, options);
  EXPECT_LT(with_mask.size(), whole.size() + 500);
}

TYPED_TEST(Specials, AFillOfZeroKeepsBothZeros) {
  auto values = make_field<TypeParam>({50, 50}, Kind::noisy);
  for (std::size_t i = 0; i < 500; ++i) values[i * 5] = i % 2 ? TypeParam(0) : -TypeParam(0);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1e-2);
    options.fill = 0;
    test::expect_promises(values, {50, 50}, options);
  }
}

TYPED_TEST(Specials, EveryFillValueIsTaken) {
  for (const TypeParam fill : test::special_values<TypeParam>()) {
    auto values = make_field<TypeParam>({30, 50}, Kind::noisy);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = fill;
    Options options;
    options.bound = Bound::rel(1e-3);
    options.fill = static_cast<double>(fill);
    test::expect_promises(values, {30, 50}, options);
    values.assign(values.size(), fill);
    test::expect_promises(values, {30, 50}, options);
  }
}

TEST(Specials, AFillBeyondFloatIsComparedAsFloat) {
  std::vector<float> values(100, 1.5f);
  values[7] = std::numeric_limits<float>::infinity();
  Options options;
  options.bound = Bound::abs(0.1);
  options.fill = 1e300;
  test::expect_promises(values, {100}, options);
}

}  // namespace
}  // namespace firn
