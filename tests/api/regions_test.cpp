// Regions equal the slices of the whole, and read only the chunks that they touch.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

template <class T>
std::vector<T> slice(const std::vector<T>& whole, const Shape& shape, const Region& region) {
  std::vector<T> part;
  for (std::uint64_t n = 0; n < region.shape.count(); ++n) {
    std::uint64_t rest = n, index = 0, stride = 1;
    for (int k = shape.rank - 1; k >= 0; --k) {
      index += (region.origin[k] + rest % region.shape.extents[k]) * stride;
      rest /= region.shape.extents[k];
      stride *= shape.extents[k];
    }
    part.push_back(whole[index]);
  }
  return part;
}

template <class T>
void expect_slice(const std::vector<std::uint8_t>& stream, const std::vector<T>& whole,
                  const Shape& shape, const Region& region, int thread_count = 1) {
  std::vector<T> part(region.shape.count(), T(-5));
  const Status status = decompress_region(stream, region, test::view_of(part, region.shape),
                                          test::threads(thread_count));
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_TRUE(test::same_bits(part, slice(whole, shape, region)))
      << test::text_of(region.shape) << " of " << test::text_of(shape);
}

TEST(Regions, EveryOneOfASmallArray) {
  const Shape shape{5, 6, 4};
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    const auto values = make_field<float>(shape, Kind::noisy);
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1e-2);
    options.chunk = {2, 3, 4};
    const auto stream = test::compressed(values, shape, options);
    const auto whole = test::decompressed<float>(stream, shape);
    Region region;
    region.shape = shape;
    auto& [a, b, c, unused] = region.origin;
    for (a = 0; a < 5; ++a) {
      for (b = 0; b < 6; ++b) {
        for (c = 0; c < 4; ++c) {
          for (std::uint64_t x = 1; x <= 5 - a; ++x) {
            for (std::uint64_t y = 1; y <= 6 - b; ++y) {
              for (std::uint64_t z = 1; z <= 4 - c; ++z) {
                region.shape = {x, y, z};
                expect_slice(stream, whole, shape, region);
                if (HasFatalFailure()) return;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Regions, RandomOnesOfEveryRank) {
  test::Random random(6);
  for (const Shape& shape : {Shape{5003}, Shape{71, 83}, Shape{17, 19, 23}, Shape{6, 7, 8, 9}}) {
    const auto values = make_field<double>(shape, Kind::noisy);
    Options options;
    options.bound = Bound::rel(1e-4);
    options.chunk.rank = shape.rank;
    for (int k = 0; k < shape.rank; ++k) options.chunk.extents[k] = 1 + shape.extents[k] / 3;
    const auto stream = test::compressed(values, shape, options);
    const auto whole = test::decompressed<double>(stream, shape);
    for (int trial = 0; trial < 100; ++trial) {
      Region region;
      region.shape.rank = shape.rank;
      for (int k = 0; k < shape.rank; ++k) {
        region.origin[k] = random.below(shape.extents[k]);
        region.shape.extents[k] = 1 + random.below(shape.extents[k] - region.origin[k]);
      }
      expect_slice(stream, whole, shape, region, 1 + trial % 3);
    }
  }
}

TEST(Regions, WithoutValuesAreFine) {
  const auto values = make_field<float>({20, 30}, Kind::noisy);
  const auto stream = test::compressed(values, {20, 30}, Options{});
  float unused = 7;
  for (const Region& region :
       {Region{{0, 0}, {0, 30}}, Region{{20, 30}, {0, 0}}, Region{{5, 5}, {3, 0}}}) {
    EXPECT_TRUE(decompress_region(stream, region, mutable_view(&unused, region.shape)).ok());
  }
  EXPECT_EQ(unused, 7);
}

TEST(Regions, OutsideTheArrayAreRefused) {
  const auto values = make_field<float>({20, 30}, Kind::noisy);
  const auto stream = test::compressed(values, {20, 30}, Options{});
  std::vector<float> out(600);
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const Region& region :
       {Region{{0, 0}, {21, 30}}, Region{{1, 0}, {20, 30}}, Region{{0, 31}, {1, 0}},
        Region{{huge, 0}, {2, 1}}, Region{{2, 0}, {huge, 1}}, Region{{0}, {20}},
        Region{{0, 0, 0}, {1, 1, 1}}}) {
    const Status status = decompress_region(stream, region, mutable_view(out.data(), region.shape));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(status.error().message.find("20x30"), std::string::npos);
  }
}

TEST(Regions, GoToStridedMemory) {
  const Shape shape{20, 30};
  const auto values = make_field<float>(shape, Kind::noisy);
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {7, 8};
  const auto stream = test::compressed(values, shape, options);
  const auto whole = test::decompressed<float>(stream, shape);
  const Region region{{3, 5}, {9, 11}};
  std::vector<float> out(99, 0.0f);
  const Status status = decompress_region(
      stream, region, {out.data(), Type::f32, region.shape, {{1, 9}}}, test::threads(1));
  ASSERT_TRUE(status.ok());
  const auto expected = slice(whole, shape, region);
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t j = 0; j < 11; ++j) EXPECT_EQ(out[i + 9 * j], expected[i * 11 + j]);
  }
}

TEST(Regions, DoNotReadOtherChunks) {
  const Shape shape{40, 30};
  const auto values = make_field<float>(shape, Kind::noisy);
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {10, 30};
  auto stream = test::compressed(values, shape, options);
  const auto whole = test::decompressed<float>(stream, shape);
  const auto chunks = inspect_chunks(stream);
  ASSERT_TRUE(chunks.ok());
  ASSERT_EQ(chunks->size(), 4u);
  // Damage every chunk but the third.
  for (const std::size_t n : {0u, 1u, 3u}) stream[(*chunks)[n].offset + 9] ^= 0x10;
  expect_slice(stream, whole, shape, {{20, 0}, {10, 30}});
  expect_slice(stream, whole, shape, {{23, 4}, {2, 3}});
  std::vector<float> out(60);
  EXPECT_EQ(
      decompress_region(stream, {{19, 0}, {2, 30}}, mutable_view(out.data(), {2, 30})).error().code,
      ErrorCode::corrupt);
}

}  // namespace
}  // namespace firn
