#include "engine/rate_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/elementary.hpp"

namespace firn::engine {
namespace {

// The sample; it may be smaller where it costs more, and rehearsals follow.
constexpr std::uint64_t kSampleShare = 24, kSmallSampleShare = 40;
constexpr std::uint64_t kLeastSample = 8192, kLeastSmallSample = 4096, kMostSample = 1 << 20;
// What a rough look tells when a value takes so many bits, in the median of many fields: it sees
// more than what is left for contexts, and less than whole blocks take.
double rough_bits(double bits, bool automatic, Preset preset) {
  if (automatic) return bits + (preset == Preset::small ? 0.6 : 0.35);
  return std::max(bits - 0.6, 0.6 * bits);
}
// So many compressions may be given up on the way.
constexpr int kOften = 4;
constexpr int kMaxAttempts = 8;
// And ways be chosen anew where those of elsewhere take too much.
constexpr int kMostChosenAnew = 3;
// What does not do, as long as there may be something nearer.
constexpr double kFarTooSmall = 0.9;
// How near a bound is the same, in octaves.
constexpr double kSame = 1e-3;
// Chunks keep the way they were encoded in under bounds that are not further apart.
constexpr double kSameChoice = 2;

// Of two sizes over what is wanted: those within the limits come first, then those too small, then
// those too large.
bool is_better(double size, double other) {
  const auto kind = [](double each) { return each > kMostSize ? 2 : each < kLeastSize ? 1 : 0; };
  if (kind(size) != kind(other)) return kind(size) < kind(other);
  return std::fabs(size - 1) < std::fabs(other - 1);
}

}  // namespace

RateSearch::RateSearch(const ArrayView& array, const Options& options, const Shape& pieces,
                       pipelines::Workers& workers)
    : array_(array),
      options_(options),
      workers_(workers),
      bounds_(array, options, pieces, workers) {
  target_bytes_ =
      static_cast<double>(array.shape.count() * size_of(array.type)) / options.bound.value;
}

// The log of the bound at which the sample takes about 2^log_bits bits a value.
double RateSearch::solve(double log_bits) {
  // Where one is much work, few, unless they lead nowhere.
  constexpr int kSteps = 7, kFewSteps = 3;
  constexpr double kNowhere = 0.7;
  // How far beyond the samples one may be, in octaves; and when those contradict each other.
  constexpr double kFarthest = 6, kOnwards = 1;
  constexpr double kTrusted = SampledCurve::kTrusted;
  const double trusted = rehearses_ ? 2 * kTrusted : kTrusted;
  const std::vector<SampledCurve::Point>& points = sampled_->points();
  const double rough = rough_bits(exp2_of(log_bits), automatic_, options_.preset);
  double at = 0, low = bounds_.lowest(), high = bounds_.highest();
  for (int halvings = 0; halvings < 8; ++halvings) {
    at = (low + high) / 2;
    (sampled_->whole().bits(exp2_of(at)) > rough ? low : high) = at;
  }
  const double looked = at;
  // With these it takes more, and less.
  double finer = bounds_.lowest() - kOnwards, coarser = bounds_.highest() + kOnwards;
  for (int step = 0; step < kSteps; ++step) {
    if (points.size() == 1) {
      // One bit for each doubling of the bound, and more of those where there are few bits.
      const SampledCurve::Point& known = points[0];
      const double away = exp2_of(known.size) - exp2_of(log_bits) + (known.size - log_bits);
      // Far enough to tell how steep the curve is.
      const double least = away < 0 ? -kTrusted : kTrusted;
      at = known.bound + (std::fabs(away) < kTrusted ? least : away);
    } else if (points.size() > 1) {
      at = sampled_->bound_for(log_bits);
    }
    if (!points.empty()) {
      at = std::clamp(at, points.front().bound - kFarthest, points.back().bound + kFarthest);
    }
    const double middle = (finer + coarser) / 2;
    if (at <= finer) at = std::min(finer + kOnwards, middle);
    if (at >= coarser) at = std::max(coarser - kOnwards, middle);
    at = bounds_.within_reach(at);
    const Try attempt = bounds_.with_reserve(at);
    if (attempt.stair != 1) at = attempt.step();
    if (sampled_->has_near(at, points.size() > 1 ? trusted : kSame)) break;
    const double size = sampled_->take(at, bounds_.plan(attempt), workers_);
    (size > log_bits ? finer : coarser) = at;
    if (bounds_.is_lowest(at) && size < log_bits && !bounds_.is_deeper()) {
      bounds_.go_deeper();
      finer = bounds_.lowest() - kOnwards;
    }
    if (automatic_ && step + 1 >= kFewSteps && std::fabs(size - log_bits) < kNowhere) break;
  }
  if (points.size() < 2) return at;
  double found = std::clamp(sampled_->bound_for(log_bits), points.front().bound - kFarthest,
                            points.back().bound + kFarthest);
  // Where blocks are packed, what was looked at errs in other ways than the sample does.
  constexpr double kLook = 0.35;
  if (rehearses_ && !automatic_) found += kLook * (looked - found);
  return bounds_.within_reach(found);
}

// Of a value, log2.
double RateSearch::bits_wanted() const {
  return log2_of(8 * target_bytes_ / static_cast<double>(array_.shape.count()));
}

// A small stream may be over before its chunks begin.
double RateSearch::bytes_for_chunks(double other_bytes) const {
  return std::max(target_bytes_ - other_bytes, 1.0);
}

Result<RateSearch::Try> RateSearch::first() {
  if (const Status status = bounds_.begin(); !status) return status.error();
  const std::uint64_t count = array_.shape.count();
  if (count == 0) return Try{};
  const plan::Plan& plan = bounds_.plan();
  const auto& fill = plan.parameters.fill;
  // Elsewhere a rehearsal is no less work than a compression.
  automatic_ = plan.parameters.pipeline == Pipeline::automatic;
  rehearses_ = automatic_ || plan.parameters.pipeline == Pipeline::blockpack;
  const bool perhaps_lossless = options_.bound.value < most_lossless(array_.type, options_.preset);
  const std::uint64_t values =
      automatic_
          ? std::max(count / kSmallSampleShare, perhaps_lossless ? kLeastSample : kLeastSmallSample)
          : std::max(count / kSampleShare, kLeastSample);
  sampled_.emplace(array_, plan.header.chunk, fill, std::min(values, kMostSample));
  const Roughness& whole = sampled_->whole();
  // The values seen tell the range well enough, unless they are all the same.
  const bool all = !(whole.high() > whole.low());
  const auto range =
      all ? plan::value_range(array_, fill, workers_) : plan::ValueRange{whole.low(), whole.high()};
  only_lossless_ = !bounds_.set_values(range.low, range.high, all, whole.small_magnitude());
  if (only_lossless_) return Try{};
  // For one who packs blocks a try is as much work as ten compressions, and how much of an array is
  // masked is not seen well. Where values repeat, boxes may take less than chunks do.
  constexpr double kLikely = 1.05, kLikelyRepeating = 0.95, kVeryLikely = 0.9;
  const double likely = !automatic_ && fill                         ? kVeryLikely
                        : options_.bound.value > kUsualMostLossless ? kLikelyRepeating
                                                                    : kLikely;
  if (perhaps_lossless && may_be_lossless(likely)) return Try{};
  return lossy();
}

// Perhaps nothing needs to be lost, as boxes tell. For one who packs blocks that is much work, and
// often a few do.
bool RateSearch::may_be_lossless(double most) const {
  struct Look {
    double upto;  // this share of the boxes
    double most;  // over what is wanted
  };
  // Half of many tell as much as all; those of lines are small.
  constexpr std::uint64_t kMany = 8;
  const bool half = !automatic_ && array_.shape.rank > 1 && sampled_->sample().boxes() >= kMany;
  const double upto = half ? 0.5 : 1;
  const Look looks[] = {{0.2 * upto, most + 0.75}, {0.5 * upto, most + 0.25}, {upto, most}};
  const double wanted = exp2_of(bits_wanted());
  double from = 0;
  Bits seen;
  for (const Look& look : looks) {
    if (automatic_ && look.upto < upto) continue;
    seen.add(sampled_->sample().lossless_bits(bounds_.plan(), workers_, from, look.upto));
    if (seen.each() > look.most * wanted) return false;
    from = look.upto;
  }
  return true;
}

RateSearch::Try RateSearch::lossy() {
  const double found = solve(bits_wanted());
  Try result = bounds_.with_reserve(found);
  // One of few steps does not meet a size, several chunks with some of them do.
  constexpr unsigned kFewSteps = 16;
  const bool few = result.stair == 0 || 256 - result.finer < kFewSteps * result.stair;
  if (few) bounds_.cut();
  result.rehearsal = rehearses_;
  return result;
}

// Of evenly(), where the search is: as two compressions tell, unless they are too near each other,
// or else the samples.
double RateSearch::slope() const {
  constexpr double kApart = 0.5, kApartAlike = 0.2, kUnlike = 2;
  // Or as far in size.
  constexpr double kLarger = 0.1, kLargerAlike = 0.06;
  double sampled = -1;
  if (const auto& points = sampled_->points(); points.size() > 1) {
    sampled = sampled_->slope();
    // Two that are near each other tell less than a rough look at the whole.
    constexpr double kFull = 0.5, kBelow = 1, kAbove = 0.5;
    if (automatic_) {
      const double run = points.back().bound - points.front().bound;
      const double at = points_.empty() ? points.front().bound : points_.back().bound;
      const auto look = [&](double bound) {
        return evenly(log2_of(sampled_->whole().bits(bounds_.bound_of(bound))));
      };
      const double rough = (look(at + kAbove) - look(at - kBelow)) / (kAbove + kBelow);
      sampled = std::min((run * sampled + kFull * rough) / (run + kFull), SampledCurve::kFlattest);
    }
  }
  // Where values have many bits a leap is not a slope.
  constexpr double kSteepest = -1.25;
  if (bounds_.on_stairs()) sampled = std::max(sampled, kSteepest);
  for (std::size_t i = points_.size(); i-- > 1;) {
    const Point &last = points_.back(), &other = points_[i - 1];
    const double run = last.bound - other.bound;
    const bool alike = last.rehearsal == other.rehearsal && last.sure == other.sure;
    if (std::fabs(run) < (alike ? kApartAlike : kApart) &&
        std::fabs(last.size - other.size) < (alike ? kLargerAlike : kLarger)) {
      continue;
    }
    const double bits = bits_wanted();
    const double seen = (evenly(last.size + bits) - evenly(other.size + bits)) / run;
    return std::clamp(seen, kUnlike * sampled, sampled / kUnlike);
  }
  return sampled;
}

RateSearch::Wanted RateSearch::wanted(double other_bytes) const {
  if (!automatic_) return {};
  constexpr double kSure = 0.0005;
  const double bytes = bytes_for_chunks(other_bytes);
  return {bytes * (kLeastSize + kSure), bytes * (kMostSize - kSure)};
}

Pass RateSearch::pass(const Try& attempt, std::vector<std::uint64_t> values,
                      double other_bytes) const {
  constexpr int kSometimes = 2;
  constexpr unsigned kFinest = 144;  // 256ths of what is expected
  Pass::Goal goal{};
  goal.bytes = bytes_for_chunks(other_bytes);
  if (attempt.bound_abs == 0) {
    goal.lossless = true;
    goal.try_coarser = !only_lossless_ && !is_last_ && !lossless_given_up_;
    return {std::move(values), {}, goal};
  }
  goal.step = log2_of(attempt.bound_abs);
  goal.finer = attempt.finer;
  goal.finest = attempt.finer + (256 - attempt.finer) * kFinest / 256;
  goal.coarsest = attempt.finer - std::min(attempt.finer, (256 - attempt.finer) / 2);
  goal.stair = attempt.stair;
  if (goal.stair != 1) {
    // The next ones are further away.
    goal.finest = attempt.finer + (256 - attempt.finer) / 2;
    goal.coarsest = attempt.finer - std::min(attempt.finer, 256 - attempt.finer);
  }
  goal.slope = slope();
  goal.try_coarser = goal.step < bounds_.highest() && given_up_ < kOften;
  goal.try_finer = given_up_ < kSometimes;
  return {std::move(values), sizes_, goal};
}

// Between neighbouring bounds with sizes on both sides of what is wanted, where the line through
// these meets it, or in their middle when that does not lead anywhere. Else where the slope leads
// from the last one.
std::optional<double> RateSearch::next_bound() {
  constexpr std::size_t kPatience = 4;
  const Point last = points_.back();
  auto sorted = points_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Point& a, const Point& b) { return a.bound < b.bound; });
  const double bits = bits_wanted();
  // What comes out too small is made larger with less loss than the other way round.
  const double aim = sizes_.size() == 1 ? 0 : -0.08 * std::fabs(last.size);
  const double rise = evenly(bits + aim) - evenly(bits + last.size);
  double wanted = last.bound + rise / slope();
  bool between = false;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Point &below = sorted[i - 1], &above = sorted[i];
    if (below.size < 0 || above.size > 0) continue;
    const double high = evenly(bits + below.size), low = evenly(bits + above.size);
    const double share =
        points_.size() < kPatience ? (high - evenly(bits + aim)) / (high - low) : 0.5;
    wanted = below.bound + share * (above.bound - below.bound);
    between = true;
    break;
  }
  // Further away where two tell the slope, and where there are many bits, of which an octave is a
  // small part.
  constexpr double kFarther = 3 * kSameChoice, kBitsPerOctave = 4;
  const double most =
      points_.size() > 1 ? kFarther : std::max(kSameChoice, exp2_of(bits) / kBitsPerOctave);
  if (!between) wanted = last.bound + std::clamp(wanted - last.bound, -most, most);
  // Compressions that came to their end are remembered longer than points.
  const bool known = too_large_at_ < too_small_at_ && std::isfinite(too_small_at_ - too_large_at_);
  if (known && (wanted <= too_large_at_ || wanted >= too_small_at_)) {
    wanted = (too_large_at_ + too_small_at_) / 2;
  }
  wanted = bounds_.within_reach(wanted);
  if (std::fabs(wanted - last.bound) < 1e-4) return {};
  return wanted;
}

