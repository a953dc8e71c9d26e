// Series: pushed step by step and read as one array, as bytes arrive, appended to, cut and joined.
#include <firn/firn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <firn/stream.hpp>
#include <vector>

#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::expect_within;
using test::Kind;
using test::make_field;

using Bytes = std::vector<std::uint8_t>;

Options abs_options(double bound = 1e-2) {
  Options options;
  options.bound = Bound::abs(bound);
  options.preset = Preset::fast;
  return options;
}

void take_all(StreamWriter& writer, Bytes& to) {
  // In pieces, as a pipe would.
  while (!writer.ready().empty()) {
    const std::size_t now = std::min<std::size_t>(writer.ready().size(), 1000);
    to.insert(to.end(), writer.ready().begin(), writer.ready().begin() + now);
    writer.take(now);
  }
}

template <class T>
ArrayView steps_of(const std::vector<T>& values, const Shape& shape, std::uint64_t begin,
                   std::uint64_t count) {
  Shape part = shape;
  part.extents[0] = count;
  return {values.data() + begin * (shape.count() / shape.extents[0]), test::kTypeOf<T>, part, {}};
}

// Pushes the array `at_once` steps at a time and flushes after every `flush_every` pushes.
template <class T>
Bytes write_series(const std::vector<T>& values, const Shape& shape, const Options& options,
                   std::uint64_t at_once, int flush_every = 0) {
  Shape step;
  step.rank = shape.rank - 1;
  std::copy_n(shape.extents.begin() + 1, step.rank, step.extents.begin());
  auto writer = StreamWriter::create(test::kTypeOf<T>, step, options, test::threads(1));
  EXPECT_TRUE(writer.ok());
  Bytes bytes;
  int pushes = 0;
  for (std::uint64_t begin = 0; begin < shape.extents[0]; begin += at_once) {
    const std::uint64_t count = std::min(at_once, shape.extents[0] - begin);
    EXPECT_TRUE(writer->push(steps_of(values, shape, begin, count)).ok());
    if (flush_every != 0 && ++pushes % flush_every == 0) {
      EXPECT_TRUE(writer->flush().ok());
    }
    take_all(*writer, bytes);
  }
  EXPECT_TRUE(writer->finish().ok());
  take_all(*writer, bytes);
  return bytes;
}

TEST(Series, IsReadAsOneArray) {
  const Shape shape{23, 20, 30};
  const auto values = make_field<float>(shape, Kind::noisy);
  for (const std::uint64_t at_once : {1u, 4u, 23u}) {
    for (const int flush_every : {0, 1, 3}) {
      const Bytes bytes = write_series(values, shape, abs_options(), at_once, flush_every);
      const auto info = inspect(bytes);
      ASSERT_TRUE(info.ok()) << info.error().message;
      EXPECT_EQ(info->shape, shape);
      EXPECT_TRUE(info->complete);
      EXPECT_EQ(info->compressed_bytes, bytes.size());
      if (flush_every == 1) {
        EXPECT_EQ(info->part_count, (23 + at_once - 1) / at_once);
      }
      expect_within(values, shape, bytes);
      const auto chunks = inspect_chunks(bytes);
      ASSERT_TRUE(chunks.ok());
      EXPECT_EQ(chunks->size(), info->chunk_count);
      std::uint64_t covered = 0;
      for (const ChunkInfo& chunk : *chunks) covered += chunk.shape.count();
      EXPECT_EQ(covered, shape.count());
      // Regions across parts are the slices of the whole.
      const auto whole = test::decompressed<float>(bytes, shape, 2);
      Region region;
      region.origin = {3, 5, 7};
      region.shape = {15, 10, 11};
      std::vector<float> part(region.shape.count());
      ASSERT_TRUE(decompress_region(bytes, region, test::view_of(part, region.shape)).ok());
      for (std::uint64_t z = 0, i = 0; z < 15; ++z) {
        for (std::uint64_t y = 0; y < 10; ++y) {
          for (std::uint64_t x = 0; x < 11; ++x, ++i) {
            ASSERT_EQ(part[i], whole[((z + 3) * 20 + y + 5) * 30 + x + 7]);
          }
        }
      }
    }
  }
}

