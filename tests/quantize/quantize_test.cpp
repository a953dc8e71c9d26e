// Quantisation: every SIMD target against the reference, and the bound test against exact
// arithmetic.
#include "quantize/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "adversarial.hpp"
#include "support/exact_bound.hpp"
#include "support/fields.hpp"

namespace firn::quantize {
namespace {

using test::bits_of;

template <class ValueType, class CodeType>
struct Pair {
  using Value = ValueType;
  using Code = CodeType;
};

template <class P>
class Quantize : public ::testing::Test {};
using Pairs = ::testing::Types<Pair<float, std::int32_t>, Pair<double, std::int32_t>,
                               Pair<double, std::int64_t>>;
TYPED_TEST_SUITE(Quantize, Pairs);

template <class T, class Q>
void expect_same_outcome(const std::vector<T>& values, const Scale<T>& scale, Q base) {
  std::vector<Q> expected(values.size(), Q(-77));
  const RowOutcome<T> wanted =
      kernels<T, Q>(simd::Target::reference)
          .quantize(values.data(), values.size(), scale, base, expected.data());
  for (const simd::Target target : simd::available_targets()) {
    SCOPED_TRACE(simd::name_of(target));
    std::vector<Q> codes(values.size(), Q(-99));
    const RowOutcome<T> outcome =
        kernels<T, Q>(target).quantize(values.data(), values.size(), scale, base, codes.data());
    ASSERT_EQ(outcome.within, wanted.within);
    if (!wanted.within) continue;
    ASSERT_EQ(bits_of(outcome.max_error), bits_of(wanted.max_error));
    ASSERT_EQ(codes, expected);
  }
}

TYPED_TEST(Quantize, EveryTargetGivesTheCodesOfTheReference) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  for (const Scale<T>& scale : all_scales<T>()) {
    SCOPED_TRACE(::testing::Message()
                 << "bound " << scale.bound << " step " << scale.step << " phase " << scale.phase);
    std::vector<T> kept;
    for (const T value : adversarial_values(scale, 11)) {
      Q q = 0;
      T error = 0;
      if (quantize_value<T, Q>(value, scale, &q, &error)) kept.push_back(value);
    }
    ASSERT_GT(kept.size(), 10u);
    for (const Q base : {Q(0), Q(1), Q(-12345), std::numeric_limits<Q>::min()}) {
      expect_same_outcome<T, Q>(kept, scale, base);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(Quantize, EveryTargetRefusesTheRowsThatTheReferenceRefuses) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  for (const Scale<T>& scale : all_scales<T>()) {
    SCOPED_TRACE(::testing::Message()
                 << "bound " << scale.bound << " step " << scale.step << " phase " << scale.phase);
    std::vector<T> row(11, scale.step);
    int position = 0;
    for (const T value : adversarial_values(scale, 12)) {
      const T before = row[position % row.size()];
      row[position % row.size()] = value;
      expect_same_outcome<T, Q>(row, scale, 0);
      if (this->HasFatalFailure()) return;
      row[position++ % row.size()] = before;
    }
  }
}

TYPED_TEST(Quantize, EveryTargetFlagsTheValuesThatTheDefinitionRefuses) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  for (const Scale<T>& scale : all_scales<T>()) {
    const std::vector<T> values = adversarial_values(scale, 13);
    for (const T fill : {std::numeric_limits<T>::quiet_NaN(), values[40], T(0)}) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{63}, std::size_t{64},
            std::size_t{65}, values.size()}) {
        std::vector<std::uint64_t> expected((count + 63) / 64);
        T largest = 0;
        for (std::size_t i = 0; i < count; ++i) {
          Q q = 0;
          T error = 0;
          if (values[i] != fill && quantize_value<T, Q>(values[i], scale, &q, &error)) {
            largest = std::max(largest, error);
          } else {
            expected[i / 64] |= std::uint64_t{1} << i % 64;
          }
        }
        for (const simd::Target target : simd::available_targets()) {
          SCOPED_TRACE(::testing::Message() << simd::name_of(target) << " " << count << " bound "
                                            << scale.bound << " fill " << fill);
          std::vector<std::uint64_t> bits(expected.size(), 0x5555);
          const T found =
              kernels<T, Q>(target).flag(values.data(), count, scale, fill, bits.data());
          ASSERT_EQ(bits, expected);
          ASSERT_EQ(bits_of(found), bits_of(largest));
        }
      }
    }
  }
}

