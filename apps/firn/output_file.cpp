#include "output_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "failure.hpp"
#include "input_files.hpp"
#include "interruption.hpp"

namespace firn_cli {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a rename must go so that a symbolic link keeps pointing at the data. A link to nothing
// yet, and any other path that does not resolve, is left as it is.
std::string resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr),
                                                             &std::free);
  return resolved ? resolved.get() : path;
}

// 0, or the error number.
int write_all(int descriptor, std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor, bytes.data(), std::min<std::size_t>(bytes.size(), kMostAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

// Fails with EEXIST when `to` exists, also when it came into being a moment ago.
int rename_without_replacing(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (link(from, to) == 0) {
    unlink(from);
    return 0;
  }
  if (errno == EEXIST) return errno;
  if (access(to, F_OK) == 0) return EEXIST;  // a file system with neither
  return rename(from, to) == 0 ? 0 : errno;
}

}  // namespace

OutputFile::OutputFile(std::string path, bool replace)
    : path_(std::move(path)), name_(path_), replace_(replace) {
  if (is_standard_output()) {
    name_ = "standard output";
    direct_ = true;
    descriptor_ = STDOUT_FILENO;
    if (isatty(descriptor_) != 0) {
      fail(ExitCode::usage,
           "standard output is a terminal, and the output is binary: redirect it, or name a file");
    }
    return;
  }
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_to_write(EISDIR);
    if (S_ISREG(status.st_mode)) {
      if (!replace_) {
        fail(ExitCode::output_exists, "{} exists; --force replaces it", name_);
      }
    } else {
      direct_ = true;
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor_ < 0) fail_to_write(errno);
    }
    path_ = resolve(path_);
  }
  if (direct_) return;
  const std::string directory = directory_of(path_);
  if (stat(directory.c_str(), &status) != 0) fail_to_write(errno);
  if (!S_ISDIR(status.st_mode)) fail_to_write(ENOTDIR);
  if (access(directory.c_str(), W_OK | X_OK) != 0) fail_to_write(errno);
}

OutputFile::~OutputFile() {
  unmap();
  if (!is_standard_output() && descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    set_unfinished_output("");
  }
}

bool OutputFile::is_standard_output() const { return path_ == kStandardStream; }

void OutputFile::fail_to_write(int error) const {
  fail(ExitCode::cannot_write, "cannot write {}: {}", name_, std::strerror(error));
}

void OutputFile::create_temporary() {
  // ".field.raw.5f3a9c01.part": hidden, in the same directory so that the rename is atomic. A name
  // near the file system's limit is shortened.
  const std::size_t slash = path_.rfind('/');
  const std::size_t base = slash == std::string::npos ? 0 : slash + 1;
  constexpr std::size_t kLongestStem = NAME_MAX - 16;
  temporary_ = fmt::format("{}.{}.{:08x}.part", path_.substr(0, base),
                           path_.substr(base, kLongestStem), std::random_device{}());
  set_unfinished_output(temporary_);  // first, so that no signal can come in between
  descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    set_unfinished_output("");
    fail_to_write(error);
  }
  // A file that replaces another keeps its mode.
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0) fchmod(descriptor_, status.st_mode & 0777);
}

std::span<std::uint8_t> OutputFile::map(std::uint64_t size_bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  int descriptor = -1;
  if (!direct_) {
    create_temporary();
    if (size_bytes > 0) {
      const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size_bytes));
      if (error != 0) fail_to_write(error);
    }
    flags = MAP_SHARED;
    descriptor = descriptor_;
  }
  if (size_bytes == 0) return {};
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED) {
    if (direct_) fail(ExitCode::out_of_memory, "{} needs {} bytes of memory", name_, size_bytes);
    fail_to_write(errno);
  }
  mapping_ = static_cast<std::uint8_t*>(memory);
  mapping_bytes_ = size_bytes;
  if (!direct_) set_unfinished_mapping(mapping_, mapping_bytes_);
  return {mapping_, mapping_bytes_};
}

void OutputFile::unmap() {
  if (mapping_ == nullptr) return;
  set_unfinished_mapping(nullptr, 0);
  munmap(mapping_, mapping_bytes_);
  mapping_ = nullptr;
}

void OutputFile::write(std::span<const std::uint8_t> bytes) {
  if (!direct_ && descriptor_ < 0) create_temporary();
  const int error = write_all(descriptor_, bytes);
  if (error != 0) fail_to_write(error);
}

int OutputFile::create_for_library() {
  if (direct_) fail(ExitCode::usage, "{} is no regular file, which this format needs", name_);
  create_temporary();
  return descriptor_;
}

void OutputFile::commit() {
  if (direct_) {
    const int error = mapping_ == nullptr ? 0 : write_all(descriptor_, {mapping_, mapping_bytes_});
    if (error != 0) fail_to_write(error);
    unmap();
    return;
  }
  unmap();
  if (fsync(descriptor_) != 0) fail_to_write(errno);
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_to_write(errno);

  if (replace_) {
    if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(errno);
  } else {
    const int error = rename_without_replacing(temporary_.c_str(), path_.c_str());
    if (error == EEXIST) {
      fail(ExitCode::output_exists, "{} appeared while it was being made; --force replaces it",
           name_);
    }
    if (error != 0) fail_to_write(error);
  }
  temporary_.clear();
  set_unfinished_output("");

  // The rename itself is durable once the directory is. The data are safe either way, so a file
  // system that cannot sync a directory is no failure.
  const int directory = open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

std::string OutputFile::keep(std::uint64_t size_bytes) {
  // A commit() that failed has closed it.
  if (direct_ || temporary_.empty()) return "";
  if (truncate(temporary_.c_str(), static_cast<off_t>(size_bytes)) != 0) return "";
  if (descriptor_ >= 0) {
    try {
      commit();
      return name_;
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::output_exists) return "";
    }
  }
  for (int number = 1;; ++number) {
    const std::string other = fmt::format("{}.{}", path_, number);
    const int error = rename_without_replacing(temporary_.c_str(), other.c_str());
    if (error == EEXIST) continue;
    if (error != 0) return "";
    temporary_.clear();
    set_unfinished_output("");
    return other;
  }
}

}  // namespace firn_cli
