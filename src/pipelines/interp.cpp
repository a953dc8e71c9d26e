#include "pipelines/interp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "encode/context_rans.hpp"
#include "pipelines/chunk_values.hpp"
#include "pipelines/context_codes.hpp"
#include "pipelines/feedback.hpp"
#include "pipelines/payload_head.hpp"
#include "pipelines/point_coder.hpp"
#include "pipelines/refinement.hpp"
#include "pipelines/stencil_grid.hpp"

namespace firn::pipelines {
namespace {

using predict::kActivityContexts;

// Contexts: those of the activity, apart for the finest level, the next and the rest; one for the
// points of the coarsest grid; one for exact points, which cost next to nothing.
constexpr int kLevelSets = 3;
constexpr std::uint8_t kRootContext = kLevelSets * kActivityContexts;
constexpr std::uint8_t kExactContext = kRootContext + 1;

// Classes of fewer points are not worth a stencil.
constexpr std::size_t kMinTrainedPoints = 1024;
// The bit next to the fineness.
constexpr unsigned kAnyStencil = 128;

std::uint8_t level_set(std::size_t spacing) {
  return static_cast<std::uint8_t>((spacing == 1 ? 0 : spacing == 2 ? 1 : 2) * kActivityContexts);
}

// What exact points leave for their neighbours to lean on.
template <class T>
T finite_or_zero(T value) {
  return std::isfinite(value) ? value : T{0};
}

void append_stencil(const StencilWeights& weights, std::vector<std::uint8_t>* bases) {
  std::uint8_t bytes[kMaxStencilBytes];
  ByteWriter writer(bytes);
  write_stencil(weights, writer);
  bases->insert(bases->end(), bytes, writer.here());
}

// The base of a class, and its stencil if it has one.
bool read_base(ByteReader& in, const Geometry& geometry, std::size_t spacing, unsigned odd,
               bool any_stencil, Base* base, StencilWeights* weights) {
  const auto packed = in.read<std::uint8_t>();
  if (!in.ok() || !unpack_base(packed, odd, base)) return false;
  if ((packed & kStencilFollows) == 0) return true;
  const StencilShape shape(geometry, spacing);
  return any_stencil && shape.can_train(odd) &&
         read_stencil(in, shape.list_pairs(odd).count, weights);
}

}  // namespace

std::size_t interp_capacity(std::size_t count) {
  return 1024 + count / kMinTrainedPoints * kMaxStencilBytes +
         encode::context_rans_capacity<std::int32_t>(count);
}

template <class T>
bool encode_interp(const Box<const T>& chunk, const Parameters& parameters, unsigned frozen,
                   int fineness, bool trained, Workspace& workspace, std::uint8_t* out,
                   Encoded* encoded) {
  const std::size_t count = chunk.count();
  PointCoder<T> coder(parameters, parameters.finer, workspace.target);
  if (!coder.usable() || (coder.pointwise() && fineness != 0)) return false;
  const Geometry geometry(chunk.rank(), chunk.extents(), frozen);
  const T* values = contiguous(chunk, workspace);
  Refinement<T> refinement(geometry, coder, workspace);
  ExactPoints<T> exact(values, count, workspace);
  std::int32_t* codes =
      reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(count / 2 + 64));
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  T* wanted = reinterpret_cast<T*>(workspace.wanted.reserve(
      (geometry.extents[3] + 2 * Refinement<T>::kMaxRun + predict::kRowSlack) * sizeof(T)));
  std::vector<std::size_t>& rows = workspace.row_offsets;
  std::vector<std::size_t>& segments = workspace.segments;
  segments.clear();
  // Those of a chunk that is encoded once more are known.
  std::vector<std::uint8_t>& bases = workspace.bases;
  const bool known = parameters.choice.bases != nullptr;
  bases.clear();
  if (known) bases = *parameters.choice.bases;
  ByteReader known_bases(bases);
  bool any_stencil = false;
  T max_error = 0;

  // With so many exact points it is better stored losslessly.
  const auto in_vain = [&] {
    return !parameters.fill && exact.found() > count / 4 &&
           exact.costly(parameters.pointwise) > count / 4;
  };

