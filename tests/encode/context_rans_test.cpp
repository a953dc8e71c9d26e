// The context rANS coder: every SIMD target against the reference, round trips, sizes, damage; and
// the family of distributions, whose frequencies are part of the format.
#include "encode/context_rans.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace firn::encode {
namespace {

using Bytes = std::vector<std::uint8_t>;

// ---- Family ----

TEST(Family, FrequenciesSumToTheScaleAndAreSymmetric) {
  for (const Frequencies& frequencies : family().frequencies) {
    std::uint32_t sum = 0;
    for (std::uint16_t frequency : frequencies) sum += frequency;
    EXPECT_EQ(sum, kProbabilityScale);
    EXPECT_GE(frequencies[token_index(kEscapeToken)], 1);
    for (int token = 1; token <= kMaxToken; ++token) {
      EXPECT_EQ(frequencies[token_index(token)], frequencies[token_index(-token)]);
    }
  }
}

TEST(Family, MembersAreDistinct) {
  const auto& members = family().frequencies;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(members[i], members[j]) << i << ' ' << j;
  }
}

// FNV-1a over all frequencies, little-endian. The Python recipe in docs/format.md gives the same;
// a change of this number is a change of the format.
TEST(Family, IsTheOneOfTheFormat) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const Frequencies& frequencies : family().frequencies) {
    for (std::uint16_t frequency : frequencies) {
      for (const int byte : {frequency & 0xFF, frequency >> 8}) {
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3u;
      }
    }
  }
  EXPECT_EQ(hash, 0xBAE23E25058F2B9Fu);
}

TEST(Family, ReciprocalsDivideExactly) {
  std::mt19937 random(1);
  for (std::uint32_t frequency = 1; frequency < kProbabilityScale; ++frequency) {
    Frequencies frequencies{};
    frequencies[0] = static_cast<std::uint16_t>(kProbabilityScale - frequency);
    frequencies[33] = static_cast<std::uint16_t>(frequency);
    EncodeTokens tokens;
    build_encode_tokens(frequencies, tokens);
    const EncodeToken& token = tokens[33];
    const std::uint32_t start = kProbabilityScale - frequency;
    const std::uint32_t limit = frequency << (31 - kProbabilityBits);
    std::vector<std::uint32_t> states = {1, 2, frequency, frequency - 1, limit - 1, limit - 2};
    for (std::uint32_t k = 1; k < 6; ++k) {
      states.push_back(limit / frequency / k * frequency - 1);
      states.push_back(static_cast<std::uint32_t>(random()) % limit);
    }
    for (std::uint32_t state : states) {
      if (state == 0) continue;
      const std::uint32_t complement = token.packed >> 13 & 0xFFF;
      const auto quotient =
          static_cast<std::uint32_t>(std::uint64_t{state} * token.reciprocal >> 32) >>
          (token.packed >> 25 & 0xF);
      ASSERT_EQ(state + (token.packed & 0x1FFF) + quotient * complement,
                state / frequency * kProbabilityScale + start + state % frequency)
          << frequency << ' ' << state;
    }
  }
}

// ---- Coder ----

template <class Q>
struct Sample {
  std::string name;
  std::vector<Q> residuals;
  Bytes contexts;
};

// Two-sided geometric values whose scale grows with the context.
template <class Q>
Sample<Q> scaled(std::size_t count, int context_count, double octaves, unsigned seed) {
  Sample<Q> sample{"scaled", {}, {}};
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> exponential(1.0);
  for (std::size_t i = 0; i < count; ++i) {
    const int context = static_cast<int>(random() % static_cast<unsigned>(context_count));
    const double scale = std::exp2(context * octaves - 4);
    const double size = std::min(exponential(random) * scale, std::exp2(8 * sizeof(Q) - 2));
    const auto value = static_cast<Q>(size);
    sample.residuals.push_back(random() % 2 ? value : -value);
    sample.contexts.push_back(static_cast<std::uint8_t>(context));
  }
  return sample;
}

