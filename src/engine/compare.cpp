#include "engine/compare.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/geometry.hpp"

namespace firn::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Zeros keep their bits and no value changes its sign. The comparison is exact: a difference that
// a double cannot hold is far beyond the bound, and the product's rounding is looked at when it
// matters.
template <class T>
bool within_pointwise(T original, T decoded, double bound) {
  if (original == 0) return std::memcmp(&original, &decoded, sizeof(T)) == 0;
  if (std::signbit(original) != std::signbit(decoded)) return false;
  const double scale = std::fabs(original) < 1e-200 ? 0x1p400 : 1;  // no product underflows
  const double magnitude = std::fabs(static_cast<double>(original) * scale);
  const double error =
      std::fabs(static_cast<double>(decoded) * scale - static_cast<double>(original) * scale);
  const double limit = bound * magnitude;
  return error == limit ? std::fma(bound, magnitude, -limit) >= 0 : error < limit;
}

template <class T>
struct Piece {
  std::uint64_t count = 0, exact = 0, violations = 0;
  std::uint64_t first_violation = std::numeric_limits<std::uint64_t>::max();
  double max_error = 0, max_relative = 0, squares = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;

  // Squares are of errors in `unit`s, so that those of very large values do not overflow.
  void add(T original, T decoded, const Bound& bound, double unit, T fill, std::uint64_t index) {
    ++count;
    bool good;
    if (!std::isfinite(original) || original == fill) {
      ++exact;
      good = std::memcmp(&original, &decoded, sizeof(T)) == 0;
    } else {
      // In long double the difference of two doubles is compared without rounding that matters.
      const long double error = std::fabs(static_cast<long double>(decoded) - original);
      good = bound.kind == BoundKind::pwrel ? within_pointwise(original, decoded, bound.value)
                                            : error <= static_cast<long double>(bound.value);
      if (error != 0) {
        const auto relative =
            static_cast<double>(error / std::fabs(static_cast<long double>(original)));
        max_relative = std::max(max_relative, std::isnan(relative) ? kInfinity : relative);
      }
      max_error = std::isnan(static_cast<double>(error))
                      ? std::numeric_limits<double>::infinity()
                      : std::max(max_error, static_cast<double>(error));
      const double part = static_cast<double>(error) / unit;
      squares += part * part;
      low = std::min(low, static_cast<double>(original));
      high = std::max(high, static_cast<double>(original));
    }
    if (!good) {
      ++violations;
      first_violation = std::min(first_violation, index);
    }
  }
  void add(const Piece& other) {
    count += other.count;
    exact += other.exact;
    violations += other.violations;
    first_violation = std::min(first_violation, other.first_violation);
    max_error = std::max(max_error, other.max_error);
    max_relative = std::max(max_relative, other.max_relative);
    squares += other.squares;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

template <class T>
Comparison compare_as(const ArrayView& original, const ArrayView& decoded, const Bound& bound,
                      std::optional<double> fill, pipelines::Workers& workers) {
  constexpr std::uint64_t kPieceValues = 1 << 18;
  const Shape& shape = original.shape;
  const auto a_strides = original.strides ? *original.strides : contiguous_strides(shape);
  const auto b_strides = decoded.strides ? *decoded.strides : contiguous_strides(shape);
  const auto index_strides = contiguous_strides(shape);
  const Shape piece_shape = choose_slab(shape, kPieceValues);
  const Grid grid(shape, piece_shape);
  const T fill_value = fill ? static_cast<T>(*fill) : std::numeric_limits<T>::quiet_NaN();
  const double unit = bound.kind == BoundKind::abs && bound.value > 0 ? bound.value : 1;
  std::vector<Piece<T>> pieces(static_cast<std::size_t>(grid.count()));
  workers.for_each(grid.count(), [&](std::uint64_t number, pipelines::Workspace&) {
    Piece<T>& piece = pieces[static_cast<std::size_t>(number)];
    const Region region = grid.region(number);
    std::array<std::uint64_t, kMaxRank> at{};
    const int last = shape.rank - 1;
    for (;;) {
      std::int64_t a = 0, b = 0, index = 0;
      for (int k = 0; k <= last; ++k) {
        const auto position = static_cast<std::int64_t>(region.origin[k] + at[k]);
        a += position * a_strides[k];
        b += position * b_strides[k];
        index += position * index_strides[k];
      }
      for (std::uint64_t i = 0; i < region.shape.extents[last]; ++i) {
        const auto step = static_cast<std::int64_t>(i);
        piece.add(static_cast<const T*>(original.data)[a + step * a_strides[last]],
                  static_cast<const T*>(decoded.data)[b + step * b_strides[last]], bound, unit,
                  fill_value, static_cast<std::uint64_t>(index + step));
      }
      int k = last - 1;
      while (k >= 0 && at[k] + 1 == region.shape.extents[k]) at[k--] = 0;
      if (k < 0) break;
      ++at[k];
    }
    return true;
  });
  Piece<T> all;
  for (const Piece<T>& piece : pieces) all.add(piece);
  Comparison result;
  result.count = all.count;
  result.exact_count = all.exact;
  result.violations = all.violations;
  result.first_violation = all.violations != 0 ? all.first_violation : 0;
  result.max_abs_error = all.max_error;
  result.max_pwrel_error = all.max_relative;
  result.value_range = all.high >= all.low ? all.high - all.low : 0;
  const std::uint64_t finite = all.count - all.exact;
  const double mean = finite == 0 ? 0 : all.squares / static_cast<double>(finite);
  result.mean_squared_error = mean * unit * unit;
  result.psnr_db = mean == 0 ? std::numeric_limits<double>::infinity()
                             : 20 * std::log10(result.value_range / unit) - 10 * std::log10(mean);
  return result;
}

}  // namespace

Comparison compare(const ArrayView& original, const ArrayView& decoded, const Bound& bound,
                   std::optional<double> fill, pipelines::Workers& workers) {
  return original.type == Type::f32 ? compare_as<float>(original, decoded, bound, fill, workers)
                                    : compare_as<double>(original, decoded, bound, fill, workers);
}

}  // namespace firn::engine
