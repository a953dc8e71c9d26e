// The gradient's error. A gradient is linear, so the difference of the two gradients is the
// gradient of the error.
#include <algorithm>
#include <cmath>
#include <vector>

#include "metrics/parts.hpp"

namespace firn::metrics {
namespace {

constexpr std::uint64_t kPieceValues = 1 << 18;
constexpr std::uint64_t kMaxSegment = 1 << 16;  // of a row, read at once

struct Sums {
  std::uint64_t count = 0;
  double error_squares = 0, original_squares = 0, max_error_square = 0;
};

// Part of a row and what its values' differences need, as original and error.
class Segment {
 public:
  Segment(const PairReader& pair, std::uint64_t max_length)
      : pair_(pair),
        original_square_(max_length),
        error_square_(max_length),
        before_{std::vector<double>(max_length + 2), std::vector<double>(max_length + 2)},
        after_(before_) {}

  void add_to(Sums& sums, const Position& at, std::uint64_t length) {
    std::fill_n(original_square_.begin(), length, 0.0);
    std::fill_n(error_square_.begin(), length, 0.0);
    for (int axis = 0; axis <= pair_.last_axis(); ++axis) {
      if (pair_.shape().extents[axis] < 2) continue;
      if (axis < pair_.last_axis()) {
        add_axis(at, axis, length);
      } else {
        add_row(at, length);
      }
    }
    for (std::uint64_t i = 0; i < length; ++i) {
      // NaN when a value that a difference needs is excluded.
      if (std::isnan(original_square_[i])) continue;
      ++sums.count;
      sums.original_squares += original_square_[i];
      sums.error_squares += error_square_[i];
      sums.max_error_square = std::max(sums.max_error_square, error_square_[i]);
    }
  }

 private:
  struct Row {
    std::vector<double> original, error;
  };

  void add(std::uint64_t i, double original, double error) {
    original_square_[i] += original * original;
    error_square_[i] += error * error;
  }

  void add_axis(const Position& at, int axis, std::uint64_t length) {
    const bool first = at[axis] == 0;
    const bool last = at[axis] + 1 == pair_.shape().extents[axis];
    const double weight = first || last ? 1.0 : 0.5;
    Position place = at;
    place[axis] = at[axis] - (first ? 0 : 1);
    pair_.read(place, length, before_.original.data(), before_.error.data());
    place[axis] = at[axis] + (last ? 0 : 1);
    pair_.read(place, length, after_.original.data(), after_.error.data());
    for (std::uint64_t i = 0; i < length; ++i) {
      add(i, (after_.original[i] - before_.original[i]) * weight,
          (after_.error[i] - before_.error[i]) * weight);
    }
  }

  void add_row(const Position& at, std::uint64_t length) {
    const int axis = pair_.last_axis();
    const std::uint64_t begin = at[axis];
    const std::uint64_t extent = pair_.row_length();
    const std::uint64_t left = begin == 0 ? 0 : 1;
    const std::uint64_t right = begin + length == extent ? 0 : 1;
    Position place = at;
    place[axis] -= left;
    pair_.read(place, left + length + right, before_.original.data(), before_.error.data());
    for (std::uint64_t i = 0; i < length; ++i) {
      const bool first = begin + i == 0;
      const bool last = begin + i + 1 == extent;
      const double weight = first || last ? 1.0 : 0.5;
      const std::uint64_t low = i + left - (first ? 0 : 1);
      const std::uint64_t high = i + left + (last ? 0 : 1);
      add(i, (before_.original[high] - before_.original[low]) * weight,
          (before_.error[high] - before_.error[low]) * weight);
    }
  }

  const PairReader& pair_;
  std::vector<double> original_square_, error_square_;
  Row before_, after_;
};

}  // namespace

std::optional<Metrics::Gradient> measure_gradient(const PairReader& pair,
                                                  pipelines::Workers& workers) {
  const Shape& shape = pair.shape();
  const std::uint64_t segment_length = std::min(pair.row_length(), kMaxSegment);
  if (segment_length == 0 || shape.count() < 2) return {};
  const std::uint64_t row_segments = (pair.row_length() + segment_length - 1) / segment_length;
  const std::uint64_t segments = shape.count() / pair.row_length() * row_segments;
  const std::uint64_t per_piece = std::max<std::uint64_t>(1, kPieceValues / segment_length);
  std::vector<Sums> pieces((segments + per_piece - 1) / per_piece);
  workers.for_each(pieces.size(), [&](std::uint64_t number, auto&) {
    Segment segment(pair, segment_length);
    const std::uint64_t end = std::min(segments, (number + 1) * per_piece);
    for (std::uint64_t s = number * per_piece; s < end; ++s) {
      const std::uint64_t begin = s % row_segments * segment_length;
      const Position at = pair.position_of(s / row_segments * pair.row_length() + begin);
      segment.add_to(pieces[number], at, std::min(segment_length, pair.row_length() - begin));
    }
    return true;
  });
  Sums all;
  for (const Sums& piece : pieces) {
    all.count += piece.count;
    all.error_squares += piece.error_squares;
    all.original_squares += piece.original_squares;
    all.max_error_square = std::max(all.max_error_square, piece.max_error_square);
  }
  if (all.count == 0) return {};
  Metrics::Gradient gradient;
  gradient.max_error = std::sqrt(all.max_error_square);
  gradient.rmse = std::sqrt(all.error_squares / static_cast<double>(all.count));
  gradient.relative_rmse =
      all.error_squares == 0 ? 0 : std::sqrt(all.error_squares / all.original_squares);
  return gradient;
}

}  // namespace firn::metrics
