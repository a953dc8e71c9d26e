// Residuals of any size as symbols of a small alphabet. With `range` R, residuals in [-R, R) are
// the symbols [0, 2R); a larger one is the symbol 2R + L of its magnitude class, where m counts
// from the edge of the range (m = r - R, or -r - 1 - R when negative) and L = bit width of m, and
// its sign and low L - 1 bits go to a bit string of their own, least significant bit first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/simd_target.hpp"

namespace firn::encode {

inline constexpr int kMinRangeLog2 = 3;
inline constexpr int kMaxRangeLog2 = 12;
inline constexpr unsigned kMagnitudeClasses = 65;

inline unsigned alphabet_size(int range_log2) { return (2u << range_log2) + kMagnitudeClasses; }

// The bit string of the encoder: grows in memory that holds max_extra_bytes().
class ExtraBitsWriter {
 public:
  explicit ExtraBitsWriter(std::uint8_t* out) : begin_(out), out_(out) {}
  void put(std::uint64_t value, int bits);
  std::size_t finish();  // bytes written

 private:
  std::uint8_t* begin_;
  std::uint8_t* out_;
  std::uint64_t pending_ = 0;
  int count_ = 0;
};

class ExtraBitsReader {
 public:
  explicit ExtraBitsReader(std::span<const std::uint8_t> in) : in_(in) {}
  std::uint64_t get(int bits);
  bool ok() const { return ok_; }

 private:
  std::span<const std::uint8_t> in_;
  std::size_t bit_ = 0;
  bool ok_ = true;
};

template <class Q>
constexpr std::size_t max_extra_bytes(std::size_t count) {
  return count * sizeof(Q) + 16;
}

template <class Q>
struct SymbolKernels {
  void (*to_symbols)(const Q* residuals, std::size_t count, int range_log2, std::uint16_t* symbols,
                     ExtraBitsWriter& extra);
  void (*to_residuals)(const std::uint16_t* symbols, std::size_t count, int range_log2,
                       ExtraBitsReader& extra, Q* residuals);
};
template <class Q>
const SymbolKernels<Q>& symbol_kernels(simd::Target target);

// The definition, one residual at a time.
template <class Q>
std::uint16_t residual_to_symbol(Q residual, int range_log2, ExtraBitsWriter& extra);
template <class Q>
Q symbol_to_residual(std::uint16_t symbol, int range_log2, ExtraBitsReader& extra);

}  // namespace firn::encode
