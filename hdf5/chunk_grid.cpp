#include "chunk_grid.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "firn/hdf5_parameters.h"
#include "handles.hpp"

namespace firn::hdf5 {
namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }

// Values between neighbours along each axis of a row-major array.
Extents strides_of(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * extents[axis];
  }
  return strides;
}

// Calls visit(offset in a, offset in b) for the start of each row of `extents`.
template <class Visit>
void for_each_row(const Extents& extents, const Extents& strides_a, const Extents& strides_b,
                  const Visit& visit) {
  Extents position(extents.size(), 0);
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  for (;;) {
    visit(a, b);
    std::size_t axis = extents.size() - 1;
    for (;;) {
      if (axis-- == 0) return;
      a += strides_a[axis];
      b += strides_b[axis];
      if (++position[axis] < extents[axis]) break;
      a -= strides_a[axis] * extents[axis];
      b -= strides_b[axis] * extents[axis];
      position[axis] = 0;
    }
  }
}

}  // namespace

std::uint64_t product(const Extents& extents) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) count *= extent;
  return count;
}

Error from_hdf5(const std::string& what) {
  return {ErrorCode::unsupported, what + ": " + error_stack_text()};
}

Result<Dataset> describe(hid_t id, Type type) {
  Dataset dataset;
  dataset.id = id;
  const Handle space(H5Dget_space(id));
  const Handle creation(H5Dget_create_plist(id));
  if (!space.valid() || !creation.valid()) return from_hdf5("not an HDF5 dataset");
  if (H5Pget_layout(creation) != H5D_CHUNKED) {
    return unsupported("the dataset is not chunked, so it has no filter");
  }
  std::array<unsigned, kMaxParameterWords> words{};
  std::size_t count = words.size();
  unsigned flags = 0;
  if (H5Pget_nfilters(creation) != 1 ||
      H5Pget_filter_by_id2(creation, FIRN_HDF5_FILTER_ID, &flags, &count, words.data(), 0, nullptr,
                           nullptr) < 0) {
    return unsupported("only a dataset whose one filter is Firn can be written or read this way");
  }
  Result<FilterParameters> parameters =
      parse_parameters({words.data(), std::min(count, words.size())});
  if (!parameters) return parameters.error();
  if (!parameters->stored()) return invalid("the dataset was created without the Firn filter");
  dataset.parameters = *parameters;
  if (parameters->layout.type != type) {
    return invalid(std::string("the dataset holds ") + name_of(parameters->layout.type) +
                   " values, the memory " + name_of(type));
  }

  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 1) return from_hdf5("the dataset's extents");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  std::vector<hsize_t> chunk(static_cast<std::size_t>(rank));
  if (H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0 ||
      H5Pget_chunk(creation, rank, chunk.data()) < 0) {
    return from_hdf5("the dataset's extents");
  }
  dataset.extents.assign(extents.begin(), extents.end());
  dataset.chunk.assign(chunk.begin(), chunk.end());
  if (product(dataset.chunk) != parameters->layout.shape.count()) {
    return Error{ErrorCode::corrupt,
                 "the Firn filter's parameters do not fit the dataset's chunks"};
  }
  if (H5Pget_fill_value(creation, type == Type::f32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
                        dataset.fill.data()) < 0) {
    dataset.fill.fill(0);  // declared to be undefined
  }
  return dataset;
}

Result<Grid> make_grid(const Dataset& dataset, const Box* box) {
  Grid grid;
  const std::size_t rank = dataset.extents.size();
  grid.chunk = dataset.chunk;
  grid.chunk_counts.resize(rank);
  if (box == nullptr) {
    grid.origin.resize(rank);
    grid.extents = dataset.extents;
  } else {
    grid.origin = box->origin;
    grid.extents = box->extents;
  }
  if (grid.origin.size() != rank || grid.extents.size() != rank) {
    return invalid("the box has another rank than the dataset, which has " + std::to_string(rank));
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::uint64_t extent = dataset.extents[axis];
    const std::string where = "axis " + std::to_string(axis) + " of the box";
    if (grid.origin[axis] > extent || grid.extents[axis] > extent - grid.origin[axis]) {
      return invalid(where + " reaches beyond the dataset's " + std::to_string(extent));
    }
    const std::uint64_t end = grid.origin[axis] + grid.extents[axis];
    if (grid.origin[axis] % grid.chunk[axis] != 0 ||
        (end % grid.chunk[axis] != 0 && end != extent)) {
      return invalid(where + " does not begin and end with chunks of " +
                     std::to_string(grid.chunk[axis]));
    }
    grid.chunk_counts[axis] = (grid.extents[axis] + grid.chunk[axis] - 1) / grid.chunk[axis];
  }
  grid.strides = strides_of(grid.extents);
  return grid;
}

ChunkPlace place_of(const Grid& grid, std::uint64_t number) {
  const std::size_t rank = grid.chunk.size();
  ChunkPlace place;
  place.offset.resize(rank);
  place.extents.resize(rank);
  for (std::size_t axis = rank; axis-- > 0;) {
    const std::uint64_t first = number % grid.chunk_counts[axis] * grid.chunk[axis];
    number /= grid.chunk_counts[axis];
    place.offset[axis] = grid.origin[axis] + first;
    place.extents[axis] = std::min(grid.chunk[axis], grid.extents[axis] - first);
    place.memory_offset += first * grid.strides[axis];
    place.whole = place.whole && place.extents[axis] == grid.chunk[axis];
  }
  return place;
}

void fill_values(std::uint8_t* values, std::uint64_t count, const Dataset& dataset) {
  const std::size_t size = dataset.value_size();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(values + i * size, dataset.fill.data(), size);
  }
}

void gather(const Dataset& dataset, const Grid& grid, const ChunkPlace& place,
            const std::uint8_t* values, std::vector<std::uint8_t>& chunk) {
  const std::size_t size = dataset.value_size();
  const std::uint64_t count = product(grid.chunk);
  chunk.resize(count * size);
  if (!place.whole) fill_values(chunk.data(), count, dataset);
  for_each_row(place.extents, strides_of(grid.chunk), grid.strides,
               [&](std::uint64_t in_chunk, std::uint64_t in_memory) {
                 std::memcpy(chunk.data() + in_chunk * size,
                             values + (place.memory_offset + in_memory) * size,
                             place.extents.back() * size);
               });
}

void scatter(const Dataset& dataset, const Grid& grid, const ChunkPlace& place,
             const std::uint8_t* chunk, std::uint8_t* values) {
  const std::size_t size = dataset.value_size();
  for_each_row(place.extents, strides_of(grid.chunk), grid.strides,
               [&](std::uint64_t in_chunk, std::uint64_t in_memory) {
                 std::memcpy(values + (place.memory_offset + in_memory) * size,
                             chunk + in_chunk * size, place.extents.back() * size);
               });
}

}  // namespace firn::hdf5
