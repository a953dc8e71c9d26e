// Memory beyond input and output: bounded by the chunks in flight, and nothing at all for a reused
// Compressor or Decompressor with one thread.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/allocation_counter.hpp"
#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::counting_works()) GTEST_SKIP() << "a sanitizer has its own allocator";
  }
};

template <class T>
void expect_steady_state(const std::vector<T>& values, const Shape& shape, const Options& options,
                         bool strided) {
  SCOPED_TRACE(std::string(name_of(test::kTypeOf<T>)) + " " + test::text_of(options) +
               (strided ? ", strided" : ""));
  ArrayView array = test::const_view_of(values, shape);
  if (strided) {
    array.shape.extents[1] /= 2;
    array.strides = {static_cast<std::int64_t>(shape.extents[1]), 2};
  }
  const Execution execution = test::threads(1);
  std::vector<std::uint8_t> out(*worst_case_size(array.type, array.shape, options));
  Compressor compressor;
  std::size_t size = 0;
  // zstd shrinks a context of its own that was too large 128 times: that one call is forgiven.
  int allocating = 0;
  for (int call = 0; call < 7; ++call) {
    test::reset_allocations();
    const auto used = compressor.compress_into(array, options, out, execution);
    const test::Allocations made = test::allocations();
    ASSERT_TRUE(used.ok());
    size = *used;
    if (call >= 2 && made.calls != 0) ++allocating;
  }
  EXPECT_LE(allocating, 1) << "compress_into allocates";
  std::vector<T> decoded(array.shape.count());
  const std::span<const std::uint8_t> stream(out.data(), size);
  Decompressor decompressor;
  for (int call = 0; call < 3; ++call) {
    test::reset_allocations();
    const bool ok =
        decompressor.decompress(stream, test::view_of(decoded, array.shape), execution).ok();
    const test::Allocations made = test::allocations();
    ASSERT_TRUE(ok);
    if (call == 2) {
      EXPECT_EQ(made.calls, 0u) << "decompress, " << made.peak_bytes << " bytes";
    }
  }
  Region region;
  region.shape = array.shape;
  for (int k = 0; k < region.shape.rank; ++k) {
    region.origin[k] = 1;
    region.shape.extents[k] -= 2;
  }
  for (int call = 0; call < 3; ++call) {
    test::reset_allocations();
    const bool ok =
        decompressor
            .decompress_region(stream, region, test::view_of(decoded, region.shape), execution)
            .ok();
    const test::Allocations made = test::allocations();
    ASSERT_TRUE(ok);
    if (call == 2) {
      EXPECT_EQ(made.calls, 0u) << "decompress_region, " << made.peak_bytes << " bytes";
    }
  }
}

TEST_F(Memory, AReusedCompressorAllocatesNothing) {
  const Shape shape{200, 300};
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Bound bound :
         {Bound::abs(1e-3), Bound::rel(1e-3), Bound::psnr(60), Bound::lossless()}) {
      Options options;
      options.pipeline = pipeline;
      options.bound = bound;
      options.chunk = {64, 64};
      auto f32 = make_field<float>(shape, Kind::noisy);
      expect_steady_state(f32, shape, options, false);
      test::sprinkle_specials(f32, 3, 500);
      expect_steady_state(f32, shape, options, true);
      expect_steady_state(make_field<double>(shape, Kind::noisy), shape, options, false);
    }
  }
}

TEST_F(Memory, AReusedCompressorAllocatesNothingWithAMask) {
  const Shape shape{200, 300};
  auto values = make_field<float>(shape, Kind::noisy);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 1e20f;
  for (const Preset preset : {Preset::fast, Preset::balanced, Preset::small}) {
    Options options;
    options.preset = preset;
    options.bound = Bound::rel(1e-3);
    options.fill = 1e20;
    options.chunk = {64, 64};
    expect_steady_state(values, shape, options, false);
  }
}

struct Peaks {
  std::size_t compress, decompress;
};

template <class T>
Peaks peaks_of(std::uint64_t planes, const Options& options, int thread_count) {
  const Shape shape{planes, 128, 128};
  const auto values = make_field<T>(shape, Kind::noisy);
  std::vector<std::uint8_t> out(*worst_case_size(test::kTypeOf<T>, shape, options));
  std::vector<T> decoded(values.size());
  Peaks peaks{};
  test::reset_allocations();
  const auto size = Compressor().compress_into(test::const_view_of(values, shape), options, out,
                                               test::threads(thread_count));
  peaks.compress = test::allocations().peak_bytes;
  EXPECT_TRUE(size.ok());
  test::reset_allocations();
  EXPECT_TRUE(Decompressor()
                  .decompress({out.data(), *size}, test::view_of(decoded, shape),
                              test::threads(thread_count))
                  .ok());
  peaks.decompress = test::allocations().peak_bytes;
  return peaks;
}

