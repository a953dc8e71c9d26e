// Working memory that is kept between chunks and calls, so that the steady state allocates
// nothing. A ScratchArray only grows; its contents are lost when it does.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace firn {

template <class T>
class ScratchArray {
 public:
  ScratchArray() = default;
  ScratchArray(ScratchArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ScratchArray& operator=(ScratchArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ScratchArray() { std::free(data_); }

  // At least `size` elements, 64-byte aligned, not initialised. Throws std::bad_alloc, which the
  // library's entry points turn into ErrorCode::out_of_memory.
  T* reserve(std::size_t size) {
    if (size > size_) {
      std::free(data_);
      data_ = nullptr;
      size_ = 0;
      const std::size_t bytes = (size * sizeof(T) + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      if (data_ == nullptr) throw std::bad_alloc();
      size_ = size;
    }
    return data_;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace firn
