// Writes or reads a dataset through direct_chunks.hpp, for the tests and bench/hdf5_speed.py:
//
//   direct_chunks_program write|read FILE DATASET VALUES THREADS [ORIGIN EXTENTS]
//
// VALUES is a raw file in this machine's byte order; ORIGIN and EXTENTS are comma lists. Prints
// seconds, seconds until the file was on the disk, seconds of processor time, original and
// compressed bytes, and the largest error. FILE's dataset exists already.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "firn/direct_chunks.hpp"

namespace {

using firn::hdf5::Box;

int complain(const std::string& message) {
  std::fprintf(stderr, "direct_chunks_program: %s\n", message.c_str());
  return 1;
}

std::vector<std::uint64_t> parse_list(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stoull(part));
  return numbers;
}

template <class T>
int run(bool write, hid_t dataset, const char* path, int threads, const Box* box,
        std::uint64_t count) {
  std::vector<T> values(count);
  const auto bytes = static_cast<std::streamsize>(count * sizeof(T));
  if (write &&
      !std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(values.data()), bytes)) {
    return complain(std::string("cannot read ") + path);
  }
  firn::Execution execution;
  execution.threads = threads;
  firn::hdf5::DirectWriteReport report;
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor_start = std::clock();
  if (write) {
    const auto written = firn::hdf5::write_chunks(dataset, values.data(), execution, box);
    if (!written) return complain(written.error().message);
    report = *written;
    if (H5Fflush(dataset, H5F_SCOPE_LOCAL) < 0) return complain("cannot flush");
  } else {
    const auto status = firn::hdf5::read_chunks(dataset, values.data(), execution, box);
    if (!status) return complain(status.error().message);
  }
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double seconds = elapsed();
  const double processor_seconds =
      static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
  if (write) {
    void* descriptor = nullptr;
    const hid_t file = H5Iget_file_id(dataset);
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor) < 0 ||
        fsync(*static_cast<int*>(descriptor)) != 0) {
      return complain("cannot sync");
    }
    H5Fclose(file);
  }
  const double synced_seconds = elapsed();
  if (!write && !std::ofstream(path, std::ios::binary)
                     .write(reinterpret_cast<const char*>(values.data()), bytes)) {
    return complain(std::string("cannot write ") + path);
  }
  std::printf("%.6f %.6f %.6f %llu %llu %.17g\n", seconds, synced_seconds, processor_seconds,
              static_cast<unsigned long long>(report.original_bytes),
              static_cast<unsigned long long>(report.compressed_bytes), report.max_abs_error);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) return complain("wrong number of arguments");
  const bool write = std::string(argv[1]) == "write";
  if (!firn::hdf5::register_filter()) return complain("cannot register the filter");
  const hid_t file = H5Fopen(argv[2], write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, argv[3], H5P_DEFAULT);
  if (dataset < 0) return complain(std::string("cannot open ") + argv[2]);
  const hid_t space = H5Dget_space(dataset);
  const hid_t type = H5Dget_type(dataset);
  auto count = static_cast<std::uint64_t>(H5Sget_simple_extent_npoints(space));
  Box box;
  if (argc == 8) {
    box = {parse_list(argv[6]), parse_list(argv[7])};
    count = 1;
    for (const std::uint64_t extent : box.extents) count *= extent;
  }
  const Box* chosen = argc == 8 ? &box : nullptr;
  const int threads = std::atoi(argv[5]);
  const int code = H5Tget_size(type) == 4
                       ? run<float>(write, dataset, argv[4], threads, chosen, count)
                       : run<double>(write, dataset, argv[4], threads, chosen, count);
  H5Tclose(type);
  H5Sclose(space);
  H5Dclose(dataset);
  if (H5Fclose(file) < 0) return complain("cannot close");
  return code;
}
