// Compressions that are led to a size, of chunks whose sizes are made up; and real ones.
#include "engine/pass.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "engine/compress.hpp"
#include "engine/rate_search.hpp"
#include "plan/books.hpp"
#include "plan/plan.hpp"
#include "support/round_trip.hpp"

namespace firn::engine {
namespace {

// Bytes of a chunk under a step.
using Curve = std::function<double(std::size_t chunk, double log_step)>;

constexpr std::uint64_t kValues = 65536;

// One bit a value less for each doubling of the step, each chunk from another point on; few bits
// fall slower.
double smooth(std::size_t chunk, double log_step) {
  const double bits = 3 + 0.2 * static_cast<double>(chunk % 7) - log_step;
  return kValues / 8 * std::log2(1 + std::exp2(bits));
}
// As if the values had a grid of their own.
double leaping(std::size_t chunk, double log_step) {
  return smooth(chunk, 0.25 * std::floor(4 * log_step + 0.3 * static_cast<double>(chunk)));
}

struct Outcome {
  bool given_up = false, met = false;
  double size = 0;       // of what was encoded last, over what was wanted
  std::size_t work = 0;  // chunks that were encoded
  unsigned finest = 0;
};

// A pass at `log_step` after one at `before`, towards `bytes`.
Outcome run(std::size_t count, const Curve& curve, double before, const Pass::Goal& goal) {
  std::vector<ChunkSize> known(count);
  for (std::size_t i = 0; i < count; ++i) known[i] = {before, curve(i, before)};
  Pass pass(std::vector<std::uint64_t>(count, kValues), known, goal);
  std::vector<std::vector<double>> bytes(count);
  std::set<std::uint64_t> seen;
  Outcome outcome;
  for (auto wave = pass.next(); !wave.chunks.empty(); wave = pass.next()) {
    EXPECT_TRUE(std::is_sorted(wave.chunks.begin(), wave.chunks.end()));
    EXPECT_LE(wave.finer, goal.finest);
    outcome.finest = std::max(outcome.finest, wave.finer);
    std::vector<std::uint64_t> sizes;
    for (const std::uint64_t chunk : wave.chunks) {
      // Each once, but for the first ones, and some again only when all are there.
      seen.insert(chunk);
      const auto at = static_cast<std::size_t>(chunk);
      const double step = goal.step + std::log2((256.0 - wave.finer) / 256);
      bytes[at].push_back(std::floor(curve(at, step)));
      EXPECT_TRUE(bytes[at].size() <= 2 || seen.size() == count);
      sizes.push_back(static_cast<std::uint64_t>(bytes[at].back()));
    }
    outcome.work += sizes.size();
    pass.took(wave, sizes);
  }
  outcome.given_up = pass.given_up();
  EXPECT_EQ(seen.size() < count, outcome.given_up);
  outcome.met = pass.met();
  for (std::size_t i = 0; i < count; ++i) {
    if (!bytes[i].empty()) outcome.size += bytes[i][pass.taken(i)] / goal.bytes;
  }
  if (!outcome.given_up) {
    EXPECT_NEAR(pass.size(), outcome.size, 1e-9);
    EXPECT_EQ(outcome.met, outcome.size >= kLeastSize && outcome.size <= kMostSize);
  }
  return outcome;
}

Pass::Goal goal_for(double step, double bytes) {
  Pass::Goal goal{};
  goal.step = step;
  goal.finest = 40;
  goal.bytes = bytes;
  goal.slope = -1.3;
  goal.try_coarser = goal.try_finer = true;
  return goal;
}

double bytes_at(std::size_t count, const Curve& curve, double step) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += curve(i, step);
  return sum;
}

// Where only some steps are good: no others are taken, and several chunks meet sizes between them,
// mostly with the two next to it.
TEST(Pass, MeetsASizeOnStairs) {
  const std::size_t count = 9;
  const double bound = -20;
  for (const unsigned stair : {0u, 16u}) {
    for (const double wanted : {-21.3, -21.0, -20.8, -20.5}) {
      Pass::Goal goal = goal_for(bound, bytes_at(count, smooth, wanted));
      goal.stair = stair;
      goal.finer = 128;
      goal.coarsest = 0;
      goal.finest = 192;
      std::vector<ChunkSize> known(count);
      for (std::size_t i = 0; i < count; ++i) known[i] = {-22, smooth(i, -22)};
      Pass pass(std::vector<std::uint64_t>(count, kValues), known, goal);
      std::set<unsigned> steps;
      std::size_t work = 0;
      for (auto wave = pass.next(); !wave.chunks.empty(); wave = pass.next()) {
        const unsigned step = 256 - wave.finer;
        EXPECT_TRUE(std::has_single_bit(step) || (stair != 0 && step % stair == 0)) << step;
        steps.insert(step);
        work += wave.chunks.size();
        std::vector<std::uint64_t> sizes;
        for (const std::uint64_t chunk : wave.chunks) {
          const double log_step = bound + std::log2(step / 256.0);
          sizes.push_back(
              static_cast<std::uint64_t>(smooth(static_cast<std::size_t>(chunk), log_step)));
        }
        pass.took(wave, sizes);
      }
      EXPECT_TRUE(pass.met()) << stair << " " << wanted << " " << pass.size();
      EXPECT_LE(work, count + 3) << stair << " " << wanted;
      EXPECT_LE(steps.size(), stair == 0 ? 2u : 4u) << stair << " " << wanted;
    }
  }
}

// How many chunks are encoded when nothing is to be lost; all of them if it comes to its end.
std::size_t encoded_losslessly(const std::vector<std::uint64_t>& sizes, double bytes, bool given_up,
                               bool may_give_up = true) {
  Pass::Goal goal{};
  goal.bytes = bytes;
  goal.lossless = true;
  goal.try_coarser = may_give_up;
  Pass pass(std::vector<std::uint64_t>(sizes.size(), kValues), {}, goal);
  std::set<std::uint64_t> seen;
  for (auto wave = pass.next(); !wave.chunks.empty(); wave = pass.next()) {
    EXPECT_EQ(wave.finer, 0u);
    std::vector<std::uint64_t> took;
    for (const std::uint64_t chunk : wave.chunks) {
      EXPECT_TRUE(seen.insert(chunk).second);
      took.push_back(sizes[static_cast<std::size_t>(chunk)]);
    }
    pass.took(wave, took);
  }
  EXPECT_EQ(pass.given_up(), given_up);
  EXPECT_EQ(seen.size() < sizes.size(), given_up);
  return seen.size();
}

TEST(Pass, GivesUpWhatIsTooLargeWhenNothingIsLost) {
  const std::vector<std::uint64_t> alike(24, 1000);
  EXPECT_EQ(encoded_losslessly(alike, 24000, false), 24u);
  EXPECT_EQ(encoded_losslessly(alike, 23900, false), 24u);  // by half a percent
  EXPECT_EQ(encoded_losslessly(alike, 20000, true), 3u);
  EXPECT_LT(encoded_losslessly(alike, 23000, true), 24u);
  EXPECT_EQ(encoded_losslessly(alike, 20000, false, false), 24u);
  // A few tell nothing.
  EXPECT_EQ(encoded_losslessly({1000, 1000, 1000, 1000}, 2000, false), 4u);
  // The rough ones are seen among others.
  std::vector<std::uint64_t> some_rough(24, 500);
  for (std::size_t i = 0; i < 24; i += 4) some_rough[i] = 1500;
  EXPECT_EQ(encoded_losslessly(some_rough, 24 * 750, false), 24u);
  // One side of a square of chunks, or of a cube, is not taken for the whole.
  for (const std::size_t side : {4u, 8u}) {
    for (std::size_t rough = 0; rough < side; ++rough) {
      std::vector<std::uint64_t> sizes(64, 500);
      for (std::size_t i = rough; i < 64; i += side) sizes[i] = 1500;
      const double all = 64 * (500 + 1000 / static_cast<double>(side));
      EXPECT_EQ(encoded_losslessly(sizes, all, false), 64u) << side << " " << rough;
    }
  }
}

TEST(Pass, NothingIsKnownTheFirstTime) {
  Pass pass({10, 20, 30}, {}, goal_for(0, 1000));
  auto wave = pass.next();
  EXPECT_EQ(wave.chunks, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(wave.finer, 0u);
  pass.took(wave, std::vector<std::uint64_t>{100, 200, 300});
  EXPECT_TRUE(pass.next().chunks.empty());
  EXPECT_FALSE(pass.given_up());
  EXPECT_DOUBLE_EQ(pass.size(), 0.6);
}

TEST(Pass, MeetsSizesThatAreALittleSmallerOrLargerThanExpected) {
  for (const std::size_t count : {2, 3, 4, 6, 9, 16, 100, 1000}) {
    for (const double off : {0.985, 0.992, 1.0, 1.005}) {
      // What the step gives over what is wanted: known only by the pass.
      const double wanted = bytes_at(count, smooth, 0.5) / off;
      auto goal = goal_for(0.5 + std::log2(256.0 / 250), wanted);
      goal.finer = 6;
      const Outcome outcome = run(count, smooth, 0.3, goal);
      EXPECT_FALSE(outcome.given_up) << count << " " << off;
      EXPECT_TRUE(outcome.met) << count << " " << off << ": " << outcome.size;
      EXPECT_LE(outcome.work, count + (count * 6 + 9) / 10) << count << " " << off;
    }
  }
}

TEST(Pass, IsGivenUpEarlyWhenItCannotMeetTheSize) {
  for (const std::size_t count : {6, 16, 100}) {
    for (const double off : {0.8, 1.2}) {
      const double wanted = bytes_at(count, smooth, 0.5) / off;
      const Outcome outcome = run(count, smooth, 0.3, goal_for(0.5, wanted));
      EXPECT_TRUE(outcome.given_up) << count << " " << off;
      EXPECT_LE(outcome.work, count / 4);
    }
    // Unless there is nothing else to try.
    auto last = goal_for(0.5, bytes_at(count, smooth, 0.5) / 1.2);
    last.try_coarser = false;
    const Outcome outcome = run(count, smooth, 0.3, last);
    EXPECT_FALSE(outcome.given_up);
    EXPECT_NEAR(outcome.size, 1.2, 1e-3);
    EXPECT_EQ(outcome.finest, 0u);
  }
}

TEST(Pass, ChunksOnBothSidesOfALeapMeetWhatNoneWouldAlone) {
  std::size_t met = 0;
  for (const std::size_t count : {24, 50, 200}) {
    for (double share = 0.91; share < 1; share += 0.01) {
      auto goal = goal_for(1.0, bytes_at(count, leaping, 1.0) / share);
      goal.finest = 64;
      goal.try_finer = false;
      const Outcome outcome = run(count, leaping, 1.0, goal);
      EXPECT_GT(outcome.size, 0.9);
      met += outcome.met;
    }
  }
  EXPECT_GE(met, 24u);  // of 27 to 30
}

TEST(Pass, TheForecastFallsEvenly) {
  // Two bits a value and their logarithm.
  EXPECT_DOUBLE_EQ(evenly(1), 3);
  EXPECT_DOUBLE_EQ(evenly(0), 1);
}

TEST(Ratio, IsTheSameStreamWithAnyNumberOfThreads) {
  const Shape shape{40, 45, 50};
  const auto values = test::make_field<float>(shape, test::Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(6);
    options.chunk = {20, 15, 25};
    const auto expected = test::compressed(values, shape, options, 1);
    for (const int threads : {2, 4}) {
      ASSERT_EQ(test::compressed(values, shape, options, threads), expected);
    }
  }
}

// Chunks with finer steps than the others' among them.
TEST(Ratio, IsHeldAndTheBoundWithEveryPipeline) {
  const Shape shape{36, 60, 64};
  std::size_t finer = 0;
  for (const Pipeline pipeline :
       {Pipeline::automatic, Pipeline::blockpack, Pipeline::lorenzo, Pipeline::contexts,
        Pipeline::interp, Pipeline::causal, Pipeline::ceresz, Pipeline::ceresz4}) {
    for (const double ratio : {5.0, 8.0}) {
      for (const auto kind : {test::Kind::noisy, test::Kind::smooth}) {
        const auto values = test::make_field<float>(shape, kind);
        Options options;
        options.pipeline = pipeline;
        options.bound = Bound::ratio(ratio);
        options.chunk = {12, 30, 32};
        test::expect_promises(values, shape, options, 2);
        const auto chunks = inspect_chunks(test::compressed(values, shape, options, 2));
        ASSERT_TRUE(chunks);
        for (const auto& chunk : *chunks) finer += chunk.detail.find("finer") != std::string::npos;
      }
    }
  }
  EXPECT_GT(finer, 0u);
}

// Arrays of one chunk cannot be led, those of two hardly.
TEST(Ratio, IsHeldByFewChunks) {
  const Shape shape{64, 64, 64};
  const auto f32 = test::make_field<float>(shape, test::Kind::noisy);
  const auto f64 = test::make_field<double>(shape, test::Kind::noisy);
  for (const Preset preset : {Preset::balanced, Preset::small}) {
    for (const std::uint64_t planes : {64, 32}) {
      Options options;
      options.preset = preset;
      options.chunk = {planes, 64, 64};
      options.bound = Bound::ratio(9);
      const auto bytes = test::compressed(f32, shape, options, 1);
      EXPECT_NEAR(9.0 * static_cast<double>(bytes.size()) / (4 << 18), 1, 0.0101);
      options.bound = Bound::ratio(15);
      const auto wide = test::compressed(f64, shape, options, 1);
      EXPECT_NEAR(15.0 * static_cast<double>(wide.size()) / (8 << 18), 1, 0.0101);
    }
  }
}

// What no bound changes, and what is not like the rest of an array.
TEST(Ratio, EndsWhereNothingHelps) {
  const Shape shape{40, 100};
  const auto values = test::make_field<float>(shape, test::Kind::noisy);
  for (const Pipeline pipeline : {Pipeline::raw, Pipeline::shuffle, Pipeline::bits}) {
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::ratio(20);
    options.chunk = {10, 100};
    test::expect_promises(values, shape, options, 1);
  }
}

// Among specials and fill values little can be seen of how rough an array is.
TEST(Ratio, IsMetAmongSpecials) {
  const Shape shape{120, 1000};
  std::vector<double> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i % 1000), y = static_cast<double>(i / 1000);
    values[i] = std::sin(0.05 * x) + 0.7 * std::cos(0.07 * y);
  }
  auto steps = values;
  test::Random random(1);
  for (double& value : values) value += 1e-9 * static_cast<double>(random.below(1000000));
  auto masked = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (random.below(3) == 0) values[i] = std::numeric_limits<double>::quiet_NaN();
    if (i / 64 % 3 == 0) masked[i] = -9999;
    steps[i] = std::trunc(8 * steps[i]) / 8;
  }
  for (const Preset preset : {Preset::fast, Preset::balanced}) {
    Options options;
    options.preset = preset;
    const auto ratio_of = [&](const std::vector<double>& field, double ratio) {
      options.bound = Bound::ratio(ratio);
      const auto stream = test::compressed(field, shape, options, 2);
      return static_cast<double>(8 * field.size()) / static_cast<double>(stream.size()) / ratio;
    };
    EXPECT_NEAR(ratio_of(values, 4), 1, 0.05) << name_of(preset);
    EXPECT_NEAR(ratio_of(steps, 8), 1.04, 0.055) << name_of(preset);
    options.fill = -9999;
    EXPECT_NEAR(ratio_of(masked, 5), 1, 0.05) << name_of(preset);
  }
}

