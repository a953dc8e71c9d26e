// Ratios instead of bounds, and estimates of what bounds give.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::expect_within;
using test::Kind;
using test::make_field;

TEST(Ratio, IsHeldByEveryPreset) {
  const Shape shape{64, 80, 80};
  const auto values = make_field<float>(shape, Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(8);
    const auto stream = test::compressed(values, shape, options);
    const auto info = inspect(stream);
    EXPECT_EQ(info->bound.kind, BoundKind::ratio);
    EXPECT_EQ(info->bound.value, 8);
    EXPECT_NEAR(static_cast<double>(info->original_bytes) / static_cast<double>(stream.size()), 8,
                0.08)
        << name_of(preset);
    expect_within(values, shape, stream);
    EXPECT_EQ(test::compressed(values, shape, options, 2), stream);
  }
}

// Below some bound this field takes several times as much, in ways that are poor above it.
TEST(Ratio, IsNotMetInWaysThatWereGoodElsewhere) {
  const Shape shape{500, 1000};
  std::vector<double> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i) / 100);
  for (const double ratio : {8.0, 9.0, 10.0}) {
    Options options;
    options.bound = Bound::ratio(ratio);
    const auto stream = test::compressed(values, shape, options);
    EXPECT_LE(static_cast<double>(stream.size()), values.size() * 8 / ratio * 1.01);
    EXPECT_LT(inspect(stream)->bound_abs, 3e-8) << ratio;  // not 3e-7 and more
    expect_within(values, shape, stream);
  }
}

// Chunks that are not rehearsed take the differences of their neighbours, but not along an axis on
// which they have a single layer.
TEST(Ratio, LeavesBorderChunksTheirOwnDifferences) {
  const Shape shape{81, 40, 40};
  constexpr std::size_t kPlane = 1600;
  Options options;
  options.preset = Preset::fast;
  options.chunk = Shape{8, 40, 40};
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> plane(kPlane), drift(kPlane), values(shape.count());
    for (float& each : plane) each = 100 * normal(random);
    for (float& each : drift) each = 0.02f * normal(random);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = i % kPlane, layer = i / kPlane;
      values[i] = plane[at] + drift[at] * static_cast<float>(layer) + 0.01f * normal(random);
    }
    for (double ratio = 1.8; ratio < 3; ratio += 0.05) {
      options.bound = Bound::ratio(ratio);
      expect_within(values, shape, test::compressed(values, shape, options));
    }
  }
}

// What blocks are told to take in a rehearsal has an error that other pipelines are compared with.
TEST(Ratio, OfALineThatMayBePackedInBlocksIsHeldWhenTunedForPsnr) {
  std::vector<double> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<double>(i);
    values[i] = std::sin(0.02 * at) + std::sin(0.0313 * at);
  }
  for (const Preset preset : {Preset::balanced, Preset::small}) {
    for (const double ratio : {5.0, 20.0}) {
      for (const std::size_t count : {4095, 4096}) {
        Options options;
        options.preset = preset;
        options.tune = Tune::psnr;
        options.bound = Bound::ratio(ratio);
        const std::vector<double> part(values.begin(), values.begin() + count);
        const auto size = static_cast<double>(test::compressed(part, {count}, options).size());
        EXPECT_NEAR(static_cast<double>(8 * count) / size, ratio, 0.05 * ratio)
            << name_of(preset) << " " << count;
      }
    }
  }
}

// A line whose sizes leap from bound to bound, since most of it lies between a few steps.
TEST(Ratio, OfALineIsHeldByPiecesOfIt) {
  const Shape shape{100000};
  std::vector<double> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i);
    values[i] = 1e5 + 2e3 * std::sin(x / 300) + 400 * std::sin(x * x / 4e5) * std::sin(x / 7);
  }
  for (const double ratio : {20.0, 40.0, 80.0}) {
    Options options;
    options.bound = Bound::ratio(ratio);
    const auto stream = test::compressed(values, shape, options);
    EXPECT_NEAR(static_cast<double>(values.size() * 8) / static_cast<double>(stream.size()), ratio,
                ratio / 100);
    expect_within(values, shape, stream);
    EXPECT_EQ(test::compressed(values, shape, options, 2), stream);
    const auto chunks = inspect_chunks(stream);
    ASSERT_EQ(chunks->size(), 4u);
    for (const ChunkInfo& chunk : *chunks) EXPECT_EQ(chunk.pipeline, (*chunks)[0].pipeline);
    options.chunk = {50000};
    EXPECT_EQ(inspect_chunks(test::compressed(values, shape, options))->size(), 2u);
  }
}