TEST(Series, OfOnePartIsAPlainStream) {
  const Shape shape{7, 9};
  const auto values = make_field<double>(shape, Kind::smooth);
  const Bytes bytes = write_series(values, shape, abs_options(), 2);
  const auto plain = test::compressed(values, shape, abs_options());
  EXPECT_EQ(bytes, plain);
}

TEST(Series, HoldsSingleValuesAndNone) {
  const Shape shape{1000};
  const auto values = make_field<double>(shape, Kind::noisy);
  expect_within(values, shape, write_series(values, shape, abs_options(), 1, 100));
  auto writer = StreamWriter::create(Type::f32, {4, 5}, abs_options());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto info = inspect(writer->ready());
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->shape, (Shape{0, 4, 5}));
}

TEST(Series, LongOnesAreCutIntoParts) {
  const Shape shape{40, 300, 300};
  const auto values = make_field<float>(shape, Kind::smooth);
  auto writer = StreamWriter::create(Type::f32, {300, 300}, abs_options(), test::threads(2));
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->steps_per_part(), 23u);
  ASSERT_TRUE(writer->push(test::const_view_of(values, shape)).ok());
  EXPECT_FALSE(writer->ready().empty());  // the first part need not wait for the end
  ASSERT_TRUE(writer->finish().ok());
  const Bytes bytes(writer->ready().begin(), writer->ready().end());
  EXPECT_EQ(inspect(bytes)->part_count, 2u);
  expect_within(values, shape, bytes);
}

TEST(Series, GoesOnWhereItEnded) {
  const Shape shape{12, 30, 20};
  const auto values = make_field<float>(shape, Kind::noisy);
  Bytes bytes = write_series(std::vector<float>(values.begin(), values.begin() + 7 * 600),
                             Shape{7, 30, 20}, abs_options(), 3, 1);
  auto writer = StreamWriter::append_to(bytes, abs_options(1e-3));
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  ASSERT_LT(writer->append_offset(), bytes.size());  // the directory is replaced
  bytes.resize(writer->append_offset());
  ASSERT_TRUE(writer->push(steps_of(values, shape, 7, 5)).ok());
  ASSERT_TRUE(writer->finish().ok());
  take_all(*writer, bytes);
  EXPECT_EQ(inspect(bytes)->shape, shape);
  expect_within(values, shape, bytes);
  // The bound of a part is its own.
  const auto chunks = inspect_chunks(bytes);
  EXPECT_EQ(chunks->front().bound_abs, static_cast<float>(1e-2));
  EXPECT_LE(chunks->back().bound_abs, 1e-3);
}

TEST(Series, MayBeJoinedToAnother) {
  const Shape shape{5, 11};
  const auto values = make_field<float>(shape, Kind::noisy);
  Bytes one = write_series(values, shape, abs_options(), 1, 2);  // with a directory in the middle
  const Bytes two = write_series(values, shape, abs_options(), 5);
  for (int joined = 0; joined < 2; ++joined) one.insert(one.end(), two.begin(), two.end());
  std::vector<float> expected = values;
  for (int joined = 0; joined < 2; ++joined) {
    expected.insert(expected.end(), values.begin(), values.end());
  }
  EXPECT_EQ(inspect(one)->shape, (Shape{15, 11}));
  expect_within(expected, Shape{15, 11}, one);
}

