// Where the chunks of a box of a dataset lie: in the dataset, and in the caller's memory.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "firn/direct_chunks.hpp"
#include "parameters.hpp"

namespace firn::hdf5 {

using Extents = std::vector<std::uint64_t>;

std::uint64_t product(const Extents& extents);

// An Error with what HDF5 says of the call that just failed.
Error from_hdf5(const std::string& what);

// What a dataset says of its chunks.
struct Dataset {
  hid_t id = -1;
  Extents extents;
  Extents chunk;
  FilterParameters parameters;
  std::array<std::uint8_t, 8> fill{};  // one value, in this machine's byte order

  std::size_t value_size() const { return size_of(parameters.layout.type); }
};

// Fails unless Firn is the dataset's only filter and its values are of this type.
Result<Dataset> describe(hid_t id, Type type);

// The chunks of a box, and where each lies in memory.
struct Grid {
  Extents origin;        // of the box in the dataset
  Extents extents;       // of the box
  Extents strides;       // of the box in memory
  Extents chunk;         // extents of a chunk
  Extents chunk_counts;  // along each axis

  std::uint64_t count() const { return product(chunk_counts); }
};

struct ChunkPlace {
  std::vector<hsize_t> offset;      // in the dataset
  Extents extents;                  // without padding
  std::uint64_t memory_offset = 0;  // of its first value, in values
  bool whole = true;
};

// Without a box, all chunks.
Result<Grid> make_grid(const Dataset& dataset, const Box* box);

ChunkPlace place_of(const Grid& grid, std::uint64_t number);

// The part of a chunk that is in memory, seen where it is, with the axes that the stream has. None
// when the chunk has more axes than Firn takes.
template <class Pointer>
std::optional<BasicArrayView<Pointer>> view_in_place(const Dataset& dataset, const Grid& grid,
                                                     const ChunkPlace& place, Pointer values) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>,
                                  const std::uint8_t, std::uint8_t>;
  BasicArrayView<Pointer> view;
  view.data = static_cast<Byte*>(values) + place.memory_offset * dataset.value_size();
  view.type = dataset.parameters.layout.type;
  std::array<std::int64_t, kMaxRank> strides{};
  int rank = 0;
  for (std::size_t axis = 0; axis < grid.chunk.size(); ++axis) {
    if (grid.chunk[axis] == 1) continue;
    if (rank == kMaxRank) return std::nullopt;
    view.shape.extents[rank] = place.extents[axis];
    strides[rank] = static_cast<std::int64_t>(grid.strides[axis]);
    ++rank;
  }
  if (rank == 0) {
    view.shape.extents[0] = 1;
    strides[0] = 1;
    rank = 1;
  }
  view.shape.rank = rank;
  view.strides = strides;
  return view;
}

void fill_values(std::uint8_t* values, std::uint64_t count, const Dataset& dataset);

// Between the box in memory and a whole chunk by itself, whose padding becomes fill values.
void gather(const Dataset& dataset, const Grid& grid, const ChunkPlace& place,
            const std::uint8_t* values, std::vector<std::uint8_t>& chunk);
void scatter(const Dataset& dataset, const Grid& grid, const ChunkPlace& place,
             const std::uint8_t* chunk, std::uint8_t* values);

}  // namespace firn::hdf5
