#include "pipelines/causal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "container/format.hpp"
#include "encode/context_rans.hpp"
#include "pipelines/causal_model.hpp"
#include "pipelines/feedback.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "pipelines/wavefront.hpp"
#include "predict/interpolation.hpp"
#include "predict/robust_fit.hpp"

namespace firn::pipelines {
namespace {

using predict::kMaxCausalTaps;

// The nearest known points of a plane of this kind, nearest first; taps along an axis count as
// nearer than others.
struct TapList {
  int count = 0;
  std::array<TapOffset, kMaxCausalTaps> taps{};
};
TapList list_taps(int kind, const Wavefront& wavefront) {
  struct Candidate {
    int distance;
    TapOffset offset;
  };
  std::array<Candidate, 128> all{};
  std::size_t found = 0;
  const int lead = static_cast<int>(wavefront.lead());
  for (int w = kind & 2 ? -1 : 0; w <= 0; ++w) {
    for (int z = kind & 1 ? (w == 0 ? -2 : -1) : 0; z <= 0; ++z) {
      const bool same_plane = w == 0 && z == 0;
      if (wavefront.line() && !same_plane) continue;
      for (int y = wavefront.line() ? 0 : -2; y <= (same_plane ? 0 : 1); ++y) {
        for (int x = -lead; x <= 2; ++x) {
          if (same_plane && (y == 0 ? x >= 0 : x > -y)) continue;
          const int axes = (w != 0) + (z != 0) + (y != 0) + (x != 0);
          const int reach = std::max({std::abs(w), std::abs(z), std::abs(y), std::abs(x)});
          if ((axes > 1 && reach > 2) || (axes > 2 && reach > 1)) continue;
          if (axes == 0) continue;
          const int square = w * w + z * z + y * y + x * x;
          all[found++] = {(axes == 1 ? 6 : 10) * square,
                          {static_cast<std::int8_t>(w), static_cast<std::int8_t>(z),
                           static_cast<std::int8_t>(y), static_cast<std::int8_t>(x)}};
        }
      }
    }
  }
  std::sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(found),
            [](const Candidate& a, const Candidate& b) {
              return a.distance != b.distance ? a.distance < b.distance : a.offset > b.offset;
            });
  TapList list;
  list.count = static_cast<int>(std::min<std::size_t>(found, kMaxCausalTaps));
  for (int g = 0; g < list.count; ++g) {
    list.taps[static_cast<std::size_t>(g)] = all[static_cast<std::size_t>(g)].offset;
  }
  return list;
}

// The magnitudes that contexts follow, in classes that share a weight.
enum ContextClass { kLeft, kAboveRow, kAround, kPlaneBefore, kAroundPlaneBefore, kContextClasses };
static_assert(kContextClasses == kCausalContextClasses);
struct ContextTap {
  ContextClass context_class;
  TapOffset offset;
};
struct ContextTaps {
  int count = 0;
  std::array<ContextTap, predict::kMaxAroundTaps> taps{};
  void add(ContextClass context_class, TapOffset offset) {
    taps[static_cast<std::size_t>(count++)] = {context_class, offset};
  }
};
ContextTaps list_context_taps(int kind, bool line) {
  ContextTaps list;
  list.add(kLeft, {0, 0, 0, -1});
  if (line) {
    list.add(kAboveRow, {0, 0, 0, -2});
    list.add(kAround, {0, 0, 0, -3});
    list.add(kAround, {0, 0, 0, -4});
    return list;
  }
  list.add(kAboveRow, {0, 0, -1, 0});
  list.add(kAround, {0, 0, -1, -1});
  list.add(kAround, {0, 0, -1, 1});
  list.add(kAround, {0, 0, 0, -2});
  list.add(kAround, {0, 0, -2, 0});
  if (kind & 1) list.add(kPlaneBefore, {0, -1, 0, 0});
  if (kind & 2) list.add(kPlaneBefore, {-1, 0, 0, 0});
  if (kind != 0) {
    const std::int8_t z = kind & 1 ? -1 : 0, w = kind & 1 ? 0 : -1;
    list.add(kAroundPlaneBefore, {w, z, 0, -1});
    list.add(kAroundPlaneBefore, {w, z, 0, 1});
    list.add(kAroundPlaneBefore, {w, z, -1, 0});
    list.add(kAroundPlaneBefore, {w, z, 1, 0});
  }
  return list;
}

using Model = CausalModel;

constexpr int kMaxWeightShift = 20;
constexpr std::int32_t kMaxWeight = 1 << 24;

void write_model(const Model& model, const Wavefront& wavefront, ByteWriter& out) {
  out.write(static_cast<std::uint8_t>(model.fast));
  out.write(static_cast<std::uint8_t>(model.shift));
  for (const std::uint8_t weight : model.context_weights) out.write(weight);
  out.write(model.spread);
  out.write(model.floor);
  for (int kind = 0; kind < kPlaneKinds; ++kind) {
    if (!wavefront.has_kind(kind)) continue;
    const Model::Stencil& stencil = model.stencils[static_cast<std::size_t>(kind)];
    out.write(static_cast<std::uint8_t>(stencil.taps));
    if (stencil.taps < 2) continue;
    out.write(static_cast<std::uint8_t>(stencil.shift));
    for (int g = 1; g < stencil.taps; ++g) {
      const std::int64_t weight = stencil.weights[static_cast<std::size_t>(g)];
      out.write_varint(weight < 0 ? static_cast<std::uint64_t>(-2 * weight - 1)
                                  : static_cast<std::uint64_t>(2 * weight));
    }
  }
}

bool read_model_head(ByteReader& in, int rank, Model* model) {
  model->fast = in.read<std::uint8_t>();
  model->shift = in.read<std::uint8_t>();
  for (std::uint8_t& weight : model->context_weights) weight = in.read<std::uint8_t>();
  model->spread = in.read<std::uint8_t>();
  model->floor = in.read<std::uint8_t>();
  return in.ok() && model->fast <= rank && model->shift < 31;
}

bool read_stencils(ByteReader& in, const Wavefront& wavefront, Model* model) {
  for (int kind = 0; kind < kPlaneKinds; ++kind) {
    if (!wavefront.has_kind(kind)) continue;
    Model::Stencil& stencil = model->stencils[static_cast<std::size_t>(kind)];
    stencil.taps = in.read<std::uint8_t>();
    if (!in.ok() || stencil.taps < 1 || stencil.taps > list_taps(kind, wavefront).count) {
      return false;
    }
    stencil.shift = 0;
    if (stencil.taps > 1) stencil.shift = in.read<std::uint8_t>();
    if (stencil.shift > kMaxWeightShift) return false;
    std::int32_t others = 0;
    for (int g = 1; g < stencil.taps; ++g) {
      const std::uint64_t folded = in.read_varint();
      if (folded > std::uint64_t{2} * kMaxWeight) return false;
      const auto half = static_cast<std::int32_t>(folded / 2);
      stencil.weights[static_cast<std::size_t>(g)] = folded % 2 != 0 ? -half - 1 : half;
      others += stencil.weights[static_cast<std::size_t>(g)];
    }
    stencil.weights[0] = (1 << stencil.shift) - others;
  }
  return in.ok();
}

template <class T>
predict::CausalStencil<T> make_stencil(const Model& model, int kind, const Wavefront& wavefront,
                                       T inverse_step) {
  predict::CausalStencil<T> result;
  const Model::Stencil& stencil = model.stencils[static_cast<std::size_t>(kind)];
  const TapList list = list_taps(kind, wavefront);
  result.tap_count = stencil.taps;
  for (std::size_t g = 0; g < static_cast<std::size_t>(stencil.taps); ++g) {
    result.offset[g] = wavefront.offset(list.taps[g]);
    result.weight[g] = static_cast<T>(stencil.weights[g]) / static_cast<T>(1 << stencil.shift);
  }
  result.spread_scale =
      inverse_step * (static_cast<T>(model.spread) / (T(256) * static_cast<T>(1 << model.shift)));
  const ContextTaps around = list_context_taps(kind, wavefront.line());
  result.context_taps = around.count;
  for (std::size_t k = 0; k < static_cast<std::size_t>(around.count); ++k) {
    result.context_offset[k] = wavefront.offset(around.taps[k].offset);
    result.context_weight[k] = model.context_weights[around.taps[k].context_class];
  }
  result.floor = static_cast<float>(model.floor) / 256;
  return result;
}

// Fits the stencil of each kind of plane to a sample of the chunk's values, to which noise is
// added because decoded values have it.
template <class T>
class Trainer {
 public:
  Trainer(const T* values, const Wavefront& wavefront, const quantize::Scale<T>& scale, T fill,
          Workspace& workspace)
      : values_(values),
        wavefront_(wavefront),
        scale_(scale),
        fill_(fill),
        target_(workspace.target),
        fit_(workspace.fit) {
    constexpr double kNoise = 0.7;
    std::uint32_t state = 777;
    for (T& noise : noise_) {
      state = state * 1664525u + 1013904223u;
      noise =
          static_cast<T>((static_cast<double>(state) * 0x1p-31 - 1) * kNoise) * (scale.step / 2);
    }
  }

