#include "container/header.hpp"

#ifdef FIRN_HAS_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>  // with it, the names of xxhash.h mean the dispatching functions
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

#include <algorithm>
#include <cmath>
#include <string>

#include "base/geometry.hpp"
#include "container/format.hpp"

namespace firn::container {

std::uint32_t checksum(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
}

void write_header(Header& header, ByteWriter& out) {
  std::uint8_t* const begin = out.here();
  out.write_bytes(format::kMagic);
  out.write<std::uint8_t>(format::kVersion);
  const bool single = header.chunk == header.shape;
  out.write<std::uint8_t>(static_cast<std::uint8_t>(
      static_cast<unsigned>(header.type) |
      static_cast<unsigned>(header.shape.rank) << format::kRankShift |
      (header.fill ? format::kHasFill : 0) | (single ? format::kSingleChunk : 0)));
  const bool grid = header.margin >= format::kGrid;
  const auto margin = static_cast<unsigned>(grid ? format::kGridNibble : header.margin);
  out.write<std::uint8_t>(static_cast<std::uint8_t>(static_cast<unsigned>(header.bound.kind) |
                                                    margin << format::kMarginShift));
  for (int k = 0; k < header.shape.rank; ++k) out.write_varint(header.shape.extents[k]);
  if (!single) {
    for (int k = 0; k < header.shape.rank; ++k) out.write_varint(header.chunk.extents[k]);
  }
  if (header.bound.kind != BoundKind::lossless) out.write<double>(header.bound_abs);
  if (grid) out.write<std::uint8_t>(static_cast<std::uint8_t>(header.margin - format::kGrid));
  if (header.bound.kind != BoundKind::lossless && header.bound.kind != BoundKind::abs) {
    out.write<double>(header.bound.value);
  }
  if (header.bound.kind == BoundKind::ratio) out.write<std::uint8_t>(header.tighter);
  if (header.fill) {
    if (header.type == Type::f32) {
      out.write<float>(static_cast<float>(*header.fill));
    } else {
      out.write<double>(*header.fill);
    }
  }
  header.checksum = checksum({begin, out.here()});
  out.write<std::uint32_t>(header.checksum);
}

namespace {

Error header_error(ErrorCode code, std::string what) {
  return {code, "stream header: " + std::move(what)};
}

}  // namespace

Result<Header> read_header(ByteReader& in, std::span<const std::uint8_t> stream) {
  const std::size_t begin = in.position();
  const auto magic = in.read_bytes(format::kMagic.size());
  if (!in.ok()) {
    const std::size_t have = std::min(stream.size(), format::kMagic.size());
    if (std::equal(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(have),
                   format::kMagic.begin()) &&
        have > 0) {
      return header_error(ErrorCode::truncated, "ends after " + std::to_string(have) + " bytes");
    }
    return Error{ErrorCode::not_firn, "not a Firn stream: fewer than 4 bytes"};
  }
  if (!std::equal(magic.begin(), magic.end(), format::kMagic.begin())) {
    return Error{ErrorCode::not_firn, "not a Firn stream: the first four bytes are not \"FIRN\""};
  }
  Header header;
  const unsigned version = in.read<std::uint8_t>();
  if (in.ok() && version > format::kVersion) {
    return Error{ErrorCode::newer_version, "stream of format version " + std::to_string(version) +
                                               "; this library reads up to " +
                                               std::to_string(format::kVersion) +
                                               ": use a newer Firn"};
  }
  if (in.ok() && version == 0) return header_error(ErrorCode::corrupt, "format version 0");
  const unsigned descriptor = in.read<std::uint8_t>();
  const unsigned bound = in.read<std::uint8_t>();
  // Of a header that is cut off here, nothing is believed; what follows finds that it is.
  const int rank =
      in.ok() ? static_cast<int>((descriptor & format::kRankMask) >> format::kRankShift) : 0;
  const unsigned type = descriptor & format::kTypeMask;
  // Checked before they decide how to read on; the checksum below covers them too.
  if (in.ok() && (rank < 1 || rank > kMaxRank || type < 1 || type > 2 ||
                  (descriptor & format::kDescriptorReserved) != 0 ||
                  (bound & format::kBoundKindMask) > static_cast<unsigned>(BoundKind::ratio))) {
    return header_error(ErrorCode::corrupt, "impossible type, rank or kind of bound");
  }
  header.type = static_cast<Type>(type);
  header.shape.rank = header.chunk.rank = rank;
  header.bound.kind = static_cast<BoundKind>(bound & format::kBoundKindMask);
  header.margin = static_cast<int>(bound >> format::kMarginShift);
  for (int k = 0; k < rank; ++k) header.shape.extents[k] = in.read_varint();
  header.chunk = header.shape;
  if ((descriptor & format::kSingleChunk) == 0) {
    for (int k = 0; k < rank; ++k) header.chunk.extents[k] = in.read_varint();
  }
  if (header.bound.kind != BoundKind::lossless) header.bound_abs = in.read<double>();
  const bool grid = header.margin == format::kGridNibble;
  if (grid) header.margin = format::kGrid + in.read<std::uint8_t>();
  header.bound.value = header.bound_abs;
  if (header.bound.kind != BoundKind::lossless && header.bound.kind != BoundKind::abs) {
    header.bound.value = in.read<double>();
  }
  if (header.bound.kind == BoundKind::ratio) header.tighter = in.read<std::uint8_t>();
  if ((descriptor & format::kHasFill) != 0) {
    header.fill = header.type == Type::f32 ? in.read<float>() : in.read<double>();
  }
  const std::size_t end = in.position();
  header.checksum = in.read<std::uint32_t>();
  if (!in.ok()) return header_error(ErrorCode::truncated, "incomplete");
  if (header.checksum != checksum(stream.subspan(begin, end - begin))) {
    return header_error(ErrorCode::corrupt, "checksum does not match");
  }
  // A checksum is no proof of sense.
  const bool pointwise = header.bound.kind == BoundKind::pwrel;
  const bool lossy = header.bound_abs != 0 && !pointwise;
  const bool possible =
      grid ? header.margin <= format::kGrid + format::kMaxGrainBits
           : header.margin >= format::kMinMargin && header.margin <= format::kMaxMargin;
  if (!(header.bound_abs >= 0) || !std::isfinite(header.bound_abs) ||
      (pointwise && (header.bound_abs > format::kMaxPointwise || header.margin != 0)) ||
      (lossy && !possible) || (grid && !lossy) ||
      (header.type == Type::f32 &&
       static_cast<double>(static_cast<float>(header.bound_abs)) != header.bound_abs)) {
    return header_error(ErrorCode::corrupt, "impossible bound");
  }
  if (const Status status =
          check_shapes(header.type, header.shape, header.chunk, format::kMaxChunkValues);
      !status) {
    return header_error(ErrorCode::corrupt, status.error().message);
  }
  return header;
}

}  // namespace firn::container
