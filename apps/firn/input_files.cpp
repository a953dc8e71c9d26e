#include "input_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "failure.hpp"
#include "field_description.hpp"
#include "interruption.hpp"
#include "npy.hpp"

namespace firn_cli {
namespace {

class FileDescriptor {
 public:
  FileDescriptor(int number, bool owned) : number_(number), owned_(owned) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (owned_) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
  bool owned_;
};

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, FreeMemory>;

[[noreturn]] void fail_to_read(const std::string& name) {
  fail(ExitCode::cannot_read, "cannot read {}: {}", name, std::strerror(errno));
}

void grow(Memory& memory, std::size_t size, const std::string& name) {
  void* grown = std::realloc(memory.get(), std::max<std::size_t>(size, 1));
  if (grown == nullptr) {
    fail(ExitCode::out_of_memory, "{} does not fit into memory ({} bytes so far)", name, size);
  }
  static_cast<void>(memory.release());
  memory.reset(static_cast<std::uint8_t*>(grown));
}

std::pair<Memory, std::size_t> read_all(int descriptor, const std::string& name,
                                        std::optional<std::uint64_t> limit) {
  const std::size_t most = limit ? *limit + 1 : SIZE_MAX / 2;
  std::size_t capacity = std::min<std::size_t>(most, std::size_t{1} << 16);
  Memory memory;
  grow(memory, capacity, name);
  std::size_t size = 0;
  while (size < most) {
    if (size == capacity) {
      capacity = std::min(most, capacity * 2);
      grow(memory, capacity, name);
    }
    const ssize_t count = read(descriptor, memory.get() + size, capacity - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_read(name);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  return {std::move(memory), size};
}

std::string source_text(const FieldRequest& request) {
  return request.source == FieldRequest::Source::stream ? "the stream has" : "the options say";
}

// The shape that is asked for, as it was typed.
std::string dims_text(const FieldRequest& request) {
  const std::string text = to_text(*request.shape);
  return request.any_steps ? "N" + text.substr(1) : text;
}

firn::Shape one_step_of(firn::Shape shape) {
  shape.extents[0] = 1;
  return shape;
}

// The shape under which a .npy file is taken.
firn::Shape settle_npy_shape(const std::string& name, const NpyHeader& header,
                             const FieldRequest& request) {
  firn::Shape shape;
  if (header.extents.size() > firn::kMaxRank) {
    if (!request.shape || request.source == FieldRequest::Source::stream) {
      fail(ExitCode::unsupported,
           "{} has {} dimensions and Firn takes at most {}: merge some with --dims, slowest first",
           name, header.extents.size(), firn::kMaxRank);
    }
    std::uint64_t count = 1;
    bool fits = !header.fortran_order;
    for (const std::uint64_t extent : header.extents) {
      fits = fits && !__builtin_mul_overflow(count, extent, &count);
    }
    shape = *request.shape;
    if (request.any_steps && shape.count() != 0) shape.extents[0] = count / shape.count();
    if (!fits || count != shape.count()) {
      fail(ExitCode::size_mismatch, "{} does not have as many values as --dims {} says", name,
           dims_text(request));
    }
    return shape;
  }
  shape.rank = static_cast<int>(header.extents.size());
  std::copy(header.extents.begin(), header.extents.end(), shape.extents.begin());
  if (shape.rank == 0) shape = {1};
  const bool fits =
      request.shape && (request.any_steps ? one_step_of(shape) : shape) == *request.shape;
  if (request.shape && !fits) {
    fail(ExitCode::size_mismatch, "{} says that its dims are {}, but {} {}{}", name, to_text(shape),
         source_text(request), dims_text(request),
         is_reverse_of(shape, *request.shape) ? ": that is the reverse, and dims are slowest first "
                                                "(zfp and SZ name the fastest first)"
                                              : "");
  }
  return shape;
}

Field open_npy(Field field, const FieldRequest& request) {
  const std::string& name = field.name;
  const NpyHeader header = parse_npy_header(name, field.storage.bytes());
  if (request.type && *request.type != header.type) {
    fail(ExitCode::size_mismatch, "{} says that its type is {}, but {} {}", name,
         firn::name_of(header.type), source_text(request), firn::name_of(*request.type));
  }
  const firn::Shape shape = settle_npy_shape(name, header, request);
  const std::span<const std::uint8_t> values = field.storage.bytes().subspan(header.data_offset);
  const std::uint64_t expected = array_bytes_or_fail(header.type, shape);
  if (values.size() != expected) {
    fail(ExitCode::size_mismatch, "{} has {} bytes of values, but its header says {} of {}: {}",
         name, values.size(), to_text(shape), firn::name_of(header.type), expected);
  }
  field.view = {values.data(), header.type, shape, {}};
  if (header.fortran_order && shape.rank > 1) {
    field.view.strides.emplace();
    std::int64_t stride = 1;
    for (int axis = 0; axis < shape.rank; ++axis) {
      (*field.view.strides)[axis] = stride;
      stride *= static_cast<std::int64_t>(std::max<std::uint64_t>(shape.extents[axis], 1));
    }
  }
  if (header.data_offset % firn::size_of(header.type) != 0) {
    InputBytes aligned = InputBytes::copy_of(values);
    field.view.data = aligned.bytes().data();
    field.storage = std::move(aligned);
  }
  return field;
}

}  // namespace

std::string input_name(const std::string& path) {
  return path == kStandardStream ? "standard input" : path;
}

void InputBytes::swap(InputBytes& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
}

InputBytes::InputBytes(InputBytes&& other) noexcept { swap(other); }

InputBytes& InputBytes::operator=(InputBytes&& other) noexcept {
  swap(other);
  return *this;
}

InputBytes::~InputBytes() {
  if (mapped_) {
    munmap(const_cast<std::uint8_t*>(data_), size_);
  } else {
    std::free(const_cast<std::uint8_t*>(data_));
  }
}

InputBytes InputBytes::open(const std::string& path, std::optional<std::uint64_t> limit) {
  const std::string name = input_name(path);
  const bool standard = path == kStandardStream;
  const FileDescriptor file(standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC),
                            !standard);
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) fail_to_read(name);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail_to_read(name);
  }

