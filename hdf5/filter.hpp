// The filter as HDF5 knows it: its three callbacks in one H5Z_class2_t.
#pragma once

#include <hdf5.h>

namespace firn::hdf5 {

extern const H5Z_class2_t kFilterClass;

}  // namespace firn::hdf5