  // Returns the bits a value that the fit expects.
  float train(int kind, std::size_t samples, Model::Stencil* stencil) {
    const TapList list = list_taps(kind, wavefront_);
    const Distances near(list, wavefront_);
    fit_.reset(samples + 1, list.count - 1);
    for_each_sample(kind, samples, [&](const Position& at) { add_sample(at, list, near); });
    stencil->taps = 1;
    stencil->shift = 0;
    stencil->weights[0] = 1;
    const predict::RobustFit::Outcome outcome = fit_.fit(4, target_);
    if (!outcome.found) return outcome.base_cost;
    stencil->taps = list.count;
    stencil->shift = outcome.shift;
    std::int32_t others = 0;
    for (int g = 1; g < list.count; ++g) {
      const std::int32_t weight = outcome.weights[static_cast<std::size_t>(g - 1)];
      stencil->weights[static_cast<std::size_t>(g)] = weight;
      others += weight;
    }
    stencil->weights[0] = (1 << outcome.shift) - others;
    return outcome.cost;
  }

  // Sets the weights that contexts are made with so that the activity follows the residuals.
  void train_contexts(int kind, std::size_t samples, Model* model) {
    const TapList list = list_taps(kind, wavefront_);
    const ContextTaps around = list_context_taps(kind, wavefront_.line());
    const Model::Stencil& stencil = model->stencils[static_cast<std::size_t>(kind)];
    const float unit = 1.0f / static_cast<float>(1 << model->shift);
    const Distances near(list, wavefront_);
    predict::ScaleFit fit;
    for_each_sample(kind, samples, [&](const Position& at) {
      predict::ScaleFit::Sample sample{};
      T spread = 0;
      const float residual = miss(at, list, near, stencil, &spread);
      if (!(std::fabs(residual) < 1e8f)) return;
      for (std::size_t k = 0; k < static_cast<std::size_t>(around.count); ++k) {
        Position there = at;
        for (std::size_t axis = 0; axis < 4; ++axis) {
          const std::ptrdiff_t last =
              wavefront_.line() && axis == 2
                  ? static_cast<std::ptrdiff_t>(Wavefront::kLanes) - 1
                  : static_cast<std::ptrdiff_t>(wavefront_.extents()[axis]) - 1;
          there[axis] = std::clamp<std::ptrdiff_t>(at[axis] + around.taps[k].offset[axis], 0, last);
        }
        const float other = std::fabs(miss(there, list, near, stencil, nullptr));
        if (!(other < 1e8f)) return;
        const float magnitude = std::floor(std::nearbyint(other) * unit);
        sample[around.taps[k].context_class] += std::min(magnitude, 255.0f) * (1.0f / 64);
      }
      sample[kContextClasses] =
          static_cast<float>(spread * scale_.inverse_step) * unit * (1.0f / 256);
      sample[kContextClasses + 1] = 1.0f / 256;
      fit.add(sample, std::fabs(residual) * unit);
    });
    if (fit.count() < 64) return;
    std::array<std::uint8_t, predict::ScaleFit::kFeatures> start{};
    std::copy(model->context_weights.begin(), model->context_weights.end(), start.begin());
    start[kContextClasses] = model->spread;
    start[kContextClasses + 1] = model->floor;
    const auto fitted = fit.fit(start);
    // Sums of 16 bits must hold the weights of all taps times 255.
    int total = 0;
    for (int k = 0; k < around.count; ++k) {
      total += fitted[around.taps[static_cast<std::size_t>(k)].context_class];
    }
    if (total > 255) return;
    std::copy_n(fitted.begin(), kContextClasses, model->context_weights.begin());
    model->spread = fitted[kContextClasses];
    model->floor = fitted[kContextClasses + 1];
  }