// Whether it takes much more than the steepest or flattest slope from another bound leads to: then
// ways that were chosen elsewhere are not good here.
bool RateSearch::is_dear(const Point& here) const {
  constexpr double kNear = 2.1, kLeap = 1, kFlattest = 0.5;
  const double bits = exp2_of(bits_wanted() + here.size);
  return std::any_of(points_.begin(), points_.end(), [&](const Point& other) {
    const double run = other.bound - here.bound;
    const double rise = run * (run > 0 ? -SampledCurve::kSteepest : kFlattest);
    return std::fabs(run) < kNear && bits - exp2_of(bits_wanted() + other.size) > kLeap + rise;
  });
}

void RateSearch::choose_anew(std::vector<pipelines::Choice>* choices) {
  choices->clear();
  sizes_.clear();
  chosen_anew_ = true;
}

void RateSearch::forget_if_far(double wanted, double here,
                               std::vector<pipelines::Choice>* choices) {
  if (std::fabs(wanted - chosen_at_) <= kSameChoice ||
      std::fabs(wanted - here) <= kSameChoice / 2) {
    return;
  }
  choices->clear();
  chosen_anew_ = true;
  for (Point& point : points_) point.sure = false;
}

std::optional<RateSearch::Try> RateSearch::next(const Try& attempt, const Pass& pass,
                                                std::vector<pipelines::Choice>* choices) {
  const bool was_last = is_last_;
  const auto result = after(attempt, pass, choices);
  if (was_last) return {};
  return result || best_size_ <= kMostSize ? result : last_resort(choices);
}