TEST(Series, CutAnywhereStillGivesItsWholeParts) {
  const Shape shape{9, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  const Bytes whole = write_series(values, shape, abs_options(), 3, 1);
  const auto chunks = inspect_chunks(whole);
  ASSERT_EQ(chunks->size(), 3u);
  for (std::size_t size = chunks->at(1).offset; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto info = inspect(cut);
    ASSERT_TRUE(info.ok()) << info.error().message;
    // Those of a part that is cut count once its header is there.
    const std::uint64_t steps = info->shape.extents[0];
    const std::uint64_t whole_steps =
        3 * static_cast<std::uint64_t>(std::count_if(
                chunks->begin(), chunks->end(),
                [&](const ChunkInfo& chunk) { return chunk.offset + chunk.size_bytes <= size; }));
    ASSERT_TRUE(steps == whole_steps || steps == whole_steps + 3);
    Region region;
    region.shape = {whole_steps, 8, 10};
    std::vector<float> decoded(region.shape.count());
    ASSERT_TRUE(decompress_region(cut, region, test::view_of(decoded, region.shape)).ok());
    for (std::size_t i = 0; i < decoded.size(); ++i) ASSERT_NEAR(decoded[i], values[i], 1e-2);
    // All of it is not there, unless only the directory is missing.
    std::vector<float> all(info->shape.count());
    EXPECT_EQ(decompress(cut, test::view_of(all, info->shape)).ok(), info->complete);
    const auto damages = Decompressor().salvage(cut, test::view_of(all, info->shape));
    ASSERT_TRUE(damages.ok()) << damages.error().message;
    EXPECT_EQ(damages->empty(), info->complete);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(std::isnan(all[i]), i >= decoded.size());
    }
  }
}

TEST(Series, CutWithinAPartKeepsThatPartsChunks) {
  const Shape shape{8, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Options options = abs_options();
  options.chunk = {1, 8, 10};
  const Bytes whole = write_series(values, shape, options, 4, 1);
  const auto chunks = inspect_chunks(whole);
  ASSERT_EQ(chunks->size(), 8u);
  // Within the third chunk of the second part.
  const Bytes cut(whole.begin(),
                  whole.begin() + static_cast<std::ptrdiff_t>(chunks->at(6).offset + 5));
  EXPECT_EQ(inspect(cut)->shape, shape);
  EXPECT_FALSE(inspect(cut)->complete);
  EXPECT_EQ(inspect_chunks(cut)->size(), 6u);
  std::vector<float> decoded(shape.count());
  const auto status = decompress(cut, test::view_of(decoded, shape));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("its first 4 "), std::string::npos);
  const auto damages = Decompressor().salvage(cut, test::view_of(decoded, shape));
  ASSERT_TRUE(damages.ok());
  ASSERT_EQ(damages->size(), 2u);
  EXPECT_EQ(damages->front().region.origin[0], 6u);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (i < 6 * 80) {
      ASSERT_NEAR(decoded[i], values[i], 1e-2);
    } else {
      ASSERT_TRUE(std::isnan(decoded[i]));
    }
  }
}

TEST(Series, WithoutItsLastIndexLosesNoValues) {
  const Shape shape{8, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Options options = abs_options();
  options.chunk = {1, 8, 10};
  const Bytes whole = write_series(values, shape, options, 4, 1);
  const ChunkInfo last = inspect_chunks(whole)->back();
  const Bytes cut(whole.begin(),
                  whole.begin() + static_cast<std::ptrdiff_t>(last.offset + last.size_bytes + 3));
  std::vector<float> decoded(shape.count());
  EXPECT_FALSE(decompress(cut, test::view_of(decoded, shape)).ok());
  const auto damages = Decompressor().salvage(cut, test::view_of(decoded, shape));
  ASSERT_TRUE(damages.ok());
  ASSERT_EQ(damages->size(), 1u);
  EXPECT_EQ(damages->front().region.shape.count(), 0u);
  for (std::size_t i = 0; i < decoded.size(); ++i) ASSERT_NEAR(decoded[i], values[i], 1e-2);
}

TEST(Series, ADamagedHeaderCostsItsPart) {
  const Shape shape{9, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  const Bytes whole = write_series(values, shape, abs_options(), 3, 1);
  // A header of 21 bytes or so comes before the chunk of each part.
  for (const std::size_t part : {0u, 1u, 2u}) {
    Bytes bytes = whole;
    bytes[part == 0 ? 0
                    : inspect_chunks(whole)->at(part - 1).offset +
                          inspect_chunks(whole)->at(part - 1).size_bytes] ^= 0x55;
    const auto info = inspect(bytes);
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->shape, shape);
    EXPECT_FALSE(info->complete);
    std::vector<float> decoded(shape.count());
    EXPECT_EQ(decompress(bytes, test::view_of(decoded, shape)).error().code, ErrorCode::corrupt);
    const auto damages = Decompressor().salvage(bytes, test::view_of(decoded, shape));
    ASSERT_TRUE(damages.ok());
    ASSERT_EQ(damages->size(), 1u);
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      ASSERT_EQ(std::isnan(decoded[i]), i / 240 == part);
    }
  }
}

