// From an array to a stream: the chunk loop, with its output in memory.
#pragma once

#include <array>
#include <firn/firn.hpp>
#include <span>
#include <vector>

#include "base/geometry.hpp"
#include "base/scratch.hpp"
#include "container/records.hpp"
#include "engine/record_pool.hpp"
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
  // Of each thread, for compressions that are tried: the best so far, and the next one.
  std::vector<std::array<RecordPool, 2>> pools;
};

// Of a chunk's values, but for those that are special, in bounds.
struct SquaredError {
  double sum = 0;
  std::uint64_t count = 0;
};

// `choices`, for compressions of an array under several bounds: of each chunk, made by one of them
// and kept by the next; empty: made anew. `errors`: of each chunk, by decoding it.
Status compress(const ArrayView& array, plan::Plan& plan, const Execution& execution,
                pipelines::Workers& workers, CompressScratch& scratch, Output& output,
                std::vector<pipelines::Choice>* choices = nullptr,
                std::vector<SquaredError>* errors = nullptr);

// The same in parts, for a stream whose chunks are encoded in another order, or several times.
class ChunkEncoder {
 public:
  // These must outlive it; the books are planned.
  ChunkEncoder(const ArrayView& array, const plan::Plan& plan, const plan::BookPlan& books);

  const Grid& grid() const { return grid_; }
  std::uint64_t values(std::uint64_t chunk) const { return grid_.region(chunk).shape.count(); }
  // Bytes that a record may have.
  std::size_t capacity() const { return capacity_; }
  // Encodes a chunk as a whole record at `to` and returns its size. `finer`: with a step that is
  // smaller by so many 256ths.
  std::size_t encode(std::uint64_t chunk, pipelines::Choice* choice, unsigned finer,
                     SquaredError* error, pipelines::Workspace& workspace, std::uint8_t* to) const;
  // About the size that encode() would return, for less work; the choice is the same. If it is from
  // `least` to `most`, the record is encoded all the same, and its size is what is returned.
  struct Rehearsed {
    std::size_t size;
    bool written;
  };
  Rehearsed rehearse(std::uint64_t chunk, pipelines::Choice* choice,
                     pipelines::Workspace& workspace, std::uint8_t* to, double least = 1,
                     double most = 0) const;

  // The choice that encode() would make under a bound, for chunks that are parts of this one:
  // without orders and bases.
  pipelines::Choice choose(std::uint64_t chunk, pipelines::Workspace& workspace) const;

 private:
  pipelines::Parameters parameters_of(std::uint64_t chunk, const pipelines::Choice* choice) const;
  // function(Box<const float> or Box<const double>), its values.
  template <class Function>
  auto with_box(std::uint64_t chunk, Function function) const;

  const ArrayView& array_;
  const plan::Plan& plan_;
  const plan::BookPlan& books_;
  Grid grid_;
  std::array<std::int64_t, kMaxRank> strides_;
  std::size_t capacity_;
};
// The header and scratch.books, planned for the plan; then scratch.entries from all records.
Status write_head(plan::Plan& plan, CompressScratch& scratch, Output& output);
Status write_records(const plan::Plan& plan, std::span<const std::span<std::uint8_t>> records,
                     CompressScratch& scratch, Output& output);

std::uint64_t worst_case_size(const plan::Plan& plan);

}  // namespace firn::engine
