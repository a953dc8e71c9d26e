// Trained causal prediction: within the bound for every way a chunk can lie in the wavefront, and
// the same on every target.
#include "pipelines/causal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/geometry.hpp"
#include "support/fields.hpp"

namespace firn::pipelines {
namespace {

template <class T>
class Causal : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Causal, ValueTypes);

template <class T>
void check_round_trip(const Shape& shape, const std::vector<T>& values, double bound,
                      std::optional<double> fill = {}) {
  const auto strides = contiguous_strides(shape);
  const Box<const T> chunk(values.data(), strides, Region{{}, shape});
  Parameters parameters;
  parameters.bound_abs = bound;
  parameters.margin = 10;
  parameters.fill = fill;
  std::vector<std::uint8_t> first;
  for (const simd::Target target : simd::available_targets()) {
    Workspace workspace(0, target);
    std::vector<std::uint8_t> payload(
        payload_capacity(values.size(), sizeof(T) == 4 ? Type::f32 : Type::f64));
    Encoded encoded;
    ASSERT_TRUE(encode_causal(chunk, parameters, workspace, payload.data(), &encoded));
    payload.resize(encoded.size);
    if (first.empty()) first = payload;
    EXPECT_EQ(payload, first) << simd::name_of(target);
    std::vector<T> decoded(values.size());
    ASSERT_TRUE(decode_causal(std::span<const std::uint8_t>(payload), parameters,
                              Box<T>(decoded.data(), strides, Region{{}, shape}), workspace));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool exact = !std::isfinite(values[i]) || (fill && values[i] == static_cast<T>(*fill));
      if (exact) {
        ASSERT_EQ(test::bits_of(decoded[i]), test::bits_of(values[i])) << i;
      } else {
        ASSERT_LE(std::fabs(static_cast<double>(decoded[i]) - static_cast<double>(values[i])),
                  bound)
            << i;
      }
    }
  }
}

TYPED_TEST(Causal, KeepsTheBoundInEveryShape) {
  using T = TypeParam;
  // Lines, planes narrower and wider than the window, short axes, axes of 1, a fast axis that is
  // not the chunk's fastest, and a shape too thin for a wavefront.
  for (const Shape& shape :
       {Shape{1}, Shape{2}, Shape{31}, Shape{33}, Shape{1000}, Shape{1, 500}, Shape{300, 1},
        Shape{40, 70}, Shape{3, 700}, Shape{700, 3}, Shape{70, 40}, Shape{6, 11, 37},
        Shape{5, 20, 130}, Shape{90, 7, 7}, Shape{20, 1, 60}, Shape{3, 4, 9, 61},
        Shape{2, 2, 2, 300}, Shape{9, 8, 7, 6}}) {
    SCOPED_TRACE(::testing::PrintToString(
        std::vector<std::uint64_t>(shape.extents.begin(), shape.extents.begin() + shape.rank)));
    check_round_trip(shape, test::make_field<T>(shape, test::Kind::noisy), 0.25);
  }
}

TYPED_TEST(Causal, KeepsSpecialAndFillValues) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{900}, Shape{40, 70}, Shape{6, 11, 67}, Shape{3, 4, 9, 61}}) {
    auto values = test::make_field<T>(shape, test::Kind::noisy);
    test::sprinkle_specials(values, 3, 7);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 40 < 13) values[i] = T(1e30);
    }
    check_round_trip(shape, values, 0.25, 1e30);
  }
}

TYPED_TEST(Causal, SurvivesValuesOfEveryMagnitude) {
  using T = TypeParam;
  const Shape shape{20, 70};
  auto values = test::make_field<T>(shape, test::Kind::noisy);
  for (std::size_t i = 0; i < values.size(); i += 50) values[i] = std::numeric_limits<T>::max();
  check_round_trip(shape, values, 0.25);
}

TEST(CausalPrediction, TakesFewBitsForWhatItCanPredict) {
  const Shape shape{20, 60, 70};
  std::vector<double> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i % 70), y = static_cast<double>(i / 70 % 60);
    const double z = static_cast<double>(i / 4200);
    values[i] = 0.5 * x * y - 0.25 * y * z + 3 * x;
  }
  const Box<const double> chunk(values.data(), contiguous_strides(shape), Region{{}, shape});
  Parameters parameters;
  parameters.bound_abs = 0.01;
  parameters.margin = 10;
  Workspace workspace(0);
  std::vector<std::uint8_t> payload(payload_capacity(values.size(), Type::f64));
  Encoded encoded;
  ASSERT_TRUE(encode_causal(chunk, parameters, workspace, payload.data(), &encoded));
  EXPECT_LT(encoded.size, values.size() * sizeof(double) / 20);
}

}  // namespace
}  // namespace firn::pipelines
