#include "pipelines/automatic.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "container/format.hpp"
#include "pipelines/blockpack.hpp"
#include "pipelines/causal.hpp"
#include "pipelines/chunk_values.hpp"
#include "pipelines/contexts.hpp"
#include "pipelines/fre.hpp"
#include "pipelines/interp.hpp"
#include "pipelines/lorenzo.hpp"
#include "pipelines/payload_head.hpp"
#include "predict/interpolation.hpp"
#include "quantize/quantize.hpp"

namespace firn::pipelines {

template <class T>
bool encode_with(const Candidate& candidate, const Box<const T>& chunk, const Parameters& options,
                 Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  Parameters parameters = options;
  const unsigned share = (256u - candidate.finer) * (256u - options.finer);
  parameters.finer =
      static_cast<std::uint8_t>(std::min<unsigned>(256 - (share + 128) / 256, format::kMaxFiner));
  switch (candidate.pipeline) {
    case Pipeline::lorenzo:
      return encode_lorenzo(chunk, parameters, workspace, out, encoded);
    case Pipeline::blockpack:
      return encode_blockpack(chunk, parameters, workspace, out, encoded);
    case Pipeline::contexts:
      return encode_contexts(chunk, parameters, workspace, out, encoded);
    case Pipeline::interp:
      return encode_interp(chunk, parameters, candidate.frozen, candidate.fineness,
                           candidate.trained, workspace, out, encoded);
    case Pipeline::causal:
      return !parameters.pointwise && encode_causal(chunk, parameters, workspace, out, encoded);
    case Pipeline::fre:
    case Pipeline::fre_round:
      return parameters.pointwise &&
             encode_fre(chunk, parameters, candidate.pipeline == Pipeline::fre_round, workspace,
                        out, encoded);
    case Pipeline::ceresz:
    case Pipeline::ceresz4:
      return encode_ceresz(candidate.pipeline, chunk, parameters, workspace, out, encoded);
    default:
      return false;
  }
}
template bool encode_with(const Candidate&, const Box<const float>&, const Parameters&, Workspace&,
                          std::uint8_t*, Encoded*);
template bool encode_with(const Candidate&, const Box<const double>&, const Parameters&, Workspace&,
                          std::uint8_t*, Encoded*);

namespace {

constexpr std::size_t kMaxCandidates = 16;

// A box in the middle of the chunk with about 1 / 2^halvings of its values, for trials; or at a
// corner of it.
enum class Place { middle, corner };
template <class T>
Box<const T> part_of(const Box<const T>& chunk, Place place, int halvings, int first_axis) {
  std::array<std::size_t, kMaxRank> origin{}, extents = chunk.extents();
  for (int k = first_axis % chunk.rank(), idle = 0; halvings > 0 && idle < chunk.rank();
       k = (k + 1) % chunk.rank()) {
    if (extents[k] < 12) {
      ++idle;
      continue;
    }
    idle = 0;
    if (place == Place::middle) origin[k] += extents[k] / 4;
    if (place == Place::corner && k % 2 != 0) origin[k] += extents[k] - extents[k] / 2;
    extents[k] = extents[k] / 2;
    --halvings;
  }
  return chunk.part(origin, extents);
}

// A trial as small as this says little about the whole chunk.
constexpr std::size_t kWeakTrialBytes = 512;

// The axes (bits) along which the mean of its two neighbours misses a value by more bits than along
// the smoothest axis: interpolation may be better off without them.
template <class T>
unsigned rough_axes(const Box<const T>& part, const Parameters& parameters, Workspace& workspace) {
  constexpr std::size_t kSamples = 512;
  const T* values = contiguous(part, workspace);
  const auto lags = axis_lags(part.rank(), part.extents());
  const std::size_t count = part.count();
  const T bound = static_cast<T>(parameters.bound_abs);
  const T inverse_step =
      parameters.pointwise
          ? 1 / (2 * bound)
          : quantize::Scale<T>(bound, parameters.margin, parameters.finer).inverse_step;
  std::array<std::uint32_t, kMaxRank> costs{};
  const std::size_t every = std::max<std::size_t>(1, count / kSamples);
  std::size_t number = 0;
  for (std::size_t j = 0; j + every <= count; j += every, ++number) {
    const std::size_t i = j + number * 7919 % every;
    for (int k = 0; k < part.rank(); ++k) {
      const std::size_t extent = part.extents()[k], lag = lags[k];
      const std::size_t at = i / lag % extent;
      const std::size_t before = at > 0 ? i - lag : i + (extent > 1 ? lag : 0);
      const std::size_t after = at + 1 < extent ? i + lag : before;
      const T mean = (values[before] + values[after]) * T(0.5);
      const T miss = parameters.pointwise ? (values[i] - mean) / values[i] : values[i] - mean;
      costs[k] += predict::base_cost(static_cast<float>(miss * inverse_step));
    }
  }
  std::uint32_t least = ~std::uint32_t{0};
  for (int k = 0; k < part.rank(); ++k) {
    if (part.extents()[k] > 1) least = std::min(least, costs[k]);
  }
  const std::size_t more = parameters.thorough ? 1u << 12 : 1u << 14;  // in 2^-15 bits
  unsigned rough = 0;
  for (int k = 0; k < part.rank(); ++k) {
    if (part.extents()[k] > 1 && costs[k] > least + number * more) rough |= 1u << k;
  }
  return rough;
}

// log2 of a positive number, to about 0.09.
double rough_log2(double value) {
  return static_cast<double>(std::bit_cast<std::uint64_t>(value)) * 0x1p-52 - 1023;
}

// What an encoded part counts for, in bytes.
//
// By size alone, the choice would be the one that uses up the bound: predictions from quantised
// values leave errors that are spread evenly, interpolation much smaller ones. So none may have a
// mean squared error above that of plain interpolation, the usual way; where it has, it counts as
// what it takes with a step that is finer by as much.
class Judge {
 public:
  // In 256ths: with much finer steps the error would be far too small elsewhere.
  static constexpr unsigned kMostFiner = 64;
  // With such a grain the next finer step is much finer.
  static constexpr int kFewGrainBits = 3;

