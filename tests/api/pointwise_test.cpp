// Bounds relative to each value, through the whole library: every pipeline, zeros, signs,
// denormals, masks, refusals and what a stream says of itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;

Options pointwise(double bound, Pipeline pipeline = Pipeline::automatic) {
  Options options;
  options.bound = Bound::pwrel(bound);
  options.pipeline = pipeline;
  return options;
}

template <class T>
class Pointwise : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Pointwise, ValueTypes);

TYPED_TEST(Pointwise, HoldsForEveryPipelineAndKindOfField) {
  const Shape shapes[] = {{5000}, {61, 83}, {17, 18, 19}, {5, 6, 7, 20}};
  std::vector<Pipeline> pipelines = test::pointwise_pipelines();
  pipelines.push_back(Pipeline::automatic);
  std::size_t turn = 0;
  for (const Pipeline pipeline : pipelines) {
    for (const Kind kind : test::kAllKinds) {
      const Shape& shape = shapes[turn++ % 4];
      auto values = test::make_field<TypeParam>(shape, kind, turn);
      if (turn % 3 == 0) test::sprinkle_specials(values, turn, 40);
      constexpr double kBounds[] = {0x1p-6, 0.3, 1e-4, 1e-7, 1e-12};
      test::expect_promises(values, shape, pointwise(kBounds[turn % 5], pipeline));
    }
  }
}

TYPED_TEST(Pointwise, KeepsZerosSignsAndTheSmallestNumbers) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> values = test::make_field<TypeParam>({40, 50}, Kind::noise);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 0;
  for (std::size_t i = 1; i < values.size(); i += 30) values[i] = -TypeParam{0};
  for (std::size_t i = 2; i < values.size(); i += 40) values[i] = Limits::denorm_min() * 5;
  for (std::size_t i = 5; i < values.size(); i += 40) values[i] = -Limits::min();
  for (std::size_t i = 8; i < values.size(); i += 40) values[i] = Limits::max();
  for (const Pipeline pipeline : test::pointwise_pipelines()) {
    const Options options = pointwise(0x1p-6, pipeline);
    test::expect_promises(values, {40, 50}, options);
    const auto stream = test::compressed(values, {40, 50}, options);
    const auto decoded = test::decompressed<TypeParam>(stream, {40, 50});
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::signbit(values[i]), std::signbit(decoded[i])) << i;
      EXPECT_EQ(values[i] == 0, decoded[i] == 0) << i;
    }
  }
}

// Some subnormal numbers are within the bound of a normal one, and so have a code.
TYPED_TEST(Pointwise, HoldsForChunksThatBeginWithSubnormalNumbers) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const double share : {0.999, 0.99, 0.97, 0.9, 0.5, 1e-3}) {
    std::vector<TypeParam> values(20, static_cast<TypeParam>(Limits::min() * TypeParam(1.5)));
    std::fill_n(values.begin(), 10, static_cast<TypeParam>(Limits::min() * TypeParam(share)));
    for (const Pipeline pipeline : test::pointwise_pipelines()) {
      for (const double bound : {0.3, 0.046875, 1e-3}) {
        Options options = pointwise(bound, pipeline);
        test::expect_promises(values, {2, 10}, options);
        options.chunk = Shape{2, 4};  // rows apart, one after the other
        test::expect_promises(values, {2, 10}, options);
      }
    }
  }
}

TYPED_TEST(Pointwise, MasksStayExact) {
  auto values = test::make_field<TypeParam>({60, 70}, Kind::noisy);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 70 < 20) values[i] = TypeParam(1e20);
  }
  for (const Pipeline pipeline : test::pointwise_pipelines()) {
    Options options = pointwise(0.01, pipeline);
    options.fill = 1e20;
    test::expect_promises(values, {60, 70}, options);
  }
}

