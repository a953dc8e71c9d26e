#include "pipelines/quantized_chunk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "container/format.hpp"
#include "pipelines/feedback.hpp"
#include "quantize/logarithmic.hpp"

namespace firn::pipelines {

template <class Q>
Q* reserve_codes(std::size_t count, std::size_t history, Workspace& workspace) {
  // Room behind as well: vectors may be stored whole.
  const std::size_t values = history + count + 64;
  const std::size_t had = workspace.codes.size();
  auto* const all = reinterpret_cast<std::uint8_t*>(
      workspace.codes.reserve((values * sizeof(Q) + sizeof(std::int64_t) - 1) / 8));
  // Nobody writes there: what was history of the chunk before is zero already.
  if (workspace.codes.size() != had) workspace.code_history = 0;
  const std::size_t zeros = std::min(workspace.code_history, history * sizeof(Q));
  std::memset(all + zeros, 0, history * sizeof(Q) - zeros);
  workspace.code_history = history * sizeof(Q);
  return reinterpret_cast<Q*>(all) + history;
}

namespace {

template <class T>
bool holds(const T* row, std::size_t length, T value) {
  bool found = false;
  for (std::size_t i = 0; i < length; ++i) found |= row[i] == value;
  return found;
}

// The quantisers behind one face. Q: codes of 16, 32 or 64 bits.
template <class T, class Q>
struct AbsoluteQuantizer {
  static constexpr bool kShort = sizeof(Q) == 2;
  static constexpr bool kSigns = false;
  static constexpr bool kMayWiden = sizeof(T) == 8 && sizeof(Q) != 8;
  using Wide = std::conditional_t<kShort, std::int32_t, Q>;
  const quantize::Kernels<T, Wide>& kernels;
  quantize::RowOutcome<T> (*quantize)(const T*, std::size_t, quantize::Scale<T>, Wide, Q*);
  quantize::Scale<T> scale;

  // `roughly`: values that are not within the bound need not be found.
  AbsoluteQuantizer(const Parameters& parameters, simd::Target target, bool roughly)
      : kernels(quantize::kernels<T, Wide>(target)),
        scale(static_cast<T>(parameters.bound_abs), parameters.margin, parameters.finer) {
    if constexpr (kShort) {
      // Near values' last bits, where steps have a grain, such values may be many.
      const auto& short_kernels = quantize::short_kernels<T>(target);
      quantize =
          roughly && !(scale.grain > 0) ? short_kernels.quantize_roughly : short_kernels.quantize;
    } else {
      quantize = kernels.quantize;
    }
  }
  // Leaves the base alone if the value has no code: short kernels tell NaN by codes far from it.
  bool find_base(T value, Wide* base) const {
    Wide found = 0;
    T error = 0;
    if (!quantize::quantize_value<T, Wide>(value, scale, &found, &error)) return false;
    *base = found;
    return true;
  }
  // Short codes near the limits of 32 bits are left to the kernels that clamp.
  static bool base_fits(Wide base) { return !kShort || (base >= -(1 << 29) && base <= 1 << 29); }
  bool needs_wide(T value) const { return quantize::needs_wide(value, scale); }
  // Exact points of such values cost their bits.
  static bool costly(T value) { return std::isfinite(value); }
};

template <class T, class Q>
struct PointwiseQuantizer {
  static constexpr bool kShort = false;
  static constexpr bool kSigns = true;
  static constexpr bool kMayWiden = false;  // it depends on the bound alone
  using Wide = Q;
  const quantize::LogKernels<T, Q>& kernels;
  decltype(kernels.quantize) quantize;
  quantize::LogScale<T> scale;