  Judge(const Parameters& parameters, std::size_t count)
      : tune_psnr_(parameters.tune_psnr && !parameters.pointwise),
        few_steps_(parameters.margin >= format::kGrid &&
                   parameters.margin <= format::kGrid + kFewGrainBits),
        count_(static_cast<double>(count)) {}

  // The mean squared error of plain interpolation; 0: not known.
  void set_reference(double mean_square) { reference_ = mean_square; }

  double operator()(const Encoded& encoded) const {
    const auto size = static_cast<double>(encoded.size);
    // Tuned for PSNR: the size at equal PSNR, half a bit a value for each doubling of the square.
    if (tune_psnr_) {
      return size + count_ / 16 * rough_log2(std::max(encoded.mean_square, 1e-12));
    }
    if (!excessive(encoded)) return size;
    // The fewer bits a value takes, the fewer of them follow the step.
    const double slope = std::min(1.0, 0.75 * (8 * size / count_));
    return size + slope * count_ / 16 * rough_log2(encoded.mean_square / limit(encoded));
  }

  // The finer step, in 256ths, with which the error is no longer excessive.
  std::uint8_t finer(const Encoded& encoded) const {
    if (tune_psnr_ || few_steps_ || !excessive(encoded)) return 0;
    const double ratio = limit(encoded) / encoded.mean_square;
    unsigned finer = 0;
    for (double step = 1; finer < kMostFiner && step * step > ratio; ++finer) {
      step -= 1.0 / 256;
    }
    return static_cast<std::uint8_t>(finer < kLeastFiner ? 0 : finer);
  }

 private:
  static constexpr unsigned kLeastFiner = 2;  // less is lost among where the values happen to lie

  // Other pipelines' errors are not of a piece with the reference's: a little less, to be safe.
  double limit(const Encoded& encoded) const {
    return encoded.pipeline == Pipeline::interp ? reference_ : 0.97 * reference_;
  }
  bool excessive(const Encoded& encoded) const {
    return reference_ > 0 && encoded.mean_square > limit(encoded);
  }

