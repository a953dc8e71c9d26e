#include "pipelines/payload_head.hpp"

#include <string>

#include "container/format.hpp"
#include "predict/difference.hpp"

namespace firn::pipelines {

using Extents = std::array<std::size_t, kMaxRank>;

std::array<std::size_t, kMaxRank> axis_lags(int rank, const Extents& extents) {
  std::array<std::size_t, kMaxRank> lags{};
  std::size_t lag = 1;
  for (int k = rank - 1; k >= 0; --k) {
    lags[k] = lag;
    lag *= extents[k];
  }
  return lags;
}

std::uint8_t pack_orders(const Orders& orders) {
  unsigned packed = 0;
  for (int k = 0; k < kMaxRank; ++k) packed |= unsigned{orders[k]} << (2 * k);
  return static_cast<std::uint8_t>(packed);
}

bool unpack_orders(std::uint8_t packed, int rank, Orders* orders) {
  int lags = 0;
  for (int k = 0; k < kMaxRank; ++k) {
    const unsigned order = packed >> (2 * k) & 3;
    if (order == 3 || (k >= rank && order != 0)) return false;
    (*orders)[k] = static_cast<std::uint8_t>(order);
    lags += static_cast<int>(order);
  }
  return lags <= predict::kMaxLags;
}

bool orders_fit(const Orders& orders, int rank, const Extents& extents) {
  for (int k = 0; k < rank; ++k) {
    if (orders[k] >= std::max<std::size_t>(1, extents[k])) return false;
  }
  return true;
}

std::size_t payload_head_capacity(std::size_t count, std::size_t exact_bytes) {
  return 6 + kMaxVarintBytes + encode::exact_points_capacity(count, exact_bytes) +
         encode::map_capacity(count);
}

namespace {

// Distances at which a bit map of the chunk may resemble itself: a row, then planes.
struct MapLags {
  std::array<std::size_t, kMaxRank> lag{};
  std::size_t count = 0;

