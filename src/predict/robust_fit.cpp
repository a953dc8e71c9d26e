#include "predict/robust_fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace firn::predict {
namespace {

using Vector = std::array<double, kMaxFitWeights>;

// Solves the symmetric positive system in place by L D L^T. False when it is singular.
bool solve(FitSums& a, Vector& b, int n) {
  for (int j = 0; j < n; ++j) {
    double d = a[j][j];
    for (int k = 0; k < j; ++k) d -= a[j][k] * a[j][k] * a[k][k];
    if (!(d > 0)) return false;
    a[j][j] = d;
    for (int i = j + 1; i < n; ++i) {
      double s = a[i][j];
      for (int k = 0; k < j; ++k) s -= a[i][k] * a[j][k] * a[k][k];
      a[i][j] = s / d;
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
  }
  for (int i = 0; i < n; ++i) b[i] /= a[i][i];
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
  }
  return true;
}

}  // namespace

float rough_bits(float residual) {
  const float size = 1 + 2 * std::fabs(residual);
  const auto bits = std::bit_cast<std::uint32_t>(size);
  return static_cast<float>(bits - 0x3F800000u) * 0x1p-23f;
}

void ScaleFit::add(const Sample& sample, float target) {
  if (count_ == kMost) return;
  samples_[count_] = sample;
  targets_[count_++] = target;
}

std::array<std::uint8_t, ScaleFit::kFeatures> ScaleFit::fit(
    const std::array<std::uint8_t, kFeatures>& start) const {
  std::array<double, kFeatures> w{};
  for (std::size_t q = 0; q < kFeatures; ++q) w[q] = start[q];
  for (int iteration = 0; iteration < 6; ++iteration) {
    std::array<std::array<double, kFeatures>, kFeatures> a{};
    std::array<double, kFeatures> b{};
    for (std::size_t j = 0; j < count_; ++j) {
      double s = 0.02;
      for (std::size_t q = 0; q < kFeatures; ++q) s += w[q] * samples_[j][q];
      // Targets are clipped, so that rare large ones do not own the fit.
      const double target = targets_[j];
      const double t = iteration == 0 ? target : std::min(target, 5 * s + 0.5);
      const double d = iteration == 0 ? s + t + 0.1 : s + 0.05;
      const double g = 1 / (d * d);
      for (std::size_t q = 0; q < kFeatures; ++q) {
        b[q] += g * samples_[j][q] * t;
        for (std::size_t r = 0; r < kFeatures; ++r) a[q][r] += g * samples_[j][q] * samples_[j][r];
      }
    }
    for (int sweep = 0; sweep < 50; ++sweep) {
      for (std::size_t q = 0; q < kFeatures; ++q) {
        if (!(a[q][q] > 0)) continue;
        double v = b[q];
        for (std::size_t r = 0; r < kFeatures; ++r) {
          if (r != q) v -= a[q][r] * w[r];
        }
        w[q] = std::max(0.0, v / a[q][q]);
      }
    }
  }
  std::array<std::uint8_t, kFeatures> rounded{};
  for (std::size_t q = 0; q < kFeatures; ++q) {
    rounded[q] = static_cast<std::uint8_t>(std::nearbyint(std::min(w[q], 255.0)));
  }
  rounded[kFeatures - 1] = std::max<std::uint8_t>(rounded[kFeatures - 1], 1);
  return rounded;
}

void RobustFit::reset(std::size_t samples, int weights) {
  weights_ = weights;
  pitch_ = (weights + 3) / 4 * 4;
  count_ = 0;
  const std::size_t room = samples * static_cast<std::size_t>(pitch_) + kFitSlack;
  std::fill_n(features_.reserve(room), room, 0.0f);
  for (ScratchArray<float>* each :
       {&targets_, &activities_, &importance_, &squares_, &residuals_}) {
    each->reserve(samples);
  }
}

void RobustFit::add(float target, float activity) {
  targets_.data()[count_] = target;
  activities_.data()[count_] = activity * activity + 0.25f;
  ++count_;
}

