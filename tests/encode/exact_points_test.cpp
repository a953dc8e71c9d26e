// Exact points: maps of every kind return with their values, at every lag, and damage is refused.
#include "encode/exact_points.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/random.hpp"

namespace firn::encode {
namespace {

using test::Random;

struct Points {
  std::size_t value_bytes = 4;
  std::vector<bool> map;
  std::vector<std::uint8_t> bytes;
};

constexpr MapCoding kCodings[] = {MapCoding::zstd, MapCoding::nonzero_bytes};

struct Context {
  Lossless lossless;
  ExactPointsScratch scratch;
};

BitMap bit_map_of(const std::vector<bool>& map) {
  BitMap bits;
  bits.reset(map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i]) bits.set(i);
  }
  return bits;
}

std::vector<std::uint8_t> written(const Points& points, const std::vector<std::size_t>& lags,
                                  MapCoding coding = MapCoding::zstd) {
  Context context;
  std::vector<std::uint8_t> out(exact_points_capacity(points.map.size(), points.bytes.size()));
  ByteWriter writer(out.data());
  write_exact_points(bit_map_of(points.map), lags, coding, points.value_bytes, points.bytes,
                     context.lossless, context.scratch, writer);
  EXPECT_LE(writer.size(), out.size());
  out.resize(writer.size());
  out.shrink_to_fit();
  return out;
}

// False when refused.
bool read(const std::vector<std::uint8_t>& bytes, std::size_t bits, std::size_t row_length,
          std::size_t value_bytes, Points* points, std::size_t* consumed = nullptr,
          MapCoding coding = MapCoding::zstd) {
  Context context;
  ByteReader in(bytes);
  BitMap map;
  map.reset(bits);
  ScratchArray<std::uint8_t> exact;
  if (!read_exact_points(in, row_length, coding, value_bytes, context.lossless, context.scratch,
                         map, exact)) {
    return false;
  }
  points->map.resize(bits);
  for (std::size_t i = 0; i < bits; ++i) points->map[i] = map.test(i);
  points->bytes.assign(exact.data(), exact.data() + map.count() * value_bytes);
  if (consumed != nullptr) *consumed = in.position();
  return true;
}

Points points_of(std::vector<bool> map, std::size_t value_bytes, std::uint64_t seed) {
  Points points{value_bytes, std::move(map), {}};
  Random random(seed);
  for (const bool set : points.map) {
    for (std::size_t b = 0; set && b < value_bytes; ++b) {
      points.bytes.push_back(static_cast<std::uint8_t>(random.next()));
    }
  }
  return points;
}

// Land: a disc that repeats from plane to plane, with a ragged coast.
std::vector<bool> coast(std::size_t planes, std::size_t rows, std::size_t columns) {
  std::vector<bool> map;
  for (std::size_t z = 0; z < planes; ++z) {
    for (std::size_t y = 0; y < rows; ++y) {
      for (std::size_t x = 0; x < columns; ++x) {
        const auto dy = static_cast<long>(y) - static_cast<long>(rows / 2);
        const auto dx = static_cast<long>(x) - static_cast<long>(columns / 2);
        map.push_back(dy * dy + dx * dx < static_cast<long>(rows * columns / 9 + (x * y) % 17));
      }
    }
  }
  return map;
}

void expect_return(const std::vector<bool>& map, const std::vector<std::size_t>& lags,
                   const std::string& what) {
  for (const std::size_t value_bytes : {4u, 8u}) {
    SCOPED_TRACE(what + ", " + std::to_string(map.size()) + " bits, values of " +
                 std::to_string(value_bytes));
    const Points points = points_of(map, value_bytes, 3);
    for (const MapCoding coding : kCodings) {
      const std::vector<std::uint8_t> bytes = written(points, lags, coding);
      Points back;
      std::size_t consumed = 0;
      ASSERT_TRUE(read(bytes, map.size(), lags[0], value_bytes, &back, &consumed, coding));
      EXPECT_EQ(consumed, bytes.size());
      ASSERT_TRUE(back.map == points.map);
      ASSERT_EQ(back.bytes, points.bytes);
    }
  }
}

