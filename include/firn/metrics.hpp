// How far a decoded array is from the original, in the measures that papers use. Definitions are
// in docs/metrics.md. The numbers do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <optional>
#include <vector>

namespace firn {

struct MetricsOptions {
  std::optional<double> fill;  // this value (compared in the array's type) is a mask
  int lags = 10;               // of the error's autocorrelation
  int histogram_bins = 64;     // of the error; 0: no histogram
  // The histogram covers [-limit, limit]; 0: the largest error.
  double histogram_limit = 0;
  // These take most of the time.
  bool ssim = true;
  bool gradient = true;
  bool spectrum = true;
  // A field of more values is cut to its centre for the spectrum, which takes 16 bytes a value.
  std::uint64_t spectrum_values = std::uint64_t{1} << 24;
};

// NaN, infinite and fill values of the original are left out of everything but the first three
// counts; so is everything that would need one: a pair, a difference, a window. A measure that
// no value is left for is absent.
struct Metrics {
  std::uint64_t count = 0;
  std::uint64_t excluded = 0;            // NaN, infinite and fill values of the original
  std::uint64_t excluded_different = 0;  // those that were not decoded bit for bit
  // Finite values decoded as NaN or infinity. With one, means of the error are not finite and
  // everything from the autocorrelation on is absent.
  std::uint64_t broken = 0;

  double minimum = 0;  // of the original
  double maximum = 0;
  double range = 0;

  double max_abs_error = 0;
  double max_range_relative_error = 0;  // max_abs_error / range
  // Largest |decoded - original| / |original| where the original is not zero, and how many zeros
  // did not stay zero.
  double max_pointwise_relative_error = 0;
  std::uint64_t zeros_changed = 0;
  double mean_error = 0;  // with its sign: the bias
  double rmse = 0;
  double nrmse = 0;    // rmse / range
  double psnr_db = 0;  // infinity when there is no error

  std::vector<double> error_autocorrelation;  // at lags 1, 2, ... of the row-major order
  double histogram_limit = 0;
  std::vector<std::uint64_t> error_histogram;
  std::uint64_t histogram_outside = 0;  // errors beyond the limit

  // Mean structural similarity over all windows of 7 x 7 or 7 x 7 x 7 values; in rank 4 along the
  // three fastest axes. Absent for rank 1, a constant field, and one that no window fits.
  std::optional<double> ssim;

  // Lengths of the difference of the two gradients (central differences, one-sided at the edges);
  // relative: to the root mean square length of the original's.
  struct Gradient {
    double max_error = 0;
    double rmse = 0;
    double relative_rmse = 0;
  };
  std::optional<Gradient> gradient;

  // Power by frequency: element s - 1 is the variance that frequencies around s / (2 * shells)
  // cycles a value hold, up to half a cycle. In rank 4 the mean over the slowest axis.
  struct Spectrum {
    std::vector<double> original;
    std::vector<double> decoded;
    double max_relative_error = 0;           // of a shell's power
    double max_relative_error_low_half = 0;  // over the lower half of the shells
    Shape box;                               // what was transformed
  };
  std::optional<Spectrum> spectrum;
};

// The arrays have one type and shape, rank 1 to 4.
FIRN_API Result<Metrics> measure(const ArrayView& original, const ArrayView& decoded,
                                 const MetricsOptions& options = {},
                                 const Execution& execution = {});

}  // namespace firn