// Working memory per thread, as a multiple of a chunk's values. docs/architecture.md states these.
constexpr std::size_t kCompressFactor = 16;
constexpr std::size_t kDecompressFactor = 12;
constexpr std::size_t kFixedBytes = 4 << 20;  // tables, zstd's contexts, TBB's

template <class T>
void expect_bounded_memory() {
  for (const Pipeline pipeline : test::chosen_pipelines()) {
    for (const Bound bound : {Bound::rel(1e-3), Bound::lossless()}) {
      for (const int thread_count : {1, 2}) {
        Options options;
        options.pipeline = pipeline;
        options.bound = bound;
        options.chunk = {8, 128, 128};
        SCOPED_TRACE(std::string(name_of(test::kTypeOf<T>)) + " " + test::text_of(options) + " " +
                     std::to_string(thread_count) + " threads");
        const std::size_t chunk_bytes = 8 * 128 * 128 * sizeof(T);
        const auto workers = static_cast<std::size_t>(thread_count);
        const Peaks small = peaks_of<T>(32, options, thread_count);
        const Peaks large = peaks_of<T>(96, options, thread_count);
        for (const Peaks& peaks : {small, large}) {
          EXPECT_LE(peaks.compress, workers * (kCompressFactor * chunk_bytes + kFixedBytes));
          EXPECT_LE(peaks.decompress, workers * (kDecompressFactor * chunk_bytes + kFixedBytes));
        }
        // Three times the array takes no more, but for the index. (Of two threads the second may
        // have had nothing to do in the smaller one.)
        if (thread_count == 1) {
          EXPECT_LE(large.compress, small.compress + chunk_bytes);
          EXPECT_LE(large.decompress, small.decompress + chunk_bytes);
        }
      }
    }
  }
}

TEST_F(Memory, OfSinglePrecisionIsBoundedByTheChunksInFlight) { expect_bounded_memory<float>(); }
TEST_F(Memory, OfDoublePrecisionIsBoundedByTheChunksInFlight) { expect_bounded_memory<double>(); }

// A search for a ratio keeps what it tried, in memory that the next one takes over.
TEST_F(Memory, OfSearchesForARatioDoesNotGrowWithTheirNumber) {
  Options options;
  options.preset = Preset::small;
  options.bound = Bound::ratio(4);
  const auto held_after = [&](Compressor& compressor, std::uint64_t planes) {
    const Shape shape{planes, 100, 100};
    const auto values = make_field<double>(shape, Kind::noisy);
    EXPECT_TRUE(
        compressor.compress(test::const_view_of(values, shape), options, test::threads(1)).ok());
    return test::allocations().held_bytes -
           static_cast<std::ptrdiff_t>(values.capacity() * sizeof(double));
  };
  constexpr std::uint64_t kPlanes = 60;
  Compressor kept, fresh;
  test::reset_allocations();
  for (std::uint64_t planes = 20; planes < kPlanes; planes += 4) held_after(kept, planes);
  const auto held = held_after(kept, kPlanes);
  test::reset_allocations();
  EXPECT_LE(held, 2 * held_after(fresh, kPlanes));
}

// Growing by halves and shrunk at the end: a returned buffer holds little more than the stream.
TEST_F(Memory, AReturnedStreamDoesNotHoldMuchMoreThanItsSize) {
  const Shape shape{64, 128, 128};
  const auto values = make_field<float>(shape, Kind::smooth);
  Options options;
  options.bound = Bound::rel(1e-3);
  ASSERT_TRUE(compress(test::const_view_of(values, shape), options, test::threads(1)).ok())
      << "the constant tables are made by the first call";
  test::reset_allocations();
  const auto stream = compress(test::const_view_of(values, shape), options, test::threads(1));
  ASSERT_TRUE(stream.ok());
  EXPECT_LE(test::allocations().held_bytes,
            2 * static_cast<std::ptrdiff_t>(stream->size()) + 65536);
}

}  // namespace
}  // namespace firn
