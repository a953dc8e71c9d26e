#include "pipelines/quantized_chunk.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "container/format.hpp"

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

predict::Lags lags_of(const Orders& orders, int rank, const Extents& extents) {
  const auto axis = axis_lags(rank, extents);
  predict::Lags lags;
  for (int k = 0; k < rank; ++k) {
    for (int i = 0; i < orders[k]; ++i) lags.add(axis[k]);
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

std::size_t history_room(int rank, const Extents& extents) {
  const auto lags = axis_lags(rank, extents);
  std::size_t room = 1;
  for (int k = 0; k < rank; ++k) {
    if (extents[k] != 0) room += lags[k] * std::min<std::size_t>(2, extents[k] - 1);
  }
  return (room + 15) / 16 * 16;
}

template <class Q>
Q* reserve_codes(std::size_t count, std::size_t history, Workspace& workspace) {
  // Room behind as well: vectors may be stored whole.
  const std::size_t values = history + count + 64;
  Q* all = reinterpret_cast<Q*>(
      workspace.codes.reserve((values * sizeof(Q) + sizeof(std::int64_t) - 1) / 8));
  std::memset(all, 0, history * sizeof(Q));
  return all + history;
}

namespace {

template <class T>
T fill_of(const Parameters& parameters) {
  return parameters.fill ? static_cast<T>(*parameters.fill) : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
bool holds(const T* row, std::size_t length, T value) {
  bool found = false;
  for (std::size_t i = 0; i < length; ++i) found |= row[i] == value;
  return found;
}

// Exact points of a chunk as they are found, in workspace.exact_map and workspace.exact_bytes.
template <class T, class Q>
class ExactCollector {
 public:
  ExactCollector(std::size_t count, T fill, const quantize::Scale<T>& scale, Workspace& workspace)
      : count_(count), fill_(fill), scale_(scale), workspace_(workspace) {}

  std::size_t found() const { return found_; }

  // Takes the values whose flag is set; their codes repeat the code before. False: one of them
  // would not be exact with wider codes.
  bool add(const T* values, std::size_t length, const std::uint64_t* flags, std::size_t offset,
           Q* codes) {
    if (found_ == 0) {
      workspace_.exact_map.reset(count_);
      workspace_.exact_bytes.reserve(count_ * sizeof(T));
    }
    T* const exact = reinterpret_cast<T*>(workspace_.exact_bytes.data());
    for (std::size_t begin = 0; begin < length; begin += 64) {
      std::uint64_t word = flags[begin / 64];
      workspace_.exact_map.set_word(offset + begin, word);
      if (kCannotWiden && word == ~std::uint64_t{0}) {
        std::copy_n(values + begin, 64, exact + found_);
        std::fill_n(codes + begin, 64, codes[static_cast<std::ptrdiff_t>(begin) - 1]);
        found_ += 64;
        continue;
      }
      for (; word != 0; word &= word - 1) {
        const std::size_t i = begin + static_cast<std::size_t>(std::countr_zero(word));
        if (!kCannotWiden && values[i] != fill_ && quantize::needs_wide(values[i], scale_)) {
          return false;
        }
        exact[found_++] = values[i];
        codes[i] = codes[static_cast<std::ptrdiff_t>(i) - 1];
      }
    }
    return true;
  }

  // Masks may cover most of a chunk and still cost little; scattered failures do not.
  bool too_many() const {
    const std::size_t max_exact = count_ / 4;
    if (found_ <= max_exact) return false;
    std::size_t finite = 0;
    const T* exact = reinterpret_cast<const T*>(workspace_.exact_bytes.data());
    for (std::size_t i = 0; i < found_; ++i) finite += std::isfinite(exact[i]);
    return finite > max_exact;
  }

 private:
  static constexpr bool kCannotWiden = sizeof(T) == 4 || sizeof(Q) == 8;
  std::size_t count_;
  T fill_;
  quantize::Scale<T> scale_;
  Workspace& workspace_;
  std::size_t found_ = 0;
};

bool all_short(const std::int16_t* codes, std::size_t count) {
  std::int16_t low = 0, high = 0;
  for (std::size_t i = 0; i < count; ++i) {
    low = std::min(low, codes[i]);
    high = std::max(high, codes[i]);
  }
  return low >= -quantize::kShortLimit && high <= quantize::kShortLimit;
}

}  // namespace

template <class T, class Q>
QuantizeOutcome quantize_chunk(const Box<const T>& chunk, const Parameters& parameters,
                               Workspace& workspace, QuantizedChunk<T, Q>* result) {
  constexpr bool kShort = sizeof(Q) == 2;
  using Wide = std::conditional_t<kShort, std::int32_t, Q>;
  // Rows are taken in pieces: what is special about a few values concerns only theirs.
  constexpr std::size_t kPiece = 16384;
  // Short codes near the limits of 32 bits are left to the kernels that clamp.
  constexpr std::int32_t kLargestBase = 1 << 29;
  const auto& kernels = quantize::kernels<T, Wide>(workspace.target);
  const auto quantize_piece = [&] {
    if constexpr (kShort) {
      return quantize::short_kernels<T>(workspace.target).quantize;
    } else {
      return kernels.quantize;
    }
  }();
  const quantize::Scale<T> scale(static_cast<T>(parameters.bound_abs), parameters.margin);
  const std::size_t count = chunk.count();
  const std::size_t row_length = chunk.row_length();
  result->count = count;
  result->codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  T* gathered = reinterpret_cast<T*>(
      workspace.row.reserve(chunk.row_stride() == 1 ? 1 : row_length * sizeof(T)));
  std::uint64_t* flags = workspace.row_flags.reserve(kPiece / 64);
  const T fill = fill_of<T>(parameters);
  ExactCollector<T, Q> exact(count, fill, scale, workspace);
  T max_error = 0;
  bool have_base = false;

  const auto take_piece = [&](const T* values, std::size_t length, std::size_t offset) {
    Q* codes = result->codes + offset;
    T error = 0;
    for (std::size_t i = 0; !have_base && i < length; ++i) {
      if (values[i] == fill) continue;
      have_base = quantize::quantize_value<T, Wide>(values[i], scale, &result->base, &error);
      if (kShort && have_base && std::abs(result->base) > kLargestBase) return false;
    }
    const auto outcome = quantize_piece(values, length, scale, result->base, codes);
    if (outcome.within && !(parameters.fill && holds(values, length, fill))) {
      max_error = std::max(max_error, outcome.max_error);
      return true;
    }
    max_error = std::max(max_error, kernels.flag(values, length, scale, fill, flags));
    if (!exact.add(values, length, flags, offset, codes)) return false;
    if constexpr (kShort) return all_short(codes, length);
    return true;
  };
  const bool taken = chunk.for_each_row([&](const T* row, std::size_t offset) {
    if (chunk.row_stride() != 1) {
      for (std::size_t i = 0; i < row_length; ++i) {
        gathered[i] = row[static_cast<std::int64_t>(i) * chunk.row_stride()];
      }
      row = gathered;
    }
    for (std::size_t i = 0; i < row_length; i += kPiece) {
      if (!take_piece(row + i, std::min(kPiece, row_length - i), offset + i)) return false;
    }
    return true;
  });
  if (!taken) return QuantizeOutcome::needs_wide;
  if (!have_base || (!parameters.fill && exact.too_many())) return QuantizeOutcome::too_many_exact;
  result->exact_count = exact.found();
  result->max_error = static_cast<double>(max_error);
  return QuantizeOutcome::done;
}

template <class Q>
Orders choose_orders(const Q* codes, std::size_t count, int rank, const Extents& extents,
                     int max_lags, Workspace& workspace) {
  constexpr std::size_t kPieces = 8, kPiece = 256;
  const auto& kernels = predict::kernels<Q>(workspace.target);
  Q residuals[kPiece];
  const auto cost_of = [&](const Orders& orders) {
    const predict::Lags lags = lags_of(orders, rank, extents);
    std::uint64_t cost = 0;
    if (count <= kPieces * kPiece) {
      for (std::size_t i = 0; i < count; i += kPiece) {
        const std::size_t length = std::min(kPiece, count - i);
        kernels.difference(codes + i, length, lags, residuals);
        cost += kernels.cost(residuals, length);
      }
      return cost;
    }
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      const std::size_t begin = (count - kPiece) * (2 * piece + 1) / (2 * kPieces);
      kernels.difference(codes + begin, kPiece, lags, residuals);
      cost += kernels.cost(residuals, kPiece);
    }
    return cost;
  };

  Orders best{};
  std::uint64_t best_cost = cost_of(best);
  const auto consider = [&](const Orders& orders) {
    const std::uint64_t cost = cost_of(orders);
    if (cost < best_cost) best_cost = cost, best = orders;
  };
  // Every set of axes, then one more difference along each axis of the best set.
  for (unsigned set = 1; set < (1u << rank); ++set) {
    Orders orders{};
    bool sensible = std::popcount(set) <= max_lags;
    for (int k = 0; k < rank; ++k) {
      orders[k] = set >> k & 1;
      if (orders[k] != 0 && extents[k] == 1) sensible = false;
    }
    if (sensible) consider(orders);
  }
  const Orders first = best;
  int lags = 0;
  for (int k = 0; k < rank; ++k) lags += first[k];
  for (int k = 0; k < rank && lags < max_lags; ++k) {
    if (first[k] != 1 || extents[k] < 3) continue;
    Orders orders = first;
    orders[k] = 2;
    consider(orders);
  }
  return best;
}

template <class T, class Q>
void restore_chunk(const Q* codes, Q base, const Parameters& parameters, std::size_t exact_count,
                   const Box<T>& chunk, Workspace& workspace) {
  const auto& kernels = quantize::kernels<T, Q>(workspace.target);
  const auto dequantize = parameters.streaming ? kernels.dequantize_streaming : kernels.dequantize;
  const T step = quantize::Scale<T>(static_cast<T>(parameters.bound_abs), parameters.margin).step;
  const std::size_t length = chunk.row_length();
  const std::int64_t stride = chunk.row_stride();
  T* gathered = reinterpret_cast<T*>(workspace.row.reserve(stride == 1 ? 1 : length * sizeof(T)));
  const std::uint8_t* exact = workspace.exact_bytes.data();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    T* values = stride == 1 ? row : gathered;
    dequantize(codes + offset, length, step, base, values);
    if (exact_count != 0) {
      workspace.exact_map.for_each(offset, offset + length, [&](std::size_t i) {
        std::memcpy(&values[i - offset], exact, sizeof(T));
        exact += sizeof(T);
      });
    }
    if (stride != 1) {
      for (std::size_t i = 0; i < length; ++i) {
        row[static_cast<std::int64_t>(i) * stride] = gathered[i];
      }
    }
    return true;
  });
}

