// firn h5 compress INPUT OUTPUT
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <memory>

#include "failure.hpp"
#include "h5_commands.hpp"
#include "h5_file_copy.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "table.hpp"

namespace firn_cli {
namespace {

std::string bound_text(const firn::Bound& bound) {
  if (bound.kind == firn::BoundKind::lossless) return "lossless";
  return fmt::format("{} {:.4g}", firn::name_of(bound.kind), bound.value);
}

// The bound that was asked for and the one number that it became.
std::string bound_text(const DatasetOutcome& outcome) {
  const firn::Bound& asked = outcome.treatment.bound;
  const bool became_another = outcome.result && outcome.result->bound.kind != asked.kind;
  return became_another
             ? fmt::format("{} = {}", bound_text(asked), bound_text(outcome.result->bound))
             : bound_text(asked);
}

std::string extents_text(const std::vector<std::uint64_t>& extents) {
  return extents.empty() ? "scalar" : fmt::format("{}", fmt::join(extents, "x"));
}

std::string reason_of(const DatasetOutcome& outcome) {
  std::string reason = outcome.treatment.reason;
  if (outcome.result && !outcome.result->remark.empty()) {
    reason += (reason.empty() ? "" : "; ") + outcome.result->remark;
  }
  return reason;
}

// In the bound's own terms: absolute, or for pwrel relative to each value.
double largest_error(const CompressedDataset& result) {
  return result.bound.kind == firn::BoundKind::pwrel ? result.written.max_pwrel_error
                                                     : result.written.max_abs_error;
}

double ratio_of(const DatasetOutcome& outcome) {
  const std::uint64_t bytes =
      outcome.result ? outcome.result->written.compressed_bytes : outcome.treatment.stored_bytes;
  return bytes == 0
             ? 0
             : static_cast<double>(outcome.treatment.original_bytes) / static_cast<double>(bytes);
}

struct H5CompressCommand {
  CLI::App* command = nullptr;
  BoundOptions bound;
  std::string rules_path;
  ThreadOption threads;
  bool dry_run = false;
  bool force = false;
  bool json = false;
  std::string input;
  std::string output;

  void run() const {
    const firn::hdf5::QuietErrors quiet;
    CompressionRequest request;
    if (!rules_path.empty()) request.rules = DatasetRules::read(rules_path);
    request.bound = bound.bound_or_none();
    request.preset = bound.preset();
    if (!request.bound && rules_path.empty()) {
      fail(ExitCode::usage,
           "how exact? give --abs E, --rel E, --pwrel E, --psnr DB, --lossless or --rules FILE");
    }
    if (output.empty() && !dry_run) fail(ExitCode::usage, "OUTPUT is required, or --dry-run");
    value_or_fail(firn::hdf5::register_filter(), "HDF5");

    std::unique_ptr<OutputFile> file;
    if (!dry_run) file = std::make_unique<OutputFile>(output, force);
    H5FileCopy copy(input, request);
    std::uint64_t input_bytes = file_bytes(input);
    std::uint64_t output_bytes = 0;
    if (!dry_run) {
      {
        ProgressBar bar("compressing");
        const auto draw = bar.callback();
        copy.write(*file, threads.threads(), [&](std::uint64_t done, std::uint64_t total) {
          if (draw) draw(done, total);
        });
      }
      file->commit();
      output_bytes = file_bytes(output);
    }
    if (json) {
      print_as_json(copy, input_bytes, output_bytes);
    } else {
      print_as_text(copy, input_bytes, output_bytes);
    }
    warn_of_unused_rules(request.rules, copy);
    for (const DatasetOutcome& outcome : copy.datasets()) {
      if (!outcome.result || outcome.result->forgotten_fill.empty()) continue;
      fmt::print(stderr, "firn: {}: {}\n", outcome.path, outcome.result->forgotten_fill);
    }
  }

