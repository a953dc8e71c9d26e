// Causal prediction from its definition: what every SIMD target must reproduce.
#include <bit>
#include <cmath>
#include <limits>

#include "predict/causal.hpp"
#include "predict/interpolation.hpp"

namespace firn::predict::reference {

template <class T>
void predict(const CausalStencil<T>& stencil, const T* cells, const std::uint8_t* magnitudes,
             std::uint32_t coded, T* predictions, std::uint8_t* contexts) {
  for (std::size_t lane = 0; lane < kCausalLanes; ++lane) {
    T sums[2] = {0, 0};  // of the even and of the odd taps, from the last to the first
    for (int g = stencil.tap_count; g-- > 0;) {
      sums[g % 2] = sums[g % 2] + cells[static_cast<std::ptrdiff_t>(lane) + stencil.offset[g]] *
                                      stencil.weight[g];
    }
    T prediction = sums[0] + sums[1];
    if (!(std::fabs(prediction) <= std::numeric_limits<T>::max())) prediction = 0;
    predictions[lane] = prediction;
    T spread = 0;
    for (int g = kSpreadTaps; g-- > 0;) {
      if (g >= stencil.tap_count) continue;
      spread = spread +
               std::fabs(cells[static_cast<std::ptrdiff_t>(lane) + stencil.offset[g]] - prediction);
    }
    std::uint16_t around = 0;
    for (int k = 0; k < stencil.context_taps; ++k) {
      around = static_cast<std::uint16_t>(
          around + magnitudes[static_cast<std::ptrdiff_t>(lane) + stencil.context_offset[k]] *
                       stencil.context_weight[k]);
    }
    const float steps = static_cast<float>(spread * stencil.spread_scale);
    const float activity = (steps + static_cast<float>(around) * 0x1p-6f) + stencil.floor;
    // Half octaves above 2^-6; NaN and infinity are the last.
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(activity) >> 22);
    const std::int32_t context = bits - 2 * (127 - 6);
    const std::int32_t clamped =
        context < kCausalContexts ? (context < 0 ? 0 : context) : kCausalContexts - 1;
    contexts[lane] = coded >> lane & 1 ? static_cast<std::uint8_t>(clamped) : kNotCoded;
  }
}

void set_magnitudes(const std::int32_t* codes, int shift, std::uint8_t* magnitudes) {
  for (std::size_t lane = 0; lane < kCausalLanes; ++lane) {
    const auto bits = static_cast<std::uint32_t>(codes[lane]);
    const std::uint32_t size = (codes[lane] < 0 ? 0 - bits : bits) >> shift;
    magnitudes[lane] = static_cast<std::uint8_t>(size < 255 ? size : 255);
  }
}

template <class T>
std::uint32_t quantize(const quantize::Scale<T>& scale, T fill, int shift, std::uint32_t coded,
                       const T* predictions, T* cells, std::int32_t* codes,
                       std::uint8_t* magnitudes, T* max_error) {
  std::uint32_t exact = 0;
  for (std::size_t lane = 0; lane < kCausalLanes; ++lane) {
    T point = predictions[lane], error = 0;
    codes[lane] = 0;
    if (coded >> lane & 1) {
      if (!quantize_point(cells[lane], scale, fill, &point, &codes[lane], &error)) {
        exact |= std::uint32_t{1} << lane;
      } else if (error > *max_error) {
        *max_error = error;
      }
    }
    cells[lane] = point;
  }
  set_magnitudes(codes, shift, magnitudes);
  return exact;
}

template <class T>
void restore(T step, int shift, const T* predictions, const std::int32_t* codes, T* cells,
             std::uint8_t* magnitudes) {
  for (std::size_t lane = 0; lane < kCausalLanes; ++lane) {
    cells[lane] = predictions[lane] + static_cast<T>(codes[lane]) * step;
  }
  set_magnitudes(codes, shift, magnitudes);
}

template <class T>
const CausalKernels<T>& causal_kernels() {
  static constexpr CausalKernels<T> table{predict<T>, quantize<T>, restore<T>};
  return table;
}
template const CausalKernels<float>& causal_kernels();
template const CausalKernels<double>& causal_kernels();

}  // namespace firn::predict::reference
