#include "engine/rate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/elementary.hpp"

namespace firn::engine {
namespace {

constexpr std::uint64_t kSampleShare = 24, kLeastSample = 8192, kMostSample = 1 << 20;
// The bits that a value of the whole takes when one of a sample takes so many. Chunks of boxes have
// more borders, in one dimension hardly so, those of a mask among them, and a sample is not encoded
// in every way. What predicts across borders misses there by about as many codes whatever the
// bound, so that is a third of a bit a value at ratios from 5 to 40, and less only where there are
// hardly any bits.
double bits_of_whole(double bits, const pipelines::Parameters& parameters, int rank) {
  const bool packed = parameters.pipeline == Pipeline::blockpack;
  bits /= (parameters.thorough ? 1.1 : 1) * (parameters.fill ? 1.2 : 1);
  if (rank == 1) return bits / 1.02;
  if (packed) return bits / 1.1;
  // bits = whole + kBorders * whole / (whole + kHardlyAny)
  constexpr double kBorders = 0.33, kHardlyAny = 0.1;
  const double rest = bits - kBorders - kHardlyAny;
  return (rest + std::sqrt(rest * rest + 4 * kHardlyAny * bits)) / 2;
}
// The sizes that hold a ratio (within 1 %), of what it asks for, and the size that is aimed at.
constexpr double kLeast = 0.9903, kMost = 1.01, kAim = 1;
constexpr int kMaxAttempts = 8;
// What the slope of log2 of the size against log2 of the bound may be.
constexpr double kSteepest = -4, kFlattest = -0.02;
// How far from a sample the curve through the samples is trusted, in octaves of the bound.
constexpr double kNear = 0.3;
// How many chunks tell as much of a change of the bound as the sample does, about.
constexpr double kSampleWorth = 0.5;
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

RateSearch::RateSearch(const ArrayView& array, const Options& options, pipelines::Workers& workers,
                       ScratchArray<std::uint8_t>& memory)
    : array_(array), options_(options), workers_(workers), memory_(memory) {
  target_bytes_ =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
}

double RateSearch::take_sample(double log_bound) {
  for (const Point& each : samples_) {
    if (each.bound == log_bound) return each.size;
  }
  const auto plan = plan_for_step(array_, options_, exp2_of(log_bound), workers_);
  if (!plan) {
    error_ = plan.error();
    return 0;
  }
  if (samples_.empty() || std::fabs(log_bound - sample_chosen_at_) > kSameSampleChoice) {
    samples_.clear();
    sample_choices_.clear();
    sample_chosen_at_ = log_bound;
  }
  const double bits = sample_->bits(*plan, workers_, &sample_choices_);
  const Point point{log_bound, log2_of(bits_of_whole(bits, plan->parameters, array_.shape.rank))};
  const auto after = std::find_if(samples_.begin(), samples_.end(),
                                  [&](const Point& each) { return each.bound > log_bound; });
  samples_.insert(after, point);
  return point.size;
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

// The slope of that, for two points.
double slope_of(double rise, double run) { return std::clamp(rise / run, kSteepest, kFlattest); }

double RateSearch::sampled_bound(double log_bits) const {
  const auto [a, b] = segment(&Point::size, log_bits);
  const double slope = slope_of(evenly(b.size) - evenly(a.size), b.bound - a.bound);
  return a.bound + (evenly(log_bits) - evenly(a.size)) / slope;
}

// The log of the bound at which the sample takes about 2^log_bits bits a value.
double RateSearch::solve(double log_bits) {
  constexpr int kSteps = 7;
  double at = highest_ - 10;
  if (samples_.empty()) {
    // A value takes about so much less than a rough look tells, if it is predicted well.
    const double bits = exp2_of(log_bits) + (can_rehearse_ ? 0.3 : -0.3);
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

// A size over what is wanted, or bits a value of that, as log2, on a scale on which it falls
// evenly.
double RateSearch::scaled(double size) const {
  return evenly(size + log2_of(8 * target_bytes_ / static_cast<double>(array_.shape.count())));
}

double RateSearch::sampled_slope() const {
  if (samples_.size() < 2) return -1;
  const Point &low = samples_.front(), &high = samples_.back();
  return slope_of(evenly(high.size) - evenly(low.size), high.bound - low.bound);
}

// Where the sample's curve leads from the first size. If that is far, it is looked at there, for at
// small and at large bounds it bends; if that costs little beside the rest.
double RateSearch::by_sample(const Point& last) {
  constexpr double kFar = 0.2;
  const double rise = scaled(log2_of(kAim)) - scaled(last.size);
  const double step = std::clamp(rise / sampled_slope(), -kSameChoice, kSameChoice);
  const double there = within_reach(last.bound + step), run = there - last.bound;
  if (!can_rehearse_ || std::fabs(last.size) < kFar || std::fabs(run) < kNear) {
    return last.bound + step;
  }
  const double before = evenly(take_sample(last.bound)), after = evenly(take_sample(there));
  return last.bound + rise / slope_of(after - before, run);
}

// Between neighbouring bounds with sizes on both sides of what is wanted, where the line through
// these meets it, or in their middle when that does not lead anywhere. Else where the line through
// the last size and one that is not too near does, for the curve is not smooth, or else the
// sample's slope from the last one.
double RateSearch::by_sizes() const {
  constexpr std::size_t kPatience = 4;
  constexpr double kTooNear = 0.2;
  const double wanted = scaled(log2_of(kAim)), expected = sampled_slope();
  auto points = tried_;
  points.insert(points.end(), guesses_.begin(), guesses_.end());
  const Point last = points.back();
  auto sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& a, const Point& b) { return a.bound < b.bound; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point &below = sorted[i - 1], &above = sorted[i];
    const double high = scaled(below.size), low = scaled(above.size);
    if (high < wanted || low > wanted || high == low) continue;
    const double share = points.size() < kPatience ? (high - wanted) / (high - low) : 0.5;
    return below.bound + share * (above.bound - below.bound);
  }
  for (std::size_t i = points.size() - 1; i-- > 0;) {
    const double run = last.bound - points[i].bound;
    if (std::fabs(run) < kTooNear) continue;
    double slope = (scaled(last.size) - scaled(points[i].size)) / run;
    if (!(slope < expected / 4 && slope > expected * 4)) slope = expected;
    // Steps that fell short again and again were too small: each is twice the last.
    const int short_steps = std::max(0, static_cast<int>(points.size()) - 3);
    return last.bound + (wanted - scaled(last.size)) / slope * exp2_of(short_steps);
  }
  return last.bound + (wanted - scaled(last.size)) / expected;
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
  const Pipeline pipeline = plan->parameters.pipeline;
  can_rehearse_ = pipeline == Pipeline::automatic || pipeline == Pipeline::contexts ||
                  pipeline == Pipeline::interp || pipeline == Pipeline::causal;
  sample_.emplace(array_, plan->header.chunk, fill_,
                  std::clamp(count / kSampleShare, kLeastSample, kMostSample), memory_);
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
  const double wanted = log2_of(8 * kAim * target_bytes_ / static_cast<double>(count));
  double found = solve(wanted);
  if (error_) return *error_;
  rehearses_ = can_rehearse_;
  if (found > lowest_) return exp2_of(found);
  // Perhaps nothing needs to be lost.
  const double bits = sample_->bits(*plan, workers_, nullptr);
  const bool enough = log2_of(bits_of_whole(bits, plan->parameters, array_.shape.rank)) <= wanted;
  rehearses_ = can_rehearse_ && !enough;
  return enough ? 0.0 : exp2_of(found);
}

// Chunks at even steps through the bytes when all are put in order of how much a value of theirs
// takes: what takes much and what takes little changes with the bound in different ways.
std::vector<std::uint64_t> RateSearch::typical(std::size_t wanted) const {
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
  return chosen;
}

std::vector<std::uint64_t> RateSearch::rehearsal() const {
  if (!rehearses_) return {};
  const std::size_t all = static_cast<std::size_t>(Grid(array_.shape, chunk_).count());
  // Half of few chunks tell how the size of all changes, and less of many.
  constexpr std::size_t kFewest = 3, kEnough = 8, kShare = 4;
  if (!sizes_.empty() && all >= kFewest) {
    return typical(std::max(std::min(kEnough, (all + 1) / 2), all / kShare));
  }
  std::vector<std::uint64_t> chunks(all);
  std::iota(chunks.begin(), chunks.end(), std::uint64_t{0});
  return chunks;
}

double RateSearch::rehearsed(double bound_abs, const std::vector<std::uint64_t>& chunks,
                             const std::vector<std::uint64_t>& sizes,
                             std::vector<pipelines::Choice>* choices) {
  // From here a step is small enough to hold the ratio, though a rehearsal is off by a few
  // thousandths and the slope by a tenth or two, the sample's more than that of two sizes. None is
  // better than a very small one, for curves are not smooth.
  const double small_step = tried_.empty() ? 0.07 : 0.1;
  constexpr double kNoStep = 0.006;
  constexpr int kMostRehearsals = 4;
  const double here = log2_of(bound_abs);
  if (sizes_.empty() || sizes.size() == sizes_.size()) {
    note_whole(sizes,
               static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0})));
    if (tried_.empty()) chosen_at_ = here;
    tried_.push_back({here, log2_of(whole_size_)});
  } else {
    seen_ = chunks.size();
    seen_before_ = seen_after_ = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      seen_before_ += static_cast<double>(sizes_[static_cast<std::size_t>(chunks[i])]);
      seen_after_ += static_cast<double>(sizes[i]);
    }
    guesses_.push_back({here, log2_of(expected_size())});
  }
  const double off = (guesses_.empty() ? tried_ : guesses_).back().size;
  rehearses_ = ++rehearsals_ < kMostRehearsals && std::fabs(off) > small_step;
  if (std::fabs(off) < kNoStep) return bound_abs;
  return forget_if_far(next_bound().value_or(here), here, choices);
}