TEST(Series, SomethingElseBehindItIsNoPart) {
  const Shape shape{6, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Bytes bytes = write_series(values, shape, abs_options(), 3, 1);
  bytes.insert(bytes.end(), 100, 7);
  std::vector<float> decoded(shape.count());
  EXPECT_EQ(decompress(bytes, test::view_of(decoded, shape)).error().code, ErrorCode::truncated);
  StreamReader reader;
  ASSERT_TRUE(reader.feed(bytes).ok());
  EXPECT_EQ(*reader.read(test::view_of(decoded, shape)), 6u);
  const auto more = reader.read(test::view_of(decoded, shape));
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::truncated);
}

TEST(Series, OfTheLargestNumbersKeepsARatio) {
  Options options;
  options.bound = Bound::ratio(3000);
  const Shape shape{40, 20, 30};
  std::vector<double> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 7 == 0 ? std::numeric_limits<double>::max() : 0;
  }
  const Bytes bytes = write_series(values, shape, options, 5, 1);
  const auto info = inspect(bytes);
  ASSERT_TRUE(info.ok());
  const auto decoded = test::decompressed<double>(bytes, shape);
  EXPECT_FALSE(test::broken_promise(values, decoded, *info, {}));
}

TEST(Series, DoesNotSpendLaterWhatQuietPartsSave) {
  Options options;
  options.preset = Preset::fast;
  options.bound = Bound::ratio(6);
  const Shape quiet{40, 64, 64}, rough{80, 64, 64};
  std::vector<float> values(quiet.count());
  const auto noise = make_field<float>(rough, Kind::noisy);
  values.insert(values.end(), noise.begin(), noise.end());
  const Bytes bytes = write_series(values, Shape{120, 64, 64}, options, 10, 1);
  const auto chunks = inspect_chunks(bytes);
  std::vector<double> part_bytes(12);
  for (const ChunkInfo& chunk : *chunks) {
    part_bytes[chunk.origin[0] / 10] += static_cast<double>(chunk.size_bytes);
  }
  const double fair = 10 * 64 * 64 * 4 / 6.0;
  for (std::size_t part = 4; part < 12; ++part) EXPECT_LT(part_bytes[part], 1.15 * fair) << part;
}

TEST(Series, DamageStaysInItsPart) {
  const Shape shape{9, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Bytes bytes = write_series(values, shape, abs_options(), 3, 1);
  bytes[inspect_chunks(bytes)->at(1).offset + 9] ^= 1;
  std::vector<float> decoded(shape.count());
  const auto damages =
      Decompressor().salvage(bytes, test::view_of(decoded, shape), test::threads(1));
  ASSERT_TRUE(damages.ok()) << damages.error().message;
  ASSERT_EQ(damages->size(), 1u);
  EXPECT_EQ(damages->front().chunk, 1u);
  EXPECT_EQ(damages->front().region.origin[0], 3u);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (i / 80 / 3 == 1) {
      ASSERT_TRUE(std::isnan(decoded[i]));
    } else {
      ASSERT_NEAR(decoded[i], values[i], 1e-2);
    }
  }
}