 private:
  using Position = std::array<std::ptrdiff_t, 4>;

  // How far the taps are in the chunk, for the points that have all of them inside it.
  struct Distances {
    Distances(const TapList& list, const Wavefront& wavefront) {
      for (std::size_t g = 0; g < static_cast<std::size_t>(list.count); ++g) {
        for (std::size_t axis = 0; axis < 4; ++axis) {
          const std::ptrdiff_t d = list.taps[g][axis];
          distance[g] += d * static_cast<std::ptrdiff_t>(wavefront.lags()[axis]);
          low[axis] = std::max(low[axis], -d);
          high[axis] = std::max(high[axis], d);
        }
      }
      inside = wavefront.extents();
      line = wavefront.line();
    }
    bool holds(const Position& at) const {
      for (std::size_t axis = line ? 3 : 0; axis < 4; ++axis) {
        if (at[axis] < low[axis] ||
            at[axis] + high[axis] >= static_cast<std::ptrdiff_t>(inside[axis])) {
          return false;
        }
      }
      return true;
    }

    std::array<std::ptrdiff_t, kMaxCausalTaps> distance{};
    Position low{}, high{};
    std::array<std::size_t, 4> inside{};
    bool line = false;
  };

  // Points of the planes of a kind, spread evenly but not in step with any axis.
  template <class Visit>
  void for_each_sample(int kind, std::size_t samples, Visit visit) const {
    const auto& extents = wavefront_.extents();
    std::array<std::size_t, 4> origin{}, box = extents;
    for (const int axis : {0, 1}) {
      const bool before = kind >> (1 - axis) & 1;
      origin[static_cast<std::size_t>(axis)] = before ? 1 : 0;
      box[static_cast<std::size_t>(axis)] =
          before ? extents[static_cast<std::size_t>(axis)] - 1 : 1;
    }
    if (wavefront_.line()) box[2] = Wavefront::kLanes;
    const std::size_t count = box[0] * box[1] * box[2] * box[3];
    const std::size_t every = std::max<std::size_t>(1, count / samples);
    std::size_t number = 0;
    for (std::size_t j = 0; j + every <= count && number < samples; j += every, ++number) {
      std::size_t i = j + number * 7919 % every;
      Position at{};
      for (std::size_t axis = 4; axis-- > 0;) {
        at[axis] = static_cast<std::ptrdiff_t>(i % box[axis] + origin[axis]);
        i /= box[axis];
      }
      visit(at);
    }
  }

