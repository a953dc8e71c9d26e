// Pipeline `contexts`: quantise first, differences of the integers along the axes, and an entropy
// coder whose distribution for each residual follows the magnitudes around it. Payload:
// docs/format.md, "contexts".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// False when the chunk is better stored losslessly.
template <class T>
bool encode_contexts(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                     std::uint8_t* out, Encoded* encoded);
template <class T>
bool decode_contexts(std::span<const std::uint8_t> payload, const Parameters& parameters,
                     const Box<T>& chunk, Workspace& workspace);
// Bytes behind the head of a payload, at most.
std::size_t contexts_capacity(std::size_t count);

}  // namespace firn::pipelines
