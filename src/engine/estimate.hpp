// What compression would give, from a sample of the array.
#pragma once

#include <firn/firn.hpp>

#include "pipelines/workers.hpp"

namespace firn::engine {

// Reads only the sample: about 1 % of the array, and more of a small one. options.bound is abs or
// rel (of the sample's range).
Result<Estimate> estimate(const ArrayView& array, const Options& options,
                          pipelines::Workers& workers);

}  // namespace firn::engine
