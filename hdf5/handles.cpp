#include "handles.hpp"

#include <vector>

namespace firn::hdf5 {

std::string error_stack_text() {
  std::vector<std::string> lines;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
        if (error->desc != nullptr && *error->desc != '\0') {
          static_cast<std::vector<std::string>*>(data)->emplace_back(error->desc);
        }
        return 0;
      },
      &lines);
  if (lines.empty()) return "HDF5 gives no reason";
  // Upward begins at the innermost call; those in between repeat each other.
  return lines.size() == 1 || lines.front() == lines.back()
             ? lines.front()
             : lines.front() + " (" + lines.back() + ")";
}

}  // namespace firn::hdf5
