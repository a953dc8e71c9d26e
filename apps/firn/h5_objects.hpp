// What an HDF5 file holds: every link in the order in which it must be made again, and the object
// behind it.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

#include "exit_codes.hpp"
#include "hdf5/handles.hpp"

namespace firn_cli {

using firn::hdf5::Handle;

// The id as a Handle, or a Failure with HDF5's reason.
Handle opened(hid_t id, ExitCode code, const std::string& what);
// The same for calls that return a status or a count.
void check(long long status, ExitCode code, const std::string& what);

// Names an object of a file whatever link leads to it.
std::string identity_of(hid_t object);

// One link. Hard links to an object that an earlier entry made only add a name to it.
struct CatalogueEntry {
  enum class Kind { group, dataset, datatype, same_object, soft_link, external_link };
  Kind kind = Kind::group;
  std::string path;         // absolute
  std::string identity;     // of the object; empty for soft and external links
  std::string target;       // same_object: path of the first entry; soft_link: what it says
  std::string target_file;  // external_link
  H5T_cset_t name_encoding = H5T_CSET_ASCII;
};

// All links below the root group, groups before what is in them, in the order of their creation
// where the file tracks it.
std::vector<CatalogueEntry> list_links(hid_t file);

// Whether a group tracks the order of its links; decides the index to list them by.
bool tracks_link_order(hid_t group);

}  // namespace firn_cli
