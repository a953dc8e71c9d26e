#include "firn/direct_chunks.hpp"

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "filter.hpp"
#include "firn/hdf5_parameters.h"
#include "handles.hpp"
#include "parameters.hpp"

namespace firn::hdf5 {
namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }
Error from_hdf5(const std::string& what) {
  return {ErrorCode::unsupported, what + ": " + error_stack_text()};
}

using Extents = std::vector<std::uint64_t>;

std::uint64_t product(const Extents& extents) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) count *= extent;
  return count;
}

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

// What a dataset says of its chunks.
struct Dataset {
  hid_t id = -1;
  Extents extents;
  Extents chunk;
  FilterParameters parameters;
  std::array<std::uint8_t, 8> fill{};  // one value, in this machine's byte order

  std::size_t value_size() const { return size_of(parameters.layout.type); }
};

Result<Dataset> describe(hid_t id, Type type) {
  Dataset dataset;
  dataset.id = id;
  const Handle space(H5Dget_space(id));
  const Handle creation(H5Dget_create_plist(id));
  if (!space.valid() || !creation.valid()) return from_hdf5("not an HDF5 dataset");
  if (H5Pget_layout(creation) != H5D_CHUNKED) {
    return unsupported("the dataset is not chunked, so it has no filter");
  }
  std::array<unsigned, 32> words{};
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

void fill_values(std::uint8_t* values, std::uint64_t count, const Dataset& dataset) {
  const std::size_t size = dataset.value_size();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(values + i * size, dataset.fill.data(), size);
  }
}

// Between the box in memory and a whole chunk by itself.
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

// One chunk on its way, with memory that the next one uses again.
struct Parcel {
  ChunkPlace place;
  std::vector<std::uint8_t> values;
  std::vector<std::uint8_t> stream;
  std::size_t stream_size = 0;
  std::uint32_t filter_mask = 0;
  Compressor compressor;
  Decompressor decompressor;
};

// The chunks of one call: parcels, the first error, progress.
class Shipment {
 public:
  Shipment(const Execution& execution, const Grid& grid, std::size_t value_size)
      : execution_(execution),
        count_(grid.count()),
        value_size_(value_size),
        total_bytes_(product(grid.extents) * value_size) {
    threads_ = execution.threads > 0 ? execution.threads : oneapi::tbb::info::default_concurrency();
    parcels_.resize(std::min<std::uint64_t>(2 * static_cast<std::uint64_t>(threads_), count_));
    for (Parcel& parcel : parcels_) free_.push(&parcel);
  }

  // Runs the stages over all chunks; each returns an Error or nothing. `first` and `last` are each
  // called by one thread at a time, in the order of the chunks; `middle` by many.
  template <class First, class Middle, class Last>
  Status run(const First& first, const Middle& middle, const Last& last) {
    namespace tbb = oneapi::tbb;
    std::uint64_t next = 0;
    try {
      tbb::task_arena arena(threads_);
      arena.execute([&] {
        tbb::parallel_pipeline(
            parcels_.size(),
            tbb::make_filter<void, Parcel*>(tbb::filter_mode::serial_in_order,
                                            [&](tbb::flow_control& control) -> Parcel* {
                                              Parcel* parcel = nullptr;
                                              if (next == count_ || failed() ||
                                                  !free_.try_pop(parcel)) {
                                                control.stop();
                                                return nullptr;
                                              }
                                              step(*parcel, [&] { return first(next++, *parcel); });
                                              return parcel;
                                            }) &
                tbb::make_filter<Parcel*, Parcel*>(tbb::filter_mode::parallel,
                                                   [&](Parcel* parcel) {
                                                     step(*parcel, [&] { return middle(*parcel); });
                                                     return parcel;
                                                   }) &
                tbb::make_filter<Parcel*, void>(tbb::filter_mode::serial_in_order,
                                                [&](Parcel* parcel) {
                                                  step(*parcel, [&] { return last(*parcel); });
                                                  report(*parcel);
                                                  free_.push(parcel);
                                                }));
      });
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "out of memory"};
    }
    if (error_) return *error_;
    return std::monostate{};
  }

  // For the library's calls within a stage: threads inside a chunk only where there are too few
  // chunks to keep them busy.
  Execution inner() const {
    return {count_ >= static_cast<std::uint64_t>(threads_) ? 1 : threads_, {}};
  }

 private:
  bool failed() {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }

  template <class Step>
  void step(const Parcel& parcel, const Step& action) {
    if (failed()) return;
    if (std::optional<Error> error = action()) {
      std::string where;
      for (const hsize_t offset : parcel.place.offset) {
        where += (where.empty() ? "" : ", ") + std::to_string(offset);
      }
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = Error{error->code, "chunk at [" + where + "]: " + error->message};
    }
  }

  void report(const Parcel& parcel) {
    if (!execution_.progress || failed()) return;
    done_bytes_ += product(parcel.place.extents) * value_size_;
    if (!execution_.progress(done_bytes_, total_bytes_)) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = Error{ErrorCode::cancelled, "cancelled"};
    }
  }

  const Execution& execution_;
  std::uint64_t count_;
  std::size_t value_size_;
  std::uint64_t total_bytes_;
  std::uint64_t done_bytes_ = 0;
  int threads_ = 1;
  std::vector<Parcel> parcels_;
  oneapi::tbb::concurrent_queue<Parcel*> free_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

