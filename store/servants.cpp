// The servants' side of a frame store: what to do next, storing and loading.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "implementation.hpp"

namespace firn {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Execution one_thread() {
  Execution execution;
  execution.threads = 1;
  return execution;
}

Error no_memory() { return {ErrorCode::out_of_memory, "no memory for a compressed frame"}; }

}  // namespace

// What one servant keeps between jobs.
struct FrameStore::Implementation::Servant {
  Compressor compressor;
  Decompressor decompressor;
  store::Pages scratch;  // a record with a compressed frame

  bool prepare(std::uint64_t bytes) {
    if (!scratch) scratch = store::Pages(static_cast<std::size_t>(bytes));
    return static_cast<bool>(scratch);
  }
};

void FrameStore::Implementation::serve() {
  Status bound = std::monostate{};
  if (!options_.servant_cores.empty()) bound = bind_thread(options_.servant_cores);
  Servant servant;
  Lock lock(mutex_);
  ++started_;
  if (!bound.ok()) start_error_ = bound.error();
  done_.notify_all();
  while (!stopping_) {
    const Job job = choose_job();
    if (job.kind == Job::Kind::none) {
      work_.wait(lock);
      continue;
    }
    ++jobs_;
    job.frame->second.busy = true;
    if (job.kind == Job::Kind::store) {
      run_store(servant, job.frame, lock);
    } else {
      run_load(servant, job.frame, lock);
    }
    job.frame->second.busy = false;
    --jobs_;
    done_.notify_all();
    work_.notify_one();
  }
}

// Under `automatic` frames stay as they are while they leave room for the buffers.
bool FrameStore::Implementation::must_store() const {
  if (options_.policy != StorePolicy::automatic) return dirty_ > 0;
  return working_bytes_ + encoded_in_memory_ + (dirty_ + buffers()) * slot_bytes_ > budget_;
}

// The one used the longest time ago: read in reverse, it will be needed last.
FrameStore::Implementation::Frames::iterator FrameStore::Implementation::find_dirty() {
  auto oldest = frames_.end();
  for (auto it = frames_.begin(); it != frames_.end(); ++it) {
    if (!it->second.dirty || it->second.busy) continue;
    if (oldest == frames_.end() || it->second.age < oldest->second.age) oldest = it;
  }
  return oldest;
}

std::vector<std::uint64_t> FrameStore::Implementation::expected_frames() const {
  const std::uint64_t waiting = std::min(dirty_, static_cast<std::uint64_t>(options_.put_buffers));
  const auto ahead = static_cast<int>(buffers() - waiting) - 1;
  return pattern_.expected(frames_, std::max(1, ahead));
}

FrameStore::Implementation::Job FrameStore::Implementation::choose_job() {
  const auto load = [&](Frames::iterator it, const std::vector<std::uint64_t>& keep) {
    store::Pages slot = take_slot(keep);
    if (!slot) return false;
    it->second.slot = std::move(slot);
    return true;
  };
  const auto loadable = [](const Frame& frame) {
    return !frame.slot && !frame.busy && (frame.encoded || frame.location);
  };
  if (waiting_to_get_ > 0) {
    for (auto it = frames_.begin(); it != frames_.end(); ++it) {
      if (it->second.wanted && loadable(it->second) && load(it, {})) {
        return {Job::Kind::load, it};
      }
    }
  }
  const auto dirty = dirty_ > 0 && must_store() ? find_dirty() : frames_.end();
  if (dirty != frames_.end() && waiting_to_put_ > 0) return {Job::Kind::store, dirty};
  const std::vector<std::uint64_t> expected = expected_frames();
  for (const std::uint64_t number : expected) {
    const auto it = frames_.find(number);
    if (!loadable(it->second) || it->second.unread) continue;
    if (!load(it, expected)) break;
    return {Job::Kind::load, it};
  }
  if (dirty != frames_.end()) return {Job::Kind::store, dirty};
  return {};
}

Result<store::Location> FrameStore::Implementation::append(std::uint64_t number,
                                                           store::Encoding encoding,
                                                           std::uint8_t* record,
                                                           std::uint64_t bytes, Lock& lock) {
  lock.unlock();
  const auto start = Clock::now();
  auto location = file_->append(number, encoding, record, bytes);
  const double taken = seconds_since(start);
  lock.lock();
  stats_.write_seconds += taken;
  if (location) stats_.written_bytes += store::record_bytes(bytes);
  return location;
}

Status FrameStore::Implementation::make_room(std::uint64_t bytes, Lock& lock) {
  while (encoded_in_memory_ + bytes > encoded_limit_ ||
         (budget_ != 0 && used_bytes() + bytes > budget_)) {
    if (encoded_in_memory_ + bytes <= encoded_limit_) {
      // The limits leave room for the buffers, so some slot is free or can be.
      if (free_slots_.empty()) {
        const auto evictable = find_evictable({});
        if (evictable != frames_.end()) release_slot(evictable->second);
      }
      if (!free_slots_.empty()) {
        free_slots_.pop_back();
        --slots_;
        continue;
      }
    }
    auto oldest = frames_.end();
    for (auto it = frames_.begin(); it != frames_.end(); ++it) {
      if (!it->second.encoded || it->second.busy) continue;
      if (oldest == frames_.end() || it->second.age < oldest->second.age) oldest = it;
    }
    if (!file_ || oldest == frames_.end()) {
      return Error{ErrorCode::out_of_memory,
                   "the memory budget of " + std::to_string(budget_) +
                       " bytes is spent; a larger one, a tighter compression or a file would help"};
    }
    Frame& frame = oldest->second;
    frame.busy = true;
    auto location = append(oldest->first, store::Encoding::firn, frame.encoded.data(),
                           frame.encoded_bytes, lock);
    frame.busy = false;
    if (!location) return location.error();
    frame.location = *location;
    encoded_in_memory_ -= frame.encoded.size();
    frame.encoded = {};
    done_.notify_all();
  }
  return std::monostate{};
}

