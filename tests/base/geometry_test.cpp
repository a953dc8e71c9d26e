// Chunk grids, chunk shapes and boxes of strided memory, also beyond 2^32 values.
#include "base/geometry.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "container/format.hpp"

namespace firn {
namespace {

constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;

TEST(CheckShapes, RefusesWhatCannotBe) {
  EXPECT_TRUE(check_shapes(Type::f32, {5}, {5}, format::kMaxChunkValues).ok());
  EXPECT_TRUE(check_shapes(Type::f32, {0}, {0}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {}, {}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(
      check_shapes(Type::f32, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {5, 5}, {5}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {5}, {0}, format::kMaxChunkValues).ok());
  EXPECT_TRUE(check_shapes(Type::f32, {format::kMaxChunkValues}, {format::kMaxChunkValues},
                           format::kMaxChunkValues)
                  .ok());
  EXPECT_FALSE(check_shapes(Type::f32, {format::kMaxChunkValues * 2}, {format::kMaxChunkValues + 1},
                            format::kMaxChunkValues)
                   .ok());
  EXPECT_FALSE(
      check_shapes(Type::f32, {1u << 13, 1u << 13}, {1u << 13, 1u << 13}, format::kMaxChunkValues)
          .ok());
}

TEST(CheckShapes, BytesFit63Bits) {
  const std::uint64_t most = (std::uint64_t{1} << 61) - 1;
  EXPECT_TRUE(check_shapes(Type::f32, {most}, {1}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f64, {most}, {1}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {kTwoTo32, kTwoTo32}, {1, 1}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {~std::uint64_t{0}}, {1}, format::kMaxChunkValues).ok());
  EXPECT_FALSE(check_shapes(Type::f32, {kTwoTo32, kTwoTo32, kTwoTo32, kTwoTo32}, {1, 1, 1, 1},
                            format::kMaxChunkValues)
                   .ok());
}

TEST(ChooseChunk, KeepsSmallArraysWhole) {
  EXPECT_EQ(choose_chunk({100, 100}, 1 << 18), (Shape{100, 100}));
  EXPECT_EQ(choose_chunk({0, 100}, 1 << 18), (Shape{0, 100}));
}

TEST(ChooseChunk, IsNearACubeWithLongerRows) {
  for (const Shape& shape : {Shape{512, 512, 512}, Shape{4096, 4096}, Shape{100, 100, 100, 100}}) {
    const Shape chunk = choose_chunk(shape, 1 << 18);
    const std::uint64_t row = chunk.extents[shape.rank - 1];
    EXPECT_EQ(row % 16, 0u);
    for (int k = 0; k + 1 < shape.rank; ++k) {
      EXPECT_EQ(chunk.extents[k], chunk.extents[0]);
      EXPECT_LE(chunk.extents[k], row);
      EXPECT_GE(chunk.extents[k], row / 3);
    }
  }
  EXPECT_EQ(choose_chunk({1 << 24}, 1 << 18), (Shape{1 << 18}));
}

TEST(ChooseChunk, IsOfWholePlanesThatAreSmall) {
  EXPECT_EQ(choose_chunk({100, 64, 128}, 1 << 18), (Shape{25, 64, 128}));
  EXPECT_EQ(choose_chunk({1000000, 7, 7}, 1 << 18), (Shape{5348, 7, 7}));
  EXPECT_NE(choose_chunk({100, 128, 128}, 1 << 18).extents[1], 128u);
}

TEST(ChooseChunk, SurvivesShapesThatCannotBe) {
  const std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_LE(choose_chunk({huge}, 1 << 18).count(), 1u << 18);
  choose_chunk({huge, huge, huge}, 1 << 18);
  choose_chunk({kTwoTo32, kTwoTo32}, 1 << 18);
}

TEST(ChooseChunk, AlwaysFitsAndCoversEveryShape) {
  for (const Shape& shape : {Shape{1000003}, Shape{7, 1000003}, Shape{1000003, 7},
                             Shape{1, 1, 1, 5000000}, Shape{3, 65537, 2, 11}, Shape{kTwoTo32 + 5},
                             Shape{kTwoTo32, 3, 100}, Shape{97, 89, 83, 79}}) {
    const Shape chunk = choose_chunk(shape, 1 << 18);
    EXPECT_LE(chunk.count(), 1u << 18);
    EXPECT_GT(chunk.count(), (1u << 18) / 8) << "too small a chunk";
    EXPECT_TRUE(check_shapes(Type::f64, shape, chunk, format::kMaxChunkValues).ok());
  }
}

TEST(ChooseSlab, IsContiguous) {
  EXPECT_EQ(choose_slab({10, 20, 30}, 1000), (Shape{1, 20, 30}));
  EXPECT_EQ(choose_slab({10, 20, 30}, 1200), (Shape{2, 20, 30}));
  EXPECT_EQ(choose_slab({10, 20, 30}, 10), (Shape{1, 1, 10}));
  EXPECT_EQ(choose_slab({10, 20, 30}, 1 << 20), (Shape{10, 20, 30}));
}

// Every value of the array lies in exactly one chunk.
void expect_partition(const Shape& shape, const Shape& chunk) {
  const Grid grid(shape, chunk);
  const auto strides = contiguous_strides(shape);
  std::vector<int> seen(shape.count());
  for (std::uint64_t n = 0; n < grid.count(); ++n) {
    const Region region = grid.region(n);
    const Box<int> box(seen.data(), strides, region);
    EXPECT_EQ(box.count(), region.shape.count());
    EXPECT_GT(box.count(), 0u);
    box.for_each_row([&](int* row, std::size_t) {
      for (std::size_t i = 0; i < box.row_length(); ++i) {
        ++row[static_cast<std::int64_t>(i) * box.row_stride()];
      }
      return true;
    });
  }
  EXPECT_EQ(static_cast<std::size_t>(std::count(seen.begin(), seen.end(), 1)), seen.size());
}

TEST(Grid, ChunksPartitionTheArray) {
  expect_partition({17}, {5});
  expect_partition({17}, {17});
  expect_partition({1}, {1});
  expect_partition({7, 11}, {3, 4});
  expect_partition({7, 11}, {7, 1});
  expect_partition({5, 1, 13}, {2, 1, 13});
  expect_partition({5, 6, 7, 8}, {2, 3, 4, 5});
  expect_partition({5, 6, 7, 8}, {5, 6, 7, 8});
}

TEST(Grid, AnEmptyArrayHasNoChunks) {
  EXPECT_EQ(Grid({0}, {0}).count(), 0u);
  EXPECT_EQ(Grid({3, 0, 5}, {3, 0, 5}).count(), 0u);
}

TEST(Grid, NumbersRunInRowMajorOrder) {
  const Grid grid({4, 6}, {2, 2});
  ASSERT_EQ(grid.count(), 6u);
  EXPECT_EQ(grid.region(1).origin[0], 0u);
  EXPECT_EQ(grid.region(1).origin[1], 2u);
  EXPECT_EQ(grid.region(3).origin[0], 2u);
  EXPECT_EQ(grid.region(3).origin[1], 0u);
}

TEST(Grid, AnEmptyBoxTouchesNoChunk) {
  EXPECT_EQ(Grid({4, 6}, {2, 2}).part({{4, 6}, {0, 0}}).count, 0u);
  EXPECT_EQ(Grid({3, 0}, {3, 0}).part({{0, 0}, {3, 0}}).count, 0u);
}

TEST(Grid, NamesTheChunksThatTouchABox) {
  const Shape shape{9, 10, 11}, chunk{4, 3, 5};
  const Grid grid(shape, chunk);
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    Region box;
    box.shape = shape;
    for (int k = 0; k < 3; ++k) {
      box.origin[k] = (trial * (7 + 3 * k)) % shape.extents[k];
      box.shape.extents[k] = 1 + (trial * (5 + k)) % (shape.extents[k] - box.origin[k]);
    }
    std::vector<std::uint64_t> visited, expected;
    const Grid::Part part = grid.part(box);
    for (std::uint64_t i = 0; i < part.count; ++i) visited.push_back(part.number(i));
    for (std::uint64_t n = 0; n < grid.count(); ++n) {
      const Region region = grid.region(n);
      bool touches = true;
      for (int k = 0; k < 3; ++k) {
        touches = touches && region.origin[k] < box.origin[k] + box.shape.extents[k] &&
                  box.origin[k] < region.origin[k] + region.shape.extents[k];
      }
      if (touches) expected.push_back(n);
    }
    ASSERT_EQ(visited, expected);
  }
}

TEST(Grid, CountsBeyond32Bits) {
  const Shape shape{kTwoTo32 + 5}, chunk{1000};
  const Grid grid(shape, chunk);
  EXPECT_EQ(grid.count(), (kTwoTo32 + 5 + 999) / 1000);
  const Region last = grid.region(grid.count() - 1);
  EXPECT_EQ(last.origin[0] + last.shape.extents[0], kTwoTo32 + 5);
  // More chunks than 32 bits count, too.
  const Grid fine({kTwoTo32, 16}, {1, 8});
  EXPECT_EQ(fine.count(), 2 * kTwoTo32);
  const Region region = fine.region(2 * kTwoTo32 - 1);
  EXPECT_EQ(region.origin[0], kTwoTo32 - 1);
  EXPECT_EQ(region.origin[1], 8u);
  const Grid::Part part = fine.part({{kTwoTo32 - 2, 9}, {1, 1}});
  EXPECT_EQ(part.count, 1u);
  EXPECT_EQ(part.number(0), 2 * (kTwoTo32 - 2) + 1);
}

TEST(ContiguousStrides, AreProductsOfTheFasterExtents) {
  const auto strides = contiguous_strides({2, kTwoTo32, 3, 5});
  EXPECT_EQ(strides[3], 1);
  EXPECT_EQ(strides[2], 5);
  EXPECT_EQ(strides[1], 15);
  EXPECT_EQ(strides[0], static_cast<std::int64_t>(15 * kTwoTo32));
}

// The values of a box in row-major order, gathered row by row.
std::vector<int> gathered(const Box<const int>& box) {
  std::vector<int> values(box.count(), -1);
  box.for_each_row([&](const int* row, std::size_t offset) {
    for (std::size_t i = 0; i < box.row_length(); ++i) {
      values[offset + i] = row[static_cast<std::int64_t>(i) * box.row_stride()];
    }
    return true;
  });
  return values;
}

std::vector<int> gathered_naively(const int* data,
                                  const std::array<std::int64_t, kMaxRank>& strides,
                                  const Region& region) {
  std::vector<int> values;
  std::array<std::uint64_t, kMaxRank> at{};
  for (std::uint64_t n = 0; n < region.shape.count(); ++n) {
    std::int64_t offset = 0;
    std::uint64_t rest = n;
    for (int k = region.shape.rank - 1; k >= 0; --k) {
      at[k] = rest % region.shape.extents[k];
      rest /= region.shape.extents[k];
      offset += static_cast<std::int64_t>(region.origin[k] + at[k]) * strides[k];
    }
    values.push_back(data[offset]);
  }
  return values;
}

TEST(Box, GathersAnyStrides) {
  std::vector<int> memory(5000);
  std::iota(memory.begin(), memory.end(), 0);
  const int* middle = memory.data() + 2500;
  struct Case {
    std::array<std::int64_t, kMaxRank> strides;
    Region region;
  };
  const Case cases[] = {
      {{1}, {{0}, {7}}},
      {{1}, {{3}, {7}}},
      {{-1}, {{3}, {7}}},
      {{0}, {{3}, {7}}},
      {{5}, {{0}, {1}}},
      {{12, 1}, {{2, 3}, {4, 5}}},
      {{12, 1}, {{2, 0}, {4, 12}}},  // rows that join
      {{1, 12}, {{2, 3}, {4, 5}}},   // transposed
      {{-12, 1}, {{2, 3}, {4, 5}}},  // upside down
      {{12, -1}, {{2, 3}, {4, 5}}},  // mirrored
      {{24, 2}, {{2, 3}, {4, 5}}},   // every other value
      {{0, 1}, {{2, 3}, {4, 5}}},    // one row again and again
      {{120, 12, 1}, {{1, 2, 0}, {3, 4, 12}}},
      {{120, 12, 1}, {{1, 0, 0}, {3, 10, 12}}},
      {{120, 1, 10}, {{1, 2, 3}, {3, 4, 5}}},
      {{7, 100, 1}, {{0, 0, 0}, {3, 1, 5}}},
      {{300, 60, 12, 1}, {{1, 1, 2, 3}, {3, 2, 3, 4}}},
      {{300, 60, 12, 1}, {{1, 0, 0, 0}, {3, 5, 5, 12}}},
      {{-300, 60, -12, 1}, {{1, 1, 2, 3}, {3, 1, 1, 4}}},
      {{1, 12, 60, 300}, {{1, 1, 2, 3}, {3, 2, 3, 1}}},
  };
  for (const Case& c : cases) {
    const Box<const int> box(middle, c.strides, c.region);
    EXPECT_EQ(gathered(box), gathered_naively(middle, c.strides, c.region));
  }
}

TEST(Box, JoinsRowsThatFollowEachOther) {
  std::vector<int> memory(1000);
  const auto strides = contiguous_strides({10, 10, 10});
  EXPECT_EQ(Box<int>(memory.data(), strides, {{0, 0, 0}, {10, 10, 10}}).row_length(), 1000u);
  EXPECT_EQ(Box<int>(memory.data(), strides, {{3, 0, 0}, {2, 10, 10}}).row_length(), 200u);
  EXPECT_EQ(Box<int>(memory.data(), strides, {{3, 1, 0}, {2, 5, 10}}).row_length(), 50u);
  EXPECT_EQ(Box<int>(memory.data(), strides, {{3, 1, 2}, {2, 5, 5}}).row_length(), 5u);
}

TEST(Box, StopsWhenAsked) {
  std::vector<int> memory(100);
  const Box<int> box(memory.data(), {10, 1}, {{0, 0}, {10, 5}});
  int rows = 0;
  EXPECT_FALSE(box.for_each_row([&](int*, std::size_t) { return ++rows < 3; }));
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace firn
