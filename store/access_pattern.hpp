// Guesses which frames come next from those that were read: backward, forward or with a stride,
// counted in frames that exist, not in their numbers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

namespace firn::store {

class AccessPattern {
 public:
  // `frames` holds the frame that is read.
  template <class Value>
  void note(const std::map<std::uint64_t, Value>& frames, std::uint64_t number) {
    if (!begun_) {
      begun_ = true;
      stride_ = frames.size() > 1 && number == frames.begin()->first ? 1 : -1;
    } else if (const int seen = distance(frames, last_, number); seen != 0) {
      // One jump is no pattern; two of the same kind are.
      if (seen == candidate_) stride_ = seen;
      candidate_ = seen;
    }
    last_ = number;
  }

  // At most `count` frames, the next one first.
  template <class Value>
  std::vector<std::uint64_t> expected(const std::map<std::uint64_t, Value>& frames,
                                      int count) const {
    std::vector<std::uint64_t> next;
    auto here = frames.find(last_);
    if (!begun_ || here == frames.end()) return next;
    while (count-- > 0) {
      for (int step = std::abs(stride_); step > 0; --step) {
        if (stride_ > 0 ? std::next(here) == frames.end() : here == frames.begin()) return next;
        here = stride_ > 0 ? std::next(here) : std::prev(here);
      }
      next.push_back(here->first);
    }
    return next;
  }

 private:
  static constexpr int kLongestStride = 64;

  // In frames, with a sign; 0 when it is the same frame or too far.
  template <class Value>
  static int distance(const std::map<std::uint64_t, Value>& frames, std::uint64_t from,
                      std::uint64_t to) {
    const bool forward = to > from;
    auto here = frames.find(forward ? from : to);
    const std::uint64_t goal = forward ? to : from;
    for (int steps = 0; here != frames.end() && steps <= kLongestStride; ++steps, ++here) {
      if (here->first == goal) return forward ? steps : -steps;
    }
    return 0;
  }

  bool begun_ = false;
  std::uint64_t last_ = 0;
  int stride_ = -1;
  int candidate_ = 0;
};

}  // namespace firn::store
