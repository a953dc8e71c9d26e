// firn metrics ORIGINAL DECODED_OR_STREAM
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <firn/metrics.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"

namespace firn_cli {
namespace {

nlohmann::ordered_json number_or_null(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

nlohmann::ordered_json to_json(const firn::Metrics& metrics) {
  nlohmann::ordered_json json{
      {"count", metrics.count},
      {"excluded", metrics.excluded},
      {"excluded_different", metrics.excluded_different},
      {"broken", metrics.broken},
      {"minimum", metrics.minimum},
      {"maximum", metrics.maximum},
      {"range", metrics.range},
      {"max_abs_error", number_or_null(metrics.max_abs_error)},
      {"max_range_relative_error", number_or_null(metrics.max_range_relative_error)},
      {"max_pointwise_relative_error", number_or_null(metrics.max_pointwise_relative_error)},
      {"zeros_changed", metrics.zeros_changed},
      {"mean_error", number_or_null(metrics.mean_error)},
      {"rmse", number_or_null(metrics.rmse)},
      {"nrmse", number_or_null(metrics.nrmse)},
      {"psnr_db", number_or_null(metrics.psnr_db)},
      {"ssim", nullptr},
      {"error_autocorrelation", metrics.error_autocorrelation},
      {"histogram_limit", number_or_null(metrics.histogram_limit)},
      {"error_histogram", metrics.error_histogram},
      {"histogram_outside", metrics.histogram_outside},
      {"gradient", nullptr},
      {"spectrum", nullptr},
  };
  if (metrics.ssim) json["ssim"] = *metrics.ssim;
  if (metrics.gradient) {
    json["gradient"] = {{"max_error", metrics.gradient->max_error},
                        {"rmse", metrics.gradient->rmse},
                        {"relative_rmse", number_or_null(metrics.gradient->relative_rmse)}};
  }
  if (metrics.spectrum) {
    const firn::Shape& box = metrics.spectrum->box;
    json["spectrum"] = {
        {"original", metrics.spectrum->original},
        {"decoded", metrics.spectrum->decoded},
        {"max_relative_error", metrics.spectrum->max_relative_error},
        {"max_relative_error_low_half", metrics.spectrum->max_relative_error_low_half},
        {"box", std::vector<std::uint64_t>(box.extents.begin(), box.extents.begin() + box.rank)}};
  }
  return json;
}

void print_line(std::string_view name, const std::string& text) {
  fmt::print("{:<26}{}\n", name, text);
}

void print_text(const firn::Metrics& metrics) {
  const auto number = format_number;
  print_line("values", fmt::format("{} ({} NaN, infinite and fill values left out)", metrics.count,
                                   metrics.excluded));
  if (metrics.excluded_different != 0) {
    print_line(
        "", fmt::format("{} of those left out are not as they were", metrics.excluded_different));
  }
  if (metrics.broken != 0) {
    print_line("", fmt::format("{} finite values became NaN or infinite", metrics.broken));
  }
  print_line("range", fmt::format("{} ({} to {})", number(metrics.range), number(metrics.minimum),
                                  number(metrics.maximum)));
  print_line("max absolute error", number(metrics.max_abs_error));
  print_line("  of the range", number(metrics.max_range_relative_error));
  print_line("max point-wise relative", number(metrics.max_pointwise_relative_error));
  if (metrics.zeros_changed != 0) {
    print_line("zeros changed", std::to_string(metrics.zeros_changed));
  }
  print_line("mean error", number(metrics.mean_error));
  print_line("RMSE", number(metrics.rmse));
  print_line("NRMSE", number(metrics.nrmse));
  print_line("PSNR",
             std::isinf(metrics.psnr_db) ? "no error" : fmt::format("{:.2f} dB", metrics.psnr_db));
  if (metrics.ssim) print_line("SSIM", fmt::format("{:.8g}", *metrics.ssim));
  if (!metrics.error_autocorrelation.empty()) {
    std::string text;
    for (std::size_t lag = 0; lag < std::min<std::size_t>(4, metrics.error_autocorrelation.size());
         ++lag) {
      text += fmt::format("{}{:.4f}", lag == 0 ? "" : ", ", metrics.error_autocorrelation[lag]);
    }
    print_line("error autocorrelation", text + " (lags 1, 2, ...)");
  }
  if (metrics.gradient) {
    print_line(
        "gradient error",
        fmt::format("max {}, RMS {} ({} of the gradient's)", number(metrics.gradient->max_error),
                    number(metrics.gradient->rmse), number(metrics.gradient->relative_rmse)));
  }
  if (metrics.spectrum) {
    print_line("spectrum error",
               fmt::format("max {} of a shell's power, {} in the lower half",
                           number(metrics.spectrum->max_relative_error),
                           number(metrics.spectrum->max_relative_error_low_half)));
  }
}

struct MetricsCommand {
  FieldOptions field;
  ThreadOption threads;
  std::string fill_text;
  firn::MetricsOptions options;
  bool point_wise_only = false;
  bool json = false;
  std::string original_path;
  std::string decoded_path;

  void run() {
    if (original_path == kStandardStream && decoded_path == kStandardStream) {
      fail(ExitCode::usage, "only one of the inputs can be standard input");
    }
    if (point_wise_only) options.ssim = options.gradient = options.spectrum = false;
    if (!fill_text.empty()) options.fill = parse_fill("--fill", fill_text);
    if (is_stream()) {
      measure_stream();
    } else {
      const Field original = open_field(original_path, field.request());
      const Field decoded = open_field(
          decoded_path, {original.view.type, original.view.shape, FieldRequest::Source::options});
      measure(original, decoded.view);
    }
  }

 private:
  // A pipe can only be read once: it is taken for a stream.
  bool is_stream() const {
    if (decoded_path == kStandardStream) return true;
    constexpr std::string_view kMagic = "FIRN";
    const InputBytes input = InputBytes::open(decoded_path);
    return input.bytes().size() >= kMagic.size() &&
           std::equal(kMagic.begin(), kMagic.end(), input.bytes().begin());
  }

  void measure_stream() {
    const std::string name = input_name(decoded_path);
    const InputBytes stream = InputBytes::open(decoded_path);
    const firn::Info info = value_or_fail(firn::inspect(stream.bytes()), name);
    const Field original =
        open_field(original_path, {info.type, info.shape, FieldRequest::Source::stream});
    if (!options.fill) options.fill = info.fill;
    firn::Buffer memory;
    if (!memory.resize(static_cast<std::size_t>(info.original_bytes))) {
      fail(ExitCode::out_of_memory, "{}: not enough memory to decode it", name);
    }
    {
      ProgressBar bar("decoding");
      value_or_fail(firn::decompress(stream.bytes(), {memory.data(), info.type, info.shape, {}},
                                     {threads.threads(), bar.callback()}),
                    name);
    }
    measure(original, {memory.data(), info.type, info.shape, {}});
  }

  void measure(const Field& original, const firn::ArrayView& decoded) const {
    firn::Metrics metrics;
    {
      ProgressBar bar("measuring");
      metrics = value_or_fail(
          firn::measure(original.view, decoded, options, {threads.threads(), bar.callback()}),
          original.name);
    }
    if (json) {
      nlohmann::ordered_json object = to_json(metrics);
      add_array(object, original.view.type, original.view.shape);
      print_json(object);
    } else {
      print_text(metrics);
    }
  }
};

}  // namespace

void add_metrics_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("metrics", "Measure how far a decoded field is from the original");
  const auto state = std::make_shared<MetricsCommand>();
  command
      ->add_option("ORIGINAL", state->original_path,
                   "The field that was compressed: raw, .npy, or - for standard input")
      ->required()
      ->type_name("");
  command
      ->add_option("DECODED_OR_STREAM", state->decoded_path,
                   "A decoded field of the same type and dims, by whatever compressor, or a\n"
                   "Firn stream; - for a stream on standard input")
      ->required()
      ->type_name("");
  state->field.add_to(*command);
  command
      ->add_option("--fill", state->fill_text,
                   "A value to leave out; a stream's own when not given")
      ->type_name("V");
  command->add_option("--lags", state->options.lags, "Lags of the error's autocorrelation")
      ->type_name("N")
      ->check(CLI::Range(0, 65536).description(""));
  command->add_option("--bins", state->options.histogram_bins, "Bins of the error's histogram")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20).description(""));
  command->add_flag("--point-wise", state->point_wise_only,
                    "Without SSIM, gradient and spectrum, which take most of the time");
  state->threads.add_to(*command);
  command->add_flag("--json", state->json, "Report as JSON, with every measure");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
