// Lengths of prefix codes from symbol counts: Huffman's, and where a limit binds a code within it.
// Beside what the library uses stand the best code (package-merge) and what CEAZ does in hardware:
// symbols taken from the middle of the alphabet outward instead of sorted.
// bench/construction.cpp compares them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/scratch.hpp"

namespace firn::encode {

inline constexpr int kLongestCodeBits = 32;  // of any construction

enum class SymbolOrder : std::uint8_t {
  sorted,   // by count, then by symbol
  outward,  // CEAZ's algorithm 1: pairs left and right of the middle, which holds the most
};
enum class LengthLimit : std::uint8_t {
  raised,    // Huffman's code for counts of at least so many, that many raised until it fits
  exact,     // the least cost of all codes within the limit, if the symbols are sorted
  repaired,  // Huffman's lengths cut at the limit, then others lengthened to make room
};

struct Construction {
  SymbolOrder order = SymbolOrder::sorted;
  LengthLimit limit = LengthLimit::raised;
};

// A complete prefix code for the symbols whose count is not 0, of at most max_bits, which must be
// enough for them with two bits to spare (and at most kLongestCodeBits); the others get length 0.
// One symbol alone gets length 1. The lengths of the default construction are part of the format:
// docs/format.md, "Lengths from weights".
void build_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                        Construction construction, std::uint8_t* lengths,
                        ScratchArray<std::uint64_t>& scratch);

}  // namespace firn::encode
