// Pipeline `shuffle`, lossless: the bit patterns as integers in the order of the values,
// differences along the axes, byte planes, zstd. Payload: docs/format.md, "shuffle".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// False when it does not shrink.
template <class T>
bool encode_shuffle(const Box<const T>& chunk, Workspace& workspace, std::uint8_t* out,
                    std::size_t room, Encoded* encoded);
template <class T>
bool decode_shuffle(std::span<const std::uint8_t> payload, const Box<T>& chunk,
                    Workspace& workspace);

}  // namespace firn::pipelines
