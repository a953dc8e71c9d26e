// Writes and reads HDF5 datasets that use the Firn filter with several threads. HDF5's own filter
// pipeline compresses one chunk after the other in the thread that calls it; here chunks are
// compressed side by side and handed to HDF5 ready (H5Dwrite_chunk, H5Dread_chunk). Files are the
// same either way.
//
// HDF5 is called from one thread at a time, but not always the same: as usual, the program must
// not call it from elsewhere meanwhile unless its HDF5 was built thread-safe.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "firn/firn.hpp"

namespace firn::hdf5 {

// Makes the filter known to the HDF5 that this program links, so that no plugin is needed.
Status register_filter();

// A box of a dataset, slowest axis first.
struct Box {
  std::vector<std::uint64_t> origin;
  std::vector<std::uint64_t> extents;
};

struct DirectWriteReport {
  std::uint64_t chunk_count = 0;
  std::uint64_t original_bytes = 0;  // of the box, without the padding of chunks at the far ends
  std::uint64_t compressed_bytes = 0;
  double max_abs_error = 0;    // 0 for pwrel
  double max_pwrel_error = 0;  // relative to each value; 0 for other kinds of bound
};

// `values` holds the box in row-major order, in this machine's byte order and the dataset's own
// precision. The box begins at a chunk's first value and ends at a chunk's end or at the dataset's
// on every axis; without one, it is the whole dataset. The dataset's only filter must be Firn.
// Execution's progress counts bytes of the box.
Result<DirectWriteReport> write_chunks(hid_t dataset, const float* values,
                                       const Execution& execution = {}, const Box* box = nullptr);
Result<DirectWriteReport> write_chunks(hid_t dataset, const double* values,
                                       const Execution& execution = {}, const Box* box = nullptr);

// The same for reading. What was never written gets the dataset's fill value.
Status read_chunks(hid_t dataset, float* values, const Execution& execution = {},
                   const Box* box = nullptr);
Status read_chunks(hid_t dataset, double* values, const Execution& execution = {},
                   const Box* box = nullptr);

}  // namespace firn::hdf5