TYPED_TEST(Quantize, EveryTargetTakesMaskedValuesOut) {
  using T = typename TypeParam::Value;
  const Scale<T> scale(T(0.01), 5);
  const std::vector<T> values = adversarial_values(scale, 17);
  for (const T fill : {std::numeric_limits<T>::quiet_NaN(), values[40], T(0)}) {
    for (std::size_t count = 0; count <= values.size(); count += count < 130 ? 1 : 397) {
      std::vector<T> expected(count, T(5));
      std::vector<std::uint64_t> expected_bits((count + 63) / 64);
      bool all_fill = true;
      for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(values[i]) && values[i] != fill) {
          expected[i] = values[i];
        } else {
          expected_bits[i / 64] |= std::uint64_t{1} << i % 64;
          all_fill = all_fill && values[i] == fill;
        }
      }
      for (const simd::Target target : simd::available_targets()) {
        SCOPED_TRACE(::testing::Message() << simd::name_of(target) << " " << count);
        std::vector<T> out(count);
        std::vector<std::uint64_t> bits(expected_bits.size(), 0x5555);
        ASSERT_EQ(range_kernels<T>(target).unmask(values.data(), count, fill, T(5), out.data(),
                                                  bits.data()),
                  all_fill);
        ASSERT_EQ(bits, expected_bits);
        ASSERT_TRUE(count == 0 || std::memcmp(out.data(), expected.data(), count * sizeof(T)) == 0);
      }
    }
  }
}

TYPED_TEST(Quantize, EveryRowLengthIsHandled) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  const Scale<T> scale(T(0.01), 5);
  for (std::size_t length = 0; length < 70; ++length) {
    SCOPED_TRACE(length);
    std::vector<T> values(length);
    Random random(length);
    for (T& value : values) value = static_cast<T>(random.around(1000)) / 37;
    expect_same_outcome<T, Q>(values, scale, Q(5));
    if (length > 0) {
      values[length - 1] = std::numeric_limits<T>::quiet_NaN();
      expect_same_outcome<T, Q>(values, scale, Q(5));
    }
  }
}

// The test |x' - x| <= bound is done in the value's own type; it must be as good as exact.
TYPED_TEST(Quantize, BoundTestIsExact) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  Random random(3);
  std::vector<Scale<T>> list = all_scales<T>();
  for (int i = 0; i < 300; ++i) {
    const double bound = (1 + random.unit()) * std::ldexp(1.0, static_cast<int>(random.around(60)));
    list.emplace_back(static_cast<T>(bound),
                      format::kMinMargin + static_cast<int>(random.below(9)));
    list.push_back(list.back());
    list.back().phase = static_cast<T>(random.below(256)) / 256;
    list.emplace_back(static_cast<T>(bound), format::kGrid + static_cast<int>(random.below(14)));
  }
  std::size_t accepted = 0, refused = 0;
  for (const Scale<T>& scale : list) {
    std::vector<T> values = adversarial_values(scale, random.next());
    // |x| below half a step from code 1, where the subtraction could round.
    for (int i = -20; i <= 20; ++i) {
      T value = scale.step / 2;
      for (int k = 0; k < std::abs(i); ++k)
        value = std::nextafter(value, i < 0 ? T(0) : scale.step);
      values.push_back(value);
      values.push_back(-value);
    }
    for (const T value : values) {
      Q q = 0;
      T error = 0;
      const bool within = quantize_value<T, Q>(value, scale, &q, &error);
      if (!std::isfinite(value)) {
        EXPECT_FALSE(within);
        continue;
      }
      if (!std::isfinite(value * scale.inverse_step)) continue;  // refused before a code exists
      const T restored = dequantize_value<T, Q>(q, scale.levels());
      const bool truly =
          std::isfinite(restored) &&
          test::within_exactly(static_cast<double>(restored), static_cast<double>(value),
                               static_cast<double>(scale.bound));
      ASSERT_EQ(within, truly) << std::hexfloat << value << " became " << restored << " under "
                               << scale.bound;
      ++(within ? accepted : refused);
    }
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(refused, 1000u);
}

