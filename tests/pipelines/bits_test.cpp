// The lossless pipelines and the choice between them.
#include "pipelines/bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/geometry.hpp"
#include "support/fields.hpp"

namespace firn::pipelines {
namespace {

using test::Kind;

template <class T>
class Lossless : public ::testing::Test {
 protected:
  static constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;

  Encoded encoded(const std::vector<T>& values, const Shape& shape, Pipeline pipeline,
                  bool thorough = false, bool trial = false) {
    Parameters parameters;
    parameters.pipeline = pipeline;
    parameters.thorough = thorough;
    parameters.trial = trial;
    payload_.resize(payload_capacity(values.size(), kType));
    const Box<const T> chunk(values.data(), contiguous_strides(shape), Region{{}, shape});
    const Encoded result = encode<T>(chunk, parameters, workspace_, payload_.data());
    payload_.resize(result.size);
    return result;
  }

  bool decodes_bits(std::span<const std::uint8_t> payload, const Shape& shape) {
    std::vector<T> values(shape.count());
    return decode_bits(payload, Box<T>(values.data(), contiguous_strides(shape), Region{{}, shape}),
                       workspace_);
  }

  std::vector<std::uint8_t> payload_;
  Workspace workspace_{0};
};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Lossless, ValueTypes);

TYPED_TEST(Lossless, TakesByteStatisticsOnlyWhereThingsRepeat) {
  using T = TypeParam;
  const Shape shape{40, 50, 60};
  // All of the mantissas' bits are in use.
  std::vector<T> smooth(shape.count());
  test::Random random(1);
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    const double wave = std::sin(0.0501 * static_cast<double>(i));
    smooth[i] = static_cast<T>(1.5 + wave + 1e-9 * static_cast<double>(random.below(1000000)));
  }
  EXPECT_EQ(this->encoded(smooth, shape, Pipeline::automatic).pipeline, Pipeline::bits);
  // Noise, of which every layer of 3,000 has the same.
  auto repeated = test::make_field<T>(shape, Kind::noise);
  for (std::size_t i = 3000; i < repeated.size(); ++i) {
    repeated[i] = repeated[i - 3000] * (i % 3000 < 1500 ? T(1) : T(2));
  }
  EXPECT_EQ(this->encoded(repeated, shape, Pipeline::automatic, true).pipeline, Pipeline::shuffle);
}

TYPED_TEST(Lossless, ThoroughlyIsTheSmallerOfBothWhereTheyAreNear) {
  using T = TypeParam;
  for (const Kind kind : test::kAllKinds) {
    for (const Shape& shape : {Shape{300}, Shape{40, 100}, Shape{30, 40, 50}}) {
      SCOPED_TRACE(::testing::Message() << test::name_of(kind) << ", rank " << shape.rank);
      const auto values = test::make_field<T>(shape, kind);
      const std::size_t bits = this->encoded(values, shape, Pipeline::bits).size;
      const std::size_t shuffled = this->encoded(values, shape, Pipeline::shuffle).size;
      const std::size_t chosen = this->encoded(values, shape, Pipeline::automatic, true).size;
      EXPECT_LE(static_cast<double>(chosen),
                1.1 * static_cast<double>(std::min(bits, shuffled)) + 32);
      // With the better distributions of the thorough one.
      EXPECT_LE(chosen, std::max(bits, shuffled) + 32);
    }
  }
}

TYPED_TEST(Lossless, TrialsTellTheSizeAbout) {
  using T = TypeParam;
  const Shape shape{32, 64, 64};  // planes as large as zstd's blocks
  for (const Kind kind : {Kind::noisy, Kind::noise, Kind::wild}) {
    SCOPED_TRACE(test::name_of(kind));
    const auto values = test::make_field<T>(shape, kind);
    const auto size = static_cast<double>(this->encoded(values, shape, Pipeline::automatic).size);
    const Encoded trial = this->encoded(values, shape, Pipeline::automatic, false, true);
    EXPECT_NEAR(static_cast<double>(trial.size), size, 0.08 * size);
  }
}

// Stretches where nothing happens, at the distance of the pieces that a sample has.
TYPED_TEST(Lossless, SeesStretchesInTrialsAndSamples) {
  using T = TypeParam;
  const Shape shape{57600};
  test::Random random(1);
  for (const std::size_t stretch : {2039u, 4078u, 18578u}) {
    std::vector<T> values(shape.count());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double noise = 1e-9 * static_cast<double>(random.below(1000000));
      values[i] = i / stretch % 2 == 1
                      ? T(3)
                      : static_cast<T>(std::sin(0.01 * static_cast<double>(i)) + noise);
    }
    const auto bits = static_cast<double>(this->encoded(values, shape, Pipeline::bits).size);
    const auto planes = static_cast<double>(this->encoded(values, shape, Pipeline::shuffle).size);
    const auto least = std::min(bits, planes);
    for (const bool trial : {false, true}) {
      const Encoded chosen = this->encoded(values, shape, Pipeline::automatic, false, trial);
      EXPECT_NEAR(static_cast<double>(chosen.size), least, 0.05 * least) << stretch << trial;
    }
  }
}

// Under another bound it may be of use.
TYPED_TEST(Lossless, KeepsTheChoiceOfAnotherWay) {
  using T = TypeParam;
  const Shape shape{20, 30, 40};
  std::vector<T> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(1000 * std::sin(0.01 * static_cast<double>(i)));
  }
  Parameters parameters;
  parameters.pipeline = Pipeline::automatic;
  parameters.bound_abs = sizeof(T) == 4 ? 0x1p-20 : 0x1p-50;  // less than values resolve
  parameters.margin = 4;
  parameters.rehearsal = true;
  parameters.choice.candidate.pipeline = Pipeline::contexts;
  std::vector<std::uint8_t> payload(payload_capacity(values.size(), this->kType));
  const Box<const T> chunk(values.data(), contiguous_strides(shape), Region{{}, shape});
  const Encoded result = encode<T>(chunk, parameters, this->workspace_, payload.data());
  ASSERT_TRUE(result.pipeline == Pipeline::bits || result.pipeline == Pipeline::shuffle);
  EXPECT_NE(result.choice.candidate.pipeline, Pipeline::automatic);
}

TYPED_TEST(Lossless, PayloadsThatEndTooSoonOrLateAreRefused) {
  using T = TypeParam;
  const Shape shape{9, 20};
  const auto values = test::make_field<T>(shape, Kind::noisy);
  ASSERT_EQ(this->encoded(values, shape, Pipeline::bits).pipeline, Pipeline::bits);
  const std::vector<std::uint8_t> whole = this->payload_;
  ASSERT_TRUE(this->decodes_bits(whole, shape));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(this->decodes_bits({whole.data(), size}, shape)) << size;
  }
  auto longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(this->decodes_bits(longer, shape));
  auto shifted = whole;
  shifted[1] = 32;
  EXPECT_FALSE(this->decodes_bits(shifted, shape));
  auto of_another_rank = whole;
  of_another_rank[0] = 0x10;
  EXPECT_FALSE(this->decodes_bits(of_another_rank, shape));
}

}  // namespace
}  // namespace firn::pipelines
