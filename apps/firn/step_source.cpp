#include "step_source.hpp"

#include <algorithm>
#include <cstring>

#include "failure.hpp"
#include "field_description.hpp"

namespace firn_cli {

StepSource::StepSource(InputPipe& pipe, firn::Type type, const firn::Shape& step)
    : pipe_(pipe),
      type_(type),
      step_(step),
      step_bytes_(static_cast<std::size_t>(array_bytes_or_fail(type, step))) {
  constexpr std::size_t kLeastRoom = 65536;
  if (step_bytes_ == 0) fail(ExitCode::usage, "a step of {} has no values", to_text(step));
  bytes_.resize(step_bytes_ * (1 + kLeastRoom / step_bytes_));
}

firn::ArrayView StepSource::next(std::uint64_t most) {
  size_ -= used_;
  std::memmove(bytes_.data(), bytes_.data() + used_, size_);
  while (size_ < step_bytes_) {
    const std::size_t count = pipe_.read(std::span(bytes_).subspan(size_));
    if (count == 0) break;
    size_ += count;
  }
  firn::ArrayView steps{bytes_.data(), type_, step_, {}};
  steps.shape.extents[0] = std::min<std::uint64_t>(most, size_ / step_bytes_);
  used_ = static_cast<std::size_t>(steps.shape.extents[0]) * step_bytes_;
  return steps;
}

}  // namespace firn_cli
