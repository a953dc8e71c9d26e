// Differences with Highway, one copy per target. Forward: the subset formula, whose loads are all
// independent. Backward: lags of 1 are scans with a carry; what the other lags add comes from
// codes that are at least a vector behind (scalar code when a lag is shorter than that).
#include "predict/difference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predict/difference_simd.cpp"  // NOLINT
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace firn::predict {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Signed sum of `codes` over the subsets of kCount lags, code[0] itself included.
template <int kCount, class Q, class D, class V = hn::Vec<D>>
HWY_INLINE V combine(D d, const Q* codes, const size_t* lag) {
  if constexpr (kCount == 0) {
    return hn::LoadU(d, codes);
  } else {
    return hn::Sub(combine<kCount - 1, Q>(d, codes, lag),
                   combine<kCount - 1, Q>(d, codes - lag[kCount - 1], lag));
  }
}

template <int kCount, class Q>
HWY_INLINE Q combine_one(const Q* codes, const size_t* lag) {
  using U = std::make_unsigned_t<Q>;
  if constexpr (kCount == 0) {
    return *codes;
  } else {
    return static_cast<Q>(static_cast<U>(combine_one<kCount - 1>(codes, lag)) -
                          static_cast<U>(combine_one<kCount - 1>(codes - lag[kCount - 1], lag)));
  }
}

// Minus the prediction: the same sum without code[0].
template <int kCount, class Q, class D, class V = hn::Vec<D>>
HWY_INLINE V combine_known(D d, const Q* codes, const size_t* lag) {
  if constexpr (kCount == 0) {
    return hn::Zero(d);
  } else {
    return hn::Sub(combine_known<kCount - 1, Q>(d, codes, lag),
                   combine<kCount - 1, Q>(d, codes - lag[kCount - 1], lag));
  }
}

// Vectors longer than a block, and x86's intrinsics to move lanes between blocks.
#undef FIRN_LONG_X86
#define FIRN_LONG_X86 (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

#if HWY_TARGET == HWY_AVX2
// The lanes of `v` moved up by one, the last lane of `before` moved in.
HWY_INLINE hn::Vec256<int32_t> shift_in(hn::Vec256<int32_t> before, hn::Vec256<int32_t> v) {
  const __m256i middle = _mm256_permute2x128_si256(before.raw, v.raw, 0x21);
  return hn::Vec256<int32_t>{_mm256_alignr_epi8(v.raw, middle, 12)};
}

HWY_INLINE hn::Vec256<int16_t> shift_in(hn::Vec256<int16_t> before, hn::Vec256<int16_t> v) {
  const __m256i middle = _mm256_permute2x128_si256(before.raw, v.raw, 0x21);
  return hn::Vec256<int16_t>{_mm256_alignr_epi8(v.raw, middle, 14)};
}
#elif HWY_TARGET == HWY_AVX3
HWY_INLINE hn::Vec512<int32_t> shift_in(hn::Vec512<int32_t> before, hn::Vec512<int32_t> v) {
  return hn::Vec512<int32_t>{_mm512_alignr_epi32(v.raw, before.raw, 15)};
}

HWY_INLINE hn::Vec512<int16_t> shift_in(hn::Vec512<int16_t> before, hn::Vec512<int16_t> v) {
  alignas(64) static constexpr int16_t kIndices[32] = {31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41,
                                                       42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
                                                       53, 54, 55, 56, 57, 58, 59, 60, 61, 62};
  return hn::Vec512<int16_t>{
      _mm512_permutex2var_epi16(before.raw, _mm512_load_si512(kIndices), v.raw)};
}
#endif

#if FIRN_LONG_X86
// A difference along the fastest axis and kSlow others: the slow ones are loaded once, and their
// neighbour comes from the vector before instead of as many loads again.
template <int kSlow, class Q>
void difference_fast_axis(const Q* codes, size_t count, const size_t* slow_lag,
                          Q* HWY_RESTRICT residuals) {
  using U = std::make_unsigned_t<Q>;
  const hn::ScalableTag<Q> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  auto before = hn::Set(d, combine_one<kSlow>(codes - 1, slow_lag));
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto slow = combine<kSlow, Q>(d, codes + i, slow_lag);
    hn::StoreU(hn::Sub(slow, shift_in(before, slow)), d, residuals + i);
    before = slow;
  }
  for (; i < count; ++i) {
    residuals[i] = static_cast<Q>(static_cast<U>(combine_one<kSlow>(codes + i, slow_lag)) -
                                  static_cast<U>(combine_one<kSlow>(codes + i - 1, slow_lag)));
  }
}
#endif

