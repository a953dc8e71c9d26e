// The numbers that HDF5 keeps with the filter (cd_values). Users give a short form; the filter
// rewrites it, when a dataset is created, into the stored form, which says all that decoding needs.
// docs/hdf5-and-netcdf.md, "Parameters", specifies both. Nothing here needs HDF5.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "firn/firn.hpp"

namespace firn::hdf5 {

// What a user asks for.
struct FilterRequest {
  Bound bound;
  Preset preset = Preset::balanced;
  Pipeline pipeline = Pipeline::automatic;
  std::optional<double> fill;  // given by the user, before the dataset's own
};

// What the dataset adds: how a chunk's bytes are to be understood.
struct ChunkLayout {
  Type type = Type::f32;
  bool big_endian = false;
  Shape shape;                 // as Firn sees a chunk
  std::optional<double> fill;  // the dataset's own

  std::uint64_t size_bytes() const { return shape.count() * size_of(type); }
};

struct FilterParameters {
  FilterRequest request;
  ChunkLayout layout;  // rank 0 when the parameters are a user's

  bool stored() const { return layout.shape.rank > 0; }
  Options options() const;
};

// Most words that stored_parameters() returns. More would not do: h5py reads no more than these.
inline constexpr std::size_t kMaxParameterWords = 16;

// Reads either form.
Result<FilterParameters> parse_parameters(std::span<const unsigned> words);

// The shortest form for a user to pass on.
std::vector<unsigned> user_parameters(const FilterRequest& request);
std::vector<unsigned> stored_parameters(const FilterParameters& parameters);

// An HDF5 chunk as Firn sees it: extents of 1 dropped, then the slowest merged until four are left.
Shape chunk_shape(std::span<const unsigned long long> extents);

// Swaps the bytes of each value.
void swap_bytes(void* values, std::uint64_t count, Type type);

}  // namespace firn::hdf5
