// Whether a decoded value is within the bound, decided without any rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/fields.hpp"

namespace firn::test {

// |a - b| <= bound for finite numbers. The rounded difference decides unless it equals the bound;
// then its rounding error does, which two-sum gives exactly (no sum here can overflow unless the
// difference is far beyond the bound).
inline bool within_exactly(double a, double b, double bound) {
  const double difference = a - b;
  if (std::fabs(difference) != bound) return std::fabs(difference) < bound;
  const double b_virtual = difference - a;
  const double a_virtual = difference - b_virtual;
  const double error = (a - a_virtual) + (-b - b_virtual);
  return difference > 0 ? error <= 0 : error >= 0;
}

// The index and reason of the first value that breaks the promise, or nothing: finite values
// within the bound, all others and fill values bit for bit; everything bit for bit if the bound
// is 0.
template <class T>
std::optional<std::string> broken_promise(const std::vector<T>& original,
                                          const std::vector<T>& decoded, double bound,
                                          std::optional<double> fill = {}) {
  if (original.size() != decoded.size()) return "sizes differ";
  for (std::size_t i = 0; i < original.size(); ++i) {
    const bool masked = fill && original[i] == static_cast<T>(*fill);
    const bool exact = bound == 0 || masked || !std::isfinite(original[i]);
    const bool good =
        exact ? bits_of(original[i]) == bits_of(decoded[i])
              : std::isfinite(decoded[i]) && within_exactly(static_cast<double>(original[i]),
                                                            static_cast<double>(decoded[i]), bound);
    if (!good) {
      char text[160];
      std::snprintf(text, sizeof text, "value %zu: %a became %a under %a%s", i,
                    static_cast<double>(original[i]), static_cast<double>(decoded[i]), bound,
                    exact ? " (must be exact)" : "");
      return text;
    }
  }
  return std::nullopt;
}

// |a - b| <= bound |a| for finite numbers of the same sign; zeros keep their bits. Products of a
// 53-bit bound and value are exact in two parts.
inline bool within_pointwise(double a, double b, double bound) {
  if (a == 0 || b == 0) return a == 0 && b == 0 && std::signbit(a) == std::signbit(b);
  if (std::signbit(a) != std::signbit(b)) return false;
  const double scale = std::fabs(a) < 1e-200 ? 0x1p400 : 1;
  const double large = std::fabs(a * scale), other = std::fabs(b * scale);
  if (other > 2 * large || other < large / 2) return false;  // bounds are at most 1/2
  const double difference = std::fabs(large - other), limit = bound * large;
  return difference != limit ? difference < limit : std::fma(bound, large, -limit) >= 0;
}

// As broken_promise, under a bound relative to each value.
template <class T>
std::optional<std::string> broken_pointwise_promise(const std::vector<T>& original,
                                                    const std::vector<T>& decoded, double bound,
                                                    std::optional<double> fill = {}) {
  if (original.size() != decoded.size()) return "sizes differ";
  for (std::size_t i = 0; i < original.size(); ++i) {
    const bool masked = fill && original[i] == static_cast<T>(*fill);
    const bool exact = bound == 0 || masked || !std::isfinite(original[i]);
    const bool good = exact ? bits_of(original[i]) == bits_of(decoded[i])
                            : std::isfinite(decoded[i]) &&
                                  within_pointwise(static_cast<double>(original[i]),
                                                   static_cast<double>(decoded[i]), bound);
    if (!good) {
      char text[160];
      std::snprintf(text, sizeof text, "value %zu: %a became %a under %a of it", i,
                    static_cast<double>(original[i]), static_cast<double>(decoded[i]), bound);
      return text;
    }
  }
  return std::nullopt;
}

// Whichever kind of bound the stream promises.
template <class T>
std::optional<std::string> broken_promise(const std::vector<T>& original,
                                          const std::vector<T>& decoded, const Info& info,
                                          std::optional<double> fill = {}) {
  return info.bound.kind == BoundKind::pwrel
             ? broken_pointwise_promise(original, decoded, info.bound_pwrel, fill)
             : broken_promise(original, decoded, info.bound_abs, fill);
}

// Beyond the error that the stream states to have achieved.
template <class T>
std::optional<std::string> understated_error(const std::vector<T>& original,
                                             const std::vector<T>& decoded, const Info& info,
                                             std::optional<double> fill = {}) {
  if (info.max_pwrel_error > 0) {
    return broken_pointwise_promise(original, decoded, info.max_pwrel_error, fill);
  }
  if (info.max_abs_error > 0) return broken_promise(original, decoded, info.max_abs_error, fill);
  return std::nullopt;
}

}  // namespace firn::test
