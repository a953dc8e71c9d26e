// Discrete Fourier transforms of any length, for the spectrum's error.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

namespace firn::metrics {

using Complex = std::complex<double>;

// Sum of x[j] exp(-2 pi i j k / n), in place. Powers of two by halving; other lengths as a
// convolution with a chirp (Bluestein). Thread-safe once made; `scratch` is the caller's.
class FourierTransform {
 public:
  explicit FourierTransform(std::size_t length);
  void run(Complex* values, std::vector<Complex>& scratch) const;

 private:
  void run_power_of_two(Complex* values) const;

  std::size_t length_;
  std::size_t padded_;          // a power of two; length_ itself when that is one
  std::vector<Complex> roots_;  // exp(-2 pi i k / padded_), k < padded_ / 2
  std::vector<Complex> chirp_;  // exp(-pi i k^2 / length_)
  std::vector<Complex> chirp_transform_;
};

}  // namespace firn::metrics
