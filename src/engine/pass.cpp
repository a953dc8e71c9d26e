#include "engine/pass.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/elementary.hpp"
#include "base/spread.hpp"

namespace firn::engine {
namespace {

constexpr double kLn2 = 0.6931471805599453;

// log2, about: it is for sizes that are not known to a percent, of all chunks, several times.
double rough_log2(double ratio) {
  const double t = (ratio - 1) / (ratio + 1), square = t * t;
  return 2 / kLn2 * t * (1 + square * (1.0 / 3 + square * (0.2 + square / 5)));
}

// The bits b' for which evenly() is as much larger than for b, by Newton's way.
double bits_after(double bits, double rise) {
  double after = bits;
  for (int i = 0; i < 3; ++i) {
    const double missing = rise - (after - bits) - rough_log2(after / bits);
    after = std::max(after + missing / (1 + 1 / (after * kLn2)), bits / 16);
  }
  return after;
}

// By how much a step that is smaller by so many 256ths is smaller, log2.
double log2_of_finer(unsigned finer) {
  static const auto logs = [] {
    std::array<double, 256> result{};
    for (unsigned i = 0; i < 256; ++i) result[i] = log2_of((256 - static_cast<double>(i)) / 256);
    return result;
  }();
  return logs[finer];
}

}  // namespace

double evenly(double log_bits) { return exp2_of(log_bits) + log_bits; }

Pass::Pass(std::vector<std::uint64_t> values, std::vector<ChunkSize> before, const Goal& goal)
    : values_(std::move(values)),
      before_(std::move(before)),
      now_(values_.size()),
      expected_(values_.size()),
      encodings_(values_.size()),
      taken_(values_.size()),
      goal_(goal) {
  order_.resize(values_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  first_ = order_.size();
  for (unsigned finer = goal_.coarsest; finer <= goal_.finest; ++finer) {
    const unsigned step = 256 - finer;
    const bool multiple = goal_.stair != 0 && step % goal_.stair == 0;
    if (multiple || std::has_single_bit(step)) stairs_.push_back(finer);
  }
  goal_.coarsest = stairs_.front();
  goal_.finest = stairs_.back();
  if (!before_.empty()) {
    put_in_order();
  } else if (goal_.lossless && goal_.try_coarser) {
    put_apart();
    // One or two may be of a kind of their own.
    constexpr std::size_t kShare = 8, kSeveral = 3;
    first_ = std::min(order_.size(), std::max(order_.size() / kShare, kSeveral));
    if (order_.size() <= kSeveral + 1) first_ = order_.size();
  }
}

// So that no few that follow each other lie in one row or plane of the chunks.
void Pass::put_apart() {
  const std::size_t count = order_.size();
  std::vector<bool> taken(count);
  std::size_t placed = 0;
  for (std::uint64_t i = 0; placed < count && i < 4 * count; ++i) {
    const auto chunk = static_cast<std::size_t>(spread(i + 1, count));
    if (!taken[chunk]) order_[placed++] = chunk;
    taken[chunk] = true;
  }
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    if (!taken[chunk]) order_[placed++] = chunk;
  }
}

// By how much a value takes, then so that the first few, and those after them, are of every kind:
// what takes much and what takes little changes with the bound in different ways.
void Pass::put_in_order() {
  constexpr std::size_t kShare = 8, kSeveral = 8;
  for (const std::size_t chunk : order_) expect(chunk);
  const bool within_reach =
      std::all_of(before_.begin(), before_.end(), [&](const ChunkSize& known) {
        return known.step <= step_of(goal_.coarsest) && known.step >= step_of(goal_.finest);
      });
  can_be_small_ = within_reach && all_before_ <= goal_.bytes;
  can_be_large_ = within_reach && all_before_ >= goal_.bytes;
  std::vector<std::size_t> sorted = order_;
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return before_[a].bytes * values(b) < before_[b].bytes * values(a);
  });
  first_ = std::max<std::size_t>(order_.size() < kSeveral ? 1 : 2, order_.size() / kShare);
  // The first ones at even steps through the bytes.
  order_.clear();
  std::vector<std::size_t> others;
  double bytes = 0;
  for (const std::size_t chunk : sorted) {
    bytes += before_[chunk].bytes;
    const bool take =
        order_.size() < first_ && bytes * 2 * static_cast<double>(first_) >
                                      all_before_ * static_cast<double>(2 * order_.size() + 1);
    (take ? order_ : others).push_back(chunk);
  }
  first_ = order_.size();
  // The others at ever smaller steps.
  std::vector<bool> taken(others.size());
  for (std::size_t step = std::max<std::size_t>(1, others.size()); step > 0; step /= 2) {
    for (std::size_t i = step / 2; i < others.size(); i += step) {
      if (!taken[i]) order_.push_back(others[i]);
      taken[i] = true;
    }
  }
}

