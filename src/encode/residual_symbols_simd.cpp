// Residuals and symbols with Highway: whole vectors within the range; a vector that holds a
// magnitude class is done value by value.
#include "encode/residual_symbols.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "encode/residual_symbols_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace firn::encode {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Q>
void to_symbols(const Q* HWY_RESTRICT residuals, size_t count, int range_log2,
                uint16_t* HWY_RESTRICT symbols, ExtraBitsWriter& extra) {
  const hn::ScalableTag<hwy::MakeUnsigned<Q>> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const size_t lanes = hn::Lanes(d);
  using U = hwy::MakeUnsigned<Q>;
  const auto range = hn::Set(d, U{1} << range_log2);
  const auto outside = hn::Set(d, ~((U{2} << range_log2) - 1));
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto residual = hn::LoadU(d, reinterpret_cast<const U*>(residuals) + i);
    const auto shifted = hn::Add(residual, range);
    if (HWY_LIKELY(hn::AllTrue(d, hn::Eq(hn::And(shifted, outside), hn::Zero(d))))) {
      hn::StoreU(hn::TruncateTo(d16, shifted), d16, symbols + i);
    } else {
      for (size_t k = i; k < i + lanes; ++k) {
        symbols[k] = residual_to_symbol(residuals[k], range_log2, extra);
      }
    }
  }
  for (; i < count; ++i) symbols[i] = residual_to_symbol(residuals[i], range_log2, extra);
}

template <class Q>
HWY_INLINE void store_residuals(const uint16_t* symbols, Q range, Q* residuals) {
  const hn::ScalableTag<Q> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  if constexpr (sizeof(Q) == 4) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(d16, symbols));
    hn::StoreU(hn::Sub(wide, hn::Set(d, range)), d, residuals);
  } else {
    const hn::Rebind<uint32_t, decltype(d)> d32;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto wide = hn::PromoteTo(du, hn::PromoteTo(d32, hn::LoadU(d16, symbols)));
    hn::StoreU(hn::Sub(hn::BitCast(d, wide), hn::Set(d, range)), d, residuals);
  }
}

template <class Q>
void to_residuals(const uint16_t* HWY_RESTRICT symbols, size_t count, int range_log2,
                  ExtraBitsReader& extra, Q* HWY_RESTRICT residuals) {
  const hn::ScalableTag<uint16_t> d16;
  const size_t lanes16 = hn::Lanes(d16);
  const size_t lanes = hn::Lanes(hn::ScalableTag<Q>());
  const Q range = Q{1} << range_log2;
  // Symbols stay below 2^14, so a saturating difference tells those outside the range.
  const auto limit = hn::Set(d16, static_cast<uint16_t>((2u << range_log2) - 1));
  size_t i = 0;
  for (; i + lanes16 <= count; i += lanes16) {
    const auto beyond = hn::SaturatedSub(hn::LoadU(d16, symbols + i), limit);
    if (HWY_LIKELY(hn::AllTrue(d16, hn::Eq(beyond, hn::Zero(d16))))) {
      for (size_t k = i; k < i + lanes16; k += lanes) {
        store_residuals<Q>(symbols + k, range, residuals + k);
      }
    } else {
      for (size_t k = i; k < i + lanes16; ++k) {
        residuals[k] = symbol_to_residual<Q>(symbols[k], range_log2, extra);
      }
    }
  }
  for (; i < count; ++i) residuals[i] = symbol_to_residual<Q>(symbols[i], range_log2, extra);
}

template <class Q>
const SymbolKernels<Q>& table() {
  static constexpr SymbolKernels<Q> kernels{to_symbols<Q>, to_residuals<Q>};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::encode
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::encode {

namespace reference {
template <class Q>
const SymbolKernels<Q>& symbol_kernels();
}  // namespace reference

template <class Q>
const SymbolKernels<Q>& symbol_kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::symbol_kernels<Q>();
  FIRN_SELECT_KERNELS(target, table<Q>)
}
template const SymbolKernels<std::int32_t>& symbol_kernels(simd::Target);
template const SymbolKernels<std::int64_t>& symbol_kernels(simd::Target);

}  // namespace firn::encode
#endif  // HWY_ONCE
