#include "pipelines/interp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "container/format.hpp"
#include "encode/context_rans.hpp"
#include "pipelines/feedback.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "predict/interpolation.hpp"
#include "predict/robust_fit.hpp"
#include "quantize/logarithmic.hpp"

namespace firn::pipelines {
namespace {

using Extents = std::array<std::size_t, kMaxRank>;
using predict::kActivityContexts;

// Contexts: those of the activity, apart for the finest level, the next and the rest; one for the
// points of the coarsest grid; one for exact points, which cost next to nothing.
constexpr int kLevelSets = 3;
constexpr std::uint8_t kRootContext = kLevelSets * kActivityContexts;
constexpr std::uint8_t kExactContext = kRootContext + 1;

// Grids are padded to four axes, slowest first.
struct Geometry {
  Extents extents{1, 1, 1, 1};
  unsigned frozen = 0;  // bits of padded axes
  int levels = 0;

  Geometry(int rank, const Extents& chunk, unsigned frozen_axes) {
    const int shift = kMaxRank - rank;
    for (int k = 0; k < rank; ++k) extents[static_cast<std::size_t>(k + shift)] = chunk[k];
    frozen = frozen_axes << shift;
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      if (frozen >> k & 1) continue;
      while ((std::size_t{1} << levels) < extents[k]) ++levels;
    }
  }
  // Points of the grid of spacing s along axis k.
  std::size_t on_grid(std::size_t k, std::size_t s) const {
    return frozen >> k & 1 ? extents[k] : (extents[k] + s - 1) / s;
  }
  // Spacing along an axis in the chunk of points s apart on the grid.
  std::size_t spacing(std::size_t k, std::size_t s) const { return frozen >> k & 1 ? 1 : s; }
};

// Which of a class' odd axes its points are interpolated along, and how.
struct Base {
  unsigned axes = 15;  // bits of padded axes; those that are not odd do not count
  bool linear = false;
};

// Classes of fewer points have no choice of base.
constexpr std::size_t kMinBasePoints = 512;

// A base in a byte: bits 0 to 3: axes, of the odd ones, slowest first; bit 4: linear.
std::uint8_t pack_base(const Base& base, unsigned odd) {
  unsigned packed = base.linear ? 16 : 0;
  int place = 0;
  for (unsigned k = 0; k < kMaxRank; ++k) {
    if (odd >> k & 1) packed |= (base.axes >> k & 1) << place++;
  }
  return static_cast<std::uint8_t>(packed);
}
bool unpack_base(std::uint8_t packed, unsigned odd, Base* base) {
  base->axes = 0;
  base->linear = packed >> 4 & 1;
  int place = 0;
  for (unsigned k = 0; k < kMaxRank; ++k) {
    if (odd >> k & 1) base->axes |= (static_cast<unsigned>(packed) >> place++ & 1) << k;
  }
  return base->axes != 0 && packed < 32 && (packed & 15) >> place == 0;
}

// How much finer than the finest the steps of the points at spacing 2^level are.
double fineness_factor(int fineness, int level) {
  constexpr double kGrowth[] = {1, 1.25, 1.5, 2}, kMost[] = {1, 2, 4, 8};
  double factor = 1;
  for (int l = 0; l < level && factor < kMost[fineness]; ++l) factor *= kGrowth[fineness];
  return std::min(factor, kMost[fineness]);
}
template <class T>
quantize::Scale<T> level_scale(quantize::Scale<T> scale, int fineness, int level) {
  scale.step = scale.step / static_cast<T>(fineness_factor(fineness, level));
  scale.inverse_step = 1 / scale.step;
  return scale;
}

// How points become codes: by their distance from the prediction under an absolute bound, by that
// of the logarithms under a point-wise one.
template <class T>
class PointCoder {
 public:
  PointCoder(const Parameters& parameters, simd::Target target)
      : pointwise_(parameters.pointwise),
        fill_(parameters.fill ? static_cast<T>(*parameters.fill)
                              : std::numeric_limits<T>::quiet_NaN()),
        bound_(static_cast<T>(parameters.bound_abs)),
        finest_(bound_, parameters.margin),
        scale_(finest_),
        log_scale_(bound_),
        kernels_(predict::interpolation_kernels<T>(target)),
        log_kernels_(quantize::log_point_kernels<T>(target)),
        flag_(quantize::log_kernels<T, std::int32_t>(target).flag) {}

  // Codes are 32-bit.
  bool usable() const { return !pointwise_ || (log_scale_.usable() && !log_scale_.wide()); }

  bool pointwise() const { return pointwise_; }
  // The steps of the points at spacing 2^level.
  void set_level(int fineness, int level) { scale_ = level_scale(finest_, fineness, level); }

