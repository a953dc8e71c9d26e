#include "plan/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "container/format.hpp"
#include "quantize/quantize.hpp"

namespace firn::plan {

bool near_last_bits(Type type, double ratio) { return ratio < (type == Type::f32 ? 4.5 : 2.25); }

namespace {

// Values in a chunk: large enough for the tables of a book to vanish, small enough for a core's
// caches and for reading a region.
constexpr std::uint64_t kChunkValues = std::uint64_t{1} << 18;
constexpr std::uint64_t kLargeChunkValues = std::uint64_t{1} << 20;
constexpr std::uint64_t kSlabValues = std::uint64_t{1} << 17;
constexpr std::uint64_t kSmallSlabValues = std::uint64_t{1} << 16;

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

Error bad(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Status check_bound(const Bound& bound) {
  switch (bound.kind) {
    case BoundKind::lossless:
      return std::monostate{};
    case BoundKind::abs:
    case BoundKind::rel:
      if (!(bound.value > 0) || !std::isfinite(bound.value)) {
        return bad(std::string(name_of(bound.kind)) + " bound " + text_of(bound.value) +
                   "; it must be a positive number (or ask for lossless)");
      }
      return std::monostate{};
    case BoundKind::pwrel:
      if (!(bound.value > 0) || !(bound.value < 1)) {
        return bad("pwrel bound " + text_of(bound.value) +
                   "; it must be above 0 and below 1 (or ask for lossless)");
      }
      return std::monostate{};
    case BoundKind::psnr:
      if (!(bound.value > 0) || bound.value > 1000) {
        return bad("psnr " + text_of(bound.value) + "; it must be above 0 and at most 1000 dB");
      }
      return std::monostate{};
    case BoundKind::ratio:
      if (!(bound.value > 1) || bound.value > 1e9) {
        return bad("ratio " + text_of(bound.value) + "; it must be above 1 and at most 1e9");
      }
      return std::monostate{};
  }
  return bad("unknown kind of bound");
}

bool is_fre(Pipeline pipeline) {
  return pipeline == Pipeline::fre || pipeline == Pipeline::fre_round;
}

bool known(Pipeline pipeline) { return pipeline <= Pipeline::bits || is_fre(pipeline); }

Pipeline pipeline_of(const Options& options) {
  if (options.pipeline != Pipeline::automatic) return options.pipeline;
  return options.preset == Preset::fast ? Pipeline::blockpack : Pipeline::automatic;
}

// Which would be one chunk.
bool is_short_line(Preset preset, const Shape& shape) {
  return preset == Preset::balanced && shape.rank == 1 && shape.count() <= kChunkValues;
}

// Several chunks can be led to a size together: what an array of few may be cut into where that
// costs little. That is so in one dimension, and near the last bits of values.
Shape pieces_for(Preset preset, Type type, double ratio, const Shape& shape, const Shape& chunk) {
  constexpr std::uint64_t kLeastPiece = 16384;
  std::uint64_t count = near_last_bits(type, ratio) ? 8 : 1;
  if (is_short_line(preset, shape) && (count == 1 || shape.count() < count * kLeastPiece))
    count = 4;
  const std::uint64_t values = (shape.count() + count - 1) / count;
  if (values >= chunk.count() || values < kLeastPiece) return {};
  // Slabs are less work than boxes, and hardly larger unless they are single layers.
  const Shape slab = choose_slab(shape, values);
  for (int k = 0; k < shape.rank; ++k) {
    if (shape.extents[k] > 2 * slab.extents[k] && slab.extents[k] == 1) {
      return choose_chunk(shape, values);
    }
  }
  return slab;
}

// `blockpack` reads and writes memory in order, in pieces that fit a core's second-level cache;
// CereSZ's blocks follow the array's order.
Shape chunk_for(Pipeline pipeline, Preset preset, BoundKind bound, const Shape& shape) {
  const bool in_order = pipeline == Pipeline::blockpack || pipeline == Pipeline::ceresz ||
                        pipeline == Pipeline::ceresz4 || is_fre(pipeline);
  if (in_order) {
    constexpr std::uint64_t kSlabs = 16;  // so that several threads have something to do
    std::uint64_t values = shape.count() < kSlabs * kSlabValues ? kSmallSlabValues : kSlabValues;
    // As there, but these take little work each.
    constexpr std::uint64_t kLed = 12, kLeastValues = 8192;
    if (bound == BoundKind::ratio && pipeline == Pipeline::blockpack && shape.rank == 1) {
      values = std::min(values, std::max(kLeastValues, shape.count() / kLed));
    }
    return choose_slab(shape, values);
  }
  // Large chunks are for what is fitted to them; differences are better off with small ones.
  const bool large = preset == Preset::small && pipeline != Pipeline::contexts;
  return choose_chunk(shape, large ? kLargeChunkValues : kChunkValues);
}

// The array's pieces for a pass that only reads: its memory in order when it is contiguous.
template <class T>
struct Pass {
  Shape shape;
  Shape piece;
  std::array<std::int64_t, kMaxRank> strides;

  explicit Pass(const ArrayView& array) {
    if (array.strides) {
      shape = array.shape;
      piece = choose_chunk(shape, kChunkValues);
      strides = *array.strides;
    } else {
      shape = Shape{array.shape.count()};
      piece =
          Shape{std::min<std::uint64_t>(kChunkValues, std::max<std::uint64_t>(1, shape.count()))};
      strides = contiguous_strides(shape);
    }
  }
  Grid grid() const { return Grid(shape, piece); }
};

// visit(row pointer, length, stride) over every row of every piece; partial results per piece are
// combined in order by the caller, so that sums do not depend on the threads. The last piece comes
// first: chunks are compressed from the array's start, which the caches then still hold.
template <class T, class Visit>
void for_each_row(const ArrayView& array, pipelines::Workers& workers, Visit visit) {
  const Pass<T> pass(array);
  const Grid grid = pass.grid();
  workers.for_each(grid.count(), [&](std::uint64_t turn, pipelines::Workspace& workspace) {
    const std::uint64_t number = grid.count() - 1 - turn;
    const Box<const T> box(static_cast<const T*>(array.data), pass.strides, grid.region(number));
    return box.for_each_row([&](const T* row, std::size_t) {
      visit(number, workspace, row, box.row_length(), box.row_stride());
      return true;
    });
  });
}

template <class T>
ValueRange value_range_of(const ArrayView& array, std::optional<double> fill,
                          pipelines::Workers& workers) {
  struct Piece {
    T low = std::numeric_limits<T>::infinity();
    T high = -std::numeric_limits<T>::infinity();
  };
  // One for each thread: minimum and maximum do not depend on the order. One thread allocates none.
  Piece only;
  std::vector<Piece> others(static_cast<std::size_t>(workers.threads() - 1));
  const T fill_value = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
  const auto visit = [&](std::uint64_t, pipelines::Workspace& workspace, const T* row,
                         std::size_t length, std::int64_t stride) {
    Piece& piece =
        workspace.thread == 0 ? only : others[static_cast<std::size_t>(workspace.thread - 1)];
    if (stride == 1) {
      const auto& kernels = quantize::range_kernels<T>(workspace.target);
      return kernels.widen(row, length, fill_value, &piece.low, &piece.high);
    }
    for (std::size_t i = 0; i < length; ++i) {
      const T value = row[static_cast<std::int64_t>(i) * stride];
      if (!std::isfinite(value) || value == fill_value) continue;
      piece.low = std::min(piece.low, value);
      piece.high = std::max(piece.high, value);
    }
  };
  for_each_row<T>(array, workers, visit);
  for (const Piece& piece : others) {
    only.low = std::min(only.low, piece.low);
    only.high = std::max(only.high, piece.high);
  }
  return {static_cast<double>(only.low), static_cast<double>(only.high)};
}

// visit(pointer, length) for a sample of the values, the same whatever the strides: all, if they
// are few, or so many runs of so many.
struct SampledRuns {
  std::uint64_t count = 16, length = 64;
};
template <class T, class Visit>
void for_each_sampled(const ArrayView& array, SampledRuns runs, Visit visit) {
  const std::uint64_t count = array.shape.count();
  const T* const data = static_cast<const T*>(array.data);
  const auto take = [&](std::uint64_t first, std::uint64_t length) {
    if (!array.strides) return visit(data + first, static_cast<std::size_t>(length));
    for (std::uint64_t i = first; i < first + length; ++i) {
      std::uint64_t index = i;
      std::int64_t offset = 0;
      for (int k = array.shape.rank - 1; k >= 0; --k) {
        const std::uint64_t extent = array.shape.extents[k];
        offset += static_cast<std::int64_t>(index % extent) * (*array.strides)[k];
        index /= extent;
      }
      visit(data + offset, 1);
    }
  };
  if (count <= runs.count * runs.length) return take(0, count);
  const std::uint64_t apart = (count - runs.length) / (runs.count - 1);
  for (std::uint64_t run = 0; run < runs.count; ++run) take(run * apart, runs.length);
}

double magnitude_of(const ValueRange& range) {
  return range.low > range.high ? 0 : std::max(std::fabs(range.low), std::fabs(range.high));
}

// The largest magnitude on a sample: enough to choose a margin, which is not about correctness.
template <class T>
double sampled_magnitude(const ArrayView& array, std::optional<double> fill,
                         pipelines::Workers& workers) {
  const T fill_value = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
  T low = std::numeric_limits<T>::infinity(), high = -low;
  const auto& kernels = quantize::range_kernels<T>(workers.workspace(0).target);
  for_each_sampled<T>(array, {}, [&](const T* values, std::size_t length) {
    kernels.widen(values, length, fill_value, &low, &high);
  });
  return magnitude_of({static_cast<double>(low), static_cast<double>(high)});
}

// The same of magnitudes up to a limit.
template <class T>
double sampled_magnitude_within(const ArrayView& array, std::optional<double> fill, double limit) {
  const T fill_value = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
  double largest = 0;
  for_each_sampled<T>(array, {}, [&](const T* values, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
      const double magnitude = std::fabs(static_cast<double>(values[i]));
      if (magnitude <= limit && values[i] != fill_value) largest = std::max(largest, magnitude);
    }
  });
  return largest;
}

// The greatest whole number that is not above log2 of a positive normal one.
int floor_log2(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52) - 1023;
}
// The least that is not below it.
int ceil_log2(double value) {
  return floor_log2(value) + (std::bit_cast<std::uint64_t>(value) << 12 != 0);
}

// How far step stays below twice the bound: rounding moves a code's value by about 2^-24 (2^-53)
// of itself, three times over; 2^-margin of a step must cover that for codes of 2^bits. Where that
// would be much, steps have a grain instead: the distance of neighbouring values where they are
// largest.
template <class T>
int choose_margin(double magnitude, double bound_abs) {
  constexpr int kDigits = std::numeric_limits<T>::digits, kLeastMargin = 7;
  const double step = 2 * bound_abs;
  const double code = magnitude / step;
  const int bits = code > 1 ? ceil_log2(code) : 0;
  const int margin = std::min(kDigits - 3 - bits, format::kMaxMargin);
  if (margin >= kLeastMargin) return margin;
  const int grain_bits = floor_log2(step) - (ceil_log2(magnitude) - kDigits);
  return format::kGrid + std::clamp(grain_bits, 0, format::kMaxGrainBits);
}

// 10^exponent by basic operations only, so that it is the same on every machine.
double power_of_ten(double exponent) {
  const double whole = std::floor(exponent);
  const double fraction = (exponent - whole) * 2.302585092994045684;  // ln 10
  double term = 1, sum = 1;
  for (int i = 1; i < 40; ++i) {
    term = term * fraction / i;
    sum += term;
  }
  for (int i = 0; i < static_cast<int>(std::fabs(whole)); ++i)
    sum = whole < 0 ? sum / 10 : sum * 10;
  return sum;
}

template <class T>
T round_down(double value) {
  T rounded = static_cast<T>(value);
  if (static_cast<double>(rounded) > value) {
    rounded = std::nextafter(rounded, T{0});
  }
  return rounded;
}

// Root mean square error of quantising every value that is not special, in units of the bound, so
// that no square overflows.
template <class T>
double quantization_error(const ArrayView& array, const pipelines::Parameters& parameters,
                          pipelines::Workers& workers) {
  struct Piece {
    double sum = 0;
    std::uint64_t count = 0;
  };
  // In a workspace, so that a reused compressor allocates nothing.
  const auto piece_count = static_cast<std::size_t>(Pass<T>(array).grid().count());
  std::uint8_t* memory = workers.workspace(0).partial_sums.reserve(piece_count * sizeof(Piece));
  const std::span<Piece> pieces(new (memory) Piece[piece_count]{}, piece_count);
  const T fill_value =
      parameters.fill ? static_cast<T>(*parameters.fill) : std::numeric_limits<T>::quiet_NaN();
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin);
  for_each_row<T>(array, workers,
                  [&](std::uint64_t number, pipelines::Workspace&, const T* row, std::size_t length,
                      std::int64_t stride) {
                    Piece& piece = pieces[static_cast<std::size_t>(number)];
                    for (std::size_t i = 0; i < length; ++i) {
                      const T value = row[static_cast<std::int64_t>(i) * stride];
                      if (!std::isfinite(value) || value == fill_value) continue;
                      std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> q = 0;
                      T error = 0;
                      if (!quantize::quantize_value(value, scale, &q, &error)) error = 0;
                      const double part = static_cast<double>(error) / parameters.bound_abs;
                      piece.sum += part * part;
                      ++piece.count;
                    }
                  });
  Piece all;
  for (const Piece& piece : pieces) {
    all.sum += piece.sum;
    all.count += piece.count;
  }
  return all.count == 0 ? 0 : std::sqrt(all.sum / static_cast<double>(all.count));
}

