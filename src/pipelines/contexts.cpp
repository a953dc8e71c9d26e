#include "pipelines/contexts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/spread.hpp"
#include "container/format.hpp"
#include "encode/context_rans.hpp"
#include "pipelines/context_codes.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "predict/contexts.hpp"

namespace firn::pipelines {
namespace {

// Exact points have a residual of 0 and a context of their own, so they cost next to nothing.
constexpr std::uint8_t kExactContext = predict::kContextCount;

// Magnitudes with zeroed history before them.
std::uint16_t* reserve_magnitudes(std::size_t count, const predict::ContextRule& rule,
                                  Workspace& workspace) {
  const std::size_t history = (rule.history() + 63) / 64 * 64;
  std::uint16_t* all = workspace.magnitudes.reserve(history + count + 64);
  std::memset(all, 0, history * sizeof(std::uint16_t));
  std::memset(all + history + count, 0, 64 * sizeof(std::uint16_t));
  return all + history;
}

// The shift that keeps all but the largest quarter of the magnitudes of a sample apart: how much
// larger those are tells less than what small ones lose.
template <class Q>
int choose_shift(const Q* residuals, std::size_t count) {
  constexpr std::size_t kSamples = 1024;
  const std::size_t step = std::max<std::size_t>(1, count / kSamples);
  // Most often none is large.
  const auto bits_of = [&](std::size_t i) {
    return static_cast<std::make_unsigned_t<Q>>(residuals[i] < 0 ? ~residuals[i] : residuals[i]);
  };
  std::make_unsigned_t<Q> any = 0;
  for_one_in(step, count, [&](std::size_t i) { any |= bits_of(i); });
  constexpr int kWidth = 10;  // kMaxMagnitude has 11 bits
  if (std::bit_width(any) <= kWidth) return 0;
  std::array<std::size_t, 65> of_width{};
  std::size_t sampled = 0;
  for_one_in(step, count, [&](std::size_t i) {
    ++of_width[static_cast<std::size_t>(std::bit_width(bits_of(i)))];
    ++sampled;
  });
  std::size_t above = 0;
  int width = 64;
  while (width > 0 && (above += of_width[static_cast<std::size_t>(width)]) * 4 < sampled) --width;
  return std::max(0, width - kWidth);
}

// A chunk of so few values has no use for several distributions. The largest shift leaves nothing
// of any magnitude but the smallest number's, so that all contexts are 0.
constexpr std::size_t kOneContext = 512;
template <class Q>
constexpr int kHidingShift = static_cast<int>(8 * sizeof(Q)) - 1;
template <class Q>
bool hides_not_all(const Q* residuals, std::size_t count) {
  Q found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    found |= static_cast<Q>(residuals[i] == std::numeric_limits<Q>::min());
  }
  return found != 0;
}

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

  const auto rule = predict::context_rule(chunk.rank(), axis_lags(chunk.rank(), chunk.extents()));
  const auto& kernels = predict::context_kernels<Q>(workspace.target);
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  int shift = kHidingShift<Q>;
  if (count <= kOneContext && !hides_not_all(residuals, count)) {
    std::memset(contexts, 0, count);
  } else {
    shift = choose_shift(residuals, count);
    std::uint16_t* magnitudes = reserve_magnitudes(count, rule, workspace);
    kernels.magnitudes(residuals, count, shift, magnitudes);
    kernels.contexts(magnitudes, count, rule, contexts);
  }
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
  const auto rule = predict::context_rule(chunk.rank(), axis_lags(chunk.rank(), chunk.extents()));
  const auto& predict = predict::kernels<Q>(workspace.target);
  const auto& kernels = predict::context_kernels<Q>(workspace.target);
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  std::uint16_t* magnitudes = reserve_magnitudes(count, rule, workspace);
  constexpr std::size_t kMaxPiece = 1024;
  const std::size_t piece = std::min(kMaxPiece, rule.stride());
  std::uint8_t contexts[kMaxPiece + 64];
  Q residuals[kMaxPiece + 64];
  predict::Carry<Q> carry;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t length = std::min(piece, count - begin);
    kernels.contexts(magnitudes + begin, length, rule, contexts);
    if (head.exact_count != 0) {
      mark_exact(workspace.exact_map, begin, begin + length, contexts);
    }
    if (!workspace.rans_decoder.decode(contexts, length, residuals)) return false;
    kernels.magnitudes(residuals, length, shift, magnitudes + begin);
    predict.reconstruct(residuals, length, lags, carry, codes + begin);
  }
  if (!workspace.rans_decoder.finish()) return false;
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
