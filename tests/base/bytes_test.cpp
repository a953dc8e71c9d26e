// The bounded reader and its writer.
#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace firn {
namespace {

TEST(Bytes, NumbersReturnLittleEndian) {
  std::vector<std::uint8_t> bytes(64);
  ByteWriter out(bytes.data());
  out.write<std::uint32_t>(0x01020304);
  out.write<double>(-2.5);
  EXPECT_EQ(bytes[0], 4);
  EXPECT_EQ(bytes[3], 1);
  ByteReader in({bytes.data(), out.size()});
  EXPECT_EQ(in.read<std::uint32_t>(), 0x01020304u);
  EXPECT_EQ(in.read<double>(), -2.5);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(Bytes, VarintsReturn) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t value :
         {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1, ~std::uint64_t{0} >> bit}) {
      std::uint8_t bytes[kMaxVarintBytes];
      ByteWriter out(bytes);
      out.write_varint(value);
      ASSERT_LE(out.size(), static_cast<std::size_t>(kMaxVarintBytes));
      ByteReader in({bytes, out.size()});
      ASSERT_EQ(in.read_varint(), value);
      ASSERT_TRUE(in.ok());
      ByteReader cut({bytes, out.size() - 1});
      cut.read_varint();
      ASSERT_FALSE(cut.ok());
    }
  }
}

TEST(Bytes, VarintsOfMoreThan64BitsAreRefused) {
  std::vector<std::uint8_t> bytes(9, 0xFF);
  bytes.push_back(0x02);
  ByteReader in(bytes);
  in.read_varint();
  EXPECT_FALSE(in.ok());
  bytes.assign(11, 0x80);
  ByteReader endless(bytes);
  endless.read_varint();
  EXPECT_FALSE(endless.ok());
}

TEST(Bytes, AfterAFailureNothingIsRead) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  ByteReader in(bytes);
  EXPECT_EQ(in.read<std::uint32_t>(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.read<std::uint8_t>(), 0u);
  EXPECT_EQ(in.read_varint(), 0u);
  EXPECT_TRUE(in.read_bytes(0).empty());
  EXPECT_TRUE(in.read_rest().empty());
  EXPECT_FALSE(in.ok());
}

TEST(Bytes, MoreThanThereIsIsRefused) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  ByteReader in(bytes);
  EXPECT_EQ(in.read_bytes(2).size(), 2u);
  EXPECT_TRUE(in.read_bytes(~std::uint64_t{0}).empty());
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace firn
