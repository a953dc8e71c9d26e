#include "metrics/fourier.hpp"

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace firn::metrics {
namespace {

Complex root(std::size_t numerator, std::size_t denominator) {
  const double angle =
      -2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

// std::complex's product checks for NaN; this one does not.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

FourierTransform::FourierTransform(std::size_t length)
    : length_(length),
      padded_(std::has_single_bit(length) ? length : std::bit_ceil(2 * length - 1)) {
  roots_.resize(padded_ / 2);
  for (std::size_t k = 0; k < roots_.size(); ++k) roots_[k] = root(k, padded_);
  if (padded_ == length_) return;
  chirp_.resize(length_);
  chirp_transform_.assign(padded_, 0);
  for (std::size_t k = 0; k < length_; ++k) {
    // k^2 modulo the period keeps the angle small and so exact.
    chirp_[k] = root(k * k % (2 * length_), 2 * length_);
    chirp_transform_[k] = std::conj(chirp_[k]);
    if (k != 0) chirp_transform_[padded_ - k] = std::conj(chirp_[k]);
  }
  run_power_of_two(chirp_transform_.data());
}

void FourierTransform::run(Complex* values, std::vector<Complex>& scratch) const {
  if (padded_ == length_) return run_power_of_two(values);
  // jk = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution.
  scratch.assign(padded_, 0);
  for (std::size_t j = 0; j < length_; ++j) scratch[j] = product(values[j], chirp_[j]);
  run_power_of_two(scratch.data());
  for (std::size_t k = 0; k < padded_; ++k) {
    // The conjugate makes the next transform an inverse one.
    scratch[k] = std::conj(product(scratch[k], chirp_transform_[k]));
  }
  run_power_of_two(scratch.data());
  const double scale = 1 / static_cast<double>(padded_);
  for (std::size_t k = 0; k < length_; ++k) {
    values[k] = product(std::conj(scratch[k]) * scale, chirp_[k]);
  }
}

void FourierTransform::run_power_of_two(Complex* values) const {
  const std::size_t n = padded_;
  for (std::size_t i = 1, reversed = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; reversed & bit; bit >>= 1) reversed ^= bit;
    reversed |= bit;
    if (i < reversed) std::swap(values[i], values[reversed]);
  }
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t step = n / (2 * half);
    for (std::size_t start = 0; start < n; start += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        Complex& low = values[start + k];
        Complex& high = values[start + k + half];
        const Complex turned = product(high, roots_[k * step]);
        high = low - turned;
        low += turned;
      }
    }
  }
}

}  // namespace firn::metrics
