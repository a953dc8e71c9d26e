// The prefix codes of `fre`: the paper's table word by word, every SIMD target against the
// reference, bounds of cut and rounded mantissas, and damage.
#include "encode/fre.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/exact_bound.hpp"
#include "support/fields.hpp"
#include "support/random.hpp"

namespace firn::encode {
namespace {

template <class T>
using Bits = typename FreLayout<T>::Bits;

// One bit string of values that are cut already, as characters in the order of the bits.
template <class T>
std::string bits_of_stream(const std::vector<T>& values, FreCut cut, const FreCodeWords& words,
                           simd::Target target = simd::Target::reference) {
  std::vector<Bits<T>> coded(values.size() + 1, 0);
  for (std::size_t i = 0; i < values.size(); ++i) coded[i + 1] = std::bit_cast<Bits<T>>(values[i]);
  std::vector<std::uint8_t> bytes(values.size() * 8 + 16);
  FreWriter writer{bytes.data()};
  fre_kernels<T>(target).encode(coded.data() + 1, values.size(), cut, words, writer);
  const auto whole = static_cast<std::size_t>(writer.next - bytes.data());
  const auto filled = static_cast<std::size_t>(writer.filled);
  writer.finish();
  std::string text;
  for (std::size_t i = 0; i < whole * 8 + filled; ++i) {
    text += (bytes[i / 8] >> i % 8 & 1) != 0 ? '1' : '0';
  }
  return text;
}

TEST(FreCodes, AreThoseOfThePapersTable) {
  const FreCut six{6, false};
  const FreCodeWords words;
  const auto word = [&](float before, float value) {
    const std::string both = bits_of_stream<float>({before, value}, six, words);
    return both.substr(bits_of_stream<float>({before}, six, words).size());
  };
  EXPECT_EQ(word(1.5f, 1.5f), "00");
  // 1.5: mantissa 100000, its least significant bit first.
  EXPECT_EQ(word(1.0f, 1.5f),
            "1"
            "0"
            "000001"
            "0");
  EXPECT_EQ(word(1.0f, -1.5f),
            "1"
            "1"
            "000001"
            "0");
  EXPECT_EQ(word(1.0f, 2.0f),
            "1"
            "0"
            "000000"
            "10"
            "0");
  EXPECT_EQ(word(2.0f, 1.0f),
            "1"
            "0"
            "000000"
            "10"
            "1");
  EXPECT_EQ(word(1.0f, 4.0f),
            "1"
            "0"
            "000000"
            "110"
            "0");
  EXPECT_EQ(word(1.0f, 8.0f),
            "1"
            "0"
            "000000"
            "1110"
            "0");
  EXPECT_EQ(word(1.0f, 16.0f),
            "1"
            "0"
            "000000"
            "11110"
            "0");
  EXPECT_EQ(word(1.0f, 32.0f),
            "1"
            "0"
            "000000"
            "111110"
            "0");
  EXPECT_EQ(word(1.0f, 64.0f),
            "1"
            "0"
            "000000"
            "11111100"
            "0");
  EXPECT_EQ(word(1.0f, 128.0f),
            "1"
            "0"
            "000000"
            "11111101"
            "0");
  EXPECT_EQ(word(1.0f, 256.0f),
            "1"
            "0"
            "000000"
            "11111110"
            "0");
  EXPECT_EQ(word(512.0f, 1.0f),
            "1"
            "0"
            "000000"
            "11111111"
            "1");
  // Exponent 137 is 10001001, read from the low end.
  EXPECT_EQ(word(1.0f, 1024.0f),
            "011"
            "0"
            "10010001"
            "000000");
  EXPECT_EQ(word(1.0f, 1024.0f).size(), 18u);
  EXPECT_EQ(word(1.0f, 0.0f).size(), 27u);
  EXPECT_EQ(word(1.0f, -0.0f),
            "010"
            "1" +
                std::string(23, '0'));
  EXPECT_EQ(word(0.0f, 0.0f), "00");
}

TEST(FreCodes, MantissaBitsHoldTheBound) {
  EXPECT_EQ(fre_mantissa_bits(0x1p-6, false), 6);
  EXPECT_EQ(fre_mantissa_bits(0x1p-6, true), 5);
  EXPECT_EQ(fre_mantissa_bits(0.01, false), 7);
  EXPECT_EQ(fre_mantissa_bits(0.5, true), 0);
}

// Values whose exponents wander, with repetitions, zeros and denormals.
template <class T>
std::vector<T> wandering(std::size_t count, std::uint64_t seed) {
  test::Random random(seed);
  std::vector<T> values(count);
  int exponent = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto choice = random.below(16);
    if (choice == 0) exponent = static_cast<int>(random.below(60)) - 30;
    if (choice < 6) exponent += static_cast<int>(random.below(25)) - 12;
    exponent = exponent > 100 ? 100 : exponent < -100 ? -100 : exponent;
    values[i] = std::ldexp(static_cast<T>(1 + static_cast<double>(random.below(1 << 20)) * 0x1p-20),
                           exponent);
    if (random.below(3) == 0) values[i] = -values[i];
    if (choice == 9 && i > 0) values[i] = values[i - 1];
    if (choice == 10) values[i] = static_cast<T>(0);
    if (choice == 11 && random.below(4) == 0) values[i] = std::numeric_limits<T>::denorm_min() * 77;
  }
  return values;
}

template <class T>
class FreTargets : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FreTargets, ValueTypes);