  // What the stencil misses there, in steps, and how much the nearest taps differ from it; NaN
  // where that cannot be said.
  float miss(const Position& at, const TapList& list, const Distances& near_by,
             const Model::Stencil& stencil, T* spread) const {
    const std::size_t here = place(at, {});
    if (!usable(here)) return std::numeric_limits<float>::quiet_NaN();
    T prediction = 0;
    std::array<T, predict::kSpreadTaps> near{};
    const bool inside = near_by.holds(at);
    for (int g = 0; g < stencil.taps; ++g) {
      const auto tap_number = static_cast<std::size_t>(g);
      const std::size_t i = inside ? here + static_cast<std::size_t>(near_by.distance[tap_number])
                                   : place(at, list.taps[tap_number]);
      if (!usable(i)) return std::numeric_limits<float>::quiet_NaN();
      const T tap = value(i);
      if (g < predict::kSpreadTaps) near[static_cast<std::size_t>(g)] = tap;
      prediction += tap * static_cast<T>(stencil.weights[static_cast<std::size_t>(g)]);
    }
    prediction /= static_cast<T>(1 << stencil.shift);
    for (int g = 0; spread != nullptr && g < std::min(stencil.taps, predict::kSpreadTaps); ++g) {
      *spread += std::fabs(near[static_cast<std::size_t>(g)] - prediction);
    }
    return static_cast<float>((values_[here] - prediction) * scale_.inverse_step);
  }

