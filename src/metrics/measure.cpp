// The entry point: argument checks, then one part after the other.
#include <algorithm>
#include <cmath>
#include <exception>
#include <firn/metrics.hpp>
#include <new>
#include <string>

#include "metrics/parts.hpp"

namespace firn {
namespace {

std::string text_of(const ArrayView& array) {
  std::string text = name_of(array.type);
  for (int k = 0; k < std::min(array.shape.rank, kMaxRank); ++k) {
    text += (k == 0 ? " " : "x") + std::to_string(array.shape.extents[k]);
  }
  return text;
}

Status check(const ArrayView& original, const ArrayView& decoded, const MetricsOptions& options,
             const Execution& execution) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message)};
  };
  if (original.shape.rank < 1 || original.shape.rank > kMaxRank) {
    return invalid("rank " + std::to_string(original.shape.rank) + "; it must be 1 to 4");
  }
  if (original.type != decoded.type || !(original.shape == decoded.shape)) {
    return invalid("the original is " + text_of(original) + ", the decoded array " +
                   text_of(decoded));
  }
  Shape one = original.shape;
  one.extents.fill(1);
  if (const Status status = check_shapes(original.type, original.shape, one, ~std::uint64_t{0});
      !status) {
    return status;
  }
  if (original.shape.count() != 0 && (original.data == nullptr || decoded.data == nullptr)) {
    return invalid("an array's data is null");
  }
  if (options.lags < 0 || options.lags > 65536) {
    return invalid("lags " + std::to_string(options.lags) + "; it must be 0 to 65536");
  }
  if (options.histogram_bins < 0 || options.histogram_bins > 1 << 20) {
    return invalid("histogram_bins " + std::to_string(options.histogram_bins) +
                   "; it must be 0 to 1048576");
  }
  if (!(options.histogram_limit >= 0) || std::isinf(options.histogram_limit)) {
    return invalid("histogram_limit must be 0 or a positive finite number");
  }
  if (execution.threads < 0 || execution.threads > 4096) {
    return invalid("threads " + std::to_string(execution.threads) +
                   "; it must be 0 (all cores) to 4096");
  }
  return std::monostate{};
}

}  // namespace

Result<Metrics> measure(const ArrayView& original, const ArrayView& decoded,
                        const MetricsOptions& options, const Execution& execution) {
  if (const Status status = check(original, decoded, options, execution); !status) {
    return status.error();
  }
  try {
    const metrics::PairReader pair(original, decoded, options.fill);
    pipelines::Workers workers(execution.threads);
    Metrics result;
    const std::uint64_t total = original.shape.count() * size_of(original.type);
    const std::uint64_t parts = 1 + options.ssim + options.gradient + options.spectrum;
    std::uint64_t done = 0;
    // After each part; false when the caller has had enough.
    const auto go_on = [&] {
      ++done;
      return !execution.progress || execution.progress(total / parts * done, total);
    };
    const Error cancelled{ErrorCode::cancelled, "cancelled"};

    metrics::measure_errors(pair, options, workers, result);
    if (!go_on()) return cancelled;
    if (result.excluded == result.count || result.broken != 0) return result;
    if (options.ssim) {
      const double middle = result.minimum + result.range / 2;
      result.ssim = metrics::measure_ssim(pair, result.range, middle, workers);
      if (!go_on()) return cancelled;
    }
    if (options.gradient) {
      result.gradient = metrics::measure_gradient(pair, workers);
      if (!go_on()) return cancelled;
    }
    if (options.spectrum) {
      result.spectrum = metrics::measure_spectrum(pair, options.spectrum_values, workers);
      if (!go_on()) return cancelled;
    }
    return result;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory"};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unsupported, exception.what()};
  }
}

}  // namespace firn
