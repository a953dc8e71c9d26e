// Every pipeline on every SIMD target: the same bytes, decoded alike by all of them.
#include "support/pipelines.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/geometry.hpp"
#include "container/format.hpp"
#include "pipelines/difference_orders.hpp"
#include "pipelines/pipeline.hpp"
#include "support/exact_bound.hpp"

namespace firn::pipelines {
namespace {

using test::Kind;
using test::make_field;

template <class T>
class EveryPipeline : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EveryPipeline, ValueTypes);

template <class T>
Box<const T> box_of(const std::vector<T>& values, const Shape& shape) {
  return Box<const T>(values.data(), contiguous_strides(shape), Region{{}, shape});
}
template <class T>
Box<T> mutable_box_of(std::vector<T>& values, const Shape& shape) {
  return Box<T>(values.data(), contiguous_strides(shape), Region{{}, shape});
}

TYPED_TEST(EveryPipeline, HasSmallerErrorsWithAFinerStepAndMeasuresThem) {
  using T = TypeParam;
  const Shape shape{40, 50};
  const auto values = make_field<T>(shape, Kind::noisy, 5);
  for (const Pipeline pipeline :
       {Pipeline::lorenzo, Pipeline::contexts, Pipeline::interp, Pipeline::causal}) {
    SCOPED_TRACE(name_of(pipeline));
    Parameters parameters;
    parameters.pipeline = pipeline;
    parameters.bound_abs = 1.0 / 1024;
    parameters.margin = 10;
    parameters.measured = true;
    double square_before = 1;
    for (const int finer : {0, 32, 64}) {
      parameters.finer = static_cast<std::uint8_t>(finer);
      Workspace workspace(0);
      std::vector<std::uint8_t> payload(payload_capacity(values.size(), test::kTypeOf<T>));
      const Encoded encoded =
          encode<T>(box_of(values, shape), parameters, workspace, payload.data());
      ASSERT_EQ(encoded.pipeline, pipeline);
      std::vector<T> decoded(values.size());
      ASSERT_TRUE(decode<T>(pipeline, {payload.data(), encoded.size}, parameters,
                            mutable_box_of(decoded, shape), workspace));
      double square = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double error =
            (static_cast<double>(decoded[i]) - static_cast<double>(values[i])) * 1024;
        ASSERT_LE(std::fabs(error), 1 - finer / 256.0 + 1e-3);
        square += error * error / static_cast<double>(values.size());
      }
      EXPECT_NEAR(encoded.mean_square, square, 1e-6);
      EXPECT_LT(square, square_before);
      square_before = square;
    }
  }
}

// Bounds of a few units in the values' last place: steps have a grain, and whatever is decoded is a
// number of the type, so that nothing has to be exact. Some bounds are halves of their steps.
TYPED_TEST(EveryPipeline, NeedsNoExactPointsUnderTightBounds) {
  using T = TypeParam;
  const Shape shape{40, 50};
  const auto values = make_field<T>(shape, Kind::dense, 5);
  const T unit = std::nextafter(values[0], std::numeric_limits<T>::infinity()) - values[0];
  std::vector<Pipeline> pipelines{Pipeline::lorenzo, Pipeline::blockpack, Pipeline::contexts};
  std::vector<double> list{8.0, 8.5, 9.0, 11.3, 64.0};  // in f64 codes have at most 50 bits
  if (sizeof(T) == 4) {
    pipelines.insert(pipelines.end(), {Pipeline::interp, Pipeline::causal});
    list.insert(list.end(), {0.5, 0.7, 1.0, 1.4, 1.5, 2.0, 2.5, 3.0, 3.7, 4.0});
  }
  for (const Pipeline pipeline : pipelines) {
    for (const double units : list) {
      SCOPED_TRACE(::testing::Message() << name_of(pipeline) << ", " << units << " units");
      Parameters parameters;
      parameters.pipeline = pipeline;
      parameters.bound_abs = static_cast<double>(static_cast<T>(units) * unit);
      const auto bits = static_cast<int>(std::floor(std::log2(2 * units)));
      parameters.margin = format::kGrid + bits;  // the grain is a unit
      Workspace workspace(0);
      std::vector<std::uint8_t> payload(payload_capacity(values.size(), test::kTypeOf<T>));
      const Encoded encoded =
          encode<T>(box_of(values, shape), parameters, workspace, payload.data());
      ASSERT_EQ(encoded.pipeline, pipeline);
      EXPECT_EQ(payload[0] & format::kHasExactPoints, 0);
      EXPECT_LE(encoded.max_error, parameters.bound_abs);
      std::vector<T> decoded(values.size());
      ASSERT_TRUE(decode<T>(pipeline, {payload.data(), encoded.size}, parameters,
                            mutable_box_of(decoded, shape), workspace));
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(test::within_exactly(static_cast<double>(decoded[i]),
                                         static_cast<double>(values[i]), parameters.bound_abs));
      }
    }
  }
}

