// Codes of 16 bits: on every SIMD target those of 32 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "adversarial.hpp"
#include "quantize/quantize.hpp"
#include "support/fields.hpp"

namespace firn::quantize {
namespace {

using test::bits_of;
using ValueTypes = ::testing::Types<float, double>;

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

}  // namespace
}  // namespace firn::quantize
