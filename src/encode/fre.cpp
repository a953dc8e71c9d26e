#include "encode/fre.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace firn::encode {

int fre_mantissa_bits(double bound, bool rounded) {
  // Cutting loses less than 2^-bits of a value, rounding at most half of that.
  double error = rounded ? 0.5 : 1.0;
  int bits = 0;
  while (error > bound && bits < 64) error /= 2, ++bits;
  return bits;
}

template <class T>
bool FreReader<T>::decode(std::size_t count, FreCut cut, const FreCodeWords& words, T* values) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  std::array<std::uint8_t, kFreDifferences> difference_of{};
  for (std::size_t d = 0; d < kFreDifferences; ++d) {
    difference_of[words.rank[d]] = static_cast<std::uint8_t>(d);
  }
  const int kept = cut.mantissa_bits, dropped = L::kMantissa - kept;
  const std::uint64_t mantissa_mask = (std::uint64_t{1} << kept) - 1;
  // At least 64 bits from `position` on, zeros behind the end of all streams.
  const auto window = [&] {
    const std::size_t byte = position / 8;
    std::uint8_t copy[9] = {};
    const std::uint8_t* from = bytes.data() + byte;
    if (byte + 9 > bytes.size()) {
      std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(byte, bytes.size())),
                bytes.end(), copy);
      from = copy;
    }
    const auto shift = position % 8;
    return load_le<std::uint64_t>(from) >> shift | std::uint64_t{from[8]} << 1 << (63 - shift);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = window();
    if ((word & 1) != 0) {
      const auto sign = static_cast<Bits>(word >> 1 & 1);
      const auto mantissa = static_cast<Bits>(word >> 2 & mantissa_mask);
      const std::uint64_t code = word >> (2 + kept);
      int rank = std::countr_one(code & 0x3F), bits = rank + 1;
      if (rank == 6) {
        rank += static_cast<int>(2 * (code >> 6 & 1) + (code >> 7 & 1));
        bits = 8;
      }
      const Bits step = difference_of[static_cast<std::size_t>(rank)];
      const bool negative = step != 0 && (code >> bits & 1) != 0;
      const Bits before = previous >> L::kMantissa;
      const Bits exponent = (negative ? before - step : before + step) & L::kExponentMask;
      previous = sign << L::kSignShift | exponent << L::kMantissa | mantissa << dropped;
      position += static_cast<std::size_t>(2 + kept + bits + (step != 0 ? 1 : 0));
    } else if ((word & 2) == 0) {
      position += 2;
    } else {
      const auto sign = static_cast<Bits>(word >> 3 & 1) << L::kSignShift;
      const auto rest = word >> 4;
      if ((word & 4) == 0) {
        previous = sign | (static_cast<Bits>(rest) & L::kMantissaMask);
        position += 4 + L::kMantissa;
      } else {
        const Bits exponent = static_cast<Bits>(rest) & L::kExponentMask;
        const auto mantissa = static_cast<Bits>(rest >> L::kExponent & mantissa_mask);
        previous = sign | exponent << L::kMantissa | mantissa << dropped;
        position += static_cast<std::size_t>(4 + L::kExponent + kept);
      }
    }
    values[i] = std::bit_cast<T>(previous);
    if (position > end) return false;
  }
  return true;
}
template bool FreReader<float>::decode(std::size_t, FreCut, const FreCodeWords&, float*);
template bool FreReader<double>::decode(std::size_t, FreCut, const FreCodeWords&, double*);

template <class T>
bool FreReader<T>::finished() const {
  if (position > end || end - position >= 8) return false;
  return position == end || bytes[position / 8] >> position % 8 == 0;
}
template bool FreReader<float>::finished() const;
template bool FreReader<double>::finished() const;

}  // namespace firn::encode
