// The metrics against definitions written out plainly. tests/python/test_metrics.py compares them
// with numpy's FFT and gradient, and with scikit-image's SSIM where that is installed.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <firn/metrics.hpp>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "metrics/fourier.hpp"

namespace firn {
namespace {

struct Pair {
  Shape shape;
  std::vector<double> original, decoded;

  Result<Metrics> measure(const MetricsOptions& options = {}, int threads = 1) const {
    Execution execution;
    execution.threads = threads;
    return firn::measure(view(original.data(), shape), view(decoded.data(), shape), options,
                         execution);
  }
};

Pair make_pair(const Shape& shape, double error = 1e-2, unsigned seed = 7) {
  Pair pair{shape, {}, {}};
  std::mt19937 random(seed);
  const auto next = [&] { return static_cast<double>(random()) / 4294967296.0 - 0.5; };
  for (std::uint64_t i = 0; i < shape.count(); ++i) {
    pair.original.push_back(300 + 10 * std::sin(static_cast<double>(i) * 0.05) + next());
    pair.decoded.push_back(pair.original.back() + error * next());
  }
  return pair;
}

void expect_equal(const Metrics& a, const Metrics& b) {
  EXPECT_EQ(a.rmse, b.rmse);
  EXPECT_EQ(a.mean_error, b.mean_error);
  EXPECT_EQ(a.max_abs_error, b.max_abs_error);
  EXPECT_EQ(a.error_autocorrelation, b.error_autocorrelation);
  EXPECT_EQ(a.error_histogram, b.error_histogram);
  EXPECT_EQ(a.ssim, b.ssim);
  ASSERT_EQ(a.gradient.has_value(), b.gradient.has_value());
  if (a.gradient) {
    EXPECT_EQ(a.gradient->rmse, b.gradient->rmse);
    EXPECT_EQ(a.gradient->max_error, b.gradient->max_error);
  }
  ASSERT_EQ(a.spectrum.has_value(), b.spectrum.has_value());
  if (a.spectrum) {
    EXPECT_EQ(a.spectrum->original, b.spectrum->original);
    EXPECT_EQ(a.spectrum->decoded, b.spectrum->decoded);
  }
}

TEST(Metrics, PointwiseMeasuresFollowTheirDefinitions) {
  const Pair pair = make_pair({17, 23, 31});
  double sum = 0, squares = 0, largest = 0, relative = 0;
  double low = pair.original[0], high = low;
  for (std::size_t i = 0; i < pair.original.size(); ++i) {
    const double error = pair.decoded[i] - pair.original[i];
    sum += error;
    squares += error * error;
    largest = std::max(largest, std::fabs(error));
    relative = std::max(relative, std::fabs(error) / std::fabs(pair.original[i]));
    low = std::min(low, pair.original[i]);
    high = std::max(high, pair.original[i]);
  }
  const auto n = static_cast<double>(pair.original.size());
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->count, pair.original.size());
  EXPECT_EQ(metrics->minimum, low);
  EXPECT_EQ(metrics->range, high - low);
  EXPECT_EQ(metrics->max_abs_error, largest);
  EXPECT_EQ(metrics->max_range_relative_error, largest / (high - low));
  EXPECT_EQ(metrics->max_pointwise_relative_error, relative);
  EXPECT_NEAR(metrics->mean_error, sum / n, 1e-15);
  EXPECT_NEAR(metrics->rmse, std::sqrt(squares / n), 1e-15);
  EXPECT_NEAR(metrics->nrmse, std::sqrt(squares / n) / (high - low), 1e-15);
  EXPECT_NEAR(metrics->psnr_db, 20 * std::log10(high - low) - 10 * std::log10(squares / n), 1e-9);
}

TEST(Metrics, AutocorrelationOfAnAlternatingErrorAlternates) {
  Pair pair = make_pair({1000}, 0);
  for (std::size_t i = 0; i < 1000; ++i) pair.decoded[i] += i % 2 == 0 ? 0.5 : -0.5;
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  ASSERT_EQ(metrics->error_autocorrelation.size(), 10u);
  for (std::size_t lag = 1; lag <= 10; ++lag) {
    const double sign = lag % 2 == 0 ? 1 : -1;
    EXPECT_NEAR(metrics->error_autocorrelation[lag - 1],
                sign * static_cast<double>(1000 - lag) / 1000, 1e-9);
  }
}

TEST(Metrics, HistogramCountsEveryFiniteValueOnce) {
  const Pair pair = make_pair({40, 50});
  MetricsOptions options;
  options.histogram_bins = 10;
  options.histogram_limit = 0.0025;  // half of the errors lie outside
  const auto metrics = pair.measure(options);
  ASSERT_TRUE(metrics.ok());
  std::uint64_t inside = 0;
  for (const std::uint64_t count : metrics->error_histogram) inside += count;
  EXPECT_EQ(inside + metrics->histogram_outside, 2000u);
  EXPECT_NEAR(static_cast<double>(inside), 1000, 150);
}

TEST(Metrics, FillAndSpecialValuesAreLeftOut) {
  Pair pair = make_pair({20, 20, 20});
  Pair clean = pair;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  pair.original[5] = pair.decoded[5] = nan;
  pair.original[100] = std::numeric_limits<double>::infinity();
  pair.decoded[100] = 1;  // not bit for bit
  pair.original[4000] = pair.decoded[4000] = 1e20;
  MetricsOptions options;
  options.fill = 1e20;
  const auto metrics = pair.measure(options);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->excluded, 3u);
  EXPECT_EQ(metrics->excluded_different, 1u);
  EXPECT_EQ(metrics->broken, 0u);
  EXPECT_LT(metrics->range, 25);
  EXPECT_LT(metrics->max_abs_error, 0.01);
  ASSERT_TRUE(metrics->ssim && metrics->gradient && metrics->spectrum);
  const auto without = clean.measure();
  ASSERT_TRUE(without.ok());
  EXPECT_NEAR(*metrics->ssim, *without->ssim, 1e-3);
  EXPECT_NEAR(metrics->gradient->rmse, without->gradient->rmse, 1e-4);
}

