#include "container/records.hpp"

#include <cmath>
#include <string>

#include "container/format.hpp"

namespace firn::container {
namespace {

// Binds a record to its stream and its place in it.
std::uint64_t record_seed(const Header& header, std::uint64_t number) {
  return std::uint64_t{header.checksum} << 32 ^ number;
}

// The index is checked like a record with a number that no chunk has.
constexpr std::uint64_t kIndexNumber = ~std::uint64_t{0};

// Books are counted from here, where no chunk's number reaches.
constexpr std::uint64_t kFirstBookNumber = std::uint64_t{1} << 63;

bool small_chunk(std::uint64_t raw_bytes) { return raw_bytes < 65536; }

std::uint64_t raw_bytes_of(const Grid& grid, const Header& header, std::uint64_t number) {
  return grid.region(number).shape.count() * size_of(header.type);
}

// The index, if the stream ends with a sound one.
bool read_index(std::span<const std::uint8_t> stream, std::size_t header_bytes,
                const Header& header, std::uint64_t chunks, RecordTable* table) {
  if (stream.size() < header_bytes + format::kFooterBytes) return false;
  ByteReader footer(stream.last(format::kFooterBytes));
  const std::uint64_t size = footer.read<std::uint32_t>();
  if (footer.read<std::uint32_t>() != format::kFooterMagic) return false;
  const std::uint64_t room = stream.size() - header_bytes - format::kFooterBytes;
  if (size > room || size < 1 + format::kChecksumBytes) return false;
  const std::uint64_t begin = stream.size() - format::kFooterBytes - size;
  const auto record = stream.subspan(begin, size);
  const auto body = record.first(size - format::kChecksumBytes);
  if (load_le<std::uint32_t>(record.data() + body.size()) !=
      checksum(body, record_seed(header, kIndexNumber))) {
    return false;
  }
  ByteReader in(body);
  if (in.read<std::uint8_t>() != format::kIndexTag || in.read_varint() != chunks) return false;
  // Each entry takes at least three bytes: a count that cannot be true takes no memory.
  if (chunks > body.size() / 3) return false;
  table->entries.reserve(static_cast<std::size_t>(chunks));
  std::uint64_t offset = in.read_varint();
  if (offset < header_bytes || offset > begin) return false;
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::uint64_t entry_size = in.read_varint();
    const std::uint16_t units = in.read<std::uint16_t>();
    if (!in.ok() || entry_size > begin - offset) return false;
    table->entries.push_back({offset, entry_size, units});
    offset += entry_size;
  }
  // Not so for the index of another part of a series, whose header may be the same.
  return offset == begin && in.remaining() == 0;
}

// Reads the books that begin at `offset`; returns where they end.
std::uint64_t read_books(std::span<const std::uint8_t> stream, std::uint64_t offset,
                         const Header& header, RecordTable* table) {
  while (table->books.size() < format::kMaxSharedBooks) {
    ByteReader in(stream.subspan(offset));
    if (in.read<std::uint8_t>() != format::kBookTag) break;
    const auto payload = in.read_bytes(in.read<std::uint16_t>());
    const std::size_t checked = in.position();
    const auto expected = in.read<std::uint32_t>();
    if (!in.ok()) break;
    const bool sound =
        expected == checksum(stream.subspan(offset, checked),
                             record_seed(header, kFirstBookNumber + table->books.size()));
    table->books.push_back(sound ? payload : std::span<const std::uint8_t>());
    offset += in.position();
  }
  return offset;
}

Error not_all_there() { return {ErrorCode::truncated, "the stream is not all there"}; }

// The record that begins at `offset`, by its head.
Result<RecordTable::Entry> record_at(std::span<const std::uint8_t> stream, std::uint64_t offset,
                                     std::uint64_t raw_bytes) {
  ByteReader in(stream.subspan(offset));
  in.read<std::uint8_t>();
  const std::uint16_t units = in.read<std::uint16_t>();
  const std::uint64_t payload =
      small_chunk(raw_bytes) ? in.read<std::uint16_t>() : in.read<std::uint32_t>();
  if (!in.ok()) return not_all_there();
  if (payload > raw_bytes) {
    return Error{ErrorCode::corrupt, "a record is larger than the values of its chunk"};
  }
  if (in.remaining() < payload + format::kChecksumBytes) return not_all_there();
  return RecordTable::Entry{offset, in.position() + payload + format::kChecksumBytes, units};
}

// Where the index at the start of `bytes` ends.
Result<std::uint64_t> index_end(std::span<const std::uint8_t> bytes, const Header& header,
                                std::uint64_t chunks) {
  ByteReader in(bytes);
  const bool begins = in.read<std::uint8_t>() == format::kIndexTag && in.read_varint() == chunks;
  if (!in.ok()) return not_all_there();
  in.read_varint();
  for (std::uint64_t i = 0; begins && i < chunks && in.ok(); ++i) {
    in.read_varint();
    in.read<std::uint16_t>();
  }
  if (begins && !in.ok()) return not_all_there();
  const auto body = bytes.first(in.position());
  const std::uint32_t sum = in.read<std::uint32_t>();
  const std::uint32_t size = in.read<std::uint32_t>();
  const bool ends = in.read<std::uint32_t>() == format::kFooterMagic;
  if (begins && !in.ok()) return not_all_there();
  if (!begins || !ends || size != body.size() + format::kChecksumBytes ||
      sum != checksum(body, record_seed(header, kIndexNumber))) {
    return Error{ErrorCode::corrupt, "the index is damaged"};
  }
  return in.position();
}

}  // namespace

