// Compress, decompress and hold the result against every promise.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/exact_bound.hpp"
#include "support/fields.hpp"

namespace firn::test {

inline std::string text_of(const Shape& shape) {
  std::string text;
  for (int k = 0; k < shape.rank; ++k) {
    if (k > 0) text += 'x';
    text += std::to_string(shape.extents[k]);
  }
  return text;
}

inline std::string text_of(const Options& options) {
  std::string text = firn::name_of(options.pipeline);
  text += std::string(", ") + firn::name_of(options.bound.kind);
  text += " " + std::to_string(options.bound.value) + ", chunk " + text_of(options.chunk);
  if (options.fill) text += ", fill " + std::to_string(*options.fill);
  return text;
}

inline Execution threads(int count) {
  Execution execution;
  execution.threads = count;
  return execution;
}

template <class T>
std::vector<std::uint8_t> compressed(const std::vector<T>& values, const Shape& shape,
                                     const Options& options, int thread_count = 1) {
  const auto stream = compress(const_view_of(values, shape), options, threads(thread_count));
  EXPECT_TRUE(stream.ok()) << stream.error().message;
  return stream.ok() ? bytes_of(*stream) : std::vector<std::uint8_t>{};
}

template <class T>
std::vector<T> decompressed(const std::vector<std::uint8_t>& stream, const Shape& shape,
                            int thread_count = 1) {
  std::vector<T> values(shape.count(), T(-123));
  const Status status = decompress(stream, view_of(values, shape), threads(thread_count));
  EXPECT_TRUE(status.ok()) << status.error().message;
  return values;
}

// Fails the test where a promise is broken; returns what the stream says of itself.
template <class T>
Info expect_promises(const std::vector<T>& values, const Shape& shape, const Options& options,
                     int thread_count = 1) {
  SCOPED_TRACE(std::string(firn::name_of(kTypeOf<T>)) + " " + text_of(shape) + ", " +
               text_of(options));
  const std::vector<std::uint8_t> stream = compressed(values, shape, options, thread_count);
  const auto worst = worst_case_size(kTypeOf<T>, shape, options);
  EXPECT_TRUE(worst.ok());
  EXPECT_LE(stream.size(), *worst);
  const std::vector<T> decoded = decompressed<T>(stream, shape, thread_count);
  const auto info = inspect(stream);
  EXPECT_TRUE(info.ok());
  if (!info.ok()) return {};
  EXPECT_TRUE(info->complete);
  EXPECT_EQ(info->shape, shape);
  EXPECT_EQ(info->type, kTypeOf<T>);
  EXPECT_EQ(info->compressed_bytes, stream.size());
  EXPECT_EQ(info->original_bytes, values.size() * sizeof(T));
  EXPECT_EQ(info->bound.kind, options.bound.kind);

  // What is enforced is no looser than what was asked for.
  double low = 0, high = 0;
  bool any = false;
  for (const T value : values) {
    if (!std::isfinite(value) || (options.fill && value == static_cast<T>(*options.fill))) continue;
    const auto wide = static_cast<double>(value);
    low = any ? std::min(low, wide) : wide;
    high = any ? std::max(high, wide) : wide;
    any = true;
  }
  if (options.bound.kind == BoundKind::abs) {
    EXPECT_LE(info->bound_abs, options.bound.value);
  } else if (options.bound.kind == BoundKind::rel) {
    EXPECT_LE(info->bound_abs, options.bound.value * (high - low));
  } else if (options.bound.kind == BoundKind::lossless) {
    EXPECT_EQ(info->bound_abs, 0);
  } else if (options.bound.kind == BoundKind::pwrel) {
    EXPECT_LE(info->bound_pwrel, options.bound.value);
  }

  const auto broken = broken_promise(values, decoded, *info, options.fill);
  EXPECT_FALSE(broken) << *broken;
  EXPECT_LE(info->max_abs_error, info->bound_abs);
  EXPECT_LE(info->max_pwrel_error, info->bound_pwrel);
  const auto understated = understated_error(values, decoded, *info, options.fill);
  EXPECT_FALSE(understated) << "beyond the error that the stream states: " << *understated;
  const auto comparison = verify(const_view_of(values, shape), stream, threads(thread_count));
  EXPECT_TRUE(comparison.ok());
  if (comparison.ok()) {
    EXPECT_EQ(comparison->violations, 0u);
    EXPECT_EQ(comparison->count, values.size());
    if (options.bound.kind == BoundKind::pwrel) {
      EXPECT_LE(comparison->max_pwrel_error, info->bound_pwrel * (1 + 1e-15));
    } else {
      EXPECT_LE(comparison->max_abs_error, info->bound_abs);
    }
    if (options.bound.kind == BoundKind::psnr) {
      EXPECT_GE(comparison->psnr_db, options.bound.value - 1e-9);
    }
  }
  return *info;
}

// Every value is within the bound of its chunk.
template <class T>
void expect_within(const std::vector<T>& values, const Shape& shape,
                   const std::vector<std::uint8_t>& bytes) {
  const auto compared = verify(const_view_of(values, shape), bytes, threads(1));
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_EQ(compared->violations, 0u);
}

}  // namespace firn::test
