// Decoders fed with anything: no crash, no endless loop, no memory for what is not there.
#include <cmath>
#include <cstdint>
#include <firn/firn.hpp>
#include <vector>

#include "fuzz_input.hpp"
#include "support/forged_stream.hpp"

namespace {

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