// In one dimension chunks are smaller under a ratio, and there may be none.
TEST(Ratio, FitsTheWorstCase) {
  for (const std::uint64_t count : {0, 1, 1000, 81920, 98304, 131072}) {
    const Shape shape{count};
    const auto values = test::make_field<float>(shape, test::Kind::any_bits);
    for (const Pipeline pipeline : {Pipeline::automatic, Pipeline::blockpack, Pipeline::lorenzo}) {
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::ratio(2);
      options.max_abs = 1e-37;
      const auto most = worst_case_size(Type::f32, shape, options);
      ASSERT_TRUE(most);
      EXPECT_LE(test::compressed(values, shape, options, 1).size(), *most) << count;
    }
  }
}

TEST(Ratio, LosesNothingWhereLosslessIsSmallEnough) {
  const Shape shape{30, 40, 50};
  const auto values = test::make_field<float>(shape, test::Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::lossless();
    const auto lossless = test::compressed(values, shape, options, 1);
    const double reached = 4 * 60000 / static_cast<double>(lossless.size());
    ASSERT_GT(reached, 1.1);
    for (const double share : {0.6, 0.9, 0.99}) {
      options.bound = Bound::ratio(std::max(1.0, reached * share));
      const auto bytes = test::compressed(values, shape, options, 1);
      EXPECT_EQ(inspect(bytes)->bound_abs, 0);
      EXPECT_TRUE(test::same_bits(test::decompressed<float>(bytes, shape), values));
    }
    options.bound = Bound::ratio(reached * 1.3);
    EXPECT_GT(inspect(test::compressed(values, shape, options, 1))->bound_abs, 0);
  }
}