  MapLags(int rank, const Extents& extents) {
    const auto lags = axis_lags(rank, extents);
    lag[count++] = extents[rank - 1];
    for (int k = rank - 3; k >= 0; --k) lag[count++] = lags[k];
  }
  std::span<const std::size_t> list() const { return {lag.data(), count}; }
};

}  // namespace

void write_payload_head(const PayloadHead& head, int rank, const Extents& extents,
                        std::size_t value_bytes, Workspace& workspace, ByteWriter& out) {
  const bool has_maps = head.exact_count != 0 || head.signs;
  out.write<std::uint8_t>(static_cast<std::uint8_t>(
      (head.exact_count ? format::kHasExactPoints : 0) | (head.wide ? format::kWideCodes : 0) |
      (head.narrow ? format::kShortCodes : 0) |
      (workspace.runner_up.pipeline != 0 ? format::kHasRunnerUp : 0) |
      (head.signs ? format::kHasSigns : 0) | (head.finer != 0 ? format::kHasFinerStep : 0) |
      (head.phase != 0 ? format::kHasPhase : 0) |
      (has_maps && head.maps == encode::MapCoding::nonzero_bytes ? format::kNonzeroMaps : 0)));
  out.write<std::uint8_t>(pack_orders(head.orders));
  const auto base = static_cast<std::uint64_t>(head.base);
  out.write_varint(base << 1 ^ (head.base < 0 ? ~std::uint64_t{0} : 0));
  if (workspace.runner_up.pipeline != 0) {
    out.write(workspace.runner_up.pipeline);
    out.write(workspace.runner_up.percent);
  }
  if (head.finer != 0) out.write(head.finer);
  if (head.phase != 0) out.write(head.phase);
  if (head.exact_count != 0) {
    write_exact_points_of(rank, extents, head.exact_alike ? 1 : head.exact_count, head.maps,
                          value_bytes, workspace, out);
  }
  if (head.signs) {
    const MapLags lags(rank, extents);
    encode::write_map(workspace.sign_map, lags.list(), head.maps, workspace.lossless,
                      workspace.exact_scratch, out);
  }
}

void write_exact_points_of(int rank, const Extents& extents, std::size_t listed,
                           encode::MapCoding maps, std::size_t value_bytes, Workspace& workspace,
                           ByteWriter& out) {
  const MapLags lags(rank, extents);
  write_exact_points(workspace.exact_map, lags.list(), maps, value_bytes,
                     {workspace.exact_bytes.data(), listed * value_bytes}, workspace.lossless,
                     workspace.exact_scratch, out);
}

bool read_payload_head(ByteReader& in, const Parameters& parameters, int rank,
                       const Extents& extents, std::size_t value_bytes, std::size_t count,
                       Workspace& workspace, PayloadHead* head, bool blockpack) {
  const unsigned flags = in.read<std::uint8_t>();
  const std::uint8_t orders = in.read<std::uint8_t>();
  const std::uint64_t base = in.read_varint();
  constexpr unsigned kKnown = format::kHasExactPoints | format::kWideCodes | format::kHasSigns |
                              format::kHasRunnerUp | format::kHasFinerStep | format::kShortCodes |
                              format::kNonzeroMaps | format::kHasPhase;
  head->runner_up = {};
  if ((flags & format::kHasRunnerUp) != 0) {
    head->runner_up.pipeline = in.read<std::uint8_t>();
    head->runner_up.percent = in.read<std::uint8_t>();
  }
  head->finer = 0;
  if ((flags & format::kHasFinerStep) != 0) {
    head->finer = in.read<std::uint8_t>();
    if (head->finer > format::kMaxFiner || parameters.pointwise) return false;
  }
  head->phase = 0;
  if ((flags & format::kHasPhase) != 0) {
    head->phase = in.read<std::uint8_t>();
    if (head->phase == 0 || parameters.pointwise) return false;
  }
  if (!in.ok() || (flags & ~kKnown) != 0 || !unpack_orders(orders, rank, &head->orders) ||
      !orders_fit(head->orders, rank, extents)) {
    return false;
  }
  head->wide = (flags & format::kWideCodes) != 0;
  if (head->wide && value_bytes == 4) return false;
  head->narrow = (flags & format::kShortCodes) != 0;
  if (head->narrow && (!blockpack || head->wide || parameters.pointwise)) return false;
  const bool nonzero = (flags & format::kNonzeroMaps) != 0;
  if (nonzero && (!blockpack || (flags & (format::kHasExactPoints | format::kHasSigns)) == 0)) {
    return false;
  }
  head->maps = nonzero ? encode::MapCoding::nonzero_bytes : encode::MapCoding::zstd;
  head->base = static_cast<std::int64_t>(base >> 1 ^ (~(base & 1) + 1));
  head->exact_count = 0;
  head->exact_alike = false;
  if ((flags & format::kHasExactPoints) != 0) {
    workspace.exact_map.reset(count);
    if (!read_exact_points(in, extents[rank - 1], head->maps, value_bytes, workspace.lossless,
                           workspace.exact_scratch, workspace.exact_map, workspace.exact_bytes,
                           blockpack ? &head->exact_alike : nullptr)) {
      return false;
    }
    head->exact_count = workspace.exact_map.count();
  }
  head->signs = (flags & format::kHasSigns) != 0;
  if (head->signs && !parameters.pointwise) return false;
  if (head->signs) {
    workspace.sign_map.reset(count);
    return encode::read_map(in, extents[rank - 1], head->maps, workspace.lossless,
                            workspace.exact_scratch, workspace.sign_map);
  }
  return true;
}

HeadInWords pass_head(ByteReader& in, unsigned tighter) {
  HeadInWords words;
  const unsigned flags = in.read<std::uint8_t>();
  words.orders = in.read<std::uint8_t>();
  in.read_varint();
  std::string trial;
  if ((flags & format::kHasRunnerUp) != 0) {
    const auto pipeline = in.read<std::uint8_t>();
    const unsigned percent = in.read<std::uint8_t>();
    trial = "; in a trial " + std::string(name_of(static_cast<Pipeline>(pipeline))) + " took " +
            std::to_string(percent) + (percent == 255 ? " % more or worse" : " % more");
  }
  if ((flags & format::kWideCodes) != 0) words.text += ", 64-bit codes";
  if ((flags & format::kShortCodes) != 0) words.text += ", 16-bit codes";
  if ((flags & format::kHasFinerStep) != 0) {
    // Than the bound that holds would allow.
    const unsigned step = 256 - in.read<std::uint8_t>(), allowed = 256 - tighter;
    const unsigned finer = step < allowed ? (100 * (allowed - step) + allowed / 2) / allowed : 0;
    if (finer != 0) words.text += ", step " + std::to_string(finer) + " % finer";
  }
  if ((flags & format::kHasPhase) != 0) {
    words.text += ", phase " + std::to_string((100 * in.read<std::uint8_t>() + 128) / 256) + " %";
  }
  if ((flags & format::kHasExactPoints) != 0) {
    words.text += ", exact points";
    in.read_varint();
    in.read_bytes(in.read_varint());
    in.read_bytes(in.read_varint());
  }
  if ((flags & format::kHasSigns) != 0) {
    in.read_varint();
    in.read_bytes(in.read_varint());
  }
  words.text += trial;
  return words;
}

std::string describe_head(std::span<const std::uint8_t> payload, int rank, unsigned tighter) {
  ByteReader in(payload);
  const HeadInWords words = pass_head(in, tighter);
  Orders orders{};
  if (!in.ok() || !unpack_orders(words.orders, rank, &orders)) return "damaged";
  std::string text = "orders ";
  for (int k = 0; k < rank; ++k) text += static_cast<char>('0' + orders[k]);
  return text + words.text;
}

}  // namespace firn::pipelines
