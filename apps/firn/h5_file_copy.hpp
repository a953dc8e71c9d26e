// Copies an HDF5 file, its floating-point datasets through Firn and all else as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h5_objects.hpp"
#include "h5_treatment.hpp"
#include "h5_values.hpp"
#include "output_file.hpp"

namespace firn_cli {

struct DatasetOutcome {
  std::string path;
  Treatment treatment;
  std::optional<CompressedDataset> result;  // none: copied, or a dry run
};

class H5FileCopy {
 public:
  // Reads what the file holds and settles what is to be done with it; writes nothing.
  H5FileCopy(const std::string& input_path, const CompressionRequest& request);

  // In the order of the file. Results are there after write().
  const std::vector<DatasetOutcome>& datasets() const { return datasets_; }

  // Writes the copy; to give it its name is the caller's. `progress` as for firn::Execution.
  void write(OutputFile& file, int threads,
             const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

 private:
  std::string input_path_;
  Handle input_;
  std::vector<CatalogueEntry> entries_;
  std::vector<DatasetOutcome> datasets_;
};

}  // namespace firn_cli
