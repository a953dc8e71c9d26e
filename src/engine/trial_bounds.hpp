// The bounds that make sense in a search for a ratio, the steps under them, and their plans.
#pragma once

#include <firn/firn.hpp>
#include <optional>

#include "container/format.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

class TrialBounds {
 public:
  // A bound to try, and by how many 256ths the step that is expected to meet the size is finer than
  // its own.
  struct Try {
    double bound_abs = 0;  // 0: nothing needs to be lost
    unsigned finer = 0;
    bool rehearsal = false;  // only to see what chunks take
    int margin = format::kMaxMargin;
    unsigned stair = 1;  // of steps, in 256ths of the bound's (see engine/pass.hpp)

    // Half the expected step, log2.
    double step() const;
  };

  // options.bound is a ratio. `pieces`: what chunks may be cut into; or nothing.
  TrialBounds(const ArrayView& array, const Options& options, const Shape& pieces,
              pipelines::Workers& workers);

  // Makes the plan for any bound.
  Status begin();
  // What is known of the values: the least and the largest of some, or of `all` of them, and a
  // magnitude below which an eighth of them are, log2. False when no bound is of use.
  bool set_values(double low, double high, bool all, int small_magnitude);

  const plan::Plan& plan() const { return plan_; }
  plan::Plan plan(const Try& attempt) const;

  // log2 of the bounds that make sense.
  double lowest() const { return lowest_; }
  double highest() const { return highest_; }
  // Steps near values' last bits are not where they are asked for.
  bool is_lowest(double log_bound) const { return log_bound <= lowest_ + 0.5; }
  // Lowers the lowest bound, for arrays most of whose values are much smaller than a few; and
  // whether that has been done.
  void go_deeper();
  bool is_deeper() const { return deeper_; }
  // Not outside, by rounding for example.
  double bound_of(double log_bound) const;
  double within_reach(double log_bound);

  // A bound twice as coarse as the step that is wanted, so that the size can still be changed
  // either way.
  Try with_reserve(double log_step);
  // Whether steps near values' last bits are few and far between.
  bool on_stairs() const { return on_stairs_; }
  // Cuts chunks into pieces if they may be, unless nothing is lost.
  void cut() { is_cut_ = is_cut_ || pieces_.rank > 0; }

 private:
  double highest_for(double width) const;
  std::optional<Try> nearest_stair(double half_step);

  const ArrayView& array_;
  const Options& options_;
  pipelines::Workers& workers_;
  plan::Plan plan_;     // for any bound
  plan::Plan grained_;  // for one of which only the margin is of interest
  Shape pieces_;
  bool is_cut_ = false;
  double lowest_ = 0, highest_ = 0;
  bool knows_highest_ = false;  // or only that it is not lower
  bool deeper_ = false;         // the lowest one has been lowered
  bool on_stairs_ = false;
};

}  // namespace firn::engine