// What comes out too large, however coarse the bound, may do so in ways that were chosen elsewhere;
// and near the last bits of values more than when nothing is lost.
std::optional<RateSearch::Try> RateSearch::last_resort(std::vector<pipelines::Choice>* choices) {
  if (!only_lossless_ && !fresh_at_highest_) return afresh_at_highest(choices);
  const double reached = options_.bound.value / best_size_;
  if (lossless_failed_ || reached > most_lossless(array_.type, options_.preset)) return {};
  is_last_ = true;
  return Try{};
}

RateSearch::Try RateSearch::afresh_at_highest(std::vector<pipelines::Choice>* choices) {
  fresh_at_highest_ = true;
  choose_anew(choices);
  return bounds_.with_reserve(bounds_.highest());
}

std::optional<RateSearch::Try> RateSearch::after(const Try& attempt, const Pass& pass,
                                                 std::vector<pipelines::Choice>* choices) {
  constexpr int kEnough = 3;
  const double got = pass.size();
  const bool lossless = attempt.bound_abs == 0;
  best_ = false;
  if (lossless && pass.given_up()) {
    lossless_given_up_ = true;
    return after_lossless();
  }
  if (!pass.given_up()) {
    const bool small_enough = got <= kMostSize;
    // When nothing is lost, it need not be larger.
    const double size = lossless && small_enough ? 1 : got;
    best_ = attempts_ == 0 || is_better(size, best_size_);
    if (best_) best_size_ = size;
    if (!lossless && got > kMostSize) too_large_at_ = std::max(too_large_at_, pass.step());
    if (!lossless && got < kLeastSize) too_small_at_ = std::min(too_small_at_, pass.step());
    ++attempts_;
    if (!lossless) tried_.push_back(attempt.step());
    if (lossless && !small_enough) {
      lossless_failed_ = true;
      return only_lossless_ ? std::nullopt : after_lossless();
    }
    if (lossless || pass.met()) return {};
    // Where sizes leap, one that is a little too small must do, after a while less little.
    constexpr double kLittle = 0.025;
    const double little = std::min(kLittle * exp2_of(attempts_ - kEnough), 1 - kFarTooSmall);
    if (attempts_ >= kEnough && best_size_ <= kMostSize && best_size_ > 1 - little) return {};
    if (attempts_ >= kMaxAttempts)
      return best_size_ <= kMostSize ? between(choices) : coarser(attempt);
    // Keeps one of the others, for the slope, unless it is too near for that.
    constexpr double kNear = 0.25;
    while (!points_.empty() && !points_.back().sure &&
           (points_.size() > 1 || std::fabs(points_.back().bound - pass.step()) < kNear)) {
      points_.pop_back();
    }
  }
  given_up_ += pass.given_up();
  const auto result =
      better({pass.step(), log2_of(got), !pass.given_up()}, attempt, pass.sizes(), choices);
  if (result) return result;
  if (attempts_ > 0) return best_size_ <= kMostSize ? between(choices) : coarser(attempt);
  // One must come to its end.
  given_up_ = kOften;
  Try again = attempt;
  again.rehearsal = false;
  return again;
}

