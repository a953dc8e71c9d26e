// A compression of an array's chunks that is led to a size.
//
// When the size of every chunk under some other bound is known, the first few under this bound tell
// what all will take. Chunks are therefore encoded in waves, with a step that is half of the
// bound's (a chunk may have that, see docs/format.md), so that it can be changed either way. After
// each wave the rest are given a coarser or a finer one, so that the whole comes out as it should;
// what cannot is given up. Some chunks that are encoded once more make up for what is missing or
// too much in the end, and of what a chunk was encoded as, any may be taken. So one pass meets the
// size even where sizes leap from bound to bound, and no value is further off than the bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace firn::engine {

// The sizes that hold a ratio (within 1 %), over what it asks for.
inline constexpr double kLeastSize = 0.9903, kMostSize = 1.01;

// Bits fall by about one for each doubling of the bound as long as there are many, by a part of
// themselves when there are few: this falls evenly with the logarithm of the bound. Takes log2.
double evenly(double log_bits);

// What a chunk takes.
struct ChunkSize {
  double step = 0;  // log2, about the bound
  double bytes = 0;
};

class Pass {
 public:
  struct Goal {
    double step;     // of the bound, log2
    unsigned finer;  // what is expected to meet the size
    unsigned coarsest, finest;
    // Steps are whole multiples of so many 256ths of the bound's (0: of none), or powers of two.
    unsigned stair = 1;
    double bytes;  // that all chunks are to take
    double slope;  // of evenly(), as it is expected to be
    // Whether to give up when only such a bound can meet the size.
    bool try_coarser, try_finer;
    bool lossless;  // there is no bound, and no step
  };
  struct Wave {
    std::vector<std::uint64_t> chunks;  // in rising order; none: it is over
    unsigned finer = 0;                 // their step is smaller by so many 256ths
  };
  // `values` that each chunk has, and what each took before; none: not known.
  Pass(std::vector<std::uint64_t> values, std::vector<ChunkSize> before, const Goal& goal);

  Wave next();
  void took(const Wave& wave, std::span<const std::uint64_t> bytes);

  // Some chunks are not encoded, because the whole would be too large, or much too small.
  bool given_up() const { return given_up_; }
  bool met() const { return within(size()); }
  // Which of a chunk's encodings, in the order in which it took them, is part of the whole.
  std::size_t taken(std::size_t chunk) const { return taken_[chunk]; }
  // Of all chunks over what they are to take: as it is expected with the goal's step for the rest,
  // if there is one.
  double size() const { return expected_bytes(goal_.finer) / goal_.bytes; }
  // Of all chunks in the mean; the goal's if it is given up.
  double step() const;
  // Those of chunks that are not encoded as they are expected with the goal's step.
  std::vector<ChunkSize> sizes() const;

 private:
  struct Encoding {
    unsigned finer;
    double bytes;
  };
  // As a polynomial of the step's distance from the bound's.
  struct Forecast {
    double bytes[3] = {};
    void add(const Forecast& other, double sign) {
      for (int i = 0; i < 3; ++i) bytes[i] += sign * other.bytes[i];
    }
  };
  static bool within(double size) { return size >= kLeastSize && size <= kMostSize; }
  double values(std::size_t chunk) const { return static_cast<double>(values_[chunk]); }
  void put_in_order();
  void put_apart();
  bool too_large_by_values() const;
  Wave wave(std::size_t end, unsigned finer) const;
  Wave mend();
  Wave mend_up_to(unsigned limit) const;
  Wave even_out();
  unsigned usual_coarsest() const;
  unsigned stair_for(unsigned finer, std::size_t end) const;
  // The least finer step from `coarsest` on with which `bytes` are enough, or the finest.
  template <class BytesOf>
  unsigned least_finer(unsigned coarsest, double bytes, BytesOf bytes_of) const;
  void begin_again(unsigned finer);
  void expect(std::size_t chunk);
  void take(std::size_t chunk, std::size_t encoding);
  void take_best();
  double step_of(unsigned finer) const;
  Forecast forecast(const ChunkSize& known, std::size_t chunk) const;
  double bytes_of(const Forecast& forecast, unsigned finer) const;
  double change() const;
  double steepness() const;
  double expected_bytes(unsigned finer) const;

  std::vector<std::uint64_t> values_;
  std::vector<ChunkSize> before_, now_;
  std::vector<Forecast> expected_;  // of each chunk, by what it takes now or else took before
  std::vector<std::vector<Encoding>> encodings_;
  std::vector<std::size_t> taken_;
  Goal goal_;
  std::vector<unsigned> stairs_;    // the steps that a chunk may have, from the coarsest
  std::vector<std::size_t> order_;  // in which chunks are encoded
  std::size_t first_ = 0;           // of them are the first wave
  std::size_t done_ = 0;            // of them
  Forecast seen_now_, rest_;        // of what is encoded, and of the others
  // Bytes: before, of all chunks and of those that are encoded; of these by forecast, and in fact.
  double all_before_ = 0, seen_before_ = 0, seen_forecast_ = 0, seen_ = 0;
  bool can_be_small_ = false, can_be_large_ = false;  // enough: so it was before
  double mended_ = 0;                                 // bytes that were encoded again
  int times_mended_ = 0;
  bool begun_again_ = false, evened_out_ = false, given_up_ = false;
};

}  // namespace firn::engine