  // The value there, or the nearest one inside.
  std::size_t place(const std::array<std::ptrdiff_t, 4>& at, const TapOffset& offset) const {
    std::size_t i = 0;
    if (wavefront_.line()) {
      const std::ptrdiff_t x = std::max<std::ptrdiff_t>(0, at[3] + offset[3]);
      return std::min(
          static_cast<std::size_t>(at[2]) * wavefront_.extents()[3] + static_cast<std::size_t>(x),
          wavefront_.last());
    }
    for (std::size_t axis = 0; axis < 4; ++axis) {
      const auto last = static_cast<std::ptrdiff_t>(wavefront_.extents()[axis]) - 1;
      const std::ptrdiff_t c = std::clamp<std::ptrdiff_t>(at[axis] + offset[axis], 0, last);
      i += static_cast<std::size_t>(c) * wavefront_.lags()[axis];
    }
    return i;
  }
  T value(std::size_t i) const {
    std::uint32_t hash = static_cast<std::uint32_t>(i) * 2654435761u;
    hash = (hash ^ hash >> 15) * 2246822519u;
    return values_[i] + noise_[hash >> 22];
  }
  bool usable(std::size_t i) const { return std::isfinite(values_[i]) && !(values_[i] == fill_); }
  float lorenzo(const std::array<std::ptrdiff_t, 4>& at, std::int8_t y, std::int8_t x) const {
    const auto next = [](std::int8_t v) { return static_cast<std::int8_t>(v - 1); };
    const T here = value(place(at, {0, 0, y, x})), left = value(place(at, {0, 0, y, next(x)}));
    if (wavefront_.line()) return static_cast<float>((here - left) * scale_.inverse_step);
    const T above = value(place(at, {0, 0, next(y), x}));
    const T corner = value(place(at, {0, 0, next(y), next(x)}));
    return static_cast<float>(((here - left) - (above - corner)) * scale_.inverse_step);
  }
  void add_sample(const Position& at, const TapList& list, const Distances& near) {
    const std::size_t here = place(at, {});
    if (!usable(here)) return;
    const bool inside = near.holds(at);
    const std::size_t first = place(at, list.taps[0]);
    if (!usable(first)) return;
    const T base = value(first);
    float* features = fit_.features();
    for (int g = 1; g < list.count; ++g) {
      const auto tap = static_cast<std::size_t>(g);
      const std::size_t i =
          inside ? here + static_cast<std::size_t>(near.distance[tap]) : place(at, list.taps[tap]);
      if (!usable(i)) return;
      features[g - 1] = static_cast<float>((value(i) - base) * scale_.inverse_step);
      if (!(std::fabs(features[g - 1]) < 1e9f)) return;
    }
    const auto target = static_cast<float>((values_[here] - base) * scale_.inverse_step);
    if (!(std::fabs(target) < 1e9f)) return;
    const float activity =
        std::fabs(lorenzo(at, 0, 0)) + std::fabs(lorenzo(at, 0, -1)) +
        std::fabs(lorenzo(at, wavefront_.line() ? 0 : -1, wavefront_.line() ? -2 : 0));
    if (!(activity < 1e9f)) return;
    fit_.add(target, activity * (1.0f / 3));
  }

