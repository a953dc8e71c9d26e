// A small generator with the same numbers on every machine (SplitMix64), so that every test can be
// repeated.
#pragma once

#include <cstdint>

namespace firn::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  // In [0, limit); limit > 0.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  // In [-limit, limit].
  std::int64_t around(std::int64_t limit) {
    return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(2 * limit + 1))) - limit;
  }
  // In [0, 1), a multiple of 2^-24.
  double unit() { return static_cast<double>(next() >> 40) / 16777216.0; }

 private:
  std::uint64_t state_;
};

}  // namespace firn::test
