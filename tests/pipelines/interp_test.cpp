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
  for (const Shape& shape :
       {Shape{1}, Shape{2}, Shape{77}, Shape{9, 70}, Shape{6, 11, 37}, Shape{3, 4, 9, 21}}) {
    auto values = test::make_field<T>(shape, test::Kind::noisy);
    test::sprinkle_specials(values, 3, 7);
    const auto strides = contiguous_strides(shape);
    const Box<const T> chunk(values.data(), strides, Region{{}, shape});
    Parameters parameters;
    parameters.bound_abs = 0.25;
    parameters.margin = 10;
    for (unsigned frozen = 0; frozen < (1u << shape.rank); ++frozen) {
      std::vector<std::uint8_t> first;
      for (const simd::Target target : simd::available_targets()) {
        Workspace workspace(0, target);
        std::vector<std::uint8_t> payload(interp_capacity(values.size(), sizeof(T)));
        Encoded encoded;
        if (!encode_interp(chunk, parameters, frozen, workspace, payload.data(), &encoded)) {
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

}  // namespace
}  // namespace firn::pipelines
