// Owning HDF5 ids, and its error stack as text.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace firn::hdf5 {

// An id that is closed at the end of its scope. Negative: none.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  // One count of the id, whatever it names.
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }

  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // Closes now; false when HDF5 reports that something could not be written.
  bool close() { return H5Idec_ref(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
};

// While it lives, HDF5 prints nothing in this thread.
class QuietErrors {
 public:
  QuietErrors() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
  ~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// What the call that just failed in this thread said: the cause, and then what it led to.
std::string error_stack_text();

}  // namespace firn::hdf5