// Any bound makes it far smaller than asked for, and so does none.
TEST(Ratio, LosesNothingWhereAllStreamsAreFarSmaller) {
  const Shape shape{64, 64, 64};
  std::vector<float> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 20000);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    for (const double ratio : {6.0, 50.0}) {
      Options options;
      options.preset = preset;
      options.bound = Bound::ratio(ratio);
      const auto bytes = test::compressed(values, shape, options, 1);
      EXPECT_EQ(inspect(bytes)->bound_abs, 0) << name_of(preset) << ' ' << ratio;
      EXPECT_TRUE(test::same_bits(test::decompressed<float>(bytes, shape), values));
    }
  }
}

// Whatever is given up on the way, and however little the largest bound allows.
TEST(Ratio, OfAnyKindOfFieldEndsWithAStream) {
  const Shape shape{24, 20, 22};
  for (const auto kind : test::kAllKinds) {
    const auto values = test::make_field<float>(shape, kind);
    for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
      for (const double ratio : {1.5, 11.0, 300.0}) {
        for (const double most : {0.0, 0.03}) {
          Options options;
          options.preset = preset;
          options.chunk = {6, 10, 11};
          options.bound = Bound::ratio(ratio);
          if (most > 0) options.max_abs = most;
          SCOPED_TRACE(testing::Message() << test::name_of(kind) << ", " << name_of(preset) << ", "
                                          << ratio << " within " << most);
          const auto bytes = test::compressed(values, shape, options, 1);
          const auto info = inspect(bytes);
          ASSERT_TRUE(info.ok());
          if (most > 0) {
            EXPECT_LE(info->bound_abs, most);
          }
          EXPECT_EQ(test::decompressed<float>(bytes, shape).size(), values.size());
        }
      }
    }
  }
}

