// firn h5 params: the filter's numbers, ready to paste.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>

#include "failure.hpp"
#include "firn/hdf5_parameters.h"
#include "h5_commands.hpp"
#include "hdf5/parameters.hpp"
#include "numbers.hpp"
#include "report.hpp"

namespace firn_cli {
namespace {

constexpr const char* kChunkWarning =
    "WARNING: inside HDF5 a filter sees one chunk at a time, so '{}' is relative to the value\n"
    "range of EACH CHUNK, padding at the dataset's edges included: the error differs from chunk\n"
    "to chunk. For one bound for the whole dataset use --abs E, or --rel E --range LOW,HIGH with\n"
    "the values that the data can have, or 'firn h5 compress --rel E', which looks at the whole\n"
    "dataset first.\n\n";

bool is_relative(const firn::Bound& bound) {
  return bound.kind == firn::BoundKind::rel || bound.kind == firn::BoundKind::psnr;
}

std::string c_bound(const firn::Bound& bound) {
  if (bound.kind == firn::BoundKind::lossless) return "firn_hdf5_lossless()";
  return fmt::format("firn_hdf5_{}{}({})", firn::name_of(bound.kind),
                     is_relative(bound) ? "_of_chunk" : "", bound.value);
}

std::string c_preset(firn::Preset preset) {
  switch (preset) {
    case firn::Preset::fast:
      return "FIRN_FAST";
    case firn::Preset::balanced:
      return "FIRN_BALANCED";
    case firn::Preset::small:
      return "FIRN_SMALL";
  }
  return "";
}

struct H5ParamsCommand {
  BoundOptions bound;
  std::string range;
  std::string fill;
  bool json = false;

  void run() const {
    firn::hdf5::FilterRequest request;
    const std::optional<firn::Bound> asked = bound.bound_or_none();
    if (!asked) {
      fail(ExitCode::usage,
           "how exact? give one of --abs E, --rel E, --pwrel E, --psnr DB, --lossless");
    }
    request.bound = *asked;
    request.preset = bound.preset();
    if (!range.empty()) request.bound = bound_for_range();
    if (!fill.empty()) request.fill = parse_fill("--fill", fill);
    if (json) {
      print_as_json(request);
    } else {
      print_as_text(request);
    }
  }

 private:
  firn::Bound bound_for_range() const {
    const firn::Bound asked = *bound.bound_or_none();
    const std::size_t comma = range.find(',');
    const double low = parse_number(range.substr(0, comma)).value_or(NAN);
    const double high =
        comma == std::string::npos ? NAN : parse_number(range.substr(comma + 1)).value_or(NAN);
    if (!std::isfinite(high - low) || high <= low) {
      fail(ExitCode::usage, "--range takes LOW,HIGH such as 180,330, not '{}'", range);
    }
    if (asked.kind != firn::BoundKind::rel) fail(ExitCode::usage, "--range goes with --rel");
    return firn::Bound::abs(asked.value * (high - low));
  }

  void print_as_json(const firn::hdf5::FilterRequest& request) const {
    const std::vector<unsigned> words = firn::hdf5::user_parameters(request);
    print_json(
        {{"filter_id", FIRN_HDF5_FILTER_ID},
         {"parameters", words},
         {"bound", {{"kind", firn::name_of(request.bound.kind)}, {"value", request.bound.value}}},
         {"preset", firn::name_of(request.preset)},
         {"relative_to_chunk", is_relative(request.bound)}});
  }

  void print_as_text(const firn::hdf5::FilterRequest& request) const {
    const std::vector<unsigned> words = firn::hdf5::user_parameters(request);
    const std::string list = fmt::format("{}", fmt::join(words, ","));
    const std::string spaced = fmt::format("{}", fmt::join(words, ", "));
    const int id = FIRN_HDF5_FILTER_ID;
    if (is_relative(request.bound)) {
      fmt::print(kChunkWarning, firn::name_of(request.bound.kind));
    }
    fmt::print("filter      {}\nparameters  {}\n\n", id, list);
    fmt::print("h5repack    h5repack -f UD={},0,{},{} in.h5 out.h5\n", id, words.size(), list);
    fmt::print("            h5repack -f /path/to/u:UD={},0,{},{} in.h5 out.h5\n", id, words.size(),
               list);
    fmt::print("nccopy      nccopy -F 'u,{},{}' in.nc out.nc\n", id, list);
    fmt::print(
        "h5py        f.create_dataset(\"u\", data=u, chunks=True,\n"
        "                             compression={}, compression_opts=({}))\n",
        id, spaced);
    fmt::print(
        "xarray      ds.to_netcdf(\"out.nc\", engine=\"h5netcdf\", encoding={{\"u\": {{\n"
        "                \"compression\": {}, \"compression_opts\": ({})}}}})\n",
        id, spaced);
    if (!request.fill) {
      fmt::print("C           H5Pset_firn(dcpl, {}, {});  /* #include <firn/hdf5.h> */\n",
                 c_bound(request.bound), c_preset(request.preset));
    }
    fmt::print("C, HDF5     unsigned firn[] = {{{}}};\n", spaced);
    fmt::print("            H5Pset_filter(dcpl, {}, H5Z_FLAG_MANDATORY, {}, firn);\n", id,
               words.size());
    fmt::print("C, netCDF   nc_def_var_filter(ncid, varid, {}, {}, firn);\n", id, words.size());
  }
};

}  // namespace

void add_h5_params_command(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand(
      "params", "Print the filter's settings for h5repack, nccopy, h5py, xarray and C");
  const auto state = std::make_shared<H5ParamsCommand>();
  state->bound.add_to(*command, "Every value within E times its CHUNK's value range");
  command
      ->add_option("--range", state->range,
                   "With --rel: the data lie in this range, so print the bound as --abs")
      ->type_name("LOW,HIGH");
  command
      ->add_option("--fill", state->fill,
                   "A value that means 'nothing here', where the dataset's own fill value\n"
                   "does not say so")
      ->type_name("V");
  command->add_flag("--json", state->json, "As JSON");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