// So many bits are left that steps are about as fine as values are: multiples of a grain, of which
// no single chunk has one for every size. The finest bound is still found, to a step or two.
TEST(Ratio, IsHeldNearTheLastBitsOfValues) {
  const Shape shape{48, 80, 80};
  // Of about the same magnitude, and of very different ones; with noise down to the last bit.
  auto near = make_field<float>(shape, Kind::smooth), wide = near;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < near.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const float noise = static_cast<float>(state) * 0x1p-32f;
    near[i] = 250 + 20 * near[i] + noise;
    wide[i] = (wide[i] + 0.1f * noise) * std::exp2(-0.25f * static_cast<float>(i % 80));
  }
  const auto expect_held = [&](const std::vector<float>& values, Preset preset, double ratio) {
    SCOPED_TRACE(std::string(name_of(preset)) + " " + std::to_string(ratio));
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(ratio);
    const auto stream = test::compressed(values, shape, options);
    const double bytes = static_cast<double>(values.size() * 4) / ratio;
    const double bound = inspect(stream)->bound_abs;
    ASSERT_GT(bound, 0);
    EXPECT_NEAR(static_cast<double>(stream.size()) / bytes, 1, 0.0101);
    expect_within(values, shape, stream);
    EXPECT_EQ(test::compressed(values, shape, options, 2), stream);
    options.bound = Bound::abs(bound / 4);
    EXPECT_GT(static_cast<double>(test::compressed(values, shape, options).size()), bytes);
  };
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    for (const double ratio : {2.0, 2.4, 3.0}) expect_held(near, preset, ratio);
    for (const double ratio : {2.0, 2.5}) expect_held(wide, preset, ratio);
  }
  // A single chunk, since it is asked for, has any step that meets it.
  for (const double ratio : {2.0, 2.4, 3.0}) {
    Options options;
    options.bound = Bound::ratio(ratio);
    options.chunk = shape;
    const auto stream = test::compressed(near, shape, options);
    EXPECT_NEAR(static_cast<double>(near.size() * 4) / static_cast<double>(stream.size()), ratio,
                ratio * 0.0101);
    EXPECT_EQ(inspect_chunks(stream)->size(), 1u);
    expect_within(near, shape, stream);
  }
}

// Then nothing is cut: what repeats is found in large chunks.
TEST(Ratio, NeedsNoPiecesWhenNothingIsLost) {
  const Shape shape{48, 80, 80};
  const auto values = make_field<float>(shape, Kind::steps);
  Options options;
  options.preset = Preset::small;
  options.bound = Bound::ratio(2);
  const auto stream = test::compressed(values, shape, options);
  EXPECT_EQ(inspect(stream)->bound_abs, 0);
  EXPECT_EQ(inspect_chunks(stream)->size(), 1u);
}

// The bound that a stream tells is what its values keep, not what they would have been allowed.
TEST(Ratio, PromisesWhatWasAchieved) {
  const Shape shape{64, 64, 64};
  const auto values = make_field<float>(shape, Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.chunk = {16, 64, 64};
    for (const double ratio : {4.0, 12.0}) {
      options.bound = Bound::ratio(ratio);
      const auto stream = test::compressed(values, shape, options, 2);
      const auto info = inspect(stream);
      EXPECT_LE(info->max_abs_error, info->bound_abs);
      EXPECT_GE(info->max_abs_error, info->bound_abs * 0.98);
      const auto found = verify(test::const_view_of(values, shape), stream);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->violations, 0u);
      EXPECT_LE(found->max_abs_error, info->bound_abs);
      EXPECT_GE(found->max_abs_error, info->bound_abs * 0.97);
      const auto chunks = inspect_chunks(stream);
      for (const auto& chunk : *chunks) {
        EXPECT_EQ(chunk.bound_abs, info->bound_abs);
        EXPECT_LE(chunk.max_abs_error, info->bound_abs);
      }
    }
  }
}

