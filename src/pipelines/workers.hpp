// The parallel loops of the library: over chunks in any order, and over chunks whose results are
// taken in order. One thread runs in the caller's, without TBB and without allocating.
#pragma once

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>
#if defined(__SANITIZE_THREAD__)
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#endif

#include "base/handover.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

class Workers {
 public:
  static int all_cores() { return tbb::info::default_concurrency(); }

  // 0: all cores, and never more: TBB complains aloud about threads that it cannot have.
  explicit Workers(int threads)
      : threads_(threads > 0 ? std::min(threads, all_cores()) : all_cores()),
        workspaces_(static_cast<std::size_t>(threads_)),
        handovers_(static_cast<std::size_t>(threads_)) {}

  int threads() const { return threads_; }
  // Chunks whose encoded bytes may wait to be written, at most.
  std::size_t slots() const { return 2 * static_cast<std::size_t>(threads_); }

  Workspace& workspace(int thread) {
    auto& workspace = workspaces_[static_cast<std::size_t>(thread)];
    if (!workspace) workspace = std::make_unique<Workspace>(thread);
    return *workspace;
  }

  // work(number, workspace) for numbers [0, count), stopping early once it returns false.
  template <class Work>
  void for_each(std::uint64_t count, Work work) {
    if (threads_ == 1 || count <= 1) {
      for (std::uint64_t i = 0; i < count; ++i) {
        if (!work(i, workspace(0))) return;
      }
      return;
    }
#if defined(__SANITIZE_THREAD__)
    return visible_for_each(count, work);
#endif
    std::atomic<bool> stop{false};
    Handover begun, ended;
    begun.publish();
    arena().execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, count, 1),
                        [&](const tbb::blocked_range<std::uint64_t>& range) {
                          begun.observe();
                          for (std::uint64_t i = range.begin(); i < range.end(); ++i) {
                            if (stop.load(std::memory_order_relaxed)) break;
                            if (!with_workspace([&](Workspace& mine) { return work(i, mine); })) {
                              stop.store(true, std::memory_order_relaxed);
                            }
                          }
                          ended.publish();
                        });
    });
    ended.observe();
  }

  // make(number, slot, workspace) in parallel, then take(number, slot) in order of the numbers;
  // a slot is free again when its number has been taken. take stops the loop by returning false.
  template <class Make, class Take>
  void ordered(std::uint64_t count, Make make, Take take) {
#if defined(__SANITIZE_THREAD__)
    return visible_ordered(count, make, take);
#endif
    std::uint64_t next = 0;
    std::atomic<bool> stop{false};
    const std::size_t slot_count = slots();
    Handover begun, numbered, made, taken;
    begun.publish();
    const auto number_next = [&](tbb::flow_control& control) -> std::uint64_t {
      begun.observe();
      const Turn turn(numbered);
      if (next == count || stop.load(std::memory_order_relaxed)) {
        control.stop();
        return 0;
      }
      return next++;
    };
    const auto make_one = [&](std::uint64_t number) {
      begun.observe();
      taken.observe();
      if (!stop.load(std::memory_order_relaxed)) {
        with_workspace([&](Workspace& mine) {
          make(number, static_cast<std::size_t>(number % slot_count), mine);
          return true;
        });
      }
      made.publish();
      return number;
    };
    const auto take_one = [&](std::uint64_t number) {
      made.observe();
      const Turn turn(taken);
      if (stop.load(std::memory_order_relaxed)) return;
      if (!take(number, static_cast<std::size_t>(number % slot_count))) {
        stop.store(true, std::memory_order_relaxed);
      }
    };
    arena().execute([&] {
      tbb::parallel_pipeline(
          slot_count,
          tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order, number_next) &
              tbb::make_filter<std::uint64_t, std::uint64_t>(tbb::filter_mode::parallel, make_one) &
              tbb::make_filter<std::uint64_t, void>(tbb::filter_mode::serial_in_order, take_one));
    });
    taken.observe();
  }

 private:
#if defined(__SANITIZE_THREAD__)
  // The same loops on plain threads: ThreadSanitizer does not see how TBB's library synchronises,
  // and would take all that goes through it for races.
  template <class Body>
  void on_all_threads(Body body) {
    std::exception_ptr thrown;
    std::mutex mutex;
    const auto guarded = [&](int thread) {
      try {
        body(thread);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        thrown = std::current_exception();
      }
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads_; ++thread) others.emplace_back(guarded, thread);
    guarded(0);
    for (std::thread& other : others) other.join();
    if (thrown) std::rethrow_exception(thrown);
  }

  template <class Work>
  void visible_for_each(std::uint64_t count, Work& work) {
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    on_all_threads([&](int thread) {
      for (std::uint64_t i; !stop && (i = next++) < count;) {
        if (!work(i, workspace(thread))) stop = true;
      }
    });
  }

  template <class Make, class Take>
  void visible_ordered(std::uint64_t count, Make& make, Take& take) {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t next = 0, taken = 0;
    bool stop = false;
    on_all_threads([&](int thread) {
      std::unique_lock<std::mutex> lock(mutex);
      try {
        while (!stop && next < count) {
          const std::uint64_t number = next++;
          const auto slot = static_cast<std::size_t>(number % slots());
          changed.wait(lock, [&] { return stop || number < taken + slots(); });
          if (stop) break;
          lock.unlock();
          make(number, slot, workspace(thread));
          lock.lock();
          changed.wait(lock, [&] { return stop || taken == number; });
          if (stop) break;
          if (!take(number, slot)) stop = true;
          ++taken;
          changed.notify_all();
        }
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        stop = true;
        changed.notify_all();
        throw;
      }
      changed.notify_all();
    });
  }
#endif

  // body(workspace) with the workspace of the thread that runs it.
  template <class Body>
  bool with_workspace(Body body) {
    const int thread = tbb::this_task_arena::current_thread_index();
    const Turn turn(handovers_[static_cast<std::size_t>(thread)]);
    return body(workspace(thread));
  }

  tbb::task_arena& arena() {
    if (!arena_) arena_ = std::make_unique<tbb::task_arena>(threads_);
    return *arena_;
  }

  int threads_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<Handover> handovers_;  // of the workspaces
  std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace firn::pipelines