template <class T>
constexpr double kLargestBound = static_cast<double>(std::numeric_limits<T>::max()) / 8;
template <class T>
constexpr double kLeastBound = static_cast<double>(std::numeric_limits<T>::min()) * 8;

template <class T>
void set_bound(double bound_abs, double magnitude, Plan* plan) {
  T bound = round_down<T>(std::min(bound_abs, kLargestBound<T>));
  if (!(static_cast<double>(bound) >= kLeastBound<T>)) bound = 0;  // keep every bit instead
  plan->header.bound_abs = plan->parameters.bound_abs = static_cast<double>(bound);
  plan->header.margin = plan->parameters.margin =
      bound == 0 ? 0 : choose_margin<T>(magnitude, static_cast<double>(bound));
}

// A bound that leaves the mantissa's last bits alone is not worth losing anything for.
template <class T>
void set_pointwise_bound(double fraction, Plan* plan) {
  const T bound = round_down<T>(std::min(fraction, format::kMaxPointwise));
  const T least = static_cast<T>(sizeof(T) == 4 ? 0x1p-20 : 0x1p-45);
  plan->header.bound_abs = plan->parameters.bound_abs =
      bound < least ? 0 : static_cast<double>(bound);
}

template <class T>
void change_bound_of(const ArrayView& array, double bound_abs, pipelines::Workers& workers,
                     Plan* plan) {
  const std::optional<double>& fill = plan->parameters.fill;
  // Neighbours of larger values lie further apart than steps may be: a fill value that was not
  // named, or strangers, which end up exact. Unless that is all values, under a bound for nothing.
  const double limit = bound_abs * std::ldexp(2.0, std::numeric_limits<T>::digits);
  if (!plan->magnitude) plan->magnitude = sampled_magnitude<T>(array, fill, workers);
  double magnitude = *plan->magnitude;
  if (magnitude > limit) {
    const double within = sampled_magnitude_within<T>(array, fill, limit);
    if (within > 0) magnitude = within;
  }
  set_bound<T>(bound_abs, magnitude, plan);
  if (plan->parameters.margin < format::kGrid) return;
  if (!plan->knows_magnitude) {
    plan->magnitude = magnitude_of(value_range_of<T>(array, fill, workers));
    plan->knows_magnitude = true;
  }
  if (*plan->magnitude <= limit) set_bound<T>(bound_abs, *plan->magnitude, plan);
}