TEST(Series, RefusesWhatDoesNotFit) {
  auto writer = StreamWriter::create(Type::f32, {4, 5}, abs_options());
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values(40);
  EXPECT_FALSE(writer->push(view(values.data(), {5, 4})).ok());
  EXPECT_FALSE(writer->push(view(values.data(), {20})).ok());
  EXPECT_TRUE(writer->push(view(values.data(), {4, 5})).ok());
  EXPECT_TRUE(writer->push(view(values.data(), {2, 4, 5})).ok());
  EXPECT_EQ(writer->steps(), 3u);
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_FALSE(writer->push(view(values.data(), {4, 5})).ok());
  EXPECT_FALSE(StreamWriter::create(Type::f32, {1, 1, 1, 1}, abs_options()).ok());
  EXPECT_FALSE(StreamWriter::create(Type::f32, {0}, abs_options()).ok());
  EXPECT_FALSE(StreamWriter::create(Type::f32, {4}, abs_options(-1)).ok());
}

TEST(StreamReader, DecodesAsBytesArrive) {
  const Shape shape{17, 12, 10};
  const auto values = make_field<double>(shape, Kind::noisy);
  const Bytes bytes = write_series(values, shape, abs_options(), 2, 1);
  const auto expected = test::decompressed<double>(bytes, shape);
  for (const std::size_t piece : {1u, 13u, 100u, 100000u}) {
    for (const std::uint64_t at_once : {1u, 5u, 17u}) {
      StreamReader reader;
      std::vector<double> decoded;
      std::vector<double> out(at_once * 120);
      std::size_t first_steps_after = 0;
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const std::size_t now = std::min(piece, bytes.size() - at);
        ASSERT_TRUE(reader.feed({bytes.data() + at, now}).ok());
        for (;;) {
          const auto read =
              reader.read(mutable_view(out.data(), {at_once, 12, 10}), test::threads(1));
          if (!reader.started()) break;
          ASSERT_TRUE(read.ok()) << read.error().message;
          decoded.insert(decoded.end(), out.begin(),
                         out.begin() + static_cast<std::ptrdiff_t>(*read * 120));
          if (*read != 0 && first_steps_after == 0) first_steps_after = at + now;
          if (*read < at_once) break;
        }
      }
      EXPECT_EQ(reader.step(), (Shape{12, 10}));
      EXPECT_TRUE(reader.at_boundary());
      EXPECT_TRUE(test::same_bits(decoded, expected));
      // Without waiting for the end.
      if (piece < 1000) {
        EXPECT_LT(first_steps_after, bytes.size() / 2);
      }
    }
  }
}

TEST(StreamReader, RefusesWhatIsNoStreamAndWhatIsDamaged) {
  StreamReader reader;
  const Bytes text{'h', 'e', 'l', 'l', 'o'};
  EXPECT_EQ(reader.feed(text).error().code, ErrorCode::not_firn);

  const Shape shape{4, 50};
  Bytes bytes = write_series(make_field<float>(shape, Kind::noise), shape, abs_options(), 4);
  bytes[bytes.size() / 2] ^= 1;
  StreamReader damaged;
  ASSERT_TRUE(damaged.feed(bytes).ok());
  std::vector<float> out(200);
  EXPECT_EQ(damaged.read(mutable_view(out.data(), {4, 50})).error().code, ErrorCode::corrupt);
}

TEST(StreamReader, GivesWhatComesBeforeTheDamageFirst) {
  const Shape shape{9, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Bytes bytes = write_series(values, shape, abs_options(), 3, 1);
  bytes[inspect_chunks(bytes)->at(1).offset + 9] ^= 1;
  StreamReader reader;
  ASSERT_TRUE(reader.feed(bytes).ok());
  std::vector<float> out(shape.count());
  const auto read = reader.read(mutable_view(out.data(), shape), test::threads(1));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, 3u);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(reader.read(mutable_view(out.data(), shape), test::threads(1)).error().code,
              ErrorCode::corrupt);
  }
}