  void predict(const predict::Direction<T>* directions, int count, bool linear, std::size_t length,
               std::uint8_t first_context, T* predictions, std::uint8_t* contexts) const {
    if (pointwise_) {
      const T inverse_step = 1 / (2 * bound_);
      kernels_.predict_pointwise(directions, count, linear, length, inverse_step, first_context,
                                 predictions, contexts);
    } else {
      kernels_.predict(directions, count, linear, length, scale_.inverse_step, first_context,
                       predictions, contexts);
    }
  }
  void base_costs(const predict::Direction<T>* directions, int count, const T* values,
                  std::size_t length, std::uint32_t* costs) const {
    kernels_.base_costs(directions, count, values, length, scale_.inverse_step, costs);
  }
  bool quantize(T value, T* point, std::int32_t* code, T* error) const {
    return pointwise_ ? quantize::log_quantize_point(value, log_scale_, fill_, point, code, error)
                      : predict::quantize_point(value, scale_, fill_, point, code, error);
  }
  bool quantize(const T* values, std::size_t count, T* points, std::int32_t* codes,
                std::uint8_t* magnitudes, T* max_error) const {
    if (!pointwise_) {
      return kernels_.quantize(values, count, scale_, fill_, points, codes, magnitudes, max_error);
    }
    const bool all =
        log_kernels_.quantize(values, count, log_scale_, fill_, points, codes, max_error);
    kernels_.magnitudes(codes, count, magnitudes);
    return all;
  }
  // visit(i) for each value that quantize could not code and whose point it has left alone.
  template <class Visit>
  void for_each_exact(const T* values, const T* points, std::size_t count, Workspace& workspace,
                      Visit visit) const {
    if (!pointwise_) {
      for (std::size_t i = 0; i < count; ++i) {
        if (values[i] != fill_ && std::fabs(points[i] - values[i]) < bound_) continue;
        visit(i);
      }
      return;
    }
    std::uint64_t* flags = workspace.row_flags.reserve((count + 63) / 64);
    flag_(values, count, log_scale_, fill_, flags);
    for (std::size_t w = 0; w < (count + 63) / 64; ++w) {
      for (std::uint64_t word = flags[w]; word != 0; word &= word - 1) {
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }
  T restore(std::int32_t code, T prediction) const {
    return pointwise_ ? quantize::log_restore_point(code, log_scale_, prediction)
                      : prediction + static_cast<T>(code) * scale_.step;
  }
  void restore(const std::int32_t* codes, std::size_t count, T* points,
               std::uint8_t* magnitudes) const {
    if (pointwise_) {
      log_kernels_.restore(codes, count, log_scale_, points);
      kernels_.magnitudes(codes, count, magnitudes);
    } else {
      kernels_.restore(codes, count, scale_.step, points, magnitudes);
    }
  }
  void magnitudes(const std::int32_t* codes, std::size_t count, std::uint8_t* out) const {
    kernels_.magnitudes(codes, count, out);
  }
  // Errors are rounded to the nearest number, so the largest may be a little more than that.
  double rounded_up(T max_error) const {
    if (!(max_error > 0)) return 0;
    if (pointwise_) {
      return std::min(static_cast<double>(max_error) * (1 + 0x1p-20), static_cast<double>(bound_));
    }
    return static_cast<double>(std::nextafter(max_error, bound_));
  }

 private:
  bool pointwise_;
  T fill_, bound_;
  quantize::Scale<T> finest_, scale_;  // of the finest level, of this one
  quantize::LogScale<T> log_scale_;
  const predict::InterpolationKernels<T>& kernels_;
  const quantize::LogPointKernels<T>& log_kernels_;
  decltype(quantize::LogKernels<T, std::int32_t>::flag) flag_;
};

// One parity class of a level: points that lie at odd multiples of the spacing s along the axes in
// `odd`, at even ones along the others (any along frozen axes).
template <class T>
struct Class {
  Extents extents{};
  std::size_t count = 0;
  T* points = nullptr;
  std::uint8_t* magnitudes = nullptr;

  std::size_t row(std::size_t a, std::size_t b, std::size_t c) const {
    return ((a * extents[1] + b) * extents[2] + c) * extents[3];
  }
};

// The grids of a chunk while it is refined. Class 0 of a level is the grid of the level before.
template <class T>
class Refinement {
 public:
  Refinement(const Geometry& geometry, const PointCoder<T>& coder, Workspace& workspace)
      : geometry_(geometry), coder_(coder) {
    const std::size_t count =
        geometry.extents[0] * geometry.extents[1] * geometry.extents[2] * geometry.extents[3];
    // Three sets: the grid so far, the classes that join it, and the grid of both.
    const std::size_t capacity = count + 16 * kPadding;
    points_ = reinterpret_cast<T*>(workspace.points.reserve(3 * capacity * sizeof(T)));
    magnitudes_ = workspace.point_magnitudes.reserve(3 * capacity);
    class_points_ = points_ + capacity;
    class_magnitudes_ = magnitudes_ + capacity;
    next_points_ = points_ + 2 * capacity;
    next_magnitudes_ = magnitudes_ + 2 * capacity;
    edge_ = reinterpret_cast<T*>(
        workspace.row.reserve((geometry.extents[3] + 8 * kPadding) * sizeof(T)));
    edge_magnitudes_ = workspace.edge_magnitudes.reserve(geometry.extents[3] + 8 * kPadding);
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid_[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
  }

  T* grid() { return points_; }
  std::uint8_t* grid_magnitudes() { return magnitudes_; }
  std::size_t grid_count() const { return grid_[0] * grid_[1] * grid_[2] * grid_[3]; }

  // Sets up the classes of the level whose new spacing is s.
  void open_level(std::size_t s) {
    spacing_ = s;
    std::size_t used = 0;
    for (unsigned odd = 0; odd < 16; ++odd) {
      Class<T>& cls = classes_[odd];
      cls.count = 1;
      for (std::size_t k = 0; k < kMaxRank; ++k) {
        const std::size_t total = geometry_.on_grid(k, s);
        const std::size_t even = grid_[k];
        cls.extents[k] = odd >> k & 1 ? total - even : even;
        if (geometry_.frozen >> k & 1 && odd >> k & 1) cls.extents[k] = 0;
        cls.count *= cls.extents[k];
      }
      if (odd == 0) {
        cls.points = points_;
        cls.magnitudes = magnitudes_;
      } else {
        cls.points = class_points_ + used;
        cls.magnitudes = class_magnitudes_ + used;
        used += cls.count == 0 ? 0 : cls.count + kPadding;
      }
    }
  }

  const Class<T>& at(unsigned odd) const { return classes_[odd]; }

  bool has_base(const Class<T>& cls) const {
    return !coder_.pointwise() && cls.count >= kMinBasePoints;
  }
  // How many classes have a choice of base.
  std::size_t base_count() const {
    std::size_t bases = 0;
    for (std::size_t s = std::size_t{1} << geometry_.levels >> 1; s != 0; s >>= 1) {
      for (unsigned odd = 1; odd < 16; ++odd) {
        std::size_t count = 1;
        for (std::size_t k = 0; k < kMaxRank; ++k) {
          const std::size_t total = geometry_.on_grid(k, s);
          const std::size_t even = geometry_.on_grid(k, 2 * s);
          count *= odd >> k & 1 ? total - even : even;
        }
        bases += !coder_.pointwise() && count >= kMinBasePoints;
      }
    }
    return bases;
  }

  // visit(row number, chunk offset of its first point, distance in the chunk between its points).
  template <class Visit>
  void for_each_row(unsigned odd, Visit visit) const {
    const Class<T>& cls = classes_[odd];
    std::size_t step = 0;
    const std::size_t along = row_offset(odd, 0, 0, 1, &step) - row_offset(odd, 0, 0, 0, &step);
    for (std::size_t a = 0; a < cls.extents[0]; ++a) {
      for (std::size_t b = 0; b < cls.extents[1]; ++b) {
        std::size_t offset = row_offset(odd, a, b, 0, &step);
        for (std::size_t c = 0; c < cls.extents[2]; ++c, offset += along) {
          visit(a, b, c, offset, step);
        }
      }
    }
  }

  // Where in the chunk a row of a class begins, and how far apart its points are there.
  std::size_t row_offset(unsigned odd, std::size_t a, std::size_t b, std::size_t c,
                         std::size_t* step) const {
    const Extents lag = lags();
    const auto place = [&](std::size_t k, std::size_t i) {
      if (geometry_.frozen >> k & 1) return i;
      return (2 * i + (odd >> k & 1)) * spacing_;
    };
    *step = geometry_.frozen >> 3 & 1 ? 1 : 2 * spacing_;
    return place(0, a) * lag[0] + place(1, b) * lag[1] + place(2, c) * lag[2] + place(3, 0);
  }

  // Predictions of a row of a class into its points, and its contexts.
  void predict_row(unsigned odd, const Base& base, std::size_t a, std::size_t b, std::size_t c,
                   std::uint8_t first_context, std::uint8_t* contexts) {
    const Class<T>& cls = classes_[odd];
    predict::Direction<T> directions[predict::kMaxDirections];
    const int count = find_directions(odd, base.axes, a, b, c, directions);
    coder_.predict(directions, count, base.linear, cls.extents[3], first_context,
                   cls.points + cls.row(a, b, c), contexts);
  }

  // The neighbours of a row along those of its odd axes that are in `axes`.
  int find_directions(unsigned odd, unsigned axes, std::size_t a, std::size_t b, std::size_t c,
                      predict::Direction<T>* directions) {
    const std::array<std::size_t, 3> at{a, b, c};
    int count = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      if (((odd & axes) >> k & 1) == 0) continue;
      // Neighbours along axis k are in the class that is even there, at i and i + 1.
      const Class<T>& known = classes_[odd & ~(1u << k)];
      const std::size_t i = at[k];
      const std::size_t length = known.extents[k];
      predict::Direction<T>& direction = directions[count++];
      set_weights(i >= 1, i + 1 < length, i + 2 < length, direction);
      std::size_t lag = known.extents[3];
      for (std::size_t j = 2; j > k; --j) lag *= known.extents[j];
      const std::size_t left = known.row(a, b, c);
      const std::size_t right = i + 1 < length ? left + lag : left;
      direction.row = {known.points + (i >= 1 ? left - lag : left), known.points + left,
                       known.points + right, known.points + (i + 2 < length ? right + lag : left)};
      direction.magnitude = {known.magnitudes + left, known.magnitudes + right};
    }
    if ((odd & axes) >> 3 & 1) add_fast_axis(odd, a, b, c, directions[count++]);
    return count;
  }

  // The base of least estimated cost on some runs of points of a class.
  Base choose_base(unsigned odd, const T* values) {
    const Class<T>& cls = classes_[odd];
    constexpr std::size_t kSamples = 384, kRun = 32;
    const std::size_t length = cls.extents[3];
    const std::size_t rows = cls.count / length;
    const std::size_t run = std::min(length, kRun);
    const std::size_t wanted = std::min(rows, std::max<std::size_t>(2, kSamples / length));
    const std::size_t every = rows / wanted;
    const std::size_t runs = std::clamp<std::size_t>(kSamples / (wanted * run), 1, length / run);
    std::array<std::uint32_t, 32> costs{};
    T sample[kRun + predict::kRowSlack] = {};
    for (std::size_t number = every / 2, visited = 0; visited < wanted; number += every) {
      ++visited;
      const std::size_t c = number % cls.extents[2];
      const std::size_t b = number / cls.extents[2] % cls.extents[1];
      const std::size_t a = number / cls.extents[2] / cls.extents[1];
      std::size_t step = 0;
      const std::size_t offset = row_offset(odd, a, b, c, &step);
      predict::Direction<T> known[predict::kMaxDirections];
      const int directions = find_directions(odd, odd, a, b, c, known);
      for (std::size_t place = 0; place < runs; ++place) {
        // Evenly spread, not at the same place in every row.
        const std::size_t begin = (length - run) * (2 * place + visited % 2 + 1) / (2 * runs + 1);
        for (std::size_t i = 0; i < run; ++i) sample[i] = values[offset + (begin + i) * step];
        predict::Direction<T> here[predict::kMaxDirections];
        for (int k = 0; k < directions; ++k) {
          here[k] = known[k];
          for (const T*& row : here[k].row) row += begin;
        }
        coder_.base_costs(here, directions, sample, run, costs.data());
      }
    }
    const unsigned all = (1u << std::popcount(odd)) - 1;
    unsigned best = all;
    std::uint32_t least = costs[best] / 32 * 27;
    for (unsigned choice = 1; choice < 32; ++choice) {
      if ((choice & 15) == 0 || (choice & 15) > all || costs[choice] >= least) continue;
      least = costs[choice];
      best = choice;
    }
    Base base;
    unpack_base(static_cast<std::uint8_t>(best), odd, &base);
    return base;
  }

  // A row of the grid that the classes of the level make up; its magnitudes unless null.
  void join_row(std::size_t a, std::size_t b, std::size_t c, T* points,
                std::uint8_t* magnitudes) const {
    unsigned odd = 0;
    std::array<std::size_t, 3> at{a, b, c};
    for (std::size_t k = 0; k < 3; ++k) {
      if (geometry_.frozen >> k & 1) continue;
      odd |= static_cast<unsigned>(at[k] & 1) << k;
      at[k] >>= 1;
    }
    const Class<T>& even = classes_[odd];
    const Class<T>& other = classes_[odd | 8];
    const std::size_t first = even.row(at[0], at[1], at[2]);
    const std::size_t second = other.row(at[0], at[1], at[2]);
    const std::size_t length = even.extents[3] + other.extents[3];
    if (other.extents[3] == 0) {
      std::memcpy(points, even.points + first, length * sizeof(T));
      if (magnitudes != nullptr) std::memcpy(magnitudes, even.magnitudes + first, length);
      return;
    }
    interleave(even.points + first, other.points + second, length, points);
    if (magnitudes == nullptr) return;
    interleave(even.magnitudes + first, other.magnitudes + second, length, magnitudes);
  }

  // Joins the classes of the level into the grid.
  void close_level() {
    Extents total{};
    for (std::size_t k = 0; k < kMaxRank; ++k) total[k] = geometry_.on_grid(k, spacing_);
    std::size_t to = 0;
    for (std::size_t a = 0; a < total[0]; ++a) {
      for (std::size_t b = 0; b < total[1]; ++b) {
        for (std::size_t c = 0; c < total[2]; ++c, to += total[3]) {
          join_row(a, b, c, next_points_ + to, next_magnitudes_ + to);
        }
      }
    }
    std::swap(points_, next_points_);
    std::swap(magnitudes_, next_magnitudes_);
    grid_ = total;
  }

  Extents lags() const {
    Extents lag{};
    lag[3] = 1;
    for (std::size_t k = 3; k-- > 0;) lag[k] = lag[k + 1] * geometry_.extents[k + 1];
    return lag;
  }

 private:
  static constexpr std::size_t kPadding = predict::kRowSlack;

  template <class V>
  static void interleave(const V* __restrict even, const V* __restrict odd, std::size_t length,
                         V* __restrict out) {
    std::size_t i = 0;
    for (; 2 * i + 1 < length; ++i) {
      out[2 * i] = even[i];
      out[2 * i + 1] = odd[i];
    }
    if (2 * i < length) out[2 * i] = even[i];
  }

  // Along the fastest axis the known row is copied with a straight line continued at both ends, so
  // that all points have the inner weights.
  void add_fast_axis(unsigned odd, std::size_t a, std::size_t b, std::size_t c,
                     predict::Direction<T>& direction) {
    const Class<T>& known = classes_[odd & ~8u];
    const std::size_t row = known.row(a, b, c);
    const std::size_t length = known.extents[3];
    T* const line = edge_ + kPadding;
    std::memcpy(line, known.points + row, length * sizeof(T));
    const T first = line[0], last = line[length - 1];
    const T second = length > 1 ? line[1] : first, before = length > 1 ? line[length - 2] : last;
    line[-1] = first + (first - second);
    line[length] = last + (last - before);
    line[length + 1] = line[length] + (last - before);
    std::uint8_t* const codes = edge_magnitudes_ + kPadding;
    std::memcpy(codes, known.magnitudes + row, length);
    codes[length] = codes[length - 1];
    set_weights(true, true, true, direction);
    direction.row = {line - 1, line, line + 1, line + 2};
    direction.magnitude = {codes, codes + 1};
  }

  Geometry geometry_;
  const PointCoder<T>& coder_;
  T* points_ = nullptr;
  std::uint8_t* magnitudes_ = nullptr;
  T* class_points_ = nullptr;
  std::uint8_t* class_magnitudes_ = nullptr;
  T* next_points_ = nullptr;
  std::uint8_t* next_magnitudes_ = nullptr;
  T* edge_ = nullptr;
  std::uint8_t* edge_magnitudes_ = nullptr;
  Extents grid_{};
  std::size_t spacing_ = 0;
  std::array<Class<T>, 16> classes_{};
};

// Classes in the order in which they are coded: the fastest axis counts lowest.
constexpr unsigned class_order(unsigned i) {
  return (i & 1) << 3 | (i >> 1 & 1) << 2 | (i >> 2 & 1) << 1 | i >> 3;
}

std::uint8_t level_set(std::size_t spacing) {
  return static_cast<std::uint8_t>((spacing == 1 ? 0 : spacing == 2 ? 1 : 2) * kActivityContexts);
}

template <class T>
void gather(const T* __restrict from, std::size_t step, std::size_t count, T* __restrict to) {
  if (step == 2) {
    for (std::size_t k = 0; k < count; ++k) to[k] = from[2 * k];
  } else {
    for (std::size_t k = 0; k < count; ++k) to[k] = from[k * step];
  }
}

// What exact points leave for their neighbours to lean on.
template <class T>
T finite_or_zero(T value) {
  return std::isfinite(value) ? value : T{0};
}

}  // namespace

std::size_t interp_capacity(std::size_t count, std::size_t value_bytes) {
  return payload_head_capacity(count, count * value_bytes) + 16 +
         encode::context_rans_capacity<std::int32_t>(count);
}

template <class T>
bool encode_interp(const Box<const T>& chunk, const Parameters& parameters, unsigned frozen,
                   int fineness, Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  const std::size_t count = chunk.count();
  PointCoder<T> coder(parameters, workspace.target);
  if (!coder.usable() || (coder.pointwise() && fineness != 0)) return false;
  const Geometry geometry(chunk.rank(), chunk.extents(), frozen);
  const T* values = contiguous(chunk, workspace);
  Refinement<T> refinement(geometry, coder, workspace);
  ExactPoints<T> exact(values, count, workspace);
  std::int32_t* codes =
      reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(count / 2 + 64));
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  T* wanted =
      reinterpret_cast<T*>(workspace.wanted.reserve((geometry.extents[3] + 64) * sizeof(T)));
  std::vector<std::size_t>& segments = workspace.segments;
  segments.clear();
  std::vector<std::uint8_t>& bases = workspace.bases;
  bases.clear();
  T max_error = 0;

