// Previews: every factor-th value of each chunk, whatever encoded it, and a report of what was
// read.
#include <gtest/gtest.h>

#include <firn/firn.hpp>
#include <vector>

#include "support/fields.hpp"

namespace firn {
namespace {

std::uint64_t part_of(std::uint64_t extent, std::uint64_t factor) {
  return (extent + factor - 1) / factor;
}

TEST(Preview, HasEveryFactorthValueOfEachChunk) {
  const Shape shape{37, 50};
  const Shape chunk{16, 20};
  const auto values = test::make_field<float>(shape, test::Kind::noisy);
  for (const Pipeline pipeline : {Pipeline::interp, Pipeline::causal, Pipeline::contexts,
                                  Pipeline::shuffle, Pipeline::bits}) {
    Options options;
    options.bound = Bound::abs(0.25);
    options.pipeline = pipeline;
    options.chunk = chunk;
    const auto stream = compress(view(values.data(), shape), options);
    ASSERT_TRUE(stream.ok());
    std::vector<float> decoded(values.size());
    ASSERT_TRUE(decompress(*stream, mutable_view(decoded.data(), shape)).ok());
    for (const int factor : {1, 2, 8, 64}) {
      const auto small = preview_shape(*stream, factor);
      ASSERT_TRUE(small.ok());
      const auto f = static_cast<std::uint64_t>(factor);
      EXPECT_EQ(small->extents[0], 2 * part_of(16, f) + part_of(5, f));
      EXPECT_EQ(small->extents[1], 2 * part_of(20, f) + part_of(10, f));
      std::vector<float> preview(static_cast<std::size_t>(small->count()));
      const auto report = decompress_preview(*stream, factor, mutable_view(preview.data(), *small));
      ASSERT_TRUE(report.ok()) << report.error().message;
      const bool from_prefix = pipeline == Pipeline::interp && factor > 1;
      EXPECT_EQ(report->chunks_from_prefix, from_prefix ? 9u : 0u);
      EXPECT_EQ(report->chunks_decoded_whole, from_prefix ? 0u : 9u);
      const std::uint64_t rows = part_of(16, f), columns = part_of(20, f);
      for (std::uint64_t y = 0; y < small->extents[0]; ++y) {
        for (std::uint64_t x = 0; x < small->extents[1]; ++x) {
          const std::uint64_t from_y = y / rows * 16 + y % rows * f;
          const std::uint64_t from_x = x / columns * 20 + x % columns * f;
          ASSERT_EQ(test::bits_of(preview[y * small->extents[1] + x]),
                    test::bits_of(decoded[from_y * 50 + from_x]))
              << name_of(pipeline) << " " << factor << " " << y << " " << x;
        }
      }
    }
  }
}

TEST(Preview, RefusesFactorsThatAreNoPowersOfTwoAndWrongShapes) {
  const Shape shape{20, 30};
  const auto values = test::make_field<float>(shape, test::Kind::smooth);
  Options options;
  options.bound = Bound::abs(0.25);
  const auto stream = compress(view(values.data(), shape), options);
  ASSERT_TRUE(stream.ok());
  std::vector<float> out(600);
  for (const int factor : {0, -2, 3, 1 << 21}) {
    const auto report = decompress_preview(*stream, factor, mutable_view(out.data(), {10, 15}));
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(preview_shape(*stream, factor).ok());
  }
  EXPECT_FALSE(decompress_preview(*stream, 2, mutable_view(out.data(), {20, 30})).ok());
}

TEST(Tune, ForPsnrGivesSmallerErrorsAtTheSameBound) {
  const Shape shape{60, 70, 80};
  auto values = test::make_field<float>(shape, test::Kind::smooth);
  const auto noise = test::make_field<float>(shape, test::Kind::noise);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += noise[i] / 4096;
  Options options;
  options.bound = Bound::abs(2);
  const auto square_of = [&](Tune tune) {
    options.tune = tune;
    const auto stream = compress(view(values.data(), shape), options);
    EXPECT_TRUE(stream.ok());
    const auto found = verify(view(values.data(), shape), *stream);
    EXPECT_TRUE(found.ok());
    EXPECT_EQ(found->violations, 0u);
    return found->mean_squared_error;
  };
  EXPECT_LT(square_of(Tune::psnr), square_of(Tune::size));
}

}  // namespace
}  // namespace firn
