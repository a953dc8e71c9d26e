// What follows the header: books that chunks share, one record per chunk, then the index. Layout:
// docs/format.md, "Book records", "Chunk records" and "Index".
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/geometry.hpp"
#include "container/header.hpp"

namespace firn::container {

// Bytes before a chunk's payload: tag, error, size. The size field is as wide as the chunk's raw
// bytes need, which the reader knows as well.
std::size_t record_head_bytes(std::uint64_t chunk_raw_bytes);

// Most bytes that a record and its share of the index add to a payload.
inline constexpr std::size_t kMaxRecordOverhead = 1 + 2 + 4 + 4 + kMaxVarintBytes + 2;
inline constexpr std::size_t kMaxIndexOverhead = 1 + 2 * kMaxVarintBytes + 4 + 8;

// Completes the record whose payload already stands at record + record_head_bytes(). Returns its
// whole size.
std::size_t finish_record(std::uint8_t* record, std::uint64_t chunk_raw_bytes, Pipeline pipeline,
                          double max_error, std::size_t payload_size, const Header& header,
                          std::uint64_t number);

// Its checksum anew, for another header.
void seal_record(std::span<std::uint8_t> record, const Header& header, std::uint64_t number);

// The achieved error as it is stored: in units of bound / 65535, rounded up.
std::uint16_t error_units(double max_error, double bound_abs);
double error_of_units(std::uint16_t units, double bound_abs);
// Of a whole record.
std::uint16_t record_error(std::span<const std::uint8_t> record);

struct Record {
  Pipeline pipeline = Pipeline::raw;
  std::uint16_t error_units = 0;
  std::span<const std::uint8_t> payload;
};

// Where the records are: fewer than there are chunks when the stream is cut, or damaged so that
// they cannot be found.
struct RecordTable {
  struct Entry {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint16_t error_units;
  };
  std::vector<Entry> entries;
  std::vector<std::span<const std::uint8_t>> books;  // payloads by number, empty where damaged
  bool has_index = false;
  std::uint64_t end = 0;  // of the whole stream, when all of it was found; else 0
};

// A whole book record. The payload takes fewer than 65,536 bytes.
inline constexpr std::size_t kBookOverhead = 1 + 2 + 4;
void write_book(std::span<const std::uint8_t> payload, const Header& header, std::size_t number,
                ByteWriter& out);

// Finds the books, and the records through the index, or else by walking from one to the next.
void find_records(std::span<const std::uint8_t> stream, std::size_t header_bytes,
                  const Header& header, const Grid& grid, RecordTable* table);

// The same of a stream that is still arriving: goes on from where it was.
class RecordWalk {
 public:
  RecordWalk(const Header& header, std::size_t header_bytes);
  // Where the stream ends that begins with these bytes, of which there may be more than the last
  // time. `truncated`: not all of it is there.
  Result<std::uint64_t> end(std::span<const std::uint8_t> stream);

 private:
  Header header_;
  Grid grid_;
  std::uint64_t offset_, chunks_ = 0;  // behind the books and records that were found
  std::size_t books_ = 0;
};

// Parses and checks one record, whose chunk number and raw size are known. `whole`: its checksum
// too, for which all of it is read.
Result<Record> read_record(std::span<const std::uint8_t> stream, const RecordTable::Entry& entry,
                           std::uint64_t chunk_raw_bytes, const Header& header,
                           std::uint64_t number, bool whole = true);

void write_index(const std::vector<RecordTable::Entry>& entries, const Header& header,
                 ByteWriter& out);

}  // namespace firn::container