  bool tune_psnr_, few_steps_;
  double count_;
  double reference_ = 0;
};

// Interpolation of a chunk, with finer coarse levels as far as that is cheap.
template <class T>
Candidate interpolation(const Box<const T>& chunk, const Parameters& parameters, unsigned frozen) {
  if (parameters.pointwise) return {Pipeline::interp, frozen};
  int axes = 0;
  for (int k = 0; k < chunk.rank(); ++k) axes += chunk.extents()[k] > 1 && !(frozen >> k & 1);
  return {Pipeline::interp, frozen, cheap_fineness(axes)};
}

// How many values are as far from the one before as the bound allows, or less.
template <class T>
std::size_t count_alike(const Box<const T>& chunk, const Parameters& parameters,
                        Workspace& workspace) {
  const T* const values = contiguous(chunk, workspace);
  const T bound = static_cast<T>(parameters.bound_abs);
  unsigned alike = 0;
  for (std::size_t i = 1; i < chunk.count(); ++i) {
    const T allowed = parameters.pointwise ? bound * std::fabs(values[i]) : bound;
    alike += std::fabs(values[i] - values[i - 1]) <= allowed;
  }
  return alike;
}

// A message of so few values is over before a trial would have said anything. Blocks mostly take
// least up to half of that, unless many values are alike and the others far away: an entropy coder
// saves what those bits of the many take, less some for telling which they are.
constexpr std::size_t kMostOfMessage = 512;
template <class T>
bool encode_message(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                    std::uint8_t* out, Encoded* encoded) {
  constexpr std::size_t kMostlyBlocks = kMostOfMessage / 2;
  if (!encode_with({Pipeline::blockpack}, chunk, parameters, workspace, out, encoded)) return false;
  const double bits = 8 * static_cast<double>(encoded->size) / static_cast<double>(chunk.count());
  constexpr double kWorth = 1.6;  // bits a value
  const auto saved = [&] {
    return bits * static_cast<double>(count_alike(chunk, parameters, workspace));
  };
  if (chunk.count() <= kMostlyBlocks && saved() < kWorth * static_cast<double>(chunk.count()))
    return true;
  std::uint8_t* const other = workspace.trial.reserve(
      payload_capacity(chunk.count(), sizeof(T) == 4 ? Type::f32 : Type::f64));
  Encoded coded;
  if (encode_with({Pipeline::contexts}, chunk, parameters, workspace, other, &coded) &&
      coded.size < encoded->size) {
    if (coded.written) std::memcpy(out, other, coded.size);
    *encoded = coded;
  }
  return true;
}

// Where trials are on a whole chunk they are encodings, and the best of them is kept: it, and room
// for another.
struct KeptTrial {
  std::uint8_t* bytes;
  std::uint8_t* room;
  Encoded encoded{};
  double score = std::numeric_limits<double>::infinity();

