// Sizes: the worst case, buffers that fit exactly and those a byte short, the overhead of a small
// message.
#include <gtest/gtest.h>

#include <vector>

#include "base/spread.hpp"
#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

TEST(Sizes, NothingExceedsTheWorstCase) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Shape& chunk : {Shape{}, Shape{1, 1}, Shape{3, 5}, Shape{16, 200}}) {
      for (const Kind kind : test::kAllKinds) {
        const auto values = make_field<float>({16, 200}, kind);
        Options options;
        options.pipeline = pipeline;
        options.chunk = chunk;
        options.bound = Bound::abs(1e-6);
        const auto worst = worst_case_size(Type::f32, {16, 200}, options);
        ASSERT_TRUE(worst.ok());
        std::vector<std::uint8_t> out(*worst);
        Compressor compressor;
        const auto size = compressor.compress_into(test::const_view_of(values, {16, 200}), options,
                                                   out, test::threads(1));
        ASSERT_TRUE(size.ok()) << size.error().message;
        out.resize(*size);
        EXPECT_EQ(out, test::compressed(values, {16, 200}, options));
      }
    }
  }
}

TEST(Sizes, ABufferThatFitsExactlySufficesAndOneByteLessDoesNot) {
  for (const int thread_count : {1, 2}) {
    for (const Pipeline pipeline : test::chosen_pipelines()) {
      for (const Shape& chunk : {Shape{50, 60}, Shape{17, 60}}) {
        for (const Kind kind : {Kind::smooth, Kind::any_bits, Kind::constant}) {
          const auto values = make_field<double>({50, 60}, kind);
          Options options;
          options.pipeline = pipeline;
          options.chunk = chunk;
          options.bound = Bound::abs(1e-3);
          const auto expected = test::compressed(values, {50, 60}, options);
          std::vector<std::uint8_t> out(expected.size(), 0xAB);
          Compressor compressor;
          const auto view = test::const_view_of(values, {50, 60});
          const auto size =
              compressor.compress_into(view, options, out, test::threads(thread_count));
          ASSERT_TRUE(size.ok()) << size.error().message;
          EXPECT_EQ(*size, expected.size());
          EXPECT_EQ(out, expected);
          for (std::size_t room :
               {expected.size() - 1, expected.size() / 2, std::size_t{5}, std::size_t{0}}) {
            // A canary behind the room shows writes beyond it.
            std::vector<std::uint8_t> small(room + 64, 0xCD);
            const auto failed = compressor.compress_into(view, options, {small.data(), room},
                                                         test::threads(thread_count));
            ASSERT_FALSE(failed.ok());
            EXPECT_EQ(failed.error().code, ErrorCode::buffer_too_small);
            EXPECT_NE(failed.error().message.find("worst-case size"), std::string::npos);
            for (std::size_t i = room; i < small.size(); ++i) ASSERT_EQ(small[i], 0xCD);
          }
        }
      }
    }
  }
}

TEST(Sizes, AnEmptyArrayIsAHeader) {
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 0, 0, 0}}) {
    const std::vector<float> none;
    Options options;
    options.bound = Bound::rel(1e-3);
    const auto stream = compress({nullptr, Type::f32, shape, {}}, options);
    ASSERT_TRUE(stream.ok());
    EXPECT_LT(stream->size(), 40u);
    EXPECT_TRUE(decompress(*stream, {nullptr, Type::f32, shape, {}}).ok());
  }
}

TEST(Sizes, AKilobyteMessageCostsAtMostFortyBytes) {
  // Values that nothing can compress, so that all that is not payload is overhead.
  const auto f32 = make_field<float>({256}, Kind::any_bits, 99);
  const auto f64 = make_field<double>({128}, Kind::any_bits, 99);
  for (const Bound bound :
       {Bound::lossless(), Bound::abs(1e-300), Bound::abs(1e-10), Bound::rel(1e-30)}) {
    Options options;
    options.bound = bound;
    EXPECT_LE(test::compressed(f32, {256}, options).size(), 1024u + 40);
    EXPECT_LE(test::compressed(f64, {128}, options).size(), 1024u + 40);
    EXPECT_LE(test::compressed(f32, {4, 4, 4, 4}, options).size(), 1024u + 40);
  }
}

