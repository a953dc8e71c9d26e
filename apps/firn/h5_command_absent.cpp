// Stands in for h5_command.cpp where Firn is built without HDF5.
#include "commands.hpp"
#include "failure.hpp"

namespace firn_cli {

void add_h5_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("h5", "HDF5 and netCDF-4 files (this build has no HDF5)");
  command->allow_extras();
  command->callback([] {
    fail(ExitCode::unsupported, "this firn was built without HDF5 (cmake -DFIRN_WITH_HDF5=ON)");
  });
}

}  // namespace firn_cli