template <class Q>
std::vector<Sample<Q>> samples(std::size_t count) {
  std::vector<Sample<Q>> all;
  all.push_back(scaled<Q>(count, 1, 0, 1));
  all.push_back(scaled<Q>(count, 24, 0.5, 2));
  all.push_back(scaled<Q>(count, 64, 8 * sizeof(Q) / 64.0, 3));
  Sample<Q> constant{"zeros", std::vector<Q>(count, 0), Bytes(count, 0)};
  all.push_back(constant);
  std::mt19937_64 random(4);
  Sample<Q> sparse{"sparse", {}, {}};
  Sample<Q> extreme{"extreme", {}, {}};
  Sample<Q> noise{"noise", {}, {}};
  Sample<Q> lattice{"lattice", {}, {}};
  Sample<Q> mixed{"mixed", {}, {}};  // of every width, in all contexts: some of them are escapes
  Sample<Q> patches{"patches", {}, {}};  // zeros, most of them in stretches
  const Q lowest = std::numeric_limits<Q>::min();
  const Q highest = std::numeric_limits<Q>::max();
  for (std::size_t i = 0; i < count; ++i) {
    sparse.residuals.push_back(random() % 500 ? 0 : static_cast<Q>(random() >> (random() % 64)));
    sparse.contexts.push_back(static_cast<std::uint8_t>(random() % 3 * 31));
    const Q ends[] = {lowest, highest, static_cast<Q>(lowest + 1), 0, -1, 4095, 4096, -4096};
    extreme.residuals.push_back(ends[random() % 8]);
    extreme.contexts.push_back(static_cast<std::uint8_t>(random() % 2 * 63));
    noise.residuals.push_back(static_cast<Q>(random()));
    noise.contexts.push_back(static_cast<std::uint8_t>(random() % 17));
    mixed.residuals.push_back(static_cast<Q>(static_cast<std::int64_t>(random()) >> random() % 64));
    mixed.contexts.push_back(static_cast<std::uint8_t>(random() % 5));
    lattice.residuals.push_back(static_cast<Q>(random() % 3) * 150 - 150);
    lattice.contexts.push_back(5);
    const bool still = i / 700 % 2 == 0;
    patches.residuals.push_back(random() % (still ? 600 : 2) ? 0
                                                             : static_cast<Q>(random() % 9) - 4);
    patches.contexts.push_back(static_cast<std::uint8_t>(still ? random() % 3 : 40));
  }
  for (auto* sample : {&sparse, &extreme, &noise, &mixed, &lattice, &patches})
    all.push_back(*sample);
  return all;
}

template <class Q>
Bytes encode(simd::Target target, const Sample<Q>& sample,
             const std::vector<std::size_t>& segments = {}) {
  static ContextRansEncoder encoder;  // reused, as a pipeline does
  const std::size_t capacity = context_rans_capacity<Q>(sample.residuals.size());
  Bytes bytes(capacity + 64, 0xA5);
  const std::size_t size = encoder.encode(sample.residuals.data(), sample.contexts.data(),
                                          sample.residuals.size(), segments, target, bytes.data());
  EXPECT_LE(size, capacity);
  EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(capacity), bytes.end(),
                          [](std::uint8_t byte) { return byte == 0xA5; }));
  bytes.resize(size);
  bytes.shrink_to_fit();  // so that a sanitizer sees reads past the end
  return bytes;
}

// In pieces of these sizes, the last one repeated. False when the payload is refused.
template <class Q>
bool decode(simd::Target target, const Bytes& bytes, const Bytes& contexts,
            const std::vector<std::size_t>& pieces, std::vector<Q>& residuals) {
  static ContextRansDecoder decoder;
  residuals.assign(contexts.size(), 0);
  if (!decoder.start(bytes, target)) return false;
  std::size_t done = 0;
  for (std::size_t k = 0; done < contexts.size(); ++k) {
    const std::size_t piece =
        std::min(pieces[std::min(k, pieces.size() - 1)], contexts.size() - done);
    // Copies of exactly the piece's size: reads and writes beyond it are seen.
    const Bytes piece_contexts(contexts.begin() + static_cast<std::ptrdiff_t>(done),
                               contexts.begin() + static_cast<std::ptrdiff_t>(done + piece));
    std::vector<Q> values(piece);
    if (!decoder.decode(piece_contexts.data(), piece, values.data())) return false;
    std::copy(values.begin(), values.end(), residuals.begin() + static_cast<std::ptrdiff_t>(done));
    done += piece;
  }
  return decoder.finish();
}