// By the samples, or, where these led to a lossless one, with the least loss.
std::optional<RateSearch::Try> RateSearch::after_lossless() {
  return sampled_->points().empty() ? lossy() : bounds_.with_reserve(bounds_.lowest());
}

// On stairs one comes back to the same steps. The second time what chunks take is better known.
bool RateSearch::is_known(const Try& attempt) const {
  constexpr int kTwice = 2;
  const double step = attempt.step();
  return attempt.stair != 1 && std::count_if(tried_.begin(), tried_.end(), [&](double other) {
                                 return std::fabs(step - other) < kSame;
                               }) >= kTwice;
}

// Where sizes leap, what is small enough may be far too small: halfway to what is too large.
std::optional<RateSearch::Try> RateSearch::between(std::vector<pipelines::Choice>* choices) {
  constexpr double kNear = 0.25;
  constexpr int kTimes = 6;
  if (best_size_ > kFarTooSmall) return {};
  const double low = std::max(too_large_at_, log2_of(plan::least_bound(array_.type)));
  if (times_between_++ < kTimes && low + kNear < too_small_at_) {
    const Try middle = bounds_.with_reserve((low + too_small_at_) / 2);
    if (!is_known(middle)) {
      choose_anew(choices);
      return middle;
    }
  }
  constexpr double kPossible = 1.2;
  if (lossless_failed_ || !may_be_lossless(kPossible)) return {};
  is_last_ = true;
  return Try{};
}

