// Payloads and headers that are nonsense behind right checksums: decoders must refuse them or
// return some values, whatever they hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "container/series.hpp"
#include "support/forged_stream.hpp"
#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

// Decodes with guards around the output. True when it succeeded.
template <class T>
bool decode_guarded(const std::vector<std::uint8_t>& stream, const Shape& shape) {
  constexpr std::size_t kGuard = 32;
  std::vector<T> memory(shape.count() + 2 * kGuard, T(4321));
  Decompressor decompressor;
  const MutableArrayView out{memory.data() + kGuard, test::kTypeOf<T>, shape, {}};
  const Status status = decompressor.decompress(stream, out, test::threads(1));
  if (!status.ok()) {
    // A record that poses as a book leaves its chunk without one.
    EXPECT_TRUE(status.error().code == ErrorCode::corrupt ||
                status.error().code == ErrorCode::unsupported ||
                status.error().code == ErrorCode::truncated)
        << status.error().message;
  }
  EXPECT_TRUE(decompressor.salvage(stream, out, test::threads(1)).ok());
  EXPECT_TRUE(inspect_chunks(stream).ok());
  for (std::size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], T(4321));
    EXPECT_EQ(memory[memory.size() - 1 - i], T(4321));
  }
  return status.ok();
}

template <class T>
container::Header header_for(const Shape& shape) {
  container::Header header;
  header.type = test::kTypeOf<T>;
  header.shape = header.chunk = shape;
  header.bound = Bound::abs(0.125);
  header.bound_abs = 0.125;
  header.margin = 6;
  return header;
}

const Shape kShapes[] = {{1}, {40}, {1000}, {9, 17}, {5, 6, 7}, {3, 4, 5, 6}, {1, 70, 1, 3}};

template <class T>
class ForgedPayloads : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ForgedPayloads, ValueTypes);

TYPED_TEST(ForgedPayloads, OfRandomBytes) {
  test::Random random(31);
  for (int id = 0; id < 16; ++id) {
    for (const Shape& shape : kShapes) {
      for (int trial = 0; trial < 60; ++trial) {
        std::vector<std::uint8_t> payload(random.below(shape.count() * sizeof(TypeParam) + 1));
        for (std::uint8_t& byte : payload) {
          // Mostly small numbers, so that the first fields are often plausible.
          byte = static_cast<std::uint8_t>(random.below(3) == 0 ? random.next() : random.below(6));
        }
        auto header = header_for<TypeParam>(shape);
        if (trial % 4 == 0) {
          header.bound = Bound::lossless();
          header.bound_abs = 0;
          header.margin = 0;
        } else if (trial % 4 == 1) {
          header.bound = Bound::pwrel(0.125);
          header.margin = 0;
        }
        decode_guarded<TypeParam>(test::forged_stream(header, static_cast<Pipeline>(id), payload),
                                  shape);
      }
    }
  }
}

// Sound payloads of every pipeline with some bits or bytes changed, cut, or given to another one.
TYPED_TEST(ForgedPayloads, OfDamagedBytes) {
  test::Random random(32);
  std::size_t decoded = 0, refused = 0;
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Shape& shape : kShapes) {
      for (const Kind kind : {Kind::smooth, Kind::noisy, Kind::noise, Kind::steps, Kind::wild}) {
        auto values = make_field<TypeParam>(shape, kind, 3);
        if (kind == Kind::noisy) test::sprinkle_specials(values, 3, values.size() / 10);
        Options options;
        options.pipeline = pipeline;
        options.bound = Bound::abs(kind == Kind::steps ? 0.25 : 0.03125);
        const auto sound = test::compressed(values, shape, options);
        const test::SoleChunk chunk = test::sole_chunk_of(sound);
        ASSERT_EQ(test::forged_stream(chunk.header, chunk.pipeline, chunk.payload).size(),
                  sound.size());
        for (int trial = 0; trial < 120; ++trial) {
          auto payload = chunk.payload;
          if (payload.empty()) break;
          // Damage near the front reaches the fields that steer the decoder.
          const std::size_t reach =
              trial % 2 == 0 ? std::min<std::size_t>(payload.size(), 24) : payload.size();
          for (std::uint64_t i = 0; i <= random.below(3); ++i) {
            std::uint8_t& byte = payload[random.below(reach)];
            byte = trial % 3 == 0 ? static_cast<std::uint8_t>(random.next())
                                  : static_cast<std::uint8_t>(byte ^ 1u << random.below(8));
          }
          if (trial % 5 == 0) payload.resize(random.below(payload.size()) + 1);
          if (trial % 11 == 0) payload.insert(payload.end(), random.below(9), std::uint8_t{0});
          const int id = trial % 13 == 0 ? static_cast<int>(random.below(16))
                                         : static_cast<int>(chunk.pipeline);
          const bool ok = decode_guarded<TypeParam>(
              test::forged_stream(chunk.header, static_cast<Pipeline>(id), payload), shape);
          ++(ok ? decoded : refused);
        }
      }
    }
  }
  EXPECT_GT(decoded, 100u) << "the damage never reaches the depths";
  EXPECT_GT(refused, 100u);
}