std::size_t record_head_bytes(std::uint64_t chunk_raw_bytes) {
  return 1 + format::kErrorBytes + (small_chunk(chunk_raw_bytes) ? 2 : 4);
}

std::uint16_t error_units(double max_error, double bound_abs) {
  if (!(max_error > 0) || !(bound_abs > 0)) return 0;
  const double quotient = std::ceil(max_error / bound_abs * format::kErrorUnits);
  auto units =
      static_cast<std::uint16_t>(quotient < format::kErrorUnits ? quotient : format::kErrorUnits);
  // The quotient may have been rounded below the edge of its unit.
  if (units < format::kErrorUnits && error_of_units(units, bound_abs) < max_error) ++units;
  return units;
}

double error_of_units(std::uint16_t units, double bound_abs) {
  return units == format::kErrorUnits
             ? bound_abs
             : bound_abs * (static_cast<double>(units) / format::kErrorUnits);
}

std::uint16_t record_error(std::span<const std::uint8_t> record) {
  return load_le<std::uint16_t>(record.data() + 1);
}

std::size_t finish_record(std::uint8_t* record, std::uint64_t chunk_raw_bytes, Pipeline pipeline,
                          double max_error, std::size_t payload_size, const Header& header,
                          std::uint64_t number) {
  ByteWriter head(record);
  head.write<std::uint8_t>(static_cast<std::uint8_t>(pipeline));
  head.write<std::uint16_t>(error_units(max_error, header.bound_abs));
  if (small_chunk(chunk_raw_bytes)) {
    head.write<std::uint16_t>(static_cast<std::uint16_t>(payload_size));
  } else {
    head.write<std::uint32_t>(static_cast<std::uint32_t>(payload_size));
  }
  const std::size_t size = head.size() + payload_size + format::kChecksumBytes;
  seal_record({record, size}, header, number);
  return size;
}

void seal_record(std::span<std::uint8_t> record, const Header& header, std::uint64_t number) {
  const auto checked = record.first(record.size() - format::kChecksumBytes);
  store_le(record.data() + checked.size(), checksum(checked, record_seed(header, number)));
}

void find_records(std::span<const std::uint8_t> stream, std::size_t header_bytes,
                  const Header& header, const Grid& grid, RecordTable* table) {
  table->entries.clear();
  table->books.clear();
  table->has_index = false;
  table->end = 0;
  const std::uint64_t records = read_books(stream, header_bytes, header, table);
  const std::uint64_t chunks = grid.count();
  if (chunks > 1 && read_index(stream, header_bytes, header, chunks, table)) {
    table->has_index = true;
    table->end = stream.size();
    return;
  }
  table->entries.clear();
  std::uint64_t offset = records;
  for (std::uint64_t number = 0; number < chunks; ++number) {
    const auto entry = record_at(stream, offset, raw_bytes_of(grid, header, number));
    if (!entry) break;
    table->entries.push_back(*entry);
    offset += entry->size;
  }
  if (table->entries.size() != chunks) return;
  if (chunks <= 1) {
    table->end = offset;
  } else if (const auto index = index_end(stream.subspan(offset), header, chunks)) {
    table->end = offset + *index;
  }
}