TEST(StreamReader, TellsACutSeriesFromAWholeOne) {
  const Shape shape{6, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  const Bytes bytes = write_series(values, shape, abs_options(), 3, 1);
  const std::size_t second = inspect_chunks(bytes)->at(1).offset;
  std::vector<float> out((shape.extents[0] + 1) * 80);
  for (const std::size_t size : {std::size_t{5}, second / 2, second + 1, bytes.size() - 1}) {
    StreamReader reader;
    ASSERT_TRUE(reader.feed({bytes.data(), size}).ok());
    ASSERT_TRUE(reader.read(mutable_view(out.data(), {7, 8, 10}), test::threads(1)).ok());
    EXPECT_FALSE(reader.at_boundary()) << size;
  }
  StreamReader reader;
  ASSERT_TRUE(reader.feed(bytes).ok());
  EXPECT_EQ(*reader.read(mutable_view(out.data(), {7, 8, 10}), test::threads(1)), 6u);
  EXPECT_TRUE(reader.at_boundary());
}

TEST(StreamReader, RefusesADirectoryWithoutSize) {
  const Shape shape{4, 8, 10};
  Bytes bytes = write_series(make_field<float>(shape, Kind::noisy), shape, abs_options(), 2, 1);
  const auto writer = StreamWriter::append_to(bytes, abs_options());
  ASSERT_TRUE(writer.ok());
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(writer->append_offset()) + 4, 4, 0);
  StreamReader reader;
  ASSERT_TRUE(reader.feed(bytes).ok());
  std::vector<float> out(5 * 80);
  EXPECT_EQ(*reader.read(mutable_view(out.data(), {5, 8, 10}), test::threads(1)), 4u);
  EXPECT_EQ(reader.read(mutable_view(out.data(), {5, 8, 10})).error().code, ErrorCode::corrupt);
}

TEST(Series, OfPartsWithOtherBoundsSaysTheLargest) {
  const Shape shape{4, 8, 10};
  const auto values = make_field<float>(shape, Kind::noisy);
  Options lossless;
  Bytes bytes = write_series(values, shape, lossless, 4);
  auto writer = StreamWriter::append_to(bytes, abs_options(0.125));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->push(test::const_view_of(values, shape)).ok());
  ASSERT_TRUE(writer->finish().ok());
  take_all(*writer, bytes);
  const auto info = inspect(bytes);
  EXPECT_EQ(info->bound.kind, BoundKind::abs);
  EXPECT_EQ(info->bound.value, 0.125);
  EXPECT_EQ(info->bound_abs, 0.125);
  // A bound of each value's own does not compare with these.
  Options pointwise;
  pointwise.bound = Bound::pwrel(0.01);
  EXPECT_EQ(StreamWriter::append_to(bytes, pointwise).error().code, ErrorCode::invalid_argument);
  const Bytes relative = write_series(values, shape, pointwise, 4);
  EXPECT_TRUE(StreamWriter::append_to(relative, pointwise).ok());
  EXPECT_FALSE(StreamWriter::append_to(relative, abs_options()).ok());
}

TEST(Series, KeepsAPsnrInEveryPart) {
  const Shape shape{24, 64, 64};
  const auto values = make_field<float>(shape, Kind::smooth);
  for (const Preset preset : {Preset::fast, Preset::balanced}) {
    for (const double psnr : {30.0, 60.0}) {
      Options options;
      options.bound = Bound::psnr(psnr);
      options.preset = preset;
      // One part is what compress() makes of it.
      EXPECT_EQ(write_series(values, shape, options, 24), test::compressed(values, shape, options));
      const Bytes bytes = write_series(values, shape, options, 8, 1);
      for (std::uint64_t begin = 0; begin < 24; begin += 8) {
        const ArrayView part = steps_of(values, shape, begin, 8);
        std::vector<float> decoded(part.shape.count());
        Region region;
        region.origin[0] = begin;
        region.shape = part.shape;
        ASSERT_TRUE(decompress_region(bytes, region, test::view_of(decoded, part.shape)).ok());
        EXPECT_GE(compare(part, test::const_view_of(decoded, part.shape), 1.0)->psnr_db, psnr);
      }
    }
  }
}

TEST(Series, RefusesChunksThatNeverBecomeComplete) {
  Options options = abs_options();
  options.chunk = {std::uint64_t{1} << 62, 4, 4};
  EXPECT_EQ(StreamWriter::create(Type::f32, {4, 4}, options).error().code,
            ErrorCode::invalid_argument);
}

