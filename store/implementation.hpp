// What a FrameStore is: frames, their places, and the servants that move them between places.
//
// A frame put is raw and dirty: its values in a slot are the only copy. Servants store dirty frames
// (compress, write) until the policy is content; a frame stored is clean as long as a slot still
// holds its values, and a clean slot may be taken for another frame. Reading a frame that no slot
// holds loads it into one; frames that are expected next are loaded ahead.
#pragma once

#include <condition_variable>
#include <deque>
#include <firn/store.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "access_pattern.hpp"
#include "pages.hpp"
#include "store_file.hpp"

namespace firn {

// Everything is guarded by mutex_, but for what a servant or the caller does with a frame that is
// marked busy, and reading the values of a slot that is pinned.
class FrameStore::Implementation {
 public:
  explicit Implementation(StoreOptions options) : options_(std::move(options)) {}
  ~Implementation();

  Status begin(bool reopen);

  Status put(std::uint64_t number, const ArrayView& frame);
  // The frame is pinned until unpin().
  Result<const std::uint8_t*> pin(std::uint64_t number);
  void unpin(std::uint64_t number);
  Status flush();
  Status close();

  bool contains(std::uint64_t number) const;
  std::vector<std::uint64_t> numbers() const;
  StoreStats stats() const;
  const StoreOptions& options() const { return options_; }

 private:
  struct Frame {
    store::Pages slot;     // head room, then the values; empty when not in memory
    store::Pages encoded;  // a record: head room, then a Firn stream
    std::uint64_t encoded_bytes = 0;
    std::optional<store::Location> location;  // in the file
    std::optional<Error> lost;                // why it could not be stored
    std::optional<Error> unread;              // why it could not be loaded the last time
    std::uint64_t age = 0;                    // of its last use, in calls
    int pins = 0;
    bool ready = false;   // the slot holds the values
    bool dirty = false;   // and they are the only copy
    bool busy = false;    // someone moves it
    bool wanted = false;  // a caller waits for it, and will take it: it stays until then
  };
  using Frames = std::map<std::uint64_t, Frame>;
  struct Servant;
  struct Job {
    enum class Kind { none, store, load } kind = Kind::none;
    Frames::iterator frame;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool compresses() const;
  Status check_options();
  Status set_limits();
  Status start_servants();

  std::uint64_t used_bytes() const;
  void note_memory();  // after it grew
  std::uint64_t buffers() const;
  bool can_grow() const;
  bool must_store() const;
  void release_slot(Frame& frame);  // to those that are free
  // A slot for another frame: a free one, a new one, or that of a clean frame not in `keep`. Empty
  // when there is none for now.
  store::Pages take_slot(const std::vector<std::uint64_t>& keep);
  Frames::iterator find_evictable(const std::vector<std::uint64_t>& keep);
  Frames::iterator find_dirty();
  bool every_slot_is_held() const;
  std::vector<std::uint64_t> expected_frames() const;
  std::optional<Error> take_failure();

  void serve();
  Job choose_job();
  void run_store(Servant& servant, Frames::iterator frame, Lock& lock);
  void run_load(Servant& servant, Frames::iterator frame, Lock& lock);
  Status store_encoded(Servant& servant, Frames::iterator frame, std::uint64_t bytes, Lock& lock);
  // Until this many bytes more of compressed frames are within the limits, older ones go to the
  // file.
  Status make_room(std::uint64_t bytes, Lock& lock);
  Result<store::Location> append(std::uint64_t number, store::Encoding encoding,
                                 std::uint8_t* record, std::uint64_t bytes, Lock& lock);
  void wait_until_quiet(Lock& lock);
  void stop_servants();

  StoreOptions options_;
  std::uint64_t frame_bytes_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;  // a servant's buffer for a compressed frame
  std::uint64_t working_bytes_ = 0;  // of all servants together
  std::uint64_t budget_ = 0;         // 0: none
  std::uint64_t encoded_limit_ = 0;  // for compressed frames in memory

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for servants
  std::condition_variable done_;  // for callers
  Frames frames_;
  std::vector<store::Pages> free_slots_;
  std::uint64_t slots_ = 0;  // in frames, free or being filled
  std::uint64_t dirty_ = 0;
  std::uint64_t encoded_in_memory_ = 0;
  std::uint64_t clock_ = 0;
  int jobs_ = 0;                                 // at work
  int waiting_to_put_ = 0, waiting_to_get_ = 0;  // callers
  std::deque<Error> failures_;
  store::AccessPattern pattern_;
  StoreStats stats_;
  std::unique_ptr<store::StoreFile> file_;
  std::vector<std::thread> servants_;
  int started_ = 0;
  std::optional<Error> start_error_;  // of a servant
  bool stopping_ = false;
  bool closed_ = false;
};

}  // namespace firn
