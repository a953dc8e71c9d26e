// Pipeline `fre`: prefix codes on exponent differences, for point-wise relative bounds. Payload:
// docs/format.md, "fre".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// Bytes behind the head of a payload, at most.
std::size_t fre_capacity(std::size_t count);

// False: the bound needs more mantissa bits than the codes have room for, or too many values are
// special.
template <class T>
bool encode_fre(const Box<const T>& chunk, const Parameters& parameters, bool rounded,
                Workspace& workspace, std::uint8_t* out, Encoded* encoded);

template <class T>
bool decode_fre(std::span<const std::uint8_t> payload, const Box<T>& chunk, Workspace& workspace);

std::string describe_fre(std::span<const std::uint8_t> payload);

}  // namespace firn::pipelines