// The ratio comes before the bound: ever further from what was almost small enough.
std::optional<RateSearch::Try> RateSearch::coarser(const Try& last) {
  constexpr double kFirst = 0.125;
  constexpr int kTimes = 9;
  if (points_.empty() || times_coarser_ == kTimes) return {};
  const auto least = std::min_element(
      points_.begin(), points_.end(),
      [](const Point& a, const Point& b) { return std::fabs(a.size) < std::fabs(b.size); });
  const double from = times_coarser_ == 0 ? least->bound : last.step();
  for (bool first = times_coarser_ == 0; times_coarser_ < kTimes; first = false) {
    const double step = bounds_.within_reach(from + kFirst * exp2_of(times_coarser_++));
    const Try result = bounds_.with_reserve(step);
    if (!is_known(result)) {
      return first || step > last.step() + kSame ? std::optional(result) : std::nullopt;
    }
  }
  return {};
}

RateSearch::Try RateSearch::next(const Try& attempt, std::vector<ChunkSize> sizes,
                                 double other_bytes, std::vector<pipelines::Choice>* choices) {
  double bytes = 0;
  for (const ChunkSize& each : sizes) bytes += each.bytes;
  const double size = log2_of(bytes / bytes_for_chunks(other_bytes));
  const double step = attempt.step();
  auto result = better({step, size, false, true}, attempt, std::move(sizes), choices);
  // Few chunks cannot be led far to the size, so that the bound is to be found first.
  constexpr std::size_t kFewChunks = 4;
  constexpr int kMostRehearsals = 3, kMostOfSingle = 6;
  // How far off the next compression may be, with a slope that samples tell or rehearsals do. Where
  // a rehearsal is most of a compression, giving up a few chunks of one is less work.
  constexpr double kFair = 0.003, kNear = 0.15, kNearTwo = 0.3, kNearMany = 0.25, kNearBlocks = 1.5,
                   kNearOnStairs = 0.2;
  if (!result || std::fabs(size) < kFair) return bounds_.with_reserve(step);
  if (result->bound_abs == 0) return *result;
  // Differences are soon chosen anew.
  constexpr double kFar = 0.5;
  if (!automatic_ && std::fabs(result->step() - step) > kFar) choices->clear();
  double near = bounds_.on_stairs() ? kNearOnStairs : kNearBlocks;
  if (automatic_ && sizes_.size() >= kFewChunks) {
    near = kNearMany;
  } else if (automatic_) {
    near = rehearsals_ > 0 ? kNearTwo : kNear;
  }
  // A single one is finished when it comes out right.
  const bool single = automatic_ && sizes_.size() == 1;
  ++rehearsals_;
  result->rehearsal = single ? rehearsals_ < kMostOfSingle
                             : rehearsals_ < kMostRehearsals && std::fabs(size) > near;
  return *result;
}

