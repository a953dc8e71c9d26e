// The head that the payloads of most pipelines begin with: flags, orders of differences, base,
// exact points, signs. docs/format.md, "Quantised codes".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/geometry.hpp"
#include "encode/exact_points.hpp"
#include "pipelines/pipeline.hpp"

namespace firn::pipelines {

// Difference order of each axis, slowest first.
using Orders = std::array<std::uint8_t, kMaxRank>;

// Distance in the chunk's array between neighbours along each axis.
std::array<std::size_t, kMaxRank> axis_lags(int rank,
                                            const std::array<std::size_t, kMaxRank>& extents);

std::uint8_t pack_orders(const Orders& orders);
// False when an axis has order 3 or there are more than predict::kMaxLags.
bool unpack_orders(std::uint8_t packed, int rank, Orders* orders);

// An axis of n values has at most n - 1 differences.
bool orders_fit(const Orders& orders, int rank, const std::array<std::size_t, kMaxRank>& extents);

// The head of a payload: flags, orders, base, exact points.
struct PayloadHead {
  bool wide = false;
  bool narrow = false;  // codes of 16 bits
  Orders orders{};
  std::int64_t base = 0;
  std::size_t exact_count = 0;
  bool exact_alike = false;  // exact_bytes has one value that all of them have
  bool signs = false;
  encode::MapCoding maps = encode::MapCoding::zstd;
  std::uint8_t finer = 0;  // as in Parameters
  std::uint8_t phase = 0;  // of codes, in 256ths; 0 but for `lorenzo`, `blockpack` and `contexts`
  RunnerUp runner_up;      // read; written is that of the workspace
};

// The exact points of the workspace, as payloads have them; listed: values in exact_bytes.
void write_exact_points_of(int rank, const std::array<std::size_t, kMaxRank>& extents,
                           std::size_t listed, encode::MapCoding maps, std::size_t value_bytes,
                           Workspace& workspace, ByteWriter& out);

std::size_t payload_head_capacity(std::size_t count, std::size_t exact_bytes);
void write_payload_head(const PayloadHead& head, int rank,
                        const std::array<std::size_t, kMaxRank>& extents, std::size_t value_bytes,
                        Workspace& workspace, ByteWriter& out);
// blockpack: codes may have 16 bits and maps their nonzero bytes only, and exact values that are
// alike are left as one; elsewhere exact_bytes has a value for each point.
bool read_payload_head(ByteReader& in, const Parameters& parameters, int rank,
                       const std::array<std::size_t, kMaxRank>& extents, std::size_t value_bytes,
                       std::size_t count, Workspace& workspace, PayloadHead* head,
                       bool blockpack = false);
// What a head says but for its orders, as the end of a sentence; `in` is then behind it.
struct HeadInWords {
  std::uint8_t orders = 0;
  std::string text;
};
HeadInWords pass_head(ByteReader& in, unsigned tighter);
// The head in words.
std::string describe_head(std::span<const std::uint8_t> payload, int rank, unsigned tighter);

}  // namespace firn::pipelines
