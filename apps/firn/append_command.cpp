// firn append STREAM INPUT
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <firn/stream.hpp>
#include <memory>

#include "commands.hpp"
#include "failure.hpp"
#include "field_description.hpp"
#include "forgotten_fill.hpp"
#include "input_files.hpp"
#include "numbers.hpp"
#include "output_file.hpp"
#include "report.hpp"
#include "shared_options.hpp"

namespace firn_cli {
namespace {

// The library refuses these too, but does not know the names.
void check_fit(const std::string& stream, const firn::Info& info, const Field& added) {
  firn::Shape wanted = info.shape;
  if (added.view.shape.rank == wanted.rank) wanted.extents[0] = added.view.shape.extents[0];
  if (added.view.type == info.type && added.view.shape == wanted) return;
  std::string steps = to_text(info.shape);
  steps.replace(0, steps.find('x'), "N");
  fail(ExitCode::usage,
       "{} is {} of {}, but {} holds {} of {}: what is added must be {} of {} (dims are slowest "
       "first)",
       added.name, to_text(added.view.shape), firn::name_of(added.view.type), stream,
       to_text(info.shape), firn::name_of(info.type), steps, firn::name_of(info.type));
}

// Holds a file so that no other process adds to it meanwhile; what is no regular file is not held.
class Hold {
 public:
  explicit Hold(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    // Whoever was faster has put another file in its place by now.
    struct stat held = {}, there = {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &held) != 0 || !S_ISREG(held.st_mode)) return;
    if ((::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
        ::stat(path.c_str(), &there) != 0 || there.st_ino != held.st_ino) {
      ::close(descriptor_);
      fail(ExitCode::cannot_write,
           "another process is adding to {}; try again when it has come to its end", path);
    }
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_;
};

struct AppendCommand {
  FieldOptions field;
  CompressionOptions compression;
  ThreadOption threads;
  std::string stream;
  std::string input;

  // What neither the options nor the name say, the stream does.
  FieldRequest request(const firn::Info& before) const {
    FieldRequest request = field.request();
    const NameHints hints = hints_from_name(input);
    if (!request.type && !hints.type) request.type = before.type;
    if (!request.shape && !hints.shape) {
      request.source = FieldRequest::Source::stream;
      request.shape = before.shape;
      request.shape->extents[0] = 1;
      request.any_steps = true;
    }
    return request;
  }

  void run() const {
    if (stream == kStandardStream) {
      fail(ExitCode::usage, "STREAM is a file that is added to; it cannot be standard input");
    }
    const Hold hold(stream);
    const InputBytes existing = InputBytes::open(stream);
    const firn::Info before = value_or_fail(firn::inspect(existing.bytes()), stream);
    const Field added = open_field(input, request(before));
    check_fit(stream, before, added);
    firn::Options options = compression.options(before.bound, added.view.type);
    if (!options.fill) options.fill = before.fill;
    auto writer = value_or_fail(
        firn::StreamWriter::append_to(existing.bytes(), options, {threads.threads(), {}}), stream);
    value_or_fail(writer.push(added.view), added.name);
    value_or_fail(writer.finish(), stream);

    OutputFile file(stream, true);
    const auto kept = existing.bytes().first(static_cast<std::size_t>(writer.append_offset()));
    const auto ready = writer.ready();
    const auto out = file.map(kept.size() + ready.size());
    std::memcpy(out.data(), kept.data(), kept.size());
    std::memcpy(out.data() + kept.size(), ready.data(), ready.size());
    file.commit();
    const std::uint64_t added_bytes = added.view.shape.count() * firn::size_of(added.view.type);
    tell_missed_ratio(options, added.view.type, added_bytes, ready.size());
    const auto parts = firn::inspect(ready);
    if (parts) tell_forgotten_fill(added.view, options, parts->bound_abs);
    fmt::print(
        "{}: {} steps and {} more, {} and {} more, ratio {:.2f} in all\n", stream,
        before.shape.extents[0], writer.steps(), format_bytes(kept.size()),
        format_bytes(ready.size()),
        static_cast<double>(before.original_bytes + added_bytes) / static_cast<double>(out.size()));
  }
};

}  // namespace

void add_append_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("append", "Add further steps along the slowest axis to a stream");
  const auto state = std::make_shared<AppendCommand>();
  command->add_option("STREAM", state->stream, "The stream that grows")->required()->type_name("");
  command
      ->add_option("INPUT", state->input,
                   "The further steps: raw, .npy, or - for standard input, with the\n"
                   "stream's type and extents except along the slowest axis; these need\n"
                   "not be given")
      ->required()
      ->type_name("");
  state->field.add_to(*command);
  state->compression.add_to(*command);
  state->threads.add_to(*command);
  command->footer(
      "Without a bound, the one that the stream was made with. rel is relative to the range of\n"
      "the added steps. Example: firn append u.firn u_next_10x125x125.f32");
  command->callback([state] { state->run(); });
}

}  // namespace firn_cli
