// The C++ side of python_overhead.py: reads commands, answers with the processor seconds of one
// call.
//
//     cpp_api_speed FILE COUNT PRESET REL
//
// FILE holds COUNT floats. "c" compresses as firn::compress does, "d" decompresses into memory
// allocated for it, "D" with a Decompressor and memory that are kept.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <firn/firn.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "usage.hpp"

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "cpp_api_speed FILE COUNT PRESET REL";
  if (argc > 1) bench::folder_argument(argv[1], kUsage);
  if (argc != 5) bench::exit_with_usage(kUsage, "four arguments are needed");
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  std::vector<float> values(count);
  std::FILE* file = std::fopen(argv[1], "rb");
  if (file == nullptr || std::fread(values.data(), sizeof(float), count, file) != count) {
    bench::exit_with_usage(kUsage, std::string(argv[1]) + " does not have so many floats");
  }
  std::fclose(file);

  firn::Options options;
  options.bound = firn::Bound::rel(std::strtod(argv[4], nullptr));
  options.preset = firn::parse_preset(argv[3]).value();
  firn::Execution execution;
  execution.threads = 1;
  const firn::Shape shape{64, 512, count / (64 * 512)};
  const firn::ArrayView view = firn::view(values.data(), shape);
  const firn::Buffer stream = firn::compress(view, options, execution).value();
  std::vector<float> out(count);
  firn::Decompressor decompressor;

  for (std::string command; std::cin >> command;) {
    const double start = processor_seconds();
    bool ok = false;
    if (command == "c") {
      ok = firn::compress(view, options, execution).ok();
    } else if (command == "d") {
      firn::Buffer fresh;
      ok = fresh.resize(count * sizeof(float)) &&
           firn::decompress(stream, {fresh.data(), view.type, shape, {}}, execution).ok();
    } else if (command == "D") {
      ok = decompressor.decompress(stream, firn::mutable_view(out.data(), shape), execution).ok();
    }
    const double seconds = processor_seconds() - start;
    if (!ok) return 1;
    std::cout << seconds << std::endl;
  }
  return 0;
}
