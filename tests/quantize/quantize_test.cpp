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

#include "container/format.hpp"
#include "support/exact_bound.hpp"
#include "support/fields.hpp"

namespace firn::quantize {
namespace {

using test::bits_of;
using test::Random;

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

template <class T>
std::vector<Scale<T>> scales() {
  std::vector<Scale<T>> list;
  Random random(7);
  for (int margin = format::kMinMargin; margin <= format::kMaxMargin; ++margin) {
    for (const double bound : {1.0, 0.5, 0.25, 1024.0, 1e-3, 1e-6, 3.7e5, 0x1p-20, 0x1p20}) {
      list.emplace_back(static_cast<T>(bound), margin);
    }
    list.emplace_back(static_cast<T>(1 + random.unit()), margin);
    list.emplace_back(std::numeric_limits<T>::min() * 8, margin);
    list.emplace_back(std::numeric_limits<T>::max() / 8, margin);
  }
  return list;
}

// Those too with a phase, and those whose steps have a grain.
template <class T>
std::vector<Scale<T>> all_scales() {
  std::vector<Scale<T>> list = scales<T>();
  Random random(8);
  for (const Scale<T>& plain : scales<T>()) {
    Scale<T> phased = plain;
    phased.phase =
        static_cast<T>(list.size() % 2 == 0 ? 64 * (1 + random.below(3)) : 1 + random.below(255)) /
        256;
    list.push_back(phased);
  }
  for (const int grain_bits : {0, 1, 3, 8, 13}) {
    const int margin = format::kGrid + grain_bits;
    for (const double bound : {1.0, 1e-3, 3.7e5, 0x1.8p-20}) {
      list.emplace_back(static_cast<T>(bound), margin, grain_bits == 3 ? 200 : 0);
    }
    list.emplace_back(static_cast<T>(1 + random.unit()), margin,
                      static_cast<unsigned>(random.below(200)));
    list.emplace_back(std::numeric_limits<T>::min() * 8, margin);
    list.emplace_back(std::numeric_limits<T>::max() / 8, margin);
  }
  return list;
}

// Values midway between two codes, a few units in the last place around them, around the codes
// themselves, around the limits of the codes, and special ones.
template <class T>
std::vector<T> adversarial_values(const Scale<T>& scale, std::uint64_t seed) {
  std::vector<T> list = test::special_values<T>();
  Random random(seed);
  std::vector<double> codes{0,
                            1,
                            2,
                            3,
                            4,
                            5,
                            7,
                            8,
                            100,
                            1023,
                            1024,
                            65535,
                            65536,
                            1 << 20,
                            4194303,
                            4194304,
                            4194305,
                            8388607,
                            8388608,
                            16777216,
                            kNarrowLimit - 1,
                            kNarrowLimit,
                            kNarrowLimit + 1,
                            kWideLimit - 1,
                            kWideLimit,
                            kWideLimit * 2};
  for (int i = 0; i < 24; ++i) codes.push_back(static_cast<double>(random.below(1u << (i + 1))));
  for (const double code : codes) {
    for (const double part : {0.0, 0.25, 0.499, 0.5, 0.501, 0.75}) {
      T value = static_cast<T>((code + part) * static_cast<double>(scale.step));
      T up = value;
      for (int i = 0; i < 3; ++i) {
        list.insert(list.end(), {value, -value, up, -up});
        value = std::nextafter(value, T(0));
        up = std::nextafter(up, std::numeric_limits<T>::infinity());
      }
    }
  }
  for (int i = 0; i < 64; ++i) list.push_back(test::finite_of_any_magnitude<T>(random));
  return list;
}

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

template <class T>
class ShortCodes : public ::testing::Test {
 protected:
  // The outcome and codes of every target are those of 32-bit codes, cut to where they are short.
  void expect_as_wide(const std::vector<T>& values, const Scale<T>& scale, std::int32_t base) {
    std::vector<std::int32_t> wide(values.size());
    RowOutcome<T> wanted = kernels<T, std::int32_t>(simd::Target::reference)
                               .quantize(values.data(), values.size(), scale, base, wide.data());
    for (const std::int32_t code : wide) wanted.within &= std::abs(code) <= kShortLimit;
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(simd::name_of(target));
      std::vector<std::int16_t> codes(values.size());
      const RowOutcome<T> outcome = short_kernels<T>(target).quantize(values.data(), values.size(),
                                                                      scale, base, codes.data());
      ASSERT_EQ(outcome.within, wanted.within);
      if (!wanted.within) continue;
      ASSERT_EQ(bits_of(outcome.max_error), bits_of(wanted.max_error));
      ASSERT_EQ(std::vector<std::int32_t>(codes.begin(), codes.end()), wide);
    }
  }

