// The static family of two-sided distributions over residual tokens, and the tables that the rANS
// coder derives from any distribution. Everything here is part of the format: docs/format.md,
// "Context rANS section". Only IEEE + - * / and square roots, so every machine builds the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace firn::encode {

// Frequencies of a distribution sum to 2^kProbabilityBits. 12 bits: 13 would gain 0.03 %, and one
// decoding slot (token, frequency, offset) would no longer fit 32 bits; 11 would lose 0.05 %.
inline constexpr int kProbabilityBits = 12;
inline constexpr std::uint32_t kProbabilityScale = 1u << kProbabilityBits;

// A token is a signed number: |token| < 16 is that magnitude; 16 to 31 are two classes an octave
// (16..23, 24..31, 32..47, ... 3072..4095), whose members are told apart by extra raw bits; -32
// escapes to a magnitude that is written raw. Tables are indexed by token + 32.
inline constexpr int kDirectTokens = 16;
inline constexpr int kMaxToken = 31;
inline constexpr int kEscapeToken = -32;
inline constexpr int kTokenCount = 64;
inline constexpr std::size_t token_index(int token) { return static_cast<std::size_t>(token + 32); }

// Extra bits of the class with this |token|, and its smallest magnitude.
inline constexpr int extra_bits(int magnitude_token) {
  return magnitude_token < kDirectTokens ? 0 : 3 + (magnitude_token - kDirectTokens) / 2;
}
inline constexpr std::uint32_t first_magnitude(int magnitude_token) {
  return magnitude_token < kDirectTokens ? static_cast<std::uint32_t>(magnitude_token)
                                         : (2u + static_cast<std::uint32_t>(magnitude_token & 1))
                                               << extra_bits(magnitude_token);
}

// By token_index. The escape is always present, so no frequency reaches 2^kProbabilityBits.
using Frequencies = std::array<std::uint16_t, kTokenCount>;

// One slot: bits 0-11 the first slot of its token, 12-23 that one's frequency, 24-31 the token.
using DecodeSlot = std::uint32_t;
using DecodeSlots = std::array<DecodeSlot, kProbabilityScale>;

// state -> state + bias + complement * ((state * reciprocal) >> 32 >> shift), exact below 2^31.
struct alignas(8) EncodeToken {
  std::uint32_t reciprocal;
  std::uint32_t packed;  // bits 0-12 bias, 13-24 complement, 25-28 shift, 29 and 31 as below
};
using EncodeTokens = std::array<EncodeToken, kTokenCount>;
inline constexpr std::uint32_t kTokenHasExtraBits = 1u << 29;  // a class or the escape
inline constexpr std::uint32_t kTokenAbsent = 1u << 31;

// What each token costs, in 1/2048 bit; an absent one pays for its escape instead of extra bits.
// So fine that the narrowest members differ, so coarse that an escape (30 bits) fits 16 bits.
inline constexpr int kCostPerBit = 2048;
using TokenCosts = std::array<std::uint16_t, kTokenCount>;

void build_decode_slots(const Frequencies& frequencies, DecodeSlots& slots);
void build_encode_tokens(const Frequencies& frequencies, EncodeTokens& tokens);
void build_token_costs(const Frequencies& frequencies, TokenCosts& costs);

// A distribution written into a stream, for what no member of the family fits: frequencies on a
// logarithmic scale of four steps an octave (code 0: absent), told by how they differ from those of
// a member, in some 3 to 30 bytes.
struct StoredTable {
  int member = 0;
  bool symmetric = false;
  int last = 0;      // largest |token| present
  int low_bits = 0;  // of the Rice code of changes, 0 to 3
  // In the order of the stream: escape, 0, then 1, 2, ... (symmetric) or 1, -1, 2, -2, ...
  std::array<std::uint8_t, kTokenCount> codes{};

  int size() const { return 2 + (symmetric ? last : 2 * last); }
  int token(int position) const {
    if (position == 0) return kEscapeToken;
    if (symmetric) return position - 1;
    return position % 2 == 0 ? position / 2 : -(position / 2);
  }
};

// The table for these counts (by token index, not beyond +-last), whose sum is total > 0, told from
// this member.
StoredTable fit_stored_table(const std::uint32_t* counts, std::uint64_t total, int last,
                             bool symmetric, int member);
// All but the member.
int stored_table_bits(const StoredTable& table);
void write_stored_table(const StoredTable& table, BitWriter& out);
// The member is there already. False when it is malformed or cut short.
bool read_stored_table(BitReader& in, StoredTable& table);
// Scales the weights to frequencies that sum to 2^kProbabilityBits. False when they cannot.
bool stored_table_frequencies(const StoredTable& table, Frequencies& frequencies);

inline constexpr int kFamilySize = 107;

// But for member 0, which has no place, members have one of five shapes and, within a shape, a
// level: half octaves of the mean magnitude, up to the same for each.
inline constexpr int kShapeCount = 5;
inline constexpr int kTopLevel = 26;
struct MemberPlace {
  int shape;
  int level;
};
MemberPlace place_of_member(int member);
// -1 when there is none.
int member_at(MemberPlace place);

struct Family {
  std::array<Frequencies, kFamilySize> frequencies;
  std::array<TokenCosts, kFamilySize> costs;
  std::array<std::uint32_t, kFamilySize> spread;  // mean |token|, in 1/4096; grows within a shape
  alignas(64) std::array<EncodeTokens, kFamilySize> encode;
  alignas(64) std::array<DecodeSlots, kFamilySize> decode;
};

// The member with the least cost (in 1/kCostPerBit bit, without raw bits) for tokens counted by
// index, of which none beyond +-last occurs. Of few tokens only the members of each shape that
// spread about as they do are tried.
struct MemberChoice {
  int member;
  std::uint64_t cost;
};
MemberChoice choose_member(const std::uint32_t* counts, int last);

// kCostPerBit * log2(value) for value > 0, rounded down; the same on every machine.
std::uint32_t scaled_log2(std::uint32_t value);

// Built on first use (under a millisecond), constant afterwards; safe from any thread.
const Family& family();

}  // namespace firn::encode
