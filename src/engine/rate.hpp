// Compression to a ratio: the bounds that engine/rate_search.hpp tells are tried until one meets
// it.
#pragma once

#include <firn/firn.hpp>

#include "engine/compress.hpp"
#include "pipelines/workers.hpp"

namespace firn::engine {

// Compresses under options.bound, a ratio. Chunks are encoded in the way that was best the first
// time.
Status compress_to_ratio(const ArrayView& array, const Options& options, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output);

}  // namespace firn::engine
