// Compressions that encode some chunks ahead of the others, and those that are given up.
#include <gtest/gtest.h>

#include <vector>

#include "engine/compress.hpp"
#include "engine/rate.hpp"
#include "support/round_trip.hpp"

namespace firn::engine {
namespace {

const Shape kShape{40, 45, 50};

struct Outcome {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> told;  // chunks, in the order of their sizes
};

// Gives up when it was told of `most` chunks.
Outcome run(const std::vector<float>& values, int threads, Watch* watch, std::size_t most) {
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {8, 9, 10};
  pipelines::Workers workers(threads);
  const ArrayView array = view(values.data(), kShape);
  auto plan = plan_for_bound(array, options, 1e-2, workers);
  EXPECT_TRUE(plan);
  CompressScratch scratch;
  Buffer buffer;
  Output output(&buffer);
  std::vector<pipelines::Choice> choices;
  Outcome outcome;
  if (watch != nullptr) {
    watch->goes_on = [&](std::uint64_t chunk, std::uint64_t bytes) {
      EXPECT_GT(bytes, 0u);
      outcome.told.push_back(chunk);
      return outcome.told.size() < most;
    };
  }
  EXPECT_TRUE(compress(array, *plan, {}, workers, scratch, output, &choices, nullptr, watch));
  outcome.bytes.assign(buffer.data(), buffer.data() + output.size());
  return outcome;
}

TEST(Watch, ChunksThatAreEncodedAheadDoNotChangeTheStream) {
  const auto values = test::make_field<float>(kShape, test::Kind::noisy);
  const auto expected = run(values, 1, nullptr, 0).bytes;
  for (const int threads : {1, 2, 4}) {
    for (const std::vector<std::uint64_t>& ahead :
         {std::vector<std::uint64_t>{}, {0}, {3, 17, 124}, {123, 124}}) {
      Watch watch;
      watch.ahead = ahead;
      const Outcome outcome = run(values, threads, &watch, 1000);
      EXPECT_FALSE(watch.given_up);
      ASSERT_EQ(outcome.bytes, expected);
      ASSERT_EQ(outcome.told.size(), 125u);  // each once, those ahead first, then in order
      for (std::size_t i = 0; i < ahead.size(); ++i) EXPECT_EQ(outcome.told[i], ahead[i]);
      for (std::size_t i = ahead.size() + 1; i < 125; ++i) {
        EXPECT_LT(outcome.told[i - 1], outcome.told[i]);
      }
    }
  }
}

TEST(Watch, ACompressionIsGivenUpWhenItIsToldTo) {
  const auto values = test::make_field<float>(kShape, test::Kind::noisy);
  for (const int threads : {1, 4}) {
    for (const std::size_t most : {1, 2, 3, 60}) {
      Watch watch;
      watch.ahead = {5, 50};
      EXPECT_EQ(run(values, threads, &watch, most).told.size(), most);
      EXPECT_TRUE(watch.given_up);
    }
  }
}

TEST(Ratio, IsTheSameStreamWithAnyNumberOfThreads) {
  const auto values = test::make_field<float>(kShape, test::Kind::noisy);
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(6);
    options.chunk = {20, 15, 25};
    const auto expected = test::compressed(values, kShape, options, 1);
    for (const int threads : {2, 4}) {
      ASSERT_EQ(test::compressed(values, kShape, options, threads), expected);
    }
  }
}

}  // namespace
}  // namespace firn::engine
