// Bad arguments: each gets its code and a message that names the offending thing.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

void expect_error(const Error& error, ErrorCode code, const std::string& part) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos)
      << "\"" << part << "\" is not in: " << error.message;
}

class Arguments : public ::testing::Test {
 protected:
  void expect_refused(const Shape& shape, const Options& options, const std::string& part,
                      int thread_count = 1) {
    const auto stream = compress(view(values_.data(), shape), options, test::threads(thread_count));
    ASSERT_FALSE(stream.ok()) << part;
    expect_error(stream.error(), ErrorCode::invalid_argument, part);
  }
  std::vector<float> values_ = make_field<float>({600}, Kind::smooth);
};

TEST_F(Arguments, ShapesOfBadRank) {
  expect_refused({}, {}, "rank 0");
  expect_refused({1, 2, 3, 4, 5}, {}, "rank 5");
  Shape negative{20, 30};
  negative.rank = -1;
  expect_refused(negative, {}, "rank -1");
}

TEST_F(Arguments, ShapesOfTooManyValues) {
  expect_refused({std::uint64_t{1} << 40, std::uint64_t{1} << 40}, {}, "63 bits");
  expect_refused({~std::uint64_t{0}}, {}, "63 bits");
}

TEST_F(Arguments, NullData) {
  const auto stream = compress({nullptr, Type::f32, {10}, {}}, Options{});
  ASSERT_FALSE(stream.ok());
  expect_error(stream.error(), ErrorCode::invalid_argument, "null");
}

TEST_F(Arguments, UnknownTypes) {
  const auto stream = compress({values_.data(), static_cast<Type>(7), {10}, {}}, Options{});
  ASSERT_FALSE(stream.ok());
  expect_error(stream.error(), ErrorCode::invalid_argument, "type");
}

TEST_F(Arguments, Bounds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, nan, infinity}) {
    Options options;
    options.bound = Bound::abs(value);
    expect_refused({600}, options, "abs bound");
    options.bound = Bound::rel(value);
    expect_refused({600}, options, "rel bound");
    options.bound = Bound::psnr(value);
    expect_refused({600}, options, "psnr");
  }
  Options options;
  options.bound.kind = static_cast<BoundKind>(9);
  expect_refused({600}, options, "bound");
}

TEST_F(Arguments, Pipelines) {
  Options options;
  options.bound = Bound::abs(1e-3);
  options.pipeline = static_cast<Pipeline>(200);
  expect_refused({600}, options, "pipeline");
}

TEST_F(Arguments, Chunks) {
  Options options;
  options.chunk = {10};
  expect_refused({20, 30}, options, "rank");
  options.chunk = {10, 0};
  expect_refused({20, 30}, options, "chunk extent is 0");
  options.chunk = {1, 2, 3, 4, 5};
  expect_refused({20, 30}, options, "rank 5");
  options.chunk = Shape{std::uint64_t{1} << 25};
  const auto worst = worst_case_size(Type::f32, {std::uint64_t{1} << 26}, options);
  ASSERT_FALSE(worst.ok());
  expect_error(worst.error(), ErrorCode::invalid_argument, "16777216");
}

TEST_F(Arguments, Threads) {
  expect_refused({600}, {}, "threads -1", -1);
  expect_refused({600}, {}, "threads 100000", 100000);
  const auto stream = test::compressed(values_, {600}, Options{});
  const Status status = decompress(stream, mutable_view(values_.data(), {600}), test::threads(-3));
  ASSERT_FALSE(status.ok());
  expect_error(status.error(), ErrorCode::invalid_argument, "threads -3");
}

TEST_F(Arguments, OutputsThatDoNotFitTheStream) {
  const auto stream = test::compressed(values_, {20, 30}, Options{});
  std::vector<double> wide(600);
  const Status type = decompress(stream, mutable_view(wide.data(), {20, 30}));
  ASSERT_FALSE(type.ok());
  expect_error(type.error(), ErrorCode::invalid_argument, "f64");
  for (const Shape& shape : {Shape{30, 20}, Shape{600}, Shape{20, 30, 1}, Shape{}}) {
    const Status status = decompress(stream, mutable_view(values_.data(), shape));
    ASSERT_FALSE(status.ok());
    expect_error(status.error(), ErrorCode::invalid_argument, "20x30");
  }
  const Status null = decompress(stream, {nullptr, Type::f32, {20, 30}, {}});
  ASSERT_FALSE(null.ok());
  expect_error(null.error(), ErrorCode::invalid_argument, "null");
}

TEST_F(Arguments, StreamsThatAreNone) {
  const std::vector<std::uint8_t> text{'h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u'};
  float value = 0;
  for (const std::span<const std::uint8_t> bytes :
       {std::span<const std::uint8_t>(text), std::span<const std::uint8_t>()}) {
    const Status status = decompress(bytes, mutable_view(&value, {1}));
    ASSERT_FALSE(status.ok());
    expect_error(status.error(), ErrorCode::not_firn, "not a Firn stream");
    EXPECT_EQ(inspect(bytes).error().code, ErrorCode::not_firn);
    EXPECT_EQ(inspect_chunks(bytes).error().code, ErrorCode::not_firn);
    EXPECT_EQ(verify(view(&value, {1}), bytes).error().code, ErrorCode::not_firn);
  }
}

