#include "engine/rate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/elementary.hpp"

namespace firn::engine {
namespace {

constexpr std::uint64_t kSampleShare = 24, kLeastSample = 8192, kMostSample = 1 << 20;
// What a value takes more in a sample than in the whole, about: chunks of boxes have more borders,
// in one dimension hardly so, those of a mask among them; and a sample is not encoded in every way.
double overhead_of(const pipelines::Parameters& parameters, int rank) {
  const bool packed = parameters.pipeline == Pipeline::blockpack;
  const double borders = rank == 1 ? 1.02 : packed ? 1.1 : 1.18;
  return borders * (parameters.thorough ? 1.1 : 1) * (parameters.fill ? 1.2 : 1);
}
// The sizes that hold a ratio (within 1 %), of what it asks for, and the size that is aimed at.
constexpr double kLeast = 0.9905, kMost = 1.0098, kAim = 0.999;
constexpr int kMaxAttempts = 8;
// What the slope of log2 of the size against log2 of the bound may be.
constexpr double kSteepest = -4, kFlattest = -0.02;
// How far from a sample the curve through the samples is trusted, in octaves of the bound.
constexpr double kNear = 0.3;
// Chunks keep the way they were encoded in under bounds that are not further apart, in octaves; the
// sample, which only tells how the size changes, for longer.
constexpr double kSameChoice = 2, kSameSampleChoice = 4;

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

namespace {

// The plan for a step that was found, in halves (about the bound): the least bound that allows it.
// The margin depends on the bound by leaps, the step of the bound that it allows therefore too;
// a smaller margin than is usual for a bound fills the gaps.
Result<plan::Plan> plan_for_step(const ArrayView& array, const Options& options, double half_step,
                                 pipelines::Workers& workers) {
  auto plan = plan_for_bound(array, options, half_step, workers);
  if (!plan || plan->parameters.bound_abs == 0) return plan;
  const auto bound_for = [&](int margin) {
    const double bound = half_step / (1 - exp2_of(-margin));
    return options.max_abs ? std::min(bound, *options.max_abs) : bound;
  };
  int margin = plan->parameters.margin;
  plan = plan_for_bound(array, options, bound_for(margin), workers);
  if (!plan || plan->parameters.margin <= margin) return plan;
  auto tighter = plan_for_bound(array, options, bound_for(margin + 1), workers);
  if (!tighter || tighter->parameters.margin > margin) return tighter;
  plan->header.margin = plan->parameters.margin = margin;
  return plan;
}

}  // namespace

RateSearch::RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers)
    : array_(array), options_(options), workers_(workers) {
  target_bytes_ =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
}

void RateSearch::take_sample(double log_bound) {
  const auto plan = plan_for_step(array_, options_, exp2_of(log_bound), workers_);
  if (!plan) {
    error_ = plan.error();
    return;
  }
  if (samples_.empty() || std::fabs(log_bound - sample_chosen_at_) > kSameSampleChoice) {
    samples_.clear();
    sample_choices_.clear();
    sample_chosen_at_ = log_bound;
  }
  const Point point{log_bound, log2_of(sample_->bits(*plan, workers_, &sample_choices_))};
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
  return run == 0 ? kSteepest : std::clamp(rise / run, kSteepest, kFlattest);
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

// Bits fall by about one for each doubling of the bound as long as there are many, by a part of
// themselves when there are few: this falls evenly with the logarithm of the bound.
double evenly(double log_bits) { return exp2_of(log_bits) + log_bits; }

double RateSearch::sampled_bits(double log_bound) const {
  double low = -16, high = 7;
  for (int halvings = 0; halvings < 20; ++halvings) {
    const double middle = (low + high) / 2;
    (sampled_bound(middle) > log_bound ? low : high) = middle;
  }
  return low;
}

double RateSearch::sampled_bound(double log_bits) const {
  const auto [a, b] = segment(&Point::size, log_bits);
  const double slope =
      std::clamp((evenly(b.size) - evenly(a.size)) / (b.bound - a.bound), kSteepest, kFlattest);
  return a.bound + (evenly(log_bits) - evenly(a.size)) / slope;
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
      // Far enough to tell how steep the curve is.
      const double least = away < 0 ? -kNear : kNear;
      at = known.bound + (std::fabs(away) < kNear ? least : std::clamp(away, -12.0, 12.0));
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

// Between neighbouring bounds with sizes on both sides of what is wanted, where the line through
// these meets it, or in their middle when that does not lead anywhere. Else where the line through
// the last size and one that is not too near does, for the curve is not smooth.
double RateSearch::by_sizes() const {
  constexpr std::size_t kPatience = 4;
  const double wanted = log2_of(kAim);
  auto sorted = tried_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& a, const Point& b) { return a.bound < b.bound; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point &below = sorted[i - 1], &above = sorted[i];
    if (below.size < wanted || above.size > wanted) continue;
    const double share =
        tried_.size() < kPatience ? (below.size - wanted) / (below.size - above.size) : 0.5;
    return below.bound + share * (above.bound - below.bound);
  }
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
  return last.bound + (wanted - last.size) / slope;
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
  // What every record takes whatever the bound makes the curve of a sample a little flat, and so do
  // ways to encode that are not as good as those of a thorough search.
  too_flat_ = plan->parameters.thorough ? 1.2 : 1.05;
  const double overhead = overhead_of(plan->parameters, array_.shape.rank);
  const double wanted = log2_of(8 * kAim * overhead * target_bytes_ / static_cast<double>(count));
  const double found = solve(wanted);
  if (error_) return *error_;
  if (found > lowest_) return exp2_of(found);
  // Perhaps nothing needs to be lost.
  const bool enough = log2_of(sample_->bits(*plan, workers_, nullptr)) <= wanted;
  return enough ? 0.0 : exp2_of(found);
}

// A few chunks, at even steps through the bytes when all are put in order of how much a value of
// theirs takes: what takes much and what takes little changes with the bound in different ways.
std::vector<std::size_t> RateSearch::typical_chunks(
    const Grid& grid, const std::vector<container::RecordTable::Entry>& records) {
  constexpr std::size_t kShare = 8, kSeveral = 6;
  std::vector<std::size_t> order(records.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto density = [&](std::size_t chunk) {
    return static_cast<double>(records[chunk].size) /
           static_cast<double>(grid.region(chunk).shape.count());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return density(a) < density(b); });
  std::uint64_t total = 0, before = 0;
  for (const auto& record : records) total += record.size;
  const std::size_t wanted = std::max<std::size_t>(records.size() < kSeveral ? 1 : 2,
                                                   (records.size() + kShare / 2) / kShare);
  std::vector<std::size_t> chosen;
  for (const std::size_t chunk : order) {
    before += records[chunk].size;
    if (before * 2 * wanted > total * (2 * chosen.size() + 1)) chosen.push_back(chunk);
    if (chosen.size() == wanted) break;
  }
  return chosen;
}

// Where the size changes by `missing` after the compression at `from`, as a few of its chunks tell;
// `to` is where the sample says.
double RateSearch::probe(double from, double to, double missing,
                         const std::vector<container::RecordTable::Entry>& records,
                         const std::vector<pipelines::Choice>& choices) {
  // Nearer bounds do not tell how steep the curve is.
  constexpr double kNearest = 0.15;
  const double expected = slope_of(to - from, missing);
  if (std::fabs(to - from) < kNearest) to = from + (missing < 0 ? kNearest : -kNearest);
  const auto plan = plan_for_step(array_, options_, exp2_of(to), workers_);
  if (!plan) {
    error_ = plan.error();
    return to;
  }
  const Grid grid(array_.shape, plan->header.chunk);
  std::vector<Region> regions;
  std::vector<pipelines::Choice> kept;
  std::uint64_t before = 0, total = 0;
  for (const auto& record : records) total += record.size;
  for (const std::size_t chunk : typical_chunks(grid, records)) {
    regions.push_back(grid.region(chunk));
    kept.push_back(choices[chunk]);
    before += records[chunk].size;
  }
  const auto after = encoded_bytes(array_, *plan, regions, workers_, &kept);
  double slope = slope_of(
      to - from, log2_of(static_cast<double>(after)) - log2_of(static_cast<double>(before)));
  if (regions.size() == 1) {
    // It may be unlike the others.
    const double unseen = 1 - static_cast<double>(before) / static_cast<double>(total);
    slope += (expected - slope) * unseen / 2;
  }
  return from + missing / slope;
}

std::optional<double> RateSearch::next_bound(
    const std::vector<container::RecordTable::Entry>& records,
    const std::vector<pipelines::Choice>& choices) {
  // So little is missing that the slope need not be known well; so few chunks that one of them is
  // not much less than all.
  constexpr double kLittle = 0.04;
  constexpr std::size_t kFewChunks = 2;
  const Point& last = tried_.back();
  const double missing = log2_of(kAim) - last.size;
  double wanted = last.bound;
  if (tried_.size() > 1) {
    wanted = by_sizes();
  } else if (samples_.size() > 1) {
    const double bits = sampled_bits(last.bound);
    wanted = within_reach(last.bound + (solve(bits + missing) - sampled_bound(bits)) / too_flat_);
    if (records.size() > kFewChunks && std::fabs(missing) > kLittle && wanted != last.bound &&
        !error_) {
      wanted = probe(last.bound, wanted, missing, records, choices);
    }
  }
  // Larger bounds for smaller sizes, if the sample knows nothing better.
  if (tried_.size() == 1 && !((wanted - last.bound) * missing < 0)) {
    wanted = last.bound - 2 * missing;
  }
  wanted = within_reach(last.bound + std::clamp(wanted - last.bound, -kSameChoice, kSameChoice));
  if (error_ || std::fabs(wanted - last.bound) < 1e-4) return {};
  return wanted;
}

std::optional<double> RateSearch::next(double bound_abs, std::uint64_t size,
                                       const std::vector<container::RecordTable::Entry>& records,
                                       std::vector<pipelines::Choice>* choices) {
  const double got = static_cast<double>(size) / target_bytes_;
  // Those within the limits come first, then those too small, then those too large.
  const double off = std::fabs(got - kAim) + (got <= kMost ? 0 : 2) + (got >= kLeast ? 0 : 1);
  if (tried_.empty() || off < best_off_) {
    best_off_ = off;
    best_bound_ = bound_abs;
  }
  ++attempts_;
  if (bound_abs == 0 ? got <= 1 : got >= kLeast && got <= kMost) return {};
  if (attempts_ == kMaxAttempts) return {};
  if (bound_abs == 0) {
    // The sample promised too much. One bit for each doubling of the bound, then.
    const double bits = 8 * (got - 1) * target_bytes_ / static_cast<double>(array_.shape.count());
    return exp2_of(within_reach(lowest_ + bits));
  }
  const double here = log2_of(bound_abs);
  if (here >= highest_ && got > 1) return {};
  if (tried_.empty()) chosen_at_ = here;
  tried_.push_back({here, log2_of(got)});
  const auto wanted = next_bound(records, *choices);
  if (wanted && std::fabs(*wanted - chosen_at_) > kSameChoice &&
      std::fabs(*wanted - here) > kSameChoice / 2) {
    // Sizes of chunks that were encoded in other ways tell nothing.
    choices->clear();
    tried_.clear();
  }
  return wanted ? std::optional(exp2_of(*wanted)) : wanted;
}

Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  RateSearch search(array, options, workers);
  std::vector<pipelines::Choice> choices;
  const auto attempt = [&](double bound_abs) -> Status {
    output.rewind();
    auto plan = plan_for_step(array, options, bound_abs, workers);
    if (!plan) return plan.error();
    return compress(array, *plan, execution, workers, scratch, output, &choices);
  };
  const auto first = search.first();
  if (!first) return first.error();
  for (double bound_abs = *first;;) {
    if (const Status status = attempt(bound_abs); !status) return status;
    const auto next = search.next(bound_abs, output.size(), scratch.entries, &choices);
    if (!next) {
      return search.best_bound() == bound_abs ? std::monostate{} : attempt(search.best_bound());
    }
    bound_abs = *next;
  }
}

}  // namespace firn::engine