TEST(Metrics, AValueDecodedAsNanIsCountedAsBroken) {
  Pair pair = make_pair({20, 20});
  pair.decoded[7] = std::numeric_limits<double>::quiet_NaN();
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->broken, 1u);
  EXPECT_TRUE(std::isinf(metrics->max_abs_error));
  EXPECT_FALSE(metrics->ssim);
}

TEST(Metrics, EqualArraysAreEqualByEveryMeasure) {
  const Pair pair = make_pair({9, 10, 11}, 0);
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->rmse, 0);
  EXPECT_TRUE(std::isinf(metrics->psnr_db));
  EXPECT_DOUBLE_EQ(*metrics->ssim, 1);
  EXPECT_EQ(metrics->gradient->max_error, 0);
  EXPECT_LT(metrics->spectrum->max_relative_error, 1e-9);
}

TEST(Metrics, ZerosAreCountedApart) {
  const Pair pair{{4}, {0, 0, 1, 2}, {0, 0.5, 1, 2.5}};
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->zeros_changed, 1u);
  EXPECT_EQ(metrics->max_pointwise_relative_error, 0.25);
}

TEST(Metrics, SsimOfOneWindowFollowsTheFormula) {
  const Pair pair = make_pair({7, 7}, 3);
  double x = 0, y = 0, low = pair.original[0], high = low;
  for (int i = 0; i < 49; ++i) {
    x += pair.original[i] / 49;
    y += pair.decoded[i] / 49;
    low = std::min(low, pair.original[i]);
    high = std::max(high, pair.original[i]);
  }
  double xx = 0, yy = 0, xy = 0;
  for (int i = 0; i < 49; ++i) {
    xx += (pair.original[i] - x) * (pair.original[i] - x) / 48;
    yy += (pair.decoded[i] - y) * (pair.decoded[i] - y) / 48;
    xy += (pair.original[i] - x) * (pair.decoded[i] - y) / 48;
  }
  const double c1 = std::pow(0.01 * (high - low), 2), c2 = std::pow(0.03 * (high - low), 2);
  const double expected =
      (2 * x * y + c1) * (2 * xy + c2) / ((x * x + y * y + c1) * (xx + yy + c2));
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  EXPECT_NEAR(*metrics->ssim, expected, 1e-10);
}

TEST(Metrics, WhatDoesNotExistIsAbsent) {
  const auto line = make_pair({100}).measure();
  ASSERT_TRUE(line.ok());
  EXPECT_FALSE(line->ssim);
  EXPECT_TRUE(line->gradient && line->spectrum);
  const auto thin = make_pair({6, 100}).measure();
  ASSERT_TRUE(thin.ok());
  EXPECT_FALSE(thin->ssim);
  const auto one = make_pair({1, 1}).measure();
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(one->gradient || one->spectrum);
  const auto none = Pair{{0, 5}, {}, {}}.measure();
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->count, 0u);
}

TEST(Metrics, SpectrumHoldsTheVariance) {
  const Pair pair = make_pair({64, 64});
  double mean = 0, variance = 0, in_shells = 0;
  for (const double value : pair.original) mean += value / 4096;
  for (const double value : pair.original) variance += (value - mean) * (value - mean) / 4096;
  const auto metrics = pair.measure();
  ASSERT_TRUE(metrics.ok());
  for (const double power : metrics->spectrum->original) in_shells += power;
  EXPECT_EQ(metrics->spectrum->original.size(), 32u);
  EXPECT_LE(in_shells, variance * (1 + 1e-9));  // corners lie beyond the last shell
  EXPECT_GT(in_shells, 0.9 * variance);
}