TYPED_TEST(Pointwise, RoundingSavesABitOverCutting) {
  const auto values = test::make_field<TypeParam>({50000}, Kind::noise);
  const auto cut = test::compressed(values, {50000}, pointwise(0x1p-6, Pipeline::fre));
  const auto rounded = test::compressed(values, {50000}, pointwise(0x1p-6, Pipeline::fre_round));
  const auto bits = static_cast<double>(cut.size() - rounded.size()) * 8 / 50000;
  EXPECT_GT(bits, 0.9);
  EXPECT_LT(bits, 1.1);
}

TYPED_TEST(Pointwise, StreamsSayWhatTheyPromise) {
  const auto values = test::make_field<TypeParam>({80, 90}, Kind::noisy);
  const auto stream = test::compressed(values, {80, 90}, pointwise(0.01));
  const auto info = inspect(stream);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->bound.kind, BoundKind::pwrel);
  EXPECT_EQ(info->bound.value, 0.01);
  EXPECT_EQ(info->bound_abs, 0);
  EXPECT_EQ(info->max_abs_error, 0);
  EXPECT_GT(info->bound_pwrel, 0.0099);
  EXPECT_LE(info->bound_pwrel, 0.01);
  EXPECT_GT(info->max_pwrel_error, 0.005);
  const auto chunks = inspect_chunks(stream);
  ASSERT_TRUE(chunks.ok());
  EXPECT_GT((*chunks)[0].max_pwrel_error, 0);
  EXPECT_EQ((*chunks)[0].max_abs_error, 0);
}

TYPED_TEST(Pointwise, VerifyFindsWhatIsOutOfBound) {
  const auto values = test::make_field<TypeParam>({1000}, Kind::noise);
  const auto stream = test::compressed(values, {1000}, pointwise(0.01));
  auto other = values;
  other[123] *= TypeParam(1.05);
  other[500] = -other[500];
  other[700] = 0;
  other[800] = other[800] == 0 ? TypeParam(1) : TypeParam(0);
  const auto comparison = verify(test::const_view_of(other, {1000}), stream);
  ASSERT_TRUE(comparison.ok());
  EXPECT_GE(comparison->violations, 3u);
  EXPECT_LE(comparison->violations, 4u);
  EXPECT_EQ(comparison->first_violation, 123u);
  // A value that equals its bound exactly is within it; the next one is not.
  const std::vector<TypeParam> one{1}, near{TypeParam(1.25)},
      far{std::nextafter(TypeParam(1.25), TypeParam(2))};
  EXPECT_EQ(
      compare(test::const_view_of(one, {1}), test::const_view_of(near, {1}), Bound::pwrel(0.25))
          ->violations,
      0u);
  EXPECT_EQ(
      compare(test::const_view_of(one, {1}), test::const_view_of(far, {1}), Bound::pwrel(0.25))
          ->violations,
      1u);
}

TEST(PointwiseArguments, AreChecked) {
  const std::vector<float> values(10, 1.0f);
  for (const double bound : {0.0, -0.1, 1.0, 2.0, std::nan("")}) {
    const auto stream = compress(test::const_view_of(values, {10}), pointwise(bound));
    ASSERT_FALSE(stream.ok()) << bound;
    EXPECT_EQ(stream.error().code, ErrorCode::invalid_argument);
  }
  Options options = pointwise(0.1, Pipeline::fre);
  options.bound = Bound::abs(0.1);
  EXPECT_FALSE(compress(test::const_view_of(values, {10}), options).ok());
  EXPECT_FALSE(
      compare(test::const_view_of(values, {10}), test::const_view_of(values, {10}), Bound::rel(0.1))
          .ok());
}

TEST(Pointwise, ChunksOfLorenzoAreDescribedBehindTheirSigns) {
  const Shape shape{5000};
  const auto values = test::make_field<float>(shape, test::Kind::noise);
  Options options;
  options.pipeline = Pipeline::lorenzo;
  options.bound = Bound::pwrel(1e-2);
  options.books = BookPolicy::offline;
  const auto chunks = inspect_chunks(test::compressed(values, shape, options));
  ASSERT_TRUE(chunks.ok());
  EXPECT_NE(chunks->front().detail.find("offline book"), std::string::npos)
      << chunks->front().detail;
}

}  // namespace
}  // namespace firn
