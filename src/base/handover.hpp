// Order between threads that TBB makes but ThreadSanitizer cannot see, since Debian's TBB is not
// instrumented: what happened before publish() happened before whatever follows observe(). Nothing
// at all in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define FIRN_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIRN_THREAD_SANITIZER 1
#endif
#endif

#ifdef FIRN_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace firn {

class Handover {
 public:
#ifdef FIRN_THREAD_SANITIZER
  void publish() { __tsan_release(&token_); }
  void observe() { __tsan_acquire(&token_); }

 private:
  char token_ = 0;
#else
  void publish() {}
  void observe() {}
#endif
};

// Something that one thread at a time uses.
class Turn {
 public:
  explicit Turn(Handover& handover) : handover_(handover) { handover_.observe(); }
  ~Turn() { handover_.publish(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Handover& handover_;
};

}  // namespace firn
