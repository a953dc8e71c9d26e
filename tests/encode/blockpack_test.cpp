// The blockpack payload: every SIMD target against the reference, round trips, damage, sizes.
#include "encode/blockpack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace firn::encode {
namespace {

template <class Q>
class Blockpack : public ::testing::Test {};
using ResidualTypes = ::testing::Types<std::int16_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Blockpack, ResidualTypes);

template <class Q>
std::vector<std::uint8_t> encode(simd::Target target, const std::vector<Q>& residuals) {
  const std::size_t capacity = blockpack_capacity(residuals.size(), sizeof(Q));
  // A canary behind the capacity shows writes beyond it.
  std::vector<std::uint8_t> bytes(capacity + 64, 0xA5);
  const std::uint8_t* end =
      blockpack_kernels<Q>(target).encode(residuals.data(), residuals.size(), bytes.data());
  const auto size = static_cast<std::size_t>(end - bytes.data());
  EXPECT_LE(size + kBlockpackSlack, capacity);
  EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(capacity), bytes.end(),
                          [](std::uint8_t byte) { return byte == 0xA5; }));
  bytes.resize(size);
  // So that the sanitizer sees reads past the end (an empty vector would lose its address).
  if (size != 0) bytes.shrink_to_fit();
  return bytes;
}

// False when the bytes are refused; `consumed` is how many of them were used.
template <class Q>
bool decode(simd::Target target, const std::vector<std::uint8_t>& bytes, std::vector<Q>& residuals,
            std::size_t* consumed = nullptr) {
  const std::uint8_t* end = blockpack_kernels<Q>(target).decode(
      bytes.data(), bytes.data() + bytes.size(), residuals.data(), residuals.size());
  if (end == nullptr) return false;
  if (consumed != nullptr) *consumed = static_cast<std::size_t>(end - bytes.data());
  return true;
}

template <class Q>
void expect_same_bytes_and_round_trip(const std::vector<Q>& residuals, const std::string& what) {
  const std::vector<std::uint8_t> expected = encode(simd::Target::reference, residuals);
  for (simd::Target target : simd::available_targets()) {
    SCOPED_TRACE(what + " of " + std::to_string(residuals.size()) + " on " + simd::name_of(target));
    ASSERT_EQ(encode(target, residuals), expected);
    std::vector<Q> decoded(residuals.size(), Q(77));
    std::size_t consumed = 0;
    ASSERT_TRUE(decode(target, expected, decoded, &consumed));
    ASSERT_EQ(consumed, expected.size());
    ASSERT_EQ(decoded, residuals);
  }
}

template <class Q>
Q random_of_width(std::mt19937_64& random, int width) {
  using U = std::make_unsigned_t<Q>;
  width = std::min(width, 8 * static_cast<int>(sizeof(Q)));
  if (width == 0) return 0;
  const U code =
      static_cast<U>(static_cast<U>(random()) >> (8 * static_cast<int>(sizeof(Q)) - width));
  return static_cast<Q>((code >> 1) ^ (U(0) - (code & 1)));
}

TYPED_TEST(Blockpack, RoundTripsEveryShortLength) {
  using Q = TypeParam;
  std::mt19937_64 random(1);
  for (std::size_t n = 0; n <= 300; ++n) {
    std::vector<Q> residuals(n);
    const int width = static_cast<int>(n % 20);
    for (Q& value : residuals) value = random_of_width<Q>(random, width);
    expect_same_bytes_and_round_trip(residuals, "width " + std::to_string(width));
  }
}

TYPED_TEST(Blockpack, RoundTripsEveryWidth) {
  using Q = TypeParam;
  std::mt19937_64 random(2);
  for (int width = 0; width <= static_cast<int>(8 * sizeof(Q)); ++width) {
    std::vector<Q> residuals(3 * kSuperblock + 17);
    for (Q& value : residuals) value = random_of_width<Q>(random, width);
    expect_same_bytes_and_round_trip(residuals, "width " + std::to_string(width));
  }
}

