// The finest bound that brings an array to a wanted ratio.
//
// Size falls with the bound about as 2^-bits does (CEAZ, 3.2.2), but not where most codes are zero
// and not where a field has a grid of its own, so the bound is searched for: on a sample of the
// array (a few percent), then by compressing. The first compression tells how far the sample is
// off, and the second most often meets the ratio. It begins with a few chunks whose sizes are
// compared with those that they had before; when they promise too much or too little it is given
// up for another bound.
#pragma once

#include <firn/firn.hpp>
#include <optional>
#include <vector>

#include "engine/compress.hpp"
#include "engine/sample.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

// The plan for a bound that was found; 0: lossless. The header says what was asked for.
Result<plan::Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                                  pipelines::Workers& workers);

// Compresses under options.bound, a ratio: most often twice. Chunks are encoded in the way that
// was best the first time.
Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output);

class RateSearch {
 public:
  // options.bound is a ratio.
  RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers);

  // The bound to try first; 0: nothing needs to be lost.
  Result<double> first();
  // Chunks whose sizes the next compression tells first, in rising order; none the first time.
  std::vector<std::uint64_t> ahead();
  // Told the size of each record of a compression: whether it is worth going on.
  bool goes_on(std::uint64_t chunk, std::uint64_t bytes);
  // After a compression with `bound_abs` gave `size` bytes, in these records: the bound to try
  // next, or nothing when the best one so far will do or no better one is to be expected. Forgets
  // the ways in which chunks were encoded when that is so far off that others may be better.
  std::optional<double> next(double bound_abs, std::uint64_t size,
                             const std::vector<container::RecordTable::Entry>& records,
                             std::vector<pipelines::Choice>* choices);
  // The bound to try instead of one that was given up.
  double instead(double bound_abs, std::vector<pipelines::Choice>* choices);
  // Of the compressions so far.
  double best_bound() const { return best_bound_; }

 private:
  // A compression's bound and size over what is wanted, or a sample's bound and bits a value; log2.
  struct Point {
    double bound;
    double size;
  };
  void take_sample(double log_bound);
  double solve(double log_bits);
  std::pair<Point, Point> segment(double Point::*axis, double value) const;
  double sampled_bits(double log_bound) const;
  double sampled_bound(double log_bits) const;
  double within_reach(double log_bound);
  double by_sizes() const;
  double expected_size() const;
  // As its logarithm.
  std::optional<double> next_bound();
  // Sizes of chunks that were encoded in other ways tell nothing. Returns the bound.
  double forget_if_far(double wanted, double here, std::vector<pipelines::Choice>* choices);

  const ArrayView& array_;
  const Options& options_;
  pipelines::Workers& workers_;
  double target_bytes_;
  std::optional<double> fill_;
  Shape chunk_;
  double lowest_ = 0, highest_ = 0;  // log2 of the bounds that make sense
  bool knows_highest_ = false;       // or only that it is not lower

  std::optional<Sample> sample_;
  std::vector<Point> samples_;                     // by bound
  std::vector<pipelines::Choice> sample_choices_;  // of its chunks, made at this bound (log2):
  double sample_chosen_at_ = 0;

  std::vector<Point> tried_;    // in order
  std::vector<Point> guesses_;  // of those that were given up since the last whole one
  double chosen_at_ = 0;        // log2 of the bound at which their chunks' choices were made
  double best_bound_ = 0, best_off_ = 0;
  int attempts_ = 0;

  std::vector<std::uint64_t> sizes_;         // of the records of the last whole compression
  double whole_bytes_ = 0;                   // of all of them
  double whole_size_ = 0;                    // over what is wanted
  std::size_t ahead_ = 0, seen_ = 0;         // chunks of the compression under way
  double seen_before_ = 0, seen_after_ = 0;  // bytes of these then and now
  std::optional<Error> error_;
};

}  // namespace firn::engine
