// A field in memory of its own for `firn bench`: contiguous, already paged in, tiled on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "firn/firn.hpp"

namespace firn_cli {

// Memory aligned to cache lines, every page touched.
class BenchMemory {
 public:
  explicit BenchMemory(std::uint64_t size_bytes);  // an out_of_memory Failure when short
  std::uint8_t* data() { return data_.get(); }
  const std::uint8_t* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  std::unique_ptr<std::uint8_t, Free> data_;
  std::size_t size_;
};

struct BenchField {
  BenchMemory memory;
  firn::ArrayView view;  // of `memory`
};

// A copy, in row-major order, repeated along the slowest axis until it has at least `least_bytes`.
BenchField make_bench_field(const firn::ArrayView& source, std::uint64_t least_bytes);

// A copy with every fill value set to 0, for codecs that know no masks.
BenchField without_fill(const firn::ArrayView& contiguous, double fill);

}  // namespace firn_cli
