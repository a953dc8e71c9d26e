// What a stream says of itself, and comparisons.
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
using test::make_field;

TEST(Inspect, TellsWhatWasAskedFor) {
  const auto values = make_field<double>({20, 30, 40}, Kind::noisy);
  Options options;
  options.bound = Bound::rel(1e-3);
  options.chunk = {7, 30, 11};
  options.fill = -5.5;
  const auto stream = test::compressed(values, {20, 30, 40}, options);
  const auto info = inspect(stream);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->format_version, 1);
  EXPECT_EQ(info->type, Type::f64);
  EXPECT_EQ(info->shape, (Shape{20, 30, 40}));
  EXPECT_EQ(info->chunk, (Shape{7, 30, 11}));
  EXPECT_EQ(info->chunk_count, 3u * 1 * 4);
  EXPECT_EQ(info->bound.kind, BoundKind::rel);
  EXPECT_EQ(info->bound.value, 1e-3);
  EXPECT_GT(info->bound_abs, 0);
  EXPECT_EQ(info->fill, -5.5);
  EXPECT_EQ(info->original_bytes, 20u * 30 * 40 * 8);
  EXPECT_EQ(info->compressed_bytes, stream.size());
  EXPECT_TRUE(info->complete);
}

TEST(Inspect, NeedsNoMoreThanTheHeader) {
  const auto values = make_field<float>({200, 300}, Kind::noisy);
  Options options;
  options.bound = Bound::abs(0.25);
  const auto stream = test::compressed(values, {200, 300}, options);
  const auto info = inspect({stream.data(), 100});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->shape, (Shape{200, 300}));
  EXPECT_FALSE(info->complete);
  EXPECT_EQ(info->max_abs_error, 0.25) << "nothing better is known";
}

TEST(Inspect, ChunksCoverTheStreamAndTheArray) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    const Shape shape{20, 30};
    const auto values = make_field<float>(shape, Kind::noisy);
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1e-2);
    options.chunk = {6, 9};
    const auto stream = test::compressed(values, shape, options);
    const auto chunks = inspect_chunks(stream);
    ASSERT_TRUE(chunks.ok());
    ASSERT_EQ(chunks->size(), 4u * 4);
    std::uint64_t count = 0, at = (*chunks)[0].offset;
    double largest = 0;
    for (const ChunkInfo& chunk : *chunks) {
      EXPECT_EQ(chunk.offset, at);
      at += chunk.size_bytes;
      count += chunk.shape.count();
      largest = std::max(largest, chunk.max_abs_error);
      EXPECT_LE(chunk.max_abs_error, 1e-2);
      EXPECT_EQ(chunk.detail.find("damaged"), std::string::npos);
    }
    EXPECT_EQ(count, shape.count());
    EXPECT_LT(at, stream.size()) << "the index follows";
    EXPECT_EQ(largest, inspect(stream)->max_abs_error);
    if (pipeline == Pipeline::raw) {
      EXPECT_EQ((*chunks)[0].pipeline, Pipeline::raw);
    }
    if (pipeline == Pipeline::lorenzo) {
      EXPECT_EQ((*chunks)[0].pipeline, Pipeline::lorenzo);
      EXPECT_FALSE((*chunks)[0].detail.empty());
    }
  }
}

TEST(Inspect, NamesDamagedChunks) {
  const auto values = make_field<float>({40, 30}, Kind::noisy);
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {10, 30};
  auto stream = test::compressed(values, {40, 30}, options);
  const auto chunks = inspect_chunks(stream);
  stream[(*chunks)[2].offset + 10] ^= 1;
  const auto damaged = inspect_chunks(stream);
  ASSERT_TRUE(damaged.ok());
  ASSERT_EQ(damaged->size(), 4u);
  EXPECT_NE((*damaged)[2].detail.find("damaged"), std::string::npos);
  EXPECT_EQ((*damaged)[1].detail.find("damaged"), std::string::npos);
}

