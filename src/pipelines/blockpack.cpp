#include "pipelines/blockpack.hpp"

#include <algorithm>
#include <cstring>

#include "base/spread.hpp"
#include "encode/blockpack.hpp"
#include "encode/ceresz.hpp"
#include "pipelines/quantized_chunk.hpp"

namespace firn::pipelines {
namespace {

// Each further lag doubles the loads of a difference; three reach almost all of the ratio. What an
// entropy coder would take says little about what blocks do, where most codes are zero.
constexpr OrderSearch kSearch{.max_lags = 3, .least = 1024, .most = 1024, .packed = true};

// A part of fewer values would not tell what all take.
constexpr std::size_t kLeastRehearsed = 4096;

// Rehearsals look at about a quarter of the superblocks.
constexpr std::size_t kOneIn = 4;

// Of each four neighbours one, and not always the same, since rows may be as long as a few of them.
std::size_t rehearsed_superblock(std::size_t i) {
  return (i * kOneIn + static_cast<std::size_t>(spread(i, kOneIn))) * encode::kSuperblock;
}
std::size_t rehearsed_superblocks(std::size_t count) {
  const std::size_t all = count / encode::kSuperblock / kOneIn;
  return all + (rehearsed_superblock(all) + encode::kSuperblock <= count ? 1 : 0);
}

// About what encoding takes, from these; begin_of(i): where the codes of the i-th begin. `out` is
// written over.
template <class Q, class BeginOf>
std::size_t rehearsed_size(const Q* codes, std::size_t count, BeginOf begin_of,
                           const predict::Lags& lags, simd::Target target, std::uint8_t* out) {
  const auto& predict = predict::kernels<Q>(target);
  const auto& kernels = encode::blockpack_kernels<Q>(target);
  Q residuals[encode::kBlockpackTile];
  std::size_t filled = 0, seen = 0, bytes = 0;
  const auto encode = [&] {
    bytes += static_cast<std::size_t>(kernels.encode(residuals, filled, out) - out);
    seen += filled;
    filled = 0;
  };
  for (std::size_t i = 0; i < rehearsed_superblocks(count); ++i) {
    predict.difference(codes + begin_of(i), encode::kSuperblock, lags, residuals + filled);
    filled += encode::kSuperblock;
    if (filled == encode::kBlockpackTile) encode();
  }
  encode();
  return bytes * count / seen;
}

// The same of a line, of which nothing else is quantised; too_many_exact: if it has exact points at
// all, is short, or more than its size is wanted.
template <class T, class Q>
QuantizeOutcome rehearse_line(const Box<const T>& chunk, const Parameters& parameters,
                              Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  // Each with what differences look back at.
  constexpr std::size_t kBefore = 16, kRow = kBefore + encode::kSuperblock;
  const std::size_t count = chunk.count();
  if (chunk.rank() != 1 || count < kLeastRehearsed || parameters.measured) {
    return QuantizeOutcome::too_many_exact;
  }
  const T* line = nullptr;
  chunk.for_each_row([&](const T* row, std::size_t) {
    line = row;
    return true;
  });
  const std::int64_t stride = chunk.row_stride();
  Region all;
  all.shape = {rehearsed_superblocks(count) * kRow};
  T* const values = reinterpret_cast<T*>(workspace.values.reserve(all.shape.count() * sizeof(T)));
  for (std::size_t i = 0; i < rehearsed_superblocks(count); ++i) {
    const std::size_t begin = std::max(rehearsed_superblock(i), kBefore) - kBefore;
    const T* const from = line + static_cast<std::int64_t>(begin) * stride;
    T* const to = values + i * kRow;
    if (stride == 1) {
      std::memcpy(to, from, kRow * sizeof(T));
    } else {
      for (std::size_t k = 0; k < kRow; ++k) to[k] = from[static_cast<std::int64_t>(k) * stride];
    }
  }
  QuantizedChunk<T, Q> quantized;
  const Box<const T> looked_at(values, {1}, all);
  const QuantizeOutcome outcome =
      quantize_chunk<T, Q>(looked_at, parameters, workspace, &quantized, true);
  if (outcome != QuantizeOutcome::done) return outcome;
  if (quantized.exact_count != 0) return QuantizeOutcome::too_many_exact;
  const Orders orders =
      choose_orders(quantized.codes, quantized.count, 1, looked_at.extents(), kSearch, workspace);
  encoded->pipeline = Pipeline::blockpack;
  encoded->written = false;
  encoded->size = rehearsed_size(
      quantized.codes, count, [](std::size_t i) { return i * kRow + kBefore; },
      lags_of(orders, 1, looked_at.extents()), workspace.target, out);
  keep_orders(orders, encoded);
  return outcome;
}

template <class T, class Q>
QuantizeOutcome encode_as(const Box<const T>& chunk, const Parameters& parameters,
                          Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  if (parameters.rehearsal) {
    const auto outcome = rehearse_line<T, Q>(chunk, parameters, workspace, out, encoded);
    if (outcome != QuantizeOutcome::too_many_exact) return outcome;
  }
  QuantizedChunk<T, Q> quantized;
  const bool rehearsed = parameters.rehearsal && chunk.count() >= kLeastRehearsed;
  const QuantizeOutcome outcome =
      quantize_chunk<T, Q>(chunk, parameters, workspace, &quantized, parameters.trial || rehearsed);
  if (outcome != QuantizeOutcome::done) return outcome;
  PayloadHead head;
  head.wide = sizeof(Q) == 8;
  head.narrow = sizeof(Q) == 2;
  head.base = quantized.base;
  head.finer = parameters.finer;
  head.phase = quantized.phase;
  head.exact_count = quantized.exact_count;
  head.exact_alike = quantized.exact_alike;
  head.maps = encode::MapCoding::nonzero_bytes;
  head.signs = quantized.signs;
  head.orders =
      kept_or_chosen_orders(Pipeline::blockpack, parameters, quantized.codes, quantized.count,
                            chunk.rank(), chunk.extents(), kSearch, workspace);
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  const auto& predict = predict::kernels<Q>(workspace.target);
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  const auto& kernels = encode::blockpack_kernels<Q>(workspace.target);
  std::uint8_t* next = writer.here();
  if (rehearsed) {
    next += rehearsed_size(quantized.codes, quantized.count, rehearsed_superblock, lags,
                           workspace.target, next);
  } else {
    Q residuals[encode::kBlockpackTile];
    for (std::size_t begin = 0; begin < quantized.count; begin += encode::kBlockpackTile) {
      const std::size_t length = std::min(encode::kBlockpackTile, quantized.count - begin);
      predict.difference(quantized.codes + begin, length, lags, residuals);
      next = kernels.encode(residuals, length, next);
    }
  }
  *encoded = {Pipeline::blockpack, static_cast<std::size_t>(next - out), quantized.max_error};
  encoded->written = !rehearsed && !parameters.trial;
  keep_orders(head.orders, encoded);
  if (parameters.measured) encoded->mean_square = mean_square(chunk, parameters, quantized);
  return outcome;
}

template <class T, class Q>
bool decode_as(ByteReader& in, const PayloadHead& head, const Parameters& parameters,
               const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  const auto& predict = predict::kernels<Q>(workspace.target);
  const auto& kernels = encode::blockpack_kernels<Q>(workspace.target);
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  const auto bytes = in.read_rest();
  const std::uint8_t* next = bytes.data();
  const std::uint8_t* const end = next + bytes.size();
  predict::Carry<Q> carry;
  Q residuals[encode::kBlockpackTile];
  for (std::size_t begin = 0; begin < count; begin += encode::kBlockpackTile) {
    const std::size_t length = std::min(encode::kBlockpackTile, count - begin);
    next = kernels.decode(next, end, residuals, length);
    if (next == nullptr) return false;
    predict.reconstruct(residuals, length, lags, carry, codes + begin);
  }
  restore_chunk<T, Q>(codes, head, parameters, chunk, workspace);
  return next == end;
}

encode::CereszHeader ceresz_header(Pipeline pipeline) {
  return pipeline == Pipeline::ceresz4 ? encode::CereszHeader::four_bytes
                                       : encode::CereszHeader::one_byte;
}

}  // namespace

std::size_t blockpack_payload_capacity(std::size_t count) {
  return std::max(encode::blockpack_capacity(count, 8),
                  encode::ceresz_capacity(count, encode::CereszHeader::four_bytes));
}

template <class T>
bool encode_blockpack(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                      std::uint8_t* out, Encoded* encoded) {
  QuantizeOutcome outcome = encode_as<T, std::int16_t>(chunk, parameters, workspace, out, encoded);
  if (outcome == QuantizeOutcome::needs_wide) {
    outcome = encode_as<T, std::int32_t>(chunk, parameters, workspace, out, encoded);
  }
  if constexpr (sizeof(T) == 8) {
    if (outcome == QuantizeOutcome::needs_wide) {
      outcome = encode_as<T, std::int64_t>(chunk, parameters, workspace, out, encoded);
    }
  }
  return outcome == QuantizeOutcome::done;
}

template <class T>
bool decode_blockpack(std::span<const std::uint8_t> payload, const Parameters& parameters,
                      const Box<T>& chunk, Workspace& workspace) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), chunk.count(),
                         workspace, &head, true)) {
    return false;
  }
  if (head.narrow) return decode_as<T, std::int16_t>(in, head, parameters, chunk, workspace);
  if constexpr (sizeof(T) == 8) {
    if (head.wide) return decode_as<T, std::int64_t>(in, head, parameters, chunk, workspace);
  }
  return decode_as<T, std::int32_t>(in, head, parameters, chunk, workspace);
}

