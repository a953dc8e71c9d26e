// What the library tells, as Python dictionaries. The Python side gives them their types.
#pragma once

#include <nanobind/nanobind.h>

#include <firn/firn.hpp>
#include <firn/metrics.hpp>

#include "parameters.hpp"

namespace firn_python {

nanobind::dict to_dict(const firn::Info& info);
nanobind::dict to_dict(const firn::ChunkInfo& chunk);
nanobind::dict to_dict(const firn::Damage& damage, int rank);
nanobind::dict to_dict(const firn::Comparison& comparison);
nanobind::dict to_dict(const firn::Metrics& metrics);
nanobind::dict to_dict(const firn::hdf5::FilterParameters& parameters);

}  // namespace firn_python