TEST(Compare, CountsViolations) {
  std::vector<float> original{1,     2,
                              3,     std::numeric_limits<float>::quiet_NaN(),
                              1e20f, std::numeric_limits<float>::infinity()};
  std::vector<float> decoded = original;
  auto result = compare(view(original.data(), {6}), view(decoded.data(), {6}), 0.5, 1e20);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->count, 6u);
  EXPECT_EQ(result->exact_count, 3u);
  EXPECT_EQ(result->violations, 0u);
  EXPECT_EQ(result->max_abs_error, 0);
  EXPECT_EQ(result->value_range, 2);
  EXPECT_TRUE(std::isinf(result->psnr_db));

  decoded[1] = 2.5f;
  result = compare(view(original.data(), {6}), view(decoded.data(), {6}), 0.5, 1e20);
  EXPECT_EQ(result->violations, 0u);
  EXPECT_EQ(result->max_abs_error, 0.5);
  EXPECT_NEAR(result->mean_squared_error, 0.25 / 3, 1e-12);
  EXPECT_NEAR(result->psnr_db, 20 * std::log10(2) - 10 * std::log10(0.25 / 3), 1e-9);

  decoded[1] = std::nextafter(2.5f, 3.0f);
  decoded[3] = -decoded[3];  // another NaN
  decoded[4] = std::nextafter(1e20f, 0.0f);
  result = compare(view(original.data(), {6}), view(decoded.data(), {6}), 0.5, 1e20);
  EXPECT_EQ(result->violations, 3u);
  EXPECT_EQ(result->first_violation, 1u);
}

TEST(Compare, AFiniteValueThatBecameNaNIsAViolation) {
  const std::vector<double> original{1, 2, 3};
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> decoded{1, bad, 3};
    const auto result = compare(view(original.data(), {3}), view(decoded.data(), {3}), 1e300);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->violations, 1u);
    EXPECT_EQ(result->first_violation, 1u);
    EXPECT_TRUE(std::isinf(result->max_abs_error)) << "later values must not hide it";
  }
}

TEST(Compare, FirstViolationIsALinearIndexOfTheShape) {
  const auto original = make_field<float>({3, 700, 500}, Kind::smooth);
  auto decoded = original;
  decoded[900000] += 100;
  decoded[1000001] += 100;
  const Shape shape{3, 700, 500};
  for (const int thread_count : {1, 2, 4}) {
    const auto result =
        compare(test::const_view_of(original, shape), test::const_view_of(decoded, shape), 1, {},
                test::threads(thread_count));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->violations, 2u);
    EXPECT_EQ(result->first_violation, 900000u);
  }
}

TEST(Compare, EmptyArraysAreEqual) {
  const auto result =
      compare({nullptr, Type::f32, {0, 5}, {}}, {nullptr, Type::f32, {0, 5}, {}}, 0);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->count, 0u);
  EXPECT_EQ(result->violations, 0u);
}

TEST(Verify, HoldsTheStreamAgainstItsOwnBound) {
  auto values = make_field<float>({50, 50}, Kind::noisy);
  Options options;
  options.bound = Bound::abs(0.01);
  const auto stream = test::compressed(values, {50, 50}, options);
  values[77] += 1;
  const auto result = verify(test::const_view_of(values, {50, 50}), stream);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->violations, 1u);
  EXPECT_EQ(result->first_violation, 77u);
}

TEST(Inspect, RefusesAHeaderThatIsCutOffBehindAnImpossibleRank) {
  const std::vector<std::uint8_t> stream{'F', 'I', 'R', 'N', 1, 0xBB};
  EXPECT_FALSE(inspect(stream).ok());
}

TEST(Inspect, RefusesTheEndOfADirectory) {
  const std::uint8_t magic[4] = {'F', 'D', 'I', 'R'};
  for (std::size_t size = 0; size < 24; ++size) {
    std::vector<std::uint8_t> stream(size + 4, 0);
    std::copy(magic, magic + 4, stream.end() - 4);
    EXPECT_FALSE(inspect(stream).ok()) << size;
  }
}

TEST(Version, IsThere) { EXPECT_STRNE(version(), ""); }

}  // namespace
}  // namespace firn
