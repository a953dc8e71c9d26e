// A part of an array as typed: "0:10,:,5:7", one half-open range per axis, slowest first.
#pragma once

#include <string_view>

#include "firn/firn.hpp"

namespace firn_cli {

// A usage Failure when it does not lie within `shape`. "a:", ":b", ":" run to the ends; a single
// number is one index, and its axis stays, with extent 1.
firn::Region parse_region(std::string_view text, const firn::Shape& shape);

}  // namespace firn_cli