  // The coarsest grid: each point predicted by the one before.
  coder.set_level(fineness, geometry.levels);
  const std::size_t roots = refinement.grid_count();
  T previous = 0;
  {
    const Extents lag = refinement.lags();
    std::size_t i = 0;
    Extents grid{};
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
    for (std::size_t a = 0; a < grid[0]; ++a) {
      for (std::size_t b = 0; b < grid[1]; ++b) {
        for (std::size_t c = 0; c < grid[2]; ++c) {
          for (std::size_t d = 0; d < grid[3]; ++d, ++i) {
            const std::size_t at = a * lag[0] + b * lag[1] + c * lag[2] + d;
            T point = previous, error = 0;
            if (!coder.quantize(values[at], &point, &codes[i], &error)) {
              exact.add(at);
              contexts[i] = kExactContext;
            } else {
              contexts[i] = kRootContext;
              max_error = std::max(max_error, error);
            }
            refinement.grid()[i] = previous = point;
          }
        }
      }
    }
    coder.magnitudes(codes, roots, refinement.grid_magnitudes());
    segments.push_back(roots);
  }

  std::size_t done = roots;
  for (std::size_t s = std::size_t{1} << geometry.levels >> 1; s != 0; s >>= 1) {
    coder.set_level(fineness, std::countr_zero(s));
    refinement.open_level(s);
    StencilGrid<T> stencils(geometry, s, workspace);
    for (unsigned i = 1; i < 16; ++i) {
      const unsigned odd = class_order(i);
      const Class<T>& cls = refinement.at(odd);
      if (cls.count == 0) continue;
      Base base;
      predict::Stencil<T> stencil;
      if (refinement.has_base(cls)) {
        StencilWeights weights;
        if (known) {
          read_base(known_bases, geometry, s, odd, true, &base, &weights);
        } else {
          base = refinement.choose_base(odd, values);
          bases.push_back(pack_base(base, odd));
          if (trained && cls.count >= kMinTrainedPoints && stencils.shape().can_train(odd)) {
            stencils.complete(refinement, odd);
            if (stencils.train(odd, refinement, base, values, coder, parameters.trial, &weights)) {
              bases.back() |= kStencilFollows;
              append_stencil(weights, &bases);
            }
          }
        }
        if (weights.pairs != 0) {
          any_stencil = true;
          stencils.complete(refinement, odd);
          stencil = stencils.make_stencil(odd, weights);
        }
      }
      const std::size_t length = cls.extents[3];
      // A stencil's corrections go beyond the end of a row.
      const bool single = stencil.pairs != 0;
      // Rows are quantised several at a time, from `begin` on.
      std::size_t begin = 0, end = 0;
      rows.clear();
      const auto quantize_rows = [&](std::size_t step) {
        if (!coder.quantize(wanted, end - begin, cls.points + begin, codes + done + begin,
                            cls.magnitudes + begin, &max_error)) {
          T* const points = cls.points + begin;
          coder.for_each_exact(wanted, points, end - begin, workspace, [&](std::size_t k) {
            exact.add(rows[k / length] + k % length * step);
            contexts[done + begin + k] = kExactContext;
            points[k] = coder.restore(0, finite_or_zero(points[k]));
          });
        }
        begin = end;
        rows.clear();
      };
      refinement.for_each_run(odd, base, single, [&](const auto& run) {
        T* const points = cls.points + end;
        refinement.predict_rows(odd, base, run.a, run.b, run.c, run.rows, level_set(s),
                                contexts + done + end);
        for (std::size_t r = 0; r < run.rows; ++r) {
          if (stencil.pairs != 0) {
            coder.correct(stencil, stencils.row(run.a, run.b, run.c + r), length,
                          points + r * length);
          }
          const std::size_t offset = run.offset + r * run.along;
          rows.push_back(offset);
          T* const to = wanted + (end - begin) + r * length;
          if (run.step == 2) {
            coder.kernels().every_other(values + offset, count - offset, length, to);
          } else {
            for (std::size_t k = 0; k < length; ++k) to[k] = values[offset + k * run.step];
          }
        }
        end += run.rows * length;
        if (end == cls.count || end - begin >= Refinement<T>::kMaxRun) quantize_rows(run.step);
      });
      segments.push_back(cls.count);
      done += cls.count;
      if (in_vain()) return false;
    }
    if (s > 1 || parameters.measured) refinement.close_level();
  }
  if (in_vain()) return false;