// Trained stencils, which only larger chunks have: their weights are near the front.
TYPED_TEST(ForgedPayloads, OfDamagedStencils) {
  test::Random random(33);
  std::size_t decoded = 0, refused = 0;
  for (const Shape& shape : {Shape{5000}, Shape{60, 80}, Shape{20, 21, 22}}) {
    const auto values = make_field<TypeParam>(shape, Kind::noisy, 3);
    Options options;
    options.preset = Preset::small;
    options.pipeline = Pipeline::interp;
    options.bound = Bound::abs(0x1p-10);
    const auto sound = test::compressed(values, shape, options);
    const auto chunks = inspect_chunks(sound);
    ASSERT_TRUE(chunks.ok());
    ASSERT_NE(chunks->at(0).detail.find("trained"), std::string::npos);
    const test::SoleChunk chunk = test::sole_chunk_of(sound);
    for (int trial = 0; trial < 400; ++trial) {
      auto payload = chunk.payload;
      for (std::uint64_t i = 0; i <= random.below(3); ++i) {
        std::uint8_t& byte = payload[random.below(std::min<std::size_t>(payload.size(), 200))];
        byte = trial % 3 == 0 ? static_cast<std::uint8_t>(random.next())
                              : static_cast<std::uint8_t>(byte ^ 1u << random.below(8));
      }
      const bool ok = decode_guarded<TypeParam>(
          test::forged_stream(chunk.header, chunk.pipeline, payload), shape);
      ++(ok ? decoded : refused);
    }
  }
  EXPECT_GT(decoded, 5u) << "the damage never reaches the depths";
  EXPECT_GT(refused, 20u);
}

// The same payload under another header: another shape, bound, margin or type.
TYPED_TEST(ForgedPayloads, UnderAnotherHeader) {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    const Shape shape{20, 30};
    auto values = make_field<TypeParam>(shape, Kind::noisy, 3);
    test::sprinkle_specials(values, 3, 20);
    Options options;
    options.pipeline = pipeline;
    options.bound = Bound::abs(0.03125);
    const test::SoleChunk chunk = test::sole_chunk_of(test::compressed(values, shape, options));
    for (const Shape& other :
         {Shape{600}, Shape{30, 20}, Shape{1, 600}, Shape{5, 4, 30}, Shape{601}, Shape{300},
          Shape{2, 3, 10, 10}, Shape{64}, Shape{2000}}) {
      auto header = chunk.header;
      header.shape = header.chunk = other;
      decode_guarded<TypeParam>(test::forged_stream(header, chunk.pipeline, chunk.payload), other);
    }
    auto header = chunk.header;
    header.bound_abs = std::numeric_limits<TypeParam>::max();
    decode_guarded<TypeParam>(test::forged_stream(header, chunk.pipeline, chunk.payload), shape);
    header.bound_abs = std::numeric_limits<TypeParam>::denorm_min();
    decode_guarded<TypeParam>(test::forged_stream(header, chunk.pipeline, chunk.payload), shape);
  }
}

