// Fits of weights: the sums of every SIMD target against the reference, and what a fit finds.
#include "predict/robust_fit.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace firn::predict {
namespace {

TEST(FitSums, AreTheReferencesOnEveryTarget) {
  std::mt19937 random(3);
  std::normal_distribution<float> noise;
  for (const int weights : {1, 2, 7, 8, 12, 23, kMaxFitWeights}) {
    const int pitch = (weights + 3) / 4 * 4;
    for (const std::size_t count : {1, 5, 64, 65, 300}) {
      std::vector<float> features(count * static_cast<std::size_t>(pitch) + kFitSlack);
      std::vector<float> targets(count), importance(count);
      for (float& feature : features) feature = noise(random);
      for (float& target : targets) target = noise(random);
      for (float& each : importance) each = 1 / (0.1f + std::fabs(noise(random)));
      const FitSamples samples{count, weights, pitch, features.data(), targets.data()};
      FitSums expected{};
      fit_kernels(simd::Target::reference).accumulate(samples, importance.data(), expected);
      EXPECT_GT(expected[0][0], 0);
      for (const simd::Target target : simd::available_targets()) {
        FitSums sums{};
        fit_kernels(target).accumulate(samples, importance.data(), sums);
        for (int r = 0; r <= weights; ++r) {
          for (int c = 0; c <= r && c < weights; ++c) {
            ASSERT_EQ(sums[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)],
                      expected[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)])
                << simd::name_of(target) << ' ' << weights << ' ' << count << ' ' << r << ' ' << c;
          }
        }
      }
    }
  }
}

// A few places where the field is rough, and does not follow the rest, do not own the fit.
TEST(RobustFit, FindsTheWeightsOfMostSamples) {
  constexpr std::array<float, 5> kWeights{0.5f, -0.25f, 0.125f, 0, 1};
  std::mt19937 random(4);
  std::normal_distribution<float> noise;
  for (const simd::Target target : simd::available_targets()) {
    RobustFit fit;
    fit.reset(2000, static_cast<int>(kWeights.size()));
    for (int j = 0; j < 2000; ++j) {
      const bool rough = j % 50 == 0;
      float sum = 0;
      for (std::size_t g = 0; g < kWeights.size(); ++g) {
        fit.features()[g] = noise(random) * (rough ? 300.0f : 3.0f);
        sum += kWeights[g] * fit.features()[g];
      }
      fit.add(rough ? -sum : sum + 0.1f * noise(random), rough ? 300.0f : 3.0f);
    }
    const RobustFit::Outcome outcome = fit.fit(4, target);
    ASSERT_TRUE(outcome.found);
    EXPECT_LT(outcome.cost, outcome.base_cost / 2);
    for (std::size_t g = 0; g < kWeights.size(); ++g) {
      EXPECT_NEAR(static_cast<float>(outcome.weights[g]) / static_cast<float>(1 << outcome.shift),
                  kWeights[g], 0.02f);
    }
  }
}

}  // namespace
}  // namespace firn::predict