  exact.list();
  PayloadHead head;
  head.exact_count = exact.found();
  head.finer = parameters.finer;
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  writer.write<std::uint8_t>(static_cast<std::uint8_t>(
      frozen | static_cast<unsigned>(fineness) << 4 | (any_stencil ? kAnyStencil : 0)));
  writer.write_bytes(bases);
  const bool written = write_codes(codes, contexts, count, segments,
                                   encode::context_rans_capacity<std::int32_t>(count), parameters,
                                   workspace, writer);
  *encoded = {Pipeline::interp, writer.size(), coder.rounded_up(max_error)};
  encoded->written = written;
  if (parameters.measured) {
    ErrorSample<T> errors(parameters.bound_abs, count);
    for (; errors.next() < count; errors.advance()) {
      errors.add(values[errors.next()], refinement.grid()[errors.next()]);
    }
    encoded->mean_square = errors.mean_square();
  }
  return true;
}

namespace {

// Joins the last level right where the values belong.
template <class T>
void write_level(const Refinement<T>& refinement, const Geometry& geometry, bool any_exact,
                 const Box<T>& chunk, Workspace& workspace) {
  // The chunk's rows are one or more of the grid's.
  const std::size_t length = geometry.extents[3];
  const std::int64_t stride = chunk.row_stride();
  T* const joined = reinterpret_cast<T*>(workspace.wanted.reserve(length * sizeof(T)));
  const std::uint8_t* exact = workspace.exact_bytes.data();
  std::size_t a = 0, b = 0, c = 0;  // of the grid's row
  chunk.for_each_row([&](T* row, std::size_t offset) {
    for (std::size_t begin = 0; begin < chunk.row_length(); begin += length) {
      T* const values = stride == 1 ? row + begin : joined;
      refinement.join_row(a, b, c, values, nullptr);
      if (++c == geometry.extents[2]) c = 0, ++b;
      if (b == geometry.extents[1]) b = 0, ++a;
      if (any_exact) {
        const std::size_t first = offset + begin;
        workspace.exact_map.for_each(first, first + length, [&](std::size_t i) {
          std::memcpy(&values[i - first], exact, sizeof(T));
          exact += sizeof(T);
        });
      }
      for (std::size_t i = 0; stride != 1 && i < length; ++i) {
        row[static_cast<std::int64_t>(begin + i) * stride] = joined[i];
      }
    }
    return true;
  });
}

// What decode_levels leaves in the workspace: the grid of the last spacing, row after row.
template <class T>
struct Levels {
  const T* grid = nullptr;
  unsigned frozen = 0;  // bits of the chunk's own axes
  bool any_exact = false;
};

// Decodes down to the spacing `stop`, a power of two. The segments of coarser points come first, so
// the rest of the payload is not looked at unless `stop` is 1. Given a chunk, writes the values of
// spacing 1 there instead.
template <class T>
bool decode_levels(std::span<const std::uint8_t> payload, const Parameters& parameters, int rank,
                   const Extents& extents, std::size_t count, std::size_t stop, const Box<T>* chunk,
                   Workspace& workspace, Levels<T>* levels) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, rank, extents, sizeof(T), count, workspace, &head) ||
      head.wide || head.signs || head.phase != 0 || pack_orders(head.orders) != 0 ||
      head.base != 0) {
    return false;
  }
  const unsigned packed = in.read<std::uint8_t>();
  const unsigned frozen = packed & 15;
  const int fineness = static_cast<int>(packed >> 4 & 7);
  if (!in.ok() || frozen >> rank != 0 || fineness > kMaxFineness) return false;
  PointCoder<T> coder(parameters, head.finer, workspace.target);
  if (!coder.usable() || (coder.pointwise() && fineness != 0)) return false;
  const Geometry geometry(rank, extents, frozen);
  Refinement<T> refinement(geometry, coder, workspace);
  // Read once to find what follows, then again class by class.
  ByteReader bases = in;
  const bool any_stencil = packed & kAnyStencil;
  if (!refinement.for_each_base([&](std::size_t s, unsigned odd) {
        Base base;
        StencilWeights weights;
        return read_base(in, geometry, s, odd, any_stencil, &base, &weights);
      })) {
    return false;
  }
  if (!in.ok() || !workspace.rans_decoder.start(in.read_rest(), workspace.target)) return false;
  std::int32_t* codes =
      reinterpret_cast<std::int32_t*>(workspace.residuals.reserve(count / 2 + 64));
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  const bool any_exact = head.exact_count != 0;
  levels->frozen = frozen;
  levels->any_exact = any_exact;

  const std::size_t roots = refinement.grid_count();
  {
    const Extents lag = refinement.lags();
    Extents grid{};
    for (std::size_t k = 0; k < kMaxRank; ++k) {
      grid[k] = geometry.on_grid(k, std::size_t{1} << geometry.levels);
    }
    std::size_t i = 0;
    for (std::size_t a = 0; a < grid[0]; ++a) {
      for (std::size_t b = 0; b < grid[1]; ++b) {
        for (std::size_t c = 0; c < grid[2]; ++c) {
          for (std::size_t d = 0; d < grid[3]; ++d, ++i) {
            const std::size_t at = a * lag[0] + b * lag[1] + c * lag[2] + d;
            contexts[i] = any_exact && workspace.exact_map.test(at) ? kExactContext : kRootContext;
          }
        }
      }
    }
    if (!workspace.rans_decoder.decode(contexts, roots, codes)) return false;
    coder.set_level(fineness, geometry.levels);
    T previous = 0;
    for (i = 0; i < roots; ++i) {
      if (contexts[i] == kRootContext) previous = coder.restore(codes[i], previous);
      refinement.grid()[i] = previous;
    }
    coder.magnitudes(codes, roots, refinement.grid_magnitudes());
  }

  for (std::size_t s = std::size_t{1} << geometry.levels >> 1; s >= stop && s != 0; s >>= 1) {
    coder.set_level(fineness, std::countr_zero(s));
    refinement.open_level(s);
    StencilGrid<T> stencils(geometry, s, workspace);
    for (unsigned i = 1; i < 16; ++i) {
      const unsigned odd = class_order(i);
      const Class<T>& cls = refinement.at(odd);
      if (cls.count == 0) continue;
      Base base;
      predict::Stencil<T> stencil;
      if (refinement.has_base(cls)) {
        StencilWeights weights;
        read_base(bases, geometry, s, odd, any_stencil, &base, &weights);
        if (weights.pairs != 0) {
          stencils.complete(refinement, odd);
          stencil = stencils.make_stencil(odd, weights);
        }
      }
      const std::size_t length = cls.extents[3];
      // Points are decoded some rows at a time, whole groups of the coder, to stay in the caches.
      constexpr std::size_t kBatch = 2048;
      std::size_t restored = 0, predicted = 0;
      bool whole = true;
      const auto decode = [&](std::size_t points) {
        whole = whole && workspace.rans_decoder.decode(contexts, points, codes);
        if (!whole) return;
        coder.restore(codes, points, cls.points + restored, cls.magnitudes + restored);
        restored += points;
      };
      const bool single = stencil.pairs != 0;
      refinement.for_each_run(odd, base, single, [&](const auto& run) {
        std::uint8_t* row_contexts = contexts + (predicted - restored);
        T* points = cls.points + cls.row(run.a, run.b, run.c);
        refinement.predict_rows(odd, base, run.a, run.b, run.c, run.rows, level_set(s),
                                row_contexts);
        for (std::size_t r = 0; r < run.rows; ++r, points += length, row_contexts += length) {
          if (stencil.pairs != 0) {
            coder.correct(stencil, stencils.row(run.a, run.b, run.c + r), length, points);
          }
          if (!any_exact) continue;
          const std::size_t offset = run.offset + r * run.along;
          for (std::size_t k = 0; k < length; ++k) {
            if (!workspace.exact_map.test(offset + k * run.step)) continue;
            row_contexts[k] = kExactContext;
            points[k] = finite_or_zero(points[k]);
          }
        }
        predicted += run.rows * length;
        const std::size_t ready = predicted - restored;
        if (ready < kBatch || !whole) return;
        decode(ready / encode::kRansGroup * encode::kRansGroup);
        std::memmove(contexts, contexts + ready / encode::kRansGroup * encode::kRansGroup,
                     ready % encode::kRansGroup);
      });
      decode(predicted - restored);
      if (!whole) return false;
    }
    if (s > 1 || chunk == nullptr) {
      refinement.close_level();
    } else {
      write_level(refinement, geometry, any_exact, *chunk, workspace);
    }
  }
  levels->grid = refinement.grid();
  if (chunk != nullptr && geometry.levels == 0) {
    write_values<T>(levels->grid, any_exact, *chunk, workspace);
  }
  return stop > 1 || workspace.rans_decoder.finish();
}

}  // namespace