// Where values of a large array gather. Zeros had better stay what they are, and values of one sign
// keep it.
template <class T>
void find_gathering(const ArrayView& array, Plan* plan) {
  constexpr std::uint64_t kLeastBytes = 1 << 19, kValues = 128, kFew = 32;
  const Pipeline pipeline = plan->parameters.pipeline;
  // Where pipelines are tried, the one that predicts values is better than any phase. The errors
  // that a `psnr` counts on are those of codes without one.
  const bool quantizes = pipeline == Pipeline::blockpack || pipeline == Pipeline::contexts ||
                         pipeline == Pipeline::lorenzo;
  if (!quantizes || plan->parameters.pointwise || plan->header.bound.kind == BoundKind::psnr ||
      array.shape.count() * sizeof(T) < kLeastBytes) {
    return;
  }
  const std::optional<double>& fill = plan->parameters.fill;
  const T fill_value = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
  std::array<T, kValues> values;
  std::size_t count = 0;
  for_each_sampled<T>(array, {kValues, 1}, [&](const T* value, std::size_t) {
    if (std::isfinite(*value) && *value != fill_value) values[count++] = *value;
  });
  if (count < kFew) return;
  auto* const end = values.begin() + count;
  const auto negative = std::count_if(values.begin(), end, [](T value) { return value < 0; });
  const auto positive = std::count_if(values.begin(), end, [](T value) { return value > 0; });
  if (static_cast<std::size_t>(negative + positive) < count) return;
  pipelines::Gathering result;
  if (negative == 0) result.most_step = static_cast<double>(*std::min_element(values.begin(), end));
  if (positive == 0)
    result.most_step = -static_cast<double>(*std::max_element(values.begin(), end));
  const auto quartile = [&](std::size_t quarters) {
    auto* const at = values.begin() + quarters * count / 4;
    std::nth_element(values.begin(), at, end);
    return static_cast<double>(*at);
  };
  result.middle = quartile(2);
  result.width = quartile(3) - quartile(1);
  plan->parameters.gathering = result;
}

