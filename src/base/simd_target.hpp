// Which SIMD implementation to run: a Highway target, or the plain reference. Chosen by value and
// handed down, so nothing global changes; every choice gives the same bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace firn::simd {

// The values other than `reference` are Highway's target bits (HWY_AVX2, ...).
enum class Target : std::int64_t { reference = 0 };

// Best first, `reference` last.
const std::vector<Target>& available_targets();

// The best one, or the one that the environment variable FIRN_SIMD names (unknown names are
// ignored: a library has no way to complain about its environment).
Target default_target();

const char* name_of(Target target);

}  // namespace firn::simd
