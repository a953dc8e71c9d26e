#include "h5_treatment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "failure.hpp"
#include "firn/hdf5_parameters.h"
#include "h5_objects.hpp"

namespace firn_cli {
namespace {

// Below this a chunk index and a stream's header take more than compression gains.
constexpr std::uint64_t kLeastBytes = 4096;
// Chunks below this are not worth keeping: each pays for a header and an index entry.
constexpr std::uint64_t kLeastChunkBytes = 16384;
// HDF5's chunk cache holds 1 MiB unless the reader enlarges it.
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 20;

std::optional<firn::Type> float_type(hid_t type) {
  if (H5Tget_class(type) != H5T_FLOAT) return std::nullopt;
  for (const hid_t single : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
    if (H5Tequal(type, single) > 0) return firn::Type::f32;
  }
  for (const hid_t wide : {H5T_IEEE_F64LE, H5T_IEEE_F64BE}) {
    if (H5Tequal(type, wide) > 0) return firn::Type::f64;
  }
  return std::nullopt;
}

bool is_dimension_scale(hid_t dataset) {
  if (H5Aexists(dataset, "CLASS") <= 0) return false;
  const Handle attribute(H5Aopen(dataset, "CLASS", H5P_DEFAULT));
  const Handle type(H5Aget_type(attribute));
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0) return false;
  std::string text(H5Tget_size(type), '\0');
  const Handle space(H5Aget_space(attribute));
  if (H5Sget_simple_extent_npoints(space) != 1) return false;
  return H5Aread(attribute, type, text.data()) >= 0 && text.starts_with("DIMENSION_SCALE");
}

// A numeric attribute of one value.
std::optional<double> number_attribute(hid_t dataset, const char* name) {
  if (H5Aexists(dataset, name) <= 0) return std::nullopt;
  const Handle attribute(H5Aopen(dataset, name, H5P_DEFAULT));
  const Handle type(H5Aget_type(attribute));
  const Handle space(H5Aget_space(attribute));
  const H5T_class_t kind = H5Tget_class(type);
  double value = 0;
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || H5Sget_simple_extent_npoints(space) != 1 ||
      H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0 || std::isnan(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> chosen_fill(hid_t creation) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  double fill = 0;
  if (H5Pfill_value_defined(creation, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED ||
      H5Pget_fill_value(creation, H5T_NATIVE_DOUBLE, &fill) < 0 || std::isnan(fill)) {
    return std::nullopt;
  }
  return fill;
}

// What the dataset and its attributes say, each once, as a value of its type can say it.
std::vector<double> missing_values(hid_t dataset, hid_t creation, firn::Type type) {
  std::vector<double> missing;
  for (const std::optional<double>& said :
       {chosen_fill(creation), number_attribute(dataset, "_FillValue"),
        number_attribute(dataset, "missing_value")}) {
    if (!said) continue;
    const double value =
        type == firn::Type::f32 ? static_cast<double>(static_cast<float>(*said)) : *said;
    if (std::find(missing.begin(), missing.end(), value) == missing.end()) missing.push_back(value);
  }
  return missing;
}

bool has_filter(hid_t creation, H5Z_filter_t wanted) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0;
    std::size_t count = 0;
    if (H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &count, nullptr, 0, nullptr,
                       nullptr) == wanted) {
      return true;
    }
  }
  return false;
}

std::uint64_t product(const std::vector<std::uint64_t>& extents) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) count *= extent;
  return count;
}

// Near-cubic boxes of at most kMostChunkBytes that leave little padding at the far ends.
std::vector<std::uint64_t> choose_chunk(const std::vector<std::uint64_t>& extents,
                                        std::size_t value_size) {
  std::vector<std::uint64_t> chunk = extents;
  while (product(chunk) * value_size > kMostChunkBytes) {
    const auto largest = std::max_element(chunk.begin(), chunk.end());
    *largest = (*largest + 1) / 2;
  }
  for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
    const std::uint64_t count = (extents[axis] + chunk[axis] - 1) / chunk[axis];
    chunk[axis] = (extents[axis] + count - 1) / count;
  }
  return chunk;
}

