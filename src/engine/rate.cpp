#include "engine/rate.hpp"

#include <algorithm>
#include <cmath>

#include "base/elementary.hpp"

namespace firn::engine {
namespace {

constexpr std::uint64_t kSampleShare = 24, kLeastSample = 16384, kMostSample = 1 << 20;
// What a value takes more in a sample than in the whole, about: chunks of boxes have more borders,
// in one dimension hardly so, those of a mask among them; and a sample is not encoded in every way.
double overhead_of(const pipelines::Parameters& parameters, int rank) {
  const bool packed = parameters.pipeline == Pipeline::blockpack;
  const double borders = rank == 1 ? 1.02 : packed ? 1.1 : 1.18;
  return borders * (parameters.thorough ? 1.1 : 1) * (parameters.fill ? 1.2 : 1);
}
// The sizes that hold a ratio, of what it asks for, and the size that is aimed at.
// One that is a little too large will do in the end.
constexpr double kLeast = 0.99, kMost = 1.004, kAim = 0.998, kLimit = 1.008;
constexpr int kMaxAttempts = 9;
// What the slope of log2 of the size against log2 of the bound may be.
constexpr double kSteepest = -4, kFlattest = -0.02;
// How far from a sample the curve through the samples is trusted, in octaves of the bound.
constexpr double kNear = 0.3, kSameSampleChoice = 2;

}  // namespace

Result<plan::Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                                  pipelines::Workers& workers) {
  Options fixed = options;
  fixed.bound = bound_abs > 0 ? Bound::abs(bound_abs) : Bound::lossless();
  fixed.max_abs.reset();
  auto plan = plan::make_plan(array, fixed, workers);
  if (plan) plan->header.bound = options.bound;
  return plan;
}

RateSearch::RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers)
    : array_(array), options_(options), workers_(workers) {
  target_bytes_ =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
}

void RateSearch::take_sample(double log_bound) {
  const auto plan = plan_for_bound(array_, options_, exp2_of(log_bound), workers_);
  if (!plan) {
    error_ = plan.error();
    return;
  }
  if (std::fabs(log_bound - chosen_at_) > kSameSampleChoice) {
    choices_.clear();
    chosen_at_ = log_bound;
  }
  const Point point{log_bound, log2_of(sample_->bits(*plan, workers_, &choices_))};
  const auto after = std::find_if(samples_.begin(), samples_.end(),
                                  [&](const Point& each) { return each.bound > log_bound; });
  samples_.insert(after, point);
}

// The two neighbours of a value among the samples, along either axis of their falling curve; the
// last two where it lies beyond them.
std::pair<RateSearch::Point, RateSearch::Point> RateSearch::segment(double Point::*axis,
                                                                    double value) const {
  std::size_t i = 1;
  const bool rising = axis == &Point::bound;
  while (i + 1 < samples_.size() && (samples_[i].*axis < value) == rising) ++i;
  return {samples_[i - 1], samples_[i]};
}

double slope_of(double run, double rise) {
  return std::clamp(rise / std::max(run, 1e-9), kSteepest, kFlattest);
}

double RateSearch::within_reach(double log_bound) {
  if (log_bound > highest_ && !knows_highest_) {
    const auto range = plan::value_range(array_, fill_, workers_);
    knows_highest_ = true;
    const double width = range.high - range.low;
    highest_ = std::isfinite(width) ? std::max(highest_, log2_of(width)) : highest_;
    if (options_.max_abs) highest_ = std::min(highest_, log2_of(*options_.max_abs));
  }
  return std::clamp(log_bound, lowest_, highest_);
}

double RateSearch::sampled_bits(double log_bound) const {
  const auto [a, b] = segment(&Point::bound, log_bound);
  return a.size + (log_bound - a.bound) * slope_of(b.bound - a.bound, b.size - a.size);
}

double RateSearch::sampled_bound(double log_bits) const {
  const auto [a, b] = segment(&Point::size, log_bits);
  return a.bound + (log_bits - a.size) / slope_of(b.bound - a.bound, b.size - a.size);
}

