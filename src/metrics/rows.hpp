// Original and error of a pair of arrays as doubles, row by row, whatever their type and strides.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <firn/firn.hpp>
#include <limits>
#include <optional>

#include "base/geometry.hpp"

namespace firn::metrics {

inline constexpr double kExcluded = std::numeric_limits<double>::quiet_NaN();

// Where a row of the pair begins; the fastest coordinate is that of its first value.
using Position = std::array<std::uint64_t, kMaxRank>;

class PairReader {
 public:
  PairReader(const ArrayView& original, const ArrayView& decoded, std::optional<double> fill)
      : shape_(original.shape),
        type_(original.type),
        original_(original.data),
        decoded_(decoded.data),
        original_strides_(original.strides ? *original.strides : contiguous_strides(shape_)),
        decoded_strides_(decoded.strides ? *decoded.strides : contiguous_strides(shape_)),
        fill_(fill) {}

  const Shape& shape() const { return shape_; }
  int last_axis() const { return shape_.rank - 1; }
  std::uint64_t row_length() const { return shape_.extents[last_axis()]; }

  // `count` values of one row: the original's, kExcluded where it is NaN, infinite or fill; and
  // their errors, decoded - original. Returns how many excluded values are not bit for bit.
  std::uint64_t read(const Position& at, std::uint64_t count, double* values,
                     double* errors) const {
    return type_ == Type::f32 ? read_as<float, std::uint32_t>(at, count, values, errors)
                              : read_as<double, std::uint64_t>(at, count, values, errors);
  }

  // The same for values [begin, begin + count) of the row-major order.
  std::uint64_t read_linear(std::uint64_t begin, std::uint64_t count, double* values,
                            double* errors) const {
    std::uint64_t different = 0;
    while (count > 0) {
      const Position at = position_of(begin);
      const std::uint64_t part = std::min(count, row_length() - at[last_axis()]);
      different += read(at, part, values, errors);
      begin += part;
      count -= part;
      values += part;
      errors += part;
    }
    return different;
  }

  Position position_of(std::uint64_t linear) const {
    Position at{};
    for (int k = last_axis(); k >= 0; --k) {
      at[k] = linear % shape_.extents[k];
      linear /= shape_.extents[k];
    }
    return at;
  }

 private:
  template <class T, class Bits>
  std::uint64_t read_as(const Position& at, std::uint64_t count, double* values,
                        double* errors) const {
    const T* a = static_cast<const T*>(original_);
    const T* b = static_cast<const T*>(decoded_);
    for (int k = 0; k < shape_.rank; ++k) {
      a += static_cast<std::int64_t>(at[k]) * original_strides_[k];
      b += static_cast<std::int64_t>(at[k]) * decoded_strides_[k];
    }
    const std::int64_t a_step = original_strides_[last_axis()];
    const std::int64_t b_step = decoded_strides_[last_axis()];
    // No value equals NaN, so without a fill value nothing is masked.
    const T fill = fill_ ? static_cast<T>(*fill_) : std::numeric_limits<T>::quiet_NaN();
    std::uint64_t different = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const T x = a[static_cast<std::int64_t>(i) * a_step];
      const T y = b[static_cast<std::int64_t>(i) * b_step];
      if (!std::isfinite(x) || x == fill) {
        values[i] = errors[i] = kExcluded;
        different += std::bit_cast<Bits>(x) != std::bit_cast<Bits>(y);
      } else {
        values[i] = x;
        errors[i] = static_cast<double>(y) - static_cast<double>(x);
      }
    }
    return different;
  }

  Shape shape_;
  Type type_;
  const void* original_;
  const void* decoded_;
  std::array<std::int64_t, kMaxRank> original_strides_;
  std::array<std::int64_t, kMaxRank> decoded_strides_;
  std::optional<double> fill_;
};

}  // namespace firn::metrics