  // Where nothing is looked for, what is beyond the bound does not show, but for what is not
  // finite.
  void expect_rough_ones(const std::vector<T>& values, const Scale<T>& scale, std::int32_t base) {
    std::vector<std::int32_t> wide(values.size());
    bool all_within = kernels<T, std::int32_t>(simd::Target::reference)
                          .quantize(values.data(), values.size(), scale, base, wide.data())
                          .within;
    for (const std::int32_t code : wide) all_within &= std::abs(code) <= kShortLimit;
    bool finite = true;
    for (const T value : values) finite = finite && std::isfinite(value * scale.inverse_step);
    std::vector<std::int16_t> expected(values.size()), codes(values.size());
    const bool within =
        short_kernels<T>(simd::Target::reference)
            .quantize_roughly(values.data(), values.size(), scale, base, expected.data())
            .within;
    ASSERT_TRUE(!within || finite);
    if (all_within) {
      ASSERT_TRUE(within);
      ASSERT_EQ(std::vector<std::int32_t>(expected.begin(), expected.end()), wide);
    }
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(simd::name_of(target));
      const auto outcome = short_kernels<T>(target).quantize_roughly(values.data(), values.size(),
                                                                     scale, base, codes.data());
      ASSERT_EQ(outcome.within, within);
      if (within) {
        ASSERT_EQ(codes, expected);
      }
    }
  }
};
TYPED_TEST_SUITE(ShortCodes, ValueTypes);

TYPED_TEST(ShortCodes, AreRestoredAsThoseOf32Bits) {
  using T = TypeParam;
  Random random(9);
  for (const std::size_t count : {0u, 1u, 3u, 7u, 8u, 9u, 31u, 1000u}) {
    const Levels<T> levels{static_cast<T>(0.0123), static_cast<T>(count % 2 == 0 ? 0 : 0.75)};
    std::vector<std::int16_t> codes(count);
    for (auto& code : codes) code = static_cast<std::int16_t>(random.next());
    const std::vector<std::int32_t> wide(codes.begin(), codes.end());
    for (const std::int32_t base : {0, -77, 1 << 29, std::numeric_limits<std::int32_t>::max()}) {
      std::vector<T> expected(count);
      kernels<T, std::int32_t>(simd::Target::reference)
          .dequantize(wide.data(), count, levels, base, expected.data());
      for (const simd::Target target : simd::available_targets()) {
        const auto& kernels = short_kernels<T>(target);
        for (const auto restore : {kernels.dequantize, kernels.dequantize_streaming}) {
          std::vector<T> values(count);
          restore(codes.data(), count, levels, base, values.data());
          EXPECT_TRUE(test::same_bits(values, expected)) << simd::name_of(target) << " " << count;
        }
      }
    }
  }
}