template <class T>
const T* contiguous(const Box<const T>& chunk, Workspace& workspace) {
  if (const T* whole = contiguous_memory(chunk)) return whole;
  T* copy = reinterpret_cast<T*>(workspace.values.reserve(chunk.count() * sizeof(T)));
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      copy[offset + i] = row[static_cast<std::int64_t>(i) * chunk.row_stride()];
    }
    return true;
  });
  return copy;
}

template <class T>
void write_values(const T* values, bool any_exact, const Box<T>& chunk, Workspace& workspace) {
  const std::uint8_t* exact = workspace.exact_bytes.data();
  const std::size_t length = chunk.row_length();
  const std::int64_t stride = chunk.row_stride();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    if (stride != 1) {
      for (std::size_t i = 0; i < length; ++i) {
        row[static_cast<std::int64_t>(i) * stride] = values[offset + i];
      }
    } else if (row != values + offset) {
      std::memcpy(row, values + offset, length * sizeof(T));
    }
    if (any_exact) {
      workspace.exact_map.for_each(offset, offset + length, [&](std::size_t i) {
        std::memcpy(&row[static_cast<std::int64_t>(i - offset) * stride], exact, sizeof(T));
        exact += sizeof(T);
      });
    }
    return true;
  });
}

std::size_t payload_head_capacity(std::size_t count, std::size_t exact_bytes) {
  return 2 + kMaxVarintBytes + encode::exact_points_capacity(count, exact_bytes);
}

