// Velocity models: horizontal layers, a salt-like body in a gradient, or a raw file; and their
// smooth version, which is what a migration has in reality.
#pragma once

#include <string>

#include "grid.hpp"

namespace rtm {

// "layers", "salt", or the path of a file of f32 values, the imaged part's, in metres a second
// (throws firn_cli::Failure when it cannot be that). The sponge continues the border's values.
Field make_model(const Grid& grid, const std::string& name);

// Three box filters of this radius along every axis, on slowness.
Field smoothed(const Grid& grid, const Field& velocity, int radius);

// Depth of the first interface of "layers", from the top of the imaged part, in grid points.
int first_interface(const Grid& grid);

}  // namespace rtm