template <class BytesOf>
unsigned Pass::least_finer(unsigned coarsest, double bytes, BytesOf bytes_of) const {
  auto low = std::lower_bound(stairs_.begin(), stairs_.end() - 1, coarsest),
       high = stairs_.end() - 1;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (bytes_of(*middle) < bytes) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return *low;
}

double Pass::step_of(unsigned finer) const { return goal_.step + log2_of_finer(finer); }

// Near the bound's step: what a chunk takes, and how that changes with the step.
Pass::Forecast Pass::forecast(const ChunkSize& known, std::size_t chunk) const {
  const double bits =
      bits_after(8 * known.bytes / values(chunk), goal_.slope * (goal_.step - known.step));
  const double rate = goal_.slope / (bits + 1 / kLn2);  // of the logarithm
  Forecast result;
  result.bytes[0] = bits / 8 * values(chunk);
  result.bytes[1] = result.bytes[0] * rate;
  result.bytes[2] = result.bytes[1] * rate / 2;
  return result;
}

double Pass::bytes_of(const Forecast& forecast, unsigned finer) const {
  const double run = log2_of_finer(finer);
  return forecast.bytes[0] + run * (forecast.bytes[1] + run * forecast.bytes[2]);
}

// What is not encoded differs from the forecast as what is encoded does. Half of that it has of its
// own.
double Pass::change() const {
  const auto seen = static_cast<double>(done_);
  return seen_forecast_ == 0 ? 1 : 1 + (seen_ / seen_forecast_ - 1) * seen / (seen + 1);
}

// By how much more than expected sizes have changed from what they were before.
double Pass::steepness() const {
  constexpr double kApart = 0.3, kMost = 1.5;
  double expected = 0, seen = 0, run = 0;
  for (std::size_t chunk = 0; chunk < before_.size(); ++chunk) {
    const ChunkSize &before = before_[chunk], &now = now_[chunk];
    const double from = 8 * before.bytes / values(chunk), to = 8 * now.bytes / values(chunk);
    expected += goal_.slope * (now.step - before.step) * now.bytes;
    seen += (to - from + rough_log2(to / from)) * now.bytes;
    run += (now.step - before.step) * now.bytes;
  }
  if (std::fabs(run) < kApart * seen_) return 1;
  return std::clamp(seen / expected, 1 / kMost, kMost);
}

// Of all chunks: what is encoded, and what is not if its step is as much finer.
double Pass::expected_bytes(unsigned finer) const {
  if (done_ == order_.size()) return seen_;
  return seen_ + change() * bytes_of(rest_, finer);
}

std::vector<ChunkSize> Pass::sizes() const {
  std::vector<ChunkSize> result = now_;
  for (std::size_t i = done_; i < order_.size(); ++i) {
    const std::size_t chunk = order_[i];
    const double bytes = bytes_of(expected_[chunk], goal_.finer);
    result[chunk] = {step_of(goal_.finer), change() * bytes};
  }
  return result;
}

double Pass::step() const {
  if (given_up_ || seen_ == 0) return step_of(goal_.finer);
  double sum = 0;
  for (const ChunkSize& each : now_) sum += each.step * each.bytes;
  return sum / seen_;
}

// The coarsest step decides what all promise.
unsigned Pass::usual_coarsest() const {
  const unsigned usual = goal_.finer - std::min(goal_.finer, (256 - goal_.finer) / 8);
  return *std::lower_bound(stairs_.begin(), stairs_.end() - 1, usual);
}