std::optional<RateSearch::Try> RateSearch::better(const Point& here, const Try& attempt,
                                                  std::vector<ChunkSize> sizes,
                                                  std::vector<pipelines::Choice>* choices) {
  if (bounds_.is_lowest(here.bound) && here.size < log2_of(kLeastSize)) {
    // Or perhaps nothing needs to be lost.
    if (bounds_.is_deeper()) return lossless_failed_ ? std::nullopt : std::optional(Try{});
    bounds_.go_deeper();
  }
  constexpr double kRounding = 1e-9;
  if (attempt.step() >= bounds_.highest() - kRounding && here.size > 0) {
    // The ways that were good elsewhere may not be the best here.
    if (chosen_anew_ || fresh_at_highest_) return {};
    return afresh_at_highest(choices);
  }
  if (!chosen_anew_ && is_dear(here) && times_chosen_anew_++ < kMostChosenAnew) {
    std::erase_if(points_, [&](const Point& each) { return each.chosen_at == chosen_at_; });
    choose_anew(choices);
    return bounds_.with_reserve(attempt.step());
  }
  if (std::exchange(chosen_anew_, false)) chosen_at_ = here.bound;
  sizes_ = std::move(sizes);
  points_.push_back(here);
  points_.back().chosen_at = chosen_at_;
  auto wanted = next_bound();
  if (!wanted) return {};
  const Try result = bounds_.with_reserve(*wanted);
  if (here.sure && is_known(result)) return {};
  forget_if_far(*wanted, here.bound, choices);
  return result;
}

}  // namespace firn::engine