  // The coarsest grid: each point predicted by the one before.
  coder.set_level(fineness, geometry.levels);
  const std::size_t roots = refinement.grid_count();
  T previous = 0;
  {
    const Extents lag = refinement.lags();
    std::size_t i = 0;
    Extents grid{};
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
    for (std::size_t a = 0; a < grid[0]; ++a) {
      for (std::size_t b = 0; b < grid[1]; ++b) {
        for (std::size_t c = 0; c < grid[2]; ++c) {
          for (std::size_t d = 0; d < grid[3]; ++d, ++i) {
            const std::size_t at = a * lag[0] + b * lag[1] + c * lag[2] + d;
            T point = previous, error = 0;
            if (!coder.quantize(values[at], &point, &codes[i], &error)) {
              exact.add(at);
              contexts[i] = kExactContext;
            } else {
              contexts[i] = kRootContext;
              max_error = std::max(max_error, error);
            }
            refinement.grid()[i] = previous = point;
          }
        }
      }
    }
    coder.magnitudes(codes, roots, refinement.grid_magnitudes());
    segments.push_back(roots);
  }

  std::size_t done = roots;
  for (std::size_t s = std::size_t{1} << geometry.levels >> 1; s != 0; s >>= 1) {
    coder.set_level(fineness, std::countr_zero(s));
    refinement.open_level(s);
    for (unsigned i = 1; i < 16; ++i) {
      const unsigned odd = class_order(i);
      const Class<T>& cls = refinement.at(odd);
      if (cls.count == 0) continue;
      Base base;
      if (refinement.has_base(cls)) {
        base = refinement.choose_base(odd, values);
        bases.push_back(pack_base(base, odd));
      }
      const std::size_t length = cls.extents[3];
      std::int32_t* row_codes = codes + done;
      std::uint8_t* row_contexts = contexts + done;
      refinement.for_each_row(odd, [&](std::size_t a, std::size_t b, std::size_t c,
                                       std::size_t offset, std::size_t step) {
        refinement.predict_row(odd, base, a, b, c, level_set(s), row_contexts);
        gather(values + offset, step, length, wanted);
        const std::size_t row = cls.row(a, b, c);
        T* points = cls.points + row;
        if (!coder.quantize(wanted, length, points, row_codes, cls.magnitudes + row, &max_error)) {
          coder.for_each_exact(wanted, points, length, workspace, [&](std::size_t k) {
            exact.add(offset + k * step);
            row_contexts[k] = kExactContext;
            points[k] = coder.restore(0, finite_or_zero(points[k]));
          });
        }
        row_codes += length;
        row_contexts += length;
      });
      segments.push_back(cls.count);
      done += cls.count;
    }
    if (s > 1) refinement.close_level();
  }
  if (exact.costly(parameters.pointwise) > count / 4 && !parameters.fill) return false;