  PointwiseQuantizer(const Parameters& parameters, simd::Target target)
      : kernels(quantize::log_kernels<T, Q>(target)),
        quantize(kernels.quantize),
        scale(static_cast<T>(parameters.bound_abs)) {}
  bool find_base(T value, Q* base) const {
    *base = static_cast<Q>(quantize::log_index(value, scale));
    return costly(value);  // those that may have a code, the largest subnormal ones among them
  }
  static bool base_fits(Q) { return true; }
  static bool needs_wide(T) { return false; }
  static bool costly(T value) { return std::isfinite(value) && value != 0; }
};

// Exact points of a chunk as they are found: which in workspace.exact_map, at last their values in
// workspace.exact_bytes.
template <class T, class Q, class Quantizer>
class ExactCollector {
 public:
  ExactCollector(std::size_t count, T fill, const Quantizer& quantizer, Workspace& workspace)
      : count_(count), fill_(fill), quantizer_(quantizer), workspace_(workspace) {}

  // All is taken.
  std::size_t count() {
    if (any_) found_ = workspace_.exact_map.count();
    return found_;
  }

  // Takes the values whose flag is set.
  void mark(const std::uint64_t* flags, std::size_t length, std::size_t offset, bool all_fill) {
    all_fill_ = all_fill_ && all_fill;
    for (std::size_t begin = 0; begin < length; begin += 64) {
      const std::uint64_t word = flags[begin / 64];
      if (word == 0) continue;
      if (!any_) workspace_.exact_map.reset(count_);
      any_ = true;
      workspace_.exact_map.set_word(offset + begin, word);
    }
  }

  // The same; their codes repeat the code before. False: one of them would not be exact with wider
  // codes. all_fill: they are known to be the fill value.
  bool add(const T* values, std::size_t length, const std::uint64_t* flags, std::size_t offset,
           bool all_fill, Q* codes) {
    mark(flags, length, offset, all_fill);
    for (std::size_t begin = 0; begin < length; begin += 64) {
      bool wide = false;
      encode::for_each_run_of(flags[begin / 64], [&](std::size_t first, std::size_t run) {
        const T* const from = values + begin + first;
        costly_ += static_cast<std::size_t>(std::count_if(from, from + run, Quantizer::costly));
        wide = wide ||
               (Quantizer::kMayWiden && !all_fill && std::any_of(from, from + run, [&](T value) {
                  return value != fill_ && quantizer_.needs_wide(value);
                }));
        Q* const to = codes + begin + first;
        std::fill_n(to, run, to[-1]);
      });
      if (wide) return false;
    }
    return true;
  }

  // Collects their values; true: one, that all of them have.
  bool list(const Box<const T>& chunk) {
    T* exact = reinterpret_cast<T*>(workspace_.exact_bytes.reserve(found_ * sizeof(T)));
    if (all_fill_ && fill_ != 0) {  // there are two zeros
      *exact = fill_;
      return true;
    }
    chunk.for_each_row([&](const T* row, std::size_t offset) {
      const std::size_t end = offset + chunk.row_length();
      workspace_.exact_map.for_each(offset, end, [&](std::size_t i) {
        *exact++ = row[static_cast<std::int64_t>(i - offset) * chunk.row_stride()];
      });
      return true;
    });
    return false;
  }

  // Masks may cover most of a chunk and still cost little; scattered failures do not. Not with a
  // fill value, which most of them may have.
  bool too_many() const { return costly_ > count_ / 4; }

