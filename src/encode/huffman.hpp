// Canonical Huffman codes for 16-bit symbols, of at most 15 bits, written least significant bit
// first in four streams (quarters of the symbols) so that decoding is four short dependency
// chains instead of one. Layout: docs/format.md, "Huffman section".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/scratch.hpp"
#include "base/simd_target.hpp"
#include "encode/code_lengths.hpp"

namespace firn::encode {

inline constexpr int kMaxCodeBits = 15;
inline constexpr int kHuffmanStreams = 4;
inline constexpr int kDecodeBits = 11;  // first table lookup; its 16 KiB fit the L1 cache
inline constexpr std::size_t kMaxHuffmanSymbols = 1 << 14;

// Code lengths (0: symbol absent) of at most kMaxCodeBits that minimise the sum of count * length.
// One present symbol gets length 1.
void build_code_lengths(std::span<const std::uint32_t> counts, std::uint8_t* lengths,
                        ScratchArray<std::uint64_t>& scratch);

// Lengths as nibbles, runs of absent symbols in three of them. The bytes written are at most
// 2 * lengths.size() + 2.
void write_code_lengths(std::span<const std::uint8_t> lengths, ByteWriter& out);
std::size_t code_lengths_bytes(std::span<const std::uint8_t> lengths);
// False when they are not `lengths.size()` valid lengths of a complete (or one-symbol) code.
bool read_code_lengths(ByteReader& in, std::span<std::uint8_t> lengths);

// For the encoder: code in the low bits (already reversed), length from bit 16.
using EncodeTable = std::uint32_t;
void build_encode_table(std::span<const std::uint8_t> lengths, EncodeTable* table);

// For the decoder: one lookup of kDecodeBits gives up to three symbols.
//   bits 0-15, 16-31, 32-47: symbols; bits 48-55: bits they take; bits 56-63: how many.
// A count of 0 marks what longer codes begin with, bits 0-31: where in `longer` those are, by their
// other bits; 0, where no code begins so, is where those are 0. When many codes are so long, all
// are in `longer`, by kMaxCodeBits.
struct DecodeTable {
  std::array<std::uint64_t, 1 << kDecodeBits> entries;
  // bits 0-15: symbol; bits 16-31: bits that it takes, those of the first lookup among them, or 0.
  static constexpr std::uint32_t kOthers = 1 << (kMaxCodeBits - kDecodeBits);
  std::array<std::uint32_t, kOthers + (1 << kMaxCodeBits)> longer;
  bool all_longer;
  std::array<std::uint32_t, kMaxCodeBits + 2> first_code;   // by length, most significant first
  std::array<std::uint32_t, kMaxCodeBits + 2> first_index;  // into `sorted`
  std::array<std::uint16_t, kMaxHuffmanSymbols> sorted;     // symbols by length, then value
};
void build_decode_table(std::span<const std::uint8_t> lengths, DecodeTable& table);

struct HuffmanKernels {
  // Encodes count symbols to out, which has room for huffman_capacity(count); returns the end.
  std::uint8_t* (*encode)(const std::uint16_t* symbols, std::size_t count, const EncodeTable* table,
                          std::uint8_t* out, std::uint8_t* scratch);
  // The inverse; `symbols` has room for count + 4. False when the bits do not fit.
  bool (*decode)(std::span<const std::uint8_t> in, const DecodeTable& table, std::size_t count,
                 std::uint16_t* symbols);
};
const HuffmanKernels& huffman_kernels(simd::Target target);

// Bytes that encode may write, and that its scratch needs.
inline std::size_t huffman_capacity(std::size_t count) { return 2 * count + 128; }

}  // namespace firn::encode
