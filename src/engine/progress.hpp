// Reports progress to the caller from whichever thread finishes work, one at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <firn/firn.hpp>
#include <mutex>

namespace firn::engine {

class Progress {
 public:
  Progress(const Execution& execution, std::uint64_t total_bytes)
      : callback_(execution.progress ? &execution.progress : nullptr), total_(total_bytes) {}

  // False once the caller has asked to stop.
  bool add(std::uint64_t bytes) {
    if (callback_ == nullptr) return true;
    // Some work may be done twice.
    const std::uint64_t done = std::min(done_.fetch_add(bytes) + bytes, total_);
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && !(*callback_)(done, total_)) cancelled_ = true;
    return !cancelled_;
  }
  bool cancelled() const { return cancelled_; }
  static Error error() { return {ErrorCode::cancelled, "cancelled by the caller"}; }

 private:
  const std::function<bool(std::uint64_t, std::uint64_t)>* callback_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
};

}  // namespace firn::engine