TYPED_TEST(Blockpack, RoundTripsSparseValues) {
  using Q = TypeParam;
  std::mt19937_64 random(3);
  for (int spacing : {2, 5, 20, 70, 300, 3000}) {
    for (int width : {1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 31, 32}) {
      std::vector<Q> residuals(kBlockpackTile + 3 * kSuperblock + 5);
      for (Q& value : residuals) {
        if (random() % static_cast<unsigned>(spacing) == 0)
          value = random_of_width<Q>(random, width);
      }
      expect_same_bytes_and_round_trip(residuals, "sparse width " + std::to_string(width));
    }
  }
}

TYPED_TEST(Blockpack, RoundTripsMixedWidths) {
  using Q = TypeParam;
  std::mt19937_64 random(4);
  std::vector<Q> residuals(40000);
  int width = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (i % 64 == 0) width = static_cast<int>(random() % 4 * (random() % 6));
    residuals[i] = random_of_width<Q>(random, width);
  }
  expect_same_bytes_and_round_trip(residuals, "mixed");
}

TYPED_TEST(Blockpack, RoundTripsValuesAtTheEdgesOfEachClass) {
  using Q = TypeParam;
  const Q low = std::numeric_limits<Q>::min(), high = std::numeric_limits<Q>::max();
  std::vector<Q> edges = {0, 1, -1, low, high, static_cast<Q>(low + 1), static_cast<Q>(high - 1)};
  for (int bit = 1; bit < static_cast<int>(8 * sizeof(Q)) - 1; ++bit) {
    const Q power = static_cast<Q>(Q(1) << bit);
    for (Q value :
         {power, static_cast<Q>(power - 1), static_cast<Q>(-power), static_cast<Q>(-power - 1)}) {
      edges.push_back(value);
    }
  }
  for (Q edge : edges) {
    for (std::size_t position : {std::size_t{0}, std::size_t{100}, std::size_t{255}}) {
      std::vector<Q> residuals(kSuperblock);
      residuals[position] = edge;
      expect_same_bytes_and_round_trip(residuals, "edge " + std::to_string(edge));
    }
    expect_same_bytes_and_round_trip(std::vector<Q>(kSuperblock + 1, edge),
                                     "constant " + std::to_string(edge));
  }
}

TYPED_TEST(Blockpack, TilesConcatenateToTheWhole) {
  using Q = TypeParam;
  std::mt19937_64 random(5);
  std::vector<Q> residuals(5 * kBlockpackTile + 1000);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (i / 700 % 3 == 0) residuals[i] = random_of_width<Q>(random, 5);
  }
  for (simd::Target target : simd::available_targets()) {
    SCOPED_TRACE(simd::name_of(target));
    const auto& kernels = blockpack_kernels<Q>(target);
    std::vector<std::uint8_t> bytes(blockpack_capacity(residuals.size(), sizeof(Q)));
    std::uint8_t* out = bytes.data();
    for (std::size_t i = 0; i < residuals.size(); i += kBlockpackTile) {
      out =
          kernels.encode(residuals.data() + i, std::min(kBlockpackTile, residuals.size() - i), out);
    }
    bytes.resize(static_cast<std::size_t>(out - bytes.data()));
    ASSERT_EQ(bytes, encode(target, residuals));

    std::vector<Q> decoded(residuals.size());
    const std::uint8_t* in = bytes.data();
    for (std::size_t i = 0; i < residuals.size() && in != nullptr; i += kBlockpackTile) {
      in = kernels.decode(in, bytes.data() + bytes.size(), decoded.data() + i,
                          std::min(kBlockpackTile, residuals.size() - i));
    }
    ASSERT_EQ(in, bytes.data() + bytes.size());
    ASSERT_EQ(decoded, residuals);
  }
}

TYPED_TEST(Blockpack, ZeroTilesTakeOneByte) {
  using Q = TypeParam;
  const std::vector<Q> zeros(3 * kBlockpackTile + 1);
  for (simd::Target target : simd::available_targets()) {
    EXPECT_EQ(encode(target, zeros), (std::vector<std::uint8_t>{0x0F, 0x0F, 0x0F, 0x00}));
  }
}