template <class T>
void resolve_bound(const ArrayView& array, pipelines::Workers& workers, Plan* plan) {
  const Bound& bound = plan->header.bound;
  const std::optional<double>& fill = plan->parameters.fill;
  // The engine looks for the bound of a ratio.
  if (bound.kind == BoundKind::lossless || bound.kind == BoundKind::ratio) return;
  if (bound.kind == BoundKind::pwrel) return set_pointwise_bound<T>(bound.value, plan);
  if (bound.kind == BoundKind::abs) {
    return change_bound(array, bound.value, workers, plan);
  }
  const ValueRange range = value_range_of<T>(array, fill, workers);
  if (!(range.high > range.low)) return;  // constant, or nothing finite: lossless
  const double magnitude = magnitude_of(range);
  const double width = range.high - range.low;
  if (bound.kind == BoundKind::rel) {
    const double share = std::isfinite(width) ? bound.value * width
                                              : bound.value * range.high - bound.value * range.low;
    return set_bound<T>(share, magnitude, plan);
  }
  if (!std::isfinite(width)) return;  // no ratio to it makes sense: lossless

  // psnr: an even spread of errors over [-e, e] has mean square e^2 / 3. Where this field's
  // errors are larger than that, tighten until the target is met.
  const double target = error_of_psnr(width, bound.value);
  // Feedback makes the errors another field's: there, none may exceed the target.
  if (plan->parameters.pipeline == Pipeline::interp ||
      plan->parameters.pipeline == Pipeline::causal) {
    return set_bound<T>(target, magnitude, plan);
  }
  double bound_abs = target * 1.7320508075688772;
  for (int attempt = 0; attempt < 20; ++attempt) {
    set_bound<T>(bound_abs, magnitude, plan);
    if (plan->parameters.bound_abs == 0) return;
    const double error =
        plan->parameters.bound_abs * quantization_error<T>(array, plan->parameters, workers);
    if (error <= target) return;
    bound_abs *= std::min(0.98, 0.995 * target / error);
  }
  set_bound<T>(target, magnitude, plan);  // no error can exceed the root mean square now
}

}  // namespace