void RateSearch::note_whole(const std::vector<std::uint64_t>& sizes, double stream_bytes) {
  sizes_ = sizes;
  whole_bytes_ = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  whole_size_ = stream_bytes / target_bytes_;
}

std::vector<std::uint64_t> RateSearch::ahead() {
  constexpr std::size_t kShare = 4, kFewest = 3, kSeveral = 6;
  ahead_ = seen_ = 0;
  seen_before_ = seen_after_ = 0;
  // Of a small step the sample tells enough.
  constexpr double kLittle = 0.04;
  if (sizes_.size() < kFewest || given_up_ == kMostGivenUp || rehearsals_ > 0 ||
      std::fabs(log2_of(whole_size_ / kAim)) <= kLittle) {
    return {};
  }
  auto chosen = typical(std::max<std::size_t>(sizes_.size() < kSeveral ? 1 : 2,
                                              (sizes_.size() + kShare / 2) / kShare));
  ahead_ = chosen.size();
  return chosen;
}

bool RateSearch::goes_on(std::uint64_t chunk, std::uint64_t bytes) {
  if (ahead_ == 0) return true;
  ++seen_;
  seen_before_ += static_cast<double>(sizes_[static_cast<std::size_t>(chunk)]);
  seen_after_ += static_cast<double>(bytes);
  if (seen_ < ahead_) return true;
  // How far off they may be: to leave them costs what they cost, to go on in vain a whole pass. So
  // the larger a part they are, the nearer to the limits, which they may reach in the middle.
  const double sure = 0.003 + 0.0134 * seen_before_ / whole_bytes_;
  return std::fabs(expected_size() / kAim - 1) <= sure;
}

