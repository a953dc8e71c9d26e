// Every magic, id, width and limit of the stream format, version 1. docs/format.md is the
// specification; both change in the same commit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace firn::format {

inline constexpr std::array<std::uint8_t, 4> kMagic{'F', 'I', 'R', 'N'};
inline constexpr std::uint8_t kVersion = 1;

// Header byte 5.
inline constexpr std::uint8_t kTypeMask = 0x03;
inline constexpr int kRankShift = 2;
inline constexpr std::uint8_t kRankMask = 0x1C;
inline constexpr std::uint8_t kHasFill = 0x20;
inline constexpr std::uint8_t kSingleChunk = 0x40;
inline constexpr std::uint8_t kDescriptorReserved = 0x80;

// Header byte 6: bound kind below, margin above. A margin of kGrid + k stands for steps that are
// multiples of a grain, 2^-k of the power of two in twice the bound; written as kGridNibble, with
// k in a byte of its own behind the bound.
inline constexpr std::uint8_t kBoundKindMask = 0x0F;
inline constexpr int kMarginShift = 4;
inline constexpr int kMinMargin = 2;
inline constexpr int kMaxMargin = 10;
inline constexpr int kGrid = 16;
inline constexpr int kGridNibble = 15;
inline constexpr int kMaxGrainBits = 15;

// The largest fraction that a pwrel stream enforces: below it differences of values are exact.
inline constexpr double kMaxPointwise = 0.5;

// First byte of a record. Chunk records carry the id of their pipeline.
inline constexpr std::uint8_t kIndexTag = 0x00;
inline constexpr std::uint8_t kBookTag = 0x0F;  // a book that several chunks share
inline constexpr std::uint8_t kPipelineMask = 0x0F;
inline constexpr std::uint8_t kRecordReserved = 0xF0;

inline constexpr std::size_t kChecksumBytes = 4;
inline constexpr std::size_t kErrorBytes = 2;  // achieved error in units of bound / kErrorUnits
inline constexpr std::uint32_t kErrorUnits = 65535;

// Last 8 bytes of a stream with an index: size of the index record, then this.
inline constexpr std::uint32_t kFooterMagic = 0x58444946;  // "FIDX"
inline constexpr std::size_t kFooterBytes = 8;

// First and last 4 bytes of the directory of a series.
inline constexpr std::uint32_t kDirectoryMagic = 0x52494446;  // "FDIR"

// A chunk holds at most this many values, so that a damaged header cannot ask for much memory.
inline constexpr std::uint64_t kMaxChunkValues = std::uint64_t{1} << 24;

// Books that chunks can share.
inline constexpr std::uint32_t kMaxSharedBooks = 64;

// Payload of a quantising pipeline: flags in its first byte.
inline constexpr std::uint8_t kHasExactPoints = 0x01;
inline constexpr std::uint8_t kWideCodes = 0x02;
inline constexpr std::uint8_t kHasSigns = 0x04;  // under a point-wise bound
inline constexpr std::uint8_t kHasRunnerUp = 0x08;
inline constexpr std::uint8_t kHasFinerStep = 0x10;  // not under a point-wise bound
inline constexpr std::uint8_t kShortCodes = 0x20;    // `blockpack` only
inline constexpr std::uint8_t kNonzeroMaps = 0x40;   // `blockpack` only: maps without zero bytes
inline constexpr std::uint8_t kHasPhase = 0x80;      // `lorenzo`, `blockpack`, `contexts`
inline constexpr std::uint8_t kMaxFiner = 200;

// The same byte of `fre`, besides kHasExactPoints.
inline constexpr std::uint8_t kFreRounded = 0x02;
inline constexpr std::uint8_t kFreExchanged = 0x04;

// How the symbols of `lorenzo` are coded, and above it where their book is.
inline constexpr std::uint8_t kSymbolsSingle = 0;
inline constexpr std::uint8_t kSymbolsHuffman = 1;
inline constexpr std::uint8_t kSymbolsHuffmanZstd = 2;
inline constexpr std::uint8_t kSymbolsMask = 0x0F;
inline constexpr std::uint8_t kBookStored = 0x00;
inline constexpr std::uint8_t kBookOffline = 0x10;
inline constexpr std::uint8_t kBookShared = 0x20;
inline constexpr std::uint8_t kBookMask = 0xF0;

}  // namespace firn::format