namespace {

// The sum of products of `count` numbers, a multiple of four: by fours, so that it is vectorised.
float product(const float* __restrict a, const float* __restrict b, int count) {
  float sums[4] = {0, 0, 0, 0};
  for (int g = 0; g < count; g += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += a[g + k] * b[g + k];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

FitSamples RobustFit::samples() const {
  return {count_, weights_, pitch_, features_.data(), targets_.data()};
}

void RobustFit::find_residuals(const float* __restrict weights) {
  const float* __restrict f = features_.data();
  float* __restrict residuals = residuals_.data();
  for (std::size_t j = 0; j < count_; ++j, f += pitch_) {
    residuals[j] = targets_.data()[j] - product(weights, f, pitch_);
  }
}

float RobustFit::mean_cost() const {
  double cost = 0;
  for (std::size_t j = 0; j < count_; ++j) cost += rough_bits(residuals_.data()[j]);
  return static_cast<float>(cost / static_cast<double>(count_));
}

RobustFit::Outcome RobustFit::fit(int iterations, simd::Target target) {
  Outcome best;
  const int n = weights_;
  if (count_ < static_cast<std::size_t>(2 * n)) return best;
  const FitKernels& kernels = fit_kernels(target);
  std::array<float, kMaxFitWeights> weights{};
  float* importance = importance_.data();
  float* squares = squares_.data();
  float* residuals = residuals_.data();
  const float* activities = activities_.data();
  find_residuals(weights.data());
  best.base_cost = best.cost = mean_cost();
  const float* f = features_.data();
  for (std::size_t j = 0; j < count_; ++j, f += pitch_) {
    importance[j] = 1 / activities[j];
    squares[j] = product(f, f, pitch_);
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    FitSums a{};
    kernels.accumulate(samples(), importance, a);
    Vector b = a[static_cast<std::size_t>(n)];
    double total = 0, energy = 0;
    for (std::size_t j = 0; j < count_; ++j) {
      total += importance[j];
      energy += static_cast<double>(squares[j]) * importance[j];
    }
    double trace = 0;
    for (int r = 0; r < n; ++r) trace += a[r][r];
    if (!(trace > 0) || !std::isfinite(trace)) break;
    for (int r = 0; r < n; ++r) a[r][r] += 1e-10 * trace / n + 1e-3 * total;
    if (!solve(a, b, n)) break;
    for (int g = 0; g < n; ++g) {
      b[g] = std::min(std::max(b[g], -16.0), 16.0);
      weights[g] = static_cast<float>(b[g]);
    }
    // Half what a point missed itself, half what its activity promised, scaled to this fit.
    find_residuals(weights.data());
    double kappa = 0;
    for (std::size_t j = 0; j < count_; ++j) {
      importance[j] = residuals[j] * residuals[j];
      kappa += std::min(importance[j] / activities[j], 9.0f);
    }
    kappa = std::max(kappa / static_cast<double>(count_), 1e-6);
    for (std::size_t j = 0; j < count_; ++j) {
      importance[j] =
          1 / (0.5f * importance[j] + 0.5f * static_cast<float>(kappa) * activities[j] + 0.1f);
    }
    // So fine that rounding the weights adds about a hundredth of the local variance.
    int shift = 6;
    const double wanted = energy / (static_cast<double>(count_) * 0.12);
    while (shift < 20 && static_cast<double>(std::uint64_t{1} << (2 * shift)) < wanted) ++shift;
    std::array<std::int32_t, kMaxFitWeights> rounded{};
    for (int g = 0; g < n; ++g) {
      rounded[g] = static_cast<std::int32_t>(std::nearbyint(b[g] * (1 << shift)));
      weights[g] = static_cast<float>(rounded[g]) / static_cast<float>(1 << shift);
    }
    find_residuals(weights.data());
    if (const float cost = mean_cost(); cost < best.cost) {
      best.found = true;
      best.cost = cost;
      best.shift = shift;
      best.weights = rounded;
    }
  }
  return best;
}

}  // namespace firn::predict