TYPED_TEST(FreTargets, CutAndEncodeLikeTheReference) {
  using T = TypeParam;
  FreCodeWords exchanged;
  exchanged.rank = {3, 0, 1, 2, 9, 8, 7, 6, 5, 4};
  for (const std::size_t count : {1u, 2u, 7u, 8u, 9u, 31u, 64u, 257u, 2000u}) {
    for (const int kept : {0, 1, 5, 6, 14, 17, FreLayout<T>::kMaxMantissaBits}) {
      for (const bool rounded : {false, true}) {
        const FreCut cut{kept, rounded};
        const auto values = wandering<T>(count, count + static_cast<unsigned>(kept));
        std::vector<Bits<T>> expected(count);
        const auto outcome =
            fre_kernels<T>(simd::Target::reference).cut(values.data(), count, cut, expected.data());
        EXPECT_TRUE(outcome.regular);
        std::vector<T> back(count);
        for (std::size_t i = 0; i < count; ++i) back[i] = std::bit_cast<T>(expected[i]);
        const double limit = std::ldexp(1.0, -kept - (rounded ? 1 : 0));
        EXPECT_FALSE(test::broken_pointwise_promise(values, back, limit <= 0.5 ? limit : 1.0));
        EXPECT_LE(outcome.max_error, limit * (1 + 1e-5));
        for (const simd::Target target : simd::available_targets()) {
          SCOPED_TRACE(simd::name_of(target));
          std::vector<Bits<T>> coded(count);
          const auto found = fre_kernels<T>(target).cut(values.data(), count, cut, coded.data());
          EXPECT_EQ(coded, expected);
          EXPECT_EQ(found.regular, outcome.regular);
          EXPECT_EQ(found.max_error, outcome.max_error);
          for (const FreCodeWords& words : {FreCodeWords{}, exchanged}) {
            EXPECT_EQ(bits_of_stream(back, cut, words, target), bits_of_stream(back, cut, words));
          }
        }
      }
    }
  }
}

