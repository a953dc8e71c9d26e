// Memory for records, one after the other in blocks that are kept for the next ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/scratch.hpp"

namespace firn::engine {

class RecordPool {
 public:
  // A copy that stays where it is.
  std::span<std::uint8_t> add(std::span<const std::uint8_t> record) {
    if (used_ != 0 && blocks_[block_].size() - used_ < record.size()) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) blocks_.emplace_back();
    // One that is not in use may grow.
    if (used_ == 0) blocks_[block_].reserve(std::max(record.size(), kBlock));
    std::uint8_t* const to = blocks_[block_].data() + used_;
    std::memcpy(to, record.data(), record.size());
    used_ += record.size();
    return {to, record.size()};
  }
  // All records end here.
  void clear() { block_ = used_ = 0; }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  std::vector<ScratchArray<std::uint8_t>> blocks_;
  std::size_t block_ = 0, used_ = 0;  // where the next record goes
};

}  // namespace firn::engine