TEST(StreamC, WritesAndReadsTheSameSeries) {
  const Shape shape{6, 8, 9};
  const auto values = make_field<float>(shape, Kind::noisy);
  firn_context* context = firn_context_new();
  firn_array step;
  firn_array_init(&step);
  step.type = FIRN_F32;
  step.rank = 2;
  step.extents[0] = 8;
  step.extents[1] = 9;
  firn_options options;
  firn_options_init(&options);
  options.bound = FIRN_ABS;
  options.bound_value = 1e-2;
  options.preset = FIRN_FAST;
  options.threads = 1;
  firn_writer* writer = nullptr;
  ASSERT_EQ(firn_writer_new(context, &step, &options, &writer), FIRN_OK);
  Bytes bytes;
  for (int t = 0; t < 6; ++t) {
    step.data = values.data() + t * 72;
    ASSERT_EQ(firn_writer_push(context, writer, &step), FIRN_OK);
    if (t % 2 == 1) {
      ASSERT_EQ(firn_writer_flush(context, writer), FIRN_OK);
    }
    std::size_t size = 0;
    const auto* ready = static_cast<const std::uint8_t*>(firn_writer_ready(writer, &size));
    bytes.insert(bytes.end(), ready, ready + size);
    firn_writer_take(writer, size);
  }
  ASSERT_EQ(firn_writer_finish(context, writer), FIRN_OK);
  std::size_t size = 0;
  const auto* ready = static_cast<const std::uint8_t*>(firn_writer_ready(writer, &size));
  bytes.insert(bytes.end(), ready, ready + size);
  EXPECT_NE(firn_writer_push(context, writer, &step), FIRN_OK);
  EXPECT_EQ(firn_writer_steps_per_part(writer),
            StreamWriter::create(Type::f32, {8, 9}, abs_options())->steps_per_part());
  EXPECT_EQ(firn_writer_steps_per_part(nullptr), 0u);
  firn_writer_free(writer);
  EXPECT_EQ(bytes, write_series(values, shape, abs_options(), 1, 2));

  std::size_t count = 0;
  firn_chunk chunks[2];
  ASSERT_EQ(firn_inspect_chunks(context, bytes.data(), bytes.size(), chunks, 2, &count), FIRN_OK);
  const auto infos = inspect_chunks(bytes);
  ASSERT_EQ(count, infos->size());
  EXPECT_EQ(count, 3u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(chunks[i].offset, (*infos)[i].offset);
    EXPECT_EQ(chunks[i].size, (*infos)[i].size_bytes);
    EXPECT_STREQ(chunks[i].pipeline, name_of((*infos)[i].pipeline));
    EXPECT_EQ(chunks[i].bound_abs, (*infos)[i].bound_abs);
    EXPECT_EQ(chunks[i].max_abs_error, (*infos)[i].max_abs_error);
    EXPECT_EQ(chunks[i].max_pwrel_error, 0);
    EXPECT_EQ(chunks[i].origin[0], 2 * i);
    EXPECT_EQ(chunks[i].extents[0], 2u);
    EXPECT_EQ(chunks[i].extents[2], 9u);
  }
  EXPECT_EQ(firn_inspect_chunks(context, bytes.data(), bytes.size(), nullptr, 0, &count), FIRN_OK);
  EXPECT_EQ(firn_inspect_chunks(context, bytes.data(), bytes.size(), nullptr, 1, &count),
            FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_inspect_chunks(context, bytes.data(), bytes.size(), chunks, 2, nullptr),
            FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_inspect_chunks(context, bytes.data(), 3, chunks, 2, &count), FIRN_TRUNCATED);

  firn_reader* reader = firn_reader_new();
  ASSERT_EQ(firn_reader_step(reader, &step), 0);
  EXPECT_EQ(firn_reader_next_steps(reader), 0u);
  ASSERT_EQ(firn_reader_feed(context, reader, bytes.data(), bytes.size()), FIRN_OK);
  ASSERT_EQ(firn_reader_step(reader, &step), 1);
  EXPECT_EQ(step.extents[1], 9u);
  EXPECT_EQ(firn_reader_next_steps(reader), 2u);
  std::vector<float> decoded(shape.count());
  firn_array out;
  firn_array_init(&out);
  out.data = decoded.data();
  out.type = FIRN_F32;
  out.rank = 3;
  std::copy_n(shape.extents.begin(), 3, out.extents);
  std::uint64_t steps = 0;
  ASSERT_EQ(firn_reader_read(context, reader, &out, &steps), FIRN_OK);
  EXPECT_EQ(steps, 6u);
  EXPECT_TRUE(test::same_bits(decoded, test::decompressed<float>(bytes, shape)));
  EXPECT_EQ(firn_reader_at_boundary(reader), 0);  // the directory has not been looked at
  ASSERT_EQ(firn_reader_read(context, reader, &out, &steps), FIRN_OK);
  EXPECT_EQ(steps, 0u);
  EXPECT_EQ(firn_reader_at_boundary(reader), 1);
  EXPECT_EQ(firn_reader_feed(context, reader, nullptr, 7), FIRN_INVALID_ARGUMENT);
  out.data = nullptr;
  EXPECT_EQ(firn_reader_read(context, reader, &out, &steps), FIRN_INVALID_ARGUMENT);
  firn_reader_free(reader);

  std::uint64_t offset = 0;
  ASSERT_EQ(firn_writer_append(context, bytes.data(), bytes.size(), &options, &writer, &offset),
            FIRN_OK);
  EXPECT_GT(offset, 0u);
  firn_writer_free(writer);
  firn_context_free(context);
}