  InputBytes input;
  // A regular standard input may be positioned anywhere, so it is read, not mapped.
  if (S_ISREG(status.st_mode) && !standard) {
    input.size_ = static_cast<std::size_t>(status.st_size);
    if (input.size_ == 0) return input;
    void* memory = mmap(nullptr, input.size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (memory == MAP_FAILED) fail_to_read(name);
    input.data_ = static_cast<const std::uint8_t*>(memory);
    input.mapped_ = true;
  } else {
    auto [memory, size] = read_all(file.number(), name, limit);
    input.data_ = memory.release();
    input.size_ = size;
  }
  return input;
}

InputBytes InputBytes::rest_of(InputPipe& pipe, std::span<const std::uint8_t> head) {
  std::size_t capacity = std::max<std::size_t>(2 * head.size(), 1 << 16), size = head.size();
  Memory memory;
  grow(memory, capacity, pipe.name());
  if (!head.empty()) std::memcpy(memory.get(), head.data(), head.size());
  while (const std::size_t count = pipe.read({memory.get() + size, capacity - size})) {
    size += count;
    if (size == capacity) grow(memory, capacity *= 2, pipe.name());
  }
  InputBytes input;
  input.data_ = memory.release();
  input.size_ = size;
  return input;
}

InputBytes InputBytes::copy_of(std::span<const std::uint8_t> bytes) {
  Memory memory;
  grow(memory, bytes.size(), "the input");
  if (!bytes.empty()) std::memcpy(memory.get(), bytes.data(), bytes.size());
  InputBytes input;
  input.data_ = memory.release();
  input.size_ = bytes.size();
  return input;
}

InputPipe::InputPipe(const std::string& path)
    : name_(input_name(path)),
      // A named pipe's writer is waited for in read().
      descriptor_(path == kStandardStream
                      ? STDIN_FILENO
                      : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0) fail_to_read(name_);
}

InputPipe::~InputPipe() {
  if (descriptor_ > STDIN_FILENO) close(descriptor_);
}