  exact.list();
  PayloadHead head;
  head.exact_count = exact.found();
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  writer.write<std::uint8_t>(
      static_cast<std::uint8_t>(frozen | static_cast<unsigned>(fineness) << 4));
  writer.write_bytes(bases);
  writer.advance(parameters.trial
                     ? workspace.rans_encoder.estimate(codes, contexts, count, workspace.target)
                     : workspace.rans_encoder.encode(codes, contexts, count, segments,
                                                     workspace.target, writer.here()));
  *encoded = {Pipeline::interp, writer.size(), coder.rounded_up(max_error)};
  return true;
}

namespace {

// Joins the last level right where the values belong.
template <class T>
void write_level(const Refinement<T>& refinement, const Geometry& geometry, bool any_exact,
                 const Box<T>& chunk, Workspace& workspace) {
  // The chunk's rows are one or more of the grid's.
  const std::size_t length = geometry.extents[3];
  const std::int64_t stride = chunk.row_stride();
  T* const joined = reinterpret_cast<T*>(workspace.wanted.reserve(length * sizeof(T)));
  const std::uint8_t* exact = workspace.exact_bytes.data();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    for (std::size_t begin = 0; begin < chunk.row_length(); begin += length) {
      const std::size_t number = (offset + begin) / length;
      const std::size_t plane = number / geometry.extents[2];
      T* const values = stride == 1 ? row + begin : joined;
      refinement.join_row(plane / geometry.extents[1], plane % geometry.extents[1],
                          number % geometry.extents[2], values, nullptr);
      if (any_exact) {
        const std::size_t first = offset + begin;
        workspace.exact_map.for_each(first, first + length, [&](std::size_t i) {
          std::memcpy(&values[i - first], exact, sizeof(T));
          exact += sizeof(T);
        });
      }
      for (std::size_t i = 0; stride != 1 && i < length; ++i) {
        row[static_cast<std::int64_t>(begin + i) * stride] = joined[i];
      }
    }
    return true;
  });
}

