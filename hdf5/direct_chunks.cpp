#include "firn/direct_chunks.hpp"

#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "chunk_grid.hpp"
#include "filter.hpp"
#include "handles.hpp"
#include "parameters.hpp"

namespace firn::hdf5 {
namespace {

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
        const auto begin = [&](tbb::flow_control& control) -> Parcel* {
          if (next == count_ || failed()) {
            control.stop();
            return nullptr;
          }
          // Free again: chunks finish in order, and no more are under way than there are parcels.
          Parcel* parcel = &parcels_[next % parcels_.size()];
          step(*parcel, [&] { return first(next, *parcel); });
          ++next;
          return parcel;
        };
        const auto work = [&](Parcel* parcel) {
          step(*parcel, [&] { return middle(*parcel); });
          return parcel;
        };
        const auto finish = [&](Parcel* parcel) {
          step(*parcel, [&] { return last(*parcel); });
          report(*parcel);
        };
        constexpr auto kInOrder = tbb::filter_mode::serial_in_order;
        tbb::parallel_pipeline(
            parcels_.size(),
            tbb::make_filter<void, Parcel*>(kInOrder, begin) &
                tbb::make_filter<Parcel*, Parcel*>(tbb::filter_mode::parallel, work) &
                tbb::make_filter<Parcel*, void>(kInOrder, finish));
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
        if (info) {
          report.max_abs_error = std::max(report.max_abs_error, info->max_abs_error);
          report.max_pwrel_error = std::max(report.max_pwrel_error, info->max_pwrel_error);
        }
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