// The log of the bound at which the sample takes about 2^log_bits bits a value.
double RateSearch::solve(double log_bits) {
  constexpr int kSteps = 7;
  double at = highest_ - 10;
  if (samples_.empty()) {
    // A value takes about so much more than a rough look tells.
    constexpr double kMore = 0.6;
    const double bits = exp2_of(log_bits) - kMore;
    double low = lowest_, high = highest_;
    for (int halvings = 0; halvings < 8; ++halvings) {
      at = (low + high) / 2;
      (sample_->whole().bits(exp2_of(at)) > bits ? low : high) = at;
    }
  }
  for (int step = 0; step < kSteps && !error_; ++step) {
    if (samples_.size() == 1) {
      // One bit for each doubling of the bound, and more of those where there are few bits.
      const Point& known = samples_[0];
      const double away = exp2_of(known.size) - exp2_of(log_bits) + (known.size - log_bits);
      at = known.bound + std::clamp(away, -12.0, 12.0);
    } else if (!samples_.empty()) {
      at = sampled_bound(log_bits);
    }
    at = within_reach(at);
    const bool near = std::any_of(samples_.begin(), samples_.end(), [&](const Point& each) {
      return std::fabs(each.bound - at) < (samples_.size() > 1 ? kNear : 1e-3);
    });
    if (near) break;
    take_sample(at);
  }
  return at;
}

// Where the line through two sizes meets what is wanted, the last and one that is not too near, for
// the curve is not smooth; between neighbouring bounds with
// sizes on both sides of it, and in the middle of those when that does not lead anywhere.
double RateSearch::by_sizes() const {
  constexpr std::size_t kPatience = 5;
  const double wanted = log2_of(kAim);
  const Point& last = tried_.back();
  const Point* other = &tried_[tried_.size() - 2];
  for (std::size_t i = tried_.size() - 1; i-- > 0;) {
    if (std::fabs(tried_[i].bound - last.bound) < 0.25) continue;
    other = &tried_[i];
    break;
  }
  const double expected =
      samples_.size() > 1 ? (sampled_bits(last.bound + 0.1) - sampled_bits(last.bound - 0.1)) / 0.2
                          : -0.5;
  double slope = (last.size - other->size) / (last.bound - other->bound);
  if (!(slope < expected / 4 && slope > expected * 4)) slope = expected;
  const double at = last.bound + (wanted - last.size) / slope;
  auto sorted = tried_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& a, const Point& b) { return a.bound < b.bound; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point &below = sorted[i - 1], &above = sorted[i];
    if (below.size < wanted || above.size > wanted) continue;
    const bool inside = below.bound < at && at < above.bound;
    return inside && tried_.size() < kPatience ? at : (below.bound + above.bound) / 2;
  }
  return at;
}

Result<double> RateSearch::first() {
  const auto checked = plan::check_options(array_.type, array_.shape, options_);
  if (!checked) return checked.error();
  auto plan = plan_for_bound(array_, options_, 0, workers_);
  if (!plan) return plan.error();
  const std::uint64_t count = array_.shape.count();
  if (count == 0) return 0.0;
  fill_ = plan->parameters.fill;
  sample_.emplace(array_, plan->header.chunk, fill_,
                  std::clamp(count / kSampleShare, kLeastSample, kMostSample));
  const Roughness& whole = sample_->whole();
  // The values seen tell the range well enough, unless they are all the same.
  knows_highest_ = !(whole.high() > whole.low());
  const auto range = knows_highest_ ? plan::value_range(array_, fill_, workers_)
                                    : plan::ValueRange{whole.low(), whole.high()};
  if (!(range.high > range.low) || !std::isfinite(range.high - range.low)) return 0.0;
  highest_ = log2_of(range.high - range.low);
  lowest_ = highest_ - (array_.type == Type::f32 ? 26 : 55);
  if (options_.max_abs) highest_ = std::min(highest_, log2_of(*options_.max_abs));
  lowest_ = std::min(lowest_, highest_);
  const double overhead = overhead_of(plan->parameters, array_.shape.rank);
  const double wanted = log2_of(8 * kAim * overhead * target_bytes_ / static_cast<double>(count));
  const double found = solve(wanted);
  if (error_) return *error_;
  if (found > lowest_) return exp2_of(found);
  // Perhaps nothing needs to be lost.
  const bool enough = log2_of(sample_->bits(*plan, workers_, nullptr)) <= wanted;
  return enough ? 0.0 : exp2_of(found);
}

std::optional<double> RateSearch::next_bound() {
  const Point& last = tried_.back();
  double wanted = 0;
  if (tried_.size() > 1) {
    wanted = by_sizes();
  } else if (samples_.size() > 1) {
    // What every record takes whatever the bound makes the curve of a sample a little flat.
    constexpr double kTooFlat = 1.05;
    const double bits = sampled_bits(last.bound);
    const double moved = solve(bits + log2_of(kAim) - last.size) - sampled_bound(bits);
    wanted = last.bound + moved / kTooFlat;
  } else {
    wanted = last.bound + 2 * (last.size - log2_of(kAim));
  }
  wanted = within_reach(wanted);
  if (error_ || std::fabs(wanted - last.bound) < 1e-4) return {};
  return exp2_of(wanted);
}