TYPED_TEST(FreTargets, SeeSpecialValues) {
  using T = TypeParam;
  for (const T special :
       {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
    for (std::size_t at = 0; at < 40; ++at) {
      std::vector<T> values(40, T{1});
      values[at] = special;
      std::vector<Bits<T>> coded(40);
      for (const simd::Target target : simd::available_targets()) {
        EXPECT_FALSE(
            fre_kernels<T>(target).cut(values.data(), 40, {6, false}, coded.data()).regular);
      }
    }
  }
  // The largest number is cut, but rounding makes it infinite.
  const T largest = std::numeric_limits<T>::max();
  Bits<T> coded = 0;
  EXPECT_TRUE(fre_cut_value(largest, {6, false}, &coded));
  EXPECT_FALSE(fre_cut_value(largest, {6, true}, &coded));
}

// All streams of a chunk, as the pipeline writes them.
template <class T>
std::vector<std::uint8_t> streams_of(const std::vector<T>& values, FreCut cut,
                                     const FreCodeWords& words, std::vector<std::size_t>* sizes) {
  const FreParts parts(values.size());
  std::vector<std::uint8_t> bytes;
  const auto& kernels = fre_kernels<T>(simd::Target::reference);
  for (std::size_t j = 0; j < parts.streams; ++j) {
    std::vector<Bits<T>> coded(parts.size(j) + 1, 0);
    kernels.cut(values.data() + parts.begin(j), parts.size(j), cut, coded.data() + 1);
    std::vector<std::uint8_t> stream(parts.size(j) * 8 + 16);
    FreWriter writer{stream.data()};
    kernels.encode(coded.data() + 1, parts.size(j), cut, words, writer);
    sizes->push_back(static_cast<std::size_t>(writer.finish() - stream.data()));
    bytes.insert(bytes.end(), stream.begin(),
                 stream.begin() + static_cast<std::ptrdiff_t>(sizes->back()));
  }
  bytes.shrink_to_fit();
  return bytes;
}

TYPED_TEST(FreTargets, DecodeLikeTheReference) {
  using T = TypeParam;
  FreCodeWords exchanged;
  exchanged.rank = {9, 1, 0, 2, 3, 4, 5, 6, 7, 8};
  for (const std::size_t count : {1u, 100u, 4095u, 4096u, 4097u, 5001u, 20011u}) {
    for (const int kept : {0, 6, 14, 15, FreLayout<T>::kMaxMantissaBits}) {
      for (const FreCodeWords& words : {FreCodeWords{}, exchanged}) {
        const FreCut cut{kept, false};
        const auto values = wandering<T>(count, 3 * count);
        std::vector<std::size_t> sizes;
        const auto bytes = streams_of(values, cut, words, &sizes);
        std::vector<Bits<T>> coded(count);
        fre_kernels<T>(simd::Target::reference).cut(values.data(), count, cut, coded.data());
        for (const simd::Target target : simd::available_targets()) {
          SCOPED_TRACE(simd::name_of(target));
          std::vector<T> decoded(count, T(9));
          ASSERT_TRUE(
              fre_kernels<T>(target).decode(bytes, sizes, count, cut, words, decoded.data()));
          std::vector<Bits<T>> found(count);
          for (std::size_t i = 0; i < count; ++i) found[i] = std::bit_cast<Bits<T>>(decoded[i]);
          EXPECT_EQ(found, coded);
        }
      }
    }
  }
}

TYPED_TEST(FreTargets, AgreeOnDamage) {
  using T = TypeParam;
  const std::size_t count = 4100;
  const FreCut cut{6, false};
  const auto values = wandering<T>(count, 5);
  std::vector<std::size_t> sizes;
  const auto sound = streams_of(values, cut, {}, &sizes);
  test::Random random(9);
  for (int trial = 0; trial < 60; ++trial) {
    auto bytes = sound;
    auto lengths = sizes;
    if (trial % 3 == 0) {  // shorter or longer last stream
      const std::size_t cut_bytes = 1 + random.below(20);
      bytes.resize(trial % 2 == 0 ? bytes.size() - cut_bytes : bytes.size() + cut_bytes);
      lengths.back() = lengths.back() + bytes.size() - sound.size();
    } else {
      for (int flips = 0; flips < 5; ++flips) {
        bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.next());
      }
    }
    bytes.shrink_to_fit();
    std::vector<T> expected(count), decoded(count);
    const bool good = fre_kernels<T>(simd::Target::reference)
                          .decode(bytes, lengths, count, cut, {}, expected.data());
    if (trial % 3 == 0) {
      EXPECT_FALSE(good);
    }
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(simd::name_of(target));
      EXPECT_EQ(fre_kernels<T>(target).decode(bytes, lengths, count, cut, {}, decoded.data()),
                good);
      if (!good) continue;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::bit_cast<Bits<T>>(decoded[i]), std::bit_cast<Bits<T>>(expected[i]));
      }
    }
  }
}

}  // namespace
}  // namespace firn::encode
