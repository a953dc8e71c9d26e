// Scales and values that are hard to quantise.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "container/format.hpp"
#include "quantize/quantize.hpp"
#include "support/fields.hpp"

namespace firn::quantize {

using test::Random;

template <class T>
std::vector<Scale<T>> scales() {
  std::vector<Scale<T>> list;
  Random random(7);
  for (int margin = format::kMinMargin; margin <= format::kMaxMargin; ++margin) {
    for (const double bound : {1.0, 0.5, 0.25, 1024.0, 1e-3, 1e-6, 3.7e5, 0x1p-20, 0x1p20}) {
      list.emplace_back(static_cast<T>(bound), margin);
    }
    list.emplace_back(static_cast<T>(1 + random.unit()), margin);
    list.emplace_back(std::numeric_limits<T>::min() * 8, margin);
    list.emplace_back(std::numeric_limits<T>::max() / 8, margin);
  }
  return list;
}

// Those too with a phase, and those whose steps have a grain.
template <class T>
std::vector<Scale<T>> all_scales() {
  std::vector<Scale<T>> list = scales<T>();
  Random random(8);
  for (const Scale<T>& plain : scales<T>()) {
    Scale<T> phased = plain;
    phased.phase =
        static_cast<T>(list.size() % 2 == 0 ? 64 * (1 + random.below(3)) : 1 + random.below(255)) /
        256;
    list.push_back(phased);
  }
  for (const int grain_bits : {0, 1, 3, 8, 13}) {
    const int margin = format::kGrid + grain_bits;
    for (const double bound : {1.0, 1e-3, 3.7e5, 0x1.8p-20}) {
      list.emplace_back(static_cast<T>(bound), margin, grain_bits == 3 ? 200 : 0);
    }
    list.emplace_back(static_cast<T>(1 + random.unit()), margin,
                      static_cast<unsigned>(random.below(200)));
    list.emplace_back(std::numeric_limits<T>::min() * 8, margin);
    list.emplace_back(std::numeric_limits<T>::max() / 8, margin);
  }
  return list;
}

// Values midway between two codes, a few units in the last place around them, around the codes
// themselves, around the limits of the codes, and special ones.
template <class T>
std::vector<T> adversarial_values(const Scale<T>& scale, std::uint64_t seed) {
  std::vector<T> list = test::special_values<T>();
  Random random(seed);
  std::vector<double> codes{0,
                            1,
                            2,
                            3,
                            4,
                            5,
                            7,
                            8,
                            100,
                            1023,
                            1024,
                            65535,
                            65536,
                            1 << 20,
                            4194303,
                            4194304,
                            4194305,
                            8388607,
                            8388608,
                            16777216,
                            kNarrowLimit - 1,
                            kNarrowLimit,
                            kNarrowLimit + 1,
                            kWideLimit - 1,
                            kWideLimit,
                            kWideLimit * 2};
  for (int i = 0; i < 24; ++i) codes.push_back(static_cast<double>(random.below(1u << (i + 1))));
  for (const double code : codes) {
    for (const double part : {0.0, 0.25, 0.499, 0.5, 0.501, 0.75}) {
      T value = static_cast<T>((code + part) * static_cast<double>(scale.step));
      T up = value;
      for (int i = 0; i < 3; ++i) {
        list.insert(list.end(), {value, -value, up, -up});
        value = std::nextafter(value, T(0));
        up = std::nextafter(up, std::numeric_limits<T>::infinity());
      }
    }
  }
  for (int i = 0; i < 64; ++i) list.push_back(test::finite_of_any_magnitude<T>(random));
  return list;
}

}  // namespace firn::quantize
