// The codes one value and one bit at a time, straight from the table.
#include <cmath>

#include "encode/fre.hpp"

namespace firn::encode {

namespace {

int rank_of(const FreCodeWords& words, int difference) {
  return words.rank[static_cast<std::size_t>(difference)];
}

int difference_of(const FreCodeWords& words, int rank) {
  int difference = 0;
  while (rank_of(words, difference) != rank) ++difference;
  return difference;
}

}  // namespace

namespace reference {

template <class T>
FreCutOutcome cut(const T* values, std::size_t count, FreCut cut,
                  typename FreLayout<T>::Bits* coded) {
  bool regular = true;
  T largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!fre_cut_value(values[i], cut, &coded[i])) regular = false;
    const T error = std::fabs(std::bit_cast<T>(coded[i]) - values[i]) / std::fabs(values[i]);
    if (error > largest) largest = error;
  }
  return {regular, static_cast<double>(largest) * (1 + 0x1p-20)};
}

template <class T>
void encode(const typename FreLayout<T>::Bits* coded, std::size_t count, FreCut cut,
            const FreCodeWords& words, FreWriter& writer) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  const auto put = [&](Bits number, int bits) {
    for (int i = 0; i < bits; ++i) {
      writer.buffer |= static_cast<std::uint64_t>(number >> i & 1) << writer.filled;
      if (++writer.filled == 8) {
        *writer.next++ = static_cast<std::uint8_t>(writer.buffer);
        writer.buffer = 0;
        writer.filled = 0;
      }
    }
  };
  const int dropped = L::kMantissa - cut.mantissa_bits;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits value = coded[i], before = coded[static_cast<std::ptrdiff_t>(i) - 1];
    if (value == before) {
      put(0b00, 2);
      continue;
    }
    const Bits sign = value >> L::kSignShift;
    const Bits mantissa = (value & L::kMantissaMask) >> dropped;
    const int exponent = static_cast<int>(value >> L::kMantissa & L::kExponentMask);
    const int difference = exponent - static_cast<int>(before >> L::kMantissa & L::kExponentMask);
    if (exponent == 0) {
      put(0b010, 3);
      put(sign, 1);
      put(value & L::kMantissaMask, L::kMantissa);
    } else if (std::abs(difference) < kFreDifferences) {
      put(1, 1);
      put(sign, 1);
      put(mantissa, cut.mantissa_bits);
      const auto rank = static_cast<std::size_t>(rank_of(words, std::abs(difference)));
      put(kFreCodeBits[rank], kFreCodeLengths[rank]);
      if (difference != 0) put(difference < 0, 1);
    } else {
      put(0b110, 3);  // 011, first bit lowest
      put(sign, 1);
      put(static_cast<Bits>(exponent), L::kExponent);
      put(mantissa, cut.mantissa_bits);
    }
  }
}

template <class T>
bool decode(std::span<const std::uint8_t> bytes, std::span<const std::size_t> sizes,
            std::size_t count, FreCut cut, const FreCodeWords& words, T* values) {
  using L = FreLayout<T>;
  using Bits = typename L::Bits;
  const FreParts parts(count);
  const int dropped = L::kMantissa - cut.mantissa_bits;
  std::size_t position = 0, end = 0;
  bool good = true;
  const auto take = [&](int bits) {
    Bits number = 0;
    for (int i = 0; i < bits; ++i, ++position) {
      good = good && position < end;
      if (good) number |= static_cast<Bits>(bytes[position / 8] >> position % 8 & 1) << i;
    }
    return number;
  };
  for (std::size_t j = 0; j < parts.streams; ++j) {
    position = end;
    end += sizes[j] * 8;
    Bits sign = 0, exponent = 0, mantissa = 0;
    for (std::size_t i = parts.begin(j); good && i < parts.begin(j + 1); ++i) {
      if (take(1) == 1) {
        sign = take(1);
        mantissa = take(cut.mantissa_bits) << dropped;
        int rank = 0;
        while (rank < 6 && take(1) == 1) ++rank;
        if (rank == 6) {
          rank += 2 * static_cast<int>(take(1));
          rank += static_cast<int>(take(1));
        }
        const int difference = difference_of(words, rank);
        const bool negative = difference != 0 && take(1) == 1;
        const Bits step = static_cast<Bits>(difference);
        exponent = (negative ? exponent - step : exponent + step) & L::kExponentMask;
      } else if (take(1) == 1) {
        const bool normal = take(1) == 1;
        sign = take(1);
        exponent = normal ? take(L::kExponent) : 0;
        mantissa = normal ? take(cut.mantissa_bits) << dropped : take(L::kMantissa);
      }
      values[i] = std::bit_cast<T>(sign << L::kSignShift | exponent << L::kMantissa | mantissa);
    }
    // Padding: fewer than 8 bits, all 0.
    if (!good || end - position >= 8) return false;
    if (take(static_cast<int>(end - position)) != 0) return false;
  }
  return true;
}

template <class T>
const FreKernels<T>& fre_kernels() {
  static constexpr FreKernels<T> table{cut<T>, encode<T>, decode<T>};
  return table;
}
template const FreKernels<float>& fre_kernels();
template const FreKernels<double>& fre_kernels();

}  // namespace reference
}  // namespace firn::encode