// What decode_levels leaves in the workspace: the grid of the last spacing, row after row.
template <class T>
struct Levels {
  const T* grid = nullptr;
  unsigned frozen = 0;  // bits of the chunk's own axes
  bool any_exact = false;
};

// Decodes down to the spacing `stop`, a power of two. The segments of coarser points come first, so
// the rest of the payload is not looked at unless `stop` is 1. Given a chunk, writes the values of
// spacing 1 there instead.
template <class T>
bool decode_levels(std::span<const std::uint8_t> payload, const Parameters& parameters, int rank,
                   const Extents& extents, std::size_t count, std::size_t stop, const Box<T>* chunk,
                   Workspace& workspace, Levels<T>* levels) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, rank, extents, sizeof(T), count, workspace, &head) ||
      head.wide || head.signs || pack_orders(head.orders) != 0 || head.base != 0) {
    return false;
  }
  const unsigned packed = in.read<std::uint8_t>();
  const unsigned frozen = packed & 15;
  const int fineness = static_cast<int>(packed >> 4);
  if (!in.ok() || frozen >> rank != 0 || fineness > kMaxFineness) return false;
  PointCoder<T> coder(parameters, workspace.target);
  if (!coder.usable() || (coder.pointwise() && fineness != 0)) return false;
  const Geometry geometry(rank, extents, frozen);
  Refinement<T> refinement(geometry, coder, workspace);
  const std::span<const std::uint8_t> bases = in.read_bytes(refinement.base_count());
  if (!in.ok() || !workspace.rans_decoder.start(in.read_rest(), workspace.target)) return false;
  std::int32_t* codes =
      reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(count / 2 + 64));
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  const bool any_exact = head.exact_count != 0;
  levels->frozen = frozen;
  levels->any_exact = any_exact;

  const std::size_t roots = refinement.grid_count();
  {
    const Extents lag = refinement.lags();
    Extents grid{};
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
    std::size_t i = 0;
    for (std::size_t a = 0; a < grid[0]; ++a) {
      for (std::size_t b = 0; b < grid[1]; ++b) {
        for (std::size_t c = 0; c < grid[2]; ++c) {
          for (std::size_t d = 0; d < grid[3]; ++d, ++i) {
            const std::size_t at = a * lag[0] + b * lag[1] + c * lag[2] + d;
            contexts[i] = any_exact && workspace.exact_map.test(at) ? kExactContext : kRootContext;
          }
        }
      }
    }
    if (!workspace.rans_decoder.decode(contexts, roots, codes)) return false;
    coder.set_level(fineness, geometry.levels);
    T previous = 0;
    for (i = 0; i < roots; ++i) {
      if (contexts[i] == kRootContext) previous = coder.restore(codes[i], previous);
      refinement.grid()[i] = previous;
    }
    coder.magnitudes(codes, roots, refinement.grid_magnitudes());
  }

  std::size_t next_base = 0;
  for (std::size_t s = std::size_t{1} << geometry.levels >> 1; s >= stop && s != 0; s >>= 1) {
    coder.set_level(fineness, std::countr_zero(s));
    refinement.open_level(s);
    for (unsigned i = 1; i < 16; ++i) {
      const unsigned odd = class_order(i);
      const Class<T>& cls = refinement.at(odd);
      if (cls.count == 0) continue;
      Base base;
      if (refinement.has_base(cls) && !unpack_base(bases[next_base++], odd, &base)) return false;
      const std::size_t length = cls.extents[3];
      // Points are decoded some rows at a time, whole groups of the coder, to stay in the caches.
      constexpr std::size_t kBatch = 2048;
      std::size_t restored = 0, predicted = 0;
      bool whole = true;
      const auto decode = [&](std::size_t points) {
        whole = whole && workspace.rans_decoder.decode(contexts, points, codes);
        if (!whole) return;
        coder.restore(codes, points, cls.points + restored, cls.magnitudes + restored);
        restored += points;
      };
      refinement.for_each_row(odd, [&](std::size_t a, std::size_t b, std::size_t c,
                                       std::size_t offset, std::size_t step) {
        std::uint8_t* const row_contexts = contexts + (predicted - restored);
        refinement.predict_row(odd, base, a, b, c, level_set(s), row_contexts);
        if (any_exact) {
          T* points = cls.points + cls.row(a, b, c);
          for (std::size_t k = 0; k < length; ++k) {
            if (!workspace.exact_map.test(offset + k * step)) continue;
            row_contexts[k] = kExactContext;
            points[k] = finite_or_zero(points[k]);
          }
        }
        predicted += length;
        const std::size_t ready = predicted - restored;
        if (ready < kBatch || !whole) return;
        decode(ready / encode::kRansGroup * encode::kRansGroup);
        std::memmove(contexts, contexts + ready / encode::kRansGroup * encode::kRansGroup,
                     ready % encode::kRansGroup);
      });
      decode(predicted - restored);
      if (!whole) return false;
    }
    if (s > 1 || chunk == nullptr) {
      refinement.close_level();
    } else {
      write_level(refinement, geometry, any_exact, *chunk, workspace);
    }
  }
  levels->grid = refinement.grid();
  if (chunk != nullptr && geometry.levels == 0) {
    write_values<T>(levels->grid, any_exact, *chunk, workspace);
  }
  return stop > 1 || workspace.rans_decoder.finish();
}

}  // namespace

