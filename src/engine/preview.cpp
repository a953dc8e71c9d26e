// A stream at a fraction of its resolution, chunk by chunk.
#include <mutex>
#include <optional>

#include "engine/decompress.hpp"
#include "engine/progress.hpp"

namespace firn::engine {
namespace {

std::uint64_t part_of(std::uint64_t extent, std::uint64_t factor) {
  return extent / factor + (extent % factor != 0 ? 1 : 0);
}

template <class T>
Status preview_chunk(const OpenStream& stream, std::uint64_t number, std::uint64_t factor,
                     const MutableArrayView& out, const std::array<std::int64_t, kMaxRank>& strides,
                     pipelines::Workspace& workspace, bool* from_prefix) {
  const Region chunk = stream.grid.region(number);
  if (number >= stream.records.entries.size()) {
    return Error{ErrorCode::truncated, "the stream ends before it, or a damaged record hides it"};
  }
  const auto read = [&](bool whole) {
    return container::read_record(stream.bytes, stream.records.entries[number],
                                  chunk.shape.count() * sizeof(T), stream.header, number, whole);
  };
  auto record = read(false);
  if (!record) return record.error();
  *from_prefix = factor > 1 && pipelines::has_levels(record->pipeline);
  if (!*from_prefix) {
    record = read(true);
    if (!record) return record.error();
  }
  Region place;
  place.shape.rank = chunk.shape.rank;
  std::array<std::size_t, kMaxRank> extents{};
  for (int k = 0; k < chunk.shape.rank; ++k) {
    const std::uint64_t full = stream.header.chunk.extents[k];
    place.origin[k] = chunk.origin[k] / full * part_of(full, factor);
    place.shape.extents[k] = part_of(chunk.shape.extents[k], factor);
    extents[k] = static_cast<std::size_t>(chunk.shape.extents[k]);
  }
  const Box<T> box(static_cast<T*>(out.data), strides, place);
  if (!pipelines::preview<T>(record->pipeline, record->payload, parameters_of(stream),
                             chunk.shape.rank, extents, static_cast<std::size_t>(factor), box,
                             workspace)) {
    return Error{ErrorCode::corrupt, "its payload is malformed"};
  }
  return std::monostate{};
}

}  // namespace

Shape preview_shape(const container::Header& header, std::uint64_t factor) {
  Shape shape = header.shape;
  for (int k = 0; k < shape.rank; ++k) {
    const std::uint64_t chunk = header.chunk.extents[k];
    if (chunk == 0) continue;
    shape.extents[k] = header.shape.extents[k] / chunk * part_of(chunk, factor) +
                       part_of(header.shape.extents[k] % chunk, factor);
  }
  return shape;
}

Result<PreviewReport> preview(const OpenStream& stream, std::uint64_t factor,
                              const MutableArrayView& out, const Execution& execution,
                              pipelines::Workers& workers) {
  PreviewReport report;
  report.shape = preview_shape(stream.header, factor);
  const auto strides = out.strides ? *out.strides : contiguous_strides(report.shape);
  const std::size_t value_bytes = size_of(stream.header.type);
  Progress progress(execution, stream.header.shape.count() * value_bytes);
  std::mutex mutex;
  // The first failure by number, whatever the order of the threads.
  std::optional<Error> failure;
  std::uint64_t failed = 0;
  workers.for_each(stream.grid.count(), [&](std::uint64_t number, pipelines::Workspace& workspace) {
    bool from_prefix = false;
    const Status status =
        stream.header.type == Type::f32
            ? preview_chunk<float>(stream, number, factor, out, strides, workspace, &from_prefix)
            : preview_chunk<double>(stream, number, factor, out, strides, workspace, &from_prefix);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!status) {
        if (!failure || number < failed) {
          failure = chunk_error(stream, number, status.error());
          failed = number;
        }
        return false;
      }
      ++(from_prefix ? report.chunks_from_prefix : report.chunks_decoded_whole);
    }
    return progress.add(stream.grid.region(number).shape.count() * value_bytes);
  });
  if (failure) return *failure;
  if (progress.cancelled()) return Progress::error();
  return report;
}

}  // namespace firn::engine
