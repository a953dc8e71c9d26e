// What the library tells, as Python's objects. The Python side makes classes of the dictionaries.
#pragma once

#include <nanobind/nanobind.h>

#include <firn/firn.hpp>
#include <firn/metrics.hpp>
#include <string>
#include <vector>

namespace firn_python {

// Types are named as numpy names them.
const char* dtype_name(firn::Type type);
firn::Type type_of(const std::string& dtype_name);

nanobind::tuple tuple_of(const firn::Shape& shape);
firn::Shape shape_of(const std::vector<std::uint64_t>& extents);

nanobind::dict to_dict(const firn::Info& info);
nanobind::dict to_dict(const firn::ChunkInfo& chunk);
nanobind::dict to_dict(const firn::Damage& damage, int rank);
nanobind::dict to_dict(const firn::Comparison& comparison);
nanobind::dict to_dict(const firn::Metrics& metrics);
nanobind::dict to_dict(const firn::Estimate& estimate);

}  // namespace firn_python
