// The callers' side of a frame store: options, limits, put, pin, flush, close.
#include "implementation.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "copy.hpp"

namespace firn {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Error bad(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

std::string frame_name(std::uint64_t number) { return "frame " + std::to_string(number); }

// Working memory of a compressor and a decompressor, by docs/architecture.md.
std::uint64_t codec_bytes(const Options& compression, const Shape& shape) {
  const std::uint64_t usual = std::uint64_t{1} << (compression.preset == Preset::small ? 20 : 18);
  const std::uint64_t chunk = compression.chunk.rank > 0 ? compression.chunk.count() : usual;
  return 64 * std::min(chunk, shape.count());
}

const char* const kClosed = "the store is closed";

}  // namespace

FrameStore::Implementation::~Implementation() {
  // A scratch store has nothing worth waiting for.
  if (!options_.temporary) [[maybe_unused]]
    const auto unseen = close();
  stop_servants();
}

bool FrameStore::Implementation::compresses() const {
  return options_.policy != StorePolicy::memory && options_.policy != StorePolicy::disk;
}

std::uint64_t FrameStore::Implementation::buffers() const {
  return static_cast<std::uint64_t>(options_.put_buffers) +
         static_cast<std::uint64_t>(options_.get_buffers);
}

Status FrameStore::Implementation::check_options() {
  if (options_.policy > StorePolicy::automatic) return bad("unknown policy");
  if (options_.put_buffers < 1 || options_.get_buffers < 1 || options_.put_buffers > 1024 ||
      options_.get_buffers > 1024) {
    return bad("a store needs 1 to 1024 buffers in each direction; 2 are usual");
  }
  if (options_.servants < 1 || options_.servants > 1024) {
    return bad("a store needs 1 to 1024 servants");
  }
  const bool needs_file =
      options_.policy == StorePolicy::disk || options_.policy == StorePolicy::compressed_disk;
  if (needs_file && options_.path.empty()) {
    return bad(std::string("policy ") + name_of(options_.policy) + " needs a path for its file");
  }
  return std::monostate{};
}

Status FrameStore::Implementation::set_limits() {
  const auto worst = worst_case_size(options_.type, options_.shape, options_.compression);
  if (!worst) return worst.error();
  frame_bytes_ = options_.shape.count() * size_of(options_.type);
  slot_bytes_ = store::record_bytes(frame_bytes_);
  std::uint64_t payload = compresses() ? *worst : 0;
  if (file_) {
    for (const auto& [number, location] : file_->index()) {
      if (location.encoding == store::Encoding::firn) {
        payload = std::max(payload, location.payload_bytes);
      }
    }
  }
  if (payload > 0) {
    scratch_bytes_ = store::record_bytes(payload);
    working_bytes_ = static_cast<std::uint64_t>(options_.servants) *
                     (scratch_bytes_ + codec_bytes(options_.compression, options_.shape));
  }
  budget_ = options_.memory_budget;
  if (budget_ == 0 && options_.policy == StorePolicy::automatic) {
    budget_ = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
              static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 2;
  }
  const std::uint64_t least =
      working_bytes_ + (options_.policy == StorePolicy::memory ? 1 : buffers()) * slot_bytes_;
  if (budget_ != 0 && budget_ < least) {
    return bad("a memory budget of " + std::to_string(budget_) +
               " bytes is too small: " + std::to_string(options_.put_buffers) + " + " +
               std::to_string(options_.get_buffers) + " buffers and " +
               std::to_string(options_.servants) + " servants need " + std::to_string(least));
  }
  if (options_.policy == StorePolicy::compressed_memory && budget_ == 0) {
    encoded_limit_ = ~std::uint64_t{0};
  } else if (options_.policy == StorePolicy::compressed_memory ||
             options_.policy == StorePolicy::automatic) {
    encoded_limit_ = budget_ - least;
  }
  stats_.memory_bytes = stats_.memory_bytes_max = working_bytes_;
  return std::monostate{};
}

Status FrameStore::Implementation::begin(bool reopen) {
  if (options_.policy == StorePolicy::automatic) options_.temporary = true;
  if (options_.policy == StorePolicy::memory || options_.policy == StorePolicy::compressed_memory) {
    options_.path.clear();
    options_.temporary = true;
  }
  if (const Status status = check_options(); !status.ok()) return status;
  const store::FileOptions file_options{options_.replace, options_.temporary, options_.direct};
  if (reopen) {
    if (options_.temporary) {
      return bad(
          "only a store with policy disk or compressed-disk that is not temporary can be "
          "opened again");
    }
    auto file = store::StoreFile::open(options_.path, file_options);
    if (!file) return file.error();
    file_ = std::move(*file);
    options_.type = file_->type();
    options_.shape = file_->shape();
    for (const auto& [number, location] : file_->index()) frames_[number].location = location;
    stats_.recovered_frames = file_->recovered_frames();
    stats_.damaged_records = file_->damaged_records();
  }
  if (options_.shape.count() == 0) return bad("a frame needs a shape, and at least one value");
  if (const Status status = set_limits(); !status.ok()) return status;
  if (!reopen && !options_.path.empty()) {
    auto file =
        store::StoreFile::create(options_.path, options_.type, options_.shape, file_options);
    if (!file) return file.error();
    file_ = std::move(*file);
  }
  return start_servants();
}

Status FrameStore::Implementation::start_servants() {
  if (options_.policy == StorePolicy::memory) return std::monostate{};
  for (int i = 0; i < options_.servants; ++i) {
    servants_.emplace_back([this] { serve(); });
  }
  Lock lock(mutex_);
  done_.wait(lock, [&] { return started_ == options_.servants; });
  if (start_error_) return *start_error_;
  return std::monostate{};
}

void FrameStore::Implementation::stop_servants() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& servant : servants_) servant.join();
  servants_.clear();
}

