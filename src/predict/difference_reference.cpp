// Differences straight from their definition: what every SIMD target must reproduce.
#include <type_traits>

#include "predict/difference.hpp"

namespace firn::predict {

template <class Q>
Q predict_one(const Q* codes, const Lags& lags) {
  using U = std::make_unsigned_t<Q>;
  U prediction = 0;
  for (unsigned subset = 1; subset < (1u << lags.count); ++subset) {
    std::size_t distance = 0;
    bool negative = true;
    for (int i = 0; i < lags.count; ++i) {
      if (subset >> i & 1) {
        distance += lags.lag[i];
        negative = !negative;
      }
    }
    const U code = static_cast<U>(*(codes - distance));
    prediction += negative ? U(0) - code : code;
  }
  return static_cast<Q>(prediction);
}
template std::int16_t predict_one(const std::int16_t*, const Lags&);
template std::int32_t predict_one(const std::int32_t*, const Lags&);
template std::int64_t predict_one(const std::int64_t*, const Lags&);

namespace reference {

template <class Q>
void difference(const Q* codes, std::size_t count, const Lags& lags, Q* residuals) {
  using U = std::make_unsigned_t<Q>;
  for (std::size_t i = 0; i < count; ++i) {
    residuals[i] =
        static_cast<Q>(static_cast<U>(codes[i]) - static_cast<U>(predict_one(codes + i, lags)));
  }
}

template <class Q>
void reconstruct(Q* residuals, std::size_t count, const Lags& lags, Carry<Q>&, Q* codes) {
  using U = std::make_unsigned_t<Q>;
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] =
        static_cast<Q>(static_cast<U>(residuals[i]) + static_cast<U>(predict_one(codes + i, lags)));
  }
}

template <class Q>
std::uint64_t cost(const Q* residuals, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += residual_cost(static_cast<float>(residuals[i]));
  return total;
}

template <class Q>
void line_costs(const Q* codes, std::size_t count, std::uint64_t* costs) {
  Lags lags;
  for (int k = 0; k < kLineCosts; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      Q residual = 0;
      difference(codes + i, 1, lags, &residual);
      costs[k] += cost(&residual, 1);
    }
    lags.add(1);
  }
}

template <class Q>
void fill(Q* codes, std::size_t count, const Lags& lags, const std::uint64_t* bits) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bits[i / 64] >> i % 64 & 1) codes[i] = predict_one(codes + i, lags);
  }
}

template <class Q>
const Kernels<Q>& kernels() {
  static constexpr Kernels<Q> table{difference<Q>, reconstruct<Q>, cost<Q>, line_costs<Q>, fill<Q>};
  return table;
}
template const Kernels<std::int16_t>& kernels();
template const Kernels<std::int32_t>& kernels();
template const Kernels<std::int64_t>& kernels();

}  // namespace reference
}  // namespace firn::predict
