// firn compress INPUT OUTPUT
#include <fmt/format.h>

#include <algorithm>
#include <firn/stream.hpp>
#include <memory>
#include <new>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "forgotten_fill.hpp"
#include "input_files.hpp"
#include "interruption.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_options.hpp"
#include "step_source.hpp"
#include "stopwatch.hpp"

namespace firn_cli {
namespace {

// What has been written of a series, and what it holds.
class PassedOn {
 public:
  explicit PassedOn(OutputFile& file) : file_(file) {}

  // The parts that are ready.
  void parts(firn::StreamWriter& writer) {
    const auto ready = writer.ready();
    if (ready.empty()) return;
    firn::Info part = value_or_fail(firn::inspect(ready), file_.name());
    file_.write(ready);
    part.shape.extents[0] += info_.shape.extents[0];
    part.original_bytes += info_.original_bytes;
    part.compressed_bytes += info_.compressed_bytes;
    part.bound_abs = std::max(part.bound_abs, info_.bound_abs);
    part.bound_pwrel = std::max(part.bound_pwrel, info_.bound_pwrel);
    part.max_abs_error = std::max(part.max_abs_error, info_.max_abs_error);
    part.max_pwrel_error = std::max(part.max_pwrel_error, info_.max_pwrel_error);
    info_ = part;
    writer.take(ready.size());
  }
  // The rest, after finish().
  void directory(const firn::StreamWriter& writer) {
    file_.write(writer.ready());
    info_.compressed_bytes += writer.ready().size();
  }
  const firn::Info& info() const { return info_; }

  void commit() {
    try {
      file_.commit();
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::output_exists) throw;
      keep_and_fail(failure.code(), failure.what());
    }
  }
  // Makes an output of what was passed on before something failed: a pipe cannot be read again.
  [[noreturn]] void keep_and_fail(ExitCode code, const char* what) {
    const std::string name = info_.compressed_bytes == 0 ? "" : file_.keep(info_.compressed_bytes);
    if (name.empty()) fail(code, "{}", what);
    fail(code, "{}; the {} steps before are in {}", what, info_.shape.extents[0], name);
  }

 private:
  OutputFile& file_;
  firn::Info info_;
};

struct CompressCommand {
  FieldOptions field;
  CompressionOptions compression;
  ThreadOption threads;
  bool force = false;
  bool json = false;
  std::uint64_t flush = 0;
  std::string input;
  std::string output;

  void run() const {
    compression.options();  // mistakes in them come before a missing file
    OutputFile file(output, force);
    if (field.request().any_steps && is_pipe(input) && !has_npy_name(input)) {
      return run_piped(file);
    }
    if (flush != 0) {
      fail(ExitCode::usage,
           "--flush goes with a pipe and --dims Nx500x400, whose steps come one "
           "after the other");
    }
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

    tell_missed_ratio(options, info.type, info.original_bytes, info.compressed_bytes);
    tell_forgotten_fill(original.view, options, info.bound_abs);
    report(file, original.name, options, info, seconds);
  }

 private:
  // All steps, and the directory. A Failure when there are none.
  void pass_on(StepSource& source, firn::StreamWriter& writer, const std::string& name,
               PassedOn& passed, ForgottenFill* seen) const {
    std::uint64_t unflushed = 0;
    for (;;) {
      const firn::ArrayView steps = source.next(flush == 0 ? ~std::uint64_t{0} : flush - unflushed);
      const std::uint64_t count = steps.shape.extents[0];
      if (count == 0) break;
      value_or_fail(writer.push(steps), name);
      if (seen != nullptr) seen->look(steps);
      unflushed += count;
      if (unflushed == flush) {
        value_or_fail(writer.flush(), name);
        unflushed = 0;
      }
      passed.parts(writer);
    }
    if (writer.steps() == 0) {
      if (interrupted()) {
        fail(ExitCode::incomplete, "{} was interrupted before a whole step had come", name);
      }
      fail(ExitCode::size_mismatch, "{}",
           describe_broken_step(name, source.rest_bytes(), source.type(), source.step()));
    }
    value_or_fail(writer.flush(), name);
    passed.parts(writer);
    value_or_fail(writer.finish(), name);
    passed.directory(writer);
  }

  // The steps that are not yet a part, if they can still be written.
  static void keep_waiting(firn::StreamWriter& writer, PassedOn& passed) {
    try {
      if (writer.flush().ok()) passed.parts(writer);
    } catch (const Failure&) {
    }
  }

  // Compresses steps as they come and writes each part when it is complete, so that neither the
  // input nor the output is ever in memory as a whole.
  void run_piped(OutputFile& file) const {
    const FieldRequest request = field.request();
    const auto type = request.type ? request.type : hints_from_name(input).type;
    if (!type) {
      fail(ExitCode::usage, "the type of {} is not known: give --type f32 or --type f64",
           input_name(input));
    }
    const firn::Options options = compression.options({}, *type);
    defer_signals();
    InputPipe pipe(input);
    StepSource source(pipe, *type, *request.shape);
    firn::Shape step;
    step.rank = request.shape->rank - 1;
    std::copy_n(request.shape->extents.begin() + 1, step.rank, step.extents.begin());
    auto writer = value_or_fail(
        firn::StreamWriter::create(*type, step, options, {threads.threads(), {}}), pipe.name());
    PassedOn passed(file);
    ForgottenFill seen;
    const Stopwatch stopwatch;
    try {
      pass_on(source, writer, pipe.name(), passed, follows_range(options) ? &seen : nullptr);
    } catch (const Failure& failure) {
      if (failure.code() == ExitCode::cannot_read) keep_waiting(writer, passed);
      passed.keep_and_fail(failure.code(), failure.what());
    } catch (const std::bad_alloc&) {
      passed.keep_and_fail(ExitCode::out_of_memory, "out of memory");
    }
    const std::string cut = source.rest_bytes() == 0
                                ? ""
                                : fmt::format(" within a step, of which {} of {} bytes came",
                                              source.rest_bytes(), source.step_bytes());
    passed.commit();
    const double seconds = stopwatch.seconds();
    const firn::Info& info = passed.info();
    tell_missed_ratio(options, info.type, info.original_bytes, info.compressed_bytes);
    tell_forgotten_fill(seen, *type, info.bound_abs);
    report(file, pipe.name(), options, info, seconds);
    if (!cut.empty() || interrupted()) {
      fail(ExitCode::incomplete, "{} {}{}; the {} whole steps before are in {}", pipe.name(),
           interrupted() ? "was interrupted" : "ended", cut, writer.steps(), file.name());
    }
  }

  void report(const OutputFile& file, const std::string& name, const firn::Options& options,
              const firn::Info& info, double seconds) const {
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
      fmt::print("{}: {} -> {}, ratio {:.2f}, bound {}, max error {}, {:.0f} MB/s\n", name,
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
  command
      ->add_option("--flush", state->flush,
                   "Of a pipe with --dims Nx500x400: pass on what has come after every K\n"
                   "steps; when not given, after some two million values")
      ->type_name("K")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40).description(""));
  command->add_flag("--force", state->force, "Replace OUTPUT when it exists");
  command->add_flag("--json", state->json, "Report as JSON");
  command->footer(
      "Example: firn compress --rel 1e-3 u_25x125x125.f32 u.firn\n"
      "Dims are slowest first: what zfp calls -3 125 125 25 is --dims 25x125x125.");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
