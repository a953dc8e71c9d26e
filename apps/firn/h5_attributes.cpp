#include "h5_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "failure.hpp"
#include "h5_values.hpp"

namespace firn_cli {
namespace {

// Memory for values of a type. What HDF5 allocates within (variable-length parts) is freed with it.
class ValueBuffer {
 public:
  ValueBuffer(hid_t type, hid_t space)
      : type_(type), space_(space), value_size_(H5Tget_size(type)) {
    count_ = static_cast<std::size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space)));
    bytes_.resize(std::max<std::size_t>(1, count_ * value_size_));
  }
  ValueBuffer(const ValueBuffer&) = delete;
  ValueBuffer& operator=(const ValueBuffer&) = delete;
  ~ValueBuffer() {
    if (count_ > 0) H5Dvlen_reclaim(type_, space_, H5P_DEFAULT, bytes_.data());
  }

  void* data() { return bytes_.data(); }
  std::size_t count() const { return count_; }
  void* value(std::size_t i) { return bytes_.data() + i * value_size_; }

 private:
  hid_t type_;
  hid_t space_;
  std::size_t value_size_;
  std::size_t count_ = 0;
  std::vector<std::uint8_t> bytes_;
};

std::vector<std::string> attribute_names(hid_t object, const std::string& path) {
  unsigned flags = 0;
  Handle creation;
  switch (H5Iget_type(object)) {
    case H5I_GROUP:
      creation = Handle(H5Gget_create_plist(object));
      break;
    case H5I_DATASET:
      creation = Handle(H5Dget_create_plist(object));
      break;
    default:
      creation = Handle(H5Tget_create_plist(object));
      break;
  }
  H5Pget_attr_creation_order(creation, &flags);
  const H5_index_t index =
      (flags & H5P_CRT_ORDER_TRACKED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  std::vector<std::string> names;
  check(H5Aiterate2(
            object, index, H5_ITER_INC, nullptr,
            [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
              static_cast<std::vector<std::string>*>(data)->emplace_back(name);
              return 0;
            },
            &names),
        ExitCode::cannot_read, path);
  return names;
}

void copy_attribute(hid_t from, hid_t to, const std::string& name, const std::string& where,
                    Counterparts& counterparts) {
  const Handle source =
      opened(H5Aopen(from, name.c_str(), H5P_DEFAULT), ExitCode::cannot_read, where);
  const Handle file_type = opened(H5Aget_type(source), ExitCode::cannot_read, where);
  const Handle space = opened(H5Aget_space(source), ExitCode::cannot_read, where);
  const Handle creation = opened(H5Aget_create_plist(source), ExitCode::cannot_read, where);
  const Handle output_type = counterparts.type(file_type);
  const Handle copy =
      opened(H5Acreate2(to, name.c_str(), output_type, space, creation, H5P_DEFAULT),
             ExitCode::cannot_write, where);
  if (H5Sget_simple_extent_npoints(space) <= 0) return;
  // Memory with the file's own layout: nothing is converted.
  const Handle memory_type = opened(H5Tcopy(file_type), ExitCode::cannot_read, where);
  ValueBuffer values(memory_type, space);
  check(H5Aread(source, memory_type, values.data()), ExitCode::cannot_read, where);
  if (holds_references(memory_type)) {
    for (std::size_t i = 0; i < values.count(); ++i) {
      counterparts.translate_references(memory_type, values.value(i));
    }
  }
  check(H5Awrite(copy, memory_type, values.data()), ExitCode::cannot_write, where);
}

void copy_comment(hid_t from, hid_t to, const std::string& path) {
  const ssize_t length = H5Oget_comment(from, nullptr, 0);
  if (length <= 0) return;
  std::string comment(static_cast<std::size_t>(length) + 1, '\0');
  H5Oget_comment(from, comment.data(), comment.size());
  check(H5Oset_comment(to, comment.c_str()), ExitCode::cannot_write, path);
}

}  // namespace

Counterparts::Counterparts(hid_t input, hid_t output, const std::vector<CatalogueEntry>& entries)
    : input_(input), output_(output) {
  const Handle root = opened(H5Oopen(input, "/", H5P_DEFAULT), ExitCode::cannot_read, "/");
  paths_.emplace(identity_of(root), "/");
  for (const CatalogueEntry& entry : entries) {
    if (!entry.identity.empty()) paths_.emplace(entry.identity, entry.path);
  }
}

Handle Counterparts::type(hid_t input_type) {
  if (H5Tcommitted(input_type) <= 0) {
    return opened(H5Tcopy(input_type), ExitCode::cannot_read, "a type");
  }
  Handle& committed = committed_types_[identity_of(input_type)];
  if (!committed.valid()) {
    const Handle creation =
        opened(H5Tget_create_plist(input_type), ExitCode::cannot_read, "a committed type");
    // A copy of a committed type is not committed itself.
    committed = opened(H5Tcopy(input_type), ExitCode::cannot_read, "a committed type");
    check(H5Tcommit_anon(output_, committed, creation, H5P_DEFAULT), ExitCode::cannot_write,
          "a committed type");
  }
  check(H5Iinc_ref(committed), ExitCode::cannot_read, "a committed type");
  return Handle(static_cast<hid_t>(committed));
}

