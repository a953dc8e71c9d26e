// Differences: the reference against the operators applied one after the other, every SIMD target
// against the reference, and reconstruction piece by piece.
#include "predict/difference.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>
#include <vector>

#include "support/random.hpp"

namespace firn::predict {
namespace {

using test::Random;

// Shorter than a vector, as long, longer, and far beyond.
constexpr std::size_t kLagValues[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 37};
constexpr std::size_t kCount = 203;

std::vector<Lags> all_lags() {
  std::vector<Lags> list{Lags{}};
  // Every multiset of up to four lags: extend by values that are not below the last.
  for (std::size_t done = 0; done < list.size(); ++done) {
    const Lags lags = list[done];
    if (lags.count == kMaxLags) continue;
    for (const std::size_t value : kLagValues) {
      if (lags.count > 0 && value < lags.lag[lags.count - 1]) continue;
      Lags longer = lags;
      longer.add(value);
      list.push_back(longer);
    }
  }
  return list;
}

std::string text_of(const Lags& lags) {
  std::string text = "lags";
  for (int i = 0; i < lags.count; ++i) text += " " + std::to_string(lags.lag[i]);
  return text;
}

template <class Q>
class Difference : public ::testing::Test {
 protected:
  // Codes with zeros before them.
  void fill(const Lags& lags, std::uint64_t seed) {
    history_ = lags.history();
    all_.assign(history_ + kCount, Q(0));
    Random random(seed);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto bits = static_cast<Q>(random.next());
      all_[history_ + i] = random.below(3) == 0 ? bits : static_cast<Q>(bits % 100);
    }
    all_[history_ + 1] = std::numeric_limits<Q>::min();
    all_[history_ + 2] = std::numeric_limits<Q>::max();
  }
  const Q* codes() const { return all_.data() + history_; }

  std::size_t history_ = 0;
  std::vector<Q> all_;
};
using CodeTypes = ::testing::Types<std::int16_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Difference, CodeTypes);

TYPED_TEST(Difference, ReferenceIsOneOperatorPerLag) {
  using Q = TypeParam;
  using U = std::make_unsigned_t<Q>;
  for (const Lags& lags : all_lags()) {
    this->fill(lags, 1);
    std::vector<U> expected(this->codes(), this->codes() + kCount);
    for (int k = 0; k < lags.count; ++k) {
      for (std::size_t i = kCount; i-- > lags.lag[k];) expected[i] -= expected[i - lags.lag[k]];
    }
    std::vector<Q> residuals(kCount);
    kernels<Q>(simd::Target::reference).difference(this->codes(), kCount, lags, residuals.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(static_cast<U>(residuals[i]), expected[i]) << text_of(lags) << " at " << i;
    }
  }
}

TYPED_TEST(Difference, EveryTargetGivesTheResidualsOfTheReference) {
  using Q = TypeParam;
  for (const Lags& lags : all_lags()) {
    this->fill(lags, 2);
    std::vector<Q> expected(kCount);
    kernels<Q>(simd::Target::reference).difference(this->codes(), kCount, lags, expected.data());
    for (const simd::Target target : simd::available_targets()) {
      for (const std::size_t count : {kCount, std::size_t{0}, std::size_t{1}, std::size_t{19}}) {
        std::vector<Q> residuals(count);
        kernels<Q>(target).difference(this->codes(), count, lags, residuals.data());
        ASSERT_TRUE(std::equal(residuals.begin(), residuals.end(), expected.begin()))
            << text_of(lags) << " on " << simd::name_of(target);
      }
    }
  }
}

TYPED_TEST(Difference, ReconstructionInPiecesReturnsTheCodes) {
  using Q = TypeParam;
  const std::vector<std::vector<std::size_t>> cuts{
      {kCount}, {64, 64, 64, kCount - 192}, {1, 1, 5, 30, kCount - 37}, {100, 3, kCount - 103}};
  for (const Lags& lags : all_lags()) {
    this->fill(lags, 3);
    std::vector<Q> residuals(kCount);
    kernels<Q>(simd::Target::reference).difference(this->codes(), kCount, lags, residuals.data());
    for (const simd::Target target : simd::available_targets()) {
      for (const auto& pieces : cuts) {
        // Vectors may be stored whole, so there is room behind as the library keeps it.
        std::vector<Q> restored(this->history_ + kCount + 64, Q(0));
        Q* codes = restored.data() + this->history_;
        Carry<Q> carry;
        std::size_t begin = 0;
        for (const std::size_t length : pieces) {
          std::vector<Q> piece(residuals.begin() + static_cast<std::ptrdiff_t>(begin),
                               residuals.begin() + static_cast<std::ptrdiff_t>(begin + length));
          kernels<Q>(target).reconstruct(piece.data(), length, lags, carry, codes + begin);
          begin += length;
        }
        ASSERT_EQ(begin, kCount);
        ASSERT_TRUE(std::equal(codes, codes + kCount, this->codes()))
            << text_of(lags) << " on " << simd::name_of(target) << " in " << pieces.size();
      }
    }
  }
}

TYPED_TEST(Difference, PredictionIsTheCodeOfAZeroResidual) {
  using Q = TypeParam;
  for (const Lags& lags : all_lags()) {
    this->fill(lags, 4);
    const std::size_t at = 100;
    this->all_[this->history_ + at] = predict_one(this->codes() + at, lags);
    Q residual = 1;
    kernels<Q>(simd::Target::reference).difference(this->codes() + at, 1, lags, &residual);
    ASSERT_EQ(residual, 0) << text_of(lags);
  }
}