template <int kCount, class Q>
void difference_n(const Q* codes, size_t count, const size_t* lag, Q* HWY_RESTRICT residuals) {
#if FIRN_LONG_X86
  if constexpr (kCount >= 2 && sizeof(Q) <= 4) {
    if (lag[0] == 1) {
      return difference_fast_axis<kCount - 1>(codes, count, lag + 1, residuals);
    }
  }
#endif
  const hn::ScalableTag<Q> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(combine<kCount, Q>(d, codes + i, lag), d, residuals + i);
  }
  for (; i < count; ++i) residuals[i] = combine_one<kCount>(codes + i, lag);
}

template <class Q>
void difference(const Q* codes, size_t count, const Lags& lags, Q* residuals) {
  const size_t* lag = lags.lag.data();
  switch (lags.count) {
    case 0:
      return difference_n<0>(codes, count, lag, residuals);
    case 1:
      return difference_n<1>(codes, count, lag, residuals);
    case 2:
      return difference_n<2>(codes, count, lag, residuals);
    case 3:
      return difference_n<3>(codes, count, lag, residuals);
    default:
      return difference_n<4>(codes, count, lag, residuals);
  }
}

// Inclusive prefix sum of a vector, and in `total` its last lane in every lane. Vectors of 128
// bits, in which every target can shift lanes, and x86's of 256.
template <class Q>
using BlockTag = hn::CappedTag<Q, 16 / sizeof(Q)>;
#if HWY_TARGET == HWY_SCALAR
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scan(D, V v, V& total) {
  total = v;
  return v;
}
#else
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scan(D d, V v, V& total) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  if constexpr (kLanes >= 4) v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  if constexpr (kLanes >= 8) v = hn::Add(v, hn::ShiftLeftLanes<4>(d, v));
  if constexpr (kLanes >= 4) {
    total = hn::Broadcast<kLanes - 1>(v);
  } else {
    total = hn::InterleaveUpper(d, v, v);
  }
  return v;
}
#endif
#if FIRN_LONG_X86
HWY_INLINE hn::Vec256<int16_t> scan(hn::Full256<int16_t> d, hn::Vec256<int16_t> v,
                                    hn::Vec256<int16_t>& total) {
  const __m256i last = _mm256_set1_epi16(0x0F0E);  // of each half
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  v = hn::Add(v, hn::ShiftLeftLanes<4>(d, v));
  const __m256i low_last = _mm256_permute2x128_si256(_mm256_shuffle_epi8(v.raw, last), v.raw, 0x08);
  v = hn::Add(v, hn::Vec256<int16_t>{low_last});
  total = hn::Vec256<int16_t>{_mm256_permute4x64_epi64(_mm256_shuffle_epi8(v.raw, last), 0xFF)};
  return v;
}
HWY_INLINE hn::Vec256<int32_t> scan(hn::Full256<int32_t> d, hn::Vec256<int32_t> v,
                                    hn::Vec256<int32_t>& total) {
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  const __m256i low_last =
      _mm256_permute2x128_si256(_mm256_shuffle_epi32(v.raw, 0xFF), v.raw, 0x08);
  v = hn::Add(v, hn::Vec256<int32_t>{low_last});
  total = hn::Vec256<int32_t>{_mm256_permutevar8x32_epi32(v.raw, _mm256_set1_epi32(7))};
  return v;
}
HWY_INLINE hn::Vec256<int64_t> scan(hn::Full256<int64_t> d, hn::Vec256<int64_t> v,
                                    hn::Vec256<int64_t>& total) {
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  const __m256i low_last =
      _mm256_permute2x128_si256(_mm256_shuffle_epi32(v.raw, 0xEE), v.raw, 0x08);
  v = hn::Add(v, hn::Vec256<int64_t>{low_last});
  total = hn::Vec256<int64_t>{_mm256_permute4x64_epi64(v.raw, 0xFF)};
  return v;
}
template <class Q>
using ScanTag = hn::CappedTag<Q, 32 / sizeof(Q)>;
#else
template <class Q>
using ScanTag = BlockTag<Q>;
#endif