void Counterparts::translate_reference(hid_t type, void* value) const {
  const bool is_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
  if (!is_region && H5Tequal(type, H5T_STD_REF_OBJ) <= 0) {
    fail(ExitCode::unsupported, "the file holds references of a kind that cannot be copied");
  }
  const H5R_type_t kind = is_region ? H5R_DATASET_REGION : H5R_OBJECT;
  const std::size_t size = is_region ? sizeof(hdset_reg_ref_t) : sizeof(hobj_ref_t);
  const std::vector<std::uint8_t> null(size, 0);
  if (std::memcmp(value, null.data(), size) == 0) return;
  const Handle object(H5Rdereference2(input_, H5P_DEFAULT, kind, value));
  const auto path = object.valid() ? paths_.find(identity_of(object)) : paths_.end();
  if (path == paths_.end()) {
    std::memset(value, 0, size);
    return;
  }
  Handle region;
  if (is_region) {
    region = opened(H5Rget_region(input_, kind, value), ExitCode::cannot_read,
                    "a region reference to " + path->second);
  }
  check(H5Rcreate(value, output_, path->second.c_str(), kind, region), ExitCode::cannot_write,
        "a reference to " + path->second);
}

void Counterparts::translate_references(hid_t type, void* value) const {
  auto* bytes = static_cast<std::uint8_t*>(value);
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE:
      translate_reference(type, value);
      break;
    case H5T_COMPOUND:
      for (int i = 0; i < H5Tget_nmembers(type); ++i) {
        const auto member = static_cast<unsigned>(i);
        const Handle member_type(H5Tget_member_type(type, member));
        translate_references(member_type, bytes + H5Tget_member_offset(type, member));
      }
      break;
    case H5T_ARRAY: {
      const Handle element(H5Tget_super(type));
      const std::size_t size = H5Tget_size(element);
      for (std::size_t at = 0; at < H5Tget_size(type); at += size) {
        translate_references(element, bytes + at);
      }
      break;
    }
    case H5T_VLEN: {
      const Handle element(H5Tget_super(type));
      const std::size_t size = H5Tget_size(element);
      hvl_t sequence;
      std::memcpy(&sequence, value, sizeof sequence);
      for (std::size_t i = 0; i < sequence.len; ++i) {
        translate_references(element, static_cast<std::uint8_t*>(sequence.p) + i * size);
      }
      break;
    }
    default:
      break;
  }
}

bool holds_references(hid_t type) { return H5Tdetect_class(type, H5T_REFERENCE) > 0; }

void copy_attributes(hid_t from, hid_t to, const std::string& path, Counterparts& counterparts) {
  for (const std::string& name : attribute_names(from, path)) {
    copy_attribute(from, to, name, fmt::format("attribute {} of {}", name, path), counterparts);
  }
  copy_comment(from, to, path);
}

void copy_values(hid_t from, hid_t to, const std::string& path, const Counterparts& counterparts) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  const Handle creation = opened(H5Dget_create_plist(from), ExitCode::cannot_read, path);
  if (H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) > 0) return;
  if (H5Dget_storage_size(from) == 0) return;
  const Handle file_type = opened(H5Dget_type(from), ExitCode::cannot_read, path);
  const Handle type = opened(H5Tcopy(file_type), ExitCode::cannot_read, path);
  const Handle space = opened(H5Dget_space(from), ExitCode::cannot_read, path);
  const int rank = H5Sget_simple_extent_ndims(space);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count <= 0) return;

  const auto move = [&](hid_t memory_space, hid_t file_space) {
    ValueBuffer values(type, memory_space);
    check(H5Dread(from, type, memory_space, file_space, H5P_DEFAULT, values.data()),
          ExitCode::cannot_read, path);
    if (holds_references(type)) {
      for (std::size_t i = 0; i < values.count(); ++i) {
        counterparts.translate_references(type, values.value(i));
      }
    }
    check(H5Dwrite(to, type, memory_space, file_space, H5P_DEFAULT, values.data()),
          ExitCode::cannot_write, path);
  };
  if (rank == 0) {
    move(space, space);
    return;
  }
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  const std::vector<std::uint64_t> extents(dims.begin(), dims.end());
  std::vector<std::uint64_t> chunk(extents.size(), 1);
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    H5Pget_chunk(creation, rank, dims.data());
    chunk.assign(dims.begin(), dims.end());
  }
  for (const firn::hdf5::Box& box : boxes_of(extents, chunk, kMostBytes / H5Tget_size(type))) {
    const std::vector<hsize_t> origin(box.origin.begin(), box.origin.end());
    const std::vector<hsize_t> size(box.extents.begin(), box.extents.end());
    const Handle memory_space =
        opened(H5Screate_simple(rank, size.data(), nullptr), ExitCode::cannot_read, path);
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, origin.data(), nullptr, size.data(), nullptr),
          ExitCode::cannot_read, path);
    move(memory_space, space);
  }
}

}  // namespace firn_cli