Pass::Wave Pass::wave(std::size_t end, unsigned finer) const {
  Wave result;
  result.finer = finer;
  for (std::size_t i = done_; i < end; ++i) result.chunks.push_back(order_[i]);
  std::sort(result.chunks.begin(), result.chunks.end());
  return result;
}

Pass::Wave Pass::next() {
  if (done_ == order_.size()) return mend();
  if (done_ == 0) return wave(first_, goal_.finer);
  const std::size_t third = done_ + (order_.size() - done_ + 2) / 3;
  if (goal_.lossless) {
    given_up_ = too_large_by_values();
    return given_up_ ? Wave{} : wave(third, 0);
  }
  // How far the expected size may be from the limits when nothing of it is certain; and from what
  // is wanted, for nothing to be done.
  constexpr double kUncertain = 0.006, kFair = 0.005;
  const double unseen = 1 - seen_before_ / all_before_;
  const double uncertain = kUncertain * unseen;
  // With the same step for all.
  const auto with_all = [&](unsigned finer) {
    return (bytes_of(seen_now_, finer) + change() * bytes_of(rest_, finer)) / goal_.bytes;
  };
  if ((goal_.try_coarser && !can_be_small_ && with_all(goal_.coarsest) > kMostSize - uncertain) ||
      (goal_.try_finer && !can_be_large_ && with_all(goal_.finest) < kLeastSize + uncertain)) {
    given_up_ = true;
    return {};
  }
  unsigned finer = goal_.finer;
  if (std::fabs(size() - 1) > kFair) {
    const bool usual = expected_bytes(usual_coarsest()) < kMostSize * goal_.bytes;
    finer = least_finer(usual ? usual_coarsest() : goal_.coarsest, goal_.bytes,
                        [&](unsigned each) { return expected_bytes(each); });
  }
  // The first ones are few, and should not be much coarser than all others.
  constexpr unsigned kApart = 12;
  if (done_ == first_ && !begun_again_ && unseen > 0.75 && finer > goal_.finer + kApart) {
    const unsigned all = least_finer(goal_.coarsest, 1, with_all);
    if (with_all(all) <= kMostSize) {
      begin_again(all);
      return wave(first_, goal_.finer);
    }
  }
  return wave(third, stair_for(finer, third));
}

// Between the stairs on both sides of what is wanted: so that those after these can make up for it.
unsigned Pass::stair_for(unsigned finer, std::size_t end) const {
  const auto stair = std::lower_bound(stairs_.begin(), stairs_.end() - 1, finer);
  if (goal_.stair == 1 || stair == stairs_.begin()) return finer;
  const double low = expected_bytes(stair[-1]), high = expected_bytes(finer);
  if (high <= goal_.bytes) return finer;
  const double share =
      static_cast<double>(end - done_) / static_cast<double>(order_.size() - done_);
  return (goal_.bytes - low) / (high - low) < std::min(share, 0.5) ? stair[-1] : finer;
}

// Of chunks of which nothing is known: the others take as much as those that are encoded in the
// mean, less twice the error that this has when they differ.
bool Pass::too_large_by_values() const {
  constexpr double kErrors = 2;
  double seen = 0, all = 0, squares = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    all += values(order_[i]);
    if (i < done_) seen += values(order_[i]);
  }
  const double mean = seen_ / seen;
  for (std::size_t i = 0; i < done_; ++i) {
    const double off = now_[order_[i]].bytes - mean * values(order_[i]);
    squares += off * off;
  }
  const auto count = static_cast<double>(done_), rest = static_cast<double>(order_.size() - done_);
  const double error = std::sqrt(squares / (count - 1) * rest * (1 + rest / count));
  return seen_ + mean * (all - seen) - kErrors * error > kMostSize * goal_.bytes;
}

// With what was seen as what is known; what was encoded comes last.
void Pass::begin_again(unsigned finer) {
  before_ = sizes();
  begun_again_ = true;
  goal_.finer = finer;
  std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(first_), order_.end());
  first_ = std::min(first_, order_.size() - first_);
  done_ = 0;
  all_before_ = seen_before_ = seen_forecast_ = seen_ = 0;
  seen_now_ = rest_ = {};
  for (const std::size_t chunk : order_) expect(chunk);
}

