// Every shape, type, kind of bound and pipeline: the promises hold.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/pipelines.hpp"
#include "support/random.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

const Shape kShapes[] = {{0},           {1},           {2},
                         {17},          {257},         {65537},
                         {0, 5},        {5, 0},        {1, 1},
                         {1, 97},       {97, 1},       {101, 103},
                         {3, 0, 5},     {1, 1, 1},     {7, 11, 13},
                         {2, 1, 301},   {31, 2, 29},   {0, 0, 0, 0},
                         {1, 1, 1, 1},  {3, 5, 7, 11}, {2, 64, 1, 64},
                         {5, 1, 1, 211}};

template <class T>
class Bounds : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Bounds, ValueTypes);

TYPED_TEST(Bounds, HoldForEveryShapeAndKind) {
  for (const Shape& shape : kShapes) {
    for (const Kind kind : test::kAllKinds) {
      const auto values = make_field<TypeParam>(shape, kind, 3);
      for (const Bound bound :
           {Bound::lossless(), Bound::abs(1e-2), Bound::rel(1e-3), Bound::psnr(70)}) {
        Options options;
        options.bound = bound;
        test::expect_promises(values, shape, options);
      }
    }
  }
}

TYPED_TEST(Bounds, HoldForEveryPipelineInSmallChunks) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Shape& shape :
         {Shape{1009}, Shape{61, 67}, Shape{17, 19, 23}, Shape{5, 7, 11, 13}}) {
      for (const Kind kind : {Kind::smooth, Kind::noisy, Kind::wild, Kind::any_bits}) {
        const auto values = make_field<TypeParam>(shape, kind, 4);
        Options options;
        options.pipeline = pipeline;
        options.bound = Bound::abs(1e-3);
        options.chunk.rank = shape.rank;
        for (int k = 0; k < shape.rank; ++k) {
          options.chunk.extents[k] = 4 + 3 * static_cast<std::uint64_t>(k);
        }
        if (shape.rank == 1) options.chunk = {100};
        test::expect_promises(values, shape, options);
        options.bound = Bound::lossless();
        test::expect_promises(values, shape, options);
      }
    }
  }
}

TYPED_TEST(Bounds, HoldFromTheTypesResolutionToBeyondItsRange) {
  const auto smooth = make_field<TypeParam>({40, 50}, Kind::smooth);
  const auto wild = make_field<TypeParam>({40, 50}, Kind::wild);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (int exponent = -320; exponent <= 300; exponent += 20) {
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::abs(std::pow(10.0, exponent));
      if (options.bound.value == 0) continue;
      test::expect_promises(smooth, {40, 50}, options);
      test::expect_promises(wild, {40, 50}, options);
    }
  }
}

TYPED_TEST(Bounds, HoldForPowersOfTwo) {
  const auto values = make_field<TypeParam>({30, 31}, Kind::noisy);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (int exponent = -30; exponent <= 10; ++exponent) {
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::abs(std::ldexp(1.0, exponent));
      test::expect_promises(values, {30, 31}, options);
    }
  }
}

// Codes that need 64 bits, and values that overflow even those.
TEST(Bounds, HoldForDoublesThatNeedWideCodes) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const double scale : {1e3, 1e9, 1e12, 1e15, 1e18}) {
      auto values = make_field<double>({50, 60}, Kind::smooth);
      for (double& value : values) value *= scale;
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::abs(1e-3);
      test::expect_promises(values, {50, 60}, options);
    }
  }
}

TEST(Bounds, HoldWhenOneValueIsFarFromTheRest) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const float outlier : {1e9f, -1e20f, 3e38f}) {
      auto values = make_field<float>({50, 60}, Kind::smooth);
      values[1234] = outlier;
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::abs(1e-3);
      const Info info = test::expect_promises(values, {50, 60}, options);
      if (pipeline == Pipeline::lorenzo) {
        EXPECT_LT(info.compressed_bytes, info.original_bytes / 2) << "one outlier costs it all";
      }
    }
  }
}

