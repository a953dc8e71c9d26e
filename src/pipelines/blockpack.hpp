// Pipelines that pack residuals into bit planes: `blockpack`, what the preset `fast` uses, and
// CereSZ as published for comparison. Payloads: docs/format.md, "blockpack" and "ceresz".
#pragma once

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// False when the chunk is better stored losslessly.
template <class T>
bool encode_blockpack(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                      std::uint8_t* out, Encoded* encoded);
template <class T>
bool decode_blockpack(std::span<const std::uint8_t> payload, const Parameters& parameters,
                      const Box<T>& chunk, Workspace& workspace);
// Bytes behind the head of a payload, at most.
std::size_t blockpack_payload_capacity(std::size_t count);

// `pipeline` is ceresz or ceresz4. Codes of more than 32 bits are not part of CereSZ: false.
template <class T>
bool encode_ceresz(Pipeline pipeline, const Box<const T>& chunk, const Parameters& parameters,
                   Workspace& workspace, std::uint8_t* out, Encoded* encoded);
template <class T>
bool decode_ceresz(Pipeline pipeline, std::span<const std::uint8_t> payload,
                   const Parameters& parameters, const Box<T>& chunk, Workspace& workspace);

}  // namespace firn::pipelines
