// The HDF5 functions that the filter uses, reached through one table. The static library links
// HDF5 and fills it directly (hdf5_calls_linked.cpp). The plugin must not link one: a process may
// have several HDF5 libraries loaded privately (Python wheels bring their own), and only the one
// that called the plugin knows the ids it passed (hdf5_calls_loaded.cpp).
#pragma once

#include <hdf5.h>

namespace firn::hdf5 {

// X(function) for each.
#define FIRN_HDF5_FUNCTIONS(X) \
  X(H5allocate_memory)         \
  X(H5free_memory)             \
  X(H5Epush2)                  \
  X(H5Pget_chunk)              \
  X(H5Pget_nfilters)           \
  X(H5Pget_filter2)            \
  X(H5Pget_filter_by_id2)      \
  X(H5Pmodify_filter)          \
  X(H5Pfill_value_defined)     \
  X(H5Pget_fill_value)         \
  X(H5Tget_class)              \
  X(H5Tget_size)               \
  X(H5Tget_order)              \
  X(H5Tget_precision)          \
  X(H5Tget_fields)             \
  X(H5Tget_ebias)              \
  X(H5Tget_norm)               \
  X(H5Tget_offset)

struct Hdf5Calls {
#define FIRN_HDF5_MEMBER(function) decltype(&::function) function = nullptr;
  FIRN_HDF5_FUNCTIONS(FIRN_HDF5_MEMBER)
#undef FIRN_HDF5_MEMBER
  // Where HDF5 keeps ids that it creates when it starts, and again when it was closed in between.
  const hid_t* error_class = nullptr;
  const hid_t* error_pipeline = nullptr;
  const hid_t* error_callback = nullptr;
  const hid_t* native_double = nullptr;
};

// Of the library that holds the code at `caller`, the return address of a filter callback. Null
// when it cannot be found. Valid until this thread's next call.
const Hdf5Calls* hdf5_calls(const void* caller);

}  // namespace firn::hdf5
