// Python's buffers as the library's views, without copies.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <firn/firn.hpp>
#include <optional>
#include <span>

namespace firn_python {

// Holds a Python error that a translator turns into the matching exception of firn._errors.
struct Failure {
  firn::Error error;
};

template <class T>
T value_or_raise(firn::Result<T> result) {
  if (!result) throw Failure{result.error()};
  return std::move(*result);
}

// A buffer held for as long as this lives. Made and destroyed with the GIL, used without.
class HeldBuffer {
 public:
  HeldBuffer(nanobind::handle object, int flags);
  ~HeldBuffer() { PyBuffer_Release(&view_); }
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;

 protected:
  Py_buffer view_;
};

// Contiguous bytes: bytes, bytearray, memoryview, mmap, arrays.
class Bytes : public HeldBuffer {
 public:
  explicit Bytes(nanobind::handle object) : HeldBuffer(object, PyBUF_SIMPLE) {}
  std::span<const std::uint8_t> span() const {
    return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
};

// An array of native, aligned floats or doubles with any strides that are whole values; the
// Python side takes care that it is one.
class Array : public HeldBuffer {
 public:
  explicit Array(nanobind::handle object) : Array(object, PyBUF_STRIDES | PyBUF_FORMAT) {}
  firn::ArrayView view() const { return {view_.buf, type_, shape_, strides_}; }

 protected:
  Array(nanobind::handle object, int flags);

  firn::Type type_ = firn::Type::f32;
  firn::Shape shape_;
  std::optional<std::array<std::int64_t, firn::kMaxRank>> strides_;  // none: contiguous
};

class MutableArray : public Array {
 public:
  explicit MutableArray(nanobind::handle object)
      : Array(object, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) {}
  firn::MutableArrayView view() const { return {view_.buf, type_, shape_, strides_}; }
};

// Asks for large pages for large memory that will soon be written to, as numpy does for its arrays:
// the first touch of a small page costs more than compressing what fits on it.
void prefer_huge_pages(std::span<std::uint8_t> memory);

}  // namespace firn_python
