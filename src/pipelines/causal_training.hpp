// Fits the model of pipeline `causal` to a chunk.
#pragma once

#include <cstddef>

#include "pipelines/causal_model.hpp"
#include "pipelines/workspace.hpp"
#include "quantize/quantize.hpp"

namespace firn::pipelines {

// The values lie one behind the other; the wavefront is the chunk's along this axis.
template <class T>
CausalModel train_causal_model(const T* values, std::size_t count, int fast,
                               const Wavefront& wavefront, const quantize::Scale<T>& scale, T fill,
                               Workspace& workspace);

}  // namespace firn::pipelines
