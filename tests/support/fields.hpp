// Arrays to test with, made of integers and powers of two only: the same bits from every compiler
// and machine, which golden streams rely on.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <firn/firn.hpp>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/random.hpp"

namespace firn::test {

template <class T>
inline constexpr Type kTypeOf = sizeof(T) == 4 ? Type::f32 : Type::f64;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
BitsOf<T> bits_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}
template <class T>
T from_bits(BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}

enum class Kind {
  smooth,    // slowly changing along every axis
  noisy,     // the same with noise
  noise,     // nothing but noise
  steps,     // a few levels in regions
  dense,     // far from zero, every bit of the mantissas in use
  constant,  // one value
  wild,      // finite values of all magnitudes
  any_bits,  // any bit patterns: NaN, infinities, subnormal numbers among them
  comb,      // steps of few, oddly spread sizes, which no offline book fits; not in kAllKinds
};
inline constexpr Kind kAllKinds[] = {Kind::smooth, Kind::noisy,    Kind::noise, Kind::steps,
                                     Kind::dense,  Kind::constant, Kind::wild,  Kind::any_bits};

inline const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"smooth",   "noisy", "noise",    "steps", "dense",
                                    "constant", "wild",  "any_bits", "comb"};
  return kNames[static_cast<int>(kind)];
}

// A wave of period 4 * quarter, made of parabolas: values in about [-quarter^2, quarter^2].
inline std::int64_t wave(std::int64_t at, std::int64_t quarter) {
  const std::int64_t phase = at % (4 * quarter);
  const std::int64_t half = phase % (2 * quarter);
  const std::int64_t height = half * (2 * quarter - half);
  return phase < 2 * quarter ? height : -height;
}

template <class T>
T finite_of_any_magnitude(Random& random) {
  for (;;) {
    const T value = from_bits<T>(static_cast<BitsOf<T>>(random.next()));
    if (std::isfinite(value)) return value;
  }
}

template <class T>
std::vector<T> make_field(const Shape& shape, Kind kind, std::uint64_t seed = 1) {
  const auto count = static_cast<std::size_t>(shape.count());
  std::vector<T> values(count);
  Random random(seed);
  std::array<std::int64_t, kMaxRank> at{};
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t smooth = 0;
    for (int k = 0; k < shape.rank; ++k) smooth += wave(at[k] + 3 * k, 9 + 5 * k) * (k + 1);
    const auto noise = static_cast<std::int64_t>(random.below(2001)) - 1000;
    switch (kind) {
      case Kind::smooth:
        values[i] = static_cast<T>(smooth) / 64;
        break;
      case Kind::noisy:
        values[i] = static_cast<T>(smooth * 16 + noise / 50) / 1024;
        break;
      case Kind::noise:
        values[i] = static_cast<T>(noise) / 512;
        break;
      case Kind::steps:
        values[i] = static_cast<T>(smooth / 200) / 4;
        break;
      case Kind::dense:
        values[i] = 100000 + static_cast<T>(smooth) / 64 + static_cast<T>(noise) / 3000;
        break;
      case Kind::constant:
        values[i] = static_cast<T>(seed) + T(0.375);
        break;
      case Kind::wild:
        values[i] = finite_of_any_magnitude<T>(random);
        break;
      case Kind::any_bits:
        values[i] = from_bits<T>(static_cast<BitsOf<T>>(random.next()));
        break;
      case Kind::comb: {
        const T tooth = static_cast<T>(5 * random.below(7));
        values[i] = (i == 0 ? T(0) : values[i - 1]) + (random.below(2) == 0 ? tooth : -tooth);
        break;
      }
    }
    for (int k = shape.rank - 1; k >= 0; --k) {
      if (static_cast<std::uint64_t>(++at[k]) < shape.extents[k]) break;
      at[k] = 0;
    }
  }
  return values;
}

// Every special value: both zeros, infinities, quiet and signalling NaN with payloads, subnormal
// and extreme numbers.
template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> list{T(0),
                      -T(0),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::min(),
                      -Limits::min(),
                      Limits::denorm_min(),
                      -Limits::denorm_min(),
                      Limits::min() / 2,
                      Limits::quiet_NaN()};
  const BitsOf<T> infinity = bits_of(Limits::infinity());
  const BitsOf<T> sign = bits_of(-T(0));
  for (BitsOf<T> payload :
       {BitsOf<T>{1}, BitsOf<T>{0x1234}, static_cast<BitsOf<T>>(~infinity & ~sign)}) {
    list.push_back(from_bits<T>(infinity | payload));
    list.push_back(from_bits<T>(sign | infinity | payload));
  }
  return list;
}

// Overwrites scattered points and a run with special values.
template <class T>
void sprinkle_specials(std::vector<T>& values, std::uint64_t seed, std::size_t points) {
  if (values.empty()) return;
  Random random(seed);
  const std::vector<T> specials = special_values<T>();
  for (std::size_t i = 0; i < points; ++i) {
    values[random.below(values.size())] = specials[random.below(specials.size())];
  }
  const std::size_t begin = random.below(values.size());
  for (std::size_t i = begin; i < values.size() && i < begin + points; ++i) {
    values[i] = std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
ArrayView view_of(const std::vector<T>& values, const Shape& shape) {
  return {values.data(), kTypeOf<T>, shape, {}};
}
template <class T>
MutableArrayView view_of(std::vector<T>& values, const Shape& shape) {
  return {values.data(), kTypeOf<T>, shape, {}};
}
template <class T>
ArrayView const_view_of(const std::vector<T>& values, const Shape& shape) {
  return {values.data(), kTypeOf<T>, shape, {}};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline std::vector<std::uint8_t> bytes_of(const Buffer& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

// FNV-1a, 64 bits.
inline std::uint64_t digest(const void* data, std::size_t size,
                            std::uint64_t hash = 0xCBF29CE484222325u) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return hash;
}

}  // namespace firn::test