std::optional<Error> compress_parcel(const Dataset& dataset, const Grid& grid,
                                     const std::uint8_t* values, const Execution& execution,
                                     Parcel& parcel) {
  const ChunkLayout& layout = dataset.parameters.layout;
  const Options options = dataset.parameters.options();
  ArrayView array;
  std::optional<ArrayView> in_place;
  if (parcel.place.whole) {
    in_place = view_in_place<const void*>(dataset, grid, parcel.place, values);
  }
  if (in_place) {
    array = *in_place;
  } else {
    gather(dataset, grid, parcel.place, values, parcel.values);
    array = {parcel.values.data(), layout.type, layout.shape, {}};
  }
  const Result<std::uint64_t> room = worst_case_size(layout.type, layout.shape, options);
  if (!room) return room.error();
  if (parcel.stream.size() < *room) parcel.stream.resize(*room);
  const Result<std::size_t> used =
      parcel.compressor.compress_into(array, options, parcel.stream, execution);
  if (!used) return used.error();
  parcel.stream_size = *used;
  return std::nullopt;
}

std::optional<Error> write_parcel(const Dataset& dataset, const Parcel& parcel) {
  const QuietErrors quiet;
  if (H5Dwrite_chunk(dataset.id, H5P_DEFAULT, 0, parcel.place.offset.data(), parcel.stream_size,
                     parcel.stream.data()) < 0) {
    return from_hdf5("writing a chunk");
  }
  return std::nullopt;
}

std::optional<Error> read_parcel(const Dataset& dataset, Parcel& parcel) {
  const QuietErrors quiet;
  const std::vector<hsize_t>& offset = parcel.place.offset;
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t size = 0;
  if (H5Dget_chunk_info_by_coord(dataset.id, offset.data(), &mask, &address, &size) < 0) {
    return from_hdf5("finding a chunk");
  }
  parcel.stream_size = address == HADDR_UNDEF ? 0 : size;
  if (parcel.stream_size == 0) return std::nullopt;
  if (parcel.stream.size() < size) parcel.stream.resize(size);
  if (H5Dread_chunk(dataset.id, H5P_DEFAULT, offset.data(), &parcel.filter_mask,
                    parcel.stream.data()) < 0) {
    return from_hdf5("reading a chunk");
  }
  return std::nullopt;
}