TEST(Ratio, IsHeldAtBothEndsOfTheNumbers) {
  const Shape shape{40, 20, 30};
  for (const double scale : {1e-302, 1e-300, 1e300}) {
    auto values = test::make_field<double>(shape, test::Kind::noisy);
    for (auto& value : values) value *= scale;
    for (const Preset preset : {Preset::fast, Preset::balanced}) {
      for (const double ratio : {12.0, 30.0}) {
        SCOPED_TRACE(testing::Message() << scale << ", " << name_of(preset) << ", " << ratio);
        Options options;
        options.preset = preset;
        options.bound = Bound::ratio(ratio);
        const Info info = test::expect_promises(values, shape, options);
        EXPECT_NEAR(static_cast<double>(info.original_bytes) /
                        static_cast<double>(info.compressed_bytes) / ratio,
                    1, 0.05);
      }
    }
  }
  // Bounds of such values would not be normal numbers.
  auto values = test::make_field<double>(shape, test::Kind::noisy);
  for (auto& value : values) value *= 1e-315;
  Options options;
  options.bound = Bound::ratio(12);
  EXPECT_EQ(test::expect_promises(values, shape, options).bound_abs, 0);
}

TEST(Ratio, OfTheLargestNumbersEndsWithAStream) {
  const Shape shape{7, 8, 9};
  for (const double top : {1e308, 0x1p1023, std::numeric_limits<double>::max()}) {
    auto values = test::make_field<double>(shape, test::Kind::noise);
    for (auto& value : values) value = std::fabs(value) > 0.5 ? top : 0;
    for (const double ratio : {3.0, 30.0, 3000.0}) {
      for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
        Options options;
        options.preset = preset;
        options.chunk = {3, 4, 4};
        options.bound = Bound::ratio(ratio);
        test::expect_promises(values, shape, options);
      }
    }
  }
}

