// log2 and exp2 by basic operations only, so that what they decide is the same on every machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace firn {

// Of a positive normal number, to about 1e-15.
inline double log2_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | std::uint64_t{1023} << 52);
  if (mantissa > 1.4142135623730951) {
    mantissa /= 2;
    ++exponent;
  }
  // ln m = 2 atanh((m - 1) / (m + 1))
  const double ratio = (mantissa - 1) / (mantissa + 1);
  const double square = ratio * ratio;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent + 2 * ratio * sum * 1.4426950408889634;
}

// For -1022 to below 1024.
inline double exp2_of(double value) {
  const double whole = std::floor(value);
  const double fraction = (value - whole) * 0.6931471805599453;
  double sum = 1;
  for (int k = 18; k >= 1; --k) sum = 1 + sum * fraction / k;
  return sum *
         std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<int>(whole) + 1023) << 52);
}

}  // namespace firn