template <class T>
bool decode_interp(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace) {
  Levels<T> levels;
  return decode_levels(payload, parameters, chunk.rank(), chunk.extents(), chunk.count(), 1, &chunk,
                       workspace, &levels);
}

template <class T>
bool preview_interp(std::span<const std::uint8_t> payload, const Parameters& parameters, int rank,
                    const Extents& extents, std::size_t factor, const Box<T>& out,
                    Workspace& workspace) {
  std::size_t count = 1;
  for (int k = 0; k < rank; ++k) count *= extents[static_cast<std::size_t>(k)];
  Levels<T> levels;
  if (!decode_levels<T>(payload, parameters, rank, extents, count, factor, nullptr, workspace,
                        &levels)) {
    return false;
  }
  // Along frozen axes the grid has every point.
  Extents every{1, 1, 1, 1}, lag{}, chunk_lag{};
  std::size_t pitch = 1, chunk_pitch = 1;
  for (int axis = rank; axis-- > 0;) {
    const auto k = static_cast<std::size_t>(axis);
    const bool cold = levels.frozen >> axis & 1;
    every[k] = cold ? factor : 1;
    lag[k] = pitch;
    chunk_lag[k] = chunk_pitch;
    pitch *= cold ? extents[k] : (extents[k] + factor - 1) / factor;
    chunk_pitch *= extents[k];
  }
  T* points = reinterpret_cast<T*>(workspace.values.reserve(out.count() * sizeof(T)));
  for (std::size_t i = 0; i < out.count(); ++i) {
    std::size_t rest = i, from = 0;
    for (int axis = rank; axis-- > 0;) {
      const auto k = static_cast<std::size_t>(axis);
      from += rest % out.extents()[k] * every[k] * lag[k];
      rest /= out.extents()[k];
    }
    points[i] = levels.grid[from];
  }
  if (levels.any_exact) {
    const std::uint8_t* exact = workspace.exact_bytes.data();
    workspace.exact_map.for_each(0, count, [&](std::size_t at) {
      std::size_t rest = at, to = 0;
      bool chosen = true;
      for (int axis = 0; axis < rank; ++axis) {
        const auto k = static_cast<std::size_t>(axis);
        const std::size_t c = rest / chunk_lag[k];
        rest %= chunk_lag[k];
        chosen = chosen && c % factor == 0;
        to = to * out.extents()[k] + c / factor;
      }
      if (chosen) std::memcpy(&points[to], exact, sizeof(T));
      exact += sizeof(T);
    });
  }
  write_values<T>(points, false, out, workspace);
  return true;
}

