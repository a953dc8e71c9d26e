// Strided memory in both directions: the same stream as the contiguous copy, and nothing touched
// between the values.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;
using Strides = std::array<std::int64_t, kMaxRank>;

struct Layout {
  const char* name;
  Shape shape;
  Strides strides;
  std::int64_t first;  // index of the first value in memory
};

const Layout kLayouts[] = {
    {"reversed", {300}, {-1}, 299},
    {"every third", {300}, {3}, 0},
    {"reversed with gaps", {300}, {-2}, 700},
    {"transposed", {20, 30}, {1, 20}, 0},
    {"rows with gaps", {20, 30}, {41, 1}, 5},
    {"upside down", {20, 30}, {-30, 1}, 570},
    {"mirrored", {20, 30}, {30, -1}, 29},
    {"both", {20, 30}, {-60, -2}, 1198},
    {"axes turned", {9, 10, 11}, {1, 99, 9}, 0},
    {"a slab of a larger array", {9, 10, 11}, {400, 20, 1}, 137},
    {"one of two components", {9, 10, 11}, {220, 22, 2}, 1},
    {"rank 4 turned", {5, 6, 7, 8}, {1, 5, 30, 210}, 0},
    {"rank 4 with gaps", {5, 6, 7, 8}, {1000, 100, 10, 1}, 3},
    {"extents of 1", {1, 30, 1, 20}, {-7, 20, 12345, 1}, 0},
};

std::int64_t offset_of(const Layout& layout, std::uint64_t index) {
  std::int64_t offset = layout.first;
  for (int k = layout.shape.rank - 1; k >= 0; --k) {
    offset += static_cast<std::int64_t>(index % layout.shape.extents[k]) * layout.strides[k];
    index /= layout.shape.extents[k];
  }
  return offset;
}

template <class T>
class StridedArrays : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(StridedArrays, ValueTypes);

TYPED_TEST(StridedArrays, GiveTheStreamOfTheirContiguousCopyAndComeBack) {
  using T = TypeParam;
  constexpr std::size_t kMemory = 8000;
  for (const Layout& layout : kLayouts) {
    for (const Pipeline pipeline : test::chosen_pipelines()) {
      for (const Bound bound : {Bound::abs(1e-2), Bound::rel(1e-3), Bound::psnr(60),
                                Bound::ratio(12), Bound::lossless()}) {
        auto values = make_field<T>(layout.shape, Kind::noisy);
        values[values.size() / 2] = std::numeric_limits<T>::quiet_NaN();
        std::vector<T> memory(kMemory, T(777));
        for (std::size_t i = 0; i < values.size(); ++i) {
          memory[static_cast<std::size_t>(offset_of(layout, i))] = values[i];
        }
        Options options;
        options.pipeline = pipeline;
        options.bound = bound;
        options.chunk = layout.shape;
        for (int k = 0; k < layout.shape.rank; ++k) {
          options.chunk.extents[k] = (layout.shape.extents[k] + 1) / 2;
        }
        SCOPED_TRACE(std::string(layout.name) + ", " + test::text_of(options));
        const ArrayView view{memory.data() + layout.first, test::kTypeOf<T>, layout.shape,
                             layout.strides};
        const auto stream = compress(view, options, test::threads(1));
        ASSERT_TRUE(stream.ok()) << stream.error().message;
        ASSERT_EQ(test::bytes_of(*stream), test::compressed(values, layout.shape, options));

        const auto plain = test::decompressed<T>(test::bytes_of(*stream), layout.shape);
        std::vector<T> out(kMemory, T(555));
        const Status status = decompress(
            *stream, {out.data() + layout.first, test::kTypeOf<T>, layout.shape, layout.strides},
            test::threads(2));
        ASSERT_TRUE(status.ok()) << status.error().message;
        std::vector<T> expected(kMemory, T(555));
        for (std::size_t i = 0; i < plain.size(); ++i) {
          expected[static_cast<std::size_t>(offset_of(layout, i))] = plain[i];
        }
        ASSERT_TRUE(test::same_bits(out, expected));

        const auto comparison = verify(view, *stream, test::threads(1));
        ASSERT_TRUE(comparison.ok());
        EXPECT_EQ(comparison->violations, 0u);
      }
    }
  }
}

TEST(StridedArrays, OfStrideZeroRepeatAValue) {
  const std::vector<float> row = make_field<float>({50}, Kind::noisy);
  const ArrayView view{row.data(), Type::f32, {40, 50}, Strides{0, 1}};
  Options options;
  options.bound = Bound::abs(1e-2);
  const auto stream = compress(view, options);
  ASSERT_TRUE(stream.ok());
  const auto decoded = test::decompressed<float>(test::bytes_of(*stream), {40, 50});
  std::vector<float> expected;
  for (int i = 0; i < 40; ++i) expected.insert(expected.end(), row.begin(), row.end());
  EXPECT_FALSE(test::broken_promise(expected, decoded, 1e-2));
}

// Of which a search for a ratio looks at parts.
TEST(StridedArrays, ThatAreLongLinesComeToTheBoundsOfTheirContiguousCopy) {
  const auto values = make_field<float>({9000}, Kind::noisy);
  const std::vector<float> reversed(values.rbegin(), values.rend());
  for (const Preset preset : {Preset::fast, Preset::balanced}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::ratio(6);
    const ArrayView view{&reversed.back(), Type::f32, {9000}, Strides{-1}};
    const auto stream = compress(view, options, test::threads(1));
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(test::bytes_of(*stream), test::compressed(values, {9000}, options));
  }
}

TEST(StridedArrays, ContiguousStridesMeanTheSameAsNone) {
  const auto values = make_field<double>({10, 20, 30}, Kind::noisy);
  Options options;
  options.bound = Bound::rel(1e-4);
  const ArrayView view{values.data(), Type::f64, {10, 20, 30}, Strides{600, 30, 1}};
  const auto stream = compress(view, options);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(test::bytes_of(*stream), test::compressed(values, {10, 20, 30}, options));
}

// What an absolute bound's plan reads of the array must not depend on the strides either.
TEST(StridedArrays, WithALargeValueGiveTheStreamOfTheirContiguousCopy) {
  std::vector<float> values(4096, 1.0f);
  Options options;
  options.bound = Bound::abs(1e-3);
  for (const std::size_t place : {0u, 10u, 100u, 1000u, 4000u, 4095u}) {
    values[place] = 1e4f;
    const ArrayView view{values.data(), Type::f32, {64, 64}, Strides{64, 1}};
    const auto stream = compress(view, options);
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(test::bytes_of(*stream), test::compressed(values, {64, 64}, options)) << place;
    values[place] = 1.0f;
  }
}

}  // namespace
}  // namespace firn
