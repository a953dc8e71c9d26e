#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace firn_cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kRedraw{100};

// Work begins with the process: reading a slow pipe counts.
const Clock::time_point kProcessStart = Clock::now();

}  // namespace

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), work_start_(Clock::now()), last_drawn_(work_start_ - kRedraw) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

std::function<bool(std::uint64_t, std::uint64_t)> ProgressBar::callback() {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [this](std::uint64_t done, std::uint64_t total) {
    draw(done, total);
    return true;
  };
}

void ProgressBar::draw(std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (now - kProcessStart < kPatience || now - last_drawn_ < kRedraw || total == 0) return;
  last_drawn_ = now;
  drawn_ = true;
  constexpr int kWidth = 30;
  const double fraction = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(fraction * kWidth);
  const double seconds = std::chrono::duration<double>(now - work_start_).count();
  std::string remaining;
  if (done > 0) {
    remaining = fmt::format(", {:.0f} s left", seconds / fraction - seconds);
  }
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3.0f} %{}\x1b[K", label_, "", filled, "",
             kWidth - filled, 100 * fraction, remaining);
  std::fflush(stderr);
}

}  // namespace firn_cli
