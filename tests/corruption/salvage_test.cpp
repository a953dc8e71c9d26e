// Salvage: what can be decoded is, what cannot is NaN and listed.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

const Shape kShape{40, 30};

class Salvage : public ::testing::Test {
 protected:
  void make(Pipeline pipeline = Pipeline::automatic) {
    values_ = make_field<float>(kShape, Kind::noisy);
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(1e-2);
    options.chunk = {10, 15};
    stream_ = test::compressed(values_, kShape, options);
    whole_ = test::decompressed<float>(stream_, kShape);
    chunks_ = *inspect_chunks(stream_);
  }
  std::vector<Damage> salvage(const std::vector<std::uint8_t>& stream, int thread_count = 1) {
    decoded_.assign(whole_.size(), -1.0f);
    Decompressor decompressor;
    auto damages =
        decompressor.salvage(stream, test::view_of(decoded_, kShape), test::threads(thread_count));
    EXPECT_TRUE(damages.ok()) << damages.error().message;
    return damages.ok() ? *damages : std::vector<Damage>{};
  }
  // Lost chunks are NaN, all others as before.
  void expect_lost(const std::vector<Damage>& damages, const std::vector<std::uint64_t>& lost) {
    ASSERT_EQ(damages.size(), lost.size());
    std::vector<bool> missing(whole_.size());
    for (std::size_t i = 0; i < lost.size(); ++i) {
      EXPECT_EQ(damages[i].chunk, lost[i]);
      EXPECT_NE(damages[i].error.message.find("chunk " + std::to_string(lost[i]) + " of 8"),
                std::string::npos)
          << damages[i].error.message;
      const Region& region = damages[i].region;
      EXPECT_EQ(region.origin, chunks_[lost[i]].origin);
      EXPECT_EQ(region.shape, chunks_[lost[i]].shape);
      for (std::uint64_t y = 0; y < region.shape.extents[0]; ++y) {
        for (std::uint64_t x = 0; x < region.shape.extents[1]; ++x) {
          missing[(region.origin[0] + y) * 30 + region.origin[1] + x] = true;
        }
      }
    }
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      if (missing[i]) {
        ASSERT_TRUE(std::isnan(decoded_[i])) << i;
      } else {
        ASSERT_EQ(decoded_[i], whole_[i]) << i;
      }
    }
  }

  std::vector<float> values_, whole_, decoded_;
  std::vector<std::uint8_t> stream_;
  std::vector<ChunkInfo> chunks_;
};

TEST_F(Salvage, OfASoundStreamLosesNothing) {
  make();
  for (const int count : {1, 3}) expect_lost(salvage(stream_, count), {});
}

TEST_F(Salvage, LosesTheDamagedChunkOnly) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    make(pipeline);
    for (std::uint64_t n = 0; n < 8; ++n) {
      for (std::uint64_t at = 0; at < chunks_[n].size_bytes; at += 1 + at / 4) {
        auto damaged = stream_;
        damaged[chunks_[n].offset + at] ^= 0x20;
        expect_lost(salvage(damaged, 1 + static_cast<int>(at % 3)), {n});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Salvage, LosesSeveral) {
  make();
  auto damaged = stream_;
  for (const std::size_t n : {1u, 4u, 7u}) damaged[chunks_[n].offset + 8] ^= 1;
  expect_lost(salvage(damaged, 2), {1, 4, 7});
}

TEST_F(Salvage, OfACutStreamKeepsWhatCameBefore) {
  make();
  for (std::uint64_t n = 0; n < 8; ++n) {
    const std::vector<std::uint8_t> cut(
        stream_.begin(), stream_.begin() + static_cast<std::ptrdiff_t>(chunks_[n].offset +
                                                                       chunks_[n].size_bytes - 1));
    std::vector<std::uint64_t> lost;
    for (std::uint64_t k = n; k < 8; ++k) lost.push_back(k);
    const auto damages = salvage(cut);
    expect_lost(damages, lost);
    for (const Damage& damage : damages) EXPECT_EQ(damage.error.code, ErrorCode::truncated);
  }
}

TEST_F(Salvage, WithoutAnIndexStillWalks) {
  make();
  auto damaged = stream_;
  damaged.back() ^= 1;
  damaged[chunks_[3].offset + 20] ^= 1;
  expect_lost(salvage(damaged), {3});
}

TEST_F(Salvage, NeedsTheHeader) {
  make();
  auto damaged = stream_;
  damaged[8] ^= 1;
  std::vector<float> decoded(whole_.size());
  Decompressor decompressor;
  const auto damages = decompressor.salvage(damaged, test::view_of(decoded, kShape));
  ASSERT_FALSE(damages.ok());
  EXPECT_EQ(damages.error().code, ErrorCode::corrupt);
}

TEST_F(Salvage, OrdinaryDecodingNamesTheChunk) {
  make();
  for (std::uint64_t n = 0; n < 8; ++n) {
    auto damaged = stream_;
    damaged[chunks_[n].offset + 10] ^= 1;
    std::vector<float> decoded(whole_.size());
    const Status status = decompress(damaged, test::view_of(decoded, kShape), test::threads(1));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::corrupt);
    EXPECT_NE(status.error().message.find("chunk " + std::to_string(n) + " of 8 (10x15 at "),
              std::string::npos)
        << status.error().message;
  }
}

}  // namespace
}  // namespace firn
