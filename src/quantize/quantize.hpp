// Values to integers and back: q = nearest(x / step - phase), x' = (q + phase) * step. Codes are
// q - base, where the base is the q of a chunk's first value, so that codes start at 0. The phase
// is 0 unless a chunk's values gather in the middle between two codes.
//
// step = 2 * bound * (1 - 2^-margin): a little less than twice the bound, so that rounding in
// x * (1 / step) and q * step does not push values that lie midway between two codes out of the
// bound. A value that fails all the same is stored exactly.
//
// Where codes have so many bits that a margin would cost something, the step is instead the largest
// multiple of a grain, a power of two, that is at most twice the bound. The grain is such that the
// values' type holds all its multiples up to the largest value: then q * step does not round, and
// neither does x - q * step, which tells where x * (1 / step) was rounded to the wrong q.
//
// The test |x' - x| <= bound is exact although it is done in the value's own type, for bound and
// step are exact in it: for |q| >= 2 the subtraction does not round (Sterbenz), and for q = 0
// without a phase neither. Below that, and without a grain, all that rounds is so little of a step
// that errors stay below the bound by most of the margin. With a grain there is no phase; for |q| =
// 1 the subtraction may round only when |x| < x'/2, and there x * (1 / step) is at most 1/2, which
// is rounded to 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/simd_target.hpp"
#include "container/format.hpp"

namespace firn::quantize {

// Codes are clamped to +-2^30 (narrow) or +-2^50 (wide): integers up to there convert exactly or
// fail the bound test.
inline constexpr double kNarrowLimit = 1073741824.0;
inline constexpr double kWideLimit = 1125899906842624.0;

// What codes stand for: (q + phase) * step.
template <class T>
struct Levels {
  T step;
  T phase = 0;  // below 1
};

template <class T>
struct Scale {
  T bound;  // > 0
  T step;
  T phase = 0;     // a few bits, so that adding it to most codes does not round; 0 with a grain
  T inverse_step;  // 1 / step; infinite when step is subnormal, and then no value passes
  T grain = 0;     // of which steps are multiples; 0: of none
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  // bound must be exact in T. `finer`, below 256: by how many 256ths the step is smaller still.
  Scale(T absolute_bound, int margin, unsigned finer = 0) : bound(absolute_bound) {
    const T share = static_cast<T>(256 - finer) / 256;
    if (margin < format::kGrid) {
      set_step(2 * bound * (1 - 1 / static_cast<T>(1 << margin)) * share);
      return;
    }
    // Steps are normal numbers; what a forged header may ask for is not, and has no grain.
    constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1;
    const auto power = std::bit_cast<Bits>(2 * bound) >> kMantissaBits << kMantissaBits;
    grain = std::bit_cast<T>(power) / static_cast<T>(std::uint64_t{1} << (margin - format::kGrid));
    set_step(2 * bound * share);
  }

