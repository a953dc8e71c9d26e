// firn compress INPUT OUTPUT
#include <fmt/format.h>

#include <memory>

#include "commands.hpp"
#include "failure.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "stopwatch.hpp"

namespace firn_cli {
namespace {

struct CompressCommand {
  FieldOptions field;
  CompressionOptions compression;
  ThreadOption threads;
  bool force = false;
  bool json = false;
  std::string input;
  std::string output;

  void run() const {
    compression.options();  // mistakes in them come before a missing file
    OutputFile file(output, force);
    const Field original = open_field(input, field.request());
    const firn::Options options = compression.options({}, original.view.type);

    firn::Buffer stream;
    double seconds = 0;
    {
      ProgressBar bar("compressing");
      const Stopwatch stopwatch;
      stream =
          value_or_fail(firn::compress(original.view, options, {threads.threads(), bar.callback()}),
                        original.name);
      seconds = stopwatch.seconds();
    }
    const firn::Info info = value_or_fail(firn::inspect(stream), file.name());
    file.write(stream);
    file.commit();

    tell_missed_ratio(options, info.original_bytes, info.compressed_bytes);

    Report report;
    report.original_bytes = info.original_bytes;
    report.compressed_bytes = info.compressed_bytes;
    report.set_bound(info, info.max_abs_error, info.max_pwrel_error);
    report.compress_mb_s = megabytes_per_second(info.original_bytes, seconds);
    if (json) {
      nlohmann::ordered_json object = to_json(report);
      add_array(object, info.type, info.shape);
      object["preset"] = firn::name_of(options.preset);
      print_json(object, file.is_standard_output());
    } else if (!file.is_standard_output()) {
      fmt::print("{}: {} -> {}, ratio {:.2f}, bound {}, max error {}, {:.0f} MB/s\n", original.name,
                 format_bytes(report.original_bytes), format_bytes(report.compressed_bytes),
                 report.ratio(), describe_bound(info), format_number(achieved_error(info)),
                 *report.compress_mb_s);
    }
  }
};

}  // namespace

void add_compress_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("compress", "Compress a field within an error bound");
  const auto state = std::make_shared<CompressCommand>();
  command
      ->add_option("INPUT", state->input,
                   "Raw little-endian values in row-major order, a .npy file, or -\n"
                   "for standard input")
      ->required()
      ->type_name("");
  command->add_option("OUTPUT", state->output, "The stream, or - for standard output")
      ->required()
      ->type_name("");
  state->field.add_to(*command);
  state->compression.add_to(*command);
  state->threads.add_to(*command);
  command->add_flag("--force", state->force, "Replace OUTPUT when it exists");
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer(
      "Example: firn compress --rel 1e-3 u_25x125x125.f32 u.firn\n"
      "Dims are slowest first: what zfp calls -3 125 125 25 is --dims 25x125x125.");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
