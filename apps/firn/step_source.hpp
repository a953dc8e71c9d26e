// The steps of a pipe, as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "firn/firn.hpp"
#include "input_files.hpp"

namespace firn_cli {

class StepSource {
 public:
  // `step` with an extent of 1 along the slowest axis: 1x500x400.
  StepSource(InputPipe& pipe, firn::Type type, const firn::Shape& step);

  // Waits for a whole step, and gives it and those that came with it, at most `most`. None: the
  // input has ended, perhaps within one.
  firn::ArrayView next(std::uint64_t most);

  firn::Type type() const { return type_; }
  const firn::Shape& step() const { return step_; }
  std::size_t step_bytes() const { return step_bytes_; }
  std::size_t rest_bytes() const { return size_ - used_; }  // that have not been given

 private:
  InputPipe& pipe_;
  firn::Type type_;
  firn::Shape step_;
  std::size_t step_bytes_;
  std::size_t room_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0, used_ = 0;
};

}  // namespace firn_cli