TYPED_TEST(ShortCodes, AreThoseOf32Bits) {
  using T = TypeParam;
  for (const Scale<T>& scale : all_scales<T>()) {
    SCOPED_TRACE(::testing::Message()
                 << "bound " << scale.bound << " step " << scale.step << " phase " << scale.phase);
    for (const std::int32_t base : {0, -4000, 4096, 1 << 20, -(1 << 29), 1 << 29}) {
      std::vector<T> good;
      std::vector<T> row(37, static_cast<T>(base) * scale.step);
      std::size_t position = 0;
      for (const T value : adversarial_values(scale, 13)) {
        std::int32_t q = 0;
        T error = 0;
        if (quantize_value<T, std::int32_t>(value, scale, &q, &error) &&
            std::abs(static_cast<std::int64_t>(q) - base) <= kShortLimit) {
          good.push_back(value);
        }
        // Alone among values that are well.
        const T before = row[position % row.size()];
        row[position % row.size()] = value;
        this->expect_as_wide(row, scale, base);
        if (this->HasFatalFailure()) return;
        row[position++ % row.size()] = before;
      }
      this->expect_as_wide(good, scale, base);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(ShortCodes, AreTheSameWhereNoErrorsAreLookedFor) {
  using T = TypeParam;
  for (const Scale<T>& scale : all_scales<T>()) {
    if (scale.grain > 0) continue;
    SCOPED_TRACE(::testing::Message()
                 << "bound " << scale.bound << " step " << scale.step << " phase " << scale.phase);
    for (const std::int32_t base : {0, 4096, -(1 << 29)}) {
      std::vector<T> row(37, static_cast<T>(base) * scale.step), finite;
      for (const T value : adversarial_values(scale, 14)) {
        std::rotate(row.begin(), row.begin() + 1, row.end());
        const T before = std::exchange(row[0], value);
        this->expect_rough_ones(row, scale, base);
        if (this->HasFatalFailure()) return;
        row[0] = before;
        if (std::fabs(value * scale.inverse_step) < T(30000)) finite.push_back(value);
      }
      this->expect_rough_ones(finite, scale, base);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(ShortCodes, OfLongRowsReachTheEnd) {
  using T = TypeParam;
  const Scale<T> scale(T(0.5), 10);
  Random random(22);
  for (const std::size_t count : {8191u, 8192u, 8193u, 16389u}) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(random.around(60000)) / 16;
    this->expect_as_wide(values, scale, 3);
    if (this->HasFatalFailure()) return;
    for (std::size_t i = 0; i < count; i += 997) {
      const T before = values[i];
      values[i] = std::numeric_limits<T>::quiet_NaN();
      this->expect_as_wide(values, scale, 3);
      if (this->HasFatalFailure()) return;
      values[i] = before;
    }
  }
}

// Smooth values with a mask of runs and scattered points, some rows long enough to be read at
// several places at once.
template <class T>
std::vector<T> masked_values(std::size_t count, T mask, Random& random) {
  std::vector<T> values(count);
  std::size_t left = 0;
  bool masked = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (left-- == 0) {
      masked = !masked;
      left = random.below(random.below(4) == 0 ? 300 : 9);
    }
    values[i] = masked ? mask : static_cast<T>(random.around(1000)) / 37;
  }
  return values;
}

TYPED_TEST(ShortCodes, OfMaskedValuesRepeatTheOneBefore) {
  using T = TypeParam;
  const Scale<T> scale(T(0.01), 5);
  const T not_a_number = std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  Random random(9);
  for (const T fill : {T(1e20), not_a_number}) {
    for (const T mask : {T(1e20), not_a_number, infinity}) {
      for (std::size_t count = 0; count < 20000; count += count < 200 ? 1 : 6333) {
        const std::vector<T> values = masked_values<T>(count, mask, random);
        std::vector<std::int16_t> expected(count + 1, 11);
        std::vector<std::uint64_t> expected_bits((count + 63) / 64);
        bool expected_fill = false;
        const auto wanted =
            short_kernels<T>(simd::Target::reference)
                .quantize_masked(values.data(), count, scale, 3, fill, T(5), expected.data() + 1,
                                 expected_bits.data(), &expected_fill);
        for (std::size_t i = 0; i < count; ++i) {
          const bool is_masked = expected_bits[i / 64] >> i % 64 & 1;
          ASSERT_EQ(is_masked, values[i] == fill || !std::isfinite(values[i]));
          ASSERT_TRUE(!is_masked || expected[i + 1] == expected[i]);
        }
        for (const simd::Target target : simd::available_targets()) {
          SCOPED_TRACE(::testing::Message() << simd::name_of(target) << " " << count);
          std::vector<std::int16_t> codes(count + 1, 11);
          std::vector<std::uint64_t> bits(expected_bits.size(), 0x5555);
          bool all_fill = false;
          const auto outcome = short_kernels<T>(target).quantize_masked(
              values.data(), count, scale, 3, fill, T(5), codes.data() + 1, bits.data(), &all_fill);
          ASSERT_EQ(outcome.within, wanted.within);
          ASSERT_EQ(outcome.max_error, wanted.max_error);
          ASSERT_EQ(all_fill, expected_fill);
          ASSERT_EQ(bits, expected_bits);
          ASSERT_TRUE(!wanted.within || codes == expected);
        }
      }
    }
  }
}

TYPED_TEST(ShortCodes, AreRestoredUnderAMask) {
  using T = TypeParam;
  const Levels<T> levels{T(0.019), T(0.25)};
  Random random(4);
  std::vector<std::int16_t> codes(700);
  for (auto& code : codes) code = static_cast<std::int16_t>(random.around(30000));
  std::vector<std::uint64_t> bits(14);
  for (auto& word : bits) word = random.next() & random.next();
  for (const std::size_t first : {0u, 1u, 63u, 64u, 130u}) {
    for (std::size_t count = 0; count <= codes.size(); count += count < 140 ? 1 : 93) {
      const Masked<T> masked{bits.data(), first, T(1e20)};
      std::vector<T> expected(count);
      short_kernels<T>(simd::Target::reference)
          .dequantize_masked(codes.data(), count, levels, 77, masked, false, expected.data());
      for (const simd::Target target : simd::available_targets()) {
        for (const bool streaming : {false, true}) {
          for (const std::size_t misaligned : {0u, 1u}) {
            SCOPED_TRACE(::testing::Message()
                         << simd::name_of(target) << " " << first << " " << count);
            alignas(64) T memory[704];
            T* const values = memory + misaligned;
            values[count] = T(-3);
            short_kernels<T>(target).dequantize_masked(codes.data(), count, levels, 77, masked,
                                                       streaming, values);
            ASSERT_EQ(values[count], T(-3));
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), values));
          }
        }
      }
    }
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
