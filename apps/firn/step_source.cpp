#include "step_source.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "failure.hpp"
#include "field_description.hpp"
#include "numbers.hpp"

namespace firn_cli {

StepSource::StepSource(InputPipe& pipe, firn::Type type, const firn::Shape& step)
    : pipe_(pipe),
      type_(type),
      step_(step),
      step_bytes_(static_cast<std::size_t>(array_bytes_or_fail(type, step))) {
  constexpr std::size_t kLeastRoom = 65536;
  if (step_bytes_ == 0) fail(ExitCode::usage, "a step of {} has no values", to_text(step));
  room_ = step_bytes_ * (1 + kLeastRoom / step_bytes_);
  bytes_.reset(new (std::nothrow) std::uint8_t[room_]);
  if (bytes_ == nullptr) {
    fail(ExitCode::out_of_memory,
         "a step of {} values of {} takes {}, which do not fit into memory", to_text(step),
         firn::name_of(type), format_bytes(step_bytes_));
  }
}

firn::ArrayView StepSource::next(std::uint64_t most) {
  const bool first = size_ == 0 && used_ == 0;
  size_ -= used_;
  std::memmove(bytes_.get(), bytes_.get() + used_, size_);
  while (size_ < step_bytes_) {
    const std::size_t count = pipe_.read({bytes_.get() + size_, room_ - size_});
    if (count == 0) break;
    size_ += count;
  }
  if (first) refuse_npy(pipe_.name(), {bytes_.get(), size_});
  firn::ArrayView steps{bytes_.get(), type_, step_, {}};
  steps.shape.extents[0] = std::min<std::uint64_t>(most, size_ / step_bytes_);
  used_ = static_cast<std::size_t>(steps.shape.extents[0]) * step_bytes_;
  return steps;
}

}  // namespace firn_cli
