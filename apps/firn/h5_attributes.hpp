// What ties the objects of an HDF5 file together besides links: references, committed types, and
// the attributes that hold them.
#pragma once

#include <hdf5.h>

#include <map>
#include <string>
#include <vector>

#include "h5_objects.hpp"

namespace firn_cli {

// Finds in the output what belongs to something in the input. Objects keep their paths.
class Counterparts {
 public:
  Counterparts(hid_t input, hid_t output, const std::vector<CatalogueEntry>& entries);

  // A type for the output file: the copy of a committed type, which this makes when it is first
  // needed and which gets its link later; any other type as it is.
  Handle type(hid_t input_type);

  // Turns the references within one value, in memory, into references within the output. One to an
  // object that no link leads to becomes a null reference.
  void translate_references(hid_t type, void* value) const;

 private:
  void translate_reference(hid_t type, void* value) const;

  hid_t input_;
  hid_t output_;
  std::map<std::string, std::string> paths_;  // by identity in the input
  std::map<std::string, Handle> committed_types_;
};

// All attributes and the comment, in the order of the attributes' creation where that is tracked.
void copy_attributes(hid_t from, hid_t to, const std::string& path, Counterparts& counterparts);

// Whether values of the type hold references anywhere within.
bool holds_references(hid_t type);

// The values of a dataset whose type needs Counterparts, from the input's to the output's.
void copy_values(hid_t from, hid_t to, const std::string& path, const Counterparts& counterparts);

}  // namespace firn_cli
