// Page-aligned memory for records and frames, in huge pages where the kernel gives them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace firn::store {

class Pages {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;

  Pages() = default;
  // Empty when memory is short.
  explicit Pages(std::size_t size) {
    const bool huge = size >= 2 * kHugePage;
    void* memory = nullptr;
    if (posix_memalign(&memory, huge ? kHugePage : kPage, size) != 0) return;
    if (huge) madvise(memory, size, MADV_HUGEPAGE);  // a wish: nothing is lost when it fails
    data_ = static_cast<std::uint8_t*>(memory);
    size_ = size;
  }
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Pages() { std::free(data_); }

  explicit operator bool() const { return data_ != nullptr; }
  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace firn::store
