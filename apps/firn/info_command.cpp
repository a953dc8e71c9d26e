// firn info STREAM
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "table.hpp"

namespace firn_cli {
namespace {

std::string over_bound(double error, double bound) {
  return bound > 0 ? fmt::format("{:.4f}", error / bound) : "exact";
}

std::vector<std::uint64_t> origin_of(const firn::ChunkInfo& chunk) {
  return {chunk.origin.begin(), chunk.origin.begin() + chunk.shape.rank};
}

struct InfoCommand {
  bool chunks = false;
  bool json = false;
  std::string path;

  void run() const {
    const std::string name = input_name(path);
    const InputBytes stream = InputBytes::open(path);
    const firn::Info info = value_or_fail(firn::inspect(stream.bytes()), name);
    std::vector<firn::ChunkInfo> list;
    if (chunks || !info.complete) {
      list = value_or_fail(firn::inspect_chunks(stream.bytes()), name);
    }
    if (json) {
      print_as_json(info, list);
    } else {
      print_as_text(name, info, list);
    }
    if (!info.complete && list.size() == info.chunk_count) {
      fail(ExitCode::truncated,
           "{}: the series is cut off or damaged, or something else follows (decompress --salvage "
           "decodes what is left)",
           name);
    }
    if (!info.complete) {
      fail(ExitCode::truncated,
           "{}: only {} of {} chunks can be found: the stream is cut off or damaged (decompress "
           "--salvage decodes what is left)",
           name, list.size(), info.chunk_count);
    }
  }

 private:
  void print_as_json(const firn::Info& info, const std::vector<firn::ChunkInfo>& list) const {
    Report report;
    report.original_bytes = info.original_bytes;
    report.compressed_bytes = info.compressed_bytes;
    report.set_bound(info, info.max_abs_error, info.max_pwrel_error);
    nlohmann::ordered_json object = to_json(report);
    add_array(object, info.type, info.shape);
    object["format_version"] = info.format_version;
    object["bound"] = {{"kind", firn::name_of(info.bound.kind)}, {"value", info.bound.value}};
    object["fill"] = info.fill ? nlohmann::ordered_json(*info.fill) : nullptr;
    object["chunk_dims"] = std::vector<std::uint64_t>(info.chunk.extents.begin(),
                                                      info.chunk.extents.begin() + info.chunk.rank);
    object["chunk_count"] = info.chunk_count;
    object["part_count"] = info.part_count;
    object["complete"] = info.complete;
    object["simd_target"] = firn::simd_target();
    if (chunks) {
      auto array = nlohmann::ordered_json::array();
      for (const firn::ChunkInfo& chunk : list) {
        array.push_back(
            {{"offset", chunk.offset},
             {"bytes", chunk.size_bytes},
             {"origin", origin_of(chunk)},
             {"dims", std::vector<std::uint64_t>(chunk.shape.extents.begin(),
                                                 chunk.shape.extents.begin() + chunk.shape.rank)},
             {"pipeline", firn::name_of(chunk.pipeline)},
             {"bound_abs", chunk.bound_abs},
             {"max_abs_error", chunk.max_abs_error},
             {"max_pwrel_error", chunk.max_pwrel_error},
             {"detail", chunk.detail}});
      }
      object["chunks"] = std::move(array);
    }
    print_json(object);
  }

  void print_as_text(const std::string& name, const firn::Info& info,
                     const std::vector<firn::ChunkInfo>& list) const {
    const double ratio =
        info.compressed_bytes == 0
            ? 0
            : static_cast<double>(info.original_bytes) / static_cast<double>(info.compressed_bytes);
    fmt::print("{}: Firn stream, format version {}\n", name, info.format_version);
    fmt::print("type        {}\n", firn::name_of(info.type));
    fmt::print("dims        {} (slowest first)\n", to_text(info.shape));
    const bool series = info.part_count > 1;
    fmt::print("chunks      {} of {}{}\n", info.chunk_count, to_text(info.chunk),
               series ? fmt::format(", in {} parts", info.part_count) : "");
    fmt::print("bound       {}{}\n", describe_bound(info),
               series && enforced_bound(info) > 0 ? ", the largest of its parts" : "");
    if (enforced_bound(info) > 0) {
      fmt::print("max error   {} ({} of the bound)\n", format_number(achieved_error(info)),
                 over_bound(achieved_error(info), enforced_bound(info)));
    }
    if (info.fill) fmt::print("fill        {:g}\n", *info.fill);
    fmt::print("original    {} bytes\n", info.original_bytes);
    fmt::print("compressed  {} bytes, ratio {:.2f}\n", info.compressed_bytes, ratio);
    fmt::print("simd        {} here (this machine has {})\n", firn::simd_target(),
               fmt::join(firn::simd_targets(), ", "));
    if (const auto ignored = ignored_simd_target()) {
      fmt::print("            FIRN_SIMD={} is none of these, and without effect\n", *ignored);
    }
    if (!chunks) return;

    Table table({"chunk", "origin", "dims", "pipeline", "detail", "offset", "bytes", "ratio",
                 "bound", "error/bound"},
                5);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const firn::ChunkInfo& chunk = list[i];
      const double chunk_ratio = static_cast<double>(chunk.shape.count()) *
                                 static_cast<double>(firn::size_of(info.type)) /
                                 static_cast<double>(chunk.size_bytes);
      const double bound =
          info.bound.kind == firn::BoundKind::pwrel ? info.bound_pwrel : chunk.bound_abs;
      table.add_row({std::to_string(i), fmt::format("{}", fmt::join(origin_of(chunk), ",")),
                     to_text(chunk.shape), firn::name_of(chunk.pipeline), chunk.detail,
                     std::to_string(chunk.offset), std::to_string(chunk.size_bytes),
                     fmt::format("{:.2f}", chunk_ratio), format_number(bound),
                     over_bound(std::max(chunk.max_abs_error, chunk.max_pwrel_error), bound)});
    }
    fmt::print("\n{}", table.to_text());
  }
};

}  // namespace

void add_info_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("info", "Say what a stream holds, without decoding it");
  const auto state = std::make_shared<InfoCommand>();
  command->add_option("STREAM", state->path, "The stream, or - for standard input")
      ->required()
      ->type_name("");
  command->add_flag("--chunks", state->chunks, "List the chunks");
  command->add_flag("--json", state->json, "Report as JSON");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
