// firn estimate INPUT
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "forgotten_fill.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "table.hpp"

namespace firn_cli {
namespace {

struct EstimateCommand {
  FieldOptions field;
  CompressionOptions compression;
  ThreadOption threads;
  bool json = false;
  std::string input;

  void run() const {
    compression.options(firn::Bound{});  // mistakes in them come before a missing file
    const Field original = open_field(input, field.request());
    firn::Options options = compression.options(firn::Bound{}, original.view.type);
    // One bound when it is given, otherwise a ladder of them.
    std::vector<firn::Bound> bounds{options.bound};
    if (!compression.has_bound()) {
      bounds.clear();
      for (const double rel : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6}) {
        bounds.push_back(firn::Bound::rel(rel));
      }
    }
    std::vector<firn::Estimate> estimates;
    for (const firn::Bound& bound : bounds) {
      options.bound = bound;
      estimates.push_back(value_or_fail(
          firn::estimate(original.view, options, {threads.threads(), {}}), original.name));
    }
    options.bound = estimates[0].bound;
    tell_forgotten_fill(original.view, options, estimates[0].bound_abs);
    if (json) {
      auto list = nlohmann::ordered_json::array();
      for (const firn::Estimate& estimate : estimates) {
        list.push_back(
            {{"bound",
              {{"kind", firn::name_of(estimate.bound.kind)}, {"value", estimate.bound.value}}},
             {"bound_abs", estimate.bound_abs},
             {"ratio", estimate.ratio},
             {"psnr_db", std::isfinite(estimate.psnr_db) ? nlohmann::ordered_json(estimate.psnr_db)
                                                         : nlohmann::ordered_json(nullptr)},
             {"sampled_values", estimate.sampled_values}});
      }
      print_json({{"estimates", list}});
      return;
    }
    fmt::print("{}: from {:.3g} % of its {} values, preset {}\n", original.name,
               100.0 * static_cast<double>(estimates[0].sampled_values) /
                   static_cast<double>(original.view.shape.count()),
               original.view.shape.count(), firn::name_of(options.preset));
    Table table({"bound", "absolute", "ratio", "PSNR, dB"}, 1);
    for (const firn::Estimate& estimate : estimates) {
      table.add_row(
          {estimate.bound.kind == firn::BoundKind::lossless
               ? firn::name_of(estimate.bound.kind)
               : fmt::format("{} {}", firn::name_of(estimate.bound.kind),
                             format_number(estimate.bound.value)),
           estimate.bound_abs == 0 ? "-" : format_number(estimate.bound_abs),
           fmt::format("{:.2f}", estimate.ratio),
           std::isfinite(estimate.psnr_db) ? fmt::format("{:.1f}", estimate.psnr_db) : "exact"});
    }
    fmt::print("{}", table.to_text());
  }
};

}  // namespace

void add_estimate_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "estimate", "Predict ratio and PSNR against the bound from a sample of the field");
  const auto state = std::make_shared<EstimateCommand>();
  command->add_option("INPUT", state->input, "Raw, .npy, or - for standard input")
      ->required()
      ->type_name("");
  state->field.add_to(*command);
  state->compression.add_to(*command);
  state->threads.add_to(*command);
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer(
      "Without a bound: rel 0.1 to 1e-6. About 1 % of the field is read, 512 Ki values at least;\n"
      "rel is relative to the sample's value range. Of --ratio and --psnr it tells the bound.");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
