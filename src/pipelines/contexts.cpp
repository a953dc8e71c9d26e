#include "pipelines/contexts.hpp"

#include <cstring>

#include "encode/context_rans.hpp"
#include "pipelines/context_codes.hpp"
#include "pipelines/neighbour_contexts.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "predict/contexts.hpp"

namespace firn::pipelines {
namespace {

// Exact points have a residual of 0 and a context of their own, so they cost next to nothing.
constexpr std::uint8_t kExactContext = predict::kContextCount;

void mark_exact(const encode::BitMap& map, std::size_t begin, std::size_t end,
                std::uint8_t* contexts) {
  map.for_each_run(begin, end, [&](std::size_t first, std::size_t run) {
    std::memset(contexts + (first - begin), kExactContext, run);
  });
}

template <class T, class Q>
QuantizeOutcome encode_as(const Box<const T>& chunk, const Parameters& parameters,
                          Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  QuantizedChunk<T, Q> quantized;
  const QuantizeOutcome outcome = quantize_chunk<T, Q>(chunk, parameters, workspace, &quantized);
  if (outcome != QuantizeOutcome::done) return outcome;
  const std::size_t count = quantized.count;
  PayloadHead head;
  head.wide = sizeof(Q) == 8;
  head.base = quantized.base;
  head.exact_count = quantized.exact_count;
  head.exact_alike = quantized.exact_alike;
  head.signs = quantized.signs;
  head.finer = parameters.finer;
  head.phase = quantized.phase;
  head.orders = kept_or_chosen_orders(Pipeline::contexts, parameters, quantized.codes, count,
                                      chunk.rank(), chunk.extents(), {}, workspace);
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  const auto& predict = predict::kernels<Q>(workspace.target);
  if (head.exact_count != 0) {
    predict.fill(quantized.codes, count, lags, workspace.exact_map.words());
  }
  Q* residuals = reinterpret_cast<Q*>(workspace.residuals.reserve((count * sizeof(Q) + 7) / 8));
  predict.difference(quantized.codes, count, lags, residuals);

  const int shift = find_contexts(residuals, count, chunk.rank(), chunk.extents(), workspace);
  std::uint8_t* contexts = workspace.contexts.data();
  if (head.exact_count != 0) mark_exact(workspace.exact_map, 0, count, contexts);

  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  writer.write<std::uint8_t>(static_cast<std::uint8_t>(shift));
  const bool written =
      write_codes(residuals, contexts, count, {}, encode::context_rans_capacity<Q>(count),
                  parameters, workspace, writer);
  *encoded = {Pipeline::contexts, writer.size(), quantized.max_error};
  encoded->written = written;
  keep_orders(head.orders, encoded);
  if (parameters.measured) encoded->mean_square = mean_square(chunk, parameters, quantized);
  return outcome;
}

template <class T, class Q>
bool decode_as(ByteReader& in, const PayloadHead& head, const Parameters& parameters,
               const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  const int shift = in.read<std::uint8_t>();
  if (!in.ok() || shift >= static_cast<int>(sizeof(Q) * 8)) return false;
  if (!workspace.rans_decoder.start(in.read_rest(), workspace.target)) return false;
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  const auto& predict = predict::kernels<Q>(workspace.target);
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  predict::Carry<Q> carry;
  const auto mark = [&](std::size_t begin, std::size_t end, std::uint8_t* contexts) {
    if (head.exact_count != 0) mark_exact(workspace.exact_map, begin, end, contexts);
  };
  const auto take = [&](std::size_t begin, std::size_t length, Q* residuals) {
    predict.reconstruct(residuals, length, lags, carry, codes + begin);
  };
  if (!decode_residuals<Q>(count, chunk.rank(), chunk.extents(), shift, workspace, mark, take)) {
    return false;
  }
  restore_chunk<T, Q>(codes, head, parameters, chunk, workspace);
  return true;
}

}  // namespace

std::size_t contexts_capacity(std::size_t count) {
  return 16 + encode::context_rans_capacity<std::int64_t>(count);
}

template <class T>
bool encode_contexts(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                     std::uint8_t* out, Encoded* encoded) {
  QuantizeOutcome outcome = encode_as<T, std::int32_t>(chunk, parameters, workspace, out, encoded);
  if constexpr (sizeof(T) == 8) {
    if (outcome == QuantizeOutcome::needs_wide) {
      outcome = encode_as<T, std::int64_t>(chunk, parameters, workspace, out, encoded);
    }
  }
  return outcome == QuantizeOutcome::done;
}

template <class T>
bool decode_contexts(std::span<const std::uint8_t> payload, const Parameters& parameters,
                     const Box<T>& chunk, Workspace& workspace) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), chunk.count(),
                         workspace, &head)) {
    return false;
  }
  if constexpr (sizeof(T) == 8) {
    if (head.wide) return decode_as<T, std::int64_t>(in, head, parameters, chunk, workspace);
  }
  return decode_as<T, std::int32_t>(in, head, parameters, chunk, workspace);
}

#define FIRN_INSTANTIATE(T)                                                                        \
  template bool encode_contexts(const Box<const T>&, const Parameters&, Workspace&, std::uint8_t*, \
                                Encoded*);                                                         \
  template bool decode_contexts(std::span<const std::uint8_t>, const Parameters&, const Box<T>&,   \
                                Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
