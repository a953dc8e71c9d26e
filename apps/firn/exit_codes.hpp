// Exit codes of the command line, as docs/command-line.md lists them. Codes up to 11 are the
// library's ErrorCode values; the command line's own start at 20.
#pragma once

#include "firn/firn.hpp"

namespace firn_cli {

enum class ExitCode : int {
  ok = 0,
  usage = static_cast<int>(firn::ErrorCode::invalid_argument),
  unsupported = static_cast<int>(firn::ErrorCode::unsupported),
  not_firn = static_cast<int>(firn::ErrorCode::not_firn),
  newer_version = static_cast<int>(firn::ErrorCode::newer_version),
  truncated = static_cast<int>(firn::ErrorCode::truncated),
  damaged = static_cast<int>(firn::ErrorCode::corrupt),
  out_of_memory = static_cast<int>(firn::ErrorCode::out_of_memory),
  bound_exceeded = static_cast<int>(firn::ErrorCode::bound_exceeded),
  cannot_read = 20,    // an input that is missing or cannot be read
  size_mismatch = 21,  // an input whose size does not fit its type and dims
  output_exists = 22,  // and --force was not given
  cannot_write = 23,   // a full disk, a missing directory, a lack of permission
  incomplete = 24,     // what was written is good, but not all that there should be
};

}  // namespace firn_cli
