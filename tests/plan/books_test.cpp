// Shared books: planned from samples, the same for any number of threads, lost alone.
#include "plan/books.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "encode/residual_symbols.hpp"
#include "support/random.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

constexpr std::size_t kChunk = 4096;

// Chunks whose residuals take few, oddly spread values: no member of the family fits them, and a
// book of their own costs as much as it saves.
std::vector<float> comb(std::size_t chunks, std::uint64_t teeth = 7) {
  test::Random random(1);
  std::vector<float> values(chunks * kChunk);
  double sum = 0;
  for (float& value : values) {
    const auto tooth = static_cast<double>(random.below(teeth));
    sum += random.below(2) == 0 ? 5 * tooth : -5 * tooth;
    value = static_cast<float>(sum);
  }
  return values;
}

Options options_for(BookPolicy policy) {
  Options options;
  options.pipeline = Pipeline::lorenzo;
  options.bound = Bound::abs(0.49);
  options.chunk = {kChunk};
  options.books = policy;
  return options;
}

std::size_t chunks_with(const std::vector<std::uint8_t>& stream, const std::string& words) {
  std::size_t found = 0;
  const auto chunks = inspect_chunks(stream);
  for (const ChunkInfo& chunk : *chunks) {
    found += chunk.detail.find(words) != std::string::npos;
  }
  return found;
}

TEST(Books, AreSharedWhereThatIsCheapest) {
  const auto values = comb(24);
  const Shape shape{values.size()};
  const auto shared = test::compressed(values, shape, options_for(BookPolicy::cost));
  EXPECT_GT(chunks_with(shared, "shared book 0"), 12u);
  EXPECT_LT(shared.size(), test::compressed(values, shape, options_for(BookPolicy::stored)).size());
  EXPECT_LT(shared.size(),
            test::compressed(values, shape, options_for(BookPolicy::offline)).size());
}

// Residuals around another place in each chunk: what one learns is of little use to the next.
TEST(Books, AreNotSharedWhereThatIsDearer) {
  for (const std::int64_t width : {4, 12, 40}) {
    test::Random random(3);
    std::vector<float> values;
    std::int64_t sum = 0;
    for (std::size_t chunk = 0; chunk < 24; ++chunk) {
      const std::int64_t middle = random.around(300);
      for (std::size_t i = 0; i < kChunk; ++i) {
        sum += middle + random.around(width);
        if (std::abs(sum) > 4'000'000) sum = 0;
        values.push_back(static_cast<float>(sum));
      }
    }
    const Shape shape{values.size()};
    const auto size = [&](BookPolicy policy) {
      return test::compressed(values, shape, options_for(policy)).size();
    };
    EXPECT_LE(size(BookPolicy::cost), size(BookPolicy::offline)) << width;
    EXPECT_LE(size(BookPolicy::cost), size(BookPolicy::stored)) << width;
  }
}

TEST(Books, HoldTheBoundUnderEveryPolicy) {
  for (const BookPolicy policy :
       {BookPolicy::cost, BookPolicy::chi, BookPolicy::stored, BookPolicy::offline}) {
    SCOPED_TRACE(name_of(policy));
    for (const test::Kind kind : test::kAllKinds) {
      const auto values = test::make_field<float>({30, 40, 50}, kind);
      Options options = options_for(policy);
      options.chunk = {8, 16, 25};
      test::expect_promises(values, {30, 40, 50}, options);
      const auto wide = test::make_field<double>({30, 40, 50}, kind);
      options.bound = Bound::abs(1e-9);
      test::expect_promises(wide, {30, 40, 50}, options);
    }
    test::expect_promises(comb(9), {9 * kChunk}, options_for(policy));
  }
}

TEST(Books, DoNotDependOnTheThreads) {
  const auto values = comb(70);  // more than one window of samples
  const Shape shape{values.size()};
  for (const BookPolicy policy : {BookPolicy::cost, BookPolicy::chi}) {
    const auto one = test::compressed(values, shape, options_for(policy), 1);
    for (const int threads : {2, 5}) {
      EXPECT_EQ(test::compressed(values, shape, options_for(policy), threads), one);
    }
  }
}

TEST(Books, OfflineStoresNone) {
  const auto values = test::make_field<float>({64, 256}, test::Kind::noisy);
  Options options = options_for(BookPolicy::offline);
  options.chunk = {16, 256};
  const auto stream = test::compressed(values, {64, 256}, options);
  EXPECT_EQ(chunks_with(stream, "offline book"), 4u);
}

// The deviation of frequencies falls as residuals spread; chi follows it.
TEST(Books, ChiRenewsOrDropsTheBookAsTheSpreadChanges) {
  test::Random random(2);
  std::vector<float> values;
  double sum = 0;
  // Chunks with residuals in [-reach, reach]: three alike, then a moderate change, a large one.
  for (const std::uint64_t reach : {20, 20, 20, 3, 3, 3, 200, 200}) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      sum += static_cast<double>(random.below(2 * reach + 1)) - static_cast<double>(reach);
      values.push_back(static_cast<float>(sum));
    }
  }
  const Shape shape{values.size()};
  const auto chunks =
      *inspect_chunks(test::compressed(values, shape, options_for(BookPolicy::chi)));
  ASSERT_EQ(chunks.size(), 8u);
  const std::vector<std::string> expected = {"offline", "offline", "offline", "shared",
                                             "shared",  "shared",  "offline", "offline"};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NE(chunks[i].detail.find(expected[i]), std::string::npos)
        << i << ": " << chunks[i].detail;
  }
}