TYPED_TEST(Blockpack, MatchesTheDocumentedExample) {
  using Q = TypeParam;
  // 1, -1 at the front and -2 at the 200th place: zigzag codes 2, 1 and 3.
  std::vector<Q> residuals(kSuperblock);
  residuals[0] = 1;
  residuals[1] = -1;
  residuals[200] = -2;
  const std::vector<std::uint8_t> expected = {
      0x20,                    // two planes, none dense
      0x99,                    // each mask has bytes 0 and 3
      0x01, 0x02, 0x01, 0x02,  // bytes 0 and 25 of each plane
      0x02, 0x01, 0x01, 0x01};
  for (simd::Target target : simd::available_targets()) {
    EXPECT_EQ(encode(target, residuals), expected) << simd::name_of(target);
  }
}

TYPED_TEST(Blockpack, RefusesEveryTruncation) {
  using Q = TypeParam;
  std::mt19937_64 random(6);
  std::vector<Q> residuals(4 * kSuperblock + 30);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] = random_of_width<Q>(random, static_cast<int>(i / kSuperblock) * 5);
  }
  const std::vector<std::uint8_t> bytes = encode(simd::Target::reference, residuals);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::uint8_t> front(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(size));
    for (simd::Target target : simd::available_targets()) {
      std::vector<Q> decoded(residuals.size());
      ASSERT_FALSE(decode(target, front, decoded)) << size << " on " << simd::name_of(target);
    }
  }
}

TYPED_TEST(Blockpack, TargetsAgreeOnRandomBytes) {
  using Q = TypeParam;
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(random() % 1500);
    // Sparse bytes, so that some of them are valid codes.
    const unsigned keep = 1 + static_cast<unsigned>(random() % 4);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random() % keep == 0 ? random() : random() % 5);
    }
    const std::size_t n = random() % 1200;
    std::vector<Q> expected(n);
    std::size_t expected_size = 0;
    const bool valid = decode(simd::Target::reference, bytes, expected, &expected_size);
    accepted += valid;
    for (simd::Target target : simd::available_targets()) {
      std::vector<Q> decoded(n);
      std::size_t size = 0;
      ASSERT_EQ(decode(target, bytes, decoded, &size), valid) << simd::name_of(target);
      if (valid) {
        ASSERT_EQ(size, expected_size) << simd::name_of(target);
        ASSERT_EQ(decoded, expected) << simd::name_of(target);
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

TYPED_TEST(Blockpack, TargetsAgreeOnFlippedBits) {
  using Q = TypeParam;
  std::mt19937_64 random(8);
  std::vector<Q> residuals(12 * kSuperblock + 9);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (i % 3 == 0) residuals[i] = random_of_width<Q>(random, static_cast<int>(i / 300));
  }
  const std::vector<std::uint8_t> good = encode(simd::Target::reference, residuals);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint8_t> bytes = good;
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << (random() % 8));
    std::vector<Q> expected(residuals.size());
    const bool valid = decode(simd::Target::reference, bytes, expected);
    for (simd::Target target : simd::available_targets()) {
      std::vector<Q> decoded(residuals.size());
      ASSERT_EQ(decode(target, bytes, decoded), valid) << simd::name_of(target);
      if (valid) {
        ASSERT_EQ(decoded, expected) << simd::name_of(target);
      }
    }
  }
}

TEST(BlockpackShort, GivesTheBytesOf32Bits) {
  std::mt19937_64 random(6);
  for (int width = 0; width <= 16; ++width) {
    for (const std::size_t n : {1u, 255u, 256u, 257u, 5000u}) {
      std::vector<std::int16_t> residuals(n);
      for (auto& value : residuals) {
        value = random_of_width<std::int16_t>(random, random() % 9 == 0 ? width : width / 2);
      }
      if (n > 4000) std::fill(residuals.begin() + 700, residuals.begin() + 2500, std::int16_t{0});
      const std::vector<std::int32_t> wide(residuals.begin(), residuals.end());
      const auto expected = encode(simd::Target::reference, wide);
      for (simd::Target target : simd::available_targets()) {
        ASSERT_EQ(encode(target, residuals), expected)
            << simd::name_of(target) << " width " << width << " n " << n;
      }
    }
  }
}

}  // namespace
}  // namespace firn::encode