// The finest bound is far below what the range suggests.
TEST(Ratio, FollowsMostValuesWhereAFewAreMuchLarger) {
  const Shape shape{512, 512};
  std::vector<float> values(shape.count());
  std::uint32_t state = 1;
  double walk = 0;
  for (float& value : values) {
    double sum = -6;  // of twelve uniform numbers: nearly normal
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525 + 1013904223;
      sum += static_cast<double>(state) * 0x1p-32;
    }
    walk = 0.99 * walk + 0.141 * sum;
    value = static_cast<float>(std::exp(8 * walk));
  }
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(2);
    const auto stream = compress(test::const_view_of(values, shape), options);
    ASSERT_TRUE(stream.ok());
    const double ratio =
        static_cast<double>(4 * shape.count()) / static_cast<double>(stream->size());
    EXPECT_NEAR(ratio, 2, 0.2) << name_of(preset);
    test::expect_promises(values, shape, options);
  }
}

// No bound that was tried is too fine, but all but the finest are far too coarse.
TEST(Ratio, IsSoughtBelowAllBoundsThatWereTried) {
  const Shape shape{64, 64, 64};
  std::vector<float> values(shape.count(), 1.0f);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < values.size() / 16; ++i) {
    state = state * 1664525 + 1013904223;
    values[i] = static_cast<float>(state) * 1e-39f;
  }
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(30);
    options.chunk = {4, 64, 64};
    const auto stream = compress(test::const_view_of(values, shape), options);
    ASSERT_TRUE(stream.ok());
    const double size = static_cast<double>(stream->size());
    EXPECT_NEAR(static_cast<double>(4 * shape.count()) / size, 30, 3) << name_of(preset);
    test::expect_promises(values, shape, options);
  }
}