Status FrameStore::Implementation::store_encoded(Servant& servant, Frames::iterator it,
                                                 std::uint64_t bytes, Lock& lock) {
  Frame& frame = it->second;
  const std::uint64_t size = store::record_bytes(bytes);
  const bool in_memory = options_.policy == StorePolicy::compressed_memory ||
                         (options_.policy == StorePolicy::automatic && size <= encoded_limit_);
  if (!in_memory) {
    if (!file_)
      return Error{ErrorCode::out_of_memory,
                   "the memory budget is spent; a path for a "
                   "file would let the store go on"};
    const auto location =
        append(it->first, store::Encoding::firn, servant.scratch.data(), bytes, lock);
    if (!location) return location.error();
    frame.location = *location;
    return std::monostate{};
  }
  // The values' own slot goes first when memory is short: they are safe in the scratch buffer.
  if (frame.pins == 0 && budget_ != 0 && used_bytes() + size > budget_) release_slot(frame);
  if (const Status room = make_room(size, lock); !room.ok()) return room;
  store::Pages encoded(static_cast<std::size_t>(size));
  if (!encoded) return no_memory();
  std::memcpy(encoded.data() + store::kHeadBytes, servant.scratch.data() + store::kHeadBytes,
              static_cast<std::size_t>(bytes));
  frame.encoded = std::move(encoded);
  frame.encoded_bytes = bytes;
  encoded_in_memory_ += size;
  note_memory();
  return std::monostate{};
}

void FrameStore::Implementation::run_store(Servant& servant, Frames::iterator it, Lock& lock) {
  Frame& frame = it->second;
  Status status = std::monostate{};
  if (!compresses()) {
    const auto location =
        append(it->first, store::Encoding::raw, frame.slot.data(), frame_bytes_, lock);
    if (location) {
      frame.location = *location;
    } else {
      status = location.error();
    }
  } else {
    lock.unlock();
    const auto start = Clock::now();
    Result<std::size_t> size = no_memory();
    if (servant.prepare(scratch_bytes_)) {
      const ArrayView values{
          frame.slot.data() + store::kHeadBytes, options_.type, options_.shape, {}};
      const std::span<std::uint8_t> room(servant.scratch.data() + store::kHeadBytes,
                                         servant.scratch.size() - store::kHeadBytes);
      size = servant.compressor.compress_into(values, options_.compression, room, one_thread());
    }
    const double taken = seconds_since(start);
    lock.lock();
    if (size) {
      stats_.compress_seconds += taken;
      ++stats_.frames_encoded;
      stats_.encoded_raw_bytes += frame_bytes_;
      stats_.encoded_bytes += *size;
      status = store_encoded(servant, it, *size, lock);
    } else {
      status = size.error();
    }
  }
  frame.dirty = false;
  --dirty_;
  if (!status.ok()) {
    Error error = status.error();
    error.message = "frame " + std::to_string(it->first) + " is lost: " + error.message;
    frame.lost = error;
    failures_.push_back(std::move(error));
    if (frame.pins == 0) release_slot(frame);
  }
}

void FrameStore::Implementation::run_load(Servant& servant, Frames::iterator it, Lock& lock) {
  Frame& frame = it->second;
  const std::optional<store::Location> location = frame.location;
  std::uint8_t* record = frame.slot.data();
  const MutableArrayView values{record + store::kHeadBytes, options_.type, options_.shape, {}};
  double reading = 0, decoding = 0;
  std::uint64_t bytes_read = 0;
  Status status = std::monostate{};
  lock.unlock();
  // The encoded bytes of a busy frame do not move.
  std::span<const std::uint8_t> stream(frame.encoded.data() + store::kHeadBytes,
                                       frame.encoded ? frame.encoded_bytes : 0);
  const bool raw = !frame.encoded && location->encoding == store::Encoding::raw;
  if (!frame.encoded) {
    const auto start = Clock::now();
    if (raw && location->payload_bytes != frame_bytes_) {
      status = Error{ErrorCode::corrupt, "frame " + std::to_string(it->first) +
                                             " has a size that is not that of the store's frames"};
    } else if (!raw && !servant.prepare(scratch_bytes_)) {
      status = no_memory();
    } else {
      std::uint8_t* to = raw ? record : servant.scratch.data();
      status = file_->read(it->first, *location, to);
      stream = {to + store::kHeadBytes, static_cast<std::size_t>(location->payload_bytes)};
      bytes_read = store::record_bytes(location->payload_bytes);
    }
    reading = seconds_since(start);
  }
  if (status.ok() && !raw) {
    const auto start = Clock::now();
    status = servant.decompressor.decompress(stream, values, one_thread());
    decoding = seconds_since(start);
  }
  lock.lock();
  stats_.read_seconds += reading;
  stats_.read_bytes += bytes_read;
  stats_.decompress_seconds += decoding;
  frame.age = ++clock_;
  if (status.ok()) {
    frame.ready = true;
  } else {
    frame.wanted = false;
    frame.unread = status.error();
    release_slot(frame);
  }
}

}  // namespace firn
