// The bytes that a fuzzer invents, read as the fields of a test case: so that make_seeds can write
// what the fuzzers read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <firn/firn.hpp>
#include <vector>

#include "base/bytes.hpp"

namespace firn::fuzz {

// First a byte that says whether the rest is a stream as it is, or a forged chunk:
//   u8 pipeline, u8 type and rank, u8 extents..., u8 margin, i8 exponent of the bound, payload.
inline constexpr std::uint8_t kWholeStream = 0;
inline constexpr std::uint8_t kForgedChunk = 1;

struct ForgedChunk {
  Pipeline pipeline = Pipeline::raw;
  Type type = Type::f32;
  Shape shape;
  int margin = 0;
  bool pointwise = false;  // the bound is pwrel, 2^-1 to 2^-32
  std::int8_t bound_exponent = 0;
  std::vector<std::uint8_t> payload;

  static ForgedChunk read(ByteReader& in) {
    ForgedChunk chunk;
    chunk.pipeline = static_cast<Pipeline>(in.read<std::uint8_t>());
    const auto kind = in.read<std::uint8_t>();
    chunk.type = kind % 2 == 0 ? Type::f32 : Type::f64;
    chunk.shape.rank = 1 + kind / 2 % kMaxRank;
    // Longer rows than columns, at most some 100,000 values.
    constexpr std::uint64_t kMostAlong[kMaxRank] = {1, 20, 11, 5};
    for (int k = 0; k < chunk.shape.rank; ++k) {
      const std::uint64_t extent = in.read<std::uint8_t>();
      chunk.shape.extents[k] = k + 1 == chunk.shape.rank
                                   ? 1 + extent * 3
                                   : 1 + extent % kMostAlong[chunk.shape.rank - 1];
    }
    const auto margin = in.read<std::uint8_t>();
    chunk.margin = 2 + margin % 9;
    chunk.pointwise = margin >= 128;
    chunk.bound_exponent = static_cast<std::int8_t>(in.read<std::uint8_t>());
    const auto rest = in.read_rest();
    chunk.payload.assign(rest.begin(), rest.end());
    return chunk;
  }
};

}  // namespace firn::fuzz