// A pass just below the largest bound is given up, and no other bound is left to try.
TEST(Ratio, OneCompressionAlwaysComesToItsEnd) {
  const Shape shape{32, 16, 16};
  const auto values = test::make_field<float>(shape, test::Kind::noisy);
  const ArrayView array = test::const_view_of(values, shape);
  Options options;
  options.bound = Bound::ratio(10);
  options.max_abs = 0.5;
  options.chunk = {4, 8, 8};
  constexpr std::size_t kChunks = 32;
  constexpr double kBytes = 8192 * 4 / 10.0 / kChunks;  // of each, to meet the ratio
  pipelines::Workers workers(1);
  RateSearch search(array, options, {}, workers);
  ASSERT_TRUE(search.first().ok());
  RateSearch::Try attempt{0.5 * (1 - 1e-5), 0, true};
  std::vector<pipelines::Choice> choices(kChunks);
  const std::vector<ChunkSize> large(kChunks, {std::log2(attempt.bound_abs), 3 * kBytes});
  (void)search.next(attempt, large, 0, &choices);
  attempt.rehearsal = false;
  // Chunks are three times too large, whatever the step.
  const auto compress = [&] {
    Pass pass = search.pass(attempt, std::vector<std::uint64_t>(kChunks, 256), 0);
    for (auto wave = pass.next(); !wave.chunks.empty(); wave = pass.next()) {
      pass.took(wave, std::vector<std::uint64_t>(wave.chunks.size(), std::uint64_t(3 * kBytes)));
    }
    return pass;
  };
  const Pass first = compress();
  ASSERT_TRUE(first.given_up());
  const auto next = search.next(attempt, first, &choices);
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(search.best());
  attempt = *next;
  const Pass second = compress();
  EXPECT_FALSE(second.given_up());
  (void)search.next(attempt, second, &choices);
  EXPECT_TRUE(search.best());
}