  // The largest step that is not larger; the grain when there is none.
  void set_step(T largest) {
    step = largest;
    if (const T grains = largest / grain; grain > 0 && grains < T(0x1p23)) {
      step = grains < 1 ? grain : static_cast<T>(static_cast<std::int32_t>(grains)) * grain;
    }
    inverse_step = 1 / step;
  }
  Levels<T> levels() const { return {step, phase}; }
  // The next smaller number.
  T below_bound() const { return std::bit_cast<T>(std::bit_cast<Bits>(bound) - 1); }
  // A difference from a value that came out as the bound may have been rounded down to it, unless
  // the value is as large as this, more than two bounds: then what is decoded is more than one, and
  // the difference exact. Without a grain steps are so small that none comes out so.
  T tie_floor() const {
    return grain > 0 ? std::bit_cast<T>(std::bit_cast<Bits>(2 * bound) + 1)
                     : std::numeric_limits<T>::infinity();
  }
  // Whether a value is within the bound when what is decoded differs by `error`, rounded.
  bool holds(T value, T error) const {
    return error < bound || (error == bound && std::fabs(value) >= tie_floor());
  }
};

template <class T>
struct RowOutcome {
  bool within;  // every value passed the bound test; otherwise `flag` tells which
  T max_error;  // largest |x' - x|; meaningful only when within
};

template <class T, class Q>
struct Kernels {
  RowOutcome<T> (*quantize)(const T* values, std::size_t count, Scale<T> scale, Q base, Q* codes);
  // For rows in which not all is well: sets the bit of each value that must be stored exactly, the
  // fill value (NaN: none) among them, and returns the largest error of the others. Writes
  // ceil(count / 64) words.
  T (*flag)(const T* values, std::size_t count, Scale<T> scale, T fill, std::uint64_t* bits);
  void (*dequantize)(const Q* codes, std::size_t count, Levels<T> levels, Q base, T* values);
  // The same past the caches, for output that is too large for them to be of use.
  void (*dequantize_streaming)(const Q* codes, std::size_t count, Levels<T> levels, Q base,
                               T* values);
};

// A value that some of a row's have, and which: bit first + i of `bits` is that of value i.
template <class T>
struct Masked {
  const std::uint64_t* bits;
  std::size_t first;
  T value;
};

// Codes of 16 bits, for chunks in which codes stay close to the base: half the memory and half the
// instructions of what follows. As those of Kernels, except that quantize is not within either when
// a code is beyond kShortLimit (to which codes beyond 16 bits are saturated, or further). The base
// is at most 2^29 from 0: kernels may tell values that are not finite by codes 2^30 from there.
inline constexpr int kShortLimit = 32766;
template <class T>
struct ShortKernels {
  RowOutcome<T> (*quantize)(const T* values, std::size_t count, Scale<T> scale, std::int32_t base,
                            std::int16_t* codes);
  // The same codes without a look at errors, so that values which are not within their bound do not
  // show, unless they are not finite: for estimates, at half to a third of the work. No grain.
  RowOutcome<T> (*quantize_roughly)(const T* values, std::size_t count, Scale<T> scale,
                                    std::int32_t base, std::int16_t* codes);
  // As `quantize`, for a row in which each value that is `fill` or not finite counts as `instead`;
  // sets the bit of each of these, in ceil(count / 64) words, and tells whether all of them are
  // `fill`.
  RowOutcome<T> (*quantize_masked)(const T* values, std::size_t count, Scale<T> scale,
                                   std::int32_t base, T fill, T instead, std::int16_t* codes,
                                   std::uint64_t* bits, bool* all_fill);
  void (*dequantize)(const std::int16_t* codes, std::size_t count, Levels<T> levels,
                     std::int32_t base, T* values);
  void (*dequantize_streaming)(const std::int16_t* codes, std::size_t count, Levels<T> levels,
                               std::int32_t base, T* values);
  // `streaming`: past the caches, if values are aligned to vectors.
  void (*dequantize_masked)(const std::int16_t* codes, std::size_t count, Levels<T> levels,
                            std::int32_t base, const Masked<T>& masked, bool streaming, T* values);
};

template <class T>
struct RangeKernels {
  // Widens [low, high] by the row's values that are finite and not `fill` (NaN: no fill value).
  void (*widen)(const T* values, std::size_t count, T fill, T* low, T* high);
  // Copies the row with `instead` for each value that is `fill` or not finite, and sets the bit of
  // each. Writes ceil(count / 64) words; returns whether all of these are `fill`.
  bool (*unmask)(const T* values, std::size_t count, T fill, T instead, T* out,
                 std::uint64_t* bits);
};

template <class T, class Q>
const Kernels<T, Q>& kernels(simd::Target target);
template <class T>
const ShortKernels<T>& short_kernels(simd::Target target);
template <class T>
const RangeKernels<T>& range_kernels(simd::Target target);

// The definition of one value's q. False: the value must be stored exactly.
template <class T, class Q>
bool quantize_value(T value, const Scale<T>& scale, Q* q, T* error);
template <class T, class Q>
T dequantize_value(Q q, const Levels<T>& levels) {
  return (static_cast<T>(q) + levels.phase) * levels.step;
}

// True when the value is finite but its code is beyond the narrow limit.
template <class T>
bool needs_wide(T value, const Scale<T>& scale);

}  // namespace firn::quantize