template <class T>
bool encode_ceresz(Pipeline pipeline, const Box<const T>& chunk, const Parameters& parameters,
                   Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  QuantizedChunk<T, std::int32_t> quantized;
  if (quantize_chunk<T, std::int32_t>(chunk, parameters, workspace, &quantized) !=
      QuantizeOutcome::done) {
    return false;
  }
  // CereSZ's codes have no base: the first code of a block is the quantised value itself.
  for (std::size_t i = 0; i < quantized.count; ++i) {
    quantized.codes[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(quantized.codes[i]) +
                                                   static_cast<std::uint32_t>(quantized.base));
  }
  PayloadHead head;
  head.finer = parameters.finer;
  head.exact_count = quantized.exact_count;
  head.exact_alike = quantized.exact_alike;
  head.signs = quantized.signs;
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  const std::uint8_t* end = encode::ceresz_encode(quantized.codes, quantized.count,
                                                  ceresz_header(pipeline), writer.here());
  *encoded = {pipeline, static_cast<std::size_t>(end - out), quantized.max_error};
  return true;
}

template <class T>
bool decode_ceresz(Pipeline pipeline, std::span<const std::uint8_t> payload,
                   const Parameters& parameters, const Box<T>& chunk, Workspace& workspace) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), chunk.count(),
                         workspace, &head) ||
      head.wide || head.phase != 0 || pack_orders(head.orders) != 0) {
    return false;
  }
  const auto bytes = in.read_rest();
  std::int32_t* codes = reserve_codes<std::int32_t>(chunk.count(), 0, workspace);
  const std::uint8_t* end = bytes.data() + bytes.size();
  if (encode::ceresz_decode(bytes.data(), end, ceresz_header(pipeline), codes, chunk.count()) !=
      end) {
    return false;
  }
  restore_chunk<T, std::int32_t>(codes, head, parameters, chunk, workspace);
  return true;
}

#define FIRN_INSTANTIATE(T)                                                                       \
  template bool encode_blockpack(const Box<const T>&, const Parameters&, Workspace&,              \
                                 std::uint8_t*, Encoded*);                                        \
  template bool decode_blockpack(std::span<const std::uint8_t>, const Parameters&, const Box<T>&, \
                                 Workspace&);                                                     \
  template bool encode_ceresz(Pipeline, const Box<const T>&, const Parameters&, Workspace&,       \
                              std::uint8_t*, Encoded*);                                           \
  template bool decode_ceresz(Pipeline, std::span<const std::uint8_t>, const Parameters&,         \
                              const Box<T>&, Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
