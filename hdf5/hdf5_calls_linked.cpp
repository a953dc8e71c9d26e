#include "hdf5_calls.hpp"

namespace firn::hdf5 {

const Hdf5Calls* hdf5_calls(const void*) {
  static const Hdf5Calls calls = [] {
    Hdf5Calls table;
#define FIRN_HDF5_TAKE(function) table.function = &::function;
    FIRN_HDF5_FUNCTIONS(FIRN_HDF5_TAKE)
#undef FIRN_HDF5_TAKE
    table.error_class = &H5E_ERR_CLS_g;
    table.error_pipeline = &H5E_PLINE_g;
    table.error_callback = &H5E_CALLBACK_g;
    table.native_double = &H5T_NATIVE_DOUBLE_g;
    return table;
  }();
  return &calls;
}

}  // namespace firn::hdf5
