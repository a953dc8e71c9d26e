// The commands of the program, one file each. Each adds its options and its callback, which does
// the work and throws a Failure when it cannot.
#pragma once

#include <CLI/CLI.hpp>

namespace firn_cli {

void add_compress_command(CLI::App& program);
void add_decompress_command(CLI::App& program);
void add_info_command(CLI::App& program);
void add_verify_command(CLI::App& program);
void add_metrics_command(CLI::App& program);
void add_append_command(CLI::App& program);
void add_estimate_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_h5_command(CLI::App& program);

}  // namespace firn_cli
