// firn decompress INPUT OUTPUT
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <firn/stream.hpp>
#include <memory>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "input_files.hpp"
#include "npy.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "region_text.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "stopwatch.hpp"

namespace firn_cli {
namespace {

// "0:10,64:100,5:7"
std::string to_text(const firn::Region& region) {
  std::string text;
  for (int axis = 0; axis < region.shape.rank; ++axis) {
    text += fmt::format("{}{}:{}", axis == 0 ? "" : ",", region.origin[axis],
                        region.origin[axis] + region.shape.extents[axis]);
  }
  return text;
}

std::uint64_t missing_values(const std::vector<firn::Damage>& damages) {
  std::uint64_t count = 0;
  for (const firn::Damage& damage : damages) count += damage.region.shape.count();
  return count;
}

nlohmann::ordered_json to_json(const std::vector<firn::Damage>& damages) {
  auto list = nlohmann::ordered_json::array();
  for (const firn::Damage& damage : damages) {
    list.push_back({{"chunk", damage.chunk},
                    {"region", to_text(damage.region)},
                    {"values", damage.region.shape.count()},
                    {"error", damage.error.message}});
  }
  return list;
}

struct DecompressCommand {
  std::string region_text;
  int preview = 0;
  ThreadOption threads;
  bool salvage = false;
  bool force = false;
  bool json = false;
  std::string input;
  std::string output;

  void run() const {
    if (salvage && !region_text.empty()) {
      fail(ExitCode::usage, "--salvage works on the whole field: leave out --region");
    }
    if (preview != 0 && (salvage || !region_text.empty())) {
      fail(ExitCode::usage,
           "--preview thins out the whole field: leave out --region and --salvage");
    }
    OutputFile file(output, force);
    const std::string name = input_name(input);
    if (!is_pipe(input)) return run_on(InputBytes::open(input), file, name);
    InputPipe pipe(input);
    firn::StreamReader reader;
    std::vector<std::uint8_t> head = read_head(pipe, reader);
    const bool all = salvage || preview != 0 || !region_text.empty() || json;
    if (!reader.started() || all || output.ends_with(".npy") ||
        (file.is_regular() && has_large_part(reader))) {
      return run_on(InputBytes::rest_of(pipe, head), file, name);
    }
    run_piped(file, pipe, reader, std::move(head));
  }

 private:
  // Reads the beginning of a stream and feeds it, until that tells what the stream holds, if it is
  // one.
  static std::vector<std::uint8_t> read_head(InputPipe& pipe, firn::StreamReader& reader) {
    constexpr std::size_t kPiece = 4096;
    std::vector<std::uint8_t> head;
    while (!reader.started()) {
      const std::size_t size = head.size();
      head.resize(size + kPiece);
      const std::size_t count = pipe.read(std::span(head).subspan(size));
      head.resize(size + count);
      if (count == 0 || !reader.feed(std::span(head).subspan(size)).ok()) break;
    }
    return head;
  }

  // The shape of so many steps.
  static firn::Shape steps_of(const firn::StreamReader& reader, std::uint64_t steps) {
    const firn::Shape step = reader.step();
    firn::Shape shape;
    shape.rank = step.rank + 1;
    shape.extents[0] = steps;
    std::copy_n(step.extents.begin(), step.rank, shape.extents.begin() + 1);
    return shape;
  }

  // One that is better decoded into the output file itself.
  static bool has_large_part(const firn::StreamReader& reader) {
    constexpr std::uint64_t kLarge = std::uint64_t{1} << 28;
    return array_bytes_or_fail(reader.type(), steps_of(reader, reader.next_steps())) > kLarge;
  }

  // Whoever reads the output may go by its name.
  void tell_other_type(const OutputFile& file, firn::Type type) const {
    const std::optional<firn::Type> named = hints_from_name(output).type;
    if (!named || *named == type) return;
    fmt::print(stderr, "firn: {} holds {} values, as the stream does, not {} as its name says\n",
               file.name(), firn::name_of(type), firn::name_of(*named));
  }

