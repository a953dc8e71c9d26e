// What the benchmarks say when they are called wrongly, or asked how.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

// Says how the program is called, and what was wrong unless it was asked for, and ends it.
[[noreturn]] inline void exit_with_usage(const char* usage, const std::string& mistake = {}) {
  if (mistake.empty()) {
    std::printf("usage: %s\n", usage);
    std::exit(0);
  }
  std::fprintf(stderr, "%s\nusage: %s\n", mistake.c_str(), usage);
  std::exit(1);
}

// What is left when an argument is none of the program's options: the folder, or a mistake.
inline std::string folder_argument(const std::string& argument, const char* usage) {
  if (argument == "--help" || argument == "-h") exit_with_usage(usage);
  if (argument.starts_with('-')) exit_with_usage(usage, "there is no option " + argument);
  return argument;
}

// For programs that take a folder and `--rel` with bounds, which have defaults.
struct FolderAndBounds {
  std::string folder = "data";
  std::vector<double> bounds;
};
inline FolderAndBounds folder_and_bounds(int count, char** arguments, const char* usage) {
  FolderAndBounds result;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) != "--rel") {
      result.folder = folder_argument(arguments[i], usage);
      continue;
    }
    while (i + 1 < count && std::atof(arguments[i + 1]) > 0) {
      result.bounds.push_back(std::atof(arguments[++i]));
    }
  }
  if (result.bounds.empty()) result.bounds = {1e-2, 1e-3, 1e-4};
  return result;
}

// For programs that take no arguments.
inline void refuse_arguments(int count, char** arguments, const char* usage) {
  if (count < 2) return;
  if (!folder_argument(arguments[1], usage).empty())
    exit_with_usage(usage, "no arguments are taken");
}

}  // namespace bench