// Of the compression under way, over what is wanted. What was not seen of it has changed since the
// last whole one as what was, but the sample, which led here, counts as well.
double RateSearch::expected_size() const {
  const double led = kAim / whole_size_, change = seen_after_ / seen_before_;
  const double others =
      change + (led - change) * kSampleWorth / (kSampleWorth + static_cast<double>(seen_));
  return whole_size_ * (seen_after_ + (whole_bytes_ - seen_before_) * others) / whole_bytes_;
}

std::optional<double> RateSearch::next_bound() {
  const Point last = guesses_.empty() ? tried_.back() : guesses_.back();
  const bool alone = tried_.size() + guesses_.size() == 1;
  // Longer steps where short ones have not led there.
  const double most = kSameChoice * exp2_of(std::max(0, attempts_ - 2));
  const double step = std::clamp((alone ? by_sample(last) : by_sizes()) - last.bound, -most, most);
  const double wanted = within_reach(last.bound + step);
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
    rehearses_ = can_rehearse_;
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
    rehearses_ = can_rehearse_;
    // The sample promised too much. One bit for each doubling of the bound, then.
    const double bits = 8 * (got - 1) * target_bytes_ / static_cast<double>(array_.shape.count());
    return exp2_of(within_reach(lowest_ + bits));
  }
  const double here = log2_of(bound_abs);
  if (here >= highest_ && got > 1) return {};
  std::vector<std::uint64_t> sizes;
  for (const auto& record : records) sizes.push_back(record.size);
  note_whole(sizes, static_cast<double>(size));
  if (tried_.empty()) chosen_at_ = here;
  tried_.push_back({here, log2_of(got)});
  guesses_.clear();
  const auto wanted = next_bound();
  if (!wanted) return {};
  return forget_if_far(*wanted, here, choices);
}

double RateSearch::instead(double bound_abs, std::vector<pipelines::Choice>* choices) {
  const double here = log2_of(bound_abs);
  ++given_up_;
  guesses_.push_back({here, log2_of(expected_size())});
  return forget_if_far(next_bound().value_or(here), here, choices);
}

Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  RateSearch search(array, options, workers, scratch.sample);
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
  std::vector<std::uint64_t> sizes;
  for (double bound_abs = *first;;) {
    if (const auto chunks = search.rehearsal(); !chunks.empty()) {
      auto plan = plan_for_step(array, options, bound_abs, workers);
      if (!plan) return plan.error();
      const Status status = rehearse(array, *plan, execution, workers, chunks, &choices, &sizes);
      if (!status) return status;
      bound_abs = search.rehearsed(bound_abs, chunks, sizes, &choices);
      continue;
    }
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
