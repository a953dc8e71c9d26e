// firn verify ORIGINAL STREAM
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"

namespace firn_cli {
namespace {

// "[12, 0, 7]", slowest first.
std::string index_text(std::uint64_t linear, const firn::Shape& shape) {
  std::vector<std::uint64_t> index(static_cast<std::size_t>(shape.rank));
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = linear % shape.extents[axis];
    linear /= shape.extents[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// The largest error in the bound's own terms.
double error_of(const firn::Info& info, const firn::Comparison& comparison) {
  return info.bound.kind == firn::BoundKind::pwrel ? comparison.max_pwrel_error
                                                   : comparison.max_abs_error;
}

struct VerifyCommand {
  ThreadOption threads;
  bool json = false;
  std::string original_path;
  std::string stream_path;

  void run() const {
    if (original_path == kStandardStream && stream_path == kStandardStream) {
      fail(ExitCode::usage, "only one of ORIGINAL and STREAM can be standard input");
    }
    const std::string stream_name = input_name(stream_path);
    const InputBytes stream = InputBytes::open(stream_path);
    const firn::Info info = value_or_fail(firn::inspect(stream.bytes()), stream_name);
    const Field original =
        open_field(original_path, {info.type, info.shape, FieldRequest::Source::stream});

    firn::Comparison comparison;
    {
      ProgressBar bar("verifying");
      comparison = value_or_fail(
          firn::verify(original.view, stream.bytes(), {threads.threads(), bar.callback()}),
          stream_name);
    }
    report(original, info, comparison);
    if (comparison.violations > 0) {
      fail(ExitCode::bound_exceeded,
           "{}: {} of {} values are out of bound {}{} (first at {} of {}, max error {})",
           stream_name, comparison.violations, comparison.count, describe_bound(info),
           info.part_count > 1 ? ", the largest of its parts, or out of their own part's" : "",
           index_text(comparison.first_violation, info.shape), original.name,
           format_number(error_of(info, comparison)));
    }
  }

 private:
  void report(const Field& original, const firn::Info& info,
              const firn::Comparison& comparison) const {
    if (json) {
      Report report;
      report.original_bytes = info.original_bytes;
      report.compressed_bytes = info.compressed_bytes;
      report.set_bound(info, comparison.max_abs_error, comparison.max_pwrel_error);
      report.psnr_db = comparison.psnr_db;
      nlohmann::ordered_json object = to_json(report);
      add_array(object, info.type, info.shape);
      object["within_bound"] = comparison.violations == 0;
      object["violations"] = comparison.violations;
      object["values"] = comparison.count;
      object["special_values"] = comparison.exact_count;
      object["value_range"] = comparison.value_range;
      print_json(object);
    } else if (comparison.violations == 0) {
      const bool lossless = enforced_bound(info) == 0;
      fmt::print("{}: all {} values {}", original.name, comparison.count,
                 lossless ? "are as they were, bit for bit"
                          : fmt::format("are within the bound {}", describe_bound(info)));
      if (!lossless) {
        fmt::print("; max error {} ({:.4f} of it)", format_number(error_of(info, comparison)),
                   error_of(info, comparison) / enforced_bound(info));
        if (std::isfinite(comparison.psnr_db)) fmt::print(", PSNR {:.1f} dB", comparison.psnr_db);
      }
      if (comparison.exact_count > 0) {
        fmt::print("; {} NaN, infinite and fill values are exact", comparison.exact_count);
      }
      fmt::print("\n");
    }
  }
};

}  // namespace

void add_verify_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "verify",
      "Compare a stream with the original; exit 0 only if every value is within the bound");
  const auto state = std::make_shared<VerifyCommand>();
  command
      ->add_option("ORIGINAL", state->original_path,
                   "The field that was compressed: raw, .npy, or - for standard input")
      ->required()
      ->type_name("");
  command->add_option("STREAM", state->stream_path, "The stream, or - for standard input")
      ->required()
      ->type_name("");
  state->threads.add_to(*command);
  command->add_flag("--json", state->json, "Report as JSON");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
