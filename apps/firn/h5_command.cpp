// firn h5: HDF5 and netCDF-4 files.
#include "commands.hpp"
#include "failure.hpp"
#include "h5_commands.hpp"
#include "shared_options.hpp"

namespace firn_cli {

void BoundOptions::add_to(CLI::App& command, const std::string& meaning_of_rel) {
  const std::string bounds = "Error bound, one of";
  command.add_option("--abs", abs_, "Every value within E of the original")
      ->type_name("E")
      ->group(bounds);
  command.add_option("--rel", rel_, meaning_of_rel)->type_name("E")->group(bounds);
  command.add_option("--pwrel", pwrel_, "Every value within E times its own magnitude")
      ->type_name("E")
      ->group(bounds);
  command.add_option("--psnr", psnr_, "A peak signal-to-noise ratio of at least DB decibels")
      ->type_name("DB")
      ->group(bounds);
  command.add_flag("--lossless", lossless_, "Every bit as it was")->group(bounds);
  command
      .add_option("--preset", preset_,
                  "fast (speed of memory), balanced (when not given) or small\n"
                  "(best ratio)")
      ->type_name("NAME");
}

std::optional<firn::Bound> BoundOptions::bound_or_none() const {
  const int given =
      !abs_.empty() + !rel_.empty() + !pwrel_.empty() + !psnr_.empty() + (lossless_ ? 1 : 0);
  if (given > 1) {
    fail(ExitCode::usage, "give only one of --abs E, --rel E, --pwrel E, --psnr DB, --lossless");
  }
  if (!abs_.empty()) return parse_bound(firn::BoundKind::abs, "--abs", abs_);
  if (!rel_.empty()) return parse_bound(firn::BoundKind::rel, "--rel", rel_);
  if (!pwrel_.empty()) return parse_bound(firn::BoundKind::pwrel, "--pwrel", pwrel_);
  if (!psnr_.empty()) return parse_bound(firn::BoundKind::psnr, "--psnr", psnr_);
  if (lossless_) return firn::Bound::lossless();
  return std::nullopt;
}

firn::Preset BoundOptions::preset() const {
  if (preset_.empty()) return firn::Preset::balanced;
  return value_or_fail(firn::parse_preset(preset_), "--preset");
}

void add_h5_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("h5", "HDF5 and netCDF-4 files: compress, params");
  command->require_subcommand(0, 1);  // main() says what is missing
  add_h5_compress_command(*command);
  add_h5_params_command(*command);
}

}  // namespace firn_cli
