// StreamWriter and StreamReader as the extension's classes.
#pragma once

#include <nanobind/nanobind.h>

namespace firn_python {

void define_streams(nanobind::module_& module);

}  // namespace firn_python
