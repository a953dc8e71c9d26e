// Interpolation with every set of frozen axes: within the bound, and the same on every target.
#include "pipelines/interp.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/geometry.hpp"
#include "support/fields.hpp"

namespace firn::pipelines {
namespace {

template <class T>
class Interp : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Interp, ValueTypes);

TYPED_TEST(Interp, KeepsTheBoundWithAnyAxesFrozen) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{1}, Shape{2}, Shape{77}, Shape{9, 70}, Shape{6, 11, 37},
                             Shape{21, 22, 30}, Shape{3, 4, 9, 21}}) {
    auto values = test::make_field<T>(shape, test::Kind::noisy);
    test::sprinkle_specials(values, 3, 7);
    const auto strides = contiguous_strides(shape);
    const Box<const T> chunk(values.data(), strides, Region{{}, shape});
    Parameters parameters;
    parameters.bound_abs = 0.25;
    parameters.margin = 10;
    for (unsigned frozen = 0; frozen < (1u << shape.rank); ++frozen) {
      const int fineness = static_cast<int>(frozen % (kMaxFineness + 1));
      std::vector<std::uint8_t> first;
      for (const simd::Target target : simd::available_targets()) {
        Workspace workspace(0, target);
        std::vector<std::uint8_t> payload(
            payload_capacity(values.size(), sizeof(T) == 4 ? Type::f32 : Type::f64));
        Encoded encoded;
        if (!encode_interp(chunk, parameters, frozen, fineness, false, workspace, payload.data(),
                           &encoded)) {
          EXPECT_LT(values.size(), 100u) << "only tiny chunks are mostly specials";
          continue;
        }
        payload.resize(encoded.size);
        if (first.empty()) first = payload;
        EXPECT_EQ(payload, first) << simd::name_of(target);
        std::vector<T> decoded(values.size());
        ASSERT_TRUE(decode_interp(std::span<const std::uint8_t>(payload), parameters,
                                  Box<T>(decoded.data(), strides, Region{{}, shape}), workspace));
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (std::isfinite(values[i])) {
            ASSERT_LE(std::fabs(decoded[i] - values[i]), T(0.25)) << i;
          } else {
            ASSERT_EQ(test::bits_of(decoded[i]), test::bits_of(values[i])) << i;
          }
        }
      }
    }
  }
}

// The same with stencils trained, of chunks with enough points for that.
TYPED_TEST(Interp, KeepsTheBoundWithTrainedStencils) {
  using T = TypeParam;
  int with_stencils = 0;
  for (const Shape& shape : {Shape{9000}, Shape{70, 91}, Shape{8, 3000}, Shape{30, 31, 32},
                             Shape{64, 5, 33}, Shape{12, 13, 14, 15}}) {
    auto values = test::make_field<T>(shape, test::Kind::noisy);
    test::sprinkle_specials(values, 3, 50);
    const auto strides = contiguous_strides(shape);
    const Box<const T> chunk(values.data(), strides, Region{{}, shape});
    Parameters parameters;
    parameters.bound_abs = 0x1p-6;
    parameters.margin = 10;
    for (unsigned frozen = 0; frozen + 1 < (1u << shape.rank); ++frozen) {
      std::vector<std::uint8_t> first;
      for (const simd::Target target : simd::available_targets()) {
        Workspace workspace(0, target);
        std::vector<std::uint8_t> payload(
            payload_capacity(values.size(), sizeof(T) == 4 ? Type::f32 : Type::f64));
        Encoded encoded;
        ASSERT_TRUE(
            encode_interp(chunk, parameters, frozen, 3, true, workspace, payload.data(), &encoded));
        payload.resize(encoded.size);
        if (first.empty()) {
          first = payload;
          with_stencils +=
              describe_interp(payload, shape.rank, 0).find("trained") != std::string::npos;
        }
        EXPECT_EQ(payload, first) << simd::name_of(target);
        std::vector<T> decoded(values.size());
        ASSERT_TRUE(decode_interp(std::span<const std::uint8_t>(payload), parameters,
                                  Box<T>(decoded.data(), strides, Region{{}, shape}), workspace));
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (std::isfinite(values[i])) {
            ASSERT_LE(std::fabs(decoded[i] - values[i]), T(0x1p-6)) << i;
          } else {
            ASSERT_EQ(test::bits_of(decoded[i]), test::bits_of(values[i])) << i;
          }
        }
        for (std::size_t cut = 1; cut < 100; cut += 7) {
          const auto part = std::span<const std::uint8_t>(payload).first(payload.size() - cut);
          EXPECT_FALSE(decode_interp(
              part, parameters, Box<T>(decoded.data(), strides, Region{{}, shape}), workspace));
        }
      }
    }
  }
  EXPECT_GT(with_stencils, 10);
}

// Every factor-th value, exact ones among them, is what decoding everything gives there; and the
// beginning of the payload is enough.
TYPED_TEST(Interp, PreviewsFromTheBeginningOfAPayload) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{3000}, Shape{150, 170}, Shape{21, 22, 30}, Shape{3, 4, 9, 21}}) {
    auto values = test::make_field<T>(shape, test::Kind::noisy);
    test::sprinkle_specials(values, 3, 7);
    const auto strides = contiguous_strides(shape);
    const Box<const T> chunk(values.data(), strides, Region{{}, shape});
    Parameters parameters;
    parameters.bound_abs = 0x1p-10;  // so fine that the last level has most of the bits
    parameters.margin = 10;
    Workspace workspace(0);
    for (const unsigned frozen : {0u, 1u}) {
      std::vector<std::uint8_t> payload(
          payload_capacity(values.size(), sizeof(T) == 4 ? Type::f32 : Type::f64));
      Encoded encoded;
      ASSERT_TRUE(encode_interp(chunk, parameters, frozen, 1, frozen == 0, workspace,
                                payload.data(), &encoded));
      payload.resize(encoded.size);
      std::vector<T> decoded(values.size());
      ASSERT_TRUE(decode_interp(std::span<const std::uint8_t>(payload), parameters,
                                Box<T>(decoded.data(), strides, Region{{}, shape}), workspace));
      // What lies behind the coarse levels must not matter (along a frozen axis nothing is coarse).
      if (frozen == 0) {
        for (std::size_t i = payload.size() - payload.size() / 8; i < payload.size(); ++i) {
          payload[i] = 0xAA;
        }
      }
      for (const std::size_t factor : {2u, 4u, 64u}) {
        Shape small = shape;
        for (int k = 0; k < shape.rank; ++k) {
          small.extents[k] = (shape.extents[k] + factor - 1) / factor;
        }
        std::vector<T> preview(static_cast<std::size_t>(small.count()));
        ASSERT_TRUE(preview_interp(
            std::span<const std::uint8_t>(payload), parameters, shape.rank, chunk.extents(), factor,
            Box<T>(preview.data(), contiguous_strides(small), Region{{}, small}), workspace));
        for (std::size_t i = 0; i < preview.size(); ++i) {
          std::size_t rest = i, at = 0;
          for (int k = shape.rank; k-- > 0;) {
            at += rest % small.extents[k] * factor * static_cast<std::size_t>(strides[k]);
            rest /= small.extents[k];
          }
          ASSERT_EQ(test::bits_of(preview[i]), test::bits_of(decoded[at])) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace firn::pipelines
