// The largest bound that keeps a wanted PSNR.
//
// What quantises first has errors that are known before it runs (plan.cpp). Prediction with
// feedback leaves smaller errors at the same bound, so much so that a bound several times as large
// will do where a field is smooth; but what they are is known only once it has run.
#pragma once

#include <firn/firn.hpp>

#include "engine/compress.hpp"
#include "pipelines/workers.hpp"

namespace firn::engine {

// Compresses under options.bound, a PSNR, with an automatic choice of pipelines: two to six times,
// decoding every chunk to see.
Status compress_to_psnr(const ArrayView& array, const Options& options, const Execution& execution,
                        pipelines::Workers& workers, CompressScratch& scratch, Output& output);

}  // namespace firn::engine