  void keep(const Encoded& trial, double trial_score) {
    if (!trial.written || trial_score >= score) return;
    encoded = trial;
    score = trial_score;
    std::swap(bytes, room);
  }
};

// Ranks the candidates, of which the first is plain interpolation, by what they count for on a part
// of the chunk, and settles their steps; returns the size of the best, 0 when all failed.
template <class T>
std::size_t rank_candidates(std::span<Candidate> candidates, const Box<const T>& part,
                            const Parameters& parameters, Judge& judge, Workspace& workspace,
                            std::uint8_t* out, KeptTrial* kept = nullptr) {
  workspace.runner_up = {};
  struct Ranked {
    double score;
    std::size_t size;
    Candidate candidate;
    std::size_t number;
  };
  judge = Judge(parameters, part.count());
  Parameters limited = parameters;
  std::array<Ranked, kMaxCandidates> ranked{};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Encoded trial;
    ranked[i] = {std::numeric_limits<double>::infinity(), 0, candidates[i], i};
    ranked[i].candidate.score = ranked[i].score;
    // None counts for less than its size, unless it is tuned for PSNR.
    if (kept != nullptr && kept->encoded.size != 0 && !parameters.tune_psnr) {
      limited.most_useful = static_cast<std::size_t>(std::ceil(kept->score)) - 1;
    }
    std::uint8_t* const to = kept != nullptr ? kept->room : out;
    if (!encode_with(candidates[i], part, limited, workspace, to, &trial)) continue;
    // Along a single axis interpolation has no less error than others.
    if (i == 0 && candidates[0].fineness != 0) judge.set_reference(trial.mean_square);
    ranked[i].size = trial.size;
    ranked[i].score = judge(trial);
    ranked[i].candidate.score = ranked[i].score;
    ranked[i].candidate.finer = judge.finer(trial);
    if (kept != nullptr) kept->keep(trial, ranked[i].score);
  }
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(candidates.size());
  std::sort(ranked.begin(), end, [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score < b.score : a.number < b.number;
  });
  // The best of another pipeline is told to the reader of the stream, and is second if it is not
  // far behind: trials mistake pipelines for each other more than variants of one.
  Ranked* const other = std::find_if(ranked.begin(), end, [&](const Ranked& each) {
    return each.candidate.pipeline != ranked[0].candidate.pipeline && each.size != 0;
  });
  if (other != end && ranked[0].size > kWeakTrialBytes && other->size >= ranked[0].size) {
    const std::size_t percent = (other->size - ranked[0].size) * 100 / ranked[0].size;
    workspace.runner_up = {static_cast<std::uint8_t>(other->candidate.pipeline),
                           static_cast<std::uint8_t>(std::min<std::size_t>(percent, 255))};
  }
  const std::size_t least = ranked[0].size;
  if (other != end && other->score < ranked[0].score + 0.15 * static_cast<double>(least)) {
    std::rotate(ranked.begin() + 1, other, other + 1);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i] = ranked[i].candidate;
  return least;
}

// Trains the stencils of the best of ranked candidates that interpolates, unless it is too far
// behind for that to help; what is gained may move it up. Returns the size of the best as before.
template <class T>
std::size_t try_trained(std::span<Candidate> ranked, std::size_t least, const Box<const T>& part,
                        const Parameters& parameters, const Judge& judge, Workspace& workspace,
                        std::uint8_t* out) {
  constexpr double kFarBehind = 1.15;
  const auto plain = std::find_if(ranked.begin(), ranked.end(), [](const Candidate& each) {
    return each.pipeline == Pipeline::interp;
  });
  if (plain == ranked.end() || !(plain->score < kFarBehind * ranked[0].score)) return least;
  Candidate trained = *plain;
  trained.trained = true;
  trained.finer = 0;
  Encoded trial;
  if (!encode_with(trained, part, parameters, workspace, out, &trial)) return least;
  trained.score = judge(trial);
  trained.finer = judge.finer(trial);
  if (trained.score >= plain->score) return least;
  *plain = trained;
  const auto place = std::find_if(
      ranked.begin(), plain, [&](const Candidate& each) { return trained.score < each.score; });
  std::rotate(place, plain, plain + 1);
  if (place != ranked.begin()) return least;
  const auto other = std::find_if(ranked.begin(), ranked.end(), [](const Candidate& each) {
    return each.pipeline != Pipeline::interp;
  });
  if (other != ranked.end() && other->score < 2 * trained.score) {
    workspace.runner_up = {
        static_cast<std::uint8_t>(other->pipeline),
        static_cast<std::uint8_t>((other->score - trained.score) * 100 / trained.score)};
  }
  return trial.size;
}

// Ranks candidates by what they count for on this part of the chunk as well; `plain` is the first
// that rank_candidates() was given.
template <class T>
void look_elsewhere(std::span<Candidate> ranked, const Candidate& plain, const Box<const T>& part,
                    const Parameters& parameters, Workspace& workspace, std::uint8_t* out) {
  Judge judge(parameters, part.count());
  std::array<Candidate, kMaxCandidates> list{};
  std::size_t count = 0;
  list[count++] = plain;
  const auto untuned = [](Candidate candidate) {
    candidate.finer = 0;
    return candidate;
  };
  for (const Candidate& each : ranked) {
    if (!untuned(each).same_way(plain)) list[count++] = untuned(each);
  }
  const auto before = workspace.runner_up;
  const Pipeline first = ranked[0].pipeline;
  rank_candidates(std::span(list.data(), count), part, parameters, judge, workspace, out);
  // Where nothing is but a mask, nothing is seen.
  const bool seen = std::all_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count),
                                [](const Candidate& each) { return std::isfinite(each.score); });
  if (!seen) {
    workspace.runner_up = before;
    return;
  }
  for (Candidate& each : ranked) {
    const auto here = std::find_if(list.begin(), list.end(), [&](const Candidate& other) {
      return untuned(other).same_way(untuned(each));
    });
    each.score = (each.score + here->score) / 2;
    // A quick search does not see afterwards what the whole chunk's error is.
    each.finer = parameters.thorough ? static_cast<std::uint8_t>((each.finer + here->finer) / 2)
                                     : std::max(each.finer, here->finer);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  if (ranked[0].pipeline == first) workspace.runner_up = before;
}

}  // namespace

