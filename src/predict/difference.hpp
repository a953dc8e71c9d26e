// Differences along the axes of a chunk, as differences at linear lags. A chunk of n codes lies in
// one array, row after row; the axis whose neighbours are `lag` apart contributes the operator
// (1 - shift by lag). One of each axis is Lorenzo's predictor; an axis may also be left out or
// taken twice. Rows continue from the end of the row before, and what lies before the chunk is 0.
//
//   residual[i] = sum over subsets S of the lags of (-1)^|S| code[i - sum(S)]
//
// All arithmetic wraps, so the inverse is exact for every input. The cost is 2^lags loads a value
// forward, and half of that plus one scan for each lag of 1 backward.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/simd_target.hpp"

namespace firn::predict {

inline constexpr int kMaxLags = 4;
inline constexpr int kLineCosts = 3;  // no lag of 1, one, two

// A multiset of lags, ascending.
struct Lags {
  int count = 0;
  std::array<std::size_t, kMaxLags> lag{};

  void add(std::size_t value) {
    int i = count++;
    for (; i > 0 && lag[i - 1] > value; --i) lag[i] = lag[i - 1];
    lag[i] = value;
  }
  // How far back a residual reaches: codes[-history() .. -1] must exist (zeros before a chunk).
  std::size_t history() const {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += lag[i];
    return sum;
  }
};

// Running sums of the lags of 1 between the pieces of a chunk; zero at its start.
template <class Q>
struct Carry {
  std::array<Q, kMaxLags> sum{};
};

template <class Q>
struct Kernels {
  // residuals[0, count) of codes[0, count), which have history before them.
  void (*difference)(const Q* codes, std::size_t count, const Lags& lags, Q* residuals);
  // The inverse: codes[0, count) from residuals[0, count) and the codes before them. May be
  // called piece by piece with the same carry. residuals may be overwritten.
  void (*reconstruct)(Q* residuals, std::size_t count, const Lags& lags, Carry<Q>& carry, Q* codes);
  // Estimated bits (in 1/128) of residuals: the sum of log2(2 |r| + 1), linear between powers of
  // two, by integer arithmetic on a correctly rounded conversion: the same everywhere. At most
  // 2^17.
  std::uint64_t (*cost)(const Q* residuals, std::size_t count);
  // Adds to costs[k] that of the residuals of k lags of 1, for each k below kLineCosts.
  void (*line_costs)(const Q* codes, std::size_t count, std::uint64_t* costs);
  // Gives codes whose bit is set the value that makes their residual 0, in order.
  void (*fill)(Q* codes, std::size_t count, const Lags& lags, const std::uint64_t* bits);
};

template <class Q>
const Kernels<Q>& kernels(simd::Target target);

// Estimated bits of one residual, in 1/128: what Kernels::cost sums.
inline std::uint32_t residual_cost(float residual) {
  // A float's exponent and the top 7 bits of its mantissa are log2 in units of 1/128.
  return (std::bit_cast<std::uint32_t>(2 * (residual < 0 ? -residual : residual) + 1) >> 16) -
         (127u << 7);
}

// The residual's prediction at codes[0]: what its code would be for a residual of 0.
template <class Q>
Q predict_one(const Q* codes, const Lags& lags);

}  // namespace firn::predict
