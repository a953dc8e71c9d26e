// The points of a chunk that keep their bits: NaN, infinities, fill values and values that
// quantisation cannot hold within the bound. A bit map says which, a list holds their bits.
//
// The map is stored as its difference (exclusive or) from itself one plane or row back, so that
// coastlines cost little and what repeats from plane to plane almost nothing. Layout:
// docs/format.md, "Exact points".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/scratch.hpp"
#include "encode/lossless.hpp"

namespace firn::encode {

// visit(first, length) for each run of set bits.
template <class Visit>
void for_each_run_of(std::uint64_t bits, Visit visit) {
  while (bits != 0) {
    const auto first = static_cast<std::size_t>(std::countr_zero(bits));
    const auto length = static_cast<std::size_t>(std::countr_one(bits >> first));
    visit(first, length);
    bits = first + length < 64 ? bits & ~std::uint64_t{0} << (first + length) : 0;
  }
}

// One bit a value, least significant first, in 64-bit words.
class BitMap {
 public:
  void reset(std::size_t bits);
  void set(std::size_t i) { words_.data()[i >> 6] |= std::uint64_t{1} << (i & 63); }
  // Sets the bits of `word` from bit `first` on.
  void set_word(std::size_t first, std::uint64_t word) {
    std::uint64_t* const words = words_.data() + (first >> 6);
    words[0] |= word << (first & 63);
    if ((first & 63) != 0) words[1] |= word >> (64 - (first & 63));
  }
  bool test(std::size_t i) const { return words_.data()[i >> 6] >> (i & 63) & 1; }
  std::size_t bits() const { return bits_; }
  std::size_t word_count() const { return (bits_ + 63) / 64; }
  std::uint64_t* words() { return words_.data(); }
  const std::uint64_t* words() const { return words_.data(); }
  std::size_t count() const;
  // The 64 bits from bit 64 w on.
  std::uint64_t word(std::size_t w) const { return words_.data()[w]; }

  // visit(i) for each set bit of [begin, end), in order.
  template <class Visit>
  void for_each(std::size_t begin, std::size_t end, Visit visit) const {
    for_each_word(begin, end, [&](std::size_t first, std::uint64_t bits) {
      for (; bits != 0; bits &= bits - 1) {
        visit(first + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    });
  }
  // visit(first, length) for runs of them, cut where words end.
  template <class Visit>
  void for_each_run(std::size_t begin, std::size_t end, Visit visit) const {
    for_each_word(begin, end, [&](std::size_t first, std::uint64_t bits) {
      for_each_run_of(bits, [&](std::size_t at, std::size_t length) { visit(first + at, length); });
    });
  }

 private:
  // visit(first, bits) for the words of [begin, end), without the bits beyond.
  template <class Visit>
  void for_each_word(std::size_t begin, std::size_t end, Visit visit) const {
    for (std::size_t w = begin / 64; w * 64 < end; ++w) {
      std::uint64_t bits = word(w);
      if (w * 64 < begin) bits &= ~std::uint64_t{0} << (begin - w * 64);
      if (end - w * 64 < 64) bits &= (std::uint64_t{1} << (end - w * 64)) - 1;
      visit(w * 64, bits);
    }
  }

  ScratchArray<std::uint64_t> words_;
  std::size_t bits_ = 0;
};

struct ExactPointsScratch {
  ScratchArray<std::uint64_t> words;
  ScratchArray<std::uint64_t> masks;
  ScratchArray<std::uint8_t> bytes;
};

std::size_t exact_points_capacity(std::size_t values, std::size_t exact_bytes);

// How a map's bytes are stored: by zstd, or without those that are zero, which takes a third of the
// time.
enum class MapCoding { zstd, nonzero_bytes };

// A map by itself. `lags`: distances at which it may resemble itself, the row length first.
std::size_t map_capacity(std::size_t bits);
void write_map(const BitMap& map, std::span<const std::size_t> lags, MapCoding coding,
               Lossless& lossless, ExactPointsScratch& scratch, ByteWriter& out);
// Fills the map (of map.bits() points). False: malformed.
bool read_map(ByteReader& in, std::size_t row_length, MapCoding coding, Lossless& lossless,
              ExactPointsScratch& scratch, BitMap& map);

// exact_bytes: the values of all, or one that all have.
void write_exact_points(const BitMap& map, std::span<const std::size_t> lags, MapCoding coding,
                        std::size_t value_bytes, std::span<const std::uint8_t> exact_bytes,
                        Lossless& lossless, ExactPointsScratch& scratch, ByteWriter& out);

// Fills the map (of map.bits() points) and `exact_bytes`. False: malformed. Unless `alike` is null,
// it tells whether exact_bytes holds one value that all have.
bool read_exact_points(ByteReader& in, std::size_t row_length, MapCoding coding,
                       std::size_t value_bytes, Lossless& lossless, ExactPointsScratch& scratch,
                       BitMap& map, ScratchArray<std::uint8_t>& exact_bytes, bool* alike = nullptr);

}  // namespace firn::encode