  const T* values_;
  const Wavefront& wavefront_;
  quantize::Scale<T> scale_;
  T fill_;
  simd::Target target_;
  predict::RobustFit& fit_;
  std::array<T, 1024> noise_;  // of decoded values, some of it
};

// The axis to run along: the chunk's fastest unless it is short, then the longest.
int choose_fast_axis(int rank, const std::array<std::size_t, kMaxRank>& extents) {
  int fast = rank - 1;
  if (extents[static_cast<std::size_t>(fast)] >= 56) return fast;
  for (int k = rank - 1; k >= 0; --k) {
    if (extents[static_cast<std::size_t>(k)] > extents[static_cast<std::size_t>(fast)]) fast = k;
  }
  return fast;
}

// A wavefront that would idle more than this is not worth it.
constexpr std::size_t max_slots(std::size_t count) { return 3 * count + 16384; }
constexpr std::size_t rans_capacity(std::size_t count, std::size_t slots) {
  return encode::context_rans_capacity<std::int32_t>(count) + slots / 64;
}

template <class T>
Model train_model(const T* values, std::size_t count, int fast, const Wavefront& wavefront,
                  const quantize::Scale<T>& scale, T fill, Workspace& workspace) {
  Model model;
  model.fast = fast;
  // A mask takes many of them.
  const std::size_t most = std::isnan(fill) ? 2048 : 3072;
  const std::size_t wanted = std::clamp<std::size_t>(count / 64, 1024, most);
  Trainer<T> trainer(values, wavefront, scale, fill, workspace);
  const auto& extents = wavefront.extents();
  double bits = 0;
  int main_kind = 0;
  std::size_t main_points = 0;
  for (int kind = 0; kind < kPlaneKinds; ++kind) {
    if (!wavefront.has_kind(kind)) continue;
    std::size_t points = wavefront.line() ? count : extents[2] * extents[3];
    if (kind & 1) points *= extents[1] - 1;
    if (kind & 2) points *= extents[0] - 1;
    if (points > main_points) {
      main_points = points;
      main_kind = kind;
    }
    const std::size_t samples =
        std::max(std::min<std::size_t>(points, 512), wanted * points / count);
    const float cost =
        trainer.train(kind, samples, &model.stencils[static_cast<std::size_t>(kind)]);
    bits += static_cast<double>(cost) * static_cast<double>(points) / static_cast<double>(count);
  }
  model.shift = std::clamp(static_cast<int>(bits) - 5, 0, 30);
  model.context_weights = wavefront.line() ? std::array<std::uint8_t, 5>{16, 12, 8, 0, 0}
                          : extents[1] > 1 ? std::array<std::uint8_t, 5>{16, 13, 3, 10, 2}
                                           : std::array<std::uint8_t, 5>{18, 16, 5, 0, 0};
  model.spread = 4;
  model.floor = 8;
  trainer.train_contexts(main_kind, 256, &model);
  return model;
}

}  // namespace

std::size_t causal_capacity(std::size_t count, std::size_t value_bytes) {
  return payload_head_capacity(count, count * value_bytes) + 512 +
         rans_capacity(count, max_slots(count));
}

template <class T>
void train_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace) {
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 parameters.finer);
  const T* values = contiguous(chunk, workspace);
  int fast = choose_fast_axis(chunk.rank(), chunk.extents());
  Wavefront& wavefront = workspace.wavefront;
  wavefront.reset(chunk.rank(), chunk.extents(), fast);
  if (wavefront.step_count() * Wavefront::kLanes > max_slots(chunk.count())) {
    fast = chunk.rank();
    wavefront.reset(chunk.rank(), chunk.extents(), fast);
  }
  workspace.causal_model =
      train_model(values, chunk.count(), fast, wavefront, scale, fill_of<T>(parameters), workspace);
}

