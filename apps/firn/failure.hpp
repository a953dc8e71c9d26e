// How a command ends early: it throws a Failure, and main() prints its message as one line on
// stderr and exits with its code. Destructors on the way remove what is unfinished.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include "exit_codes.hpp"
#include "firn/firn.hpp"

namespace firn_cli {

class Failure : public std::exception {
 public:
  Failure(ExitCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ExitCode code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
};

template <class... Arguments>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  throw Failure(code, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The value of a library call, or its error as a Failure that names what it was about.
template <class T>
T value_or_fail(firn::Result<T> result, const std::string& subject) {
  if (!result.ok()) {
    fail(static_cast<ExitCode>(result.error().code), "{}: {}", subject, result.error().message);
  }
  return std::move(result).value();
}

}  // namespace firn_cli