void write_payload_head(const PayloadHead& head, int rank, const Extents& extents,
                        std::size_t value_bytes, Workspace& workspace, ByteWriter& out) {
  out.write<std::uint8_t>(static_cast<std::uint8_t>(
      (head.exact_count ? format::kHasExactPoints : 0) | (head.wide ? format::kWideCodes : 0) |
      (workspace.runner_up.pipeline != 0 ? format::kHasRunnerUp : 0)));
  out.write<std::uint8_t>(pack_orders(head.orders));
  const auto base = static_cast<std::uint64_t>(head.base);
  out.write_varint(base << 1 ^ (head.base < 0 ? ~std::uint64_t{0} : 0));
  if (workspace.runner_up.pipeline != 0) {
    out.write(workspace.runner_up.pipeline);
    out.write(workspace.runner_up.percent);
  }
  if (head.exact_count != 0) {
    write_exact_points_of(rank, extents, head.exact_count * value_bytes, workspace, out);
  }
}

void write_exact_points_of(int rank, const Extents& extents, std::size_t exact_bytes,
                           Workspace& workspace, ByteWriter& out) {
  const auto lags = axis_lags(rank, extents);
  std::array<std::size_t, kMaxRank> row_first{};
  int count = 0;
  row_first[count++] = extents[rank - 1];
  for (int k = rank - 3; k >= 0; --k) row_first[count++] = lags[k];
  write_exact_points(workspace.exact_map, {row_first.data(), static_cast<std::size_t>(count)},
                     {workspace.exact_bytes.data(), exact_bytes}, workspace.lossless,
                     workspace.exact_scratch, out);
}