template <class T>
bool encode_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                   std::uint8_t* out, Encoded* encoded) {
  if (!parameters.trained) train_causal(chunk, parameters, workspace);
  const std::size_t count = chunk.count();
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 parameters.finer);
  const T fill = fill_of<T>(parameters);
  const auto& kernels = predict::causal_kernels<T>(workspace.target);
  const T* values = contiguous(chunk, workspace);
  const Model& model = workspace.causal_model;
  Wavefront& wavefront = workspace.wavefront;
  if (parameters.trained) wavefront.reset(chunk.rank(), chunk.extents(), model.fast);

  // The base: a code near the first value, from which prediction starts.
  std::int32_t base = 0;
  T origin = 0, error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (predict::quantize_point(values[i], scale, fill, &origin, &base, &error)) break;
  }
  T* cells = reinterpret_cast<T*>(workspace.points.reserve(wavefront.cell_count() * sizeof(T)));
  std::uint8_t* magnitudes = workspace.point_magnitudes.reserve(wavefront.cell_count());
  std::fill_n(cells, wavefront.cell_count(), static_cast<T>(base) * scale.step);
  std::memset(magnitudes, 0, wavefront.cell_count());
  const std::size_t along = wavefront.lags()[3];
  wavefront.for_each_row(cells, [&](T* to, std::size_t stride, const Wavefront::Row& row) {
    const T* from = values + row.origin;
    for (std::size_t x = 0; x < row.length; ++x) to[x * stride] = from[x * along];
  });

  const std::size_t slots = wavefront.step_count() * Wavefront::kLanes;
  auto* const codes = reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(slots / 2 + 64));
  std::uint8_t* const contexts = workspace.contexts.reserve(slots + 64);
  ExactPoints<T> exact(values, count, workspace);
  T max_error = 0;
  std::size_t done = 0;
  predict::CausalStencil<T> stencil;
  T predictions[Wavefront::kLanes];
  wavefront.walk(
      cells, magnitudes,
      [&](int kind) { stencil = make_stencil<T>(model, kind, wavefront, scale.inverse_step); },
      [&](const Wavefront::Step& step) {
        kernels.predict(stencil, cells + step.index, magnitudes + step.index, step.coded,
                        predictions, contexts + done);
        std::uint32_t missed =
            kernels.quantize(scale, fill, model.shift, step.coded, predictions, cells + step.index,
                             codes + done, magnitudes + step.index, &max_error);
        for (; missed != 0; missed &= missed - 1) {
          const auto lane = static_cast<std::size_t>(std::countr_zero(missed));
          contexts[done + lane] = predict::kNotCoded;
          exact.add(wavefront.place(step, lane));
        }
        done += Wavefront::kLanes;
        return true;
      });
  if (exact.found() > count / 4 && !parameters.fill) return false;

  exact.list();
  PayloadHead head;
  head.base = base;
  head.exact_count = exact.found();
  head.finer = parameters.finer;
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  write_model(model, wavefront, writer);
  writer.advance(parameters.size_only()
                     ? workspace.rans_encoder.estimate(codes, contexts, done,
                                                       parameters.look_at_one_in, workspace.target)
                     : workspace.rans_encoder.encode(codes, contexts, done, {}, workspace.target,
                                                     writer.here(), rans_capacity(count, done)));
  // Errors are rounded to the nearest number, so the largest may be a little more than that.
  if (max_error > 0) max_error = std::nextafter(max_error, scale.bound);
  *encoded = {Pipeline::causal, writer.size(), static_cast<double>(max_error)};
  if (parameters.measured) {
    ErrorSample<T> errors(parameters.bound_abs, count);
    std::size_t begin = 0;
    wavefront.for_each_row(cells, [&](T* cell, std::size_t stride, const Wavefront::Row& row) {
      for (; errors.next() < begin + row.length; errors.advance()) {
        const std::size_t x = errors.next() - begin;
        errors.add(values[row.origin + x * along], cell[x * stride]);
      }
      begin += row.length;
    });
    encoded->mean_square = errors.mean_square();
  }
  return true;
}

