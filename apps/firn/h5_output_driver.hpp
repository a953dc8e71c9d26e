// HDF5 writes its output through an OutputFile. Once a write has failed, HDF5 loops or crashes in
// many of its calls. So it is never told: the process ends there, as it does for a failed mapping.
#pragma once

#include <hdf5.h>

#include "output_file.hpp"

namespace firn_cli {

// Makes H5Fcreate with these access properties write to the file, whatever name it is given. The
// file must outlive what is created.
void write_through(hid_t access, OutputFile& file);

}  // namespace firn_cli