TEST(Ratio, NeverPassesMaxAbs) {
  const Shape shape{64, 64, 64};
  const auto values = make_field<float>(shape, Kind::noise);
  Options options;
  options.bound = Bound::ratio(20);
  options.max_abs = 0.25;
  const auto info = inspect(test::compressed(values, shape, options));
  EXPECT_LE(info->bound_abs, 0.25);
  EXPECT_GT(info->bound_abs, 0.22);  // what was achieved
  options.max_abs = -1;
  EXPECT_FALSE(compress(test::const_view_of(values, shape), options).ok());
  options.max_abs = 0.25;
  options.bound = Bound::abs(1);
  EXPECT_FALSE(compress(test::const_view_of(values, shape), options).ok());
  options.max_abs.reset();
  for (const double bad : {1.0, 0.0, -3.0, 1e12}) {
    options.bound = Bound::ratio(bad);
    EXPECT_FALSE(compress(test::const_view_of(values, shape), options).ok());
  }
}

TEST(Ratio, OfWhatIsSmallAnywayLosesNothing) {
  const Shape shape{64, 64, 64};
  const auto values = make_field<float>(shape, Kind::constant);
  Options options;
  options.bound = Bound::ratio(5);
  const auto stream = test::compressed(values, shape, options);
  EXPECT_EQ(inspect(stream)->bound_abs, 0);
  EXPECT_TRUE(test::same_bits(test::decompressed<float>(stream, shape), values));
}

TEST(Estimate, IsNearWhatCompressionGives) {
  const Shape shape{64, 100, 100};
  const auto values = make_field<double>(shape, Kind::noisy);
  for (const double rel : {1e-4, 1e-5, 1e-6}) {
    Options options;
    options.bound = Bound::rel(rel);
    const auto guess = estimate(test::const_view_of(values, shape), options, test::threads(1));
    ASSERT_TRUE(guess.ok()) << guess.error().message;
    const auto stream = test::compressed(values, shape, options);
    const auto real = verify(test::const_view_of(values, shape), stream);
    const double ratio =
        static_cast<double>(values.size() * 8) / static_cast<double>(stream.size());
    EXPECT_NEAR(guess->ratio / ratio, 1, 0.25);
    EXPECT_NEAR(guess->psnr_db, real->psnr_db, 1);
  }
}

TEST(Estimate, FindsTheBoundOfARatioOrAPsnr) {
  const Shape shape{64, 100, 100};
  const auto values = make_field<double>(shape, Kind::noisy);
  const ArrayView array = test::const_view_of(values, shape);
  for (const Preset preset : {Preset::fast, Preset::balanced}) {
    for (const Bound bound : {Bound::ratio(5), Bound::ratio(12), Bound::psnr(60), Bound::psnr(90),
                              Bound::pwrel(1e-3), Bound::lossless()}) {
      SCOPED_TRACE(testing::Message() << name_of(bound.kind) << " " << bound.value);
      Options options;
      options.preset = preset;
      options.bound = bound;
      const auto guess = estimate(array, options, test::threads(1));
      ASSERT_TRUE(guess.ok()) << guess.error().message;
      EXPECT_EQ(guess->bound.kind, bound.kind);
      EXPECT_EQ(guess->bound.value, bound.value);
      const auto stream = test::compressed(values, shape, options);
      const auto info = inspect(stream);
      const double ratio =
          static_cast<double>(values.size() * 8) / static_cast<double>(stream.size());
      EXPECT_NEAR(guess->ratio / ratio, 1, 0.25);
      if (bound.kind == BoundKind::psnr) {
        EXPECT_NEAR(guess->psnr_db, bound.value, 1);
      }
      if (info->bound_abs > 0) {
        // At 5 the size hardly follows the bound.
        EXPECT_NEAR(std::log2(guess->bound_abs / info->bound_abs), 0, 1.25);
      } else {
        EXPECT_EQ(guess->bound_abs, 0);
      }
    }
  }
}

