// Pipeline `causal`: every point is predicted from points decoded before it by weights that were
// fitted to the chunk, in a wavefront of 32 rows. Payload: docs/format.md, "causal".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// Fits the prediction to the chunk, into the workspace, for parameters.trained: then the chunk, or
// a part of it for a trial, is encoded with that.
template <class T>
void train_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace);
// False when the chunk is better stored losslessly.
template <class T>
bool encode_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                   std::uint8_t* out, Encoded* encoded);
template <class T>
bool decode_causal(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace);
// Bytes behind the head of a payload, at most.
std::size_t causal_capacity(std::size_t count);
std::string describe_causal(std::span<const std::uint8_t> payload, int rank, unsigned tighter);

}  // namespace firn::pipelines
