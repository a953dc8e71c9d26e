// The choice among pipelines: differences, interpolation or trained prediction, by trial.
#pragma once

#include <cstdint>

#include "base/geometry.hpp"
#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// Encodes a chunk in one way. False when it is better stored losslessly.
template <class T>
bool encode_with(const Candidate& candidate, const Box<const T>& chunk, const Parameters& options,
                 Workspace& workspace, std::uint8_t* out, Encoded* encoded);

// The same in the way that a trial on part of the chunk favours, or that options.choice names.
template <class T>
bool encode_best(const Box<const T>& chunk, const Parameters& options, Workspace& workspace,
                 std::uint8_t* out, Encoded* encoded);

// What the chunk that was encoded last was trained to becomes part of its choice.
void keep_trained(const Workspace& workspace, Choice* choice);

}  // namespace firn::pipelines