// kOnes lags of 1 (scans) and kSlow further lags, all of at least a vector of D; values that do not
// fill a vector, and all of them when D is too long for the lags, one by one.
template <int kOnes, int kSlow, class D, class Q = hn::TFromD<D>>
void reconstruct_n(D d, const Q* HWY_RESTRICT residuals, size_t count, const size_t* slow_lag,
                   Carry<Q>& carry, Q* codes) {
  using U = std::make_unsigned_t<Q>;
  const size_t lanes = hn::Lanes(d);
  auto carry0 = hn::Set(d, carry.sum[0]);
  auto carry1 = hn::Set(d, carry.sum[1]);
  size_t i = 0;
  const bool vectors = kSlow == 0 || slow_lag[0] >= lanes;
  for (; vectors && i + lanes <= count; i += lanes) {
    auto v = hn::LoadU(d, residuals + i);
    auto total = v;
    if constexpr (kOnes >= 1) {
      v = hn::Add(scan(d, v, total), carry0);
      carry0 = hn::Add(carry0, total);
    }
    if constexpr (kOnes >= 2) {
      v = hn::Add(scan(d, v, total), carry1);
      carry1 = hn::Add(carry1, total);
    }
    v = hn::Sub(v, combine_known<kSlow, Q>(d, codes + i, slow_lag));
    hn::StoreU(v, d, codes + i);
  }
  carry.sum[0] = hn::GetLane(carry0);
  carry.sum[1] = hn::GetLane(carry1);
  for (; i < count; ++i) {
    U v = static_cast<U>(residuals[i]);
    for (size_t k = 0; k < kOnes; ++k) {
      v += static_cast<U>(carry.sum[k]);
      carry.sum[k] = static_cast<Q>(v);
    }
    codes[i] = 0;
    codes[i] = static_cast<Q>(v - static_cast<U>(combine_one<kSlow>(codes + i, slow_lag)));
  }
}

template <class D, class Q = hn::TFromD<D>>
void reconstruct_with(D d, const Q* residuals, size_t count, const Lags& lags, Carry<Q>& carry,
                      Q* codes) {
  int ones = 0;
  while (ones < lags.count && lags.lag[static_cast<size_t>(ones)] == 1) ++ones;
  const size_t* slow_lag = lags.lag.data() + ones;
#define FIRN_CASE(kOnes, kSlow) \
  case (kOnes)*8 + (kSlow):     \
    return reconstruct_n<kOnes, kSlow>(d, residuals, count, slow_lag, carry, codes)
  switch (ones * 8 + lags.count - ones) {
    FIRN_CASE(0, 0);
    FIRN_CASE(0, 1);
    FIRN_CASE(0, 2);
    FIRN_CASE(0, 3);
    FIRN_CASE(0, 4);
    FIRN_CASE(1, 0);
    FIRN_CASE(1, 1);
    FIRN_CASE(1, 2);
    FIRN_CASE(1, 3);
    FIRN_CASE(2, 0);
    FIRN_CASE(2, 1);
    FIRN_CASE(2, 2);
  }
#undef FIRN_CASE
  // Three or four lags of 1: several axes of a single value each. Not worth vectors.
  using U = std::make_unsigned_t<Q>;
  for (size_t i = 0; i < count; ++i) {
    codes[i] =
        static_cast<Q>(static_cast<U>(residuals[i]) + static_cast<U>(predict_one(codes + i, lags)));
  }
}

template <class Q>
void reconstruct(Q* residuals, size_t count, const Lags& lags, Carry<Q>& carry, Q* codes) {
  // Short rows (a lag of 4 or more) still fill shorter vectors.
  size_t shortest = hn::Lanes(ScanTag<Q>());
  for (int k = lags.count - 1; k >= 0 && lags.lag[static_cast<size_t>(k)] > 1; --k) {
    if (lags.lag[static_cast<size_t>(k)] < shortest) shortest = lags.lag[static_cast<size_t>(k)];
  }
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(Q) == 2) {
    if (shortest < hn::Lanes(BlockTag<Q>())) {
      return reconstruct_with(hn::CappedTag<Q, 4>(), residuals, count, lags, carry, codes);
    }
  }
#endif
  if (shortest < hn::Lanes(ScanTag<Q>())) {
    return reconstruct_with(BlockTag<Q>(), residuals, count, lags, carry, codes);
  }
  reconstruct_with(ScanTag<Q>(), residuals, count, lags, carry, codes);
}

// What each costs, and more: its exponent counts too. That is less than 2^15 for a residual, so
// their sum stays below 2^32 for 2^17.
using DFloat = hn::ScalableTag<float>;
using DInt = hn::RebindToSigned<DFloat>;
using DUint = hn::RebindToUnsigned<DFloat>;
constexpr uint32_t kCostMore = 127u << 7;
HWY_INLINE hn::Vec<DUint> costs_of(hn::Vec<DInt> residuals) {
  const DFloat d;
  const auto magnitude = hn::Abs(hn::ConvertTo(d, residuals));
  const auto doubled = hn::Add(hn::Add(magnitude, magnitude), hn::Set(d, 1.0f));
  return hn::ShiftRight<16>(hn::BitCast(DUint(), doubled));
}
template <class Q>
HWY_INLINE hn::Vec<DInt> load_as_int(const Q* from) {
  if constexpr (sizeof(Q) == 4) {
    return hn::LoadU(DInt(), from);
  } else {
    return hn::PromoteTo(DInt(), hn::LoadU(hn::Rebind<Q, DInt>(), from));
  }
}

