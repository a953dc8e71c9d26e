#include "pipelines/bits.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/spread.hpp"
#include "encode/context_rans.hpp"
#include "encode/distributions.hpp"
#include "pipelines/neighbour_contexts.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "predict/difference.hpp"

namespace firn::pipelines {
namespace {

constexpr int kLevel = 3;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// Sign and magnitude to two's complement and back: neighbours in value are neighbours in code.
template <class Q>
Q reorder(Q bits) {
  using U = std::make_unsigned_t<Q>;
  constexpr U kMagnitude = ~U{0} >> 1;
  return bits < 0 ? static_cast<Q>(static_cast<U>(bits) ^ kMagnitude) : bits;
}

// copy(place of a value in memory, code) for each value. A stride of 1 is for compilers to see.
template <class T, class Q, class Copy>
void for_each_code(const Box<T>& chunk, Q* codes, Copy copy) {
  const std::int64_t stride = chunk.row_stride();
  chunk.for_each_row([&](T* row, std::size_t offset) {
    Q* const begin = codes + offset;
    const std::size_t length = chunk.row_length();
    if (stride == 1) {
      for (std::size_t i = 0; i < length; ++i) copy(&row[i], begin[i]);
    } else {
      for (std::size_t i = 0; i < length; ++i) {
        copy(&row[static_cast<std::int64_t>(i) * stride], begin[i]);
      }
    }
    return true;
  });
}

template <class T>
void read_codes(const Box<const T>& chunk, BitsOf<T>* codes) {
  for_each_code(chunk, codes, [](const T* value, BitsOf<T>& code) {
    std::memcpy(&code, value, sizeof code);
    code = reorder(code);
  });
}

template <class T>
void write_values_of(const BitsOf<T>* codes, const Box<T>& chunk) {
  for_each_code(chunk, codes, [](T* value, BitsOf<T> code) {
    const BitsOf<T> bits = reorder(code);
    std::memcpy(value, &bits, sizeof bits);
  });
}

bool read_orders(std::uint8_t packed, int rank, const std::array<std::size_t, kMaxRank>& extents,
                 Orders* orders) {
  return unpack_orders(packed, rank, orders) && orders_fit(*orders, rank, extents);
}

// ---- shuffle ----

template <class Q>
auto zigzag_of(Q residual) {
  using U = std::make_unsigned_t<Q>;
  return static_cast<U>(static_cast<U>(residual) << 1 ^
                        static_cast<U>(residual >> (8 * sizeof(Q) - 1)));
}

constexpr std::size_t kSamples = 1024;

// Whether many residuals are those before them, as some tell.
template <class Q>
bool repeats(const Q* residuals, std::size_t count) {
  constexpr std::size_t kShare = 16;
  std::size_t seen = 0, repeated = 0;
  for_one_in(std::max<std::size_t>(1, count / kSamples), count, [&](std::size_t i) {
    ++seen;
    repeated += i > 0 && residuals[i] == residuals[i - 1];
  });
  return repeated * kShare > seen;
}

// About what they take, from the entropies of some bytes of each plane: repetitions do not show.
template <class Q>
std::size_t planes_estimate(const Q* residuals, std::size_t count) {
  static const auto logs = [] {
    std::array<double, 2 * kSamples + 1> result{};
    for (std::uint32_t i = 1; i < result.size(); ++i) result[i] = encode::rough_log2(i);
    return result;
  }();
  std::array<std::array<std::uint16_t, 256>, sizeof(Q)> seen{};
  std::uint32_t all = 0;
  for_one_in(std::max<std::size_t>(1, count / kSamples), count, [&](std::size_t i) {
    const auto zigzag = zigzag_of(residuals[i]);
    for (std::size_t b = 0; b < sizeof(Q); ++b) ++seen[b][zigzag >> (8 * b) & 0xFF];
    ++all;
  });
  double bits = 0;
  for (const auto& plane : seen) {
    std::size_t different = 0;
    double sum = 0;
    for (const std::uint32_t times : plane) {
      different += times != 0;
      sum += times * logs[times];
    }
    // Few samples have less entropy than what they are from, and zstd takes more than that.
    constexpr double kHalfOverLn2 = 0.7213475204444817, kMore = 1.15;
    const double entropy =
        logs[all] - (sum - kHalfOverLn2 * static_cast<double>(different - 1)) / all;
    bits += std::min(kMore * entropy, 8.0);
  }
  return static_cast<std::size_t>(bits / 8 * static_cast<double>(count));
}

// The planes, in the workspace.
template <class Q>
std::uint8_t* make_planes(const Q* residuals, std::size_t count, Workspace& workspace) {
  std::uint8_t* const planes = workspace.streams.reserve(count * sizeof(Q));
  for (std::size_t i = 0; i < count; ++i) {
    const auto zigzag = zigzag_of(residuals[i]);
    for (std::size_t b = 0; b < sizeof(Q); ++b) {
      planes[b * count + i] = static_cast<std::uint8_t>(zigzag >> (8 * b));
    }
  }
  return planes;
}

// The bytes written, or 0 if there is no room.
template <class Q>
std::size_t write_planes(const Q* residuals, std::size_t count, Workspace& workspace,
                         std::uint8_t* out, std::size_t room) {
  const std::uint8_t* const planes = make_planes(residuals, count, workspace);
  return workspace.lossless.compress({planes, count * sizeof(Q)}, out, room, kLevel);
}

// What planes take that are so long that zstd has blocks for each.
template <class Q>
std::size_t write_each_plane(const Q* residuals, std::size_t count, Workspace& workspace,
                             std::uint8_t* out, std::size_t room) {
  const std::uint8_t* const planes = make_planes(residuals, count, workspace);
  std::size_t size = 0;
  for (std::size_t b = 0; b < sizeof(Q); ++b) {
    size += workspace.lossless.compress({planes + b * count, count}, out, room, kLevel);
  }
  return size;
}

// ---- bits ----

// Of 64 bits the lower half, which has a sign, is stored as it is: that of all but the smoothest
// arrays is noise.
constexpr int kLowBits = 32;
std::size_t low_bytes(std::size_t width) { return width - sizeof(std::int32_t); }

const std::int32_t* upper_halves(const std::int32_t* residuals, std::size_t,
                                 ScratchArray<std::uint8_t>&) {
  return residuals;
}
const std::int32_t* upper_halves(const std::int64_t* residuals, std::size_t count,
                                 ScratchArray<std::uint8_t>& memory) {
  auto* const upper = reinterpret_cast<std::int32_t*>(memory.reserve(count * sizeof(std::int32_t)));
  constexpr std::uint64_t kHalf = std::uint64_t{1} << (kLowBits - 1);
  for (std::size_t i = 0; i < count; ++i) {
    upper[i] =
        static_cast<std::int32_t>((static_cast<std::uint64_t>(residuals[i]) + kHalf) >> kLowBits);
  }
  return upper;
}

// A chunk's residuals, what the coder gets of them, and its contexts (in the workspace).
template <class Q>
struct Residuals {
  const Q* whole;
  const std::int32_t* upper;
  const std::uint8_t* contexts;
  std::size_t count;
  int shift;
};

// The bytes written, which may be more than the values have.
template <class Q>
std::size_t write_coded(const Residuals<Q>& residuals, Workspace& workspace, ByteWriter& writer) {
  const std::size_t count = residuals.count;
  writer.write(static_cast<std::uint8_t>(residuals.shift));
  if constexpr (sizeof(Q) == 8) {
    std::uint8_t* const to = writer.here();
    for (std::size_t i = 0; i < count; ++i) {
      store_le(to + i * sizeof(std::uint32_t), static_cast<std::uint32_t>(residuals.whole[i]));
    }
    writer.advance(count * low_bytes(sizeof(Q)));
  }
  return writer.size() + workspace.rans_encoder.encode(residuals.upper, residuals.contexts, count,
                                                       {}, workspace.target, writer.here());
}

template <class Q>
std::size_t coded_estimate(const Residuals<Q>& residuals, Workspace& workspace) {
  return 1 + residuals.count * low_bytes(sizeof(Q)) +
         workspace.rans_encoder.estimate(residuals.upper, residuals.contexts, residuals.count, 1,
                                         workspace.target);
}

// What `shuffle` takes over what `bits` does, on pieces from all over a chunk that is larger.
constexpr std::size_t kLeastSampled = 4096;
template <class Q>
double shuffled_over_coded(const Residuals<Q>& all, Workspace& workspace) {
  constexpr std::size_t kPieces = 16, kShare = 16, kLongPlanes = 65536;
  const std::size_t length = std::max(all.count / kShare, kLeastSampled) / kPieces;
  const std::size_t count = length * kPieces;
  Q* const whole =
      reinterpret_cast<Q*>(workspace.sampled_residuals.reserve((count * sizeof(Q) + 7) / 8));
  std::uint8_t* const contexts = workspace.trial.reserve(count);
  for (std::size_t i = 0; i < kPieces; ++i) {
    const auto begin = static_cast<std::size_t>(spread(i + 1, all.count - length + 1));
    std::copy_n(all.whole + begin, length, whole + i * length);
    std::copy_n(all.contexts + begin, length, contexts + i * length);
  }
  const Residuals<Q> sample{whole, upper_halves(whole, count, workspace.row), contexts, count,
                            all.shift};
  const std::size_t room = encode::Lossless::capacity(count * sizeof(Q));
  std::uint8_t* const out = workspace.sampled_output.reserve(room);
  const std::size_t shuffled = all.count < kLongPlanes
                                   ? write_planes(whole, count, workspace, out, room)
                                   : write_each_plane(whole, count, workspace, out, room);
  return static_cast<double>(shuffled) / static_cast<double>(coded_estimate(sample, workspace));
}

}  // namespace

template <class T>
bool encode_lossless(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                     std::uint8_t* out, std::size_t room, Encoded* encoded) {
  using Q = BitsOf<T>;
  const std::size_t count = chunk.count();
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  read_codes(chunk, codes);
  const Orders orders = choose_orders(codes, count, chunk.rank(), chunk.extents(), {}, workspace);
  Q* residuals = reinterpret_cast<Q*>(workspace.residuals.reserve((count * sizeof(Q) + 7) / 8));
  predict::kernels<Q>(workspace.target)
      .difference(codes, count, lags_of(orders, chunk.rank(), chunk.extents()), residuals);

  Residuals<Q> all{residuals, nullptr, nullptr, count, 0};
  bool shuffled = parameters.pipeline == Pipeline::shuffle, coded = !shuffled;
  if (coded) {
    all.upper = upper_halves(residuals, count, workspace.values);
    all.shift = find_contexts(all.upper, count, chunk.rank(), chunk.extents(), workspace);
    all.contexts = workspace.contexts.data();
  }
  // The smaller, by a sample; of few residuals as they are. A trial does with estimates, unless
  // there is much for zstd to find.
  constexpr double kUndecided = 1.08;
  const double undecided = parameters.thorough ? kUndecided : 1;
  const bool either = coded && parameters.pipeline != Pipeline::bits;
  const bool few = count <= kLeastSampled;
  if (either && (parameters.trial ? repeats(residuals, count) : few)) {
    shuffled = true;
  } else if (either && !parameters.trial) {
    const double quotient = shuffled_over_coded(all, workspace);
    shuffled = quotient < undecided;
    coded = quotient * undecided >= 1;
  }

  out[0] = pack_orders(orders);
  std::size_t least = count * sizeof(T);
  // The choice of another way stays: it may be of use under another bound.
  const auto take = [&](Pipeline by, std::size_t size) {
    if (size == 0 || 1 + size >= least) return false;
    least = 1 + size;
    encoded->pipeline = by;
    encoded->size = least;
    encoded->max_error = encoded->mean_square = 0;
    encoded->written = !parameters.trial;
    return true;
  };
  if (shuffled) {
    take(Pipeline::shuffle, write_planes(residuals, count, workspace, out + 1, room - 1));
  }
  if (coded && either && few && !parameters.trial) {
    coded = static_cast<double>(coded_estimate(all, workspace)) <=
            undecided * static_cast<double>(least);
  }
  if (coded && parameters.trial) {
    take(Pipeline::bits, coded_estimate(all, workspace));
    if (either && !shuffled) take(Pipeline::shuffle, planes_estimate(residuals, count));
  } else if (coded) {
    ByteWriter writer(workspace.streams.reserve(
        1 + count * low_bytes(sizeof(Q)) + encode::context_rans_capacity<std::int32_t>(count)));
    const std::uint8_t* const bytes = writer.here();
    const std::size_t size = write_coded(all, workspace, writer);
    if (take(Pipeline::bits, size)) std::memcpy(out + 1, bytes, size);
  }
  return least < count * sizeof(T);
}

template <class T>
bool decode_shuffle(std::span<const std::uint8_t> payload, const Box<T>& chunk,
                    Workspace& workspace) {
  using Q = BitsOf<T>;
  using U = std::make_unsigned_t<Q>;
  const std::size_t count = chunk.count();
  Orders orders{};
  if (payload.empty() || !read_orders(payload[0], chunk.rank(), chunk.extents(), &orders)) {
    return false;
  }
  std::uint8_t* planes = workspace.streams.reserve(count * sizeof(Q));
  if (!workspace.lossless.decompress(payload.subspan(1), {planes, count * sizeof(Q)})) {
    return false;
  }
  Q* residuals = reinterpret_cast<Q*>(workspace.residuals.reserve((count * sizeof(Q) + 7) / 8));
  for (std::size_t i = 0; i < count; ++i) {
    U zigzag = 0;
    for (std::size_t b = 0; b < sizeof(Q); ++b) {
      zigzag |= static_cast<U>(planes[b * count + i]) << (8 * b);
    }
    residuals[i] = static_cast<Q>(zigzag >> 1 ^ (~(zigzag & 1) + 1));
  }
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  predict::Carry<Q> carry;
  predict::kernels<Q>(workspace.target)
      .reconstruct(residuals, count, lags_of(orders, chunk.rank(), chunk.extents()), carry, codes);
  write_values_of(codes, chunk);
  return true;
}

template <class T>
bool decode_bits(std::span<const std::uint8_t> payload, const Box<T>& chunk, Workspace& workspace) {
  using Q = BitsOf<T>;
  const std::size_t count = chunk.count();
  ByteReader in(payload);
  Orders orders{};
  const bool ordered = read_orders(in.read<std::uint8_t>(), chunk.rank(), chunk.extents(), &orders);
  const int shift = in.read<std::uint8_t>();
  const auto lows = in.read_bytes(count * low_bytes(sizeof(Q)));
  if (!in.ok() || !ordered || shift >= 32) return false;
  if (!workspace.rans_decoder.start(in.read_rest(), workspace.target)) return false;
  const predict::Lags lags = lags_of(orders, chunk.rank(), chunk.extents());
  const auto& predict = predict::kernels<Q>(workspace.target);
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  predict::Carry<Q> carry;
  const auto mark = [](std::size_t, std::size_t, std::uint8_t*) {};
  const auto take = [&](std::size_t begin, std::size_t length, std::int32_t* upper) {
    if constexpr (sizeof(Q) == sizeof(std::int32_t)) {
      predict.reconstruct(upper, length, lags, carry, codes + begin);
    } else {
      Q residuals[kMaxPiece];
      for (std::size_t i = 0; i < length; ++i) {
        const auto low = load_le<std::int32_t>(lows.data() + (begin + i) * sizeof(std::int32_t));
        residuals[i] = static_cast<Q>((static_cast<std::uint64_t>(upper[i]) << kLowBits) +
                                      static_cast<std::uint64_t>(std::int64_t{low}));
      }
      predict.reconstruct(residuals, length, lags, carry, codes + begin);
    }
  };
  if (!decode_residuals<std::int32_t>(count, chunk.rank(), chunk.extents(), shift, workspace, mark,
                                      take)) {
    return false;
  }
  write_values_of(codes, chunk);
  return true;
}

#define FIRN_INSTANTIATE(T)                                                                        \
  template bool encode_lossless(const Box<const T>&, const Parameters&, Workspace&, std::uint8_t*, \
                                std::size_t, Encoded*);                                            \
  template bool decode_shuffle(std::span<const std::uint8_t>, const Box<T>&, Workspace&);          \
  template bool decode_bits(std::span<const std::uint8_t>, const Box<T>&, Workspace&);
FIRN_INSTANTIATE(float)
FIRN_INSTANTIATE(double)
#undef FIRN_INSTANTIATE

}  // namespace firn::pipelines
