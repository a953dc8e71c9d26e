// The rules file of 'firn h5 compress': which bound for which datasets. docs/hdf5-and-netcdf.md
// describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firn/firn.hpp"

namespace firn_cli {

struct DatasetRule {
  std::string pattern;
  int line = 0;
  std::optional<firn::Bound> bound;  // none: skip, the dataset is copied as it is
  std::optional<firn::Preset> preset;
  std::optional<double> fill;
  std::vector<std::uint64_t> chunk;  // empty: as it was, or chosen

  // A pattern with a slash is compared with the whole path, one without with the last name alone.
  // '*' stands for any characters, slashes too.
  bool matches(const std::string& path) const;
};

class DatasetRules {
 public:
  DatasetRules() = default;
  static DatasetRules read(const std::string& file);

  // The first rule that matches, or null.
  const DatasetRule* find(const std::string& path) const;
  const std::vector<DatasetRule>& all() const { return rules_; }

 private:
  std::vector<DatasetRule> rules_;
};

}  // namespace firn_cli