std::optional<Error> FrameStore::Implementation::take_failure() {
  if (failures_.empty()) return {};
  Error failure = std::move(failures_.front());
  failures_.pop_front();
  return failure;
}

std::uint64_t FrameStore::Implementation::used_bytes() const {
  return working_bytes_ + slots_ * slot_bytes_ + encoded_in_memory_;
}

void FrameStore::Implementation::note_memory() {
  stats_.memory_bytes_max = std::max(stats_.memory_bytes_max, used_bytes());
}

bool FrameStore::Implementation::can_grow() const {
  if (budget_ != 0 && used_bytes() + slot_bytes_ > budget_) return false;
  return options_.policy == StorePolicy::memory || options_.policy == StorePolicy::automatic ||
         slots_ < buffers();
}

FrameStore::Implementation::Frames::iterator FrameStore::Implementation::find_evictable(
    const std::vector<std::uint64_t>& keep) {
  auto oldest = frames_.end();
  for (auto it = frames_.begin(); it != frames_.end(); ++it) {
    const Frame& frame = it->second;
    if (!frame.slot || frame.dirty || frame.busy || frame.wanted || frame.pins > 0) continue;
    if (std::find(keep.begin(), keep.end(), it->first) != keep.end()) continue;
    if (oldest == frames_.end() || frame.age < oldest->second.age) oldest = it;
  }
  return oldest;
}

void FrameStore::Implementation::release_slot(Frame& frame) {
  frame.ready = false;
  if (frame.slot) free_slots_.push_back(std::move(frame.slot));
  frame.slot = {};
}

store::Pages FrameStore::Implementation::take_slot(const std::vector<std::uint64_t>& keep) {
  if (free_slots_.empty() && can_grow()) {
    store::Pages slot(static_cast<std::size_t>(slot_bytes_));
    if (slot) {
      ++slots_;
      note_memory();
      return slot;
    }
  }
  if (free_slots_.empty()) {
    const auto evictable = find_evictable(keep);
    if (evictable != frames_.end()) release_slot(evictable->second);
  }
  if (free_slots_.empty()) return {};
  store::Pages slot = std::move(free_slots_.back());
  free_slots_.pop_back();
  return slot;
}

bool FrameStore::Implementation::every_slot_is_held() const {
  if (can_grow() || !free_slots_.empty()) return false;
  return std::all_of(frames_.begin(), frames_.end(),
                     [](const auto& entry) { return !entry.second.slot || entry.second.pins > 0; });
}

Status FrameStore::Implementation::put(std::uint64_t number, const ArrayView& frame) {
  if (frame.data == nullptr || frame.type != options_.type || frame.shape != options_.shape) {
    return bad(frame_name(number) + " has not the type and shape of the store's frames");
  }
  Lock lock(mutex_);
  const auto start = Clock::now();
  bool waited = false;
  store::Pages slot;
  auto existing = frames_.end();
  for (;;) {
    if (closed_) return bad(kClosed);
    if (auto failure = take_failure()) return std::move(*failure);
    existing = frames_.find(number);
    const bool exists = existing != frames_.end();
    if (exists && existing->second.pins > 0) {
      return bad(frame_name(number) + " is held by the caller and cannot be replaced");
    }
    if (!exists || !existing->second.busy) {
      if (exists && existing->second.slot) break;  // its own slot
      const bool queue_full = options_.policy != StorePolicy::automatic &&
                              options_.policy != StorePolicy::memory &&
                              dirty_ >= static_cast<std::uint64_t>(options_.put_buffers);
      if (!queue_full && (slot = take_slot({}))) break;
      if (options_.policy == StorePolicy::memory) {
        return Error{ErrorCode::out_of_memory,
                     budget_ == 0 ? "no memory for " + frame_name(number)
                                  : "the memory budget is spent after " + std::to_string(slots_) +
                                        " frames; policy automatic would go on with compression "
                                        "and a file"};
      }
      if (every_slot_is_held()) {
        return bad("every buffer is held by the caller: release a frame, or ask for more buffers");
      }
    }
    waited = true;
    ++waiting_to_put_;
    work_.notify_one();
    done_.wait(lock);
    --waiting_to_put_;
  }
  if (waited) stats_.put_wait_seconds += seconds_since(start);
  Frame& target = frames_[number];
  if (slot) {
    target.slot = std::move(slot);
  } else if (target.dirty) {
    --dirty_;
  }
  target.ready = target.dirty = target.wanted = false;
  target.busy = true;
  encoded_in_memory_ -= target.encoded.size();
  target.encoded = {};
  target.location.reset();
  target.lost.reset();
  target.unread.reset();

  lock.unlock();
  const auto copy_start = Clock::now();
  store::copy_in(frame, target.slot.data() + store::kHeadBytes);
  const double copied = seconds_since(copy_start);
  lock.lock();

  stats_.put_copy_seconds += copied;
  ++stats_.puts;
  target.busy = false;
  target.ready = target.dirty = true;
  target.age = ++clock_;
  stats_.queue_depth_max = std::max(stats_.queue_depth_max, ++dirty_);
  work_.notify_one();
  if (waiting_to_get_ + waiting_to_put_ > 0) done_.notify_all();
  return std::monostate{};
}

