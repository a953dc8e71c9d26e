// The commands below 'firn h5', and the options that they share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "firn/firn.hpp"

namespace firn_cli {

void add_h5_params_command(CLI::App& parent);
void add_h5_compress_command(CLI::App& parent);

// --abs, --rel, --pwrel, --psnr, --lossless, --preset.
class BoundOptions {
 public:
  void add_to(CLI::App& command, const std::string& meaning_of_rel);
  std::optional<firn::Bound> bound_or_none() const;  // a usage Failure when there are two
  firn::Preset preset() const;

 private:
  std::string abs_;
  std::string rel_;
  std::string pwrel_;
  std::string psnr_;
  bool lossless_ = false;
  std::string preset_;
};

}  // namespace firn_cli