void keep_trained(const Workspace& workspace, Choice* choice) {
  if (choice->candidate.pipeline == Pipeline::causal && !choice->model) {
    choice->model = std::make_shared<const CausalModel>(workspace.causal_model);
  }
  if (choice->candidate.pipeline == Pipeline::interp && !choice->bases) {
    choice->bases = std::make_shared<const std::vector<std::uint8_t>>(workspace.bases);
  }
}

// Differences, interpolation or trained prediction, whichever a trial on part of the chunk favours;
// a thorough search, or one whose trial says little, encodes the chunk with those that are close.
template <class T>
bool encode_best(const Box<const T>& chunk, const Parameters& options, Workspace& workspace,
                 std::uint8_t* out, Encoded* encoded) {
  if (chunk.count() <= kMostOfMessage && !options.thorough) {
    return encode_message(chunk, options, workspace, out, encoded);
  }
  Parameters parameters = options;
  parameters.books = BookPolicy::cost;
  const Choice& choice = options.choice;
  if (choice.candidate.pipeline != Pipeline::automatic) {
    workspace.runner_up = choice.runner_up;
    if (choice.model) {
      workspace.causal_model = *choice.model;
      parameters.trained = true;
    }
    const bool done = encode_with(choice.candidate, chunk, parameters, workspace, out, encoded);
    workspace.runner_up = {};
    const std::uint8_t orders =
        choice.orders == Choice::kAnyOrders ? encoded->choice.orders : choice.orders;
    encoded->choice = choice;
    encoded->choice.orders = orders;
    // What fails in f32 has too many points that would be exact, and so would others; f64 may need
    // wider codes.
    if (done || (parameters.rehearsal && sizeof(T) == 4)) return done;
    parameters.choice = {};
    parameters.trained = false;
  }
  const Candidate plain = interpolation(chunk, parameters, 0);
  // Along a single axis interpolation has no less error than others, and none is compared.
  const bool compared = plain.fineness != 0 || options.tune_psnr || options.thorough;
  parameters.measured = !options.pointwise && compared;
  std::array<Candidate, kMaxCandidates> list{};
  std::size_t count = 0;
  list[count++] = plain;
  list[count++] = {Pipeline::contexts};
  // A table with every residual in it: for particles, whose distances may have several peaks.
  constexpr std::size_t kTableValues = 16384;
  const bool table = chunk.rank() == 1 && chunk.count() >= kTableValues;
  if (parameters.thorough || table) list[count++] = {Pipeline::lorenzo};
  // Blocks need no distributions and no states of the coder, which small chunks feel.
  constexpr std::size_t kFewBlocks = 4096;
  if (chunk.count() <= kFewBlocks) list[count++] = {Pipeline::blockpack};
  if (!parameters.pointwise) {
    if (parameters.thorough) {
      list[count++] = {Pipeline::causal};
      train_causal(chunk, parameters, workspace);
      parameters.trained = true;
    }
    const int finest = parameters.tune_psnr ? kMaxFineness : parameters.thorough ? 1 : 0;
    for (int fineness = 1; fineness <= finest; ++fineness) {
      if (fineness != plain.fineness) list[count++] = {Pipeline::interp, 0, fineness};
    }
  }
  // Trials are on a sixteenth of the chunk, or more of a small one, or of one with a mask, whose
  // coasts are not everywhere.
  const int usual = parameters.fill ? 2 : 4;
  const std::size_t enough = parameters.thorough || table ? 16384 : 3072;
  int halvings = usual;
  while (halvings > 0 && chunk.count() >> halvings < enough) --halvings;
  const Box<const T> part = part_of(chunk, Place::middle, halvings, 0);
  // Axes that are not smooth (members, components) are better left out; a thorough search asks of
  // each, a quick one of the slowest.
  const unsigned rough = chunk.rank() > 1 ? rough_axes(part, parameters, workspace) : 0;
  for (int k = 0; k < (parameters.thorough ? chunk.rank() : 1); ++k) {
    if (rough >> k & 1) list[count++] = interpolation(chunk, parameters, 1u << k);
  }
  Parameters for_trial = parameters;
  for_trial.trial = true;
  for_trial.look_at_one_in = 1;
  Judge judge(parameters, chunk.count());
  const bool may_train = parameters.thorough && !parameters.pointwise;
  if (options.trial) {
    const auto candidates = std::span(list.data(), count);
    const std::size_t least = rank_candidates(candidates, chunk, for_trial, judge, workspace, out);
    if (least == 0) return false;
    if (may_train) try_trained(candidates, least, chunk, for_trial, judge, workspace, out);
    const bool done = encode_with(list[0], chunk, for_trial, workspace, out, encoded);
    encoded->choice = {list[0], encoded->choice.orders, std::exchange(workspace.runner_up, {})};
    return done;
  }
  const bool whole = halvings == 0 && !parameters.thorough && !options.size_only() &&
                     !options.choose_only && !options.keep_choice;
  for_trial.trial = !whole;
  KeptTrial best{out, nullptr};
  if (whole) {
    best.room = workspace.trial.reserve(
        payload_capacity(chunk.count(), sizeof(T) == 4 ? Type::f32 : Type::f64));
  }
  std::size_t trial = rank_candidates(std::span(list.data(), count), part, for_trial, judge,
                                      workspace, out, whole ? &best : nullptr);
  if (whole && trial != 0 && list[0].finer == 0) {
    if (best.bytes != out) std::memcpy(out, best.bytes, best.encoded.size);
    *encoded = best.encoded;
    encoded->choice = {list[0], encoded->choice.orders, std::exchange(workspace.runner_up, {})};
    return true;
  }
  // A trial of few bytes is not trusted much, unless it is of a large share: those that are not far
  // behind are ranked again by a larger part.
  const std::size_t few = (parameters.thorough ? 4 : 1) * kWeakTrialBytes;
  const bool weak = part.count() < chunk.count() && trial <= few >> (usual - halvings);
  if (may_train && !weak) {
    trial =
        try_trained(std::span(list.data(), count), trial, part, for_trial, judge, workspace, out);
  }
  const auto far_behind = [&](const Candidate& candidate, double share) {
    return candidate.score > list[0].score + share * static_cast<double>(trial) + (weak ? 96 : 0);
  };
  // What is good in the middle need not be so elsewhere. Lines are much the same all over.
  constexpr double kClose = 0.1;
  const bool elsewhere = halvings > 1 && !weak && (parameters.thorough || chunk.rank() > 1);
  if (elsewhere && !far_behind(list[1], kClose)) {
    std::size_t close = 1;
    while (close < count && !far_behind(list[close], kClose)) ++close;
    look_elsewhere(std::span(list.data(), close), plain, part_of(chunk, Place::corner, halvings, 0),
                   for_trial, workspace, out);
  }
  std::size_t kept = 0;
  if (weak) {
    std::array<Candidate, kMaxCandidates> close{};
    close[kept++] = plain;
    bool trained = false;
    for (std::size_t i = 0; i < count; ++i) {
      Candidate candidate = list[i];
      candidate.finer = 0;
      // Of those that interpolate the best, trained.
      if (may_train && candidate.pipeline == Pipeline::interp) {
        if (std::exchange(trained, true)) continue;
        candidate.trained = true;
      }
      if (!candidate.same_way(plain) && !far_behind(list[i], 0.4)) close[kept++] = candidate;
    }
    constexpr std::size_t kEnough = 65536;
    int fewer = 0;
    while (fewer < 3 && chunk.count() >> (fewer + 1) >= kEnough) ++fewer;
    trial = rank_candidates(std::span(close.data(), kept), part_of(chunk, Place::middle, fewer, 1),
                            for_trial, judge, workspace, out);
    list = close;
    count = kept;
  }
  if (options.choose_only) {
    encoded->choice = {list[0], Choice::kAnyOrders, std::exchange(workspace.runner_up, {})};
    return true;
  }
  // Repetitions that zstd finds behind Huffman's codes in a part need not be there in the whole.
  // A rehearsal is one of several, so it is in doubt less often.
  const double close = options.rehearsal ? 0.01 : 0.02;
  const double lead = list[0].pipeline == Pipeline::lorenzo ? 0.25 : weak ? 0.04 : close;
  const bool doubtful = count > 1 && !far_behind(list[1], lead);
  // Training is much of an encoding: not to tell apart what a trial that says much does not.
  const bool dear = options.rehearsal && !weak && list[1].trained;
  const bool again = parameters.thorough && doubtful && !dear;
  parameters.measured = parameters.measured && (again || list[0].finer != 0);
  bool done = encode_with(list[0], chunk, parameters, workspace, out, encoded);
  if (done && (weak || halvings < usual) && list[0].finer != 0) {
    const auto encode_again = [&](const Candidate& candidate) {
      list[0] = candidate;
      done = encode_with(candidate, chunk, parameters, workspace, out, encoded);
    };
    // Once more as much finer as it still takes.
    if (const unsigned more = judge.finer(*encoded); more > 0) {
      Candidate finer = list[0];
      finer.finer =
          static_cast<std::uint8_t>(std::min<unsigned>(finer.finer + more, Judge::kMostFiner));
      encode_again(finer);
    }
    // Where nothing happens errors linger, whatever the step: then the best that needs no finer
    // one; plain interpolation never does.
    constexpr unsigned kMuch = 8;
    if (done && weak && judge.finer(*encoded) > kMuch) {
      encode_again(*std::find_if(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count),
                                 [](const Candidate& each) { return each.finer == 0; }));
    }
  }
  encoded->choice = {list[0], encoded->choice.orders, std::exchange(workspace.runner_up, {})};
  if (done && parameters.keep_choice) keep_trained(workspace, &encoded->choice);
  if (!done || !again) return done;
  std::uint8_t* other = workspace.trial.reserve(
      payload_capacity(chunk.count(), sizeof(T) == 4 ? Type::f32 : Type::f64));
  Encoded next;
  if (!encode_with(list[1], chunk, parameters, workspace, other, &next)) return true;
  judge = Judge(parameters, chunk.count());
  if (list[0].same_way(plain)) judge.set_reference(encoded->mean_square);
  if (list[1].same_way(plain)) judge.set_reference(next.mean_square);
  if (judge(next) < judge(*encoded)) {
    std::memcpy(out, other, next.size);
    next.choice = {list[1], next.choice.orders, encoded->choice.runner_up};
    *encoded = next;
  }
  return true;
}
template bool encode_best(const Box<const float>&, const Parameters&, Workspace&, std::uint8_t*,
                          Encoded*);
template bool encode_best(const Box<const double>&, const Parameters&, Workspace&, std::uint8_t*,
                          Encoded*);

}  // namespace firn::pipelines
