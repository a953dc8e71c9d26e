// Phases: values that gather in the middle between two codes take no more than those around a code.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/forged_stream.hpp"
#include "support/random.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

constexpr double kBound = 0.5;

// So many steps from zero, most of them, within a quarter of a step; here and there one is further
// off, so that there is something to code.
template <class T>
std::vector<T> gathered(const Shape& shape, double steps) {
  test::Random random(3);
  std::vector<T> values(shape.count());
  for (T& value : values) {
    const double near = 0.5 * (random.unit() - 0.5), far = random.below(50) == 0 ? 3 : 0;
    value = static_cast<T>((steps + near + far) * 2 * kBound * (1 - 0x1p-10));
  }
  return values;
}

Options options_of(Pipeline pipeline, Preset preset, Bound bound = Bound::abs(kBound)) {
  Options options;
  options.pipeline = pipeline;
  options.preset = preset;
  options.bound = bound;
  return options;
}

// The ways in which codes may have one, and arrays that are large enough for it.
struct Way {
  Options options;
  Shape shape;
};
std::vector<Way> ways() {
  return {{options_of(Pipeline::automatic, Preset::fast), {512, 520}},
          {options_of(Pipeline::automatic, Preset::fast), {300000}},
          {options_of(Pipeline::contexts, Preset::balanced), {50, 60, 50}},
          {options_of(Pipeline::lorenzo, Preset::balanced), {50, 60, 50}}};
}

// In per cent of a step, as the first chunk's description tells; 0 where it tells none.
int phase_of(const std::vector<std::uint8_t>& stream) {
  const std::string text = inspect_chunks(stream)->front().detail, word = "phase ";
  const std::size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + word.size()));
}

template <class T>
void expect_phases() {
  for (const Way& way : ways()) {
    SCOPED_TRACE(test::text_of(way.options));
    const auto at_a_code = gathered<T>(way.shape, 100), between = gathered<T>(way.shape, 100.5);
    const auto plain = test::compressed(at_a_code, way.shape, way.options);
    const auto phased = test::compressed(between, way.shape, way.options);
    EXPECT_NEAR(static_cast<double>(phased.size()), static_cast<double>(plain.size()),
                0.05 * static_cast<double>(plain.size()));
    EXPECT_NEAR((phase_of(plain) + 50) % 100, 50, 5);
    EXPECT_NEAR(phase_of(phased), 50, 5);
    test::expect_promises(between, way.shape, way.options);
    EXPECT_EQ(test::compressed(between, way.shape, way.options, 2), phased);
  }
}

TEST(Phases, BringValuesBetweenTwoCodesToOne) {
  expect_phases<float>();
  expect_phases<double>();
}

TEST(Phases, AreFoundForARatio) {
  const Shape shape{300000};
  const auto values = gathered<float>(shape, 100.5);
  const auto options = options_of(Pipeline::automatic, Preset::fast);
  const auto stream = test::compressed(values, shape, options);
  Options ask = options;
  ask.bound =
      Bound::ratio(4.0 * static_cast<double>(values.size()) / static_cast<double>(stream.size()));
  const auto found = test::compressed(values, shape, ask);
  EXPECT_LE(static_cast<double>(found.size()), 1.01 * static_cast<double>(stream.size()));
  EXPECT_LT(inspect(found)->bound_abs, 1.05 * kBound);
}

TEST(Phases, KeepFillValuesAndSuchAsAreNotFinite) {
  for (Way way : ways()) {
    for (const float fill : {1e20f, 0.0f}) {
      auto values = gathered<float>(way.shape, 100.5);
      test::Random random(5);
      for (float& value : values) {
        if (random.below(7) == 0) value = fill;
        if (random.below(900) == 0) value = std::numeric_limits<float>::quiet_NaN();
        if (random.below(900) == 0) value = -std::numeric_limits<float>::infinity();
      }
      way.options.fill = fill;
      test::expect_promises(values, way.shape, way.options);
      EXPECT_NEAR(phase_of(test::compressed(values, way.shape, way.options)), 50, 5);
    }
  }
}

// Beyond all codes, most of the values: their median is no number of steps.
TEST(Phases, AreLeftOutWhereStrangersGather) {
  for (const Way& way : ways()) {
    auto values = gathered<double>(way.shape, 100.5);
    test::Random random(8);
    for (double& value : values) value = random.below(8) == 0 ? value : 1e308;
    EXPECT_EQ(phase_of(test::compressed(values, way.shape, way.options)), 0);
    test::expect_promises(values, way.shape, way.options);
  }
}

