// The values of datasets, moved in boxes that fit in memory.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "firn/direct_chunks.hpp"
#include "h5_objects.hpp"
#include "h5_treatment.hpp"

namespace firn_cli {

// Boxes of whole chunks that cover the extents, each of at most `most_values` values or one chunk,
// in row-major order.
std::vector<firn::hdf5::Box> boxes_of(const std::vector<std::uint64_t>& extents,
                                      const std::vector<std::uint64_t>& chunk,
                                      std::uint64_t most_values);

struct CompressedDataset {
  firn::hdf5::DirectWriteReport written;
  firn::Bound bound;           // as enforced: abs, pwrel or lossless
  std::string remark;          // for people, when the bound is not what was asked for
  std::string forgotten_fill;  // what ForgottenFill found
  double seconds = 0;
};

// Reads every value of `source` and makes `path` in the output file with the treatment's bound.
// `type` is the type in the output file. `progress` is told of each dataset's bytes done.
CompressedDataset compress_dataset(hid_t source, hid_t output, const std::string& path, hid_t type,
                                   hid_t link_creation, const Treatment& treatment, int threads,
                                   const std::function<void(std::uint64_t)>& progress);

}  // namespace firn_cli