Result<Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                            pipelines::Workers& workers) {
  Options fixed = options;
  fixed.bound = bound_abs > 0 ? Bound::abs(bound_abs) : Bound::lossless();
  fixed.max_abs.reset();
  auto plan = make_plan(array, fixed, workers);
  if (plan) plan->header.bound = options.bound;
  return plan;
}

void change_bound(const ArrayView& array, double bound_abs, pipelines::Workers& workers,
                  Plan* plan) {
  array.type == Type::f32 ? change_bound_of<float>(array, bound_abs, workers, plan)
                          : change_bound_of<double>(array, bound_abs, workers, plan);
}

double largest_bound(Type type) {
  return type == Type::f32 ? kLargestBound<float> : kLargestBound<double>;
}
double least_bound(Type type) {
  return type == Type::f32 ? kLeastBound<float> : kLeastBound<double>;
}

double error_of_psnr(double width, double psnr_db) { return width * power_of_ten(-psnr_db / 20); }

ValueRange value_range(const ArrayView& array, std::optional<double> fill,
                       pipelines::Workers& workers) {
  return array.type == Type::f32 ? value_range_of<float>(array, fill, workers)
                                 : value_range_of<double>(array, fill, workers);
}

namespace {

// check_options() into a plan that is there already: a plan is large, and small messages are short.
Status check_into(Type type, const Shape& shape, const Options& options, Plan& plan) {
  if (type != Type::f32 && type != Type::f64) return bad("unknown value type");
  if (!known(options.pipeline)) return bad("unknown pipeline");
  if (options.books > BookPolicy::offline) return bad("unknown book policy");
  if (const Status status = check_bound(options.bound); !status) return status;
  if (options.max_abs && (!(*options.max_abs > 0) || !std::isfinite(*options.max_abs))) {
    return bad("max_abs " + text_of(*options.max_abs) + "; it must be a positive number");
  }
  if (options.max_abs && options.bound.kind != BoundKind::ratio) {
    return bad("max_abs limits the bound of a ratio; this bound is " +
               std::string(name_of(options.bound.kind)));
  }
  plan.parameters.pipeline = pipeline_of(options);
  if (options.tune > Tune::psnr) return bad("unknown tuning; it is size or psnr");
  plan.parameters.tune_psnr = options.tune == Tune::psnr;
  plan.parameters.thorough = options.preset == Preset::small;
  plan.parameters.books = options.books;
  plan.parameters.pointwise = options.bound.kind == BoundKind::pwrel;
  if (is_fre(plan.parameters.pipeline) && !plan.parameters.pointwise &&
      options.bound.kind != BoundKind::lossless) {
    return bad(std::string("pipeline ") + name_of(options.pipeline) +
               " keeps point-wise relative bounds only; give the bound as pwrel");
  }
  if (plan.parameters.pipeline == Pipeline::causal && plan.parameters.pointwise) {
    return bad("pipeline causal keeps absolute bounds only; interp is its like for pwrel");
  }
  // The errors of a pipeline that quantises first are known before it runs.
  if (options.bound.kind == BoundKind::psnr && plan.parameters.pipeline == Pipeline::automatic) {
    plan.parameters.pipeline = Pipeline::contexts;
  }
  plan.header.type = type;
  plan.header.shape = shape;
  plan.header.bound = options.bound;
  Shape chunk = options.chunk;
  if (chunk.rank == 0) {
    if (shape.rank < 1 || shape.rank > kMaxRank)
      chunk = shape;
    else
      chunk = chunk_for(plan.parameters.pipeline, options.preset, options.bound.kind, shape);
    if (options.bound.kind == BoundKind::ratio && plan.parameters.pipeline == Pipeline::automatic) {
      plan.pieces = pieces_for(options.preset, type, options.bound.value, shape, chunk);
    }
  } else {
    for (int k = 0; k < std::min(chunk.rank, shape.rank); ++k) {
      if (chunk.extents[k] == 0) return bad("a chunk extent is 0; it must be 1 or more");
      chunk.extents[k] = std::min(chunk.extents[k], shape.extents[k]);
    }
  }
  if (const Status status = check_shapes(type, shape, chunk, format::kMaxChunkValues); !status)
    return status;
  plan.header.chunk = chunk;
  if (options.fill && !std::isnan(*options.fill)) {  // NaN is kept without being named
    const double fill = type == Type::f32 ? static_cast<float>(*options.fill) : *options.fill;
    plan.header.fill = plan.parameters.fill = fill;
  }
  return std::monostate{};
}

}  // namespace

Result<Plan> check_options(Type type, const Shape& shape, const Options& options) {
  Result<Plan> plan = Plan{};
  if (const Status status = check_into(type, shape, options, *plan); !status) plan = status.error();
  return plan;
}

Status make_plan(const ArrayView& array, const Options& options, pipelines::Workers& workers,
                 Plan* plan) {
  const Status status = check_into(array.type, array.shape, options, *plan);
  if (!status || array.shape.count() == 0) return status;
  if (array.data == nullptr) return bad("the array's data is null");
  if (array.type == Type::f32) {
    resolve_bound<float>(array, workers, plan);
    find_gathering<float>(array, plan);
  } else {
    resolve_bound<double>(array, workers, plan);
    find_gathering<double>(array, plan);
  }
  return status;
}

Result<Plan> make_plan(const ArrayView& array, const Options& options,
                       pipelines::Workers& workers) {
  Result<Plan> plan = Plan{};
  if (const Status status = make_plan(array, options, workers, &*plan); !status) {
    plan = status.error();
  }
  return plan;
}

}  // namespace firn::plan
