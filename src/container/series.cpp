#include "container/series.hpp"

#include <optional>
#include <string>

#include "base/geometry.hpp"
#include "container/format.hpp"
#include "container/records.hpp"

namespace firn::container {
namespace {

constexpr std::size_t kDirectoryHead = 8;     // magic, bytes
constexpr std::size_t kDirectoryFooter = 12;  // checksum, bytes, magic
// Of all parts together, so that their sum is what it says.
constexpr std::uint64_t kMaxSteps = ~std::uint64_t{0} / 2;

// The whole size of the directory that begins or ends `bytes`, from its two words there.
std::uint64_t directory_size(std::uint32_t size, std::uint32_t magic, std::uint64_t room) {
  if (magic != format::kDirectoryMagic || size < kDirectoryHead + 1 + kDirectoryFooter ||
      size > room) {
    return 0;
  }
  return size;
}

bool read_directory(std::span<const std::uint8_t> bytes, Series* series) {
  if (bytes.size() < kDirectoryFooter) return false;
  const std::uint8_t* const footer = bytes.data() + bytes.size() - kDirectoryFooter;
  const std::uint64_t size = directory_size(load_le<std::uint32_t>(footer + 4),
                                            load_le<std::uint32_t>(footer + 8), bytes.size());
  if (size == 0) return false;
  const std::uint64_t begin = bytes.size() - size;
  const auto checked = bytes.subspan(begin, size - kDirectoryFooter);
  if (load_le<std::uint32_t>(checked.data() + checked.size()) != checksum(checked)) return false;
  ByteReader in(checked);
  if (in.read<std::uint32_t>() != format::kDirectoryMagic || in.read<std::uint32_t>() != size) {
    return false;
  }
  const std::uint64_t count = in.read_varint();
  if (count > in.remaining() / 2) return false;
  std::uint64_t offset = 0, steps = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t part_size = in.read_varint();
    const std::uint64_t extent = in.read_varint();
    if (!in.ok() || part_size > begin - offset || extent > kMaxSteps - steps) return false;
    series->parts.push_back({offset, part_size, extent});
    offset += part_size;
    steps += extent;
  }
  series->end = begin;
  // One that was written for other bytes (a file that was appended to another) lies elsewhere.
  return offset == begin && in.remaining() == 0;
}

}  // namespace

bool ends_in_directory(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 4 &&
         load_le<std::uint32_t>(bytes.data() + bytes.size() - 4) == format::kDirectoryMagic;
}

bool same_series(const Header& a, const Header& b) {
  if (a.type != b.type || a.shape.rank != b.shape.rank) return false;
  for (int k = 1; k < a.shape.rank; ++k) {
    if (a.shape.extents[k] != b.shape.extents[k]) return false;
  }
  return true;
}

Error foreign_part(std::uint64_t steps) {
  return {ErrorCode::corrupt, "behind the first " + std::to_string(steps) +
                                  " along the slowest axis follows a stream of another type or "
                                  "shape; what is joined may differ in the slowest extent only"};
}

Series find_parts(std::span<const std::uint8_t> bytes) {
  Series series;
  if (read_directory(bytes, &series)) return series;
  series = {};
  std::optional<Header> first;
  RecordTable table;
  std::uint64_t extent = 0;
  for (std::uint64_t offset = 0; offset < bytes.size();) {
    const auto rest = bytes.subspan(offset);
    if (rest.size() >= kDirectoryHead) {
      const std::uint64_t size = directory_size(load_le<std::uint32_t>(rest.data() + 4),
                                                load_le<std::uint32_t>(rest.data()), rest.size());
      if (size != 0) {
        offset += size;
        continue;
      }
    }
    ByteReader in(rest);
    const auto header = read_header(in, rest);
    if (!header || (first && !same_series(*first, *header)) ||
        header->shape.extents[0] > kMaxSteps - extent) {
      series.ragged = true;
      series.foreign = header && first && !same_series(*first, *header);
      break;
    }
    find_records(rest, in.position(), *header, Grid(header->shape, header->chunk), &table);
    if (table.end == 0) {
      series.ragged = true;
      series.cut = first.has_value();
      if (series.cut) series.parts.push_back({offset, rest.size(), header->shape.extents[0]});
      break;
    }
    if (!first) first = *header;
    series.parts.push_back({offset, table.end, header->shape.extents[0]});
    extent += header->shape.extents[0];
    offset += table.end;
    series.end = offset;
  }
  return series;
}

std::size_t directory_capacity(std::size_t parts) {
  return kDirectoryHead + kDirectoryFooter + (2 * parts + 1) * kMaxVarintBytes;
}

void write_directory(std::span<const Part> parts, ByteWriter& out) {
  std::uint8_t* const begin = out.here();
  out.write<std::uint32_t>(format::kDirectoryMagic);
  out.write<std::uint32_t>(0);  // its size, below
  out.write_varint(parts.size());
  for (const Part& part : parts) {
    out.write_varint(part.size);
    out.write_varint(part.extent);
  }
  const auto size = static_cast<std::uint32_t>(out.here() - begin + kDirectoryFooter);
  store_le(begin + 4, size);
  out.write<std::uint32_t>(checksum({begin, out.here()}));
  out.write<std::uint32_t>(size);
  out.write<std::uint32_t>(format::kDirectoryMagic);
}

}  // namespace firn::container
