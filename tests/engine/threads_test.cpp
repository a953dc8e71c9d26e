// Threads: the same bytes for every number of them, progress, cancellation, many users at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

Options many_chunks(Pipeline pipeline = Pipeline::automatic) {
  Options options;
  options.pipeline = pipeline;
  options.bound = Bound::rel(1e-3);
  options.chunk = {8, 9, 10};
  return options;
}
const Shape kShape{40, 45, 50};

TEST(Threads, EveryNumberGivesTheSameBytesAndValues) {
  auto values = make_field<float>(kShape, Kind::noisy);
  test::sprinkle_specials(values, 5, 1000);
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Bound bound :
         {Bound::abs(1e-2), Bound::rel(1e-3), Bound::psnr(60), Bound::lossless()}) {
      Options options = many_chunks(pipeline);
      options.bound = bound;
      const auto expected = test::compressed(values, kShape, options, 1);
      const auto decoded = test::decompressed<float>(expected, kShape, 1);
      for (const int count : {0, 2, 3, 4}) {
        ASSERT_EQ(test::compressed(values, kShape, options, count), expected) << count;
        ASSERT_TRUE(test::same_bits(test::decompressed<float>(expected, kShape, count), decoded));
      }
    }
  }
}

TEST(Threads, ReusedCompressorsKeepNothingOfThePast) {
  Compressor compressor;
  Decompressor decompressor;
  test::Random random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const Shape shape{1 + random.below(30), 1 + random.below(30), 1 + random.below(30)};
    const auto kind = test::kAllKinds[random.below(std::size(test::kAllKinds))];
    Options options =
        many_chunks(test::chosen_pipelines()[random.below(test::chosen_pipelines().size())]);
    const int count = 1 + static_cast<int>(random.below(4));
    const auto values = make_field<double>(shape, kind, random.next());
    const auto stream =
        compressor.compress(test::const_view_of(values, shape), options, test::threads(count));
    ASSERT_TRUE(stream.ok());
    ASSERT_EQ(test::bytes_of(*stream), test::compressed(values, shape, options));
    std::vector<double> decoded(values.size());
    ASSERT_TRUE(
        decompressor.decompress(*stream, test::view_of(decoded, shape), test::threads(count)).ok());
    ASSERT_TRUE(
        test::same_bits(decoded, test::decompressed<double>(test::bytes_of(*stream), shape)));
  }
}

TEST(Threads, ManyUsersAtOnce) {
  const auto values = make_field<float>(kShape, Kind::noisy);
  const Options options = many_chunks();
  const auto expected = test::compressed(values, kShape, options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      Compressor compressor;
      Decompressor decompressor;
      for (int round = 0; round < 3; ++round) {
        const auto stream = compressor.compress(test::const_view_of(values, kShape), options,
                                                test::threads(1 + user % 3));
        if (!stream.ok() || test::bytes_of(*stream) != expected) ++wrong;
        std::vector<float> decoded(values.size());
        if (!decompressor
                 .decompress(expected, test::view_of(decoded, kShape), test::threads(1 + user % 3))
                 .ok()) {
          ++wrong;
        }
        if (test::broken_promise(values, decoded, inspect(expected)->bound_abs)) ++wrong;
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, ProgressRisesToTheEnd) {
  const auto values = make_field<float>(kShape, Kind::noisy);
  const auto expected = test::compressed(values, kShape, many_chunks());
  for (const int count : {1, 2, 4}) {
    for (const bool compressing : {true, false}) {
      Execution execution = test::threads(count);
      std::uint64_t highest = 0, calls = 0;
      std::atomic<int> inside{0};
      bool overlapped = false;
      execution.progress = [&](std::uint64_t done, std::uint64_t total) {
        if (++inside != 1) overlapped = true;
        ++calls;
        highest = std::max(highest, done);
        EXPECT_LE(done, total);
        EXPECT_EQ(total, values.size() * 4);
        --inside;
        return true;
      };
      if (compressing) {
        EXPECT_TRUE(compress(test::const_view_of(values, kShape), many_chunks(), execution).ok());
      } else {
        std::vector<float> decoded(values.size());
        EXPECT_TRUE(decompress(expected, test::view_of(decoded, kShape), execution).ok());
      }
      EXPECT_FALSE(overlapped);
      EXPECT_GT(calls, 0u);
      if (count == 1) {
        EXPECT_EQ(highest, values.size() * 4);
      }
    }
  }
}

TEST(Threads, CancellationEndsBothDirections) {
  const auto values = make_field<float>(kShape, Kind::noisy);
  const auto expected = test::compressed(values, kShape, many_chunks());
  Compressor compressor;
  Decompressor decompressor;
  for (const int count : {1, 2, 4}) {
    for (const int after : {1, 3, 50}) {
      Execution execution = test::threads(count);
      int calls = 0;
      execution.progress = [&](std::uint64_t, std::uint64_t) { return ++calls < after; };
      const auto stream =
          compressor.compress(test::const_view_of(values, kShape), many_chunks(), execution);
      ASSERT_FALSE(stream.ok());
      EXPECT_EQ(stream.error().code, ErrorCode::cancelled);
      calls = 0;
      std::vector<float> decoded(values.size());
      const Status status =
          decompressor.decompress(expected, test::view_of(decoded, kShape), execution);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::cancelled);
      // And the next call is as good as new.
      const auto again = compressor.compress(test::const_view_of(values, kShape), many_chunks(),
                                             test::threads(count));
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(test::bytes_of(*again), expected);
    }
  }
}

TEST(Threads, DamageIsFoundByEveryNumberOfThem) {
  const auto values = make_field<float>(kShape, Kind::noisy);
  auto stream = test::compressed(values, kShape, many_chunks());
  const auto chunks = inspect_chunks(stream);
  ASSERT_TRUE(chunks.ok());
  stream[(*chunks)[60].offset + 12] ^= 1;
  for (const int count : {1, 2, 4}) {
    std::vector<float> decoded(values.size());
    const Status status = decompress(stream, test::view_of(decoded, kShape), test::threads(count));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::corrupt);
    EXPECT_NE(status.error().message.find("chunk 60 "), std::string::npos)
        << status.error().message;
  }
}

TEST(Threads, ExceptionsOfTheCallerDoNotLeaveTheLibraryBroken) {
  const auto values = make_field<float>(kShape, Kind::noisy);
  Compressor compressor;
  for (const int count : {1, 2}) {
    Execution execution = test::threads(count);
    execution.progress = [](std::uint64_t, std::uint64_t) -> bool {
      throw std::runtime_error("from the callback");
    };
    const auto stream =
        compressor.compress(test::const_view_of(values, kShape), many_chunks(), execution);
    ASSERT_FALSE(stream.ok());
    EXPECT_NE(stream.error().message.find("from the callback"), std::string::npos);
    EXPECT_TRUE(
        compressor
            .compress(test::const_view_of(values, kShape), many_chunks(), test::threads(count))
            .ok());
  }
}

}  // namespace
}  // namespace firn
