#include "pipelines/causal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "container/format.hpp"
#include "encode/context_rans.hpp"
#include "pipelines/causal_model.hpp"
#include "pipelines/causal_training.hpp"
#include "pipelines/chunk_values.hpp"
#include "pipelines/context_codes.hpp"
#include "pipelines/feedback.hpp"
#include "pipelines/payload_head.hpp"
#include "pipelines/wavefront.hpp"
#include "predict/interpolation.hpp"

namespace firn::pipelines {
namespace {

// The axis to run along: the chunk's fastest unless it is short, then the longest.
int choose_fast_axis(int rank, const std::array<std::size_t, kMaxRank>& extents) {
  int fast = rank - 1;
  if (extents[static_cast<std::size_t>(fast)] >= 56) return fast;
  for (int k = rank - 1; k >= 0; --k) {
    if (extents[static_cast<std::size_t>(k)] > extents[static_cast<std::size_t>(fast)]) fast = k;
  }
  return fast;
}

// A wavefront that would idle more than this is not worth it.
constexpr std::size_t max_slots(std::size_t count) { return 3 * count + 16384; }
constexpr std::size_t rans_capacity(std::size_t count, std::size_t slots) {
  return encode::context_rans_capacity<std::int32_t>(count) + slots / 64;
}

}  // namespace

std::size_t causal_capacity(std::size_t count) {
  return 512 + rans_capacity(count, max_slots(count));
}

template <class T>
void train_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace) {
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 parameters.finer);
  const T* values = contiguous(chunk, workspace);
  int fast = choose_fast_axis(chunk.rank(), chunk.extents());
  Wavefront& wavefront = workspace.wavefront;
  wavefront.reset(chunk.rank(), chunk.extents(), fast);
  if (wavefront.step_count() * Wavefront::kLanes > max_slots(chunk.count())) {
    fast = chunk.rank();
    wavefront.reset(chunk.rank(), chunk.extents(), fast);
  }
  workspace.causal_model = train_causal_model(values, chunk.count(), fast, wavefront, scale,
                                              fill_of<T>(parameters), workspace);
}

template <class T>
bool encode_causal(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                   std::uint8_t* out, Encoded* encoded) {
  if (!parameters.trained) train_causal(chunk, parameters, workspace);
  const std::size_t count = chunk.count();
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 parameters.finer);
  const T fill = fill_of<T>(parameters);
  const auto& kernels = predict::causal_kernels<T>(workspace.target);
  const T* values = contiguous(chunk, workspace);
  const CausalModel& model = workspace.causal_model;
  Wavefront& wavefront = workspace.wavefront;
  if (parameters.trained) wavefront.reset(chunk.rank(), chunk.extents(), model.fast);

  // The base: a code near the first value, from which prediction starts.
  std::int32_t base = 0;
  T origin = 0, error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (predict::quantize_point(values[i], scale, fill, &origin, &base, &error)) break;
  }
  T* cells = reinterpret_cast<T*>(workspace.points.reserve(wavefront.cell_count() * sizeof(T)));
  std::uint8_t* magnitudes = workspace.point_magnitudes.reserve(wavefront.cell_count());
  std::fill_n(cells, wavefront.cell_count(), static_cast<T>(base) * scale.step);
  std::memset(magnitudes, 0, wavefront.cell_count());
  const std::size_t along = wavefront.lags()[3];
  wavefront.for_each_row(cells, [&](T* to, std::size_t stride, const Wavefront::Row& row) {
    const T* from = values + row.origin;
    for (std::size_t x = 0; x < row.length; ++x) to[x * stride] = from[x * along];
  });

  const std::size_t slots = wavefront.step_count() * Wavefront::kLanes;
  auto* const codes = reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(slots / 2 + 64));
  std::uint8_t* const contexts = workspace.contexts.reserve(slots + 64);
  ExactPoints<T> exact(values, count, workspace);
  T max_error = 0;
  std::size_t done = 0;
  predict::CausalStencil<T> stencil;
  T predictions[Wavefront::kLanes];
  const bool within = wavefront.walk(
      cells, magnitudes,
      [&](int kind) { stencil = model.stencil_of(kind, wavefront, scale.inverse_step); },
      [&](const Wavefront::Step& step) {
        kernels.predict(stencil, cells + step.index, magnitudes + step.index, step.coded,
                        predictions, contexts + done);
        std::uint32_t missed =
            kernels.quantize(scale, fill, model.shift, step.coded, predictions, cells + step.index,
                             codes + done, magnitudes + step.index, &max_error);
        for (; missed != 0; missed &= missed - 1) {
          const auto lane = static_cast<std::size_t>(std::countr_zero(missed));
          contexts[done + lane] = predict::kNotCoded;
          exact.add(wavefront.place(step, lane));
        }
        done += Wavefront::kLanes;
        return parameters.fill || exact.found() <= count / 4;  // else all is in vain
      });
  if (!within) return false;

  exact.list();
  PayloadHead head;
  head.base = base;
  head.exact_count = exact.found();
  head.finer = parameters.finer;
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  model.write(wavefront, writer);
  const bool written = write_codes(codes, contexts, done, {}, rans_capacity(count, done),
                                   parameters, workspace, writer);
  // Errors are rounded to the nearest number, so the largest may be a little more than that.
  if (max_error > 0) max_error = std::nextafter(max_error, scale.bound);
  *encoded = {Pipeline::causal, writer.size(), static_cast<double>(max_error)};
  encoded->written = written;
  if (parameters.measured) {
    ErrorSample<T> errors(parameters.bound_abs, count);
    std::size_t begin = 0;
    wavefront.for_each_row(cells, [&](T* cell, std::size_t stride, const Wavefront::Row& row) {
      for (; errors.next() < begin + row.length; errors.advance()) {
        const std::size_t x = errors.next() - begin;
        errors.add(values[row.origin + x * along], cell[x * stride]);
      }
      begin += row.length;
    });
    encoded->mean_square = errors.mean_square();
  }
  return true;
}

