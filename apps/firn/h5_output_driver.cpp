#include "h5_output_driver.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "failure.hpp"
#include "h5_objects.hpp"
#include "interruption.hpp"

namespace firn_cli {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
constexpr haddr_t kLastAddress = (haddr_t{1} << 63) - 1;

struct Target {
  OutputFile* file;
  int descriptor;
};

// HDF5 passes its first member around.
struct OpenTarget {
  H5FD_t base;
  Target target;
  haddr_t allocated;  // what HDF5 has given out
  haddr_t size;       // of the file
};

OpenTarget& target_of(H5FD_t* base) { return *reinterpret_cast<OpenTarget*>(base); }
const OpenTarget& target_of(const H5FD_t* base) {
  return *reinterpret_cast<const OpenTarget*>(base);
}

[[noreturn]] void end_unwritten(const OpenTarget& open) {
  try {
    open.target.file->fail_to_write(errno);
  } catch (const Failure& failure) {
    // Over a progress bar.
    const char* const bar = isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "";
    end_unfinished(failure.code(), fmt::format("{}firn: {}\n", bar, failure.what()));
  }
}

// HDF5 opens and closes twice, to find out whether it has the file open already.
H5FD_t* open_target(const char*, unsigned, hid_t access, haddr_t) {
  const auto* const target = static_cast<const Target*>(H5Pget_driver_info(access));
  auto* const open = target == nullptr ? nullptr : new (std::nothrow) OpenTarget{};
  if (open == nullptr) return nullptr;
  open->target = *target;
  return &open->base;
}

herr_t close_target(H5FD_t* base) {
  delete &target_of(base);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  // Those of HDF5's usual driver that decide how the file is laid out.
  if (flags != nullptr) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  }
  return 0;
}

herr_t read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* data) {
  auto* to = static_cast<std::uint8_t*>(data);
  while (size != 0) {
    const ssize_t count = pread(target_of(base).target.descriptor, to, std::min(size, kMostAtOnce),
                                static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    to += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<std::size_t>(count);
  }
  std::memset(to, 0, size);  // given out and not written yet
  return 0;
}

herr_t write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* data) {
  OpenTarget& open = target_of(base);
  const auto* from = static_cast<const std::uint8_t*>(data);
  while (size != 0) {
    const ssize_t count = pwrite(open.target.descriptor, from, std::min(size, kMostAtOnce),
                                 static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) end_unwritten(open);
    from += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<std::size_t>(count);
  }
  open.size = std::max(open.size, address);
  return 0;
}

herr_t truncate(H5FD_t* base, hid_t, hbool_t) {
  OpenTarget& open = target_of(base);
  if (open.size == open.allocated) return 0;
  if (ftruncate(open.target.descriptor, static_cast<off_t>(open.allocated)) != 0) {
    end_unwritten(open);
  }
  open.size = open.allocated;
  return 0;
}

H5FD_class_t make_driver() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 512;  // any that is not HDF5's own
#endif
  driver.name = "firn_output";
  driver.maxaddr = kLastAddress;
  driver.fc_degree = H5F_CLOSE_SEMI;
  driver.fapl_size = sizeof(Target);
  driver.open = open_target;
  driver.close = close_target;
  driver.query = query;
  driver.get_eoa = [](const H5FD_t* base, H5FD_mem_t) { return target_of(base).allocated; };
  driver.set_eoa = [](H5FD_t* base, H5FD_mem_t, haddr_t address) -> herr_t {
    target_of(base).allocated = address;
    return 0;
  };
  driver.get_eof = [](const H5FD_t* base, H5FD_mem_t) { return target_of(base).size; };
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  constexpr H5FD_mem_t kMap[] = H5FD_FLMAP_DICHOTOMY;  // metadata and values, as usual
  std::copy(std::begin(kMap), std::end(kMap), driver.fl_map);
  return driver;
}

}  // namespace

void write_through(hid_t access, OutputFile& file) {
  static const H5FD_class_t driver = make_driver();
  const Target target{&file, file.create_for_library()};
  const Handle registered =
      opened(H5FDregister(&driver), ExitCode::cannot_write, "HDF5's file driver");
  check(H5Pset_driver(access, registered, &target), ExitCode::cannot_write, file.name());
}

}  // namespace firn_cli
