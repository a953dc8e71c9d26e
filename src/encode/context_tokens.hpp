// Residuals to tokens, counted: which low bits of each context's residuals go raw is decided on the
// way, by the encoder alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/scratch.hpp"
#include "base/simd_target.hpp"
#include "encode/context_rans.hpp"

namespace firn::encode {

// Sets the shifts and cells[i]. Returns how many tokens each cell has, an array in `memory`.
// `one_in`: 0, or how rough a look will do: shifts are guessed, and only one block of residuals in
// so many, when there are many, is looked at.
template <class Q>
const std::uint32_t* count_tokens(const Q* residuals, const std::uint8_t* contexts,
                                  std::size_t count, std::size_t one_in, simd::Target target,
                                  ContextShifts& shifts, Cell* cells,
                                  ScratchArray<std::uint32_t>& memory);

}  // namespace firn::encode