RecordWalk::RecordWalk(const Header& header, std::size_t header_bytes)
    : header_(header), grid_(header.shape, header.chunk), offset_(header_bytes) {}

Result<std::uint64_t> RecordWalk::end(std::span<const std::uint8_t> stream) {
  while (chunks_ == 0 && books_ < format::kMaxSharedBooks) {
    ByteReader in(stream.subspan(offset_));
    const auto tag = in.read<std::uint8_t>();
    if (!in.ok()) break;  // no more has come; or there are no chunks
    if (tag != format::kBookTag) break;
    in.read_bytes(in.read<std::uint16_t>());
    in.read<std::uint32_t>();
    if (!in.ok()) return not_all_there();
    offset_ += in.position();
    ++books_;
  }
  const std::uint64_t count = grid_.count();
  for (; chunks_ < count; ++chunks_) {
    const auto entry = record_at(stream, offset_, raw_bytes_of(grid_, header_, chunks_));
    if (!entry) return entry.error();
    offset_ += entry->size;
  }
  if (count <= 1) return offset_;
  const auto index = index_end(stream.subspan(offset_), header_, count);
  if (!index) return index;
  return offset_ + *index;
}

Result<Record> read_record(std::span<const std::uint8_t> stream, const RecordTable::Entry& entry,
                           std::uint64_t chunk_raw_bytes, const Header& header,
                           std::uint64_t number, bool whole) {
  const auto bytes = stream.subspan(entry.offset, entry.size);
  const std::size_t head = record_head_bytes(chunk_raw_bytes);
  if (bytes.size() < head + format::kChecksumBytes) {
    return Error{ErrorCode::corrupt, "its record is too short"};
  }
  const auto checked = bytes.first(bytes.size() - format::kChecksumBytes);
  if (whole && load_le<std::uint32_t>(bytes.data() + checked.size()) !=
                   checksum(checked, record_seed(header, number))) {
    return Error{ErrorCode::corrupt, "checksum does not match"};
  }
  ByteReader in(checked);
  Record record;
  const unsigned tag = in.read<std::uint8_t>();
  record.error_units = in.read<std::uint16_t>();
  const std::uint64_t payload =
      small_chunk(chunk_raw_bytes) ? in.read<std::uint16_t>() : in.read<std::uint32_t>();
  record.payload = in.read_rest();
  record.pipeline = static_cast<Pipeline>(tag & format::kPipelineMask);
  if ((tag & format::kRecordReserved) != 0 || payload != record.payload.size()) {
    return Error{ErrorCode::corrupt, "its record contradicts itself"};
  }
  return record;
}

void write_book(std::span<const std::uint8_t> payload, const Header& header, std::size_t number,
                ByteWriter& out) {
  std::uint8_t* const begin = out.here();
  out.write<std::uint8_t>(format::kBookTag);
  out.write<std::uint16_t>(static_cast<std::uint16_t>(payload.size()));
  out.write_bytes(payload);
  out.write<std::uint32_t>(
      checksum({begin, out.here()}, record_seed(header, kFirstBookNumber + number)));
}

void write_index(const std::vector<RecordTable::Entry>& entries, const Header& header,
                 ByteWriter& out) {
  std::uint8_t* const begin = out.here();
  out.write<std::uint8_t>(format::kIndexTag);
  out.write_varint(entries.size());
  out.write_varint(entries.front().offset);
  for (const auto& entry : entries) {
    out.write_varint(entry.size);
    out.write<std::uint16_t>(entry.error_units);
  }
  const std::span<const std::uint8_t> body(begin, out.here());
  out.write<std::uint32_t>(checksum(body, record_seed(header, kIndexNumber)));
  out.write<std::uint32_t>(static_cast<std::uint32_t>(body.size() + format::kChecksumBytes));
  out.write<std::uint32_t>(format::kFooterMagic);
}

}  // namespace firn::container