// By what it took before.
void Pass::expect(std::size_t chunk) {
  all_before_ += before_[chunk].bytes;
  expected_[chunk] = forecast(before_[chunk], chunk);
  rest_.add(expected_[chunk], 1);
}

void Pass::take(std::size_t chunk, std::size_t encoding) {
  if (done_ == order_.size()) {
    seen_ -= now_[chunk].bytes;
    seen_now_.add(expected_[chunk], -1);
  }
  const Encoding& taken = encodings_[chunk][encoding];
  taken_[chunk] = encoding;
  now_[chunk] = {step_of(taken.finer), taken.bytes};
  seen_ += taken.bytes;
  expected_[chunk] = forecast(now_[chunk], chunk);
  seen_now_.add(expected_[chunk], 1);
}

void Pass::took(const Wave& wave, std::span<const std::uint64_t> bytes) {
  for (std::size_t i = 0; i < wave.chunks.size(); ++i) {
    const auto chunk = static_cast<std::size_t>(wave.chunks[i]);
    const auto size = static_cast<double>(bytes[i]);
    if (done_ == order_.size()) {
      mended_ += size;
    } else if (!before_.empty()) {
      seen_before_ += before_[chunk].bytes;
      seen_forecast_ += bytes_of(expected_[chunk], wave.finer);
      rest_.add(expected_[chunk], -1);
    }
    encodings_[chunk].push_back({wave.finer, size});
    take(chunk, encodings_[chunk].size() - 1);
  }
  if (done_ < order_.size()) done_ += wave.chunks.size();
  if (done_ == order_.size()) take_best();
}

// Changes single chunks to others of their encodings as long as that brings the whole nearer.
void Pass::take_best() {
  constexpr int kChanges = 100;  // not for ever, where there are very many
  for (int changes = 0; changes < kChanges && !met(); ++changes) {
    double least = std::fabs(seen_ - goal_.bytes);
    std::size_t best = order_.size(), encoding = 0;
    for (const std::size_t chunk : order_) {
      for (std::size_t i = 0; i < encodings_[chunk].size(); ++i) {
        const double with = seen_ + encodings_[chunk][i].bytes - now_[chunk].bytes;
        if (std::fabs(with - goal_.bytes) < least) {
          least = std::fabs(with - goal_.bytes);
          best = chunk;
          encoding = i;
        }
      }
    }
    if (best == order_.size()) return;
    take(best, encoding);
  }
}

// Single chunks make up for what is missing or too much, if they can with steps that differ little
// from the others', else with any.
Pass::Wave Pass::mend() {
  constexpr int kTimes = 4;
  constexpr double kMost = 0.2;
  const double got = seen_ / goal_.bytes;
  if (within(got)) return even_out();
  if (std::fabs(got - 1) > kMost || times_mended_ == kTimes) return {};
  const bool usual = got > 1 && times_mended_ == 0;
  Wave result;
  if (usual) result = mend_up_to(usual_coarsest());
  if (result.chunks.empty()) result = mend_up_to(got < 1 ? goal_.finest : goal_.coarsest);
  ++times_mended_;
  return result;
}

// A few chunks with coarser steps than all others make all promise less.
Pass::Wave Pass::even_out() {
  constexpr double kShare = 0.12, kSafe = 0.003;
  constexpr unsigned kApart = 10;
  if (evened_out_ || before_.empty()) return {};
  evened_out_ = true;
  const auto finer_of = [&](std::size_t chunk) { return encodings_[chunk][taken_[chunk]].finer; };
  std::vector<std::size_t> chunks = order_;
  std::stable_sort(chunks.begin(), chunks.end(),
                   [&](std::size_t a, std::size_t b) { return finer_of(a) < finer_of(b); });
  double again = mended_, larger = seen_;
  std::size_t count = 0;
  while (count < chunks.size() && again + now_[chunks[count]].bytes < kShare * seen_) {
    again += now_[chunks[count]].bytes;
    ++count;
  }
  if (count == 0 || count == chunks.size()) return {};
  Wave result;
  result.finer = finer_of(chunks[count]);
  while (count > 0 && finer_of(chunks[count - 1]) + kApart > result.finer) --count;
  for (std::size_t i = 0; i < count; ++i) {
    const Forecast& expected = expected_[chunks[i]];
    larger += bytes_of(expected, result.finer) - bytes_of(expected, finer_of(chunks[i]));
    result.chunks.push_back(chunks[i]);
  }
  if (larger > (kMostSize - kSafe) * goal_.bytes) return {};
  std::sort(result.chunks.begin(), result.chunks.end());
  return result;
}

