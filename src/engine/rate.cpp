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
constexpr double kLeast = 0.9903, kMost = 1.01, kAim = 1;
constexpr int kMaxAttempts = 8;
// What the slope of log2 of the size against log2 of the bound may be.
constexpr double kSteepest = -4, kFlattest = -0.02;
// How much flatter the curve of the whole is than that of the samples, which see small boxes.
constexpr double kFlatter = 0.94;
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
  const int margin = plan->parameters.margin;
  plan::change_bound(bound_for(margin), &*plan);
  if (plan->parameters.margin <= margin) return plan;
  const double bound = plan->parameters.bound_abs;
  plan::change_bound(bound_for(margin + 1), &*plan);
  if (plan->parameters.margin > margin) return plan;
  plan::change_bound(bound, &*plan);
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
  auto points = tried_;
  points.insert(points.end(), guesses_.begin(), guesses_.end());
  auto sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& a, const Point& b) { return a.bound < b.bound; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point &below = sorted[i - 1], &above = sorted[i];
    if (below.size < wanted || above.size > wanted) continue;
    const double share =
        points.size() < kPatience ? (below.size - wanted) / (below.size - above.size) : 0.5;
    return below.bound + share * (above.bound - below.bound);
  }
  const Point& last = points.back();
  const Point* other = &points[points.size() - 2];
  for (std::size_t i = points.size() - 1; i-- > 0;) {
    if (std::fabs(points[i].bound - last.bound) < 0.25) continue;
    other = &points[i];
    break;
  }
  const double expected =
      samples_.size() > 1 ? (sampled_bits(last.bound + 0.1) - sampled_bits(last.bound - 0.1)) / 0.2
                          : -0.5;
  double slope = (last.size - other->size) / (last.bound - other->bound);
  if (!(slope < expected / 4 && slope > expected * 4)) slope = expected;
  // Steps that all fell short were too small: each is twice the last.
  const int short_steps = static_cast<int>(points.size()) - 2;
  return last.bound + (wanted - last.size) / slope * exp2_of(short_steps);
}

Result<double> RateSearch::first() {
  const auto checked = plan::check_options(array_.type, array_.shape, options_);
  if (!checked) return checked.error();
  auto plan = plan_for_bound(array_, options_, 0, workers_);
  if (!plan) return plan.error();
  const std::uint64_t count = array_.shape.count();
  if (count == 0) return 0.0;
  fill_ = plan->parameters.fill;
  chunk_ = plan->header.chunk;
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

// A few chunks, at even steps through the bytes when all are put in order of how much a value of
// theirs takes: what takes much and what takes little changes with the bound in different ways.
std::vector<std::uint64_t> RateSearch::ahead() {
  constexpr std::size_t kShare = 8, kSeveral = 6;
  ahead_ = seen_ = 0;
  seen_before_ = seen_after_ = 0;
  // Later the sizes of whole compressions tell more than a few chunks do; and of a small step the
  // sample tells enough.
  constexpr double kLittle = 0.04;
  if (sizes_.size() < 5 || tried_.size() > 1 || !guesses_.empty() ||
      std::fabs(log2_of(whole_size_ / kAim)) <= kLittle) {
    return {};
  }
  const Grid grid(array_.shape, chunk_);
  const auto density = [&](std::size_t chunk) {
    return static_cast<double>(sizes_[chunk]) /
           static_cast<double>(grid.region(chunk).shape.count());
  };
  std::vector<std::size_t> order(sizes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return density(a) < density(b); });
  double before = 0;
  const std::size_t wanted = std::max<std::size_t>(sizes_.size() < kSeveral ? 1 : 2,
                                                   (sizes_.size() + kShare / 2) / kShare);
  std::vector<std::uint64_t> chosen;
  for (const std::size_t chunk : order) {
    before += static_cast<double>(sizes_[chunk]);
    if (before * 2 * static_cast<double>(wanted) >
        whole_bytes_ * static_cast<double>(2 * chosen.size() + 1)) {
      chosen.push_back(chunk);
    }
    if (chosen.size() == wanted) break;
  }
  std::sort(chosen.begin(), chosen.end());
  ahead_ = chosen.size();
  return chosen;
}

bool RateSearch::goes_on(std::uint64_t chunk, std::uint64_t bytes) {
  if (seen_ == ahead_) return true;
  ++seen_;
  seen_before_ += static_cast<double>(sizes_[static_cast<std::size_t>(chunk)]);
  seen_after_ += static_cast<double>(bytes);
  // How far off they may be: to leave them costs what they cost, to go on in vain a whole pass. So
  // the larger a part they are, the nearer to the limits.
  const double sure = 0.003 + 0.015 * seen_before_ / whole_bytes_;
  return seen_ < ahead_ || std::fabs(expected_size() / kAim - 1) <= sure;
}

