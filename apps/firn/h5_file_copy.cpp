#include "h5_file_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "failure.hpp"
#include "h5_attributes.hpp"
#include "h5_output_driver.hpp"

namespace firn_cli {
namespace {

using Kind = CatalogueEntry::Kind;
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

Handle open_input(const std::string& path) {
  {
    const std::ifstream readable(path);
    if (!readable) fail(ExitCode::cannot_read, "cannot read {}: {}", path, std::strerror(errno));
  }
  if (H5Fis_hdf5(path.c_str()) <= 0) {
    fail(
        ExitCode::cannot_read,
        "{} is not an HDF5 file (a netCDF file of the classic kind is none either: 'nccopy -k nc4' "
        "converts it)",
        path);
  }
  return opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), ExitCode::cannot_read, path);
}

// Properties of the root group that only the file's creation can set.
void copy_root_properties(hid_t input, hid_t file_creation) {
  const Handle root = opened(H5Gopen2(input, "/", H5P_DEFAULT), ExitCode::cannot_read, "/");
  const Handle group_creation = opened(H5Gget_create_plist(root), ExitCode::cannot_read, "/");
  unsigned flags = 0;
  if (H5Pget_link_creation_order(group_creation, &flags) >= 0) {
    check(H5Pset_link_creation_order(file_creation, flags), ExitCode::cannot_write, "/");
  }
  if (H5Pget_attr_creation_order(group_creation, &flags) >= 0) {
    check(H5Pset_attr_creation_order(file_creation, flags), ExitCode::cannot_write, "/");
  }
}

// The copy needs no newer HDF5 to be read than the input did.
Handle access_like(hid_t input) {
  H5F_info2_t info;
  check(H5Fget_info2(input, &info), ExitCode::cannot_read, "the input's version");
  const H5F_libver_t least = info.super.version >= 3   ? H5F_LIBVER_V110
                             : info.super.version == 2 ? H5F_LIBVER_V18
                                                       : H5F_LIBVER_EARLIEST;
  Handle access = opened(H5Pcreate(H5P_FILE_ACCESS), ExitCode::cannot_write, "the output");
  check(H5Pset_libver_bounds(access, least, H5F_LIBVER_LATEST), ExitCode::cannot_write,
        "the output");
  // Closing fails if anything is still open, rather than leaving the file open.
  check(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI), ExitCode::cannot_write, "the output");
  return access;
}

hsize_t user_block_bytes(hid_t input) {
  const Handle creation = opened(H5Fget_create_plist(input), ExitCode::cannot_read, "the input");
  hsize_t size = 0;
  check(H5Pget_userblock(creation, &size), ExitCode::cannot_read, "the input");
  return size;
}

// What comes before HDF5's own part of the file; MATLAB, for one, writes its header there.
void copy_user_block(const std::string& from, OutputFile& to, hsize_t size) {
  if (size == 0) return;
  std::vector<std::uint8_t> bytes(size);
  std::ifstream source(from, std::ios::binary);
  if (!source.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
    fail(ExitCode::cannot_read, "cannot read {}", from);
  }
  to.write(bytes);
}

// One run over the catalogue, making each link and object in the output.
class Writer {
 public:
  Writer(hid_t input, hid_t output, const std::vector<CatalogueEntry>& entries, int threads,
         Progress progress)
      : input_(input),
        output_(output),
        counterparts_(input, output, entries),
        threads_(threads),
        progress_(std::move(progress)) {}

  void make(const CatalogueEntry& entry, DatasetOutcome* dataset, std::uint64_t total_bytes) {
    const std::string& path = entry.path;
    const Handle link = link_creation(entry);
    switch (entry.kind) {
      case Kind::group:
        make_group(path, link);
        break;
      case Kind::dataset:
        make_dataset(*dataset, link, total_bytes);
        break;
      case Kind::datatype: {
        const Handle type =
            opened(H5Topen2(input_, path.c_str(), H5P_DEFAULT), ExitCode::cannot_read, path);
        check(H5Olink(counterparts_.type(type), output_, path.c_str(), link, H5P_DEFAULT),
              ExitCode::cannot_write, path);
        break;
      }
      case Kind::same_object:
        check(
            H5Lcreate_hard(output_, entry.target.c_str(), output_, path.c_str(), link, H5P_DEFAULT),
            ExitCode::cannot_write, path);
        break;
      case Kind::soft_link:
        check(H5Lcreate_soft(entry.target.c_str(), output_, path.c_str(), link, H5P_DEFAULT),
              ExitCode::cannot_write, path);
        break;
      case Kind::external_link:
        check(H5Lcreate_external(entry.target_file.c_str(), entry.target.c_str(), output_,
                                 path.c_str(), link, H5P_DEFAULT),
              ExitCode::cannot_write, path);
        break;
    }
  }

  // Once every object is there, for references to point at.
  void finish(const std::string& path) {
    const Handle from =
        opened(H5Oopen(input_, path.c_str(), H5P_DEFAULT), ExitCode::cannot_read, path);
    const Handle to =
        opened(H5Oopen(output_, path.c_str(), H5P_DEFAULT), ExitCode::cannot_write, path);
    copy_attributes(from, to, path, counterparts_);
    if (std::find(values_to_copy_.begin(), values_to_copy_.end(), path) != values_to_copy_.end()) {
      copy_values(from, to, path, counterparts_);
    }
  }

