// Firn as values arrive: push the steps of a simulation, pull bytes; feed bytes, read steps.
//
// Steps lie along the slowest axis. Every so many of them become a part: a stream of its own, with
// its own bound, that decodes without the others. Parts one after the other are a series, which
// firn::inspect, decompress, decompress_region and the command line read as one array. A series
// may be cut after any part, appended to, and joined to another with cat.
#pragma once

#include <firn/firn.hpp>

namespace firn {

// Holds at most one part of values that have been pushed but not compressed, and the bytes that
// have not been taken. Not for concurrent use.
class FIRN_API StreamWriter {
 public:
  // `step` is the shape of one step: {ny, nx} for planes of a[t][y][x], rank 0 for single values
  // of a[t]. A chunk shape in the options has the array's rank. The bound `rel` is relative to
  // each part's own range, and `psnr` holds in each part. Under `ratio` the bound of each part
  // follows the bytes that those before it took, so that bytes leave at a steady rate: what quiet
  // parts save is not kept for later, what others took too much is saved again.
  static Result<StreamWriter> create(Type type, const Shape& step, const Options& options,
                                     const Execution& execution = {});
  // Continues the series in `existing`: its type and step, and its parts in the directory. What
  // the writer gives out belongs at append_offset(), where the file is to be cut first: of a
  // directory that stands there, nothing may be left behind a shorter part. A bound pwrel continues
  // only pwrel or lossless parts, and others only others.
  static Result<StreamWriter> append_to(std::span<const std::uint8_t> existing,
                                        const Options& options, const Execution& execution = {});

  ~StreamWriter();
  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) noexcept;

  // One step (the step's shape), or several (one axis more). May compress; the values are not
  // needed any more when it returns.
  Status push(const ArrayView& values);
  // Makes a part of what has been pushed, so that a reader gets all of it.
  Status flush();
  // Flushes, and adds the directory when there are several parts. Nothing can be pushed then.
  Status finish();

  // Bytes that are ready, until the next call of another function than take().
  std::span<const std::uint8_t> ready() const;
  void take(std::size_t bytes);  // of ready(), from its start

  std::uint64_t steps() const;  // pushed, without those that were there before
  std::uint64_t steps_per_part() const;
  std::uint64_t append_offset() const;  // 0 for a new series

 private:
  struct State;
  explicit StreamWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Holds at most the bytes of a part that has not all arrived, and the values of one part that
// have not been read.
class FIRN_API StreamReader {
 public:
  StreamReader();
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // Takes bytes in pieces of any size.
  Status feed(std::span<const std::uint8_t> bytes);

  bool started() const;  // the first header has arrived: type() and step() are known
  Type type() const;
  Shape step() const;
  // Of the part that comes next; 0 while its header has not arrived.
  std::uint64_t next_steps() const;

  // Decodes the next steps into `out`, contiguous and of shape {steps, step...}. Returns how many
  // there were, 0 when more bytes are needed: a part is decoded once all of it is there. Where one
  // is damaged, the steps before it come first, then every call fails.
  Result<std::uint64_t> read(const MutableArrayView& out, const Execution& execution = {});

  // After a read() that gave no steps: what was fed ends with a whole part, or is nothing. False at
  // the end of the input means that the series was cut off.
  bool at_boundary() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firn