TEST(ExactPoints, MapsOfEverySizeReturn) {
  Random random(1);
  for (const std::size_t bits : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u, 4096u, 5003u}) {
    for (const std::size_t row : {1u, 7u, 63u, 64u, 65u, 100u}) {
      std::vector<bool> sparse(bits), dense(bits), all(bits, true), one(bits);
      for (std::size_t i = 0; i < bits; ++i) {
        sparse[i] = random.below(20) == 0;
        dense[i] = random.below(20) != 0;
      }
      one[bits - 1] = true;
      const std::vector<std::size_t> lags{row, row * 7};
      expect_return(sparse, lags, "sparse");
      expect_return(dense, lags, "dense");
      expect_return(all, lags, "all");
      expect_return(one, lags, "the last");
    }
  }
}

TEST(ExactPoints, CoastsReturnAndThoseThatRepeatCostLittle) {
  const std::vector<bool> map = coast(6, 70, 90);
  expect_return(map, {90, 90 * 70}, "coast");
  expect_return(coast(5, 31, 30), {30, 30 * 31}, "coast of short rows");
  // Five planes like the first: little more than one of them.
  Points points = points_of(map, 4, 1);
  points.bytes.assign(points.bytes.size(), 0);
  const Points first = {4, {map.begin(), map.begin() + 90 * 70}, {}};
  Points one = first;
  for (const bool set : one.map) one.bytes.insert(one.bytes.end(), set ? 4 : 0, 0);
  EXPECT_LT(written(points, {90, 90 * 70}).size(), written(one, {90, 90 * 70}).size() + 64);
}

TEST(ExactPoints, AMaskOfOneValueCostsThatValue) {
  const std::vector<bool> map = coast(2, 40, 70);
  for (const std::size_t value_bytes : {4u, 8u}) {
    Points points = points_of(map, value_bytes, 5);
    const std::size_t different = written(points, {70, 2800}).size();
    for (std::size_t i = value_bytes; i < points.bytes.size(); ++i) {
      points.bytes[i] = points.bytes[i - value_bytes];
    }
    const std::vector<std::uint8_t> bytes = written(points, {70, 2800});
    EXPECT_LT(bytes.size() + points.bytes.size() / 2, different);
    Points back;
    ASSERT_TRUE(read(bytes, map.size(), 70, value_bytes, &back));
    EXPECT_TRUE(back.map == points.map);
    EXPECT_EQ(back.bytes, points.bytes);
  }
}

TEST(ExactPoints, TruncationsAreRefused) {
  const Points points = points_of(coast(2, 40, 70), 4, 9);
  for (const MapCoding coding : kCodings) {
    const std::vector<std::uint8_t> bytes = written(points, {70, 2800}, coding);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Points back;
      const std::vector<std::uint8_t> cut(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_FALSE(read(cut, points.map.size(), 70, 4, &back, nullptr, coding)) << size;
    }
  }
}

TEST(ExactPoints, ImpossibleLagsAndSizesAreRefused) {
  const Points points = points_of(coast(1, 40, 70), 4, 9);
  std::vector<std::uint8_t> bytes = written(points, {70});
  Points back;
  bytes[0] = 63;  // below a word
  EXPECT_FALSE(read(bytes, points.map.size(), 70, 4, &back));
  bytes = written(points, {70});
  EXPECT_FALSE(read(bytes, points.map.size() + 8, 70, 4, &back)) << "a map of another size";
  EXPECT_FALSE(read(bytes, points.map.size(), 70, 8, &back)) << "values of another width";
}

TEST(ExactPoints, FlippedBitsNeverCrash) {
  const Points points = points_of(coast(2, 30, 70), 4, 9);
  for (const MapCoding coding : kCodings) {
    const std::vector<std::uint8_t> bytes = written(points, {70, 2100}, coding);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::vector<std::uint8_t> flipped = bytes;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      Points back;
      if (read(flipped, points.map.size(), 70, 4, &back, nullptr, coding)) {
        EXPECT_EQ(back.map.size(), points.map.size());
      }
    }
  }
}

// Empty masks of empty masks cost nothing but the last level.
TEST(ExactPoints, MapsWithoutZeroBytesAreAsShortAsThat) {
  Points points{4, std::vector<bool>(64 * 512), std::vector<std::uint8_t>(4)};
  points.map[5000] = true;
  // A lag and a size of one byte each, 8 bytes of the last level, a byte on each of the others, and
  // the value behind its size.
  EXPECT_EQ(written(points, {64 * 512}, MapCoding::nonzero_bytes).size(), 2u + 8 + 3 + 1 + 4);
}

}  // namespace
}  // namespace firn::encode
