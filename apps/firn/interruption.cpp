#include "interruption.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace firn_cli {
namespace {

// Handlers read these from any thread at any moment.
std::atomic<const char*> unfinished_path{nullptr};
std::atomic<std::uintptr_t> mapping_start{0};
std::atomic<std::uintptr_t> mapping_end{0};

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kDeferredSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> input_ended{false};
int wakening[2] = {-1, -1};  // a pipe that wait_for_input() waits for as well, once there is one

void remove_unfinished_output() {
  if (const char* path = unfinished_path) unlink(path);
}

void end_by_signal(int number) {
  remove_unfinished_output();
  // SA_RESETHAND has restored the default, which ends the process once this handler returns.
  raise(number);
}

void end_input(int number) {
  if (input_ended.exchange(true)) {
    signal(number, SIG_DFL);
    return end_by_signal(number);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(wakening[1], "", 1);
  errno = error;
}

void end_by_bus_error(int, siginfo_t* information, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  if (address >= mapping_start && address < mapping_end) {
    end_unfinished(ExitCode::cannot_write,
                   "firn: the output cannot be written: the disk is full or failed\n");
  }
  end_unfinished(
      ExitCode::cannot_read,
      "firn: the input cannot be read: it shrank while it was in use, or the disk failed\n");
}

}  // namespace

void handle_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  for (const int number : kEndingSignals) sigaddset(&action.sa_mask, number);
  action.sa_handler = end_by_signal;
  action.sa_flags = SA_RESETHAND;
  for (const int number : kEndingSignals) {
    struct sigaction current {};
    sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays nohup
  }
  action.sa_sigaction = end_by_bus_error;
  action.sa_flags = SA_RESETHAND | SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
  signal(SIGXFSZ, SIG_IGN);
}

void defer_signals() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // then they end the process as usual
  for (int i = 0; i < 2; ++i) {
    // Standard input may be closed, and must not become this.
    wakening[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(ends[i]);
  }
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = end_input;
  for (const int number : kDeferredSignals) {
    struct sigaction current {};
    sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

bool wait_for_input(int descriptor) {
  pollfd waiting[] = {{descriptor, POLLIN, 0}, {wakening[0], POLLIN, 0}};
  while (!input_ended && poll(waiting, 2, -1) < 0 && errno == EINTR) {
  }
  return !input_ended;
}

bool interrupted() { return input_ended; }

void set_unfinished_output(const std::string& path) {
  static std::string storage;
  unfinished_path = nullptr;
  storage = path;
  if (!storage.empty()) unfinished_path = storage.c_str();
}

void end_unfinished(ExitCode code, std::string_view line) {
  remove_unfinished_output();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(static_cast<int>(code));
}

void set_unfinished_mapping(const void* data, std::size_t size_bytes) {
  mapping_start = reinterpret_cast<std::uintptr_t>(data);
  mapping_end = mapping_start + size_bytes;
}

}  // namespace firn_cli
