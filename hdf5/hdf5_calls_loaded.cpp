#include <dlfcn.h>

#include "hdf5_calls.hpp"

namespace firn::hdf5 {
namespace {

// Looks a symbol up in the library at `handle`, or in what the process shows to all.
template <class Pointer>
bool find(void* handle, const char* name, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(dlsym(handle, name));
  return pointer != nullptr;
}

bool fill_table(void* handle, Hdf5Calls& table) {
  bool found = true;
#define FIRN_HDF5_FIND(function) found = found && find(handle, #function, table.function);
  FIRN_HDF5_FUNCTIONS(FIRN_HDF5_FIND)
#undef FIRN_HDF5_FIND
  return found && find(handle, "H5E_ERR_CLS_g", table.error_class) &&
         find(handle, "H5E_PLINE_g", table.error_pipeline) &&
         find(handle, "H5E_CALLBACK_g", table.error_callback) &&
         find(handle, "H5T_NATIVE_DOUBLE_g", table.native_double);
}

bool look_up(const void* caller, Hdf5Calls& table) {
  Dl_info library{};
  if (dladdr(caller, &library) != 0 && library.dli_fname != nullptr) {
    // Loaded already: this only names it.
    if (void* handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      const bool found = fill_table(handle, table);
      dlclose(handle);  // gives back the count that dlopen took
      if (found) return true;
    }
  }
  return fill_table(RTLD_DEFAULT, table);  // HDF5 linked statically into the program
}

}  // namespace

const Hdf5Calls* hdf5_calls(const void* caller) {
  // Looking up takes microseconds, and callers are few.
  thread_local const void* known_caller = nullptr;
  thread_local Hdf5Calls table;
  if (known_caller != caller) {
    known_caller = nullptr;
    if (!look_up(caller, table)) return nullptr;
    known_caller = caller;
  }
  return &table;
}

}  // namespace firn::hdf5
