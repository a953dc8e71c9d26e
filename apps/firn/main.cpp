// The command line of Firn. docs/command-line.md describes it; exit_codes.hpp has its exit codes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "firn/firn.hpp"
#include "interruption.hpp"

namespace {

using firn_cli::ExitCode;

constexpr const char* kFooter =
    "'firn help COMMAND' shows a command's options. Dims are slowest first everywhere: the field\n"
    "a[100][500][400] of C or numpy is --dims 100x500x400. (zfp and SZ name the fastest first.)";

int report_failure(ExitCode code, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "firn: {}\n", message);
  return static_cast<int>(code);
}

// CLI11 reports every misuse as an exception; ours is one line and where to look.
int report_misuse(const CLI::App& program, const CLI::ParseError& error) {
  std::string hint = "firn help";
  for (const CLI::App* command = &program; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    hint += " " + command->get_name();
  }
  std::string what = error.what();
  // Of an option that it does not know, what stood before it is no mistake.
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto rest = program.remaining(true);
    const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
      return word.size() > 1 && word.front() == '-';
    });
    if (option != rest.end()) what = fmt::format("there is no option {}", *option);
  }
  return report_failure(ExitCode::usage, fmt::format("{} (see '{}')", what, hint));
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& program, const std::string& name) {
  for (const CLI::App* command : commands_of(program)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// "compress, params"
std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* command : commands) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// A usage Failure when a command is missing or none, up to the first option.
void check_commands(const CLI::App& program, int argc, char** argv) {
  const CLI::App* command = &program;
  std::string above;  // " h5"
  for (int i = 1; !commands_of(*command).empty(); ++i) {
    const std::string names = names_of(commands_of(*command));
    const std::string word = i < argc ? argv[i] : "--";
    if (word == "--") {
      firn_cli::fail(ExitCode::usage, "a command is needed: {} (see 'firn help{}')", names, above);
    }
    if (word.starts_with('-')) return;
    command = find_command(*command, word);
    if (command == nullptr) {
      firn_cli::fail(ExitCode::usage, "there is no command '{}{}': {} (see 'firn help{}')",
                     above.empty() ? "" : above.substr(1) + " ", word, names, above);
    }
    above += " " + word;
  }
}

// `topic` names a command, or one within another: {"h5", "compress"}.
int show_help(const CLI::App& program, const std::vector<std::string>& topic) {
  const CLI::App* command = &program;
  std::string above;  // the words before the last
  for (const std::string& name : topic) {
    above += (above.empty() ? "" : " ") + command->get_name();
    const auto commands = commands_of(*command);
    command = find_command(*command, name);
    if (command == nullptr) {
      const std::string within = above.substr(program.get_name().size());  // " h5"
      return report_failure(ExitCode::usage,
                            fmt::format("there is no command '{}{}'{}{} (see 'firn help{}')",
                                        within.empty() ? "" : within.substr(1) + " ", name,
                                        commands.empty() ? "" : ": ", names_of(commands), within));
    }
  }
  fmt::print("{}", command->help(above));
  return 0;
}

// No argument is empty on purpose: a variable of the shell was not set.
void check_not_empty(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string before = argv[i - 1];
    const bool option = argument.starts_with("--") && argument.ends_with('=');
    if (option || (argument.empty() && before.starts_with("--"))) {
      firn_cli::fail(ExitCode::usage, "the value of {} is empty",
                     option ? argument.substr(0, argument.size() - 1) : before);
    }
    if (argument.empty()) firn_cli::fail(ExitCode::usage, "argument {} is empty", i);
  }
}

int run(int argc, char** argv) {
  CLI::App program("Firn compresses scientific floating-point fields within an error bound.",
                   "firn");
  program.footer(kFooter);
  program.set_version_flag("--version",
                           fmt::format("firn {} (SIMD: {})", firn::version(), firn::simd_target()));
  program.require_subcommand(0, 1);
  program.get_formatter()->label("REQUIRED", "");
  firn_cli::add_compress_command(program);
  firn_cli::add_decompress_command(program);
  firn_cli::add_info_command(program);
  firn_cli::add_verify_command(program);
  firn_cli::add_metrics_command(program);
  firn_cli::add_estimate_command(program);
  firn_cli::add_append_command(program);
  firn_cli::add_bench_command(program);
  firn_cli::add_h5_command(program);
  program.add_subcommand("help", "Show the commands, or the options of one");

  try {
    if (argc > 1 && argv[1] == std::string("help")) {
      return show_help(program, {argv + 2, argv + argc});
    }
    check_not_empty(argc, argv);
    check_commands(program, argc, argv);
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::vector<std::string> topic;
    for (const CLI::App* command = &program; !command->get_subcommands().empty();) {
      command = command->get_subcommands().front();
      topic.push_back(command->get_name());
    }
    return show_help(program, topic);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    return report_misuse(program, error);
  } catch (const firn_cli::Failure& failure) {
    return report_failure(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return report_failure(ExitCode::out_of_memory, "out of memory");
  }
}

}  // namespace

int main(int argc, char** argv) {
  firn_cli::handle_signals();
  const int code = run(argc, argv);
  // A report that did not reach its file is a failure too.
  if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    return report_failure(ExitCode::cannot_write,
                          fmt::format("cannot write standard output: {}", std::strerror(errno)));
  }
  return code;
}