TYPED_TEST(Quantize, StepsOfAGrainAreItsLargestMultiplesWithinTheBound) {
  using T = typename TypeParam::Value;
  const auto step = [](double bound, int grain_bits, unsigned finer = 0) {
    return static_cast<double>(
        Scale<T>(static_cast<T>(bound), format::kGrid + grain_bits, finer).step);
  };
  EXPECT_EQ(step(1.0, 0), 2);
  EXPECT_EQ(step(1.9, 0), 2);
  EXPECT_EQ(step(1.9, 1), 3);
  EXPECT_EQ(step(1.9, 3), 3.75);
  EXPECT_EQ(step(1.9, 3, 128), 1.75);  // 1.9 in quarters
  EXPECT_EQ(step(1.9, 0, 200), 2);     // not less than the grain
  EXPECT_EQ(step(0x1.8p-30, 1), 0x1.8p-29);
}

// Where T holds all multiples of the grain, every value is within the bound: also those that lie
// midway, and those that a product with the inverse puts on the wrong side of that.
TYPED_TEST(Quantize, StepsOfAGrainLeaveNothingExact) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  constexpr int kDigits = sizeof(T) == 4 ? 24 : sizeof(Q) == 4 ? 30 : 50;
  Random random(21);
  for (int trial = 0; trial < 20000; ++trial) {
    const int grain_bits = static_cast<int>(random.below(14));
    const Scale<T> scale(static_cast<T>(1 + random.unit()), format::kGrid + grain_bits);
    const double grains = static_cast<double>(random.below(std::uint64_t{1} << kDigits)) / 2;
    const T value = static_cast<T>(grains) * scale.grain;
    Q q = 0;
    T error = 0;
    ASSERT_TRUE((quantize_value<T, Q>(value, scale, &q, &error)))
        << std::hexfloat << value << " " << scale.bound << grain_bits;
    ASSERT_LE(2 * error, scale.step);
  }
}

TYPED_TEST(Quantize, TiesGoToEven) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  Scale<T> scale(T(0.5), 2);
  scale.step = 1;
  scale.inverse_step = 1;
  std::vector<T> values{T(0.5),       T(1.5),        T(2.5),       T(3.5),
                        T(-0.5),      T(-1.5),       T(-2.5),      T(4194304.5),
                        T(4194305.5), T(-4194305.5), T(8388606.5), T(8388607.5)};
  const std::vector<Q> expected{0,  2,       2,       4,        0,       -2,
                                -2, 4194304, 4194306, -4194306, 8388606, 8388608};
  for (const simd::Target target : simd::available_targets()) {
    std::vector<Q> codes(values.size());
    const auto outcome =
        kernels<T, Q>(target).quantize(values.data(), values.size(), scale, Q(0), codes.data());
    EXPECT_TRUE(outcome.within);
    EXPECT_EQ(codes, expected) << simd::name_of(target);
  }
}

// x * inverse rounds up to a half although x / step is below it: still a code within the bound.
TYPED_TEST(Quantize, ProductsThatRoundUpToAHalfStayWithinTheBound) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  Random random(5);
  int rounded_up = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Scale<T> scale(static_cast<T>(1 + random.unit()), format::kMaxMargin);
    const auto code = static_cast<double>(random.below(1000));
    const T value =
        std::nextafter(static_cast<T>((code + 0.5) * static_cast<double>(scale.step)), T(0));
    const T scaled = value * scale.inverse_step;
    if (scaled != static_cast<T>(code + 0.5)) continue;
    ++rounded_up;
    Q q = 0;
    T error = 0;
    ASSERT_TRUE((quantize_value<T, Q>(value, scale, &q, &error)));
  }
  EXPECT_GT(rounded_up, 100);
}