TEST(Books, DeviationIsThatOfFrequenciesInThousandths) {
  const std::int64_t middle = std::int64_t{1} << encode::kMaxRangeLog2;
  std::vector<std::uint32_t> histogram(encode::alphabet_size(encode::kMaxRangeLog2));
  for (std::int64_t r = -512; r < 512; ++r) histogram[middle + r] = 3;
  EXPECT_NEAR(plan::frequency_deviation(histogram, 3072), 0, 1e-9);
  std::fill(histogram.begin(), histogram.end(), 0u);
  histogram[middle] = 500;
  // One frequency of 1000 among 1,023 of 0: sqrt(1000^2 / 1024 - (1000 / 1024)^2).
  EXPECT_NEAR(plan::frequency_deviation(histogram, 500), 31.2347, 1e-3);
}

// Chi's rule takes a new book wherever frequencies have changed, whatever the book takes.
TEST(Books, ChiDoesNotMakeAStreamLargerThanItsValues) {
  const Shape shape{4000};
  auto values = test::make_field<float>(shape, test::Kind::smooth);
  test::Random random(1);
  for (float& value : values) {
    if (random.below(7) == 0) value += static_cast<float>(random.below(10000)) / 30000;
  }
  Options options = options_for(BookPolicy::chi);
  options.bound = Bound::abs(1e-4);
  options.chunk = {23};
  const std::size_t chunks = (values.size() + 22) / 23;
  EXPECT_LT(test::compressed(values, shape, options).size(), 4 * values.size() + 16 * chunks);
}

class SharedBook : public ::testing::Test {
 protected:
  void SetUp() override {
    values_ = comb(24);
    shape_ = {values_.size()};
    stream_ = test::compressed(values_, shape_, options_for(BookPolicy::cost));
    chunks_ = *inspect_chunks(stream_);
    whole_ = test::decompressed<float>(stream_, shape_);
    ASSERT_GT(chunks_with(stream_, "shared book"), 0u);
  }
  std::vector<float> values_, whole_;
  Shape shape_;
  std::vector<std::uint8_t> stream_;
  std::vector<ChunkInfo> chunks_;
};

TEST_F(SharedBook, LostLosesTheChunksThatNameIt) {
  auto damaged = stream_;
  damaged[chunks_[0].offset - 5] ^= 1;  // in the last book, before its checksum
  std::vector<float> decoded(values_.size());
  Decompressor decompressor;
  const auto damages = decompressor.salvage(damaged, test::view_of(decoded, shape_));
  ASSERT_TRUE(damages.ok());
  const std::size_t books = chunks_with(stream_, "shared book 1") > 0 ? 2 : 1;
  EXPECT_EQ(damages->size(), chunks_with(stream_, "shared book " + std::to_string(books - 1)));
  std::vector<bool> lost(chunks_.size());
  for (const Damage& damage : *damages) lost[damage.chunk] = true;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (!lost[i / kChunk]) {
      ASSERT_EQ(decoded[i], whole_[i]) << i;
    }
  }
  EXPECT_FALSE(decompress(damaged, test::view_of(decoded, shape_)).ok());
}

TEST_F(SharedBook, IsFoundWithoutTheIndex) {
  const std::vector<std::uint8_t> cut(stream_.begin(), stream_.end() - 1);
  EXPECT_EQ(test::decompressed<float>(cut, shape_), whole_);
}

TEST_F(SharedBook, ServesARegion) {
  Region region;
  region.shape = {100};
  region.origin = {20 * kChunk + 7};
  std::vector<float> part(100);
  ASSERT_TRUE(decompress_region(stream_, region, test::view_of(part, region.shape)).ok());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(part[i], whole_[20 * kChunk + 7 + i]);
}

TEST_F(SharedBook, ServesAPreview) {
  const auto small = preview_shape(stream_, 2);
  ASSERT_TRUE(small.ok());
  std::vector<float> preview(static_cast<std::size_t>(small->count()));
  const auto report = decompress_preview(stream_, 2, test::view_of(preview, *small));
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (std::size_t i = 0; i < preview.size(); ++i) ASSERT_EQ(preview[i], whole_[2 * i]);
}

TEST_F(SharedBook, SurvivesEveryFlipOfItsRecord) {
  const std::size_t end = static_cast<std::size_t>(chunks_[0].offset);
  std::vector<float> decoded(values_.size());
  Decompressor decompressor;
  for (std::size_t at = 20; at < end; ++at) {
    auto damaged = stream_;
    damaged[at] ^= 0x11;
    EXPECT_FALSE(
        decompressor.decompress(damaged, test::view_of(decoded, shape_), test::threads(1)).ok())
        << at;
  }
}

}  // namespace
}  // namespace firn
