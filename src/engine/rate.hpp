// The finest bound that brings an array to a wanted ratio.
//
// Size falls with the bound about as 2^-bits does (CEAZ, 3.2.2), but not where most codes are zero
// and not where a field has a grid of its own, so the bound is searched for: first on a sample of
// the array (a few percent), then the sample is weighed with the real size of one compression.
#pragma once

#include <firn/firn.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "engine/compress.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

// What a value takes more in a box that is a part of a chunk than in the chunk, about.
inline constexpr double kBoxOverhead = 1.12;

// The i-th of points that lie evenly but without a period in [0, count): an array's own period
// must not decide what is seen of it.
std::uint64_t spread(std::uint64_t i, std::uint64_t count);

// Boxes spread over an array, of `values` in total or a little more; whole chunks when those are
// small enough.
std::vector<Region> sample_regions(const Shape& shape, const Shape& chunk, std::uint64_t values);

// Bytes of the records that the regions would be.
std::uint64_t encoded_bytes(const ArrayView& array, const plan::Plan& plan,
                            const std::vector<Region>& regions, pipelines::Workers& workers);

// The plan for a bound that was found; 0: lossless. The header says what was asked for.
Result<plan::Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                                  pipelines::Workers& workers);

// Compresses under options.bound, a ratio: one to three times, and once more when the last try was
// not the best.
Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output);

class RateSearch {
 public:
  // options.bound is a ratio.
  RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers);

  // The bound to try first; 0: nothing needs to be lost.
  Result<double> first();
  // After a compression with `bound_abs` gave `size` bytes: the bound to try next, or nothing
  // when this one will do or no better one is to be expected.
  std::optional<double> next(double bound_abs, std::uint64_t size);

 private:
  double log_sampled_bits(double log_bound);
  double solve(double log_bits);
  using Point = std::pair<double, double>;  // log2 of bound and of bits a value
  double next_guess(const std::optional<Point>& below, const std::optional<Point>& above,
                    double log_bits) const;

  const ArrayView& array_;
  const Options& options_;
  pipelines::Workers& workers_;
  std::vector<Region> regions_;
  std::uint64_t sampled_values_ = 0;
  double target_bytes_;
  double lowest_ = 0, highest_ = 0;  // log2 of the bounds that make sense
  std::vector<Point> samples_;
  // Compressions of all: log2 of the bound and of the size over the target.
  std::optional<Point> too_large_, small_enough_;
  std::optional<bool> last_too_large_;
  std::optional<Error> error_;
  int attempts_ = 0;
};

}  // namespace firn::engine