 private:
  std::size_t count_;
  T fill_;
  const Quantizer& quantizer_;
  Workspace& workspace_;
  bool any_ = false;
  std::size_t found_ = 0;
  std::size_t costly_ = 0;
  bool all_fill_ = true;
};

bool all_short(const std::int16_t* codes, std::size_t count) {
  std::int16_t low = 0, high = 0;
  for (std::size_t i = 0; i < count; ++i) {
    low = std::min(low, codes[i]);
    high = std::max(high, codes[i]);
  }
  return low >= -quantize::kShortLimit && high <= quantize::kShortLimit;
}

// Whether a value has a code, but one that is too long for 16 bits.
template <class T>
bool has_long_code(T value, T fill, const quantize::Scale<T>& scale, std::int32_t base) {
  std::int32_t q = 0;
  T error = 0;
  return value != fill && quantize::quantize_value<T, std::int32_t>(value, scale, &q, &error) &&
         std::abs(std::int64_t{q} - base) > quantize::kShortLimit;
}

// Whether one of them has, given their codes as far as 16 bits hold them.
template <class T>
bool have_long_code(const T* values, const std::int16_t* codes, std::size_t length, T fill,
                    const quantize::Scale<T>& scale, std::int32_t base) {
  constexpr std::size_t kBlock = 256;
  for (std::size_t begin = 0; begin < length; begin += kBlock) {
    const std::size_t end = std::min(length, begin + kBlock);
    if (all_short(codes + begin, end - begin)) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (!all_short(codes + i, 1) && has_long_code(values[i], fill, scale, base)) return true;
    }
  }
  return false;
}

// Whether one of a few values does, so that quantising them all would be in vain.
template <class T>
bool seem_long(const T* values, std::size_t length, T fill, const quantize::Scale<T>& scale,
               std::int32_t base) {
  constexpr std::size_t kMany = 4096, kLooks = 8;
  if (length < kMany) return false;
  for (std::size_t i = length / kLooks; i < length; i += length / kLooks) {
    if (has_long_code(values[i], fill, scale, base)) return true;
  }
  return false;
}

template <class T, class Q, class Quantizer>
QuantizeOutcome quantize_with(const Quantizer& quantizer, const Box<const T>& chunk,
                              const Parameters& parameters, Workspace& workspace,
                              QuantizedChunk<T, Q>* result) {
  // Rows are taken in pieces: what is special about a few values concerns only theirs.
  constexpr std::size_t kPiece = 65536;
  const auto& scale = quantizer.scale;
  const std::size_t count = chunk.count();
  const std::size_t row_length = chunk.row_length();
  result->count = count;
  result->codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  T* gathered = reinterpret_cast<T*>(
      workspace.row.reserve(chunk.row_stride() == 1 ? 1 : row_length * sizeof(T)));
  std::uint64_t* flags = workspace.row_flags.reserve(kPiece / 64);
  const T fill = fill_of<T>(parameters);
  ExactCollector<T, Q, Quantizer> exact(count, fill, quantizer, workspace);
  T max_error = 0;
  bool have_base = false, in_vain = false;
  bool masked = parameters.fill && !Quantizer::kSigns;  // or not finite, some of them
  T valid = 0;                                          // some value that has a code
  const auto unmask = quantize::range_kernels<T>(workspace.target).unmask;
  T* const clean =
      reinterpret_cast<T*>(workspace.unmasked.reserve(Quantizer::kShort ? 1 : kPiece * sizeof(T)));
  if constexpr (Quantizer::kSigns) workspace.sign_map.reset(count);

  // All codes are relative to that of the first value that has one. False: it is too far from 0, or
  // one before it needs wider codes.
  const auto find_base = [&](const T* values, std::size_t length) {
    constexpr std::size_t kBlock = 256;
    for (std::size_t begin = 0; begin < length; begin += kBlock) {
      const std::size_t end = std::min(length, begin + kBlock);
      // After the first ones the kernel tells where there is none.
      if (!Quantizer::kSigns && begin > 0 && end - begin == kBlock) {
        std::uint64_t words[kBlock / 64], all = ~std::uint64_t{0};
        quantizer.kernels.flag(values + begin, kBlock, scale, fill, words);
        for (const std::uint64_t word : words) all &= word;
        const auto is_wide = [&](T value) { return value != fill && quantizer.needs_wide(value); };
        if (all == ~std::uint64_t{0}) {
          if (Quantizer::kMayWiden && std::any_of(values + begin, values + end, is_wide)) {
            return false;
          }
          continue;
        }
      }
      for (std::size_t i = begin; i < end; ++i) {
        if (values[i] == fill) continue;
        have_base = quantizer.find_base(values[i], &result->base);
        valid = values[i];
        if (have_base) return quantizer.base_fits(result->base);
        if (Quantizer::kMayWiden && quantizer.needs_wide(values[i])) return false;
      }
    }
    return true;
  };
  const auto take_piece = [&](const T* values, std::size_t length, std::size_t offset) {
    Q* codes = result->codes + offset;
    if (!have_base && !find_base(values, length)) return false;
    if constexpr (Quantizer::kShort) {
      if (have_base && seem_long(values, length, fill, scale, result->base)) return false;
    }
    if constexpr (Quantizer::kSigns) {
      quantizer.kernels.signs(values, length, flags);
      for (std::size_t begin = 0; begin < length; begin += 64) {
        workspace.sign_map.set_word(offset + begin, flags[begin / 64]);
        result->signs |= flags[begin / 64] != 0;
      }
    }
    if (!have_base && !Quantizer::kSigns) {
      for (std::size_t i = 0; i < length; i += 64) {
        flags[i / 64] = ~std::uint64_t{0} >> (64 - std::min<std::size_t>(64, length - i));
      }
      masked = true;
      return exact.add(values, length, flags, offset, false, codes);
    }
    // What is masked takes the code before.
    const bool unmasked = masked && have_base;
    bool all_fill = false;
    quantize::RowOutcome<T> outcome;
    if (!unmasked) {
      outcome = quantizer.quantize(values, length, scale, result->base, codes);
    } else if constexpr (Quantizer::kShort) {
      outcome = quantize::short_kernels<T>(workspace.target)
                    .quantize_masked(values, length, scale, result->base, fill, valid, codes, flags,
                                     &all_fill);
    } else {
      all_fill = unmask(values, length, fill, valid, clean, flags);
      outcome = quantizer.quantize(clean, length, scale, result->base, codes);
    }
    if (outcome.within && (unmasked || !parameters.fill || !holds(values, length, fill))) {
      max_error = std::max(max_error, outcome.max_error);
      if (!unmasked) return true;
      if constexpr (!Quantizer::kShort) {
        return exact.add(values, length, flags, offset, all_fill, codes);
      }
      exact.mark(flags, length, offset, all_fill);
      return true;
    }
    if constexpr (Quantizer::kShort) {
      if (have_long_code(values, codes, length, fill, scale, result->base)) return false;
    }
    masked = !Quantizer::kSigns;
    max_error = std::max(max_error, quantizer.kernels.flag(values, length, scale, fill, flags));
    if (!exact.add(values, length, flags, offset, false, codes)) return false;
    if constexpr (Quantizer::kShort) return all_short(codes, length);
    return true;
  };
  const auto take = [&](const T* values, std::size_t length, std::size_t offset) {
    for (std::size_t i = 0; i < length; i += kPiece) {
      if (!take_piece(values + i, std::min(kPiece, length - i), offset + i)) return false;
      in_vain = !parameters.fill && exact.too_many();
      if (in_vain) return false;
    }
    return true;
  };
  bool taken = false;
  if (has_short_rows(chunk)) {
    taken = take(contiguous(chunk, workspace), count, 0);
  } else {
    taken = chunk.for_each_row([&](const T* row, std::size_t offset) {
      if (chunk.row_stride() != 1) {
        for (std::size_t i = 0; i < row_length; ++i) {
          gathered[i] = row[static_cast<std::int64_t>(i) * chunk.row_stride()];
        }
        row = gathered;
      }
      return take(row, row_length, offset);
    });
  }
  if (in_vain) return QuantizeOutcome::too_many_exact;
  if (!taken) return QuantizeOutcome::needs_wide;
  result->exact_count = exact.count();
  if (result->exact_count != 0) result->exact_alike = exact.list(chunk);
  if (!have_base) return QuantizeOutcome::too_many_exact;
  result->max_error = static_cast<double>(max_error);
  return QuantizeOutcome::done;
}

// With which values in the middle of where half of an array's gather have the middle of a code, if
// those are within a step: else it makes no difference. Steps with a grain have none.
std::uint8_t choose_phase(const Parameters& parameters, double step) {
  const std::optional<Gathering>& gathering = parameters.gathering;
  if (!gathering || parameters.margin >= format::kGrid || !(gathering->width <= step) ||
      step > gathering->most_step) {
    return 0;
  }
  constexpr double kMostSteps = 0x1p40;  // beyond them strangers may lie
  const double steps = gathering->middle / step;
  if (!(std::fabs(steps) < kMostSteps)) return 0;
  return static_cast<std::uint8_t>(static_cast<int>((steps - std::floor(steps)) * 256 + 0.5));
}

}  // namespace

