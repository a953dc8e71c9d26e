// Original and decoded values side by side.
#pragma once

#include <firn/firn.hpp>

#include "pipelines/workers.hpp"

namespace firn::engine {

// Both views have the same type and shape. Sums are taken piece by piece in a fixed order, so the
// figures do not depend on the number of threads.
Comparison compare(const ArrayView& original, const ArrayView& decoded, const Bound& bound,
                   std::optional<double> fill, pipelines::Workers& workers);

}  // namespace firn::engine