 private:
  static std::uint64_t file_bytes(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

  void print_as_text(const H5FileCopy& copy, std::uint64_t input_bytes,
                     std::uint64_t output_bytes) const {
    Table table({"dataset", "done", "bound", "dims", "chunk", "bytes", "ratio", "max error"}, 5);
    for (const DatasetOutcome& outcome : copy.datasets()) {
      const Treatment& treatment = outcome.treatment;
      std::string done = treatment.compress ? "firn" : "copied";
      const std::string reason = reason_of(outcome);
      if (!reason.empty()) done += fmt::format(" ({})", reason);
      table.add_row({outcome.path, done, treatment.compress ? bound_text(outcome) : "",
                     extents_text(treatment.extents),
                     treatment.compress ? extents_text(treatment.chunk) : "",
                     std::to_string(treatment.original_bytes),
                     outcome.result ? fmt::format("{:.2f}", ratio_of(outcome)) : "",
                     outcome.result ? format_number(largest_error(*outcome.result)) : ""});
    }
    fmt::print("{}", table.to_text());
    if (dry_run) {
      fmt::print("A dry run: nothing was written.\n");
    } else {
      fmt::print("{}: {} -> {}: {}, ratio {:.2f}\n", input, format_bytes(input_bytes), output,
                 format_bytes(output_bytes),
                 static_cast<double>(input_bytes) / static_cast<double>(output_bytes));
    }
  }

  void print_as_json(const H5FileCopy& copy, std::uint64_t input_bytes,
                     std::uint64_t output_bytes) const {
    nlohmann::ordered_json object;
    object["input"] = input;
    object["output"] = dry_run ? nlohmann::ordered_json() : nlohmann::ordered_json(output);
    object["dry_run"] = dry_run;
    object["input_bytes"] = input_bytes;
    object["output_bytes"] =
        dry_run ? nlohmann::ordered_json() : nlohmann::ordered_json(output_bytes);
    auto datasets = nlohmann::ordered_json::array();
    for (const DatasetOutcome& outcome : copy.datasets()) {
      const Treatment& treatment = outcome.treatment;
      nlohmann::ordered_json entry;
      entry["path"] = outcome.path;
      entry["action"] = treatment.compress ? "compress" : "copy";
      entry["reason"] = reason_of(outcome);
      entry["dims"] = treatment.extents;
      entry["original_bytes"] = treatment.original_bytes;
      entry["stored_bytes_before"] = treatment.stored_bytes;
      if (treatment.compress) {
        entry["type"] = firn::name_of(treatment.type);
        entry["chunk"] = treatment.chunk;
        entry["preset"] = firn::name_of(treatment.preset);
        entry["bound"] = {{"kind", firn::name_of(treatment.bound.kind)},
                          {"value", treatment.bound.value}};
      }
      if (outcome.result) {
        entry["compressed_bytes"] = outcome.result->written.compressed_bytes;
        entry["ratio"] = ratio_of(outcome);
        const bool of_each_value = outcome.result->bound.kind == firn::BoundKind::pwrel;
        entry[of_each_value ? "bound_pwrel" : "bound_abs"] = outcome.result->bound.value;
        entry[of_each_value ? "max_pwrel_error" : "max_abs_error"] = largest_error(*outcome.result);
        entry["compress_mb_s"] =
            megabytes_per_second(treatment.original_bytes, outcome.result->seconds);
      }
      datasets.push_back(std::move(entry));
    }
    object["datasets"] = std::move(datasets);
    print_json(object);
  }

  // Most likely a misspelt name.
  void warn_of_unused_rules(const DatasetRules& rules, const H5FileCopy& copy) const {
    for (const DatasetRule& rule : rules.all()) {
      bool used = false;
      for (const DatasetOutcome& outcome : copy.datasets()) {
        used = used || rules.find(outcome.path) == &rule;
      }
      if (!used) {
        fmt::print(stderr, "firn: {}, line {}: no dataset for the pattern '{}'\n", rules_path,
                   rule.line, rule.pattern);
      }
    }
  }
};

}  // namespace

void add_h5_compress_command(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand(
      "compress", "Copy an HDF5 or netCDF-4 file, its floating-point datasets through Firn");
  const auto state = std::make_shared<H5CompressCommand>();
  command->add_option("INPUT", state->input, "An HDF5 or netCDF-4 file")->required()->type_name("");
  command->add_option("OUTPUT", state->output, "The copy; not needed with --dry-run")
      ->type_name("");
  state->bound.add_to(*command, "Every value within E times its dataset's value range");
  command
      ->add_option("--rules", state->rules_path,
                   "A file of lines PATTERN BOUND, e.g. '/ocean/*  rel 1e-4' or 'lat* skip';\n"
                   "the first that matches a dataset decides, before the options above")
      ->type_name("FILE");
  state->threads.add_to(*command);
  command->add_flag("--dry-run", state->dry_run, "Say what would be done; write nothing");
  command->add_flag("--force", state->force, "Replace OUTPUT when it exists");
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer(
      "Groups, attributes, links, dimension scales and all other datasets stay as they are.\n"
      "Dimension scales (coordinates) are compressed losslessly unless a rule names them. To read\n"
      "the copy, programs need the Firn plugin: see docs/hdf5-and-netcdf.md.");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