 private:
  Handle link_creation(const CatalogueEntry& entry) {
    Handle link = opened(H5Pcreate(H5P_LINK_CREATE), ExitCode::cannot_write, entry.path);
    check(H5Pset_char_encoding(link, entry.name_encoding), ExitCode::cannot_write, entry.path);
    return link;
  }

  void make_group(const std::string& path, hid_t link) {
    const Handle group =
        opened(H5Gopen2(input_, path.c_str(), H5P_DEFAULT), ExitCode::cannot_read, path);
    const Handle properties = opened(H5Gget_create_plist(group), ExitCode::cannot_read, path);
    // Only what is asked for: the list as a whole would carry the addresses of the input's links.
    const Handle creation = opened(H5Pcreate(H5P_GROUP_CREATE), ExitCode::cannot_write, path);
    unsigned flags = 0;
    if (H5Pget_link_creation_order(properties, &flags) >= 0) {
      check(H5Pset_link_creation_order(creation, flags), ExitCode::cannot_write, path);
    }
    if (H5Pget_attr_creation_order(properties, &flags) >= 0) {
      check(H5Pset_attr_creation_order(creation, flags), ExitCode::cannot_write, path);
    }
    opened(H5Gcreate2(output_, path.c_str(), link, creation, H5P_DEFAULT), ExitCode::cannot_write,
           path);
  }

  void make_dataset(DatasetOutcome& outcome, hid_t link, std::uint64_t total_bytes) {
    const std::string& path = outcome.path;
    const Handle dataset =
        opened(H5Dopen2(input_, path.c_str(), H5P_DEFAULT), ExitCode::cannot_read, path);
    const Handle type = opened(H5Dget_type(dataset), ExitCode::cannot_read, path);
    if (outcome.treatment.compress) {
      const Handle output_type = counterparts_.type(type);
      outcome.result =
          compress_dataset(dataset, output_, path, output_type, link, outcome.treatment, threads_,
                           [&](std::uint64_t done) { progress_(done_bytes_ + done, total_bytes); });
    } else if (H5Tcommitted(type) > 0 || holds_references(type)) {
      const Handle output_type = counterparts_.type(type);
      const Handle space = opened(H5Dget_space(dataset), ExitCode::cannot_read, path);
      const Handle creation = opened(H5Dget_create_plist(dataset), ExitCode::cannot_read, path);
      opened(H5Dcreate2(output_, path.c_str(), output_type, space, link, creation, H5P_DEFAULT),
             ExitCode::cannot_write, path);
      values_to_copy_.push_back(path);
    } else {
      // Moves the stored bytes, whatever filters made them.
      const Handle copy = opened(H5Pcreate(H5P_OBJECT_COPY), ExitCode::cannot_write, path);
      check(H5Pset_copy_object(copy, H5O_COPY_WITHOUT_ATTR_FLAG), ExitCode::cannot_write, path);
      check(H5Ocopy(input_, path.c_str(), output_, path.c_str(), copy, link),
            ExitCode::cannot_write, path);
    }
    done_bytes_ += outcome.treatment.original_bytes;
    progress_(done_bytes_, total_bytes);
  }

  hid_t input_;
  hid_t output_;
  Counterparts counterparts_;
  int threads_;
  Progress progress_;
  std::uint64_t done_bytes_ = 0;
  std::vector<std::string> values_to_copy_;
};

}  // namespace

H5FileCopy::H5FileCopy(const std::string& input_path, const CompressionRequest& request)
    : input_path_(input_path), input_(open_input(input_path)), entries_(list_links(input_)) {
  for (const CatalogueEntry& entry : entries_) {
    if (entry.kind != Kind::dataset) continue;
    const Handle dataset = opened(H5Dopen2(input_, entry.path.c_str(), H5P_DEFAULT),
                                  ExitCode::cannot_read, entry.path);
    datasets_.push_back({entry.path, choose_treatment(dataset, entry.path, request), {}});
  }
}

void H5FileCopy::write(OutputFile& file, int threads, const Progress& progress) {
  const Handle creation = opened(H5Fget_create_plist(input_), ExitCode::cannot_read, input_path_);
  copy_root_properties(input_, creation);
  const Handle access = access_like(input_);
  write_through(access, file);
  Handle output = opened(H5Fcreate(file.name().c_str(), H5F_ACC_TRUNC, creation, access),
                         ExitCode::cannot_write, file.name());
  std::uint64_t total_bytes = 0;
  for (const DatasetOutcome& dataset : datasets_) total_bytes += dataset.treatment.original_bytes;
  {
    Writer writer(input_, output, entries_, threads, progress);
    auto dataset = datasets_.begin();
    for (const CatalogueEntry& entry : entries_) {
      writer.make(entry, entry.kind == Kind::dataset ? &*dataset++ : nullptr, total_bytes);
    }
    writer.finish("/");
    for (const CatalogueEntry& entry : entries_) {
      const bool is_object =
          entry.kind == Kind::group || entry.kind == Kind::dataset || entry.kind == Kind::datatype;
      if (is_object) writer.finish(entry.path);
    }
  }
  if (H5Fflush(output, H5F_SCOPE_GLOBAL) < 0 || !output.close()) {
    fail(ExitCode::cannot_write, "{}: {}", file.name(), firn::hdf5::error_stack_text());
  }
  copy_user_block(input_path_, file, user_block_bytes(input_));
}

}  // namespace firn_cli