template <class Q>
class ContextRans : public ::testing::Test {};
using ResidualTypes = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ContextRans, ResidualTypes);

TYPED_TEST(ContextRans, EveryTargetWritesTheReferencesBytesAndReadsThemBack) {
  for (const std::size_t count : {0, 1, 7, 8, 31, 32, 33, 255, 256, 1000, 20011}) {
    for (const Sample<TypeParam>& sample : samples<TypeParam>(count)) {
      const Bytes expected = encode(simd::Target::reference, sample);
      for (const simd::Target target : simd::available_targets()) {
        SCOPED_TRACE(sample.name + ' ' + std::to_string(count) + ' ' + simd::name_of(target));
        ASSERT_EQ(encode(target, sample), expected);
        std::vector<TypeParam> decoded;
        for (const std::vector<std::size_t>& pieces :
             {std::vector<std::size_t>{count + 1}, {32}, {64, 320, 96}}) {
          ASSERT_TRUE(decode(target, expected, sample.contexts, pieces, decoded));
          ASSERT_EQ(decoded, sample.residuals);
        }
      }
    }
  }
}

TYPED_TEST(ContextRans, SegmentsOfAnySizeDecodeAsPieces) {
  const std::vector<std::size_t> segments = {1, 31, 32, 33, 0, 7, 500, 8, 4096, 292};
  for (const Sample<TypeParam>& sample : samples<TypeParam>(5000)) {
    const Bytes expected = encode(simd::Target::reference, sample, segments);
    for (const simd::Target target : simd::available_targets()) {
      SCOPED_TRACE(sample.name + ' ' + simd::name_of(target));
      ASSERT_EQ(encode(target, sample, segments), expected);
      std::vector<TypeParam> decoded;
      ASSERT_TRUE(decode(target, expected, sample.contexts, segments, decoded));
      ASSERT_EQ(decoded, sample.residuals);
    }
  }
}

TYPED_TEST(ContextRans, EveryTruncationIsRefused) {
  for (const Sample<TypeParam>& sample : samples<TypeParam>(700)) {
    const Bytes whole = encode(simd::Target::reference, sample);
    for (const simd::Target target : simd::available_targets()) {
      for (std::size_t size = 0; size < whole.size(); size += 1 + size / 300) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        std::vector<TypeParam> decoded;
        EXPECT_FALSE(decode(target, cut, sample.contexts, {64}, decoded))
            << sample.name << ' ' << size << ' ' << simd::name_of(target);
      }
      Bytes longer = whole;
      longer.insert(longer.end(), 2, 0);
      std::vector<TypeParam> decoded;
      EXPECT_FALSE(decode(target, longer, sample.contexts, {64}, decoded)) << sample.name;
    }
  }
}

// Whatever the bytes, all targets agree on accepting them and on what they mean.
TYPED_TEST(ContextRans, DamagedBytesGiveTheSameVerdictOnEveryTarget) {
  std::mt19937 random(7);
  for (const Sample<TypeParam>& sample : samples<TypeParam>(1500)) {
    const Bytes whole = encode(simd::Target::reference, sample);
    for (int trial = 0; trial < 300; ++trial) {
      Bytes damaged = whole;
      if (trial % 4 == 3) {
        damaged.resize(random() % 600);
        for (std::uint8_t& byte : damaged) byte = static_cast<std::uint8_t>(random());
        // A plausible head, or hardly any would pass.
        if (damaged.size() > 2) {
          damaged[0] = static_cast<std::uint8_t>(3 + random() % 3);
          damaged[1] = static_cast<std::uint8_t>(random() % 65);
        }
      } else {
        // Heads are short, so aim at them in half of the trials.
        const std::size_t range =
            trial % 2 ? damaged.size() : std::min<std::size_t>(60, damaged.size());
        for (int flips = 0; flips <= trial % 3; ++flips) {
          damaged[random() % range] ^= static_cast<std::uint8_t>(1u << random() % 8);
        }
      }
      std::vector<TypeParam> expected;
      const bool accepted =
          decode(simd::Target::reference, damaged, sample.contexts, {64}, expected);
      for (const simd::Target target : simd::available_targets()) {
        std::vector<TypeParam> decoded;
        ASSERT_EQ(decode(target, damaged, sample.contexts, {64}, decoded), accepted)
            << sample.name << ' ' << trial << ' ' << simd::name_of(target);
        if (accepted) {
          ASSERT_EQ(decoded, expected);
        }
      }
    }
  }
}

