// The static family of two-sided distributions over residual tokens, and the tables that the rANS
// coder derives from any distribution. Everything here is part of the format: docs/format.md,
// "Context rANS section". Only IEEE + - * / and square roots, so every machine builds the same.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

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

// What an escape in place of this token writes beyond its own frequency and the token's extra bits:
// 6 bits of length, a sign, and the bits of magnitude + 1 below its first.
inline constexpr int escape_bits(int magnitude_token) {
  return 6 + static_cast<int>(std::bit_width(first_magnitude(magnitude_token) + 1)) -
         extra_bits(magnitude_token);
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

// kCostPerBit * log2(value) for value > 0, rounded down. This and the next are the same on every
// machine.
std::uint32_t scaled_log2(std::uint32_t value);

// log2 of a positive number, to 2e-4.
inline double rough_log2(std::uint32_t value) {
  const int exponent = static_cast<int>(std::bit_width(value)) - 1;
  const double mantissa = static_cast<double>(value) / static_cast<double>(1u << exponent);
  // ln m = 2 artanh((m - 1) / (m + 1))
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
  return exponent + 2.885390081777927 * s * (1 + square * (1.0 / 3 + square * 0.2));
}

// Built on first use (under a millisecond), constant afterwards; safe from any thread.
const Family& family();

}  // namespace firn::encode
