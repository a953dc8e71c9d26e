#include "pipelines/neighbour_contexts.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/spread.hpp"

namespace firn::pipelines {
namespace {

// The shift that keeps all but the largest quarter of the magnitudes of a sample apart: how much
// larger those are tells less than what small ones lose.
template <class Q>
int choose_shift(const Q* residuals, std::size_t count) {
  constexpr std::size_t kSamples = 1024;
  const std::size_t step = std::max<std::size_t>(1, count / kSamples);
  // Most often none is large.
  const auto bits_of = [&](std::size_t i) {
    return static_cast<std::make_unsigned_t<Q>>(residuals[i] < 0 ? ~residuals[i] : residuals[i]);
  };
  std::make_unsigned_t<Q> any = 0;
  for_one_in(step, count, [&](std::size_t i) { any |= bits_of(i); });
  constexpr int kWidth = 10;  // kMaxMagnitude has 11 bits
  if (std::bit_width(any) <= kWidth) return 0;
  std::array<std::size_t, 65> of_width{};
  std::size_t sampled = 0;
  for_one_in(step, count, [&](std::size_t i) {
    ++of_width[static_cast<std::size_t>(std::bit_width(bits_of(i)))];
    ++sampled;
  });
  std::size_t above = 0;
  int width = 64;
  while (width > 0 && (above += of_width[static_cast<std::size_t>(width)]) * 4 < sampled) --width;
  return std::max(0, width - kWidth);
}

// A chunk of so few values has no use for several distributions. The largest shift leaves nothing
// of any magnitude but the smallest number's, so that all contexts are 0.
constexpr std::size_t kOneContext = 512;
template <class Q>
constexpr int kHidingShift = static_cast<int>(8 * sizeof(Q)) - 1;
template <class Q>
bool hides_not_all(const Q* residuals, std::size_t count) {
  Q found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    found |= static_cast<Q>(residuals[i] == std::numeric_limits<Q>::min());
  }
  return found != 0;
}

}  // namespace

std::uint16_t* reserve_magnitudes(std::size_t count, const predict::ContextRule& rule,
                                  Workspace& workspace) {
  const std::size_t history = (rule.history() + 63) / 64 * 64;
  std::uint16_t* all = workspace.magnitudes.reserve(history + count + 64);
  std::memset(all, 0, history * sizeof(std::uint16_t));
  std::memset(all + history + count, 0, 64 * sizeof(std::uint16_t));
  return all + history;
}

template <class Q>
int find_contexts(const Q* residuals, std::size_t count, int rank,
                  const std::array<std::size_t, kMaxRank>& extents, Workspace& workspace) {
  std::uint8_t* contexts = workspace.contexts.reserve(count + 64);
  if (count <= kOneContext && !hides_not_all(residuals, count)) {
    std::memset(contexts, 0, count);
    return kHidingShift<Q>;
  }
  const auto rule = predict::context_rule(rank, axis_lags(rank, extents));
  const auto& kernels = predict::context_kernels<Q>(workspace.target);
  const int shift = choose_shift(residuals, count);
  std::uint16_t* magnitudes = reserve_magnitudes(count, rule, workspace);
  kernels.magnitudes(residuals, count, shift, magnitudes);
  kernels.contexts(magnitudes, count, rule, contexts);
  return shift;
}
template int find_contexts(const std::int32_t*, std::size_t, int,
                           const std::array<std::size_t, kMaxRank>&, Workspace&);
template int find_contexts(const std::int64_t*, std::size_t, int,
                           const std::array<std::size_t, kMaxRank>&, Workspace&);

}  // namespace firn::pipelines