std::vector<std::uint64_t> chunk_for(hid_t creation, const Treatment& treatment,
                                     const DatasetRule* rule, const std::string& path) {
  const std::size_t rank = treatment.extents.size();
  if (rule != nullptr && !rule->chunk.empty()) {
    if (rule->chunk.size() != rank) {
      fail(ExitCode::usage, "the rule on line {} gives chunks of {} axes, but {} has {}",
           rule->line, rule->chunk.size(), path, rank);
    }
    std::vector<std::uint64_t> chunk = rule->chunk;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      chunk[axis] = std::min(chunk[axis], treatment.extents[axis]);
    }
    return chunk;
  }
  const std::size_t value_size = firn::size_of(treatment.type);
  if (H5Pget_layout(creation) == H5D_CHUNKED) {
    std::vector<hsize_t> extents(rank);
    H5Pget_chunk(creation, static_cast<int>(rank), extents.data());
    const std::vector<std::uint64_t> chunk(extents.begin(), extents.end());
    if (product(chunk) * value_size >= kLeastChunkBytes) return chunk;
  }
  return choose_chunk(treatment.extents, value_size);
}

// Empty when the dataset can be compressed; fills what the treatment says of the dataset.
std::string why_not(hid_t dataset, hid_t creation, Treatment& treatment) {
  const Handle type(H5Dget_type(dataset));
  const Handle space(H5Dget_space(dataset));
  treatment.stored_bytes = H5Dget_storage_size(dataset);
  if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) {
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    treatment.extents.assign(extents.begin(), extents.end());
  }
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  treatment.original_bytes = static_cast<std::uint64_t>(std::max<hssize_t>(count, 0)) *
                             static_cast<std::uint64_t>(H5Tget_size(type));
  const std::optional<firn::Type> known = float_type(type);
  if (!known) return H5Tget_class(type) == H5T_FLOAT ? "neither f32 nor f64" : "not floating-point";
  treatment.type = *known;
  if (H5Pget_layout(creation) == H5D_VIRTUAL) return "virtual: its values are elsewhere";
  if (H5Pget_external_count(creation) > 0) return "its values are in an external file";
  if (has_filter(creation, FIRN_HDF5_FILTER_ID)) return "compressed by Firn before";
  if (treatment.extents.empty() || count <= 0) return "a single value, or none";
  if (treatment.original_bytes < kLeastBytes) return "too small to gain";
  if (treatment.stored_bytes == 0) return "never written";
  return "";
}

}  // namespace

Treatment choose_treatment(hid_t dataset, const std::string& path,
                           const CompressionRequest& request) {
  Treatment treatment;
  const Handle creation =
      opened(H5Dget_create_plist(dataset), ExitCode::cannot_read, path + ": its properties");
  treatment.reason = why_not(dataset, creation, treatment);
  if (!treatment.reason.empty()) return treatment;

  const DatasetRule* rule = request.rules.find(path);
  if (rule != nullptr && !rule->bound) {
    treatment.reason = fmt::format("rule on line {}: skip", rule->line);
    return treatment;
  }
  if (rule == nullptr && !request.bound) {
    treatment.reason = "no rule for it";
    return treatment;
  }
  treatment.compress = true;
  treatment.preset = rule != nullptr && rule->preset ? *rule->preset : request.preset;
  if (rule != nullptr) {
    treatment.bound = *rule->bound;
    treatment.reason = fmt::format("rule on line {}", rule->line);
  } else if (is_dimension_scale(dataset)) {
    // Coordinates are looked up by value and must stay in order: no bound for data suits them.
    treatment.bound = firn::Bound::lossless();
    treatment.reason = "dimension scale";
  } else {
    treatment.bound = *request.bound;
  }

  if (rule != nullptr && rule->fill) {
    treatment.missing = {*rule->fill};
  } else {
    treatment.missing = missing_values(dataset, creation, treatment.type);
  }
  treatment.chunk = chunk_for(creation, treatment, rule, path);
  return treatment;
}

}  // namespace firn_cli
