#include "h5_objects.hpp"

#include <fmt/format.h>

#include <map>

#include "failure.hpp"

namespace firn_cli {
namespace {

using Kind = CatalogueEntry::Kind;

struct Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
  H5T_cset_t encoding = H5T_CSET_ASCII;
  std::size_t value_size = 0;
};

std::vector<Link> links_of(hid_t group, const std::string& path) {
  std::vector<Link> links;
  const H5_index_t index = tracks_link_order(group) ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  check(
      H5Literate(
          group, index, H5_ITER_INC, nullptr,
          [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
            static_cast<std::vector<Link>*>(data)->push_back(
                {name, info->type, info->cset, info->type == H5L_TYPE_HARD ? 0 : info->u.val_size});
            return 0;
          },
          &links),
      ExitCode::cannot_read, path);
  return links;
}

class Catalogue {
 public:
  void add_group(hid_t group, const std::string& path) {
    for (const Link& link : links_of(group, path)) {
      CatalogueEntry entry;
      entry.path = path + link.name;
      entry.name_encoding = link.encoding;
      if (link.type == H5L_TYPE_HARD) {
        add_object(group, link.name, std::move(entry));
      } else {
        add_symbolic_link(group, link, std::move(entry));
      }
    }
  }

  std::map<std::string, std::string> first_paths;  // by identity
  std::vector<CatalogueEntry> entries;

 private:
  void add_object(hid_t group, const std::string& name, CatalogueEntry entry) {
    const Handle object =
        opened(H5Oopen(group, name.c_str(), H5P_DEFAULT), ExitCode::cannot_read, entry.path);
    entry.identity = identity_of(object);
    const auto [known, is_new] = first_paths.emplace(entry.identity, entry.path);
    if (!is_new) {
      entry.kind = Kind::same_object;
      entry.target = known->second;
      entries.push_back(std::move(entry));
      return;
    }
    switch (H5Iget_type(object)) {
      case H5I_GROUP:
        entry.kind = Kind::group;
        break;
      case H5I_DATASET:
        entry.kind = Kind::dataset;
        break;
      case H5I_DATATYPE:
        entry.kind = Kind::datatype;
        break;
      default:
        fail(ExitCode::unsupported, "{} is an object of a kind that cannot be copied", entry.path);
    }
    const bool is_group = entry.kind == Kind::group;
    const std::string inside = entry.path + "/";
    entries.push_back(std::move(entry));
    if (is_group) add_group(object, inside);
  }

  void add_symbolic_link(hid_t group, const Link& link, CatalogueEntry entry) {
    std::vector<char> value(link.value_size + 1, '\0');
    check(H5Lget_val(group, link.name.c_str(), value.data(), link.value_size, H5P_DEFAULT),
          ExitCode::cannot_read, entry.path);
    if (link.type == H5L_TYPE_SOFT) {
      entry.kind = Kind::soft_link;
      entry.target = value.data();
    } else if (link.type == H5L_TYPE_EXTERNAL) {
      const char* file = nullptr;
      const char* object = nullptr;
      check(H5Lunpack_elink_val(value.data(), link.value_size, nullptr, &file, &object),
            ExitCode::cannot_read, entry.path);
      entry.kind = Kind::external_link;
      entry.target_file = file;
      entry.target = object;
    } else {
      fail(ExitCode::unsupported, "{} is a link of a user-defined kind, which cannot be copied",
           entry.path);
    }
    entries.push_back(std::move(entry));
  }
};

}  // namespace

Handle opened(hid_t id, ExitCode code, const std::string& what) {
  if (id < 0) fail(code, "{}: {}", what, firn::hdf5::error_stack_text());
  return Handle(id);
}

void check(long long status, ExitCode code, const std::string& what) {
  if (status < 0) fail(code, "{}: {}", what, firn::hdf5::error_stack_text());
}

std::string identity_of(hid_t object) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  check(H5Oget_info3(object, &info, H5O_INFO_BASIC), ExitCode::cannot_read, "an object");
  return std::string(reinterpret_cast<const char*>(&info.token), sizeof info.token);
#else
  H5O_info_t info;
  check(H5Oget_info(object, &info), ExitCode::cannot_read, "an object");
  return std::to_string(info.addr);
#endif
}

bool tracks_link_order(hid_t group) {
  const Handle creation =
      opened(H5Gget_create_plist(group), ExitCode::cannot_read, "a group's properties");
  unsigned flags = 0;
  return H5Pget_link_creation_order(creation, &flags) >= 0 && (flags & H5P_CRT_ORDER_TRACKED) != 0;
}

std::vector<CatalogueEntry> list_links(hid_t file) {
  Catalogue catalogue;
  const Handle root = opened(H5Gopen2(file, "/", H5P_DEFAULT), ExitCode::cannot_read, "/");
  catalogue.first_paths.emplace(identity_of(root), "/");
  catalogue.add_group(root, "/");
  return std::move(catalogue.entries);
}

}  // namespace firn_cli