std::string describe_interp(std::span<const std::uint8_t> payload, int rank) {
  ByteReader in(payload);
  const unsigned flags = in.read<std::uint8_t>();
  in.read<std::uint8_t>();
  in.read_varint();
  std::string text = "interpolation";
  RunnerUp runner_up;
  if ((flags & format::kHasRunnerUp) != 0) {
    runner_up.pipeline = in.read<std::uint8_t>();
    runner_up.percent = in.read<std::uint8_t>();
  }
  if ((flags & format::kHasExactPoints) != 0) {
    in.read_varint();
    in.read_bytes(in.read_varint());
    in.read_bytes(in.read_varint());
  }
  const unsigned packed = in.read<std::uint8_t>();
  if (!in.ok()) return "damaged";
  for (int k = 0; k < rank; ++k) {
    if (packed >> k & 1) text += ", axis " + std::to_string(k) + " left out";
  }
  if (packed >> 4 != 0) text += ", finer coarse levels";
  if ((flags & format::kHasExactPoints) != 0) text += ", exact points";
  return text + describe_runner_up(runner_up);
}

#define FIRN_INSTANTIATE(T)                                                                      \
  template bool encode_interp(const Box<const T>&, const Parameters&, unsigned, int, Workspace&, \
                              std::uint8_t*, Encoded*);                                          \
  template bool preview_interp(std::span<const std::uint8_t>, const Parameters&, int,            \
                               const Extents&, std::size_t, const Box<T>&, Workspace&);          \
  template bool decode_interp(std::span<const std::uint8_t>, const Parameters&, const Box<T>&,   \
                              Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
