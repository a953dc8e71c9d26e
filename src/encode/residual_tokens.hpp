// What a residual becomes in a context with a shift: a token, and bits that go raw.
// docs/format.md, "Tokens".
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "encode/distributions.hpp"

namespace firn::encode {

template <class Q>
using Unsigned = std::make_unsigned_t<Q>;

// A corrupt payload may name any shift below 64 whatever the type, so this is 64 bits wide.
inline std::uint64_t half_step(int shift) { return (std::uint64_t{1} << shift) >> 1; }

// The residual in units of 2^shift, rounded to nearest; its low bits go raw.
template <class Q>
Q high_part(Q residual, int shift) {
  return static_cast<Q>(static_cast<Unsigned<Q>>(residual) + half_step(shift)) >> shift;
}

template <class Q>
Unsigned<Q> magnitude(Q value) {
  const auto bits = static_cast<Unsigned<Q>>(value);
  return value < 0 ? Unsigned<Q>{0} - bits : bits;
}

template <class Q>
int token_of(Q residual, int shift) {
  const Q high = high_part(residual, shift);
  const Unsigned<Q> size = magnitude(high);
  if (size > 4095) return kEscapeToken;
  int token = static_cast<int>(size);
  if (token >= kDirectTokens) {
    const int exponent = static_cast<int>(std::bit_width(size)) - 1;
    token = kDirectTokens + 2 * (exponent - 4) + static_cast<int>(size >> (exponent - 1) & 1);
  }
  return high < 0 ? -token : token;
}

}  // namespace firn::encode