std::size_t InputPipe::read(std::span<std::uint8_t> into) {
  while (wait_for_input(descriptor_)) {
    const ssize_t count = ::read(descriptor_, into.data(), into.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) fail_to_read(name_);
  }
  return 0;
}

bool has_npy_name(const std::string& path) { return path.ends_with(".npy"); }

void refuse_npy(const std::string& name, std::span<const std::uint8_t> bytes) {
  if (!has_npy_magic(bytes)) return;
  fail(ExitCode::usage,
       "{} is a .npy file, which says its type and dims itself: leave out --type and --dims", name);
}

bool is_pipe(const std::string& path) {
  struct stat status {};
  return path == kStandardStream ||
         (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

// Files that are mistaken for values.
static void refuse_containers(const std::string& name, std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kHdf5[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  if (bytes.size() >= sizeof kHdf5 && std::equal(kHdf5, std::end(kHdf5), bytes.begin())) {
    fail(ExitCode::usage,
         "{} is an HDF5 or netCDF-4 file: its datasets are compressed by 'firn h5 compress'", name);
  }
  if (firn::inspect(bytes)) {
    fail(ExitCode::usage, "{} is a Firn stream already: 'firn decompress' gives its values", name);
  }
}

Field open_field(const std::string& path, const FieldRequest& request) {
  const NameHints hints = hints_from_name(path);
  const std::optional<firn::Type> type = request.type ? request.type : hints.type;
  std::optional<firn::Shape> shape = request.shape ? request.shape : hints.shape;

  // Options that describe standard input completely also say how much of it to read.
  const bool by_options =
      type && shape && !has_npy_name(path) && request.source == FieldRequest::Source::options;
  std::optional<std::uint64_t> limit;
  if (by_options && !request.any_steps) limit = array_bytes_or_fail(*type, *shape);

  Field field{input_name(path), InputBytes::open(path, limit), {}};
  const std::span<const std::uint8_t> bytes = field.storage.bytes();
  const bool unnamed = path == kStandardStream && !by_options;
  if (path == kStandardStream && by_options) refuse_npy(field.name, bytes);
  if (has_npy_name(path) || (unnamed && has_npy_magic(bytes))) {
    return open_npy(std::move(field), request);
  }

  refuse_containers(field.name, bytes);
  if (!type) {
    fail(ExitCode::usage, "{}", describe_missing_type(field.name, bytes.size(), shape));
  }
  if (!shape) fail(ExitCode::usage, "{}", describe_missing_dims(field.name, bytes.size(), *type));
  if (request.any_steps) {
    const std::uint64_t step_bytes = array_bytes_or_fail(*type, *shape);
    if (step_bytes == 0 || bytes.empty() || bytes.size() % step_bytes != 0) {
      fail(ExitCode::size_mismatch, "{}",
           describe_broken_step(field.name, bytes.size(), *type, *shape));
    }
    shape->extents[0] = bytes.size() / step_bytes;
  }
  const std::uint64_t expected = array_bytes_or_fail(*type, *shape);
  if (bytes.size() != expected) {
    if (request.source == FieldRequest::Source::stream) {
      fail(ExitCode::size_mismatch, "{} has {} bytes, but the stream holds {} of {}: {} bytes",
           field.name, bytes.size(), to_text(*shape), firn::name_of(*type), expected);
    }
    const bool more = limit && !field.storage.is_mapped() && bytes.size() > *limit;
    fail(ExitCode::size_mismatch, "{}",
         describe_size_mismatch(field.name, more ? *limit : bytes.size(), more, *type, *shape,
                                hints));
  }
  if (request.source == FieldRequest::Source::options && request.shape && hints.shape &&
      !request.any_steps && is_reverse_of(*request.shape, *hints.shape)) {
    fmt::print(
        stderr,
        "firn: note: --dims {} is the reverse of the dims in the name of {}; dims are slowest "
        "first, zfp and SZ name the fastest first\n",
        to_text(*request.shape), field.name);
  }
  field.view = {bytes.data(), *type, *shape, {}};
  return field;
}

}  // namespace firn_cli
