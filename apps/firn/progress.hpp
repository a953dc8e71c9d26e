// A progress bar on stderr, for people: only on a terminal, and only once the work has taken a
// second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace firn_cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();  // wipes the bar

  // For firn::Execution; must not outlive the bar. Empty when there is no terminal.
  std::function<bool(std::uint64_t, std::uint64_t)> callback();

 private:
  void draw(std::uint64_t done, std::uint64_t total);

  std::string label_;
  std::chrono::steady_clock::time_point work_start_;
  std::chrono::steady_clock::time_point last_drawn_;
  bool drawn_ = false;
};

}  // namespace firn_cli