TEST(ForgedHeaders, NeverTakeMemoryOrTimeForWhatIsNotThere) {
  test::Random random(33);
  std::size_t taken = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    std::vector<std::uint8_t> bytes{'F', 'I', 'R', 'N', 1};
    const std::size_t size = 7 + random.below(60);
    while (bytes.size() < size) {
      bytes.push_back(static_cast<std::uint8_t>(random.below(2) ? random.next() : random.below(8)));
    }
    // A plausible type and rank, and the header's end somewhere.
    bytes[5] = static_cast<std::uint8_t>((bytes[5] & 0x60) | (1 + random.below(2)) |
                                         (1 + random.below(4)) << 2);
    bytes[6] = static_cast<std::uint8_t>(random.below(4) | (2 + random.below(9)) << 4);
    // Find where the header ends by trying: seal each length until it is taken.
    for (std::size_t end = 11; end <= bytes.size(); ++end) {
      std::vector<std::uint8_t> header(bytes.begin(),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(end));
      test::seal_header(header);
      ByteReader in(header);
      if (!container::read_header(in, header).ok()) continue;
      if (in.position() != header.size()) continue;
      ++taken;
      const auto info = inspect(header);
      ASSERT_TRUE(info.ok());
      const auto chunks = inspect_chunks(header);
      ASSERT_TRUE(chunks.ok());
      EXPECT_TRUE(chunks->empty());
      // And with garbage behind it.
      header.insert(header.end(), bytes.begin(), bytes.end());
      ASSERT_TRUE(inspect(header).ok());
      ASSERT_TRUE(inspect_chunks(header).ok());
      if (info->shape.count() > 0 && info->shape.count() < 10000) {
        std::vector<double> out(info->shape.count());
        decompress(header, {out.data(), info->type, info->shape, {}}, test::threads(1)).ok();
      }
      break;
    }
  }
  EXPECT_GT(taken, 1000u);
}

// The extents of its parts add up to few only modulo 2^64.
TEST(ForgedDirectory, WhoseExtentsOverflowIsNotBelieved) {
  const std::uint64_t huge = (std::uint64_t{1} << 61) - 1;
  std::vector<std::uint8_t> bytes;
  std::vector<container::Part> parts;
  const auto add = [&](std::uint64_t extent) {
    container::Header header = header_for<float>({extent});
    header.chunk = {std::min<std::uint64_t>(extent, 1 << 24)};
    std::vector<std::uint8_t> part(container::kMaxHeaderBytes + container::kMaxRecordOverhead + 4);
    ByteWriter out(part.data());
    container::write_header(header, out);
    const std::uint64_t raw_bytes = header.chunk.count() * sizeof(float);
    std::uint8_t* const record = out.here();
    std::fill_n(record + container::record_head_bytes(raw_bytes), 4, std::uint8_t{0});
    out.advance(container::finish_record(record, raw_bytes, Pipeline::constant, 0, 4, header, 0));
    parts.push_back({bytes.size(), out.size(), extent});
    bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(out.size()));
  };
  // Eight times 2^61 - 1, and 8, are 2^64.
  add(5);
  for (int i = 0; i < 8; ++i) add(huge);
  add(8);
  std::vector<std::uint8_t> directory(container::directory_capacity(parts.size()));
  ByteWriter out(directory.data());
  container::write_directory(parts, out);
  bytes.insert(bytes.end(), directory.begin(),
               directory.begin() + static_cast<std::ptrdiff_t>(out.size()));
  const auto info = inspect(bytes);
  EXPECT_TRUE(!info.ok() || !(info->shape == Shape{5}));
  std::vector<float> values(5);
  EXPECT_FALSE(decompress(bytes, test::view_of(values, {5})).ok());
  EXPECT_FALSE(decompress_preview(bytes, 2, test::view_of(values, {3})).ok());
  EXPECT_FALSE(verify(test::const_view_of(values, {5}), bytes).ok());
}

}  // namespace
}  // namespace firn