Result<const std::uint8_t*> FrameStore::Implementation::pin(std::uint64_t number) {
  Lock lock(mutex_);
  if (closed_) return bad(kClosed);
  if (auto failure = take_failure()) return std::move(*failure);
  const auto found = frames_.find(number);
  if (found == frames_.end()) return bad(frame_name(number) + " is not in the store");
  Frame& frame = found->second;
  pattern_.note(frames_, number);
  const auto start = Clock::now();
  bool waited = false;
  for (;;) {
    if (frame.lost) return *frame.lost;
    if (frame.ready) break;
    if (frame.unread) {
      const Error error = std::move(*frame.unread);
      frame.unread.reset();
      return error;
    }
    if (!frame.busy && every_slot_is_held()) {
      return bad("every buffer is held by the caller: release a frame, or ask for more buffers");
    }
    waited = frame.wanted = true;
    ++waiting_to_get_;
    work_.notify_one();
    done_.wait(lock);
    --waiting_to_get_;
    if (closed_) return bad(kClosed);
  }
  if (waited) stats_.get_wait_seconds += seconds_since(start);
  ++stats_.gets;
  stats_.gets_ready += waited ? 0 : 1;
  frame.age = ++clock_;
  frame.wanted = false;
  ++frame.pins;
  work_.notify_one();
  return frame.slot.data() + store::kHeadBytes;
}

void FrameStore::Implementation::unpin(std::uint64_t number) {
  const Lock lock(mutex_);
  --frames_.at(number).pins;
  work_.notify_one();
  if (waiting_to_get_ + waiting_to_put_ > 0) done_.notify_all();
}

void FrameStore::Implementation::wait_until_quiet(Lock& lock) {
  const bool all =
      options_.policy != StorePolicy::memory && options_.policy != StorePolicy::automatic;
  done_.wait(lock, [&] { return jobs_ == 0 && (!all || dirty_ == 0); });
}

Status FrameStore::Implementation::flush() {
  Lock lock(mutex_);
  if (closed_) return bad(kClosed);
  wait_until_quiet(lock);
  if (auto failure = take_failure()) return std::move(*failure);
  if (!file_ || options_.temporary) return std::monostate{};
  lock.unlock();
  return file_->sync();
}

Status FrameStore::Implementation::close() {
  store::Index index;
  Status status = std::monostate{};
  {
    Lock lock(mutex_);
    if (closed_) return std::monostate{};
    wait_until_quiet(lock);
    closed_ = true;
    done_.notify_all();
    if (auto failure = take_failure()) status = std::move(*failure);
    for (const auto& [number, frame] : frames_) {
      if (frame.location) index[number] = *frame.location;
    }
  }
  stop_servants();
  if (file_ && !options_.temporary) {
    const Status written = file_->close(index);
    if (status.ok()) status = written;
  }
  file_.reset();
  return status;
}

bool FrameStore::Implementation::contains(std::uint64_t number) const {
  const Lock lock(mutex_);
  const auto found = frames_.find(number);
  return found != frames_.end() && !found->second.lost;
}

std::vector<std::uint64_t> FrameStore::Implementation::numbers() const {
  const Lock lock(mutex_);
  std::vector<std::uint64_t> all;
  for (const auto& [number, frame] : frames_) {
    if (!frame.lost) all.push_back(number);
  }
  return all;
}

StoreStats FrameStore::Implementation::stats() const {
  const Lock lock(mutex_);
  StoreStats stats = stats_;
  stats.queue_depth = dirty_;
  stats.memory_bytes = used_bytes();
  return stats;
}

}  // namespace firn
