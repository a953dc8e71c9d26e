// Memory for records, one after the other in blocks that are kept for the next ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/scratch.hpp"

namespace firn::engine {

class RecordPool {
 public:
  // At least `bytes` behind what was committed.
  std::uint8_t* reserve(std::size_t bytes) {
    while (block_ < blocks_.size() && blocks_[block_].size() - used_ < bytes) {
      ++block_;
      used_ = 0;
    }
    if (block_ == blocks_.size()) blocks_.emplace_back().reserve(std::max(bytes, kBlock));
    return blocks_[block_].data() + used_;
  }
  // The first `bytes` of what was reserved last.
  std::span<std::uint8_t> commit(std::size_t bytes) {
    std::uint8_t* const begin = blocks_[block_].data() + used_;
    used_ += bytes;
    return {begin, bytes};
  }
  // All records end here.
  void clear() { block_ = used_ = 0; }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 22;

  std::vector<ScratchArray<std::uint8_t>> blocks_;
  std::size_t block_ = 0, used_ = 0;  // where the next record goes
};

}  // namespace firn::engine
