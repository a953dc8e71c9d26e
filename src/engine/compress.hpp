// From an array to a stream: the chunk loop, with its output in memory.
#pragma once

#include <firn/firn.hpp>
#include <functional>
#include <vector>

#include "base/scratch.hpp"
#include "container/records.hpp"
#include "pipelines/workers.hpp"
#include "plan/books.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

// Memory that a stream is written to: the caller's, or a Buffer that grows.
class Output {
 public:
  explicit Output(std::span<std::uint8_t> memory) : data_(memory.data()), room_(memory.size()) {}
  explicit Output(Buffer* buffer) : buffer_(buffer) {}

  // At least `bytes` at the end of what was written, or null.
  std::uint8_t* reserve(std::size_t bytes);
  void commit(std::size_t bytes) { size_ += bytes; }
  void rewind() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool fixed() const { return buffer_ == nullptr; }
  void finish();

 private:
  Buffer* buffer_ = nullptr;
  std::uint8_t* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
};

struct CompressScratch {
  std::vector<container::RecordTable::Entry> entries;
  std::vector<ScratchArray<std::uint8_t>> slots;
  std::vector<std::size_t> slot_sizes;
  ScratchArray<std::uint8_t> tail;
  plan::BookPlan books;
};

// Of a chunk's values, but for those that are special, in bounds.
struct SquaredError {
  double sum = 0;
  std::uint64_t count = 0;
};

// For a compression that may be given up on the way.
struct Watch {
  std::vector<std::uint64_t> ahead;  // chunks to encode before the others, in rising order
  // Told the size of each record, those of `ahead` first, then the others in order. False: give up.
  std::function<bool(std::uint64_t chunk, std::uint64_t bytes)> goes_on;
  bool given_up = false;  // then the output is of no use
};

// `choices`, for compressions of an array under several bounds: of each chunk, made by one of them
// and kept by the next; empty: made anew. `errors`: of each chunk, by decoding it.
Status compress(const ArrayView& array, plan::Plan& plan, const Execution& execution,
                pipelines::Workers& workers, CompressScratch& scratch, Output& output,
                std::vector<pipelines::Choice>* choices = nullptr,
                std::vector<SquaredError>* errors = nullptr, Watch* watch = nullptr);

std::uint64_t worst_case_size(const plan::Plan& plan);

}  // namespace firn::engine