std::optional<double> RateSearch::next(double bound_abs, std::uint64_t size,
                                       const std::vector<container::RecordTable::Entry>& records) {
  const double got = static_cast<double>(size) / target_bytes_;
  // Those within all limits come first, then those a little too large, then those too small.
  const double off = std::fabs(got - kAim) + (got <= kMost ? 0 : 1) + (got > kLeast ? 0 : 2) +
                     (got <= kLimit ? 0 : 3);
  if (attempts_ == 0 || off < best_off_) {
    best_off_ = off;
    best_bound_ = bound_abs;
  }
  const bool patient = ++attempts_ == 1;
  if (bound_abs == 0 ? got <= 1 : got > kLeast && got <= (patient ? kMost : kLimit)) return {};
  if (attempts_ == kMaxAttempts) return {};
  if (bound_abs == 0) {
    // The sample promised too much.
    return exp2_of(lowest_);
  }
  const double here = log2_of(bound_abs);
  if (here >= highest_ && got > 1) return {};
  tried_.push_back({here, log2_of(got)});
  ends_.clear();
  for (const auto& record : records) ends_.push_back(record.offset + record.size);
  reference_ = here;
  return next_bound();
}

bool RateSearch::worth_finishing(double bound_abs, std::uint64_t chunk, std::uint64_t bytes) {
  constexpr int kMaxStops = 1;
  constexpr double kLeastShare = 0.1, kMostShare = 0.7;
  if (ends_.empty() || stops_ == kMaxStops || bound_abs == 0) return true;
  // What is left changes as what is there did, or, as long as that is little, as expected.
  const auto reference = static_cast<double>(ends_[static_cast<std::size_t>(chunk)]);
  const auto total = static_cast<double>(ends_.back());
  const double share = reference / total;
  if (share < kLeastShare || share > kMostShare) return true;
  const double here = log2_of(bound_abs);
  const double expected = log2_of(kAim) - log2_of(total / target_bytes_);
  const double seen = log2_of(static_cast<double>(bytes) / reference);
  const double weight = share / (share + kLeastShare);
  const double rest = weight * seen + (1 - weight) * expected;
  const double size =
      log2_of((static_cast<double>(bytes) + (total - reference) * exp2_of(rest)) / target_bytes_);
  const double doubt = (1 - share) * (std::fabs(seen - expected) / 3 + 0.002);
  if (size - doubt < log2_of(kLimit) && size + doubt > log2_of(kLeast)) return true;
  ++stops_;
  tried_.push_back({here, size});
  return false;
}

std::optional<double> RateSearch::next_after_stop() {
  const auto bound = next_bound();
  // Its size is not worth remembering beside real ones.
  tried_.pop_back();
  return bound;
}

Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  RateSearch search(array, options, workers);
  Rehearsal rehearsal;
  double chosen_at = 0;
  const auto attempt = [&](double bound_abs, bool may_stop) -> Status {
    output.rewind();
    auto plan = plan_for_bound(array, options, bound_abs, workers);
    if (!plan) return plan.error();
    if (!(bound_abs < 2 * chosen_at && chosen_at < 2 * bound_abs)) {
      rehearsal.choices.clear();
      chosen_at = bound_abs;
    }
    rehearsal.go_on = {};
    if (may_stop) {
      rehearsal.go_on = [&search, bound_abs](std::uint64_t chunk, std::uint64_t bytes) {
        return search.worth_finishing(bound_abs, chunk, bytes);
      };
    }
    return compress(array, *plan, execution, workers, scratch, output, &rehearsal);
  };
  const auto first = search.first();
  if (!first) return first.error();
  for (double bound_abs = *first;;) {
    if (const Status status = attempt(bound_abs, true); !status) return status;
    const auto next = rehearsal.finished ? search.next(bound_abs, output.size(), scratch.entries)
                                         : search.next_after_stop();
    if (next) {
      bound_abs = *next;
    } else if (rehearsal.finished && search.best_bound() == bound_abs) {
      return std::monostate{};
    } else {
      return attempt(search.best_bound(), false);
    }
  }
}

}  // namespace firn::engine