TEST(Estimate, WorksAtBothEndsOfTheNumbers) {
  const Shape shape{40, 20, 30};
  const auto unit = make_field<double>(shape, Kind::noisy);
  for (const Bound bound : {Bound::ratio(12), Bound::psnr(30), Bound::rel(1e-3)}) {
    Options options;
    options.bound = bound;
    const auto expected = estimate(test::const_view_of(unit, shape), options, test::threads(1));
    ASSERT_TRUE(expected.ok());
    for (const double scale : {1e-300, 1e300}) {
      auto values = unit;
      for (auto& value : values) value *= scale;
      const auto found = estimate(test::const_view_of(values, shape), options, test::threads(1));
      ASSERT_TRUE(found.ok()) << found.error().message;
      EXPECT_NEAR(found->ratio / expected->ratio, 1, 0.05);
      EXPECT_NEAR(found->psnr_db, expected->psnr_db, 0.5);
      EXPECT_NEAR(found->bound_abs / scale / expected->bound_abs, 1, 0.1);
    }
  }
  // A range without a number for its width.
  std::vector<double> values(1000, -std::numeric_limits<double>::max());
  values[7] = std::numeric_limits<double>::max();
  for (const Bound bound : {Bound::ratio(12), Bound::psnr(30), Bound::rel(1e-3), Bound::abs(1e300),
                            Bound::ratio(1e6)}) {
    Options options;
    options.bound = bound;
    EXPECT_TRUE(estimate(test::const_view_of(values, Shape{1000}), options).ok());
  }
}

// Near the last bits of values a bound may take more than none.
TEST(Ratio, ThatIsOutOfReachIsNoWorseThanLossless) {
  const Shape shape{20, 50, 60};
  const auto values = make_field<float>(shape, Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::lossless();
    const std::size_t lossless = test::compressed(values, shape, options).size();
    options.bound = Bound::ratio(100);
    for (const double most : {1e-9, 1e-8, 1e-7}) {
      options.max_abs = most;
      const auto stream = test::compressed(values, shape, options);
      EXPECT_LE(stream.size(), lossless + 32) << name_of(preset) << ' ' << most;
      EXPECT_LE(inspect(stream)->bound_abs, most);
      expect_within(values, shape, stream);
    }
  }
}

TEST(Estimate, OfARatioStaysWithinItsLimits) {
  const Shape shape{40, 50, 60};
  const auto values = make_field<float>(shape, Kind::noisy);
  const ArrayView array = test::const_view_of(values, shape);
  Options options;
  options.bound = Bound::ratio(1000);
  options.max_abs = 1e-3;
  const auto capped = estimate(array, options, test::threads(1));
  ASSERT_TRUE(capped.ok());
  EXPECT_NEAR(capped->bound_abs, 1e-3, 1e-9);
  EXPECT_LT(capped->ratio, 1000);
  options.max_abs.reset();
  options.bound = Bound::ratio(1.01);
  const auto lossless = estimate(array, options, test::threads(1));
  ASSERT_TRUE(lossless.ok());
  EXPECT_EQ(lossless->bound_abs, 0);
  const std::vector<float> same(1000, 2.5f);
  options.bound = Bound::ratio(10);
  const auto constant = estimate(test::const_view_of(same, Shape{1000}), options, test::threads(1));
  ASSERT_TRUE(constant.ok());
  EXPECT_EQ(constant->bound_abs, 0);
  EXPECT_FALSE(estimate(test::const_view_of(std::vector<float>{}, Shape{0}), options).ok());
}

}  // namespace
}  // namespace firn
