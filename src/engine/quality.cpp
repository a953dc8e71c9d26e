#include "engine/quality.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace firn::engine {
namespace {

// Bounds and what they lead to, next to each other around the one that is looked for.
class BoundSearch {
 public:
  // No bound above `highest` is of use.
  BoundSearch(double wanted, double highest) : wanted_(wanted), highest_(highest) {}

  void add(double bound, double error) {
    Tried& side = good(error) ? good_ : bad_;
    // Larger bounds do not always leave larger errors.
    if (side.bound == 0 || good(error) == (bound > side.bound)) side = {bound, error};
  }
  bool good(double error) const { return error <= wanted_; }

  // The bound to try next; 0: the best one will do.
  double next(int tries) const {
    return good_.bound >= highest_ ? 0 : std::min(unlimited_next(tries), highest_);
  }

 private:
  struct Tried {
    double bound = 0;  // 0: none yet
    double error = 0;
  };

  double unlimited_next(int tries) const {
    constexpr int kMostTries = 5;
    constexpr double kAim = 0.995, kClose = 0.98, kFarthest = 64;
    if (tries >= kMostTries || good_.error > kClose * wanted_) return 0;
    const double aim = kAim * wanted_;
    if (good_.bound == 0) return bad_.bound * std::max(aim / bad_.error, 1 / kFarthest) * kAim;
    if (good_.error == 0) return bad_.bound == 0 ? good_.bound * kFarthest : 0;
    // Errors grow at most as fast as the bound.
    const double linear = good_.bound * std::min(aim / good_.error, kFarthest);
    if (bad_.bound == 0) return linear;
    // Between the two, but not too near either.
    const double low = good_.bound, high = bad_.bound;
    const double share = (aim - good_.error) / (bad_.error - good_.error);
    return low + (high - low) * std::clamp(share, 0.1, 0.9);
  }

  double wanted_, highest_;
  Tried good_, bad_;
};

double root_mean_square(const std::vector<SquaredError>& errors, double bound) {
  SquaredError all;
  for (const SquaredError& each : errors) {
    all.sum += each.sum;
    all.count += each.count;
  }
  return all.count == 0 ? 0 : bound * std::sqrt(all.sum / static_cast<double>(all.count));
}

}  // namespace

Status compress_to_psnr(const ArrayView& array, const Options& options, const Execution& execution,
                        pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  // The bound of what quantises first: where to begin, and what to fall back on.
  auto safe = plan::make_plan(array, options, workers);
  if (!safe) return safe.error();
  if (safe->parameters.bound_abs == 0) {
    return compress(array, *safe, execution, workers, scratch, output);
  }
  const plan::ValueRange range = plan::value_range(array, options.fill, workers);
  const double width = range.high - range.low;
  BoundSearch search(plan::error_of_psnr(width, options.bound.value), width);
  std::vector<pipelines::Choice> choices;
  std::vector<SquaredError> errors;
  double chosen_at = 0, error = 0;
  const auto attempt = [&](double bound) -> Status {
    auto plan = plan::plan_for_bound(array, options, bound, workers);
    if (!plan) return plan.error();
    plan->parameters.tune_psnr = true;
    constexpr double kSameChoice = 1.5;
    if (bound > kSameChoice * chosen_at || chosen_at > kSameChoice * bound) {
      choices.clear();
      chosen_at = bound;
    }
    output.rewind();
    const Status status =
        compress(array, *plan, execution, workers, scratch, output, &choices, &errors);
    error = root_mean_square(errors, plan->parameters.bound_abs);
    return status;
  };
  // The smallest that is good: a larger bound's is not always smaller.
  double last = 0, best = 0;
  std::size_t best_size = 0;
  std::vector<pipelines::Choice> best_choices;
  int tries = 0;
  for (double bound = safe->parameters.bound_abs; bound != 0; bound = search.next(++tries)) {
    if (const Status status = attempt(bound); !status) return status;
    search.add(bound, error);
    last = bound;
    if (!search.good(error) || (best != 0 && output.size() >= best_size)) continue;
    best = bound;
    best_size = output.size();
    best_choices = choices;
  }
  if (best != last && best != 0) {
    choices = std::move(best_choices);
    chosen_at = best;
    if (const Status status = attempt(best); !status) return status;
  }
  if (search.good(error)) return std::monostate{};
  output.rewind();
  return compress(array, *safe, execution, workers, scratch, output);
}

}  // namespace firn::engine
