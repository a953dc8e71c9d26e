// Lengths of prefix codes from symbol counts: Huffman's, and where a limit binds the best code
// within it (package-merge). Beside them what CEAZ does in hardware: symbols taken from the middle
// of the alphabet outward instead of sorted, and lengths beyond the limit repaired.
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
  exact,     // the least cost of all codes within the limit, if the symbols are sorted
  repaired,  // Huffman's lengths cut at the limit, then others lengthened to make room
};

struct Construction {
  SymbolOrder order = SymbolOrder::sorted;
  LengthLimit limit = LengthLimit::exact;
};

// A complete prefix code for the symbols whose count is not 0, of at most max_bits, which must be
// enough for them (and at most kLongestCodeBits); the others get length 0. One symbol alone gets
// length 1. Where max_bits does not bind these are Huffman's lengths, and part of the format:
// docs/format.md, "Lengths from weights".
void build_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                        Construction construction, std::uint8_t* lengths,
                        ScratchArray<std::uint64_t>& scratch);

}  // namespace firn::encode
