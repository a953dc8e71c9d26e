// Decoders fed with anything: no crash, no endless loop, no memory for what is not there.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <firn/stream.hpp>
#include <vector>

#include "fuzz_input.hpp"
#include "support/forged_stream.hpp"

namespace {

// What arrives in pieces decodes to the same.
void read_in_pieces(std::span<const std::uint8_t> stream, const firn::Info& info,
                    const std::vector<std::uint8_t>& expected) {
  const std::uint64_t steps = info.shape.extents[0];
  if (expected.empty()) return;
  firn::StreamReader reader;
  firn::Execution execution;
  execution.threads = 1;
  std::vector<std::uint8_t> values(expected.size());
  const std::uint64_t step_bytes = values.size() / steps;
  std::uint64_t done = 0;
  const std::size_t piece = 1 + stream.size() / 5;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    if (!reader.feed(stream.subspan(at, std::min(piece, stream.size() - at))).ok()) break;
    for (bool more = reader.started(); more && done < steps;) {
      firn::Shape room = info.shape;
      room.extents[0] = std::max<std::uint64_t>(1, (steps - done) / 2);
      const auto read =
          reader.read({values.data() + done * step_bytes, info.type, room, {}}, execution);
      more = read.ok() && *read != 0;
      if (more) done += *read;
    }
  }
  if (std::memcmp(values.data(), expected.data(), done * step_bytes) != 0) std::abort();
}

void decode(std::span<const std::uint8_t> stream) {
  const auto info = firn::inspect(stream);
  if (!info) return;
  firn::inspect_chunks(stream).ok();
  constexpr std::uint64_t kMostValues = 1 << 20;
  if (info->shape.count() > kMostValues) return;
  std::vector<std::uint8_t> values(info->original_bytes);
  const firn::MutableArrayView out{values.data(), info->type, info->shape, {}};
  firn::Execution execution;
  execution.threads = 1;
  static firn::Decompressor decompressor;
  const bool whole = decompressor.decompress(stream, out, execution).ok();
  if (whole) read_in_pieces(stream, *info, values);
  const auto damages = decompressor.salvage(stream, out, execution);
  // Salvage is the same decoder: nothing is lost exactly when all can be decoded.
  if (!damages.ok() || damages->empty() != whole) std::abort();
  firn::Region region;
  region.shape = info->shape;
  for (int k = 0; k < region.shape.rank; ++k) {
    region.origin[k] = region.shape.extents[k] / 3;
    region.shape.extents[k] -= region.origin[k];
  }
  const bool part = decompressor
                        .decompress_region(stream, region,
                                           {values.data(), info->type, region.shape, {}}, execution)
                        .ok();
  if (whole && !part) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  firn::ByteReader in({data, size});
  if (in.read<std::uint8_t>() == firn::fuzz::kWholeStream) {
    decode(in.read_rest());
    return 0;
  }
  const auto chunk = firn::fuzz::ForgedChunk::read(in);
  firn::container::Header header;
  header.type = chunk.type;
  header.shape = header.chunk = chunk.shape;
  header.bound = firn::Bound::abs(std::ldexp(1.0, chunk.bound_exponent));
  header.bound_abs = header.bound.value;
  header.margin = chunk.margin;
  if (chunk.pointwise) {
    header.bound = firn::Bound::pwrel(std::ldexp(1.0, -1 - (chunk.bound_exponent & 0x1F)));
    header.bound_abs = header.bound.value;
    header.margin = 0;
  }
  decode(firn::test::forged_stream(header, chunk.pipeline, chunk.payload));
  return 0;
}
