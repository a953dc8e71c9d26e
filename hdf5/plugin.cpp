// What HDF5 looks for in a plugin.
#include <H5PLextern.h>

#include "filter.hpp"

extern "C" {

__attribute__((visibility("default"))) H5PL_type_t H5PLget_plugin_type(void) {
  return H5PL_TYPE_FILTER;
}

__attribute__((visibility("default"))) const void* H5PLget_plugin_info(void) {
  return &firn::hdf5::kFilterClass;
}

}  // extern "C"