TYPED_TEST(Quantize, EveryTargetRestoresTheValuesOfTheReference) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  Random random(9);
  for (const std::size_t count : {0u, 1u, 3u, 7u, 8u, 9u, 31u, 1000u}) {
    std::vector<Q> codes(count);
    // Wide codes are restored alike within +-2^51 only, which is all that an encoder writes.
    const int spare_bits = sizeof(Q) == 8 ? 13 : 0;
    for (Q& code : codes) code = static_cast<Q>(static_cast<Q>(random.next()) >> spare_bits);
    if (count > 8) codes[3] = 0, codes[4] = -1;
    const Levels<T> levels{static_cast<T>(0.0123), static_cast<T>(count % 2 == 0 ? 0 : 0.75)};
    const Q base = sizeof(Q) == 8 ? Q(123456) : std::numeric_limits<Q>::max();
    std::vector<T> expected(count);
    kernels<T, Q>(simd::Target::reference)
        .dequantize(codes.data(), count, levels, base, expected.data());
    for (const simd::Target target : simd::available_targets()) {
      std::vector<T> values(count);
      kernels<T, Q>(target).dequantize(codes.data(), count, levels, base, values.data());
      EXPECT_TRUE(test::same_bits(values, expected)) << simd::name_of(target) << " " << count;
    }
  }
}

template <class T>
class ValueRangeKernel : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ValueRangeKernel, ValueTypes);

TYPED_TEST(ValueRangeKernel, FindsTheExtremesOfWhatCounts) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  for (std::size_t count = 0; count < 40; ++count) {
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(::testing::Message() << simd::name_of(target) << " " << count);
      const auto widen = range_kernels<T>(target).widen;
      std::vector<T> values(count, T(3));
      T low = 100, high = -100;
      widen(values.data(), count, Limits::quiet_NaN(), &low, &high);
      EXPECT_EQ(low, count == 0 ? T(100) : T(3));
      EXPECT_EQ(high, count == 0 ? T(-100) : T(3));
      for (std::size_t i = 0; i < count; ++i) {
        for (const T extreme : {Limits::lowest(), Limits::max(), T(4), T(-4)}) {
          values.assign(count, T(3));
          values[i] = extreme;
          low = 3, high = 3;
          widen(values.data(), count, Limits::quiet_NaN(), &low, &high);
          EXPECT_EQ(low, std::min(extreme, T(3)));
          EXPECT_EQ(high, std::max(extreme, T(3)));
          // The same value as the mask does not count.
          low = 3, high = 3;
          widen(values.data(), count, extreme, &low, &high);
          EXPECT_EQ(low, T(3));
          EXPECT_EQ(high, T(3));
        }
        for (const T bad : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
          values[i] = bad;
          for (const T fill : {Limits::quiet_NaN(), T(7)}) {
            low = 3, high = 3;
            widen(values.data(), count, fill, &low, &high);
            EXPECT_EQ(low, T(3));
            EXPECT_EQ(high, T(3));
          }
        }
      }
    }
  }
}

TYPED_TEST(ValueRangeKernel, ReadsLongRowsToTheEnd) {
  using T = TypeParam;
  for (const simd::Target target : simd::available_targets()) {
    for (const std::size_t count : {8191u, 8192u, 8193u, 16389u}) {
      std::vector<T> values(count, T(3));
      for (std::size_t i = 0; i < count; i += 61) {
        values[i] = 5;
        T low = 3, high = 3;
        range_kernels<T>(target).widen(values.data(), count, T(0), &low, &high);
        ASSERT_EQ(high, T(5)) << simd::name_of(target) << " " << count << " at " << i;
        values[i] = 3;
      }
    }
  }
}

TYPED_TEST(Quantize, LongRowsAreQuantisedToTheEnd) {
  using T = typename TypeParam::Value;
  using Q = typename TypeParam::Code;
  const Scale<T> scale(T(0.5), 10);
  Random random(21);
  for (const std::size_t count : {8191u, 8192u, 8193u, 16389u}) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(random.around(100000)) / 16;
    expect_same_outcome<T, Q>(values, scale, 3);
    if (this->HasFatalFailure()) return;
  }
}

TEST(NeedsWide, TellsCodesBeyondTheNarrowLimit) {
  const Scale<double> scale(1.0, 10);
  EXPECT_FALSE(needs_wide(scale.step * 1e9, scale));
  EXPECT_TRUE(needs_wide(scale.step * 1e10, scale));
  EXPECT_TRUE(needs_wide(-scale.step * 1e15, scale));
  EXPECT_FALSE(needs_wide(scale.step * 1e16, scale));
  EXPECT_FALSE(needs_wide(std::numeric_limits<double>::quiet_NaN(), scale));
  EXPECT_FALSE(needs_wide(std::numeric_limits<double>::infinity(), scale));
}

}  // namespace
}  // namespace firn::quantize