TYPED_TEST(Difference, EveryTargetFillsMaskedCodesSoThatTheirResidualsVanish) {
  using Q = TypeParam;
  for (const Lags& lags : all_lags()) {
    this->fill(lags, 5);
    std::vector<std::uint64_t> bits((kCount + 63) / 64);
    Random random(lags.history());
    for (std::size_t i = 0; i < kCount; ++i) {
      // Scattered points, and a run.
      if (random.below(9) == 0 || (i > 60 && i < 120)) bits[i / 64] |= std::uint64_t{1} << i % 64;
    }
    std::vector<Q> first;
    for (const simd::Target target : simd::available_targets()) {
      std::vector<Q> all = this->all_;
      all.resize(all.size() + 64);
      Q* codes = all.data() + this->history_;
      kernels<Q>(target).fill(codes, kCount, lags, bits.data());
      std::vector<Q> residuals(kCount);
      kernels<Q>(simd::Target::reference).difference(codes, kCount, lags, residuals.data());
      for (std::size_t i = 0; i < kCount; ++i) {
        if (bits[i / 64] >> i % 64 & 1) {
          ASSERT_EQ(residuals[i], 0) << text_of(lags) << " " << simd::name_of(target);
        } else {
          ASSERT_EQ(codes[i], this->codes()[i]) << "a code that is not masked changed";
        }
      }
    }
  }
}

TYPED_TEST(Difference, EveryTargetEstimatesTheSameCost) {
  using Q = TypeParam;
  this->fill(Lags{}, 6);
  std::vector<Q> residuals(this->codes(), this->codes() + kCount);
  for (int bit = 0; bit < static_cast<int>(sizeof(Q)) * 8 - 1; ++bit) {
    residuals.push_back(Q(1) << bit);
    residuals.push_back(-(Q(1) << bit));
  }
  for (std::size_t count = 0; count <= residuals.size(); ++count) {
    const std::uint64_t expected =
        kernels<Q>(simd::Target::reference).cost(residuals.data(), count);
    for (const simd::Target target : simd::available_targets()) {
      ASSERT_EQ(kernels<Q>(target).cost(residuals.data(), count), expected)
          << simd::name_of(target) << " " << count;
    }
  }
  std::uint64_t before = 0;
  for (int bit = 0; bit < static_cast<int>(sizeof(Q)) * 8 - 1; ++bit) {
    const Q positive = Q(1) << bit, negative = -positive;
    const std::uint64_t cost = kernels<Q>(simd::Target::reference).cost(&positive, 1);
    EXPECT_GT(cost, before);
    EXPECT_EQ(cost, kernels<Q>(simd::Target::reference).cost(&negative, 1));
    before = cost;
  }
}

TYPED_TEST(Difference, CostsOfALineAreThoseOfItsDifferences) {
  using Q = TypeParam;
  for (const std::size_t count : {0, 1, 2, 3, 17, 64, int{kCount} - 2}) {
    this->fill(Lags{}, 7);
    for (const simd::Target target : simd::available_targets()) {
      const Kernels<Q>& kernel = kernels<Q>(target);
      std::uint64_t costs[kLineCosts] = {5, 6, 7};
      kernel.line_costs(this->codes() + 2, count, costs);
      std::vector<Q> residuals(count);
      Lags lags;
      for (int k = 0; k < kLineCosts; ++k) {
        kernel.difference(this->codes() + 2, count, lags, residuals.data());
        EXPECT_EQ(costs[k], 5u + static_cast<unsigned>(k) + kernel.cost(residuals.data(), count))
            << simd::name_of(target) << " " << count << " values, " << k << " lags";
        lags.add(1);
      }
    }
  }
}

TEST(ShortDifference, IsThatOf32BitsWhereItFits) {
  for (const Lags& lags : all_lags()) {
    if (lags.count > 3) continue;
    const std::size_t history = lags.history();
    std::vector<std::int16_t> codes(history + kCount, 0);
    Random random(5);
    for (std::size_t i = 0; i < kCount; ++i) {
      codes[history + i] = static_cast<std::int16_t>(random.around(4095));
    }
    const std::vector<std::int32_t> wide_codes(codes.begin(), codes.end());
    std::vector<std::int32_t> expected(kCount);
    const auto& wide = kernels<std::int32_t>(simd::Target::reference);
    wide.difference(wide_codes.data() + history, kCount, lags, expected.data());
    for (const simd::Target target : simd::available_targets()) {
      const auto& narrow = kernels<std::int16_t>(target);
      std::vector<std::int16_t> residuals(kCount);
      narrow.difference(codes.data() + history, kCount, lags, residuals.data());
      ASSERT_EQ(std::vector<std::int32_t>(residuals.begin(), residuals.end()), expected)
          << simd::name_of(target) << " " << text_of(lags);
      ASSERT_EQ(narrow.cost(residuals.data(), kCount), wide.cost(expected.data(), kCount));
    }
  }
}

TEST(Lags, StayAscendingAndSumToTheHistory) {
  Lags lags;
  for (const std::size_t value : {64u, 1u, 4096u, 1u}) lags.add(value);
  EXPECT_EQ(lags.count, 4);
  EXPECT_EQ(lags.lag, (std::array<std::size_t, kMaxLags>{1, 1, 64, 4096}));
  EXPECT_EQ(lags.history(), 4162u);
}

}  // namespace
}  // namespace firn::predict
