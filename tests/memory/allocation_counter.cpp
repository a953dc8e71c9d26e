// Takes the place of glibc's malloc and its kin by passing through to them.
#include "memory/allocation_counter.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>

#include "support/sanitizers.hpp"

namespace firn::test {
namespace {

std::atomic<std::size_t> calls{0};
std::atomic<std::ptrdiff_t> held{0};
std::atomic<std::ptrdiff_t> peak{0};

}  // namespace

bool counting_works() { return !FIRN_SANITIZED; }

void reset_allocations() {
  calls = 0;
  held = 0;
  peak = 0;
}

Allocations allocations() { return {calls, static_cast<std::size_t>(peak.load()), held}; }

#if !FIRN_SANITIZED
namespace {

void* taken(void* memory) {
  if (memory == nullptr) return memory;
  ++calls;
  const auto size = static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  const std::ptrdiff_t now = held += size;
  std::ptrdiff_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void given_back(void* memory) {
  if (memory != nullptr) held -= static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
}

}  // namespace
#endif

}  // namespace firn::test

#if !FIRN_SANITIZED
extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) { return firn::test::taken(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) {
  return firn::test::taken(__libc_calloc(count, size));
}
void* realloc(void* memory, std::size_t size) {
  firn::test::given_back(memory);
  return firn::test::taken(__libc_realloc(memory, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
  return firn::test::taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  firn::test::given_back(memory);
  __libc_free(memory);
}

}  // extern "C"
#endif