// Codes as far from the first as 16 bits allow, and one further; their differences need more bits.
TYPED_TEST(Bounds, HoldWhereCodesJustFit16Bits) {
  using T = TypeParam;
  const Shape shape{7, 9, 300};
  test::Random random(31);
  for (const int limit : {32700, 32766, 32767, 32768, 32800, 32900}) {
    std::vector<T> values(shape.count());
    for (T& value : values) value = static_cast<T>(random.next() % 3 == 0 ? limit : -limit);
    for (std::size_t i = 0; i < 2000; ++i) values[i] = static_cast<T>(i % 5);  // where they begin
    Options options;
    options.bound = Bound::abs(0.5 * (1 + 1.0 / 512));  // steps of about 1
    options.pipeline = Pipeline::blockpack;
    const Info info = test::expect_promises(values, shape, options);
    EXPECT_LT(info.compressed_bytes, info.original_bytes);
  }
}

TYPED_TEST(Bounds, OfPsnrAreMetWithoutWaste) {
  for (const Kind kind : {Kind::smooth, Kind::noisy, Kind::noise}) {
    const auto values = make_field<TypeParam>({64, 65}, kind);
    for (const double decibels : {1.0, 20.0, 40.0, 65.5, 90.0, 120.0, 300.0}) {
      Options options;
      options.bound = Bound::psnr(decibels);
      test::expect_promises(values, {64, 65}, options);
      if (decibels > 70 || decibels < 30) continue;
      const auto stream = test::compressed(values, {64, 65}, options);
      const auto comparison = verify(test::const_view_of(values, {64, 65}), stream);
      ASSERT_TRUE(comparison.ok());
      EXPECT_LT(comparison->psnr_db, decibels + 6) << test::name_of(kind);
    }
  }
}

// Steps between the largest numbers, which no error is made of, so that the search for a bound goes
// as far as it can.
TYPED_TEST(Bounds, OfPsnrEndAtTheRange) {
  for (const double share : {1e-300, 1e-30, 0.9}) {
    std::vector<TypeParam> values(600);
    const auto top =
        static_cast<TypeParam>(share * static_cast<double>(std::numeric_limits<TypeParam>::max()));
    for (std::size_t i = 100; i < 600; ++i) values[i] = top;
    for (const double decibels : {0.1, 1.0, 10.0, 60.0}) {
      for (const Preset preset : {Preset::balanced, Preset::small}) {
        Options options;
        options.preset = preset;
        options.bound = Bound::psnr(decibels);
        test::expect_promises(values, {600}, options);
      }
    }
  }
}

// The difference of these is no number, their bound is.
TYPED_TEST(Bounds, OfARelativeKindKnowTheWidestRange) {
  const TypeParam top = std::numeric_limits<TypeParam>::max() * TypeParam(0.75);
  std::vector<TypeParam> values(600);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = top * (static_cast<TypeParam>(i) / 300 - 1);
  }
  values[599] = top;
  for (const Preset preset : {Preset::fast, Preset::balanced}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::rel(1e-3);
    const Info info = test::expect_promises(values, {600}, options);
    EXPECT_LE(info.bound_abs, 2e-3 * static_cast<double>(top) * (1 + 1e-6));
    EXPECT_GT(info.bound_abs, 0);
  }
}

TYPED_TEST(Bounds, OfARelativeKindScaleWithTheField) {
  auto values = make_field<TypeParam>({64, 65}, Kind::noisy);
  Options options;
  options.bound = Bound::rel(1e-3);
  const Info small = test::expect_promises(values, {64, 65}, options);
  for (auto& value : values) value *= 1024;
  const Info large = test::expect_promises(values, {64, 65}, options);
  EXPECT_DOUBLE_EQ(large.bound_abs, small.bound_abs * 1024);
}

TYPED_TEST(Bounds, LosslessKeepsEveryBitAndIsIdempotent) {
  for (const Kind kind : test::kAllKinds) {
    const Shape shape{37, 41};
    auto values = make_field<TypeParam>(shape, kind);
    test::sprinkle_specials(values, 2, 100);
    const auto stream = test::compressed(values, shape, Options{});
    const auto decoded = test::decompressed<TypeParam>(stream, shape);
    EXPECT_TRUE(test::same_bits(decoded, values));
    EXPECT_EQ(test::compressed(decoded, shape, Options{}), stream);
  }
}

TEST(Presets, AllKeepTheBound) {
  const auto values = make_field<float>({70, 80}, Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::rel(1e-4);
    test::expect_promises(values, {70, 80}, options);
  }
}

}  // namespace
}  // namespace firn