TEST(Sizes, SmallMessagesShrink) {
  const auto values = make_field<float>({256}, Kind::smooth);
  for (const Pipeline pipeline : {Pipeline::automatic, Pipeline::lorenzo, Pipeline::blockpack}) {
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::rel(1e-3);
    EXPECT_LT(test::compressed(values, {256}, options).size(), 600u) << name_of(pipeline);
  }
}

// What blocks take less than entropy coders, whose distributions and states a message feels.
TEST(Sizes, MessagesTakeAtMostWhatBlocksOrContextsDo) {
  for (const Shape& shape : {Shape{16}, Shape{100}, Shape{256}, Shape{16, 16}, Shape{4, 8, 8},
                             Shape{257}, Shape{512}, Shape{8, 8, 8}, Shape{20, 25}}) {
    for (const Kind kind : test::kAllKinds) {
      const auto values = make_field<float>(shape, kind);
      for (const double rel : {1e-2, 1e-4}) {
        const auto size = [&](Pipeline pipeline, Preset preset) {
          Options options;
          options.pipeline = pipeline;
          options.preset = preset;
          options.bound = Bound::rel(rel);
          return test::compressed(values, shape, options).size();
        };
        const auto balanced = size(Pipeline::automatic, Preset::balanced);
        EXPECT_LE(balanced, size(Pipeline::automatic, Preset::fast));
        if (shape.count() > 256) {
          EXPECT_LE(balanced, size(Pipeline::contexts, Preset::balanced));
        }
      }
    }
  }
}

// Where many values are alike and the others far away, blocks have all bits of both.
TEST(Sizes, MessagesOfTwoValuesAreNotPackedInBlocks) {
  for (const std::size_t count : {100, 256, 257, 512}) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = spread(i * i + 1, 2) == 0 ? 0 : 1;
    const auto size = [&](Pipeline pipeline) {
      Options options;
      options.pipeline = pipeline;
      options.bound = Bound::abs(1e-6);
      return test::compressed(values, {count}, options).size();
    };
    EXPECT_LE(size(Pipeline::automatic), size(Pipeline::contexts)) << count;
    if (count > 100) {
      EXPECT_LT(size(Pipeline::automatic), size(Pipeline::blockpack)) << count;
    }
  }
}

TEST(Sizes, WorstCaseIsTheInputAndALittlePerChunk) {
  const auto worst = worst_case_size(Type::f32, {512, 512, 512}, Options{});
  ASSERT_TRUE(worst.ok());
  EXPECT_LT(*worst, std::uint64_t{512} * 512 * 512 * 4 + 512 * 64);
}

TEST(Sizes, AWorstCaseThatFitsNoNumberIsRefused) {
  Options options;
  options.chunk = {1};
  const auto worst = worst_case_size(Type::f64, {std::uint64_t{1} << 59}, options);
  if (worst.ok()) {
    EXPECT_GT(*worst, std::uint64_t{8} << 59) << "wrapped around";
  } else {
    EXPECT_EQ(worst.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Sizes, BuffersMoveAndRelease) {
  const auto values = make_field<float>({100}, Kind::smooth);
  auto stream = compress(test::const_view_of(values, {100}), Options{});
  ASSERT_TRUE(stream.ok());
  const auto bytes = test::bytes_of(*stream);
  Buffer moved = std::move(*stream);
  EXPECT_EQ(test::bytes_of(moved), bytes);
  EXPECT_TRUE(moved.resize(moved.size() + 100));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), moved.data()));
  std::uint8_t* released = moved.release();
  EXPECT_EQ(moved.size(), 0u);
  std::free(released);
}

}  // namespace
}  // namespace firn