template <class T>
bool decode_causal(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  ByteReader in(payload);
  PayloadHead head;
  CausalModel model;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), count, workspace,
                         &head) ||
      head.wide || head.phase != 0 || pack_orders(head.orders) != 0 ||
      static_cast<std::int32_t>(head.base) != head.base || !model.read_head(in, chunk.rank())) {
    return false;
  }
  Wavefront& wavefront = workspace.wavefront;
  wavefront.reset(chunk.rank(), chunk.extents(), model.fast);
  if (!wavefront.line() && wavefront.step_count() * Wavefront::kLanes > max_slots(count)) {
    return false;
  }
  if (!model.read_stencils(in, wavefront) ||
      !workspace.rans_decoder.start(in.read_rest(), workspace.target)) {
    return false;
  }
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 head.finer);
  const auto& kernels = predict::causal_kernels<T>(workspace.target);
  T* cells = reinterpret_cast<T*>(workspace.points.reserve(wavefront.cell_count() * sizeof(T)));
  std::uint8_t* magnitudes = workspace.point_magnitudes.reserve(wavefront.cell_count());
  std::fill_n(cells, wavefront.cell_count(), static_cast<T>(head.base) * scale.step);
  std::memset(magnitudes, 0, wavefront.cell_count());
  const bool any_exact = head.exact_count != 0;
  predict::CausalStencil<T> stencil;
  T predictions[Wavefront::kLanes];
  std::uint8_t contexts[Wavefront::kLanes];
  std::int32_t codes[Wavefront::kLanes];
  const bool whole = wavefront.walk(
      cells, magnitudes,
      [&](int kind) { stencil = model.stencil_of(kind, wavefront, scale.inverse_step); },
      [&](const Wavefront::Step& step) {
        std::uint32_t coded = step.coded;
        if (any_exact) {
          for (std::uint32_t lanes = step.coded; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
            if (workspace.exact_map.test(wavefront.place(step, lane))) {
              coded &= ~(std::uint32_t{1} << lane);
            }
          }
        }
        kernels.predict(stencil, cells + step.index, magnitudes + step.index, coded, predictions,
                        contexts);
        if (!workspace.rans_decoder.decode(contexts, Wavefront::kLanes, codes)) return false;
        kernels.restore(scale.step, model.shift, predictions, codes, cells + step.index,
                        magnitudes + step.index);
        return true;
      });
  if (!whole || !workspace.rans_decoder.finish()) return false;

  T* values = reinterpret_cast<T*>(workspace.values.reserve(count * sizeof(T)));
  const std::size_t along = wavefront.lags()[3];
  wavefront.for_each_row(cells, [&](const T* from, std::size_t stride, const Wavefront::Row& row) {
    T* to = values + row.origin;
    for (std::size_t x = 0; x < row.length; ++x) to[x * along] = from[x * stride];
  });
  write_values<T>(values, any_exact, chunk, workspace);
  return true;
}

std::string describe_causal(std::span<const std::uint8_t> payload, int rank, unsigned tighter) {
  ByteReader in(payload);
  const HeadInWords head = pass_head(in, tighter);
  CausalModel model;
  if (!model.read_head(in, rank)) return "damaged";
  std::string text = "stencil of up to " + std::to_string(predict::kMaxCausalTaps) + " points";
  text += model.fast == rank ? ", as a line" : ", along axis " + std::to_string(model.fast);
  return text + head.text;
}

#define FIRN_INSTANTIATE(T)                                                                      \
  template void train_causal(const Box<const T>&, const Parameters&, Workspace&);                \
  template bool encode_causal(const Box<const T>&, const Parameters&, Workspace&, std::uint8_t*, \
                              Encoded*);                                                         \
  template bool decode_causal(std::span<const std::uint8_t>, const Parameters&, const Box<T>&,   \
                              Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
