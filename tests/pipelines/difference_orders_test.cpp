// The choice of differences, beside what every choice takes on the whole chunk.
#include "pipelines/difference_orders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "encode/blockpack.hpp"
#include "pipelines/quantized_chunk.hpp"
#include "support/fields.hpp"
#include "support/random.hpp"

namespace firn::pipelines {
namespace {

using Code = std::int32_t;
using Extents = std::array<std::size_t, kMaxRank>;
constexpr int kRank = 3;

class Chunk {
 public:
  Chunk(const Extents& extents,
        const std::function<Code(std::size_t, std::size_t, std::size_t)>& at)
      : extents_(extents), count_(extents[0] * extents[1] * extents[2]) {
    codes_ = reserve_codes<Code>(count_, history_room(kRank, extents_), workspace_);
    Code* next = codes_;
    for (std::size_t z = 0; z < extents[0]; ++z) {
      for (std::size_t y = 0; y < extents[1]; ++y) {
        for (std::size_t x = 0; x < extents[2]; ++x) *next++ = at(z, y, x);
      }
    }
  }

  Orders chosen(const OrderSearch& search) {
    return choose_orders(codes_, count_, kRank, extents_, search, workspace_);
  }
  std::uint64_t size(const Orders& orders, bool packed) const {
    const auto& kernels = predict::kernels<Code>(workspace_.target);
    std::vector<Code> residuals(codes_, codes_ + count_);
    const predict::Lags lags = lags_of(orders, kRank, extents_);
    if (lags.count != 0) kernels.difference(codes_, count_, lags, residuals.data());
    if (!packed) return kernels.cost(residuals.data(), count_);
    std::vector<std::uint8_t> out(encode::blockpack_capacity(count_, sizeof(Code)));
    const auto& packing = encode::blockpack_kernels<Code>(workspace_.target);
    return static_cast<std::uint64_t>(packing.encode(residuals.data(), count_, out.data()) -
                                      out.data());
  }
  // Of every set of axes that have more than one point.
  std::uint64_t least_size(bool packed) const {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (unsigned set = 0; set < 8; ++set) {
      Orders orders{};
      for (int k = 0; k < kRank; ++k) orders[k] = extents_[k] > 1 ? set >> k & 1 : 0;
      least = std::min(least, size(orders, packed));
    }
    return least;
  }

 private:
  Extents extents_;
  std::size_t count_;
  Workspace workspace_{0};
  Code* codes_;
};

void expect_good(const Extents& extents,
                 const std::function<Code(std::size_t, std::size_t, std::size_t)>& at) {
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(packed ? "packed" : "coded");
    OrderSearch search;
    if (packed) search = {.max_lags = 3, .least = 1024, .most = 1024, .packed = true};
    Chunk chunk(extents, at);
    const double got = static_cast<double>(chunk.size(chunk.chosen(search), packed));
    EXPECT_LE(got, 1.1 * static_cast<double>(chunk.least_size(packed)));
  }
}

TEST(DifferenceOrders, AreGoodForTheWholeChunk) {
  const Extents extents{20, 60, 50};
  {
    SCOPED_TRACE("a wave along the slowest axis, noise along the others");
    test::Random random(1);
    std::vector<Code> noise(60 * 50);
    for (Code& each : noise) each = static_cast<Code>(random.around(500));
    expect_good(extents, [&](std::size_t z, std::size_t y, std::size_t x) {
      return noise[y * 50 + x] + static_cast<Code>(test::wave(static_cast<std::int64_t>(z), 8));
    });
  }
  {
    SCOPED_TRACE("nothing but a spike here and there");
    test::Random random(2);
    expect_good(extents, [&](std::size_t, std::size_t, std::size_t) {
      return random.below(40) == 0 ? static_cast<Code>(random.around(9)) : 0;
    });
  }
  {
    SCOPED_TRACE("an object at one end of every row, and a slope along the other axes");
    test::Random random(3);
    expect_good(extents, [&](std::size_t z, std::size_t y, std::size_t x) {
      const auto slope = static_cast<Code>(40 * z + 3 * y);
      return x < 12 ? slope + static_cast<Code>(random.around(300)) : slope;
    });
  }
}

// What happens in the middle of every row is not taken for the whole: there rows are alike, and
// elsewhere they are not.
TEST(DifferenceOrders, SeeMoreThanTheMiddleOfRows) {
  test::Random random(4);
  std::vector<Code> middle(512), slopes(8);
  for (Code& each : middle) each = static_cast<Code>(random.around(4000));
  for (Code& each : slopes) each = static_cast<Code>(random.around(3000));
  expect_good({1, 8, 8192}, [&](std::size_t, std::size_t y, std::size_t x) {
    const bool inside = x >= 3840 && x < 4352;
    return inside ? middle[x - 3840] : static_cast<Code>(x) * slopes[y] / 64 + slopes[7 - y];
  });
}

// Differences have two codes for each run, of which an entropy coder makes less than of the run,
// but packing makes more.
TEST(DifferenceOrders, OfPackedCodesAreThoseThatPackSmallest) {
  for (const Code high : {1, 3, 10}) {
    test::Random random(5);
    Code code = 0;
    std::uint64_t left = 0;
    Chunk chunk({20, 60, 50}, [&](std::size_t, std::size_t, std::size_t) {
      if (left == 0) {
        code = code == 0 ? high : 0;
        left = 1 + random.below(code == 0 ? 64 : 8);
      }
      --left;
      return code;
    });
    const auto packed = chunk.chosen({.max_lags = 3, .least = 1024, .most = 1024, .packed = true});
    EXPECT_LE(static_cast<double>(chunk.size(packed, true)),
              1.05 * static_cast<double>(chunk.least_size(true)));
    EXPECT_GT(static_cast<double>(chunk.size(chunk.chosen({}), true)),
              1.2 * static_cast<double>(chunk.least_size(true)));
  }
}

// Shorter than a piece, a piece, the whole sample and one more: nothing is read beyond them.
TEST(DifferenceOrders, OfFewCodes) {
  for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 2048u, 2049u}) {
    for (const bool packed : {false, true}) {
      OrderSearch search;
      if (packed) search = {.max_lags = 3, .least = 1024, .most = 1024, .packed = true};
      Chunk chunk({1, 1, count},
                  [](std::size_t, std::size_t, std::size_t x) { return static_cast<Code>(5 * x); });
      const Orders orders = chunk.chosen(search);
      EXPECT_EQ(orders[0], 0);
      EXPECT_EQ(orders[1], 0);
      if (count > 64) {
        EXPECT_GT(orders[2], 0) << count;
      }
    }
  }
}

}  // namespace
}  // namespace firn::pipelines