  void run_on(const InputBytes& stream, OutputFile& file, const std::string& name) const {
    const firn::Info info = value_or_fail(firn::inspect(stream.bytes()), name);
    if (preview != 0) return run_preview(file, name, stream.bytes(), info);
    firn::Region region{{}, info.shape};
    if (!region_text.empty()) region = parse_region(region_text, info.shape);

    const std::string header =
        output.ends_with(".npy") ? make_npy_header(info.type, region.shape) : "";
    const std::uint64_t value_bytes = array_bytes_or_fail(info.type, region.shape);
    const std::span<std::uint8_t> memory = file.map(header.size() + value_bytes);
    if (!header.empty()) std::memcpy(memory.data(), header.data(), header.size());

    double seconds = 0;
    const std::vector<firn::Damage> damages =
        decode(stream.bytes(), name, info, region, memory.subspan(header.size()), seconds);
    file.commit();
    tell_other_type(file, info.type);
    if (!damages.empty()) list_damages(name, damages);
    report(file, name, info, region, damages, value_bytes, seconds);
    if (damages.empty()) return;
    const std::uint64_t missing = missing_values(damages);
    if (missing == info.shape.count()) {
      fail(ExitCode::incomplete, "{}: nothing of it can be decoded; {} is all NaN", name,
           file.name());
    }
    if (missing == 0) {
      fail(ExitCode::incomplete, "{}: all {} values that are there are good and in {}", name,
           info.shape.count(), file.name());
    }
    fail(ExitCode::incomplete,
         "{}: {} of {} chunks ({} of {} values) are missing and NaN in {}; the rest is good", name,
         std::count_if(damages.begin(), damages.end(),
                       [](const firn::Damage& each) { return each.region.shape.count() != 0; }),
         info.chunk_count, missing, info.shape.count(), file.name());
  }

 private:
  // Decodes each part of a pipe once it is there, so that neither the input nor the output of a
  // long series is ever in memory as a whole. `head` is what the reader has been fed; of a single
  // stream that is not too large all is kept, because chunks may be good though its end is missing.
  void run_piped(OutputFile& file, InputPipe& pipe, firn::StreamReader& reader,
                 std::vector<std::uint8_t> head) const {
    constexpr std::size_t kPiece = std::size_t{1} << 20, kLeastRoom = std::size_t{1} << 22;
    constexpr std::size_t kMostKept = std::size_t{1} << 28;
    bool kept = true;
    const auto step_bytes =
        static_cast<std::size_t>(array_bytes_or_fail(reader.type(), steps_of(reader, 1)));
    const std::uint64_t room = 1 + kLeastRoom / std::max<std::size_t>(step_bytes, 1);
    const std::unique_ptr<std::uint8_t[]> values(new std::uint8_t[room * step_bytes]);
    std::vector<std::uint8_t> piece(kPiece);
    std::uint64_t steps = 0;
    const Stopwatch stopwatch;
    for (std::size_t count = 1; count != 0;) {
      while (const std::uint64_t decoded = value_or_fail(
                 reader.read({values.get(), reader.type(), steps_of(reader, room), {}},
                             {threads.threads(), {}}),
                 pipe.name())) {
        file.write({values.get(), static_cast<std::size_t>(decoded) * step_bytes});
        steps += decoded;
      }
      count = pipe.read(piece);
      const auto fed = std::span(piece).first(count);
      value_or_fail(reader.feed(fed), pipe.name());
      kept = kept && steps == 0 && head.size() < kMostKept;
      if (kept) {
        head.insert(head.end(), fed.begin(), fed.end());
      } else {
        head = std::vector<std::uint8_t>();
      }
    }
    if (!reader.at_boundary()) {
      if (kept && steps == 0) return run_on(InputBytes::copy_of(head), file, pipe.name());
      fail(ExitCode::truncated, "{}: the stream ends too early, after {} steps", pipe.name(),
           steps);
    }
    file.write({});
    file.commit();
    tell_other_type(file, reader.type());
    if (file.is_standard_output()) return;
    fmt::print("{}: {} of {} -> {}, {}, {:.0f} MB/s\n", pipe.name(),
               firn_cli::to_text(steps_of(reader, steps)), firn::name_of(reader.type()),
               file.name(), format_bytes(steps * step_bytes),
               megabytes_per_second(steps * step_bytes, stopwatch.seconds()));
  }

  void run_preview(OutputFile& file, const std::string& name, std::span<const std::uint8_t> stream,
                   const firn::Info& info) const {
    const firn::Shape shape = value_or_fail(firn::preview_shape(stream, preview), name);
    const std::string header = output.ends_with(".npy") ? make_npy_header(info.type, shape) : "";
    const std::uint64_t value_bytes = array_bytes_or_fail(info.type, shape);
    const std::span<std::uint8_t> memory = file.map(header.size() + value_bytes);
    if (!header.empty()) std::memcpy(memory.data(), header.data(), header.size());
    ProgressBar bar("decompressing");
    const firn::Execution execution{threads.threads(), bar.callback()};
    const firn::PreviewReport report = value_or_fail(
        firn::decompress_preview(stream, preview,
                                 {memory.data() + header.size(), info.type, shape, {}}, execution),
        name);
    file.commit();
    tell_other_type(file, info.type);
    if (json) {
      nlohmann::ordered_json object;
      add_array(object, info.type, shape);
      object["preview"] = preview;
      object["output_values_bytes"] = value_bytes;
      object["chunks_from_prefix"] = report.chunks_from_prefix;
      object["chunks_decoded_whole"] = report.chunks_decoded_whole;
      print_json(object, file.is_standard_output());
    } else if (!file.is_standard_output()) {
      fmt::print("{}: {} of {} -> {}, {}\n", name, firn_cli::to_text(shape),
                 firn::name_of(info.type), file.name(), format_bytes(value_bytes));
      if (report.chunks_decoded_whole != 0) {
        fmt::print("{} of {} chunks have no levels and were decoded whole, then thinned out\n",
                   report.chunks_decoded_whole, info.chunk_count);
      }
    }
  }

