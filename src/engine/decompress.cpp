#include "engine/decompress.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>

#include "engine/progress.hpp"
#include "pipelines/pipeline.hpp"

namespace firn::engine {
namespace {

// Output of this size or more goes past the caches; it would push out everything else.
constexpr std::uint64_t kStreamingBytes = std::uint64_t{32} << 20;

std::string text_of(const std::array<std::uint64_t, kMaxRank>& list, int rank,
                    const char* separator) {
  std::string text;
  for (int k = 0; k < rank; ++k) text += (k ? separator : "") + std::to_string(list[k]);
  return text;
}

// The part of `a` that lies in `b`, in the coordinates of the whole array.
Region intersection(const Region& a, const Region& b) {
  Region common = a;
  for (int k = 0; k < a.shape.rank; ++k) {
    const std::uint64_t begin = std::max(a.origin[k], b.origin[k]);
    const std::uint64_t end =
        std::min(a.origin[k] + a.shape.extents[k], b.origin[k] + b.shape.extents[k]);
    common.origin[k] = begin;
    common.shape.extents[k] = end > begin ? end - begin : 0;
  }
  return common;
}

Region relative_to(Region region, const std::array<std::uint64_t, kMaxRank>& origin) {
  for (int k = 0; k < region.shape.rank; ++k) region.origin[k] -= origin[k];
  return region;
}

template <class T>
void set_to_nan(const Box<T>& box) {
  box.for_each_row([&](T* row, std::size_t) {
    for (std::size_t i = 0; i < box.row_length(); ++i) {
      row[static_cast<std::int64_t>(i) * box.row_stride()] = std::numeric_limits<T>::quiet_NaN();
    }
    return true;
  });
}

Error malformed_payload() { return {ErrorCode::corrupt, "its payload is malformed"}; }

template <class T>
Status decode_chunk(const OpenStream& stream, std::uint64_t number, const Region& region,
                    const MutableArrayView& out, const std::array<std::int64_t, kMaxRank>& strides,
                    pipelines::Workspace& workspace) {
  const Region chunk = stream.grid.region(number);
  if (number >= stream.records.entries.size()) {
    return Error{ErrorCode::truncated, "the stream ends before it, or a damaged record hides it"};
  }
  const std::uint64_t raw_bytes = chunk.shape.count() * sizeof(T);
  const auto record = container::read_record(stream.bytes, stream.records.entries[number],
                                             raw_bytes, stream.header, number);
  if (!record) return record.error();
  pipelines::Parameters parameters = parameters_of(stream);
  parameters.streaming = region.shape.count() * sizeof(T) >= kStreamingBytes;
  const Region wanted = intersection(chunk, region);
  T* const data = static_cast<T*>(out.data);
  if (wanted.shape == chunk.shape) {
    const Box<T> box(data, strides, relative_to(chunk, region.origin));
    if (!pipelines::decode<T>(record->pipeline, record->payload, parameters, box, workspace)) {
      return malformed_payload();
    }
    return std::monostate{};
  }
  // Decode all of it aside, then copy the part that is wanted.
  T* const values =
      reinterpret_cast<T*>(workspace.output.reserve(static_cast<std::size_t>(raw_bytes)));
  const auto chunk_strides = contiguous_strides(chunk.shape);
  Region whole;
  whole.shape = chunk.shape;
  if (!pipelines::decode<T>(record->pipeline, record->payload, parameters,
                            Box<T>(values, chunk_strides, whole), workspace)) {
    return malformed_payload();
  }
  // Rows of the two boxes need not be joined alike, so go by rows of the fastest axis.
  Region row = relative_to(wanted, chunk.origin);
  Region target = relative_to(wanted, region.origin);
  const int last = wanted.shape.rank - 1;
  std::array<std::uint64_t, kMaxRank> at{};
  for (;;) {
    std::int64_t from = 0, to = 0;
    for (int k = 0; k <= last; ++k) {
      from += static_cast<std::int64_t>(row.origin[k] + at[k]) * chunk_strides[k];
      to += static_cast<std::int64_t>(target.origin[k] + at[k]) * strides[k];
    }
    for (std::uint64_t i = 0; i < wanted.shape.extents[last]; ++i) {
      data[to + static_cast<std::int64_t>(i) * strides[last]] =
          values[from + static_cast<std::int64_t>(i)];
    }
    int k = last - 1;
    while (k >= 0 && at[k] + 1 == wanted.shape.extents[k]) at[k--] = 0;
    if (k < 0) break;
    ++at[k];
  }
  return std::monostate{};
}

}  // namespace

pipelines::Parameters parameters_of(const OpenStream& stream) {
  pipelines::Parameters parameters;
  parameters.bound_abs = stream.header.bound_abs;
  parameters.pointwise = stream.header.bound.kind == BoundKind::pwrel;
  parameters.margin = stream.header.margin;
  parameters.fill = stream.header.fill;
  parameters.shared_books = stream.records.books;
  return parameters;
}

Status OpenStream::open(std::span<const std::uint8_t> stream) {
  ByteReader in(stream);
  auto found = container::read_header(in, stream);
  if (!found) return found.error();
  bytes = stream;
  header = *found;
  grid = Grid(header.shape, header.chunk);
  container::find_records(stream, in.position(), header, grid, &records);
  return std::monostate{};
}

void fill_with_nan(const MutableArrayView& array) {
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  Region all;
  all.shape = array.shape;
  if (array.type == Type::f32) {
    set_to_nan(Box<float>(static_cast<float*>(array.data), strides, all));
  } else {
    set_to_nan(Box<double>(static_cast<double*>(array.data), strides, all));
  }
}

Error chunk_error(const OpenStream& stream, std::uint64_t number, const Error& error) {
  const Region region = stream.grid.region(number);
  return {error.code, "chunk " + std::to_string(number) + " of " +
                          std::to_string(stream.grid.count()) + " (" +
                          text_of(region.shape.extents, region.shape.rank, "x") + " at " +
                          text_of(region.origin, region.shape.rank, ",") + "): " + error.message};
}

Status decompress(const OpenStream& stream, const Region& region, const MutableArrayView& out,
                  const Execution& execution, pipelines::Workers& workers,
                  std::vector<Damage>* damages) {
  const auto strides = out.strides ? *out.strides : contiguous_strides(region.shape);
  const Grid::Part part = stream.grid.part(region);
  Progress progress(execution, region.shape.count() * size_of(stream.header.type));
  std::mutex mutex;
  // The first failure by number, whatever the order of the threads.
  std::optional<Error> failure;
  std::uint64_t failed = 0;
  workers.for_each(part.count, [&](std::uint64_t i, pipelines::Workspace& workspace) {
    const std::uint64_t number = part.number(i);
    const Status status =
        stream.header.type == Type::f32
            ? decode_chunk<float>(stream, number, region, out, strides, workspace)
            : decode_chunk<double>(stream, number, region, out, strides, workspace);
    if (!status) {
      const Error error = chunk_error(stream, number, status.error());
      const std::lock_guard<std::mutex> lock(mutex);
      if (damages == nullptr) {
        if (!failure || number < failed) failure = error, failed = number;
        return false;
      }
      const Region lost = intersection(stream.grid.region(number), region);
      damages->push_back({number, lost, error});
      const Region place = relative_to(lost, region.origin);
      if (stream.header.type == Type::f32) {
        set_to_nan(Box<float>(static_cast<float*>(out.data), strides, place));
      } else {
        set_to_nan(Box<double>(static_cast<double*>(out.data), strides, place));
      }
    }
    const std::uint64_t values = intersection(stream.grid.region(number), region).shape.count();
    return progress.add(values * size_of(stream.header.type));
  });
  if (failure) return *failure;
  if (progress.cancelled()) return Progress::error();
  if (damages != nullptr) {
    std::sort(damages->begin(), damages->end(),
              [](const Damage& a, const Damage& b) { return a.chunk < b.chunk; });
  }
  return std::monostate{};
}

}  // namespace firn::engine
