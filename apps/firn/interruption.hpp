// What must happen when the process is stopped by a signal: the unfinished output goes away.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "exit_codes.hpp"

namespace firn_cli {

// Installs the handlers: SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the unfinished output and then
// end the process as they would have; SIGBUS (a mapped file that failed to be read or written)
// gets one line and an exit code; SIGXFSZ becomes a write error.
void handle_signals();

// From here on SIGINT, SIGTERM and SIGHUP only end the input, so that what has come is kept; a
// second one ends the process as usual.
void defer_signals();
bool interrupted();  // by such a signal
// Waits until there is something to read, or the end. False when interrupted.
bool wait_for_input(int descriptor);

// The file to remove when a signal ends the process. One at a time; empty for none.
void set_unfinished_output(const std::string& path);

// Removes that file, writes the line on stderr and ends the process. For signal handlers, and where
// a Failure cannot get through.
[[noreturn]] void end_unfinished(ExitCode code, std::string_view line);

// The mapping of the unfinished output, so that a SIGBUS in it counts as a failed write.
void set_unfinished_mapping(const void* data, std::size_t size_bytes);

}  // namespace firn_cli