template <class T>
bool decode_causal(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  ByteReader in(payload);
  PayloadHead head;
  Model model;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), count, workspace,
                         &head) ||
      head.wide || pack_orders(head.orders) != 0 ||
      static_cast<std::int32_t>(head.base) != head.base ||
      !read_model_head(in, chunk.rank(), &model)) {
    return false;
  }
  Wavefront& wavefront = workspace.wavefront;
  wavefront.reset(chunk.rank(), chunk.extents(), model.fast);
  if (!wavefront.line() && wavefront.step_count() * Wavefront::kLanes > max_slots(count)) {
    return false;
  }
  if (!read_stencils(in, wavefront, &model) ||
      !workspace.rans_decoder.start(in.read_rest(), workspace.target)) {
    return false;
  }
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 head.finer);
  const auto& kernels = predict::causal_kernels<T>(workspace.target);
  T* cells = reinterpret_cast<T*>(workspace.points.reserve(wavefront.cell_count() * sizeof(T)));
  std::uint8_t* magnitudes = workspace.point_magnitudes.reserve(wavefront.cell_count());
  std::fill_n(cells, wavefront.cell_count(), static_cast<T>(head.base) * scale.step);
  std::memset(magnitudes, 0, wavefront.cell_count());
  const bool any_exact = head.exact_count != 0;
  predict::CausalStencil<T> stencil;
  T predictions[Wavefront::kLanes];
  std::uint8_t contexts[Wavefront::kLanes];
  std::int32_t codes[Wavefront::kLanes];
  const bool whole = wavefront.walk(
      cells, magnitudes,
      [&](int kind) { stencil = make_stencil<T>(model, kind, wavefront, scale.inverse_step); },
      [&](const Wavefront::Step& step) {
        std::uint32_t coded = step.coded;
        if (any_exact) {
          for (std::uint32_t lanes = step.coded; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
            if (workspace.exact_map.test(wavefront.place(step, lane))) {
              coded &= ~(std::uint32_t{1} << lane);
            }
          }
        }
        kernels.predict(stencil, cells + step.index, magnitudes + step.index, coded, predictions,
                        contexts);
        if (!workspace.rans_decoder.decode(contexts, Wavefront::kLanes, codes)) return false;
        kernels.restore(scale.step, model.shift, predictions, codes, cells + step.index,
                        magnitudes + step.index);
        return true;
      });
  if (!whole || !workspace.rans_decoder.finish()) return false;

  T* values = reinterpret_cast<T*>(workspace.values.reserve(count * sizeof(T)));
  const std::size_t along = wavefront.lags()[3];
  wavefront.for_each_row(cells, [&](const T* from, std::size_t stride, const Wavefront::Row& row) {
    T* to = values + row.origin;
    for (std::size_t x = 0; x < row.length; ++x) to[x * along] = from[x * stride];
  });
  write_values<T>(values, any_exact, chunk, workspace);
  return true;
}

std::string describe_causal(std::span<const std::uint8_t> payload, int rank, unsigned tighter) {
  ByteReader in(payload);
  const HeadInWords head = pass_head(in, tighter);
  Model model;
  if (!read_model_head(in, rank, &model)) return "damaged";
  std::string text = "stencil of up to " + std::to_string(kMaxCausalTaps) + " points";
  text += model.fast == rank ? ", as a line" : ", along axis " + std::to_string(model.fast);
  return text + head.text;
}

#define FIRN_INSTANTIATE(T)                                                                      \
  template void train_causal(const Box<const T>&, const Parameters&, Workspace&);                \
  template bool encode_causal(const Box<const T>&, const Parameters&, Workspace&, std::uint8_t*, \
                              Encoded*);                                                         \
  template bool decode_causal(std::span<const std::uint8_t>, const Parameters&, const Box<T>&,   \
                              Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
