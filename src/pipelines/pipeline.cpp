#include "pipelines/pipeline.hpp"

#include <algorithm>
#include <cstring>

#include "encode/lossless.hpp"
#include "pipelines/automatic.hpp"
#include "pipelines/bits.hpp"
#include "pipelines/blockpack.hpp"
#include "pipelines/causal.hpp"
#include "pipelines/contexts.hpp"
#include "pipelines/fre.hpp"
#include "pipelines/interp.hpp"
#include "pipelines/lorenzo.hpp"
#include "pipelines/payload_head.hpp"

namespace firn::pipelines {
namespace {

// All values have the same bits.
template <class T>
bool encode_constant(const Box<const T>& chunk, std::uint8_t* out, Encoded* encoded) {
  const T* first = nullptr;
  const bool constant = chunk.for_each_row([&](const T* row, std::size_t) {
    if (first == nullptr) first = row;
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      if (std::memcmp(&row[static_cast<std::int64_t>(i) * chunk.row_stride()], first, sizeof(T)) !=
          0) {
        return false;
      }
    }
    return true;
  });
  if (!constant || first == nullptr) return false;
  std::memcpy(out, first, sizeof(T));
  *encoded = {Pipeline::constant, sizeof(T), 0};
  return true;
}

template <class T>
void encode_raw(const Box<const T>& chunk, std::uint8_t* out, Encoded* encoded) {
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    std::uint8_t* to = out + offset * sizeof(T);
    if (chunk.row_stride() == 1) {
      std::memcpy(to, row, chunk.row_length() * sizeof(T));
      return true;
    }
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      std::memcpy(to + i * sizeof(T), &row[static_cast<std::int64_t>(i) * chunk.row_stride()],
                  sizeof(T));
    }
    return true;
  });
  *encoded = {Pipeline::raw, chunk.count() * sizeof(T), 0};
}

// Writes every value of the chunk from bytes that lie `step` apart (0: one for all).
template <class T>
void decode_values(const std::uint8_t* from, std::size_t step, const Box<T>& chunk) {
  chunk.for_each_row([&](T* row, std::size_t offset) {
    if (step == sizeof(T) && chunk.row_stride() == 1) {
      std::memcpy(row, from + offset * step, chunk.row_length() * step);
      return true;
    }
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      std::memcpy(&row[static_cast<std::int64_t>(i) * chunk.row_stride()],
                  from + (offset + i) * step, sizeof(T));
    }
    return true;
  });
}

}  // namespace

std::size_t payload_capacity(std::size_t count, Type type, Pipeline pipeline) {
  const std::size_t bytes = size_of(type);
  const std::size_t lossless = encode::Lossless::capacity(count * bytes) + 16;
  // That of `fre` has exact points and less besides.
  const std::size_t head = payload_head_capacity(count, count * bytes);
  if (pipeline == Pipeline::blockpack) {
    return std::max(lossless, head + blockpack_payload_capacity(count));
  }
  const std::size_t rest = std::max({lorenzo_capacity(count), blockpack_payload_capacity(count),
                                     contexts_capacity(count), interp_capacity(count),
                                     causal_capacity(count), fre_capacity(count)});
  return std::max(lossless, head + rest);
}

template <class T>
Encoded encode(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
               std::uint8_t* out) {
  Encoded encoded;
  workspace.rans_encoder.set_thorough(parameters.thorough);
  const std::size_t raw_bytes = chunk.count() * sizeof(T);
  if (encode_constant(chunk, out, &encoded)) return encoded;
  if (parameters.bound_abs > 0) {
    const bool done = parameters.pipeline == Pipeline::automatic
                          ? encode_best(chunk, parameters, workspace, out, &encoded)
                          : encode_with({parameters.pipeline, 0, 0, 0, parameters.thorough}, chunk,
                                        parameters, workspace, out, &encoded);
    if (done && parameters.keep_choice) keep_trained(workspace, &encoded.choice);
    if (done && encoded.size < raw_bytes) return encoded;
  }
  if (parameters.pipeline != Pipeline::raw &&
      encode_lossless(chunk, parameters, workspace, out,
                      payload_capacity(chunk.count(), sizeof(T) == 4 ? Type::f32 : Type::f64,
                                       parameters.pipeline),
                      &encoded)) {
    return encoded;
  }
  encode_raw(chunk, out, &encoded);
  return encoded;
}
template Encoded encode(const Box<const float>&, const Parameters&, Workspace&, std::uint8_t*);
template Encoded encode(const Box<const double>&, const Parameters&, Workspace&, std::uint8_t*);

