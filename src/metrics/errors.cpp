// Point by point measures: extremes, means, autocorrelation and histogram of the error.
#include <algorithm>
#include <cmath>
#include <vector>

#include "metrics/parts.hpp"

namespace firn::metrics {
namespace {

constexpr std::uint64_t kPieceValues = 1 << 18;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sums {
  std::uint64_t excluded = 0, different = 0, broken = 0, zeros_changed = 0;
  double low = kInfinity, high = -kInfinity;
  double max_error = 0, max_relative = 0;
  double errors = 0, squares = 0;

  void add(double value, double error) {
    low = std::min(low, value);
    high = std::max(high, value);
    broken += !std::isfinite(error);
    const double magnitude = std::isnan(error) ? kInfinity : std::fabs(error);
    max_error = std::max(max_error, magnitude);
    if (value != 0) {
      max_relative = std::max(max_relative, magnitude / std::fabs(value));
    } else {
      zeros_changed += magnitude != 0;
    }
    errors += error;
    squares += error * error;
  }
  void add(const Sums& other) {
    excluded += other.excluded;
    different += other.different;
    broken += other.broken;
    zeros_changed += other.zeros_changed;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    max_error = std::max(max_error, other.max_error);
    max_relative = std::max(max_relative, other.max_relative);
    errors += other.errors;
    squares += other.squares;
  }
};

// visit(piece number, values, errors, count, different): pieces of kPieceValues values in
// row-major order, each with up to `overlap` values of what follows it.
template <class Visit>
void for_each_piece(const PairReader& pair, std::uint64_t overlap, pipelines::Workers& workers,
                    Visit visit) {
  const std::uint64_t count = pair.shape().count();
  const std::uint64_t pieces = (count + kPieceValues - 1) / kPieceValues;
  workers.for_each(pieces, [&](std::uint64_t number, auto&) {
    const std::uint64_t begin = number * kPieceValues;
    const std::uint64_t own = std::min(kPieceValues, count - begin);
    const std::uint64_t more = std::min(overlap, count - begin - own);
    std::vector<double> values(own + more), errors(own + more);
    const std::uint64_t different = pair.read_linear(begin, own, values.data(), errors.data());
    pair.read_linear(begin + own, more, values.data() + own, errors.data() + own);
    visit(number, values, errors, own, different);
    return true;
  });
}

std::uint64_t piece_count(const PairReader& pair) {
  return (pair.shape().count() + kPieceValues - 1) / kPieceValues;
}

// Sums of (error - mean)(later error - mean) over pairs without an excluded value, for lags 0, 1,
// ..., `lags`.
std::vector<double> lagged_products(const PairReader& pair, double mean, std::uint64_t lags,
                                    pipelines::Workers& workers) {
  std::vector<std::vector<double>> pieces(piece_count(pair));
  for_each_piece(pair, lags, workers,
                 [&](std::uint64_t number, const std::vector<double>&, std::vector<double>& errors,
                     std::uint64_t own, std::uint64_t) {
                   for (double& error : errors) error = std::isnan(error) ? 0 : error - mean;
                   std::vector<double>& sums = pieces[number];
                   sums.assign(lags + 1, 0);
                   for (std::uint64_t lag = 0; lag <= lags; ++lag) {
                     const std::uint64_t end =
                         errors.size() > lag ? std::min<std::uint64_t>(own, errors.size() - lag)
                                             : 0;
                     for (std::uint64_t i = 0; i < end; ++i) {
                       sums[lag] += errors[i] * errors[i + lag];
                     }
                   }
                 });
  std::vector<double> all(lags + 1);
  for (const std::vector<double>& piece : pieces) {
    for (std::uint64_t lag = 0; lag <= lags; ++lag) all[lag] += piece[lag];
  }
  return all;
}

void measure_histogram(const PairReader& pair, std::size_t bins, pipelines::Workers& workers,
                       Metrics& metrics) {
  const double limit = metrics.histogram_limit;
  std::vector<std::vector<std::uint64_t>> pieces(piece_count(pair));
  for_each_piece(pair, 0, workers,
                 [&](std::uint64_t number, const std::vector<double>& values,
                     const std::vector<double>& errors, std::uint64_t own, std::uint64_t) {
                   std::vector<std::uint64_t>& counts = pieces[number];
                   counts.assign(bins + 1, 0);  // the last one: outside
                   for (std::uint64_t i = 0; i < own; ++i) {
                     if (std::isnan(values[i])) continue;
                     if (!(std::fabs(errors[i]) <= limit)) {
                       ++counts[bins];
                       continue;
                     }
                     const double place = limit == 0 ? 0.5 : errors[i] / limit * 0.5 + 0.5;
                     const auto bin = static_cast<std::size_t>(place * static_cast<double>(bins));
                     ++counts[std::min(bin, bins - 1)];
                   }
                 });
  metrics.error_histogram.assign(bins, 0);
  for (const auto& piece : pieces) {
    for (std::size_t bin = 0; bin < bins; ++bin) metrics.error_histogram[bin] += piece[bin];
    metrics.histogram_outside += piece[bins];
  }
}

}  // namespace

void measure_errors(const PairReader& pair, const MetricsOptions& options,
                    pipelines::Workers& workers, Metrics& metrics) {
  std::vector<Sums> pieces(piece_count(pair));
  for_each_piece(
      pair, 0, workers,
      [&](std::uint64_t number, const std::vector<double>& values,
          const std::vector<double>& errors, std::uint64_t own, std::uint64_t different) {
        Sums& sums = pieces[number];
        sums.different = different;
        for (std::uint64_t i = 0; i < own; ++i) {
          if (std::isnan(values[i])) {
            ++sums.excluded;
          } else {
            sums.add(values[i], errors[i]);
          }
        }
      });
  Sums all;
  for (const Sums& piece : pieces) all.add(piece);

  metrics.count = pair.shape().count();
  metrics.excluded = all.excluded;
  metrics.excluded_different = all.different;
  metrics.broken = all.broken;
  metrics.zeros_changed = all.zeros_changed;
  const std::uint64_t left = metrics.count - all.excluded;
  if (left == 0) {
    metrics.psnr_db = kInfinity;
    return;
  }
  const auto n = static_cast<double>(left);
  metrics.minimum = all.low;
  metrics.maximum = all.high;
  metrics.range = all.high - all.low;
  metrics.max_abs_error = all.max_error;
  metrics.max_pointwise_relative_error = all.max_relative;
  metrics.mean_error = all.errors / n;
  metrics.rmse = std::sqrt(all.squares / n);
  // An error in a constant field is infinitely many ranges; none is none.
  const auto of_range = [&](double error) {
    return error == 0 ? 0 : metrics.range == 0 ? kInfinity : error / metrics.range;
  };
  metrics.max_range_relative_error = of_range(all.max_error);
  metrics.nrmse = of_range(metrics.rmse);
  metrics.psnr_db = metrics.rmse == 0 ? kInfinity : -20 * std::log10(metrics.nrmse);

  if (options.lags > 0 && all.max_error > 0 && all.broken == 0) {
    const auto lags =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(options.lags), metrics.count - 1);
    const std::vector<double> products = lagged_products(pair, metrics.mean_error, lags, workers);
    for (std::uint64_t lag = 1; lag <= lags && products[0] > 0; ++lag) {
      metrics.error_autocorrelation.push_back(products[lag] / products[0]);
    }
  }
  if (options.histogram_bins > 0) {
    metrics.histogram_limit =
        options.histogram_limit > 0 ? options.histogram_limit : metrics.max_abs_error;
    if (std::isinf(metrics.histogram_limit)) return;
    measure_histogram(pair, static_cast<std::size_t>(options.histogram_bins), workers, metrics);
  }
}

}  // namespace firn::metrics
