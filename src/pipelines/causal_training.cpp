#include "pipelines/causal_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "predict/robust_fit.hpp"

namespace firn::pipelines {
namespace {

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
  float train(int kind, std::size_t samples, CausalModel::Stencil* stencil) {
    const CausalTaps list(kind, wavefront_);
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
  void train_contexts(int kind, std::size_t samples, CausalModel* model) {
    const CausalTaps list(kind, wavefront_);
    const CausalContextTaps around(kind, wavefront_.line());
    const CausalModel::Stencil& stencil = model->stencils[static_cast<std::size_t>(kind)];
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
      sample[CausalContextTaps::classes] =
          static_cast<float>(spread * scale_.inverse_step) * unit * (1.0f / 256);
      sample[CausalContextTaps::classes + 1] = 1.0f / 256;
      fit.add(sample, std::fabs(residual) * unit);
    });
    if (fit.count() < 64) return;
    std::array<std::uint8_t, predict::ScaleFit::kFeatures> start{};
    std::copy(model->context_weights.begin(), model->context_weights.end(), start.begin());
    start[CausalContextTaps::classes] = model->spread;
    start[CausalContextTaps::classes + 1] = model->floor;
    const auto fitted = fit.fit(start);
    // Sums of 16 bits must hold the weights of all taps times 255.
    int total = 0;
    for (int k = 0; k < around.count; ++k) {
      total += fitted[around.taps[static_cast<std::size_t>(k)].context_class];
    }
    if (total > 255) return;
    std::copy_n(fitted.begin(), CausalContextTaps::classes, model->context_weights.begin());
    model->spread = fitted[CausalContextTaps::classes];
    model->floor = fitted[CausalContextTaps::classes + 1];
  }

 private:
  using Position = std::array<std::ptrdiff_t, 4>;

  // How far the taps are in the chunk, for the points that have all of them inside it.
  struct Distances {
    Distances(const CausalTaps& list, const Wavefront& wavefront) {
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

    std::array<std::ptrdiff_t, predict::kMaxCausalTaps> distance{};
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
  float miss(const Position& at, const CausalTaps& list, const Distances& near_by,
             const CausalModel::Stencil& stencil, T* spread) const {
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
  void add_sample(const Position& at, const CausalTaps& list, const Distances& near) {
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

}  // namespace

template <class T>
CausalModel train_causal_model(const T* values, std::size_t count, int fast,
                               const Wavefront& wavefront, const quantize::Scale<T>& scale, T fill,
                               Workspace& workspace) {
  CausalModel model;
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

#define FIRN_INSTANTIATE(T)                                                             \
  template CausalModel train_causal_model(const T*, std::size_t, int, const Wavefront&, \
                                          const quantize::Scale<T>&, T, Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
