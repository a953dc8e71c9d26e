// Residuals and symbols: extremes, every range, every target, and exhausted bits.
#include "encode/residual_symbols.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>
#include <vector>

#include "support/random.hpp"

namespace firn::encode {
namespace {

using test::Random;

template <class Q>
class ResidualSymbols : public ::testing::Test {};
using ResidualTypes = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ResidualSymbols, ResidualTypes);

template <class Q>
std::vector<Q> adversarial_residuals(int range_log2, std::uint64_t seed) {
  using Limits = std::numeric_limits<Q>;
  const Q range = Q(1) << range_log2;
  std::vector<Q> list{0,
                      1,
                      -1,
                      range - 1,
                      range,
                      range + 1,
                      range + 2,
                      -range,
                      -range - 1,
                      -range - 2,
                      -range - 3,
                      Limits::min(),
                      Limits::min() + 1,
                      Limits::max(),
                      Limits::max() - 1};
  for (int bit = 0; bit < static_cast<int>(sizeof(Q)) * 8 - 1; ++bit) {
    const Q power = Q(1) << bit;
    list.insert(list.end(), {power, power - 1, -power, -power - 1});
  }
  Random random(seed);
  for (int i = 0; i < 300; ++i) list.push_back(static_cast<Q>(random.next()));
  for (int i = 0; i < 600; ++i) list.push_back(static_cast<Q>(random.around(range)));
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
  for (int i = 0; i < 301; ++i) list.push_back(static_cast<Q>(random.around(range - 1)));
  return list;
}

struct Symbols {
  std::vector<std::uint16_t> symbols;
  std::vector<std::uint8_t> extra;
  bool operator==(const Symbols&) const = default;
};

template <class Q>
Symbols to_symbols(simd::Target target, const std::vector<Q>& residuals, int range_log2) {
  Symbols result;
  result.symbols.resize(residuals.size());
  result.extra.resize(max_extra_bytes<Q>(residuals.size()));
  ExtraBitsWriter writer(result.extra.data());
  symbol_kernels<Q>(target).to_symbols(residuals.data(), residuals.size(), range_log2,
                                       result.symbols.data(), writer);
  const std::size_t used = writer.finish();
  EXPECT_LE(used, result.extra.size());
  result.extra.resize(used);
  return result;
}

TYPED_TEST(ResidualSymbols, EveryTargetAndRangeReturnsEveryResidual) {
  using Q = TypeParam;
  for (int range_log2 = kMinRangeLog2; range_log2 <= kMaxRangeLog2; ++range_log2) {
    const std::vector<Q> residuals = adversarial_residuals<Q>(range_log2, 5);
    const Symbols expected = to_symbols(simd::Target::reference, residuals, range_log2);
    for (const std::uint16_t symbol : expected.symbols) {
      ASSERT_LT(symbol, alphabet_size(range_log2));
    }
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(::testing::Message() << simd::name_of(target) << " range " << range_log2);
      ASSERT_TRUE(to_symbols(target, residuals, range_log2) == expected);
      ExtraBitsReader reader(expected.extra);
      std::vector<Q> restored(residuals.size());
      symbol_kernels<Q>(target).to_residuals(expected.symbols.data(), expected.symbols.size(),
                                             range_log2, reader, restored.data());
      EXPECT_TRUE(reader.ok());
      ASSERT_EQ(restored, residuals);
    }
  }
}

TYPED_TEST(ResidualSymbols, AllExtremesFitTheRoomForExtraBits) {
  using Q = TypeParam;
  const std::vector<Q> residuals(1000, std::numeric_limits<Q>::min());
  for (const simd::Target target : simd::available_targets()) {
    const Symbols symbols = to_symbols(target, residuals, kMinRangeLog2);
    EXPECT_LE(symbols.extra.size(), 1000 * sizeof(Q));
  }
}

TYPED_TEST(ResidualSymbols, MissingExtraBitsAreNoticed) {
  using Q = TypeParam;
  const std::vector<Q> residuals = adversarial_residuals<Q>(5, 6);
  const Symbols symbols = to_symbols(simd::Target::reference, residuals, 5);
  for (const simd::Target target : simd::available_targets()) {
    for (std::size_t size = 0; size < symbols.extra.size(); size += 1 + size / 16) {
      const std::vector<std::uint8_t> cut(
          symbols.extra.begin(), symbols.extra.begin() + static_cast<std::ptrdiff_t>(size));
      ExtraBitsReader reader(cut);
      std::vector<Q> restored(residuals.size());
      symbol_kernels<Q>(target).to_residuals(symbols.symbols.data(), symbols.symbols.size(), 5,
                                             reader, restored.data());
      EXPECT_FALSE(reader.ok()) << size;
    }
  }
}

TEST(ResidualSymbols, ClassesWiderThanTheResidualAreRefused) {
  const std::vector<std::uint8_t> extra(100, 0xFF);
  for (unsigned width = 33; width < kMagnitudeClasses; ++width) {
    ExtraBitsReader reader(extra);
    symbol_to_residual<std::int32_t>(static_cast<std::uint16_t>((2u << 6) + width), 6, reader);
    EXPECT_FALSE(reader.ok()) << width;
  }
  ExtraBitsReader reader(extra);
  symbol_to_residual<std::int64_t>(static_cast<std::uint16_t>((2u << 6) + 64), 6, reader);
  EXPECT_TRUE(reader.ok());
}

TEST(ResidualSymbols, LayoutIsThatOfTheSpecification) {
  // k = 3: residual 8 is class 0 with sign 0; -9 class 0 with sign 1; 10 is m = 2, class 2, low
  // bit 0; -12 is m = 3, class 2, low bit 1.
  const std::vector<std::int32_t> residuals{0, -8, 7, 8, -9, 10, -12};
  const Symbols symbols = to_symbols(simd::Target::reference, residuals, 3);
  EXPECT_EQ(symbols.symbols, (std::vector<std::uint16_t>{8, 0, 15, 16, 16, 18, 18}));
  // Bits in order: 0 | 1 | 0 0 | 1 1, least significant first.
  EXPECT_EQ(symbols.extra, (std::vector<std::uint8_t>{0b110010}));
}

}  // namespace
}  // namespace firn::encode
