#include "pipelines/shuffle.hpp"

#include <cstring>
#include <type_traits>

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

template <class T>
void copy_row(const T* row, std::size_t length, std::int64_t stride, BitsOf<T>* codes) {
  for (std::size_t i = 0; i < length; ++i) {
    BitsOf<T> bits;
    std::memcpy(&bits, &row[static_cast<std::int64_t>(i) * stride], sizeof bits);
    codes[i] = reorder(bits);
  }
}

}  // namespace

template <class T>
bool encode_shuffle(const Box<const T>& chunk, Workspace& workspace, std::uint8_t* out,
                    std::size_t room, Encoded* encoded) {
  using Q = BitsOf<T>;
  using U = std::make_unsigned_t<Q>;
  const std::size_t count = chunk.count();
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  chunk.for_each_row([&](const T* row, std::size_t offset) {
    copy_row(row, chunk.row_length(), chunk.row_stride(), codes + offset);
    return true;
  });
  const Orders orders = choose_orders(codes, count, chunk.rank(), chunk.extents(), {}, workspace);
  Q* residuals = reinterpret_cast<Q*>(workspace.residuals.reserve((count * sizeof(Q) + 7) / 8));
  predict::kernels<Q>(workspace.target)
      .difference(codes, count, lags_of(orders, chunk.rank(), chunk.extents()), residuals);
  std::uint8_t* planes = workspace.streams.reserve(count * sizeof(Q));
  for (std::size_t i = 0; i < count; ++i) {
    const U zigzag =
        static_cast<U>(residuals[i]) << 1 ^ static_cast<U>(residuals[i] >> (8 * sizeof(Q) - 1));
    for (std::size_t b = 0; b < sizeof(Q); ++b) {
      planes[b * count + i] = static_cast<std::uint8_t>(zigzag >> (8 * b));
    }
  }
  out[0] = pack_orders(orders);
  const std::size_t size =
      workspace.lossless.compress({planes, count * sizeof(Q)}, out + 1, room - 1, kLevel);
  if (size == 0 || size + 1 >= count * sizeof(T)) return false;
  encoded->pipeline = Pipeline::shuffle;
  encoded->size = size + 1;
  encoded->max_error = 0;
  encoded->written = true;
  return true;
}

template <class T>
bool decode_shuffle(std::span<const std::uint8_t> payload, const Box<T>& chunk,
                    Workspace& workspace) {
  using Q = BitsOf<T>;
  using U = std::make_unsigned_t<Q>;
  const std::size_t count = chunk.count();
  Orders orders{};
  if (payload.empty() || !unpack_orders(payload[0], chunk.rank(), &orders) ||
      !orders_fit(orders, chunk.rank(), chunk.extents())) {
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
  chunk.for_each_row([&](T* row, std::size_t offset) {
    for (std::size_t i = 0; i < chunk.row_length(); ++i) {
      const Q bits = reorder(codes[offset + i]);
      std::memcpy(&row[static_cast<std::int64_t>(i) * chunk.row_stride()], &bits, sizeof bits);
    }
    return true;
  });
  return true;
}

template bool encode_shuffle(const Box<const float>&, Workspace&, std::uint8_t*, std::size_t,
                             Encoded*);
template bool encode_shuffle(const Box<const double>&, Workspace&, std::uint8_t*, std::size_t,
                             Encoded*);
template bool decode_shuffle(std::span<const std::uint8_t>, const Box<float>&, Workspace&);
template bool decode_shuffle(std::span<const std::uint8_t>, const Box<double>&, Workspace&);

}  // namespace firn::pipelines