std::optional<Error> decompress_parcel(const Dataset& dataset, const Grid& grid,
                                       std::uint8_t* values, const Execution& execution,
                                       Parcel& parcel) {
  const ChunkLayout& layout = dataset.parameters.layout;
  const std::uint64_t count = layout.shape.count();
  const std::span<const std::uint8_t> stream(parcel.stream.data(), parcel.stream_size);
  if (stream.empty()) {
    parcel.values.resize(layout.size_bytes());
    fill_values(parcel.values.data(), count, dataset);
  } else if ((parcel.filter_mask & 1u) != 0) {  // stored without the filter, where it is optional
    if (stream.size() != layout.size_bytes()) {
      return Error{ErrorCode::corrupt, "a chunk that is stored as it was has a wrong size"};
    }
    parcel.values.assign(stream.begin(), stream.end());
    if (layout.big_endian != (std::endian::native == std::endian::big)) {
      swap_bytes(parcel.values.data(), count, layout.type);
    }
  } else {
    const Result<Info> info = inspect(stream);
    if (!info) return info.error();
    if (info->type != layout.type || info->shape != layout.shape) {
      return Error{ErrorCode::corrupt, "a chunk has another type or shape than its dataset"};
    }
    const std::optional<MutableArrayView> in_place =
        view_in_place<void*>(dataset, grid, parcel.place, values);
    if (in_place) {
      const Status status = parcel.place.whole
                                ? parcel.decompressor.decompress(stream, *in_place, execution)
                                : parcel.decompressor.decompress_region(
                                      stream, {{}, in_place->shape}, *in_place, execution);
      if (!status) return status.error();
      return std::nullopt;
    }
    parcel.values.resize(layout.size_bytes());
    const Status status = parcel.decompressor.decompress(
        stream, {parcel.values.data(), layout.type, layout.shape, {}}, execution);
    if (!status) return status.error();
  }
  scatter(dataset, grid, parcel.place, parcel.values.data(), values);
  return std::nullopt;
}

Result<DirectWriteReport> write_values(hid_t id, Type type, const void* memory,
                                       const Execution& execution, const Box* box) {
  const QuietErrors quiet;
  const auto* values = static_cast<const std::uint8_t*>(memory);
  const Result<Dataset> dataset = describe(id, type);
  if (!dataset) return dataset.error();
  const Result<Grid> grid = make_grid(*dataset, box);
  if (!grid) return grid.error();
  DirectWriteReport report;
  report.original_bytes = product(grid->extents) * dataset->value_size();
  if (grid->count() == 0) return report;
  Shipment shipment(execution, *grid, dataset->value_size());
  const Status status = shipment.run(
      [&](std::uint64_t number, Parcel& parcel) -> std::optional<Error> {
        parcel.place = place_of(*grid, number);
        return std::nullopt;
      },
      [&](Parcel& parcel) {
        return compress_parcel(*dataset, *grid, values, shipment.inner(), parcel);
      },
      [&](Parcel& parcel) {
        const Result<Info> info = inspect({parcel.stream.data(), parcel.stream_size});
        if (info) report.max_abs_error = std::max(report.max_abs_error, info->max_abs_error);
        report.compressed_bytes += parcel.stream_size;
        ++report.chunk_count;
        return write_parcel(*dataset, parcel);
      });
  if (!status) return status.error();
  return report;
}

Status read_values(hid_t id, Type type, void* memory, const Execution& execution, const Box* box) {
  const QuietErrors quiet;
  auto* values = static_cast<std::uint8_t*>(memory);
  const Result<Dataset> dataset = describe(id, type);
  if (!dataset) return dataset.error();
  const Result<Grid> grid = make_grid(*dataset, box);
  if (!grid) return grid.error();
  if (grid->count() == 0) return std::monostate{};
  Shipment shipment(execution, *grid, dataset->value_size());
  return shipment.run(
      [&](std::uint64_t number, Parcel& parcel) {
        parcel.place = place_of(*grid, number);
        return read_parcel(*dataset, parcel);
      },
      [&](Parcel& parcel) {
        return decompress_parcel(*dataset, *grid, values, shipment.inner(), parcel);
      },
      [](Parcel&) -> std::optional<Error> { return std::nullopt; });
}

}  // namespace

Status register_filter() {
  const QuietErrors quiet;
  if (H5Zregister(&kFilterClass) < 0) return from_hdf5("registering the Firn filter");
  return std::monostate{};
}

Result<DirectWriteReport> write_chunks(hid_t dataset, const float* values,
                                       const Execution& execution, const Box* box) {
  return write_values(dataset, Type::f32, values, execution, box);
}
Result<DirectWriteReport> write_chunks(hid_t dataset, const double* values,
                                       const Execution& execution, const Box* box) {
  return write_values(dataset, Type::f64, values, execution, box);
}
Status read_chunks(hid_t dataset, float* values, const Execution& execution, const Box* box) {
  return read_values(dataset, Type::f32, values, execution, box);
}
Status read_chunks(hid_t dataset, double* values, const Execution& execution, const Box* box) {
  return read_values(dataset, Type::f64, values, execution, box);
}

}  // namespace firn::hdf5
