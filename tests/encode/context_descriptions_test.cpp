// Descriptions of contexts and stored tables: what is written is read back, and what is not told
// follows from what is.
#include "encode/context_descriptions.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace firn::encode {
namespace {

using Counts = std::array<std::uint32_t, kTokenCount>;

// Tokens that fit no member: mostly even ones, with different signs apart or not.
Counts odd_counts(unsigned seed, int last, bool symmetric) {
  std::mt19937 random(seed);
  Counts counts{};
  counts[token_index(0)] = 3000;
  for (int token = 1; token <= last; ++token) {
    counts[token_index(token)] = token % 2 ? 3 : 400 + static_cast<std::uint32_t>(random() % 300);
    counts[token_index(-token)] = symmetric ? counts[token_index(token)] : 1 + token % 7u;
  }
  return counts;
}

std::uint64_t total_of(const Counts& counts) {
  std::uint64_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  return total;
}

double bits_with(const Counts& counts, const Frequencies& frequencies) {
  TokenCosts costs;
  build_token_costs(frequencies, costs);
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += 1.0 * costs[i] * counts[i];
  return sum / kCostPerBit;
}

TEST(StoredTable, ReadsBackAsWrittenInAsManyBitsAsItSays) {
  for (const bool symmetric : {false, true}) {
    for (const bool fine : {false, true}) {
      for (const int last : {0, 1, 7, 20, kMaxToken}) {
        const Counts counts = odd_counts(1, last, symmetric);
        const Frequencies& reference = family().frequencies[60];
        const StoredTable table =
            fit_stored_table(counts.data(), total_of(counts), last, reference, symmetric, fine);
        std::vector<std::uint8_t> bytes(1000);
        ByteWriter out(bytes.data());
        BitWriter bits(out);
        write_stored_table(table, reference, bits);
        bits.finish();
        EXPECT_EQ(out.size(),
                  static_cast<std::size_t>(stored_table_bits(table, reference) + 7) / 8);
        ByteReader in({bytes.data(), out.size()});
        BitReader read(in);
        StoredTable copy;
        ASSERT_TRUE(read_stored_table(read, reference, copy));
        Frequencies expected, frequencies;
        ASSERT_TRUE(stored_table_frequencies(table, expected));
        ASSERT_TRUE(stored_table_frequencies(copy, frequencies));
        EXPECT_EQ(frequencies, expected) << symmetric << fine << last;
      }
    }
  }
}

TEST(StoredTable, FitsWhatNoMemberDoes) {
  const Counts counts = odd_counts(2, 12, false);
  const Frequencies& reference = family().frequencies[70];
  double least = bits_with(counts, reference);
  for (const bool fine : {false, true}) {
    const StoredTable table =
        fit_stored_table(counts.data(), total_of(counts), 12, reference, false, fine);
    Frequencies frequencies;
    ASSERT_TRUE(stored_table_frequencies(table, frequencies));
    const double bits = bits_with(counts, frequencies);
    EXPECT_LT(bits, least) << fine;  // the fine one is nearer still
    least = bits;
  }
}

TEST(StoredTable, WhatIsLikeTheReferenceIsNotTold) {
  // Token 0 is more frequent than in the member, all others are in its proportions.
  const Frequencies& reference = family().frequencies[70];
  Counts counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = 4u * reference[i];
  counts[token_index(0)] *= 5;
  const StoredTable table =
      fit_stored_table(counts.data(), total_of(counts), kMaxToken, reference, true, false);
  EXPECT_LE(table.told, 4);
  EXPECT_LT(stored_table_bits(table, reference), 40);
  Frequencies frequencies;
  ASSERT_TRUE(stored_table_frequencies(table, frequencies));
  EXPECT_EQ(frequencies[token_index(6)] > 0, reference[token_index(6)] > 0);
  EXPECT_LT(bits_with(counts, frequencies), 0.95 * bits_with(counts, reference));
}

TEST(Descriptions, EveryKindReadsBackAsWritten) {
  using Kind = DescriptionKind;
  const Counts counts = odd_counts(3, 9, true);
  const auto table_from = [&](const Frequencies& reference) {
    return fit_stored_table(counts.data(), total_of(counts), 9, reference, true, false);
  };
  std::vector<Description> written;
  std::vector<Frequencies> distributions;
  std::vector<std::uint8_t> bytes(4000);
  ByteWriter out(bytes.data());
  BitWriter bits(out);
  ExpectedDescription expected;
  Frequencies before = family().frequencies[0];
  const std::pair<Kind, int> steps[] = {
      {Kind::repeated, 0}, {Kind::member, 0},        {Kind::unused, 0}, {Kind::member, 0},
      {Kind::expected, 0}, {Kind::table, 1},         {Kind::unused, 0}, {Kind::repeated, 7},
      {Kind::member, 7},   {Kind::changed_table, 3}, {Kind::table, 0},  {Kind::expected, 0}};
  int member = 0;
  for (const auto& [kind, shift] : steps) {
    Description description;
    description.kind = kind;
    description.shift = shift;
    description.member = kind == Kind::expected ? expected.expected_member(shift) : member;
    ASSERT_GE(description.member, 0);
    if (kind == Kind::member || kind == Kind::table) member += 25;
    if (kind == Kind::table) {
      description.table = table_from(family().frequencies[description.member]);
    }
    if (kind == Kind::changed_table) description.table = table_from(before);
    expected.write(description, before, bits);
    if (description.has_table()) {
      ASSERT_TRUE(stored_table_frequencies(description.table, before));
    } else if (kind != Kind::unused && kind != Kind::repeated) {
      before = family().frequencies[description.member];
    }
    written.push_back(description);
    distributions.push_back(before);
  }
  bits.finish();

  ByteReader in({bytes.data(), out.size()});
  BitReader read(in);
  ExpectedDescription expected_again;
  before = family().frequencies[0];
  for (std::size_t i = 0; i < written.size(); ++i) {
    Description description;
    ASSERT_TRUE(expected_again.read(read, before, description)) << i;
    ASSERT_EQ(description.kind, written[i].kind) << i;
    if (description.kind == Kind::unused) continue;
    EXPECT_EQ(description.shift, written[i].shift) << i;
    if (description.has_table()) {
      ASSERT_TRUE(stored_table_frequencies(description.table, before));
    } else if (description.kind != Kind::repeated) {
      EXPECT_EQ(description.member, written[i].member) << i;
      before = family().frequencies[description.member];
    }
    EXPECT_EQ(before, distributions[i]) << i;
  }
  EXPECT_TRUE(read.finish());
}

TEST(Descriptions, AShiftMustBeFollowedByADistribution) {
  for (const std::uint8_t second : {1, 2}) {  // unused, shift
    // Shift: 2 and 0; a bit 0; then the second kind.
    const std::uint8_t bytes[] = {static_cast<std::uint8_t>(2 | second << 4), 0};
    ByteReader in({bytes, 2});
    BitReader bits(in);
    Description description;
    EXPECT_FALSE(ExpectedDescription().read(bits, family().frequencies[0], description));
  }
}

}  // namespace
}  // namespace firn::encode