template <class T>
bool decode(Pipeline pipeline, std::span<const std::uint8_t> payload, const Parameters& parameters,
            const Box<T>& chunk, Workspace& workspace) {
  switch (pipeline) {
    case Pipeline::raw:
      if (payload.size() != chunk.count() * sizeof(T)) return false;
      decode_values(payload.data(), sizeof(T), chunk);
      return true;
    case Pipeline::constant:
      if (payload.size() != sizeof(T)) return false;
      decode_values(payload.data(), 0, chunk);
      return true;
    case Pipeline::shuffle:
      return decode_shuffle(payload, chunk, workspace);
    case Pipeline::bits:
      return decode_bits(payload, chunk, workspace);
    case Pipeline::lorenzo:
      return parameters.bound_abs > 0 && decode_lorenzo(payload, parameters, chunk, workspace);
    case Pipeline::blockpack:
      return parameters.bound_abs > 0 && decode_blockpack(payload, parameters, chunk, workspace);
    case Pipeline::contexts:
      return parameters.bound_abs > 0 && decode_contexts(payload, parameters, chunk, workspace);
    case Pipeline::interp:
      return parameters.bound_abs > 0 && decode_interp(payload, parameters, chunk, workspace);
    case Pipeline::causal:
      return parameters.bound_abs > 0 && !parameters.pointwise &&
             decode_causal(payload, parameters, chunk, workspace);
    case Pipeline::fre:
      return parameters.pointwise && decode_fre(payload, chunk, workspace);
    case Pipeline::ceresz:
    case Pipeline::ceresz4:
      return parameters.bound_abs > 0 &&
             decode_ceresz(pipeline, payload, parameters, chunk, workspace);
    default:
      return false;
  }
}
template bool decode(Pipeline, std::span<const std::uint8_t>, const Parameters&, const Box<float>&,
                     Workspace&);
template bool decode(Pipeline, std::span<const std::uint8_t>, const Parameters&, const Box<double>&,
                     Workspace&);

template <class T>
bool preview(Pipeline pipeline, std::span<const std::uint8_t> payload, const Parameters& parameters,
             int rank, const std::array<std::size_t, kMaxRank>& extents, std::size_t factor,
             const Box<T>& out, Workspace& workspace) {
  if (has_levels(pipeline)) {
    return parameters.bound_abs > 0 &&
           preview_interp(payload, parameters, rank, extents, factor, out, workspace);
  }
  Region whole;
  whole.shape.rank = rank;
  for (int k = 0; k < rank; ++k) whole.shape.extents[k] = extents[k];
  const auto count = static_cast<std::size_t>(whole.shape.count());
  T* const values = reinterpret_cast<T*>(workspace.output.reserve(count * sizeof(T)));
  const auto strides = contiguous_strides(whole.shape);
  if (!decode(pipeline, payload, parameters, Box<T>(values, strides, whole), workspace)) {
    return false;
  }
  out.for_each_row([&](T* row, std::size_t offset) {
    for (std::size_t i = 0; i < out.row_length(); ++i) {
      std::size_t rest = offset + i;
      std::int64_t from = 0;
      for (int k = rank; k-- > 0;) {
        from += static_cast<std::int64_t>(rest % out.extents()[k] * factor) * strides[k];
        rest /= out.extents()[k];
      }
      row[static_cast<std::int64_t>(i) * out.row_stride()] = values[from];
    }
    return true;
  });
  return true;
}
template bool preview(Pipeline, std::span<const std::uint8_t>, const Parameters&, int,
                      const std::array<std::size_t, kMaxRank>&, std::size_t, const Box<float>&,
                      Workspace&);
template bool preview(Pipeline, std::span<const std::uint8_t>, const Parameters&, int,
                      const std::array<std::size_t, kMaxRank>&, std::size_t, const Box<double>&,
                      Workspace&);

std::string describe(Pipeline pipeline, std::span<const std::uint8_t> payload, int rank,
                     unsigned tighter) {
  switch (pipeline) {
    case Pipeline::lorenzo:
      return describe_lorenzo(payload, rank, tighter);
    case Pipeline::blockpack:
    case Pipeline::contexts:
      return describe_head(payload, rank, tighter);
    case Pipeline::interp:
      return describe_interp(payload, rank, tighter);
    case Pipeline::causal:
      return describe_causal(payload, rank, tighter);
    case Pipeline::fre:
      return describe_fre(payload);
    default:
      return {};
  }
}

}  // namespace firn::pipelines