// Of the compression under way, over what is wanted: changed since the last whole one as much as
// what was seen of it. One chunk may be unlike the others.
double RateSearch::expected_size() const {
  double change = seen_after_ / seen_before_;
  if (seen_ == 1) {
    const double unseen = 1 - seen_before_ / whole_bytes_, expected = kAim / whole_size_;
    change += (expected - change) * unseen / 2;
  }
  return whole_size_ * change;
}

std::optional<double> RateSearch::next_bound() {
  const Point& last = guesses_.empty() ? tried_.back() : guesses_.back();
  const double missing = log2_of(kAim) - last.size;
  const bool alone = tried_.size() + guesses_.size() == 1;
  double wanted = last.bound;
  if (!alone) {
    wanted = by_sizes();
  } else if (samples_.size() > 1) {
    const Point &low = samples_.front(), &high = samples_.back();
    const double slope = std::clamp(
        (evenly(high.size) - evenly(low.size)) / (high.bound - low.bound), kSteepest, kFlattest);
    const double bits =
        last.size + log2_of(8 * target_bytes_ / static_cast<double>(array_.shape.count()));
    wanted =
        within_reach(last.bound + (evenly(bits + missing) - evenly(bits)) / (kFlatter * slope));
  }
  // Larger bounds for smaller sizes, if the sample knows nothing better.
  if (alone && !((wanted - last.bound) * missing < 0)) {
    wanted = last.bound - 2 * missing;
  }
  wanted = within_reach(last.bound + std::clamp(wanted - last.bound, -kSameChoice, kSameChoice));
  if (error_ || std::fabs(wanted - last.bound) < 1e-4) return {};
  return wanted;
}

double RateSearch::forget_if_far(double wanted, double here,
                                 std::vector<pipelines::Choice>* choices) {
  if (std::fabs(wanted - chosen_at_) > kSameChoice && std::fabs(wanted - here) > kSameChoice / 2) {
    choices->clear();
    tried_.clear();
    guesses_.clear();
    sizes_.clear();
  }
  return exp2_of(wanted);
}

std::optional<double> RateSearch::next(double bound_abs, std::uint64_t size,
                                       const std::vector<container::RecordTable::Entry>& records,
                                       std::vector<pipelines::Choice>* choices) {
  const double got = static_cast<double>(size) / target_bytes_;
  // Those within the limits come first, then those too small, then those too large.
  const double off = std::fabs(got - kAim) + (got <= kMost ? 0 : 2) + (got >= kLeast ? 0 : 1);
  if (attempts_ == 0 || off < best_off_) {
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
  whole_size_ = got;
  whole_bytes_ = 0;
  sizes_.clear();
  for (const auto& record : records) {
    sizes_.push_back(record.size);
    whole_bytes_ += static_cast<double>(record.size);
  }
  if (tried_.empty()) chosen_at_ = here;
  tried_.push_back({here, log2_of(got)});
  guesses_.clear();
  const auto wanted = next_bound();
  if (!wanted) return {};
  return forget_if_far(*wanted, here, choices);
}

double RateSearch::instead(double bound_abs, std::vector<pipelines::Choice>* choices) {
  const double here = log2_of(bound_abs);
  guesses_.push_back({here, log2_of(expected_size())});
  return forget_if_far(next_bound().value_or(here), here, choices);
}

Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  RateSearch search(array, options, workers);
  std::vector<pipelines::Choice> choices;
  Watch watch;
  watch.goes_on = [&](std::uint64_t chunk, std::uint64_t bytes) {
    return search.goes_on(chunk, bytes);
  };
  const auto attempt = [&](double bound_abs, Watch* watched) -> Status {
    output.rewind();
    auto plan = plan_for_step(array, options, bound_abs, workers);
    if (!plan) return plan.error();
    return compress(array, *plan, execution, workers, scratch, output, &choices, nullptr, watched);
  };
  const auto first = search.first();
  if (!first) return first.error();
  for (double bound_abs = *first;;) {
    watch.ahead = search.ahead();
    watch.given_up = false;
    if (const Status status = attempt(bound_abs, &watch); !status) return status;
    if (watch.given_up) {
      bound_abs = search.instead(bound_abs, &choices);
      continue;
    }
    const auto next = search.next(bound_abs, output.size(), scratch.entries, &choices);
    if (!next) {
      return search.best_bound() == bound_abs ? std::monostate{}
                                              : attempt(search.best_bound(), nullptr);
    }
    bound_abs = *next;
  }
}

}  // namespace firn::engine
