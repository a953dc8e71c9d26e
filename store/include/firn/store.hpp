// A store for frames (arrays of one type and shape, numbered) that are more than memory holds:
// put() and get() return at once while servant threads compress, write, read ahead and decompress.
// Best at frames that are put forward and read back in reverse. docs/frame-store.md is the guide,
// and specifies the file.
#pragma once

#include <firn/firn.hpp>
#include <string>
#include <vector>

namespace firn {

enum class StorePolicy : std::uint8_t {
  memory = 0,             // as they are, in memory
  disk = 1,               // as they are, in the store's file
  compressed_memory = 2,  // compressed, in memory
  compressed_disk = 3,    // compressed, in the store's file
  automatic = 4,          // in memory; beyond the budget compressed in memory; then on disk
};
FIRN_API const char* name_of(StorePolicy policy);
FIRN_API Result<StorePolicy> parse_store_policy(const std::string& name);

struct StoreOptions {
  StorePolicy policy = StorePolicy::automatic;
  Type type = Type::f32;  // of every frame
  Shape shape;            // of every frame
  Options compression;    // the bound and so on; not used by `memory` and `disk`

  // The file, of the policies that have one. Under `automatic` it may be empty: then memory is all
  // there is.
  std::string path;
  bool replace = false;  // an existing file at `path` is replaced; otherwise it is an error
  // The file is a scratch file: it has no name once it is open and is gone when the store or the
  // process is. Always so under `automatic`.
  bool temporary = false;
  // Past the operating system's cache (O_DIRECT), where the file system can.
  bool direct = false;

  // Bytes that the store may hold at any time: its buffers, frames in memory and the working memory
  // of the servants. 0: `automatic` takes half of the machine's memory, the others what they need.
  std::uint64_t memory_budget = 0;
  // Frames that may wait to be stored, and frames that may be read ahead or be held by the caller.
  int put_buffers = 2;
  int get_buffers = 2;
  int servants = 1;
  // Cores (logical numbers, as hwloc-ls and `taskset` count them) that the servants are bound to;
  // empty: wherever the system puts them. Needs a build with hwloc.
  std::vector<int> servant_cores;
};

// Sums since the store was made.
struct StoreStats {
  std::uint64_t puts = 0, gets = 0;
  std::uint64_t gets_ready = 0;                         // found decoded in memory, without waiting
  double put_wait_seconds = 0;                          // the caller waited for a buffer
  double put_copy_seconds = 0;                          // the caller's values were copied
  double get_wait_seconds = 0;                          // the caller waited for a frame
  double compress_seconds = 0, decompress_seconds = 0;  // of the servants
  double write_seconds = 0, read_seconds = 0;           // of the servants
  std::uint64_t frames_encoded = 0;                     // what compress_seconds were for
  std::uint64_t encoded_raw_bytes = 0, encoded_bytes = 0;
  std::uint64_t written_bytes = 0, read_bytes = 0;     // of the file
  std::uint64_t queue_depth = 0, queue_depth_max = 0;  // frames that wait(ed) to be stored
  std::uint64_t memory_bytes = 0, memory_bytes_max = 0;
  // After open(): frames found by looking through a file that was not closed, and records (or what
  // was left of them) that were not whole.
  std::uint64_t recovered_frames = 0, damaged_records = 0;
};

class FrameStore;

// A frame that the caller reads in place; it stays in memory until this object goes.
class FIRN_API HeldFrame {
 public:
  HeldFrame(HeldFrame&&) noexcept;
  HeldFrame& operator=(HeldFrame&&) noexcept;
  ~HeldFrame();

  const void* data() const { return view_.data; }
  const ArrayView& view() const { return view_; }

 private:
  friend class FrameStore;
  struct State;
  explicit HeldFrame(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  ArrayView view_;
};

// Any thread may call any member at any time (one of them close()). A put that failed after it had
// returned is reported by the next call, whichever it is: that call then returns the failure and
// has done nothing itself. No call waits for anything but servants that are at work.
class FIRN_API FrameStore {
 public:
  static Result<FrameStore> create(const StoreOptions& options);
  // A file that an earlier store with policy `disk` or `compressed_disk` left. Type and shape come
  // from the file. When that store was not closed, the file is looked through and every frame
  // whose record is whole is found; stats() tells.
  static Result<FrameStore> open(const StoreOptions& options);

  FrameStore(FrameStore&&) noexcept;
  FrameStore& operator=(FrameStore&&) noexcept;
  ~FrameStore();  // close(), its result unseen

  // Takes a copy. Putting a number again replaces that frame.
  Status put(std::uint64_t number, const ArrayView& frame);
  // Into the caller's memory.
  Status get(std::uint64_t number, const MutableArrayView& out);
  // Without a copy. At most `get_buffers` frames can be held at once.
  Result<HeldFrame> hold(std::uint64_t number);

  bool contains(std::uint64_t number) const;
  std::vector<std::uint64_t> numbers() const;  // ascending
  Type type() const;
  Shape shape() const;
  StoreStats stats() const;

  // Waits until all that was put is where the policy wants it, and a file's content safe on the
  // disk.
  Status flush();
  // flush(), writes the file's index and ends the servants. Frames still held stay valid.
  Status close();

 private:
  friend class HeldFrame;
  class Implementation;
  explicit FrameStore(std::shared_ptr<Implementation> implementation);
  std::shared_ptr<Implementation> implementation_;
};

// Binds the calling thread to these cores, so that the workers can leave one to the servants.
FIRN_API Status bind_thread(const std::vector<int>& cores);

}  // namespace firn
