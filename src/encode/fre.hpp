// Prefix codes on exponent differences: the fixed-relative-error scheme of AlSaleh et al. (table 1
// of "Accelerating memory and I/O intensive HPC applications using hardware compression"). A value
// keeps its sign, its exponent and the first bits of its mantissa; what is coded depends on the
// value before:
//
//   00                                       the same coded value again
//   1   sign  mantissa  difference (sign)    exponents at most 9 apart
//   011 sign  exponent  mantissa             further apart
//   010 sign  whole mantissa                 denormal: kept as it is
//
// The code words of the differences 0 to 9 may be exchanged. A chunk is kFreStreams bit strings,
// one for each of as many consecutive parts, so that decoding is not serial. Bits: docs/format.md,
// "fre".
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/simd_target.hpp"

namespace firn::encode {

inline constexpr int kFreStreams = 8;
// Fewer values than this are one bit string: eight would mostly be padding and sizes.
inline constexpr std::size_t kFreOneStreamBelow = 4096;
inline constexpr int kFreDifferences = 10;  // 0 to 9 have code words

template <class T>
struct FreLayout {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kExponent = sizeof(T) == 4 ? 8 : 11;
  static constexpr int kSignShift = kMantissa + kExponent;
  static constexpr Bits kExponentMask = (Bits{1} << kExponent) - 1;
  static constexpr Bits kMantissaMask = (Bits{1} << kMantissa) - 1;
  // More would not fit the word of a lane; a bound that needs them is not one for this scheme.
  static constexpr int kMaxMantissaBits = sizeof(T) == 4 ? 20 : 45;
  static constexpr int kMaxCodeBits = 4 + kExponent + kMaxMantissaBits;
};

// The first bits of mantissas that are kept, by cutting the others off or by rounding to nearest
// (halves away from zero).
struct FreCut {
  int mantissa_bits = 0;
  bool rounded = false;
};

// The mantissa bits that hold the relative bound (above 0); more than kMaxMantissaBits: no use.
int fre_mantissa_bits(double bound, bool rounded);

// The code word of each absolute exponent difference.
struct FreCodeWords {
  // rank[d]: which of the ten code words, shortest first, stands for the difference d.
  std::array<std::uint8_t, kFreDifferences> rank{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  bool operator==(const FreCodeWords&) const = default;
};

// By rank, first bit lowest; the sign of a difference that is not 0 follows.
inline constexpr std::array<std::uint8_t, kFreDifferences> kFreCodeBits{
    0b0, 0b01, 0b011, 0b0111, 0b01111, 0b011111, 0b00111111, 0b10111111, 0b01111111, 0b11111111};
inline constexpr std::array<std::uint8_t, kFreDifferences> kFreCodeLengths{1, 2, 3, 4, 5,
                                                                           6, 8, 8, 8, 8};

struct FreCutOutcome {
  bool regular;      // no value is NaN, infinite, or becomes infinite by rounding
  double max_error;  // largest |cut - value| / |value|, rounded up; meaningful only when regular
};

// Where bits go: whole bytes are written, up to 7 bits wait. 8 bytes behind `next` are writable.
struct FreWriter {
  std::uint8_t* next;
  std::uint64_t buffer = 0;
  int filled = 0;

  std::uint8_t* finish() {
    if (filled != 0) *next++ = static_cast<std::uint8_t>(buffer);
    return next;
  }
};

template <class T>
struct FreKernels {
  using Bits = typename FreLayout<T>::Bits;
  // coded[i]: the bits of values[i] with the mantissa cut; denormals as they are.
  FreCutOutcome (*cut)(const T* values, std::size_t count, FreCut cut, Bits* coded);
  // Appends the code words of coded[0, count); coded[-1] is the value before.
  void (*encode)(const Bits* coded, std::size_t count, FreCut cut, const FreCodeWords& words,
                 FreWriter& writer);
  // Streams of `sizes` bytes that follow each other in `bytes`, to values[0, count). False when
  // they do not hold exactly that.
  bool (*decode)(std::span<const std::uint8_t> bytes, std::span<const std::size_t> sizes,
                 std::size_t count, FreCut cut, const FreCodeWords& words, T* values);
};
template <class T>
const FreKernels<T>& fre_kernels(simd::Target target);

// What one value becomes; false when it must be kept exactly.
template <class T>
bool fre_cut_value(T value, FreCut cut, typename FreLayout<T>::Bits* coded) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  const Bits bits = std::bit_cast<Bits>(value);
  *coded = bits;
  const Bits exponent = bits >> L::kMantissa & L::kExponentMask;
  if (exponent == L::kExponentMask) return false;
  if (exponent == 0) return true;
  const int dropped = L::kMantissa - cut.mantissa_bits;
  const Bits half = cut.rounded ? Bits{1} << (dropped - 1) : 0;
  *coded = (bits + half) >> dropped << dropped;
  return (*coded >> L::kMantissa & L::kExponentMask) != L::kExponentMask;
}

// One stream, plainly, from `begin` bits into `bytes` on, until `count` values are there or the
// stream of `end` bits is used up. The vector code leaves ends to it.
template <class T>
struct FreReader {
  std::span<const std::uint8_t> bytes;  // all streams
  std::size_t position = 0;             // in bits
  std::size_t end = 0;
  typename FreLayout<T>::Bits previous = 0;

  bool decode(std::size_t count, FreCut cut, const FreCodeWords& words, T* values);
  // Everything was read but the padding, which is 0.
  bool finished() const;
};

// Streams and the part of the values that each holds.
struct FreParts {
  std::size_t streams;
  std::size_t length;  // of each but the last
  std::size_t count;

  explicit FreParts(std::size_t values)
      : streams(values < kFreOneStreamBelow ? 1 : kFreStreams),
        length((values + streams - 1) / streams),
        count(values) {}
  std::size_t begin(std::size_t j) const { return j * length < count ? j * length : count; }
  std::size_t size(std::size_t j) const { return begin(j + 1) - begin(j); }
};

}  // namespace firn::encode
