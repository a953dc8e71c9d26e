// Weighted least squares for the weights of a predictor, robust to the few places where a field is
// rough: a point counts by the inverse of what its surroundings promise and of what it missed
// before. Only encoders run this; plain arithmetic in a fixed order, the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/scratch.hpp"
#include "base/simd_target.hpp"
#include "predict/fit_sums.hpp"

namespace firn::predict {

// Samples of a fit, in units of the quantisation step.
class RobustFit {
 public:
  // Room for `samples` of `weights` features each.
  void reset(std::size_t samples, int weights);
  // Where the next sample's features go.
  float* features() { return features_.data() + count_ * static_cast<std::size_t>(pitch_); }
  // `activity`: how much the value varies around the sample, known before it is coded.
  void add(float target, float activity);
  std::size_t count() const { return count_; }

  struct Outcome {
    bool found = false;
    int shift = 0;  // the weights are multiples of 2^-shift
    std::array<std::int32_t, kMaxFitWeights> weights{};
    float cost = 0;       // bits a sample, roughly
    float base_cost = 0;  // the same with all weights 0
  };
  Outcome fit(int iterations, simd::Target target);

 private:
  FitSamples samples() const;
  void find_residuals(const float* weights);
  float mean_cost() const;  // of the residuals

  int weights_ = 0;
  int pitch_ = 0;  // weights_ rounded up to fours; the features between are 0
  std::size_t count_ = 0;
  ScratchArray<float> features_;
  ScratchArray<float> targets_;
  ScratchArray<float> activities_;
  ScratchArray<float> importance_;
  ScratchArray<float> squares_;
  ScratchArray<float> residuals_;
};

// A sum of features with weights that are not negative, fitted to follow the size of residuals.
class ScaleFit {
 public:
  static constexpr std::size_t kFeatures = 7;
  using Sample = std::array<float, kFeatures>;
  void add(const Sample& sample, float target);
  std::size_t count() const { return count_; }
  // Whole weights from 0 to 255; the last one's is at least 1.
  std::array<std::uint8_t, kFeatures> fit(const std::array<std::uint8_t, kFeatures>& start) const;

 private:
  static constexpr std::size_t kMost = 1024;
  std::size_t count_ = 0;
  std::array<Sample, kMost> samples_;
  std::array<float, kMost> targets_;
};

// About log2(1 + 2 |residual|), by the exponent and mantissa of a float.
float rough_bits(float residual);

}  // namespace firn::predict
