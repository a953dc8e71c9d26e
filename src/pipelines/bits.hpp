// The pipelines that lose nothing. The bit patterns are taken as integers in the order of the
// values, and their differences along the axes are coded: `bits` with distributions that follow
// the neighbourhood, as `contexts` does, of 64-bit values the upper halves only; `shuffle` as byte
// planes with zstd, which finds what is repeated. Payloads: docs/format.md, "shuffle", "bits".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// By the pipeline that the parameters name, if it is one of these; else by the one that took less
// on a part of the chunk, or by both if these are near each other and the parameters `thorough`.
// False when the chunk does not shrink. `out` has `room` bytes, at least
// encode::Lossless::capacity() of the chunk's and one.
template <class T>
bool encode_lossless(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                     std::uint8_t* out, std::size_t room, Encoded* encoded);
template <class T>
bool decode_shuffle(std::span<const std::uint8_t> payload, const Box<T>& chunk,
                    Workspace& workspace);
template <class T>
bool decode_bits(std::span<const std::uint8_t> payload, const Box<T>& chunk, Workspace& workspace);

}  // namespace firn::pipelines