bool read_payload_head(ByteReader& in, int rank, const Extents& extents, std::size_t value_bytes,
                       std::size_t count, Workspace& workspace, PayloadHead* head) {
  const unsigned flags = in.read<std::uint8_t>();
  const std::uint8_t orders = in.read<std::uint8_t>();
  const std::uint64_t base = in.read_varint();
  constexpr unsigned kKnown = format::kHasExactPoints | format::kWideCodes | format::kHasRunnerUp;
  head->runner_up = {};
  if ((flags & format::kHasRunnerUp) != 0) {
    head->runner_up.pipeline = in.read<std::uint8_t>();
    head->runner_up.percent = in.read<std::uint8_t>();
  }
  if (!in.ok() || (flags & ~kKnown) != 0 || !unpack_orders(orders, rank, &head->orders) ||
      !orders_fit(head->orders, rank, extents)) {
    return false;
  }
  head->wide = (flags & format::kWideCodes) != 0;
  if (head->wide && value_bytes == 4) return false;
  head->base = static_cast<std::int64_t>(base >> 1 ^ (~(base & 1) + 1));
  head->exact_count = 0;
  if ((flags & format::kHasExactPoints) != 0) {
    workspace.exact_map.reset(count);
    if (!read_exact_points(in, extents[rank - 1], value_bytes, workspace.lossless,
                           workspace.exact_scratch, workspace.exact_map, workspace.exact_bytes)) {
      return false;
    }
    head->exact_count = workspace.exact_map.count();
  }
  return true;
}

std::string describe_head(std::span<const std::uint8_t> payload, int rank) {
  ByteReader in(payload);
  const unsigned flags = in.read<std::uint8_t>();
  Orders orders{};
  if (!unpack_orders(in.read<std::uint8_t>(), rank, &orders)) return "damaged";
  in.read_varint();
  RunnerUp runner_up;
  if ((flags & format::kHasRunnerUp) != 0) {
    runner_up.pipeline = in.read<std::uint8_t>();
    runner_up.percent = in.read<std::uint8_t>();
  }
  std::string text = "orders ";
  for (int k = 0; k < rank; ++k) text += static_cast<char>('0' + orders[k]);
  if ((flags & format::kWideCodes) != 0) text += ", 64-bit codes";
  if ((flags & format::kHasExactPoints) != 0) text += ", exact points";
  return text + describe_runner_up(runner_up);
}

std::string describe_runner_up(const RunnerUp& runner_up) {
  if (runner_up.pipeline == 0) return {};
  return "; in a trial " + std::string(name_of(static_cast<Pipeline>(runner_up.pipeline))) +
         " took " + std::to_string(runner_up.percent) +
         (runner_up.percent == 255 ? " % more or worse" : " % more");
}

template const float* contiguous(const Box<const float>&, Workspace&);
template const double* contiguous(const Box<const double>&, Workspace&);
template void write_values(const float*, bool, const Box<float>&, Workspace&);
template void write_values(const double*, bool, const Box<double>&, Workspace&);
#define FIRN_INSTANTIATE_QUANTIZE(T, Q)                                                       \
  template QuantizeOutcome quantize_chunk(const Box<const T>&, const Parameters&, Workspace&, \
                                          QuantizedChunk<T, Q>*);
#define FIRN_INSTANTIATE(T, Q)                                                            \
  FIRN_INSTANTIATE_QUANTIZE(T, Q)                                                         \
  template void restore_chunk(const Q*, Q, const Parameters&, std::size_t, const Box<T>&, \
                              Workspace&);
FIRN_INSTANTIATE_QUANTIZE(float, std::int16_t)
FIRN_INSTANTIATE_QUANTIZE(double, std::int16_t)
FIRN_INSTANTIATE(float, std::int32_t)
FIRN_INSTANTIATE(double, std::int32_t)
FIRN_INSTANTIATE(double, std::int64_t)
#undef FIRN_INSTANTIATE
#undef FIRN_INSTANTIATE_QUANTIZE
template Orders choose_orders(const std::int16_t*, std::size_t, int, const Extents&, int,
                              Workspace&);
template Orders choose_orders(const std::int32_t*, std::size_t, int, const Extents&, int,
                              Workspace&);
template Orders choose_orders(const std::int64_t*, std::size_t, int, const Extents&, int,
                              Workspace&);
template std::int16_t* reserve_codes(std::size_t, std::size_t, Workspace&);
template std::int32_t* reserve_codes(std::size_t, std::size_t, Workspace&);
template std::int64_t* reserve_codes(std::size_t, std::size_t, Workspace&);

}  // namespace firn::pipelines