template <class T, class Q>
QuantizeOutcome quantize_chunk(const Box<const T>& chunk, const Parameters& parameters,
                               Workspace& workspace, QuantizedChunk<T, Q>* result, bool roughly) {
  if (!parameters.pointwise) {
    AbsoluteQuantizer<T, Q> quantizer(parameters, workspace.target, roughly);
    result->phase = choose_phase(parameters, static_cast<double>(quantizer.scale.step));
    quantizer.scale.phase = phase_of<T>(result->phase);
    return quantize_with(quantizer, chunk, parameters, workspace, result);
  }
  if constexpr (sizeof(Q) == 2) {
    return QuantizeOutcome::needs_wide;
  } else {
    const PointwiseQuantizer<T, Q> quantizer(parameters, workspace.target);
    if (!quantizer.scale.usable()) return QuantizeOutcome::too_many_exact;
    if (sizeof(Q) == 4 && quantizer.scale.wide()) return QuantizeOutcome::needs_wide;
    const auto outcome = quantize_with(quantizer, chunk, parameters, workspace, result);
    // Errors are quotients rounded to nearest.
    result->max_error = std::min(result->max_error * (1 + 0x1p-20), parameters.bound_abs);
    return outcome;
  }
}

template <class T, class Q>
double mean_square(const Box<const T>& chunk, const Parameters& parameters,
                   const QuantizedChunk<T, Q>& quantized) {
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin,
                                 parameters.finer);
  const quantize::Levels<T> levels{scale.step, phase_of<T>(quantized.phase)};
  ErrorSample<T> errors(parameters.bound_abs, chunk.count());
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    for (; errors.next() < offset + chunk.row_length(); errors.advance()) {
      const std::size_t i = errors.next();
      using Code = decltype(QuantizedChunk<T, Q>::base);
      using Wraps = std::make_unsigned_t<Code>;
      const auto code = static_cast<Code>(static_cast<Wraps>(quantized.codes[i]) +
                                          static_cast<Wraps>(quantized.base));
      errors.add(row[static_cast<std::int64_t>(i - offset) * chunk.row_stride()],
                 quantize::dequantize_value<T, Code>(code, levels));
    }
    return true;
  });
  return errors.mean_square();
}