class Rehearsals : public testing::Test {
 protected:
  // One chunk.
  template <class T>
  void compress_at(const std::vector<T>& values, const Shape& shape, Preset preset, double bound) {
    Options options;
    options.preset = preset;
    options.bound = Bound::abs(bound);
    options.chunk = shape;
    const ArrayView array = test::const_view_of(values, shape);
    auto plan = plan::make_plan(array, options, workers_);
    ASSERT_TRUE(plan.ok());
    plan::BookPlan books;
    plan::plan_books(array, *plan, workers_, &books);
    const ChunkEncoder encoder(array, *plan, books);
    auto& workspace = workers_.workspace(0);
    choice_ = {};
    first_.resize(encoder.capacity());
    again_.resize(encoder.capacity());
    finished_.resize(encoder.capacity());
    rehearsed_ = encoder.rehearse(0, &choice_, workspace, first_.data()).size;
    pipelines::Choice fresh;
    first_.resize(encoder.encode(0, &fresh, 0, nullptr, workspace, first_.data()));
    again_.resize(encoder.encode(0, &choice_, 0, nullptr, workspace, again_.data()));
    // With limits that what was chosen is within, and such that it is not.
    const auto size = static_cast<double>(again_.size());
    pipelines::Choice same = choice_;
    const auto rehearse_within = [&](double least, double most) {
      finished_.assign(encoder.capacity(), 0);
      return encoder.rehearse(0, &same, workspace, finished_.data(), least, most);
    };
    const auto outside = rehearse_within(1.1 * size + 300, 1.2 * size + 300);
    EXPECT_FALSE(outside.written);
    const auto within = rehearse_within(0.995 * size - 32, 1.005 * size + 32);
    finished_.resize(within.written ? within.size : 0);
  }
  pipelines::Workers workers_{1};
  pipelines::Choice choice_;
  std::size_t rehearsed_ = 0;
  std::vector<std::uint8_t> first_, again_, finished_;
};

// Codes of 16, 32 and 64 bits.
TEST_F(Rehearsals, OfBlocksTellTheSizeOfEveryWidth) {
  const Shape shape{48, 50, 52};
  const auto values = test::make_field<double>(shape, test::Kind::noisy);
  for (const double bound : {1e-2, 1e-5, 1e-9, 1e-12}) {
    compress_at(values, shape, Preset::fast, bound);
    EXPECT_EQ(first_, again_);
    const auto size = static_cast<double>(first_.size());
    EXPECT_NEAR(static_cast<double>(rehearsed_), size, 0.02 * size + 300) << bound;
  }
}

TEST_F(Rehearsals, TellTheSizeAndTheWay) {
  const Shape shape{48, 50, 52};
  bool interpolated = false, causal = false;
  for (const auto kind : {test::Kind::noisy, test::Kind::smooth, test::Kind::noise}) {
    const auto values = test::make_field<float>(shape, kind);
    for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
      for (const double bound : {0.5, 0.02}) {
        compress_at(values, shape, preset, bound);
        // Bytes of what was chosen in the rehearsal are those of what is chosen without; `small`
        // compares sizes of two, which a rehearsal only estimates.
        const auto size = static_cast<double>(first_.size());
        if (preset == Preset::small) {
          EXPECT_NEAR(static_cast<double>(again_.size()), size, 0.01 * size);
        } else {
          EXPECT_EQ(first_, again_);
        }
        EXPECT_NEAR(static_cast<double>(rehearsed_), size, 0.02 * size + 300);
        // Blocks are packed in part only.
        if (preset != Preset::fast) {
          EXPECT_EQ(finished_, again_);
        }
        interpolated |= choice_.bases != nullptr;
        causal |= choice_.model != nullptr;
      }
    }
  }
  EXPECT_TRUE(interpolated);
  EXPECT_TRUE(causal);
}

}  // namespace
}  // namespace firn::engine