// ---- Sizes ----

double entropy_bytes(const Sample<std::int32_t>& sample) {
  std::map<std::pair<int, std::int32_t>, double> joint;
  std::map<int, double> context;
  for (std::size_t i = 0; i < sample.residuals.size(); ++i) {
    ++joint[{sample.contexts[i], sample.residuals[i]}];
    ++context[sample.contexts[i]];
  }
  double bits = 0;
  for (const auto& [key, count] : joint) bits += count * std::log2(context[key.first] / count);
  return bits / 8;
}

TEST(ContextRansSize, ScaledNoiseIsWithinAPercentOfItsEntropy) {
  const auto sample = scaled<std::int32_t>(200000, 8, 1, 9);
  const auto size = static_cast<double>(encode(simd::default_target(), sample).size());
  EXPECT_LT(size, 1.01 * entropy_bytes(sample));
}

TEST(ContextRansSize, NothingFloorsAtABitAValue) {
  const Sample<std::int32_t> zeros{"zeros", std::vector<std::int32_t>(262144, 0), Bytes(262144, 0)};
  EXPECT_LT(encode(simd::default_target(), zeros).size(), 64u);
}

TEST(ContextRansSize, AnEstimateIsNearWhatEncodingTakes) {
  for (const int contexts : {1, 8, 20}) {
    for (const std::size_t count : {std::size_t{20000}, std::size_t{200000}}) {
      const auto sample = scaled<std::int32_t>(count, contexts, 1, 9);
      ContextRansEncoder encoder;
      const auto size = static_cast<double>(encode(simd::default_target(), sample).size());
      for (const std::size_t one_in : {1, 2, 3}) {
        const auto estimated =
            static_cast<double>(encoder.estimate(sample.residuals.data(), sample.contexts.data(),
                                                 count, one_in, simd::default_target()));
        EXPECT_NEAR(estimated, size, 0.02 * size + 200)
            << contexts << ' ' << count << ' ' << one_in;
      }
    }
  }
}

TYPED_TEST(ContextRans, OnlyWhatIsWithinLimitsIsWritten) {
  ContextRansEncoder encoder;
  for (const std::size_t count : {20011, 200000}) {
    for (const Sample<TypeParam>& sample : samples<TypeParam>(count)) {
      SCOPED_TRACE(sample.name + ' ' + std::to_string(count));
      const Bytes whole = encode(simd::default_target(), sample);
      const std::size_t size = whole.size(), capacity = context_rans_capacity<TypeParam>(count);
      const auto encode_within = [&](std::size_t least, std::size_t most, Bytes* bytes) {
        bytes->assign(capacity, 0);
        return encoder.encode_if_within(sample.residuals.data(), sample.contexts.data(), count, {},
                                        simd::default_target(), bytes->data(), capacity, least,
                                        most);
      };
      Bytes bytes;
      const std::size_t little = size / 400 + 24;
      const auto within = encode_within(size - std::min(size, little), size + little, &bytes);
      ASSERT_TRUE(within.written);
      bytes.resize(within.size);
      EXPECT_EQ(bytes, whole);
      const auto expect_near = [&](const ContextRansEncoder::Outcome& outcome, double off) {
        EXPECT_FALSE(outcome.written);
        const auto exact = static_cast<double>(size);
        EXPECT_NEAR(static_cast<double>(outcome.size), exact, off * exact + 120);
      };
      // Just outside it is known well, far outside distributions are not the best.
      expect_near(encode_within(size + size / 200 + 48, 2 * size + 100, &bytes), 0.003);
      expect_near(encode_within(1, size - std::min(size - 1, size / 200 + 48), &bytes), 0.003);
      expect_near(encode_within(2 * size + 200, 3 * size + 200, &bytes), 0.01);
      if (size > 1000) expect_near(encode_within(1, size / 2, &bytes), 0.01);
    }
  }
}