// With exact points among them, values are restored so many at a time.
constexpr std::size_t kExactPiece = 4096;

namespace {

template <class T, class Q>
const auto& restoring_kernels(simd::Target target) {
  if constexpr (sizeof(Q) == 2) {
    return quantize::short_kernels<T>(target);
  } else {
    return quantize::kernels<T, Q>(target);
  }
}

}  // namespace

template <class T, class Q>
void restore_chunk(const Q* codes, const PayloadHead& head, const Parameters& parameters,
                   const Box<T>& chunk, Workspace& workspace) {
  const auto& kernels = restoring_kernels<T, Q>(workspace.target);
  // Exact points are put over the others, so those had better be in the caches.
  const bool masked = head.exact_alike && sizeof(Q) == 2;
  const bool copied = has_short_rows(chunk);
  const bool streaming = parameters.streaming && !copied && head.exact_count == 0;
  const auto dequantize = streaming ? kernels.dequantize_streaming : kernels.dequantize;
  const T bound = static_cast<T>(parameters.bound_abs);
  const quantize::LogScale<T> log_scale(bound);
  quantize::Levels<T> levels{0, phase_of<T>(head.phase)};
  if (!parameters.pointwise) {
    levels.step = quantize::Scale<T>(bound, parameters.margin, head.finer).step;
  }
  using Base = std::conditional_t<sizeof(Q) == 2, std::int32_t, Q>;
  const Base base = static_cast<Base>(head.base);
  const std::size_t length = chunk.row_length();
  const std::int64_t stride = chunk.row_stride();
  T* gathered = reinterpret_cast<T*>(workspace.row.reserve(stride == 1 ? 1 : length * sizeof(T)));
  const std::uint8_t* exact = workspace.exact_bytes.data();
  T fill = 0;
  if (head.exact_alike) std::memcpy(&fill, exact, sizeof(T));
  const auto restore = [&](std::size_t offset, std::size_t count, T* values) {
    if constexpr (sizeof(Q) == 2) {
      if (masked) {
        const quantize::Masked<T> mask{workspace.exact_map.words(), offset, fill};
        return kernels.dequantize_masked(codes + offset, count, levels, base, mask,
                                         parameters.streaming && !copied, values);
      }
    }
    if (!parameters.pointwise) {
      dequantize(codes + offset, count, levels, base, values);
    } else if constexpr (sizeof(Q) != 2) {
      quantize::log_kernels<T, Q>(workspace.target)
          .dequantize(codes + offset, count, log_scale, base,
                      head.signs ? workspace.sign_map.words() : nullptr, offset, values);
    }
    if (head.exact_count == 0) return;
    workspace.exact_map.for_each_run(offset, offset + count,
                                     [&](std::size_t first, std::size_t run) {
                                       T* const to = values + (first - offset);
                                       if (head.exact_alike) {
                                         std::fill_n(to, run, fill);
                                         return;
                                       }
                                       std::memcpy(to, exact, run * sizeof(T));
                                       exact += run * sizeof(T);
                                     });
  };
  const std::size_t piece = head.exact_count == 0 || masked ? chunk.count() : kExactPiece;
  if (copied) {
    T* const values = reinterpret_cast<T*>(workspace.values.reserve(chunk.count() * sizeof(T)));
    for (std::size_t i = 0; i < chunk.count(); i += piece) {
      restore(i, std::min(piece, chunk.count() - i), values + i);
    }
    return write_values(values, false, chunk, workspace);
  }
  chunk.for_each_row([&](T* row, std::size_t offset) {
    T* const values = stride == 1 ? row : gathered;
    for (std::size_t i = 0; i < length; i += piece) {
      restore(offset + i, std::min(piece, length - i), values + i);
    }
    for (std::size_t i = 0; stride != 1 && i < length; ++i) {
      row[static_cast<std::int64_t>(i) * stride] = gathered[i];
    }
    return true;
  });
}

#define FIRN_INSTANTIATE(T, Q)                                                                \
  template QuantizeOutcome quantize_chunk(const Box<const T>&, const Parameters&, Workspace&, \
                                          QuantizedChunk<T, Q>*, bool);                       \
  template double mean_square(const Box<const T>&, const Parameters&,                         \
                              const QuantizedChunk<T, Q>&);                                   \
  template void restore_chunk(const Q*, const PayloadHead&, const Parameters&, const Box<T>&, \
                              Workspace&);
FIRN_INSTANTIATE(float, std::int16_t)
FIRN_INSTANTIATE(double, std::int16_t)
FIRN_INSTANTIATE(float, std::int32_t)
FIRN_INSTANTIATE(double, std::int32_t)
FIRN_INSTANTIATE(double, std::int64_t)
#undef FIRN_INSTANTIATE
template std::int16_t* reserve_codes(std::size_t, std::size_t, Workspace&);
template std::int32_t* reserve_codes(std::size_t, std::size_t, Workspace&);
template std::int64_t* reserve_codes(std::size_t, std::size_t, Workspace&);

}  // namespace firn::pipelines
