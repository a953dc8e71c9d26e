// Pipeline `lorenzo`, after cuSZ: quantise first, differences of the integers along the axes,
// canonical Huffman. Payload: docs/format.md, "lorenzo".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// False when the chunk is better stored losslessly.
template <class T>
bool encode_lorenzo(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                    std::uint8_t* out, Encoded* encoded);
template <class T>
bool decode_lorenzo(std::span<const std::uint8_t> payload, const Parameters& parameters,
                    const Box<T>& chunk, Workspace& workspace);

// The symbols of a small part of the chunk, counted over the alphabet of kMaxRangeLog2, for a plan
// of shared books. Returns how many; 0 when the part cannot be quantised.
template <class T>
std::size_t sample_lorenzo(const Box<const T>& chunk, const Parameters& parameters,
                           Workspace& workspace, std::span<std::uint32_t> histogram);

// The head and the book in words.
std::string describe_lorenzo(std::span<const std::uint8_t> payload, int rank, unsigned tighter);

// Bytes behind the head of a payload, at most.
std::size_t lorenzo_capacity(std::size_t count);

}  // namespace firn::pipelines
