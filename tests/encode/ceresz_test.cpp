// CereSZ's block code: the paper's example, round trips, sizes and damage.
#include "encode/ceresz.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace firn::encode {
namespace {

constexpr CereszHeader kHeaders[] = {CereszHeader::one_byte, CereszHeader::four_bytes};

std::vector<std::uint8_t> encode(const std::vector<std::int32_t>& codes, CereszHeader header) {
  std::vector<std::uint8_t> bytes(ceresz_capacity(codes.size(), header) + 16, 0xA5);
  const std::uint8_t* end = ceresz_encode(codes.data(), codes.size(), header, bytes.data());
  const auto size = static_cast<std::size_t>(end - bytes.data());
  EXPECT_LE(size, ceresz_capacity(codes.size(), header));
  EXPECT_TRUE(std::all_of(bytes.end() - 16, bytes.end(), [](auto byte) { return byte == 0xA5; }));
  bytes.resize(size);
  // So that the sanitizer sees reads past the end (an empty vector would lose its address).
  if (size != 0) bytes.shrink_to_fit();
  return bytes;
}

bool decode(const std::vector<std::uint8_t>& bytes, CereszHeader header,
            std::vector<std::int32_t>& codes, std::size_t* consumed = nullptr) {
  const std::uint8_t* end =
      ceresz_decode(bytes.data(), bytes.data() + bytes.size(), header, codes.data(), codes.size());
  if (end == nullptr) return false;
  if (consumed != nullptr) *consumed = static_cast<std::size_t>(end - bytes.data());
  return true;
}

void expect_round_trip(const std::vector<std::int32_t>& codes) {
  for (CereszHeader header : kHeaders) {
    const std::vector<std::uint8_t> bytes = encode(codes, header);
    std::vector<std::int32_t> decoded(codes.size(), 77);
    std::size_t consumed = 0;
    ASSERT_TRUE(decode(bytes, header, decoded, &consumed));
    ASSERT_EQ(consumed, bytes.size());
    ASSERT_EQ(decoded, codes);
  }
}

TEST(Ceresz, CodesThePaperExample) {
  // Figure 5: differences 4 5 8 7 1 -2 -6 1, so a length of 4.
  const std::vector<std::int32_t> codes = {4, 9, 17, 24, 25, 23, 17, 18};
  const std::vector<std::uint8_t> expected = {4,               // length
                                              0x60, 0, 0, 0,   // signs of -2 and -6
                                              0x9A, 0, 0, 0,   // ones: 5 7 1 1
                                              0x68, 0, 0, 0,   // twos: 7 -2 -6
                                              0x4B, 0, 0, 0,   // fours: 4 5 7 -6
                                              0x04, 0, 0, 0};  // eights: 8
  EXPECT_EQ(encode(codes, CereszHeader::one_byte), expected);
  expect_round_trip(codes);
}

TEST(Ceresz, ZeroBlockIsItsHeader) {
  const std::vector<std::int32_t> zeros(100);
  EXPECT_EQ(encode(zeros, CereszHeader::one_byte), std::vector<std::uint8_t>(4));
  EXPECT_EQ(encode(zeros, CereszHeader::four_bytes), std::vector<std::uint8_t>(16));
}

TEST(Ceresz, BlocksAreIndependent) {
  std::vector<std::int32_t> codes(2 * kCereszBlock);
  std::iota(codes.begin(), codes.end(), -20);
  const std::vector<std::int32_t> second(codes.begin() + kCereszBlock, codes.end());
  const std::vector<std::uint8_t> both = encode(codes, CereszHeader::one_byte);
  const std::vector<std::uint8_t> alone = encode(second, CereszHeader::one_byte);
  ASSERT_GE(both.size(), alone.size());
  EXPECT_TRUE(std::equal(alone.rbegin(), alone.rend(), both.rbegin()));
}

TEST(Ceresz, RoundTripsEveryShortLengthAndWidth) {
  std::mt19937 random(1);
  for (std::size_t n = 0; n <= 300; ++n) {
    std::vector<std::int32_t> codes(n);
    const unsigned shift = static_cast<unsigned>(n % 32);
    for (auto& code : codes) code = static_cast<std::int32_t>(random()) >> shift;
    expect_round_trip(codes);
  }
}

TEST(Ceresz, RoundTripsExtremes) {
  constexpr std::int32_t kLow = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kHigh = std::numeric_limits<std::int32_t>::max();
  expect_round_trip({kLow});
  expect_round_trip({kHigh, kLow, 0, kLow, kHigh, -1, 1, kLow, kLow, kHigh, kHigh});
  expect_round_trip(std::vector<std::int32_t>(64, kLow));
}

TEST(Ceresz, RefusesEveryTruncation) {
  std::mt19937 random(2);
  std::vector<std::int32_t> codes(100);
  for (auto& code : codes) code = static_cast<std::int32_t>(random() % 1000);
  for (CereszHeader header : kHeaders) {
    const std::vector<std::uint8_t> bytes = encode(codes, header);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<std::uint8_t> front(bytes.begin(),
                                            bytes.begin() + static_cast<std::ptrdiff_t>(size));
      std::vector<std::int32_t> decoded(codes.size());
      EXPECT_FALSE(decode(front, header, decoded)) << size;
    }
  }
}

TEST(Ceresz, SurvivesRandomBytes) {
  std::mt19937 random(3);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(random() % 600);
    for (auto& byte : bytes)
      byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 34);
    std::vector<std::int32_t> decoded(random() % 200);
    std::size_t consumed = 0;
    if (decode(bytes, kHeaders[round % 2], decoded, &consumed)) {
      ++accepted;
      EXPECT_LE(consumed, bytes.size());
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace firn::encode
