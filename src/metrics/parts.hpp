// The parts of a measurement, one file each. All cut the field into pieces whose borders do not
// depend on the number of threads, and add the pieces' sums in order.
#pragma once

#include <firn/metrics.hpp>

#include "metrics/rows.hpp"
#include "pipelines/workers.hpp"

namespace firn::metrics {

// Fills everything but ssim, gradient and spectrum, which need errors that are all finite.
void measure_errors(const PairReader& pair, const MetricsOptions& options,
                    pipelines::Workers& workers, Metrics& metrics);

// `range` and `middle` (any value near the others: it keeps digits) are the original's.
std::optional<double> measure_ssim(const PairReader& pair, double range, double middle,
                                   pipelines::Workers& workers);

std::optional<Metrics::Gradient> measure_gradient(const PairReader& pair,
                                                  pipelines::Workers& workers);

std::optional<Metrics::Spectrum> measure_spectrum(const PairReader& pair, std::uint64_t max_values,
                                                  pipelines::Workers& workers);

}  // namespace firn::metrics
