// How `interp` turns points into codes and back, under an absolute or a point-wise bound.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pipelines/pipeline.hpp"
#include "predict/interpolation.hpp"
#include "quantize/logarithmic.hpp"

namespace firn::pipelines {

// How much finer than the finest the steps of the points at spacing 2^level are.
inline double fineness_factor(int fineness, int level) {
  constexpr double kGrowth[] = {1, 1.125, 1.1875, 1.25, 1.5, 2}, kMost[] = {1, 4, 4, 4, 4, 8};
  double factor = 1;
  for (int l = 0; l < level && factor < kMost[fineness]; ++l) factor *= kGrowth[fineness];
  return std::min(factor, kMost[fineness]);
}
template <class T>
quantize::Scale<T> level_scale(quantize::Scale<T> scale, int fineness, int level) {
  scale.set_step(scale.step / static_cast<T>(fineness_factor(fineness, level)));
  return scale;
}

// How points become codes: by their distance from the prediction under an absolute bound, by that
// of the logarithms under a point-wise one.
template <class T>
class PointCoder {
 public:
  PointCoder(const Parameters& parameters, unsigned finer, simd::Target target)
      : pointwise_(parameters.pointwise),
        fill_(parameters.fill ? static_cast<T>(*parameters.fill)
                              : std::numeric_limits<T>::quiet_NaN()),
        bound_(static_cast<T>(parameters.bound_abs)),
        finest_(bound_, parameters.margin, finer),
        scale_(finest_),
        log_scale_(bound_),
        kernels_(predict::interpolation_kernels<T>(target)),
        log_kernels_(quantize::log_point_kernels<T>(target)),
        flag_(quantize::log_kernels<T, std::int32_t>(target).flag) {}

  // Codes are 32-bit.
  bool usable() const { return !pointwise_ || (log_scale_.usable() && !log_scale_.wide()); }

  bool pointwise() const { return pointwise_; }
  // The steps of the points at spacing 2^level.
  void set_level(int fineness, int level) { scale_ = level_scale(finest_, fineness, level); }

  const predict::InterpolationKernels<T>& kernels() const { return kernels_; }
  void predict(const predict::Direction<T>* directions, int count, bool linear, std::size_t length,
               std::uint8_t first_context, T* predictions, std::uint8_t* contexts) const {
    if (pointwise_) {
      const T inverse_step = 1 / (2 * bound_);
      kernels_.predict_pointwise(directions, count, linear, length, inverse_step, first_context,
                                 predictions, contexts);
    } else {
      kernels_.predict(directions, count, linear, length, scale_.inverse_step, first_context,
                       predictions, contexts);
    }
  }
  void correct(const predict::Stencil<T>& stencil, const T* cells, std::size_t length,
               T* predictions) const {
    kernels_.correct(stencil, cells, length, predictions);
  }
  T inverse_step() const { return scale_.inverse_step; }
  T fill() const { return fill_; }
  void base_costs(const predict::Direction<T>* directions, int count, const T* values,
                  std::size_t length, std::uint32_t* costs) const {
    kernels_.base_costs(directions, count, values, length, scale_.inverse_step, costs);
  }
  bool quantize(T value, T* point, std::int32_t* code, T* error) const {
    return pointwise_ ? quantize::log_quantize_point(value, log_scale_, fill_, point, code, error)
                      : predict::quantize_point(value, scale_, fill_, point, code, error);
  }
  bool quantize(const T* values, std::size_t count, T* points, std::int32_t* codes,
                std::uint8_t* magnitudes, T* max_error) const {
    if (!pointwise_) {
      return kernels_.quantize(values, count, scale_, fill_, points, codes, magnitudes, max_error);
    }
    const bool all =
        log_kernels_.quantize(values, count, log_scale_, fill_, points, codes, max_error);
    kernels_.magnitudes(codes, count, magnitudes);
    return all;
  }
  // visit(i) for each value that quantize could not code and whose point it has left alone.
  template <class Visit>
  void for_each_exact(const T* values, const T* points, std::size_t count, Workspace& workspace,
                      Visit visit) const {
    if (!pointwise_) {
      for (std::size_t i = 0; i < count; ++i) {
        const T error = std::fabs(points[i] - values[i]);
        if (values[i] != fill_ && scale_.holds(values[i], error)) continue;
        visit(i);
      }
      return;
    }
    std::uint64_t* flags = workspace.row_flags.reserve((count + 63) / 64);
    flag_(values, count, log_scale_, fill_, flags);
    for (std::size_t w = 0; w < (count + 63) / 64; ++w) {
      for (std::uint64_t word = flags[w]; word != 0; word &= word - 1) {
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }
  T restore(std::int32_t code, T prediction) const {
    return pointwise_ ? quantize::log_restore_point(code, log_scale_, prediction)
                      : prediction + static_cast<T>(code) * scale_.step;
  }
  void restore(const std::int32_t* codes, std::size_t count, T* points,
               std::uint8_t* magnitudes) const {
    if (pointwise_) {
      log_kernels_.restore(codes, count, log_scale_, points);
      kernels_.magnitudes(codes, count, magnitudes);
    } else {
      kernels_.restore(codes, count, scale_.step, points, magnitudes);
    }
  }
  void magnitudes(const std::int32_t* codes, std::size_t count, std::uint8_t* out) const {
    kernels_.magnitudes(codes, count, out);
  }
  // Errors are rounded to the nearest number, so the largest may be a little more than that.
  double rounded_up(T max_error) const {
    if (!(max_error > 0)) return 0;
    if (pointwise_) {
      return std::min(static_cast<double>(max_error) * (1 + 0x1p-20), static_cast<double>(bound_));
    }
    return static_cast<double>(std::nextafter(max_error, bound_));
  }

 private:
  bool pointwise_;
  T fill_, bound_;
  quantize::Scale<T> finest_, scale_;  // of the finest level, of this one
  quantize::LogScale<T> log_scale_;
  const predict::InterpolationKernels<T>& kernels_;
  const quantize::LogPointKernels<T>& log_kernels_;
  decltype(quantize::LogKernels<T, std::int32_t>::flag) flag_;
};

}  // namespace firn::pipelines