  std::vector<firn::Damage> decode(std::span<const std::uint8_t> stream, const std::string& name,
                                   const firn::Info& info, const firn::Region& region,
                                   std::span<std::uint8_t> out, double& seconds) const {
    const firn::MutableArrayView view{out.data(), info.type, region.shape, {}};
    ProgressBar bar("decompressing");
    const firn::Execution execution{threads.threads(), bar.callback()};
    firn::Decompressor decompressor;
    std::vector<firn::Damage> damages;
    const Stopwatch stopwatch;
    if (salvage) {
      damages = value_or_fail(decompressor.salvage(stream, view, execution), name);
    } else if (region.shape == info.shape) {
      value_or_fail(decompressor.decompress(stream, view, execution), name);
    } else {
      value_or_fail(decompressor.decompress_region(stream, region, view, execution), name);
    }
    seconds = stopwatch.seconds();
    return damages;
  }

  void list_damages(const std::string& name, const std::vector<firn::Damage>& damages) const {
    constexpr std::size_t kMostLines = 20;
    const std::size_t lines = std::min(damages.size(), kMostLines);
    for (std::size_t i = 0; i < lines; ++i) {
      const firn::Region& lost = damages[i].region;
      const std::string place = lost.shape.count() == 0 ? "" : " values " + to_text(lost) + ":";
      fmt::print(stderr, "firn: {}: missing:{} {}\n", name, place, damages[i].error.message);
    }
    if (lines < damages.size()) {
      fmt::print(stderr, "firn: {}: and {} more chunks{}\n", name, damages.size() - lines,
                 json ? "" : " (--json lists all)");
    }
  }

  void report(const OutputFile& file, const std::string& name, const firn::Info& info,
              const firn::Region& region, const std::vector<firn::Damage>& damages,
              std::uint64_t value_bytes, double seconds) const {
    Report report;
    report.original_bytes = info.original_bytes;
    report.compressed_bytes = info.compressed_bytes;
    report.set_bound(info, info.max_abs_error, info.max_pwrel_error);
    report.decompress_mb_s = megabytes_per_second(value_bytes, seconds);
    if (json) {
      nlohmann::ordered_json object = firn_cli::to_json(report);
      add_array(object, info.type, region.shape);
      object["output_values_bytes"] = value_bytes;
      object["missing"] = to_json(damages);
      print_json(object, file.is_standard_output());
    } else if (!file.is_standard_output()) {
      fmt::print("{}: {} of {} -> {}, {}, {:.0f} MB/s\n", name, firn_cli::to_text(region.shape),
                 firn::name_of(info.type), file.name(), format_bytes(value_bytes),
                 *report.decompress_mb_s);
    }
  }
};

}  // namespace

void add_decompress_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("decompress", "Decode a stream, or a region of it");
  const auto state = std::make_shared<DecompressCommand>();
  command->add_option("INPUT", state->input, "The stream, or - for standard input")
      ->required()
      ->type_name("");
  command
      ->add_option("OUTPUT", state->output,
                   "Raw little-endian values, a .npy file by that ending, or - for\n"
                   "standard output")
      ->required()
      ->type_name("");
  command
      ->add_option("--region", state->region_text,
                   "Only this part, e.g. 0:10,:,5:7: a half-open range for each axis,\n"
                   "slowest first")
      ->type_name("RANGES");
  command
      ->add_option("--preview", state->preview,
                   "Every 2nd, 4th, 8th, ... value along each axis of each chunk; of chunks\n"
                   "that were interpolated only the beginning is read")
      ->check(CLI::Range(2, 1 << 20))
      ->type_name("FACTOR");
  state->threads.add_to(*command);
  command->add_flag("--salvage", state->salvage,
                    "Decode what can be decoded of a damaged stream, set the rest to\n"
                    "NaN and say what is missing");
  command->add_flag("--force", state->force, "Replace OUTPUT when it exists");
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer("Example: firn decompress --region 0:10,:,5:7 u.firn part.npy");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
