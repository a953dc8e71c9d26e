// Truncations and flipped bits: an error or exactly the same values, never something else.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

template <class T>
struct Sample {
  std::string name;
  Shape shape;
  std::vector<std::uint8_t> stream;
  std::vector<T> decoded;
};

// Small streams of every pipeline, with one chunk and with several.
template <class T>
std::vector<Sample<T>> samples() {
  std::vector<Sample<T>> list;
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Shape& chunk : {Shape{9, 17}, Shape{4, 9}}) {
      for (const Kind kind : {Kind::noisy, Kind::constant, Kind::any_bits}) {
        const Shape shape{9, 17};
        auto values = make_field<T>(shape, kind, 5);
        if (kind == Kind::noisy) test::sprinkle_specials(values, 4, 5);
        Options options;
        options.pipeline = pipeline;
        options.chunk = chunk;
        options.bound = Bound::abs(0.05);
        Sample<T> sample{std::string(name_of(pipeline)) + " " + test::name_of(kind),
                         shape,
                         test::compressed(values, shape, options),
                         {}};
        sample.decoded = test::decompressed<T>(sample.stream, shape);
        list.push_back(std::move(sample));
      }
    }
  }
  return list;
}

// Decodes damaged bytes in every way there is. True when it succeeded.
template <class T>
bool survives(const std::vector<std::uint8_t>& stream, const Sample<T>& sample) {
  std::vector<T> decoded(sample.decoded.size(), T(-1));
  const Status status = decompress(stream, test::view_of(decoded, sample.shape), test::threads(1));
  if (status.ok()) {
    EXPECT_TRUE(test::same_bits(decoded, sample.decoded)) << "silently wrong values";
  } else {
    EXPECT_FALSE(status.error().message.empty());
    EXPECT_NE(status.error().code, ErrorCode::ok);
    EXPECT_NE(status.error().code, ErrorCode::out_of_memory);
  }
  const auto info = inspect(stream);
  if (info.ok()) {
    const auto chunks = inspect_chunks(stream);
    EXPECT_TRUE(chunks.ok());
  }
  return status.ok();
}

template <class T>
class DamagedStreams : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DamagedStreams, ValueTypes);

TYPED_TEST(DamagedStreams, EveryTruncation) {
  for (const auto& sample : samples<TypeParam>()) {
    SCOPED_TRACE(sample.name);
    const auto info = inspect(sample.stream);
    const auto chunks = inspect_chunks(sample.stream);
    ASSERT_TRUE(chunks.ok());
    const std::size_t end_of_records = chunks->back().offset + chunks->back().size_bytes;
    for (std::size_t size = 0; size < sample.stream.size(); ++size) {
      const std::vector<std::uint8_t> cut(
          sample.stream.begin(), sample.stream.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_EQ(survives(cut, sample), size >= end_of_records) << "cut to " << size;
    }
  }
}

TYPED_TEST(DamagedStreams, EveryFlippedBit) {
  for (const auto& sample : samples<TypeParam>()) {
    SCOPED_TRACE(sample.name);
    const auto chunks = inspect_chunks(sample.stream);
    ASSERT_TRUE(chunks.ok());
    const std::size_t end_of_records = chunks->back().offset + chunks->back().size_bytes;
    for (std::size_t bit = 0; bit < sample.stream.size() * 8; ++bit) {
      auto flipped = sample.stream;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      // The records suffice without the index; a damaged byte of any other part is an error.
      ASSERT_EQ(survives(flipped, sample), bit / 8 >= end_of_records) << "bit " << bit;
    }
  }
}

TYPED_TEST(DamagedStreams, ManyBitsAtOnce) {
  test::Random random(77);
  for (const auto& sample : samples<TypeParam>()) {
    SCOPED_TRACE(sample.name);
    for (int trial = 0; trial < 200; ++trial) {
      auto damaged = sample.stream;
      for (std::uint64_t i = 0; i <= random.below(20); ++i) {
        damaged[random.below(damaged.size())] = static_cast<std::uint8_t>(random.next());
      }
      // Parts in another order, or something behind the end.
      if (trial % 5 == 0) {
        std::swap(damaged[random.below(damaged.size())], damaged[random.below(damaged.size())]);
      }
      if (trial % 7 == 0) damaged.insert(damaged.end(), random.below(50), std::uint8_t{0x46});
      survives(damaged, sample);
    }
  }
}

TEST(DamagedStreams, ThousandsOfFlipsInALargerOne) {
  const Shape shape{30, 40, 50};
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    auto values = make_field<float>(shape, Kind::noisy);
    test::sprinkle_specials(values, 4, 500);
    Options options;
    options.pipeline = pipeline;
    options.chunk = {15, 20, 50};
    options.bound = Bound::rel(1e-4);
    Sample<float> sample{"", shape, test::compressed(values, shape, options), {}};
    sample.decoded = test::decompressed<float>(sample.stream, shape);
    test::Random random(9);
    for (int trial = 0; trial < 300; ++trial) {
      auto flipped = sample.stream;
      const std::uint64_t bit = random.below(flipped.size() * 8);
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      survives(flipped, sample);
    }
  }
}

TEST(DamagedStreams, AChunkOfAnotherStreamIsNotTaken) {
  const Shape shape{40, 50};
  Options options;
  options.bound = Bound::abs(1e-2);
  options.chunk = {10, 50};
  auto one = test::compressed(make_field<float>(shape, Kind::noisy, 1), shape, options);
  const auto chunks = *inspect_chunks(one);
  // The same chunk in another place of the same stream.
  auto swapped = one;
  if (chunks[0].size_bytes == chunks[1].size_bytes) {
    std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(chunks[0].offset),
                     swapped.begin() + static_cast<std::ptrdiff_t>(chunks[1].offset),
                     swapped.begin() + static_cast<std::ptrdiff_t>(chunks[1].offset));
  } else {
    std::rotate(swapped.begin() + static_cast<std::ptrdiff_t>(chunks[0].offset),
                swapped.begin() + static_cast<std::ptrdiff_t>(chunks[1].offset),
                swapped.begin() + static_cast<std::ptrdiff_t>(chunks[2].offset));
  }
  std::vector<float> decoded(2000);
  const Status status = decompress(swapped, test::view_of(decoded, shape));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::corrupt);
  // And the chunks of a stream of other data behind this header.
  const auto two = test::compressed(make_field<float>(shape, Kind::noise, 2), shape, options);
  options.bound = Bound::abs(2e-2);
  auto mixed = test::compressed(make_field<float>(shape, Kind::noisy, 1), shape, options);
  const std::size_t header = (*inspect_chunks(mixed))[0].offset;
  mixed.resize(header);
  mixed.insert(mixed.end(), two.begin() + static_cast<std::ptrdiff_t>(chunks[0].offset), two.end());
  EXPECT_FALSE(decompress(mixed, test::view_of(decoded, shape)).ok());
}

}  // namespace
}  // namespace firn
