#include "engine/reader.hpp"

#include <algorithm>
#include <string>

namespace firn::engine {

Status Reader::open(std::span<const std::uint8_t> bytes) {
  bytes_ = bytes;
  series_.parts.clear();
  series_.ragged = false;
  if (!container::ends_in_directory(bytes)) {
    if (const Status status = stream_.open(bytes); !status) return status;
    header_ = stream_.header;
    if (stream_.records.end == 0 || stream_.records.end == bytes.size()) return std::monostate{};
  }
  series_ = container::find_parts(bytes);
  // Not a series: what follows the stream, if anything, is not ours.
  if (series_.parts.size() <= 1 && !series_.ragged) {
    series_.parts.clear();
    if (const Status status = stream_.open(bytes); !status) return status;
    header_ = stream_.header;
    return std::monostate{};
  }
  if (series_.parts.empty()) {
    series_.ragged = false;
    const Status status = stream_.open(bytes);
    if (status) header_ = stream_.header;
    return status;
  }
  // The first that can be read speaks for all.
  std::optional<Error> error;
  bool any = false;
  for (const container::Part& part : series_.parts) {
    const Status status = open_part(part, false);
    any = status.ok();
    if (any) break;
    if (!error) error = status.error();
  }
  if (!any) return *error;
  header_ = stream_.header;
  header_.shape.extents[0] = 0;
  for (const container::Part& part : series_.parts) header_.shape.extents[0] += part.extent;
  return check_shapes(header_.type, header_.shape, header_.shape, ~std::uint64_t{0});
}

Error Reader::cut_off() const {
  std::uint64_t steps = header_.shape.extents[0];
  if (series_.foreign) return container::foreign_part(steps);
  if (series_.cut) steps -= series_.parts.back().extent;
  return {ErrorCode::truncated, "the series is cut off behind its first " + std::to_string(steps) +
                                    " along the slowest axis, or something else follows"};
}

Status Reader::open_part(const container::Part& part, bool fits) {
  const std::size_t number = static_cast<std::size_t>(&part - series_.parts.data());
  const auto named = [&](ErrorCode code, const std::string& message) {
    return Error{code, "part " + std::to_string(number) + " of " +
                           std::to_string(series_.parts.size()) + ": " + message};
  };
  if (const Status status = stream_.open(bytes_.subspan(part.offset, part.size)); !status) {
    // What the directory leads to is a part.
    const ErrorCode code = status.error().code;
    return named(code == ErrorCode::not_firn ? ErrorCode::corrupt : code, status.error().message);
  }
  if (stream_.header.shape.extents[0] != part.extent ||
      (fits && !container::same_series(stream_.header, header_))) {
    return named(ErrorCode::corrupt, "its header contradicts the series");
  }
  return std::monostate{};
}

Status Reader::for_each_part(
    const std::function<Status(const OpenStream&, std::uint64_t, std::uint64_t)>& visit,
    bool* damaged) {
  if (series_.parts.empty()) return visit(stream_, 0, 0);
  std::uint64_t begin = 0;
  for (const container::Part& part : series_.parts) {
    const Status opened = open_part(part);
    if (!opened && damaged == nullptr) return opened;
    if (!opened) {
      *damaged = true;
    } else if (const Status status = visit(stream_, part.offset, begin); !status) {
      return status;
    }
    begin += part.extent;
  }
  return std::monostate{};
}

Status Reader::decompress(const Region& region, const MutableArrayView& out,
                          const Execution& execution, pipelines::Workers& workers,
                          std::vector<Damage>* damages) {
  if (series_.parts.empty()) {
    return engine::decompress(stream_, region, out, execution, workers, damages);
  }
  const auto strides = out.strides ? *out.strides : contiguous_strides(region.shape);
  const std::uint64_t value_bytes = size_of(header_.type);
  const std::uint64_t total = region.shape.count() * value_bytes;
  const std::uint64_t region_end = region.origin[0] + region.shape.extents[0];
  std::uint64_t begin = 0, chunks = 0, done = 0;
  std::size_t before = 0;  // damages before the last part
  for (const container::Part& part : series_.parts) {
    const std::uint64_t first = std::max(begin, region.origin[0]);
    const std::uint64_t last = std::min(begin + part.extent, region_end);
    const std::uint64_t part_begin = begin;
    begin += part.extent;
    if (damages != nullptr) before = damages->size();
    if (first >= last) continue;
    Region wanted = region;
    wanted.origin[0] = first - part_begin;
    wanted.shape.extents[0] = last - first;
    MutableArrayView place = out;
    place.shape = wanted.shape;
    place.strides = strides;
    place.data = static_cast<std::uint8_t*>(out.data) +
                 static_cast<std::int64_t>(first - region.origin[0]) * strides[0] *
                     static_cast<std::int64_t>(value_bytes);
    if (const Status status = open_part(part); !status) {
      if (damages == nullptr) return status;
      fill_with_nan(place);
      Region lost = wanted;
      lost.origin[0] = first;
      damages->push_back({chunks, lost, status.error()});
      continue;
    }
    Execution part_execution{execution.threads, {}};
    if (execution.progress) {
      part_execution.progress = [&](std::uint64_t bytes, std::uint64_t) {
        return execution.progress(done + bytes, total);
      };
    }
    const std::string where = "in the part from " + std::to_string(part_begin) + " on: ";
    if (const Status status =
            engine::decompress(stream_, wanted, place, part_execution, workers, damages);
        !status) {
      const Error& error = status.error();
      if (error.code == ErrorCode::cancelled) return status;
      return Error{error.code, where + error.message};
    }
    for (std::size_t i = before; damages != nullptr && i < damages->size(); ++i) {
      Damage& damage = (*damages)[i];
      damage.chunk += chunks;
      damage.region.origin[0] += part_begin;
      damage.error.message = where + damage.error.message;
    }
    chunks += stream_.grid.count();
    done += wanted.shape.count() * value_bytes;
  }
  // Unless chunks of the part that is cut off say it already.
  if (damages != nullptr && series_.ragged && !(series_.cut && damages->size() > before)) {
    Region lost = region;
    lost.origin[0] = header_.shape.extents[0];
    lost.shape.extents[0] = 0;
    damages->push_back({chunks, lost, cut_off()});
  }
  return std::monostate{};
}

}  // namespace firn::engine
