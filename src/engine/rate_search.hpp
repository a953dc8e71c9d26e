// The finest bound that brings an array to a wanted ratio.
//
// Size falls with the bound about as 2^-bits does (CEAZ, 3.2.2), but not where most codes are zero
// and not where a field has a grid of its own, so the bound is searched for: on a sample of the
// array (a few percent), then by rehearsing what its chunks take, or by compressing them where
// that is no more work. Compressions after that are led to the size (engine/pass.hpp).
#pragma once

#include <firn/firn.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "engine/pass.hpp"
#include "engine/sampled_curve.hpp"
#include "engine/trial_bounds.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

// Up to this ratio it is tried whether nothing needs to be lost. For `fast` a try is ten times the
// work of a compression; and f64 values are rarely such that it can be more.
inline constexpr double kUsualMostLossless = 1 / 0.3;
inline double most_lossless(Type type, Preset preset) {
  return type == Type::f32 && preset != Preset::fast ? 5 : kUsualMostLossless;
}

class RateSearch {
 public:
  // options.bound is a ratio. `pieces`: what chunks may be cut into; or nothing.
  RateSearch(const ArrayView& array, const Options& options, const Shape& pieces,
             pipelines::Workers& workers);

  using Try = TrialBounds::Try;
  Result<Try> first();
  plan::Plan plan(const Try& attempt) const { return bounds_.plan(attempt); }
  // A compression with this bound. `values` of each chunk; `other_bytes` of the stream.
  Pass pass(const Try& attempt, std::vector<std::uint64_t> values, double other_bytes) const;
  // Bytes of a chunk that is all there is, as estimates of it should come out.
  struct Wanted {
    double least = 1, most = 0;
  };
  Wanted wanted(double other_bytes) const;
  // After it: what to try next, or nothing when it met the size or nothing better is to be
  // expected. Forgets the ways in which chunks were encoded when that is so far off that others may
  // be better.
  std::optional<Try> next(const Try& attempt, const Pass& pass,
                          std::vector<pipelines::Choice>* choices);
  // The same after a rehearsal, of the sizes that chunks would have.
  Try next(const Try& attempt, std::vector<ChunkSize> sizes, double other_bytes,
           std::vector<pipelines::Choice>* choices);
  // Whether the last one is the best so far.
  bool best() const { return best_; }
  double target_bytes() const { return target_bytes_; }

 private:
  // A compression's bound, and its size over what is wanted; log2.
  struct Point {
    double bound;
    double size;
    bool sure = true;  // or only expected, or of chunks that were encoded in other ways
    bool rehearsal = false;
    double chosen_at = 0;  // where its chunks' choices were made
  };
  Try lossy();
  double solve(double log_bits);
  double bits_wanted() const;
  double bytes_for_chunks(double other_bytes) const;
  double slope() const;
  std::optional<Try> better(const Point& here, const Try& attempt, std::vector<ChunkSize> sizes,
                            std::vector<pipelines::Choice>* choices);
  // As its logarithm.
  std::optional<double> next_bound();
  std::optional<Try> coarser(const Try& last);
  // Whether a sample takes at most so much more than is wanted.
  bool may_be_lossless(double most) const;
  bool is_known(const Try& attempt) const;
  std::optional<Try> after_lossless();
  std::optional<Try> between(std::vector<pipelines::Choice>* choices);
  std::optional<Try> after(const Try& attempt, const Pass& pass,
                           std::vector<pipelines::Choice>* choices);
  std::optional<Try> last_resort(std::vector<pipelines::Choice>* choices);
  Try afresh_at_highest(std::vector<pipelines::Choice>* choices);
  bool is_dear(const Point& here) const;
  // Ways in which chunks are encoded, and what they take.
  void choose_anew(std::vector<pipelines::Choice>* choices);
  // Only the ways: sizes of chunks that were encoded in other ways tell how unlike chunks are.
  void forget_if_far(double wanted, double here, std::vector<pipelines::Choice>* choices);

  const ArrayView& array_;
  const Options& options_;
  pipelines::Workers& workers_;
  TrialBounds bounds_;
  double target_bytes_;
  bool fresh_at_highest_ = false;   // chunks have been encoded there in ways chosen there
  bool only_lossless_ = false;      // no bound is of use
  bool lossless_failed_ = false;    // to be small enough
  bool lossless_given_up_ = false;  // when it seemed to fail; not a second time
  bool is_last_ = false;            // nothing is tried after this one
  bool automatic_ = false;          // the choice of pipelines
  bool rehearses_ = false;          // before compressing

  std::optional<SampledCurve> sampled_;

  std::vector<Point> points_;  // compressions, in order
  std::vector<double> tried_;  // steps of those that came to their end, log2
  bool chosen_anew_ = true;    // ways to encode chunks will be
  double chosen_at_ = 0;       // log2 of the bound at which their chunks' choices were made
  double best_size_ = 0;       // of the best, over what is wanted
  bool best_ = false;
  int attempts_ = 0, given_up_ = 0, rehearsals_ = 0, times_coarser_ = 0, times_chosen_anew_ = 0;
  int times_between_ = 0;
  // Bounds (log2) of compressions: the coarsest that is too large, the finest that is too small.
  double too_large_at_ = -std::numeric_limits<double>::infinity(), too_small_at_ = -too_large_at_;
  std::vector<ChunkSize> sizes_;  // by the last compression, in part as they are expected
};

}  // namespace firn::engine