template <class T>
bool decode_interp(std::span<const std::uint8_t> payload, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace) {
  Levels<T> levels;
  return decode_levels(payload, parameters, chunk.rank(), chunk.extents(), chunk.count(), 1, &chunk,
                       workspace, &levels);
}

template <class T>
bool preview_interp(std::span<const std::uint8_t> payload, const Parameters& parameters, int rank,
                    const Extents& extents, std::size_t factor, const Box<T>& out,
                    Workspace& workspace) {
  std::size_t count = 1;
  for (int k = 0; k < rank; ++k) count *= extents[static_cast<std::size_t>(k)];
  Levels<T> levels;
  if (!decode_levels<T>(payload, parameters, rank, extents, count, factor, nullptr, workspace,
                        &levels)) {
    return false;
  }
  // Along frozen axes the grid has every point.
  Extents every{1, 1, 1, 1}, lag{}, chunk_lag{};
  std::size_t pitch = 1, chunk_pitch = 1;
  for (int axis = rank; axis-- > 0;) {
    const auto k = static_cast<std::size_t>(axis);
    const bool cold = levels.frozen >> axis & 1;
    every[k] = cold ? factor : 1;
    lag[k] = pitch;
    chunk_lag[k] = chunk_pitch;
    pitch *= cold ? extents[k] : (extents[k] + factor - 1) / factor;
    chunk_pitch *= extents[k];
  }
  T* points = reinterpret_cast<T*>(workspace.values.reserve(out.count() * sizeof(T)));
  for (std::size_t i = 0; i < out.count(); ++i) {
    std::size_t rest = i, from = 0;
    for (int axis = rank; axis-- > 0;) {
      const auto k = static_cast<std::size_t>(axis);
      from += rest % out.extents()[k] * every[k] * lag[k];
      rest /= out.extents()[k];
    }
    points[i] = levels.grid[from];
  }
  if (levels.any_exact) {
    const std::uint8_t* exact = workspace.exact_bytes.data();
    workspace.exact_map.for_each(0, count, [&](std::size_t at) {
      std::size_t rest = at, to = 0;
      bool chosen = true;
      for (int axis = 0; axis < rank; ++axis) {
        const auto k = static_cast<std::size_t>(axis);
        const std::size_t c = rest / chunk_lag[k];
        rest %= chunk_lag[k];
        chosen = chosen && c % factor == 0;
        to = to * out.extents()[k] + c / factor;
      }
      if (chosen) std::memcpy(&points[to], exact, sizeof(T));
      exact += sizeof(T);
    });
  }
  write_values<T>(points, false, out, workspace);
  return true;
}

std::string describe_interp(std::span<const std::uint8_t> payload, int rank, unsigned tighter) {
  ByteReader in(payload);
  const HeadInWords head = pass_head(in, tighter);
  std::string text = "interpolation";
  const unsigned packed = in.read<std::uint8_t>();
  if (!in.ok()) return "damaged";
  for (int k = 0; k < rank; ++k) {
    if (packed >> k & 1) text += ", axis " + std::to_string(k) + " left out";
  }
  if ((packed >> 4 & 7) != 0) text += ", finer coarse levels";
  if (packed & kAnyStencil) text += ", trained stencils";
  return text + head.text;
}

#define FIRN_INSTANTIATE(T)                                                                    \
  template bool encode_interp(const Box<const T>&, const Parameters&, unsigned, int, bool,     \
                              Workspace&, std::uint8_t*, Encoded*);                            \
  template bool preview_interp(std::span<const std::uint8_t>, const Parameters&, int,          \
                               const Extents&, std::size_t, const Box<T>&, Workspace&);        \
  template bool decode_interp(std::span<const std::uint8_t>, const Parameters&, const Box<T>&, \
                              Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