TEST_F(Arguments, NewerStreams) {
  auto stream = test::compressed(values_, {600}, Options{});
  stream[4] = 9;
  const Status status = decompress(stream, mutable_view(values_.data(), {600}));
  ASSERT_FALSE(status.ok());
  expect_error(status.error(), ErrorCode::newer_version, "version 9");
}

TEST_F(Arguments, ComparisonsOfDifferentArrays) {
  std::vector<double> wide(600);
  auto result = compare(view(values_.data(), {600}), view(wide.data(), {600}), 0);
  ASSERT_FALSE(result.ok());
  expect_error(result.error(), ErrorCode::invalid_argument, "f64");
  result = compare(view(values_.data(), {600}), view(values_.data(), {599}), 0);
  ASSERT_FALSE(result.ok());
  expect_error(result.error(), ErrorCode::invalid_argument, "599");
  const auto stream = test::compressed(values_, {600}, Options{});
  const auto verified = verify(view(values_.data(), {20, 30}), stream);
  ASSERT_FALSE(verified.ok());
  expect_error(verified.error(), ErrorCode::invalid_argument, "20x30");
}

TEST_F(Arguments, ComparisonsOfArraysThatAreNone) {
  EXPECT_FALSE(compare({nullptr, Type::f32, {}, {}}, {nullptr, Type::f32, {}, {}}, 0).ok());
  const Shape overflow{std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_FALSE(compare(view(values_.data(), overflow), view(values_.data(), overflow), 0).ok());
  EXPECT_FALSE(compare({nullptr, Type::f32, {5}, {}}, {nullptr, Type::f32, {5}, {}}, 0).ok());
}

TEST_F(Arguments, EmptyArraysOfAbsurdExtentsAreHarmless) {
  // No values, but products of the other extents that overflow.
  const Shape shape{0, std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  const auto stream = compress({nullptr, Type::f32, shape, {}}, Options{});
  if (!stream.ok()) {
    EXPECT_EQ(stream.error().code, ErrorCode::invalid_argument);
    return;
  }
  EXPECT_TRUE(decompress(*stream, {nullptr, Type::f32, shape, {}}).ok());
}

TEST(Names, ReturnTheirValue) {
  for (const char* name :
       {"auto", "raw", "constant", "shuffle", "lorenzo", "blockpack", "ceresz", "bits"}) {
    const auto pipeline = parse_pipeline(name);
    ASSERT_TRUE(pipeline.ok()) << name;
    EXPECT_STREQ(name_of(*pipeline), name);
  }
  for (const char* name : {"fast", "balanced", "small"}) {
    const auto preset = parse_preset(name);
    ASSERT_TRUE(preset.ok()) << name;
    EXPECT_STREQ(name_of(*preset), name);
  }
  expect_error(parse_pipeline("zip").error(), ErrorCode::invalid_argument, "lorenzo");
  expect_error(parse_preset("tiny").error(), ErrorCode::invalid_argument, "balanced");
  EXPECT_STREQ(name_of(Type::f32), "f32");
  EXPECT_STREQ(name_of(Type::f64), "f64");
  EXPECT_EQ(size_of(Type::f32), 4u);
  EXPECT_EQ(size_of(Type::f64), 8u);
  EXPECT_STREQ(name_of(BoundKind::psnr), "psnr");
}

TEST(ErrorCodes, ArePinned) {
  EXPECT_EQ(static_cast<int>(ErrorCode::ok), 0);
  EXPECT_EQ(static_cast<int>(ErrorCode::invalid_argument), 1);
  EXPECT_EQ(static_cast<int>(ErrorCode::unsupported), 2);
  EXPECT_EQ(static_cast<int>(ErrorCode::buffer_too_small), 3);
  EXPECT_EQ(static_cast<int>(ErrorCode::not_firn), 4);
  EXPECT_EQ(static_cast<int>(ErrorCode::newer_version), 5);
  EXPECT_EQ(static_cast<int>(ErrorCode::truncated), 6);
  EXPECT_EQ(static_cast<int>(ErrorCode::corrupt), 7);
  EXPECT_EQ(static_cast<int>(ErrorCode::out_of_memory), 8);
  EXPECT_EQ(static_cast<int>(ErrorCode::bound_exceeded), 9);
  EXPECT_EQ(static_cast<int>(ErrorCode::cancelled), 10);
}

TEST_F(Arguments, ShapesAreEqualWhateverLiesBeyondTheirRank) {
  Shape plane{4, 5, 6};
  --plane.rank;
  EXPECT_EQ(plane, (Shape{4, 5}));
  EXPECT_FALSE(plane == (Shape{4, 5, 6}));
  EXPECT_FALSE(plane == (Shape{4, 6}));
}

}  // namespace
}  // namespace firn
