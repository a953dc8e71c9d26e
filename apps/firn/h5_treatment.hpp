// What 'firn h5 compress' does to one dataset, and why.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firn/firn.hpp"
#include "h5_rules.hpp"

namespace firn_cli {

struct CompressionRequest {
  std::optional<firn::Bound> bound;  // none: only what a rule names is compressed
  firn::Preset preset = firn::Preset::balanced;
  DatasetRules rules;
};

struct Treatment {
  bool compress = false;
  std::string reason;  // for people: why it is copied as it is, or why this bound
  firn::Bound bound;   // of the whole dataset
  firn::Preset preset = firn::Preset::balanced;
  // Every value that means "nothing here", once: no part of the range, and to be kept exactly.
  std::vector<double> missing;
  std::vector<std::uint64_t> chunk;
  // What is known of the dataset.
  firn::Type type = firn::Type::f32;
  std::vector<std::uint64_t> extents;
  std::uint64_t original_bytes = 0;  // of its values
  std::uint64_t stored_bytes = 0;    // in the input file
};

Treatment choose_treatment(hid_t dataset, const std::string& path,
                           const CompressionRequest& request);

}  // namespace firn_cli
