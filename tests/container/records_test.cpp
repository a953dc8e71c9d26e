// Records and the index: where chunks are found, with and without the index, and damage.
#include "container/records.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "container/format.hpp"
#include "support/random.hpp"

namespace firn::container {
namespace {

// A stream of raw records of 10 values each, with an index.
struct Stream {
  Header header;
  std::vector<std::uint8_t> bytes;
  std::size_t header_bytes = 0;
  std::vector<RecordTable::Entry> entries;
  std::size_t index_at = 0;

  explicit Stream(std::uint64_t values, std::uint64_t chunk = 10) {
    header.shape = Shape{values};
    header.chunk = Shape{chunk};
    bytes.resize(values * 4 + 1000 + values / chunk * 64);
    ByteWriter out(bytes.data());
    write_header(header, out);
    header_bytes = out.size();
    const Grid grid(header.shape, header.chunk);
    for (std::uint64_t n = 0; n < grid.count(); ++n) {
      const std::uint64_t raw = grid.region(n).shape.count() * 4;
      std::uint8_t* payload = out.here() + record_head_bytes(raw);
      for (std::uint64_t i = 0; i < raw; ++i) payload[i] = static_cast<std::uint8_t>(n * 31 + i);
      const std::size_t at = out.size();
      out.advance(finish_record(out.here(), raw, Pipeline::raw, 0, raw, header, n));
      entries.push_back({at, out.size() - at, 0});
    }
    index_at = out.size();
    if (entries.size() > 1) write_index(entries, header, out);
    bytes.resize(out.size());
  }
  Grid grid() const { return Grid(header.shape, header.chunk); }
  RecordTable find(std::span<const std::uint8_t> some) const {
    RecordTable table;
    find_records(some, header_bytes, header, grid(), &table);
    return table;
  }
};

void expect_entries(const RecordTable& table, const Stream& stream, std::size_t count) {
  ASSERT_EQ(table.entries.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(table.entries[i].offset, stream.entries[i].offset);
    EXPECT_EQ(table.entries[i].size, stream.entries[i].size);
  }
}

TEST(Records, AreFoundThroughTheIndex) {
  const Stream stream(95);
  const RecordTable table = stream.find(stream.bytes);
  EXPECT_TRUE(table.has_index);
  expect_entries(table, stream, 10);
  for (std::uint64_t n = 0; n < 10; ++n) {
    const auto record =
        read_record(stream.bytes, table.entries[n], n == 9 ? 20 : 40, stream.header, n);
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(record->pipeline, Pipeline::raw);
    EXPECT_EQ(record->payload.size(), n == 9 ? 20u : 40u);
    EXPECT_EQ(record->payload[0], static_cast<std::uint8_t>(n * 31));
  }
}

TEST(Records, AreFoundByWalkingWithoutTheIndex) {
  const Stream stream(95);
  for (std::size_t size = stream.index_at; size < stream.bytes.size(); ++size) {
    const RecordTable table = stream.find({stream.bytes.data(), size});
    EXPECT_FALSE(table.has_index);
    expect_entries(table, stream, 10);
  }
}

TEST(Records, OfACutStreamAreThoseThatAreWhole) {
  const Stream stream(95);
  for (std::size_t size = stream.header_bytes; size < stream.index_at; ++size) {
    std::size_t whole = 0;
    while (stream.entries[whole].offset + stream.entries[whole].size <= size) ++whole;
    expect_entries(stream.find({stream.bytes.data(), size}), stream, whole);
  }
}

TEST(Records, ADamagedIndexIsNotUsed) {
  const Stream stream(95);
  for (std::size_t bit = stream.index_at * 8; bit < stream.bytes.size() * 8; ++bit) {
    auto bytes = stream.bytes;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const RecordTable table = stream.find(bytes);
    EXPECT_FALSE(table.has_index) << bit;
    expect_entries(table, stream, 10);
  }
}

TEST(Records, TheIndexFindsRecordsBehindADamagedSize) {
  const Stream stream(95);
  auto bytes = stream.bytes;
  bytes[stream.entries[2].offset + 3] ^= 0x0F;  // the size of record 2
  const RecordTable table = stream.find(bytes);
  EXPECT_TRUE(table.has_index);
  expect_entries(table, stream, 10);
  EXPECT_FALSE(read_record(bytes, table.entries[2], 40, stream.header, 2).ok());
  EXPECT_TRUE(read_record(bytes, table.entries[3], 40, stream.header, 3).ok());
}

TEST(Records, EveryFlippedBitIsNoticed) {
  const Stream stream(30);
  for (std::uint64_t n = 0; n < 3; ++n) {
    const auto& entry = stream.entries[n];
    for (std::size_t bit = entry.offset * 8; bit < (entry.offset + entry.size) * 8; ++bit) {
      auto bytes = stream.bytes;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      const auto record = read_record(bytes, entry, 40, stream.header, n);
      ASSERT_FALSE(record.ok());
      EXPECT_EQ(record.error().code, ErrorCode::corrupt);
    }
  }
}

TEST(Records, BelongToTheirPlaceAndStream) {
  const Stream stream(30);
  EXPECT_FALSE(read_record(stream.bytes, stream.entries[0], 40, stream.header, 1).ok());
  Header other = stream.header;
  other.checksum ^= 1;
  EXPECT_FALSE(read_record(stream.bytes, stream.entries[0], 40, other, 0).ok());
}

TEST(Records, LargeChunksHaveWideSizes) {
  EXPECT_EQ(record_head_bytes(65535), 5u);
  EXPECT_EQ(record_head_bytes(65536), 7u);
  const Stream stream(40000, 20000);
  const RecordTable table = stream.find(stream.bytes);
  expect_entries(table, stream, 2);
  EXPECT_TRUE(read_record(stream.bytes, table.entries[1], 80000, stream.header, 1).ok());
}

TEST(Records, ManyChunksTakeNoMemoryUntilTheyAreThere) {
  Stream stream(30);
  stream.header.shape = Shape{std::uint64_t{1} << 60};
  stream.header.chunk = Shape{1};
  const RecordTable table = stream.find(stream.bytes);
  EXPECT_LT(table.entries.size(), stream.bytes.size());
}

TEST(ErrorUnits, RoundUpAndNeverExceedTheBound) {
  EXPECT_EQ(error_units(0, 1), 0);
  EXPECT_EQ(error_units(0, 0), 0);
  EXPECT_EQ(error_units(1, 1), 65535);
  EXPECT_EQ(error_units(1e-300, 1), 1);
  EXPECT_EQ(error_of_units(65535, 0.1), 0.1);
  test::Random random(2);
  for (int i = 0; i < 100000; ++i) {
    const double bound = (1 + random.unit()) * std::ldexp(1.0, static_cast<int>(random.around(40)));
    const double error = bound * random.unit();
    const double stored = error_of_units(error_units(error, bound), bound);
    ASSERT_GE(stored, error);
    ASSERT_LE(stored, bound);
    ASSERT_LE(stored - error, bound / 65535 * 1.0001);
  }
}

// An error that is a whole number of units must not come out a rounding below itself.
TEST(ErrorUnits, CoverErrorsAtTheEdgeOfAUnit) {
  test::Random random(3);
  for (int i = 0; i < 100000; ++i) {
    const double bound = 1 + random.unit();
    const auto units = static_cast<double>(random.below(65536));
    double error = bound * units / 65535;
    for (int step = 0; step < 3; ++step) {
      ASSERT_GE(error_of_units(error_units(error, bound), bound), error) << units;
      error = std::nextafter(error, step % 2 ? 0 : bound);
    }
  }
}

}  // namespace
}  // namespace firn::container