TEST(StreamRatio, IsHeldOverTheParts) {
  // A field that becomes rougher with time: the bound must follow.
  const Shape shape{60, 128, 128};
  std::vector<float> values(shape.count());
  test::Random random(5);
  for (std::uint64_t t = 0; t < 60; ++t) {
    for (std::uint64_t i = 0; i < 128 * 128; ++i) {
      values[t * 128 * 128 + i] =
          static_cast<float>(test::wave(static_cast<std::int64_t>(i % 128 + i / 128), 40)) +
          static_cast<float>(random.around(1000)) * static_cast<float>(1 + t) / 100;
    }
  }
  Options options;
  options.bound = Bound::ratio(6);
  options.preset = Preset::fast;
  const Bytes bytes = write_series(values, shape, options, 1, 4);
  const auto info = inspect(bytes);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->part_count, 15u);
  const double ratio =
      static_cast<double>(info->original_bytes) / static_cast<double>(bytes.size());
  EXPECT_NEAR(ratio, 6, 0.3);
  expect_within(values, shape, bytes);
  const auto chunks = inspect_chunks(bytes);
  EXPECT_GT(chunks->back().bound_abs, 4 * chunks->front().bound_abs);
}

TEST(StreamRatio, LeavesAtASteadyRateWhateverHappens) {
  // Nothing at first, then waves, then the same a thousand times as large.
  const Shape step{128, 128};
  std::vector<float> values(4 * step.count());
  test::Random random(6);
  Options options;
  options.bound = Bound::ratio(6);
  options.preset = Preset::fast;
  auto writer = StreamWriter::create(Type::f32, step, options, test::threads(1));
  ASSERT_TRUE(writer.ok());
  for (int part = 0; part < 18; ++part) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i % 128 + i / 128);
      const double value = test::wave(place + part, 40) + random.around(1000) / 100.0;
      values[i] = part < 6 ? 0 : static_cast<float>(part < 12 ? value : 1000 * value);
    }
    ASSERT_TRUE(writer->push(view(values.data(), {4, 128, 128})).ok());
    ASSERT_TRUE(writer->flush().ok());
    const double ratio = static_cast<double>(values.size() * sizeof(float)) /
                         static_cast<double>(writer->ready().size());
    writer->take(writer->ready().size());
    EXPECT_GT(ratio, 6 / 1.7) << part;
    if (part >= 6) {
      EXPECT_LT(ratio, 6 * 1.7) << part;
    }
  }
}

}  // namespace
}  // namespace firn