template <class Q>
uint64_t cost(const Q* HWY_RESTRICT residuals, size_t count) {
  uint64_t total = 0;
  size_t i = 0;
  if constexpr (sizeof(Q) <= 4) {
    const DUint du;
    const size_t lanes = hn::Lanes(du);
    auto sums = hn::Zero(du);
    for (; i + lanes <= count; i += lanes) {
      sums = hn::Add(sums, costs_of(load_as_int(residuals + i)));
    }
    total += hn::GetLane(hn::SumOfLanes(du, sums)) - i * kCostMore;
  }
  for (; i < count; ++i) total += residual_cost(static_cast<float>(residuals[i]));
  return total;
}

template <class Q>
void line_costs(const Q* codes, size_t count, uint64_t* costs) {
  static constexpr size_t kLag[] = {1, 1};
  size_t i = 0;
  if constexpr (sizeof(Q) == 4) {
    const DUint du;
    const size_t lanes = hn::Lanes(du);
    auto sums0 = hn::Zero(du), sums1 = sums0, sums2 = sums0;
    for (; i + lanes <= count; i += lanes) {
      const auto code = load_as_int(codes + i), before = load_as_int(codes + i - 1);
      const auto once = hn::Sub(code, before);
      const auto once_before = hn::Sub(before, load_as_int(codes + i - 2));
      sums0 = hn::Add(sums0, costs_of(code));
      sums1 = hn::Add(sums1, costs_of(once));
      sums2 = hn::Add(sums2, costs_of(hn::Sub(once, once_before)));
    }
    costs[0] += hn::GetLane(hn::SumOfLanes(du, sums0)) - i * kCostMore;
    costs[1] += hn::GetLane(hn::SumOfLanes(du, sums1)) - i * kCostMore;
    costs[2] += hn::GetLane(hn::SumOfLanes(du, sums2)) - i * kCostMore;
  }
  for (; i < count; ++i) {
    costs[0] += residual_cost(static_cast<float>(combine_one<0>(codes + i, kLag)));
    costs[1] += residual_cost(static_cast<float>(combine_one<1>(codes + i, kLag)));
    costs[2] += residual_cost(static_cast<float>(combine_one<2>(codes + i, kLag)));
  }
}

// Scalar: each point may depend on the one before.
template <int kCount, class Q>
void fill_n(Q* codes, size_t count, const size_t* lag, const uint64_t* bits) {
  using U = std::make_unsigned_t<Q>;
  for (size_t w = 0; w < (count + 63) / 64; ++w) {
    for (uint64_t word = bits[w]; word != 0; word &= word - 1) {
      Q* code = codes + w * 64 + hwy::Num0BitsBelowLS1Bit_Nonzero64(word);
      *code = 0;
      *code = static_cast<Q>(U{0} - static_cast<U>(combine_one<kCount>(code, lag)));
    }
  }
}

template <class Q>
void fill(Q* codes, size_t count, const Lags& lags, const uint64_t* bits) {
  const size_t* lag = lags.lag.data();
  switch (lags.count) {
    case 0:
      return fill_n<0>(codes, count, lag, bits);
    case 1:
      return fill_n<1>(codes, count, lag, bits);
    case 2:
      return fill_n<2>(codes, count, lag, bits);
    case 3:
      return fill_n<3>(codes, count, lag, bits);
    default:
      return fill_n<4>(codes, count, lag, bits);
  }
}

template <class Q>
const Kernels<Q>& table() {
  static constexpr Kernels<Q> kernels{difference<Q>, reconstruct<Q>, cost<Q>, line_costs<Q>,
                                      fill<Q>};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace firn::predict
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/simd_dispatch.hpp"

namespace firn::predict {

namespace reference {
template <class Q>
const Kernels<Q>& kernels();
}  // namespace reference

template <class Q>
const Kernels<Q>& kernels(simd::Target target) {
  if (target == simd::Target::reference) return reference::kernels<Q>();
  FIRN_SELECT_KERNELS(target, table<Q>)
}
template const Kernels<std::int16_t>& kernels(simd::Target);
template const Kernels<std::int32_t>& kernels(simd::Target);
template const Kernels<std::int64_t>& kernels(simd::Target);

}  // namespace firn::predict
#endif  // HWY_ONCE