// Three values far apart fit no member of the family; a stored table takes them.
TEST(ContextRansSize, StoredTablesTakeWhatTheFamilyCannot) {
  Sample<std::int32_t> sample{"lattice", {}, Bytes(50000, 0)};
  std::mt19937 random(3);
  for (int i = 0; i < 50000; ++i) {
    sample.residuals.push_back(static_cast<std::int32_t>(random() % 3) * 10 - 10);
  }
  const auto size = static_cast<double>(encode(simd::default_target(), sample).size());
  EXPECT_LT(size, 1.01 * entropy_bytes(sample) + 100);
}

// Twenty contexts of a distribution that takes a table take it once, and so do those with few.
TEST(ContextRansSize, ContextsAlikeShareATable) {
  const auto lattice = [](unsigned contexts) {
    Sample<std::int32_t> sample{"lattice", {}, {}};
    std::mt19937 random(7);
    for (int i = 0; i < 40000; ++i) {
      sample.residuals.push_back(static_cast<std::int32_t>(random() % 4) * 2 - 3);
      sample.contexts.push_back(
          static_cast<std::uint8_t>(contexts * (random() % 256) * (random() % 256) / 65536));
    }
    return encode(simd::default_target(), sample).size();
  };
  EXPECT_LT(lattice(20), lattice(1) + 20);
}

// The sample that decides the shifts sees 1 residual in 50 of these, so none of the rare ones.
TEST(ContextRansSize, AContextThatTheSampleMissedIsShiftedToo) {
  Sample<std::int32_t> sample{"rare", std::vector<std::int32_t>(400000, 0), Bytes(400000, 0)};
  std::mt19937 random(8);
  constexpr int kRare = 60;
  for (int i = 0; i < kRare; ++i) {
    const auto at = static_cast<std::size_t>(40000 + 5000 * i + 1000);
    sample.residuals[at] = static_cast<std::int32_t>(random() % 2000000) - 1000000;
    sample.contexts[at] = 9;
  }
  Sample<std::int32_t> without = sample;
  for (std::int32_t& residual : without.residuals) residual = 0;
  // Of 21 bits each, and not of escapes, which take 30.
  EXPECT_LT(encode(simd::default_target(), sample).size(),
            encode(simd::default_target(), without).size() + kRare * 23 / 8);
}

// Rows of which one half is empty, and as long as the sample's steps are whole numbers of them.
TEST(ContextRansSize, RowsDoNotDecideWhatTheSampleSees) {
  constexpr std::size_t kRow = 64, kCount = 960 * kRow, kBits = 20;
  Sample<std::int32_t> sample{"rows", std::vector<std::int32_t>(kCount, 0), Bytes(kCount, 0)};
  std::mt19937 random(10);
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % kRow < kRow / 2) continue;
    sample.residuals[i] = static_cast<std::int32_t>(random() % (1u << kBits)) - (1 << (kBits - 1));
    sample.contexts[i] = 1;
  }
  const double bytes = static_cast<double>(kBits) / 8 * kCount / 2;
  EXPECT_LT(static_cast<double>(encode(simd::default_target(), sample).size()), 1.02 * bytes);
  ContextRansEncoder encoder;
  EXPECT_NEAR(static_cast<double>(encoder.estimate(sample.residuals.data(), sample.contexts.data(),
                                                   kCount, 1, simd::default_target())),
              bytes, 0.02 * bytes);
}

TEST(ContextRansSize, AKibibyteCarriesNoTable) {
  const auto sample = scaled<std::int32_t>(256, 1, 0, 5);
  // Head 3 bytes, 8 lanes of 4; the rest is data.
  EXPECT_LT(static_cast<double>(encode(simd::default_target(), sample).size()),
            entropy_bytes(sample) + 40);
}

}  // namespace
}  // namespace firn::encode
