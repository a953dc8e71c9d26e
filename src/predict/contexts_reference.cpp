// Contexts from their definition: what every SIMD target must reproduce.
#include <bit>
#include <type_traits>

#include "predict/contexts.hpp"

namespace firn::predict {

ContextRule context_rule(int rank, const std::array<std::size_t, 4>& lags) {
  ContextRule rule;
  if (rank == 1) {
    for (std::size_t k = 0; k < 16; ++k) rule.add(kContextDistance + k, 2);
    return rule;
  }
  // "The previous row" is as many rows back as keep one to the right at the distance.
  const std::size_t row = lags[static_cast<std::size_t>(rank - 2)];
  const std::size_t y = (kContextDistance + 1 + row - 1) / row * row;
  const std::size_t z = rank >= 3 ? lags[static_cast<std::size_t>(rank - 3)] : 0;
  const bool planes = rank >= 3 && z >= y + row;
  if (!planes) {
    rule.add(y - 1, 8);
    rule.add(y, 12);
    rule.add(y + 1, 8);
    rule.add(y + row, 4);
    return rule;
  }
  const std::size_t w = rank == 4 ? lags[0] : 0;
  if (rank == 4 && w >= z + row) {
    rule.add(y - 1, 4);
    rule.add(y, 5);
    rule.add(y + 1, 4);
    rule.add(z - 1, 2);
    rule.add(z, 4);
    rule.add(z + 1, 2);
    rule.add(w - 1, 2);
    rule.add(w, 6);
    rule.add(w + 1, 3);
    return rule;
  }
  rule.add(y - 1, 6);
  rule.add(y, 8);
  rule.add(y + 1, 6);
  rule.add(z - 1, 3);
  rule.add(z, 6);
  rule.add(z + 1, 3);
  return rule;
}

namespace reference {

template <class Q>
void magnitudes(const Q* residuals, std::size_t count, int shift, std::uint16_t* out) {
  using U = std::make_unsigned_t<Q>;
  for (std::size_t i = 0; i < count; ++i) {
    const U bits = static_cast<U>(residuals[i]);
    const U magnitude = (residuals[i] < 0 ? U{0} - bits : bits) >> shift;
    out[i] = static_cast<std::uint16_t>(magnitude < kMaxMagnitude ? magnitude : kMaxMagnitude);
  }
}

void contexts(const std::uint16_t* magnitudes, std::size_t count, const ContextRule& rule,
              std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t sum = 0;
    for (int k = 0; k < rule.count; ++k) {
      const auto tap = static_cast<std::size_t>(k);
      sum += std::uint32_t{rule.weight[tap]} * *(magnitudes + i - rule.distance[tap]);
    }
    // Two steps an octave: the exponent, and whether the next bit is set.
    const int width = std::bit_width(sum);
    const std::uint32_t half = width < 2 ? 0 : sum >> (width - 2) & 1;
    out[i] = static_cast<std::uint8_t>(width == 0 ? 0 : 2 * width - 1 + static_cast<int>(half));
  }
}

template <class Q>
const ContextKernels<Q>& context_kernels() {
  static constexpr ContextKernels<Q> table{magnitudes<Q>, contexts};
  return table;
}
template const ContextKernels<std::int32_t>& context_kernels();
template const ContextKernels<std::int64_t>& context_kernels();

}  // namespace reference
}  // namespace firn::predict
