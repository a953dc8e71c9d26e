// Streams whose checksums are right although their contents need not be: so that decoders see what
// a checksum would otherwise keep from them.
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/geometry.hpp"
#include "container/format.hpp"
#include "container/header.hpp"
#include "container/records.hpp"

namespace firn::test {

// A sound header before one record with this payload. The payload is cut to the size of the
// chunk's values, the most that a record can hold.
inline std::vector<std::uint8_t> forged_stream(container::Header header, Pipeline pipeline,
                                               std::span<const std::uint8_t> payload) {
  const std::uint64_t raw_bytes = header.shape.count() * size_of(header.type);
  header.chunk = header.shape;
  if (payload.size() > raw_bytes) payload = payload.first(raw_bytes);
  std::vector<std::uint8_t> stream(container::kMaxHeaderBytes + container::kMaxRecordOverhead +
                                   payload.size());
  ByteWriter out(stream.data());
  container::write_header(header, out);
  std::uint8_t* record = out.here();
  std::copy(payload.begin(), payload.end(), record + container::record_head_bytes(raw_bytes));
  out.advance(container::finish_record(record, raw_bytes, pipeline, 0, payload.size(), header, 0));
  stream.resize(out.size());
  stream.shrink_to_fit();  // so that the sanitizer sees reads past the end
  return stream;
}

// The header and the only chunk's payload of a sound stream.
struct SoleChunk {
  container::Header header;
  Pipeline pipeline = Pipeline::raw;
  std::vector<std::uint8_t> payload;
};

inline SoleChunk sole_chunk_of(const std::vector<std::uint8_t>& stream) {
  SoleChunk chunk;
  ByteReader in(stream);
  auto header = container::read_header(in, stream);
  if (!header.ok()) return chunk;
  chunk.header = *header;
  const std::uint64_t raw_bytes = header->shape.count() * size_of(header->type);
  const container::RecordTable::Entry entry{in.position(), stream.size() - in.position(), 0};
  const auto record = container::read_record(stream, entry, raw_bytes, *header, 0);
  if (!record.ok()) return chunk;
  chunk.pipeline = record->pipeline;
  chunk.payload.assign(record->payload.begin(), record->payload.end());
  return chunk;
}

// Puts a right checksum behind the header's bytes; `stream` is a header alone.
inline void seal_header(std::vector<std::uint8_t>& stream) {
  const std::size_t body = stream.size() - format::kChecksumBytes;
  store_le(stream.data() + body, container::checksum({stream.data(), body}));
}

}  // namespace firn::test