TEST(Phases, LeaveZerosWhatTheyAre) {
  for (const Way& way : ways()) {
    auto values = gathered<double>(way.shape, 0.5);
    test::Random random(6);
    for (double& value : values) value = random.below(3) == 0 ? 0 : value;
    const auto stream = test::compressed(values, way.shape, way.options);
    const auto decoded = test::decompressed<double>(stream, way.shape);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) {
        ASSERT_EQ(decoded[i], 0);
      }
    }
  }
}

// Values that are all positive stay so, or become zero.
TEST(Phases, KeepSigns) {
  for (const Way& way : ways()) {
    for (const double sign : {1.0, -1.0}) {
      auto values = gathered<double>(way.shape, 0.7);
      test::Random random(9);
      for (double& value : values) value = sign * (random.below(20) == 0 ? 0.05 : value);
      const auto stream = test::compressed(values, way.shape, way.options);
      for (const double decoded : test::decompressed<double>(stream, way.shape)) {
        ASSERT_GE(sign * decoded, 0);
      }
    }
  }
}

// Half of the values within more than a step: there it makes no difference.
TEST(Phases, AreLeftOutWhereValuesAreFarApart) {
  for (const Way& way : ways()) {
    auto values = gathered<float>(way.shape, 100.5);
    test::Random random(7);
    for (float& value : values) value += static_cast<float>(8 * random.unit());
    EXPECT_EQ(phase_of(test::compressed(values, way.shape, way.options)), 0);
  }
}

TEST(Phases, AreNotCountedOnForAPsnr) {
  const Shape shape{512, 520};
  const auto values = gathered<float>(shape, 100.5);
  for (const double decibels : {15, 16, 17, 22}) {
    SCOPED_TRACE(decibels);
    const auto options = options_of(Pipeline::automatic, Preset::fast, Bound::psnr(decibels));
    const auto stream = test::compressed(values, shape, options);
    EXPECT_EQ(phase_of(stream), 0);
    const double ratio =
        static_cast<double>(4 * values.size()) / static_cast<double>(stream.size());
    const auto estimated = estimate(test::const_view_of(values, shape), options);
    ASSERT_TRUE(estimated.ok());
    EXPECT_NEAR(std::log2(estimated->ratio / ratio), 0, 1);
  }
}

TEST(Phases, DoNotDependOnStrides) {
  const Shape shape{512, 520};
  const auto values = gathered<float>(shape, 100.5);
  std::vector<float> apart(2 * values.size(), 7);
  for (std::size_t i = 0; i < values.size(); ++i) apart[2 * i] = values[i];
  ArrayView strided = test::const_view_of(apart, shape);
  strided.strides = {{2 * 520, 2, 0, 0}};
  const auto options = options_of(Pipeline::automatic, Preset::fast);
  EXPECT_EQ(test::bytes_of(*compress(strided, options)), test::compressed(values, shape, options));
}

// A phase that is 0 is left out, and pipelines that predict values have none.
TEST(Phases, AreRefusedWhereTheyDoNotBelong) {
  const Shape shape = ways()[2].shape;
  const auto between = gathered<float>(shape, 100.5);
  const auto good = test::compressed(between, shape, ways()[2].options);
  auto chunk = test::sole_chunk_of(good);
  ASSERT_EQ(chunk.payload[0] & format::kHasPhase, format::kHasPhase);
  std::vector<float> decoded(shape.count());
  const auto decodes = [&](Pipeline pipeline) {
    return decompress(test::forged_stream(chunk.header, pipeline, chunk.payload),
                      mutable_view(decoded.data(), shape))
        .ok();
  };
  EXPECT_TRUE(decodes(chunk.pipeline));
  // Behind flags, orders and a base of two bytes.
  std::size_t place = 2;
  while (chunk.payload[place] >= 128) ++place;
  auto& phase = chunk.payload[place + 1];
  ASSERT_NEAR(phase, 128, 12);
  phase = 0;
  EXPECT_FALSE(decodes(chunk.pipeline));

  const auto plain =
      test::compressed(between, shape, options_of(Pipeline::interp, Preset::balanced));
  chunk = test::sole_chunk_of(plain);
  EXPECT_TRUE(decodes(Pipeline::interp));
  chunk.payload[0] |= format::kHasPhase;
  EXPECT_FALSE(decodes(Pipeline::interp));
}

}  // namespace
}  // namespace firn