TYPED_TEST(EveryPipeline, GivesTheSameBytesOnEveryTarget) {
  using T = TypeParam;
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{4099}, Shape{37, 53}, Shape{13, 17, 19},
                               Shape{5, 7, 11, 13}, Shape{3, 2000}, Shape{2000, 3}}) {
      for (const Kind kind : test::kAllKinds) {
        const int margin = kind == Kind::dense ? format::kGrid + 2 : 5;
        for (const double bound : {0.0, 1e-3, kind == Kind::dense ? 0.03 : 3.0}) {
          auto values = make_field<T>(shape, kind, 5);
          if (kind == Kind::noisy) test::sprinkle_specials(values, 8, values.size() / 20);
          Parameters parameters;
          parameters.pipeline = pipeline;
          parameters.bound_abs = static_cast<double>(static_cast<T>(bound));
          parameters.margin = bound == 0 ? 0 : margin;
          SCOPED_TRACE(::testing::Message()
                       << name_of(pipeline) << ", " << values.size() << " values, "
                       << test::name_of(kind) << ", bound " << bound);
          const std::size_t room = payload_capacity(values.size(), test::kTypeOf<T>);
          std::vector<std::uint8_t> expected;
          Encoded first;
          for (const simd::Target target : simd::available_targets()) {
            SCOPED_TRACE(simd::name_of(target));
            Workspace workspace(0, target);
            std::vector<std::uint8_t> payload(room, 0xEE);
            const Encoded encoded =
                encode<T>(box_of(values, shape), parameters, workspace, payload.data());
            ASSERT_LE(encoded.size, values.size() * sizeof(T));
            payload.resize(encoded.size);
            if (expected.empty()) {
              expected = payload;
              first = encoded;
            }
            ASSERT_EQ(encoded.pipeline, first.pipeline);
            ASSERT_EQ(encoded.max_error, first.max_error);
            ASSERT_TRUE(payload == expected);
          }
          std::vector<T> decoded_first;
          for (const simd::Target target : simd::available_targets()) {
            SCOPED_TRACE(simd::name_of(target));
            Workspace workspace(0, target);
            std::vector<T> decoded(values.size(), T(-1));
            ASSERT_TRUE(decode<T>(first.pipeline, expected, parameters,
                                  mutable_box_of(decoded, shape), workspace));
            if (decoded_first.empty()) decoded_first = decoded;
            ASSERT_TRUE(test::same_bits(decoded, decoded_first));
          }
          const auto broken = test::broken_promise(values, decoded_first, parameters.bound_abs);
          ASSERT_FALSE(broken) << *broken;
          const auto achieved = test::broken_promise(values, decoded_first, first.max_error);
          if (first.max_error > 0) {
            ASSERT_FALSE(achieved) << "beyond what was reported: " << *achieved;
          }
        }
      }
    }
  }
}

TYPED_TEST(EveryPipeline, RefusesAnIdThatIsNone) {
  using T = TypeParam;
  std::vector<T> values(10);
  Workspace workspace(0);
  Parameters parameters;
  parameters.bound_abs = 1;
  parameters.margin = 5;
  const std::vector<std::uint8_t> payload(40);
  for (int id = 0; id < 256; ++id) {
    if (std::string(name_of(static_cast<Pipeline>(id))) != "unknown" && id != 0) continue;
    EXPECT_FALSE(decode<T>(static_cast<Pipeline>(id), payload, parameters,
                           mutable_box_of(values, {10}), workspace))
        << id;
  }
}

TEST(Orders, PackAndUnpack) {
  for (int packed = 0; packed < 256; ++packed) {
    Orders orders{};
    int sum = 0;
    bool sensible = true;
    for (int k = 0; k < 4; ++k) {
      sum += packed >> (2 * k) & 3;
      sensible = sensible && (packed >> (2 * k) & 3) != 3;
    }
    ASSERT_EQ(unpack_orders(static_cast<std::uint8_t>(packed), 4, &orders), sensible && sum <= 4);
    if (sensible && sum <= 4) {
      EXPECT_EQ(pack_orders(orders), packed);
    }
  }
  Orders orders{};
  EXPECT_FALSE(unpack_orders(0x04, 1, &orders)) << "an order for an axis that is not there";
  EXPECT_TRUE(unpack_orders(0x02, 1, &orders));
}

TEST(Orders, FitWhereAnAxisHasMoreValuesThanDifferences) {
  EXPECT_TRUE(orders_fit({0, 1, 2}, 3, {1, 2, 3}));
  EXPECT_FALSE(orders_fit({1, 0, 0}, 3, {1, 2, 3}));
  EXPECT_FALSE(orders_fit({0, 2, 0}, 3, {1, 2, 3}));
}

TEST(Orders, HistoryHasRoomForEveryChoice) {
  for (const std::array<std::size_t, kMaxRank>& extents :
       {std::array<std::size_t, kMaxRank>{5, 6, 7, 8}, {1, 1, 1, 9}, {9, 1, 1, 1}, {1, 5, 1, 5}}) {
    for (int rank = 1; rank <= 4; ++rank) {
      for (int packed = 0; packed < 256; ++packed) {
        Orders orders{};
        if (!unpack_orders(static_cast<std::uint8_t>(packed), rank, &orders)) continue;
        if (!orders_fit(orders, rank, extents)) continue;
        EXPECT_LE(lags_of(orders, rank, extents).history(), history_room(rank, extents));
      }
    }
  }
}

}  // namespace
}  // namespace firn::pipelines
