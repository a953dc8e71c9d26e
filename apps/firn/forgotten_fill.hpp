// A fill value that was not named makes the range, and with it most bounds, too large by far.
#pragma once

#include <firn/firn.hpp>

namespace firn_cli {

// Says on standard error when a contiguous field's bound seems to come from such a value: it is
// large beside how much the values differ, and one value is far from all others.
void tell_forgotten_fill(const firn::ArrayView& field, const firn::Options& options,
                         double bound_abs);

}  // namespace firn_cli
