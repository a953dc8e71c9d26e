// Contexts of residuals: every SIMD target against the reference.
#include "predict/contexts.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace firn::predict {
namespace {

TEST(Contexts, AreTheReferencesOnEveryTarget) {
  const std::array<std::size_t, 4> lags{4000, 400, 50, 1};
  std::mt19937 random(5);
  for (int rank = 1; rank <= 4; ++rank) {
    std::array<std::size_t, 4> own{};
    for (int k = 0; k < rank; ++k) own[k] = lags[static_cast<std::size_t>(4 - rank + k)];
    const ContextRule rule = context_rule(rank, own);
    for (const std::size_t count : {1, 31, 32, 33, 64, 95, 1000}) {
      std::vector<std::uint16_t> magnitudes(rule.history() + count + 64);
      for (auto& magnitude : magnitudes) {
        const unsigned bits = random();
        magnitude = static_cast<std::uint16_t>((bits & kMaxMagnitude) >> (bits >> 16) % 12);
      }
      const auto contexts_on = [&](simd::Target target) {
        std::vector<std::uint8_t> contexts(count + 1, 99);
        context_kernels<std::int32_t>(target).contexts(magnitudes.data() + rule.history(), count,
                                                       rule, contexts.data());
        return contexts;
      };
      const auto expected = contexts_on(simd::Target::reference);
      EXPECT_EQ(expected[count], 99) << "written behind the end";
      for (const simd::Target target : simd::available_targets()) {
        EXPECT_EQ(contexts_on(target), expected) << simd::name_of(target) << " rank " << rank;
      }
    }
  }
}

TEST(Contexts, OfNoMagnitudeAndOfTheLargest) {
  const ContextRule rule = context_rule(1, {1, 0, 0, 0});
  for (const simd::Target target : simd::available_targets()) {
    for (const std::uint16_t magnitude : {std::uint16_t{0}, std::uint16_t{kMaxMagnitude}}) {
      const std::vector<std::uint16_t> magnitudes(rule.history() + 128, magnitude);
      std::vector<std::uint8_t> contexts(64);
      context_kernels<std::int32_t>(target).contexts(magnitudes.data() + rule.history(), 64, rule,
                                                     contexts.data());
      const std::uint8_t wanted = magnitude == 0 ? 0 : kContextCount - 1;
      EXPECT_EQ(contexts, std::vector<std::uint8_t>(64, wanted)) << simd::name_of(target);
    }
  }
}

}  // namespace
}  // namespace firn::predict