TEST(Metrics, SpectrumIsCutToTheLimit) {
  MetricsOptions options;
  options.spectrum_values = 1000;
  const auto metrics = make_pair({3, 40, 20, 10}).measure(options);
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->spectrum->box, (Shape{3, 10, 10, 10}));
}

TEST(Metrics, TheNumberOfThreadsChangesNothing) {
  for (const Shape& shape : {Shape{700001}, Shape{300, 1000}, Shape{50, 60, 70},
                             Shape{3, 20, 30, 70}, Shape{2, 200000}}) {
    const Pair pair = make_pair(shape);
    const auto one = pair.measure({}, 1);
    ASSERT_TRUE(one.ok());
    for (const int threads : {2, 3, 7}) {
      const auto more = pair.measure({}, threads);
      ASSERT_TRUE(more.ok());
      expect_equal(*one, *more);
    }
  }
}

TEST(Metrics, StridesChangeNothing) {
  const Shape shape{12, 13, 14};
  const Pair pair = make_pair(shape);
  // The same arrays stored fastest axis first and backwards.
  std::vector<double> original(pair.original.size()), decoded(pair.original.size());
  const std::array<std::int64_t, kMaxRank> strides{-1, -12, -12 * 13};
  const std::size_t last = original.size() - 1;
  std::size_t i = 0;
  for (std::int64_t z = 0; z < 12; ++z) {
    for (std::int64_t y = 0; y < 13; ++y) {
      for (std::int64_t x = 0; x < 14; ++x, ++i) {
        const auto at =
            static_cast<std::size_t>(static_cast<std::int64_t>(last) - z - 12 * y - 12 * 13 * x);
        original[at] = pair.original[i];
        decoded[at] = pair.decoded[i];
      }
    }
  }
  const auto plain = pair.measure();
  const auto strided = measure({&original[last], Type::f64, shape, strides},
                               {&decoded[last], Type::f64, shape, strides});
  ASSERT_TRUE(plain.ok() && strided.ok());
  expect_equal(*plain, *strided);
}

TEST(Metrics, FloatsAreMeasuredInDoubles) {
  const std::vector<float> original{1, 2, 3, 4}, decoded{1, 2.5f, 3, 4};
  const auto metrics = measure(view(original.data(), {4}), view(decoded.data(), {4}));
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->max_abs_error, 0.5);
  EXPECT_EQ(metrics->rmse, 0.25);
}

TEST(Metrics, WrongArgumentsAreRefused) {
  const Pair pair = make_pair({4, 4});
  EXPECT_FALSE(measure(view(pair.original.data(), {4, 4}), view(pair.decoded.data(), {16})).ok());
  EXPECT_FALSE(measure(view(pair.original.data(), {}), view(pair.decoded.data(), {})).ok());
  EXPECT_FALSE(
      measure(view(pair.original.data(), {4}), view(static_cast<const double*>(nullptr), {4}))
          .ok());
  MetricsOptions options;
  options.lags = -1;
  EXPECT_FALSE(pair.measure(options).ok());
  options = {};
  options.histogram_bins = 1 << 21;
  EXPECT_FALSE(pair.measure(options).ok());
  EXPECT_FALSE(pair.measure({}, -1).ok());
}

TEST(Metrics, TheCallerCanCancel) {
  const Pair pair = make_pair({50, 50});
  Execution execution;
  int calls = 0;
  execution.progress = [&](std::uint64_t, std::uint64_t) { return ++calls < 2; };
  const auto metrics = measure(view(pair.original.data(), pair.shape),
                               view(pair.decoded.data(), pair.shape), {}, execution);
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().code, ErrorCode::cancelled);
  EXPECT_EQ(calls, 2);
}

TEST(FourierTransform, AgreesWithTheSumForAnyLength) {
  std::mt19937 random(3);
  for (const std::size_t n : {1u, 2u, 3u, 7u, 8u, 12u, 64u, 97u, 100u, 255u}) {
    std::vector<metrics::Complex> values(n), scratch;
    for (auto& value : values) {
      value = {static_cast<double>(random()) / 4294967296.0,
               static_cast<double>(random()) / 4294967296.0};
    }
    std::vector<metrics::Complex> transformed = values;
    metrics::FourierTransform(n).run(transformed.data(), scratch);
    for (std::size_t k = 0; k < n; ++k) {
      metrics::Complex sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        sum += values[j] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                               static_cast<double>(n));
      }
      EXPECT_NEAR(std::abs(transformed[k] - sum), 0, 1e-12 * static_cast<double>(n));
    }
  }
}

}  // namespace
}  // namespace firn
