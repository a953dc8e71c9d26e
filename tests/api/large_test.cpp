// More than 2^32 values, without that much memory: 65,537 rows of 65,536 values each, where a row
// is one number in memory (a stride of 0).
#include <gtest/gtest.h>

#include <vector>

#include "support/round_trip.hpp"
#include "support/sanitizers.hpp"

namespace firn {
namespace {

TEST(Large, MoreThanFourBillionValues) {
  if (FIRN_SANITIZED) GTEST_SKIP() << "too slow with a sanitizer";
  constexpr std::uint64_t kRows = 65537, kColumns = 65536;
  std::vector<float> rows(kRows);
  for (std::size_t i = 0; i < kRows; ++i) rows[i] = static_cast<float>(i) + 0.25f;
  const Shape shape{kRows, kColumns};
  const ArrayView array{rows.data(), Type::f32, shape, {{1, 0}}};
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {1, kColumns};
  const auto stream = compress(array, options);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  EXPECT_LT(stream->size(), 4u << 20);

  const auto info = inspect(*stream);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->complete);
  EXPECT_EQ(info->chunk_count, kRows);
  EXPECT_EQ(info->original_bytes, kRows * kColumns * 4);

  // Regions before, across and behind the value number 2^32.
  std::vector<float> part(6);
  for (const std::uint64_t first : {0u, 1u, 32767u, 32768u, 65530u, 65534u}) {
    const Region region{{first, kColumns - 2}, {3, 2}};
    ASSERT_TRUE(decompress_region(*stream, region, mutable_view(part.data(), region.shape)).ok());
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(part[i], rows[first + i / 2]);
  }
}

}  // namespace
}  // namespace firn