// The fewest chunks that can do it.
Pass::Wave Pass::mend_up_to(unsigned limit) const {
  constexpr double kShare = 1.2, kAlmost = 0.002, kAlmostShare = 1.5;
  // One of few is much to encode once more.
  constexpr std::size_t kFew = 8;
  const double safe = order_.size() < kFew ? 0.004 : 0.003;
  const double got = seen_ / goal_.bytes;
  const bool more = got < 1;
  // To a safe distance from the nearer limit.
  const double gap = ((more ? kLeastSize + safe : kMostSize - safe) - got) * goal_.bytes;
  // Another pass would be no less work, and may miss as well; least of all where it is as good as
  // done.
  const bool almost = got > kLeastSize - kAlmost && got < kMostSize + kAlmost;
  const double most = almost ? kAlmostShare : kShare;
  // What was encoded several times in vain is left alone, and what is beyond the limit.
  constexpr std::size_t kOften = 3;
  const auto finer_of = [&](std::size_t chunk) { return encodings_[chunk][taken_[chunk]].finer; };
  std::vector<std::size_t> chunks;
  for (const std::size_t chunk : order_) {
    const bool room = more ? finer_of(chunk) < limit : finer_of(chunk) > limit;
    if (room && encodings_[chunk].size() < kOften) chunks.push_back(chunk);
  }
  std::stable_sort(chunks.begin(), chunks.end(), [&](std::size_t a, std::size_t b) {
    if (finer_of(a) != finer_of(b)) return more == (finer_of(a) < finer_of(b));
    return now_[a].bytes > now_[b].bytes;
  });
  const double steeper = steepness();
  const auto change_of = [&](std::size_t chunk, unsigned finer) {
    return steeper *
           (bytes_of(expected_[chunk], finer) - bytes_of(expected_[chunk], finer_of(chunk)));
  };
  double reach = 0, again = mended_;
  std::size_t count = 0;
  while (count < chunks.size() && std::fabs(reach) < std::fabs(gap)) {
    reach += change_of(chunks[count], limit);
    again += now_[chunks[count]].bytes;
    ++count;
  }
  if (std::fabs(reach) < std::fabs(gap) / 2 || (reach > 0) != more || again > most * seen_) {
    return {};
  }
  chunks.resize(count);
  Wave result;
  // Finer steps do no harm: to the middle of what is left, so that one more time is not needed.
  constexpr double kMiddle = 0.9975;
  const double aim = more ? (kMiddle - got) * goal_.bytes : gap;
  result.finer = least_finer(more ? goal_.coarsest : limit, aim, [&](unsigned finer) {
    double sum = 0;
    for (const std::size_t chunk : chunks) sum += change_of(chunk, finer);
    return sum;
  });
  // Another than those that it has.
  const auto known = [&](std::size_t chunk) {
    return std::any_of(encodings_[chunk].begin(), encodings_[chunk].end(),
                       [&](const Encoding& each) { return each.finer == result.finer; });
  };
  for (auto stair = std::lower_bound(stairs_.begin(), stairs_.end(), result.finer);
       result.finer != limit && std::any_of(chunks.begin(), chunks.end(), known);) {
    result.finer = *(more ? ++stair : --stair);
  }
  result.chunks.assign(chunks.begin(), chunks.end());
  std::sort(result.chunks.begin(), result.chunks.end());
  return result;
}

}  // namespace firn::engine
