// Headers return whole, and no damaged one is taken for sound.
#include "container/header.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "container/format.hpp"

namespace firn::container {
namespace {

std::vector<std::uint8_t> written(Header header) {
  std::vector<std::uint8_t> bytes(kMaxHeaderBytes);
  ByteWriter out(bytes.data());
  write_header(header, out);
  EXPECT_LE(out.size(), kMaxHeaderBytes);
  bytes.resize(out.size());
  return bytes;
}

Result<Header> read(const std::vector<std::uint8_t>& bytes) {
  ByteReader in(bytes);
  return read_header(in, bytes);
}

std::vector<Header> headers() {
  std::vector<Header> list;
  for (const Type type : {Type::f32, Type::f64}) {
    for (const Shape& shape :
         {Shape{0}, Shape{1}, Shape{1000}, Shape{7, 0, 3}, Shape{100, 500, 500},
          Shape{std::uint64_t{1} << 40, 3}, Shape{5, 6, 7, 8}}) {
      for (int kind = 0; kind <= 5; ++kind) {
        for (const bool with_fill : {false, true}) {
          Header header;
          header.type = type;
          header.shape = shape;
          header.chunk = shape;
          if (shape.count() > 100) {
            for (int k = 0; k < shape.rank; ++k) {
              header.chunk.extents[k] = std::min<std::uint64_t>(shape.extents[k], 3 + k);
            }
          }
          header.bound.kind = static_cast<BoundKind>(kind);
          if (kind != 0) {
            header.bound_abs = 0.125;
            header.margin = kind == 4 ? 0 : with_fill ? 10 : format::kGrid + 2 * kind;
            header.bound.value = kind == 1 ? 0.125 : 1e-3;
            header.tighter = kind == 5 ? 97 : 0;
          }
          if (with_fill) header.fill = type == Type::f32 ? static_cast<double>(1e20f) : 1e20;
          list.push_back(header);
        }
      }
    }
  }
  return list;
}

TEST(Header, Returns) {
  for (const Header& header : headers()) {
    const auto bytes = written(header);
    const auto back = read(bytes);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->type, header.type);
    EXPECT_EQ(back->shape, header.shape);
    EXPECT_EQ(back->chunk, header.chunk);
    EXPECT_EQ(back->bound.kind, header.bound.kind);
    EXPECT_EQ(back->bound.value, header.bound.value);
    EXPECT_EQ(back->bound_abs, header.bound_abs);
    EXPECT_EQ(back->margin, header.margin);
    EXPECT_EQ(back->promised(), header.promised());
    EXPECT_EQ(back->fill, header.fill);
  }
}

TEST(Header, EveryFlippedBitIsAnError) {
  for (const Header& header : headers()) {
    const auto bytes = written(header);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      auto flipped = bytes;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      const auto back = read(flipped);
      ASSERT_FALSE(back.ok()) << "bit " << bit;
      const ErrorCode code = back.error().code;
      if (bit < 32) {
        EXPECT_EQ(code, ErrorCode::not_firn);
      } else if (bit < 40) {
        EXPECT_TRUE(code == ErrorCode::newer_version || code == ErrorCode::corrupt);
      } else {
        EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::truncated);
      }
    }
  }
}

TEST(Header, EveryTruncationIsAnError) {
  for (const Header& header : headers()) {
    auto bytes = written(header);
    while (!bytes.empty()) {
      bytes.pop_back();
      const auto back = read(bytes);
      ASSERT_FALSE(back.ok());
      EXPECT_EQ(back.error().code, bytes.empty() ? ErrorCode::not_firn : ErrorCode::truncated);
    }
  }
}

// Bytes that carry a right checksum all the same.
std::vector<std::uint8_t> sealed(std::vector<std::uint8_t> bytes) {
  const std::size_t body = bytes.size() - format::kChecksumBytes;
  store_le(bytes.data() + body, checksum({bytes.data(), body}));
  return bytes;
}

TEST(Header, AChecksumIsNoProofOfSense) {
  Header header;
  header.shape = header.chunk = Shape{10, 20};
  header.bound = Bound::abs(0.125);
  header.bound_abs = 0.125;
  header.margin = 10;
  const auto good = written(header);
  ASSERT_TRUE(read(sealed(good)).ok());

  auto bad = good;
  bad[6] = 0x11;  // margin 1
  EXPECT_FALSE(read(sealed(bad)).ok());
  bad[6] = 0xB1;  // margin 11
  EXPECT_FALSE(read(sealed(bad)).ok());
  header.margin = format::kGrid + format::kMaxGrainBits;
  bad = written(header);
  ASSERT_TRUE(read(bad).ok());
  ++bad[17];  // a grain that is too small
  EXPECT_FALSE(read(sealed(bad)).ok());
  header.bound_abs = 0;  // no steps, but a grain
  EXPECT_FALSE(read(written(header)).ok());
  for (const double bound : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(), 1.0 + 0x1p-40, 1e300}) {
    bad = good;
    store_le(bad.data() + 9, bound);
    EXPECT_FALSE(read(sealed(bad)).ok()) << bound;
  }
}

TEST(Header, ImpossiblePointwiseBoundsAreRefused) {
  Header header;
  header.shape = header.chunk = Shape{10, 20};
  header.bound = Bound::pwrel(0.125);
  header.bound_abs = 0.125;
  ASSERT_TRUE(read(written(header)).ok());
  header.margin = 4;
  EXPECT_FALSE(read(written(header)).ok());
  header.margin = 0;
  header.bound_abs = 0.75;
  EXPECT_FALSE(read(written(header)).ok());
}

TEST(Header, ImpossibleChunksAreRefused) {
  // A chunk extent of 0 beside an extent that is not, in an array with values and in one without.
  for (const Shape& shape : {Shape{3, 5}, Shape{0, 5}, Shape{5, 0}}) {
    Header header;
    header.shape = shape;
    header.chunk = Shape{2, 2};
    auto bytes = written(header);
    for (std::size_t at : {9u, 10u}) {
      auto bad = bytes;
      bad[at] = 0;
      const auto back = read(sealed(bad));
      if (!back.ok()) continue;
      // If it is taken, a grid must be possible: no division by 0.
      for (int k = 0; k < 2; ++k) {
        EXPECT_TRUE(back->chunk.extents[k] != 0 || back->shape.extents[k] == 0)
            << "a grid of this header divides by 0";
      }
    }
  }
  Header huge;
  huge.shape = Shape{std::uint64_t{1} << 40};
  huge.chunk = Shape{std::uint64_t{1} << 25};
  EXPECT_FALSE(read(written(huge)).ok());
}

TEST(Header, NewerVersionsAreNamed) {
  Header header;
  header.shape = header.chunk = Shape{10};
  auto bytes = written(header);
  bytes[4] = 2;
  const auto back = read(sealed(bytes));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::newer_version);
  EXPECT_NE(back.error().message.find("version 2"), std::string::npos);
}

TEST(Header, IsCompact) {
  Header header;
  header.shape = header.chunk = Shape{256};
  EXPECT_EQ(written(header).size(), 4u + 3 + 2 + 4);
  header.bound = Bound::abs(0.5);
  header.bound_abs = 0.5;
  header.margin = 10;
  EXPECT_EQ(written(header).size(), 4u + 3 + 2 + 8 + 4);
}

}  // namespace
}  // namespace firn::container
