// The C interface: the same streams and values as the C++ one, statuses and messages.
#include <firn/firn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;
using test::make_field;

class CApi : public ::testing::Test {
 protected:
  CApi() : context_(firn_context_new()) {
    firn_array_init(&array_);
    array_.data = values_.data();
    array_.type = FIRN_F32;
    array_.rank = 2;
    array_.extents[0] = 40;
    array_.extents[1] = 50;
    firn_options_init(&options_);
    options_.bound = FIRN_ABS;
    options_.bound_value = 1e-2;
  }
  ~CApi() override { firn_context_free(context_); }

  std::vector<std::uint8_t> compressed() {
    void* bytes = nullptr;
    size_t size = 0;
    EXPECT_EQ(firn_compress(context_, &array_, &options_, &bytes, &size), FIRN_OK)
        << firn_context_error(context_);
    std::vector<std::uint8_t> stream(static_cast<std::uint8_t*>(bytes),
                                     static_cast<std::uint8_t*>(bytes) + size);
    firn_free(bytes);
    return stream;
  }
  void expect_message(const std::string& part) {
    EXPECT_NE(std::string(firn_context_error(context_)).find(part), std::string::npos)
        << firn_context_error(context_);
  }

  std::vector<float> values_ = make_field<float>({40, 50}, Kind::noisy);
  firn_context* context_;
  firn_array array_;
  firn_options options_;
};

TEST_F(CApi, TakesPointwiseBounds) {
  options_.bound = FIRN_PWREL;
  options_.bound_value = 0.01;
  options_.pipeline = "fre";
  const auto stream = compressed();
  firn_info info;
  firn_info_init(&info);
  ASSERT_EQ(firn_inspect(context_, stream.data(), stream.size(), &info), FIRN_OK);
  EXPECT_EQ(info.bound, FIRN_PWREL);
  EXPECT_EQ(info.bound_value, 0.01);
  EXPECT_EQ(info.bound_abs, 0);
  EXPECT_LE(info.bound_pwrel, 0.01);
  EXPECT_GT(info.max_pwrel_error, 0);
  EXPECT_LE(info.max_pwrel_error, info.bound_pwrel);
  firn_comparison comparison;
  firn_comparison_init(&comparison);
  EXPECT_EQ(firn_verify(context_, &array_, stream.data(), stream.size(), &comparison), FIRN_OK);
  EXPECT_LE(comparison.max_pwrel_error, info.bound_pwrel);
  EXPECT_GT(comparison.max_pwrel_error, 0);
}

TEST_F(CApi, MakesTheStreamsOfTheCppInterface) {
  Options options;
  options.bound = Bound::abs(1e-2);
  options.pipeline = Pipeline::lorenzo;
  options.chunk = {13, 50};
  options.fill = 7;
  options_.pipeline = "lorenzo";
  options_.chunk_rank = 2;
  options_.chunk[0] = 13;
  options_.chunk[1] = 50;
  options_.has_fill = 1;
  options_.fill = 7;
  options_.threads = 2;
  const auto expected = test::compressed(values_, {40, 50}, options);
  EXPECT_EQ(compressed(), expected);

  const std::uint64_t worst = firn_worst_case_size(context_, &array_, &options_);
  EXPECT_EQ(worst, *worst_case_size(Type::f32, {40, 50}, options));
  std::vector<std::uint8_t> out(worst);
  size_t size = 0;
  ASSERT_EQ(firn_compress_into(context_, &array_, &options_, out.data(), out.size(), &size),
            FIRN_OK);
  out.resize(size);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(firn_compress_into(context_, &array_, &options_, out.data(), size - 1, &size),
            FIRN_BUFFER_TOO_SMALL);
  expect_message("worst-case size");
}

TEST_F(CApi, ChoosesBooks) {
  Options options;
  options.bound = Bound::abs(1e-2);
  options.pipeline = Pipeline::lorenzo;
  options_.pipeline = "lorenzo";
  for (const int32_t books :
       {FIRN_BOOKS_COST, FIRN_BOOKS_CHI, FIRN_BOOKS_STORED, FIRN_BOOKS_OFFLINE}) {
    options.books = static_cast<BookPolicy>(books);
    options_.books = books;
    EXPECT_EQ(compressed(), test::compressed(values_, {40, 50}, options)) << books;
  }
  options_.books = 4;
  size_t size = 0;
  std::uint8_t room[1];
  EXPECT_EQ(firn_compress_into(context_, &array_, &options_, room, sizeof room, &size),
            FIRN_INVALID_ARGUMENT);
  expect_message("book");
}

TEST_F(CApi, RoundTrips) {
  const auto stream = compressed();
  std::vector<float> decoded(2000);
  firn_array out = array_;
  out.data = decoded.data();
  ASSERT_EQ(firn_decompress(context_, stream.data(), stream.size(), &out), FIRN_OK);
  EXPECT_EQ(decoded, test::decompressed<float>(stream, {40, 50}));
  EXPECT_FALSE(test::broken_promise(values_, decoded, 1e-2));

  std::vector<float> part(6);
  out.data = part.data();
  out.extents[0] = 2;
  out.extents[1] = 3;
  const uint64_t origin[2] = {7, 11};
  ASSERT_EQ(firn_decompress_region(context_, stream.data(), stream.size(), origin, &out), FIRN_OK);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(part[i], decoded[(7 + i / 3) * 50 + 11 + i % 3]);
}

TEST_F(CApi, TakesStrides) {
  std::vector<float> transposed(2000);
  for (std::size_t i = 0; i < 2000; ++i) transposed[i % 50 * 40 + i / 50] = values_[i];
  const auto expected = compressed();
  array_.data = transposed.data();
  array_.has_strides = 1;
  array_.strides[0] = 1;
  array_.strides[1] = 40;
  EXPECT_EQ(compressed(), expected);
}

TEST_F(CApi, Inspects) {
  options_.has_fill = 1;
  options_.fill = -1;
  const auto stream = compressed();
  firn_info info;
  firn_info_init(&info);
  ASSERT_EQ(firn_inspect(context_, stream.data(), stream.size(), &info), FIRN_OK);
  EXPECT_EQ(info.struct_size, sizeof info);
  EXPECT_EQ(info.format_version, 1);
  EXPECT_EQ(info.type, FIRN_F32);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.extents[0], 40u);
  EXPECT_EQ(info.extents[1], 50u);
  EXPECT_EQ(info.bound, FIRN_ABS);
  EXPECT_LE(info.bound_abs, 1e-2);
  EXPECT_LE(info.max_abs_error, info.bound_abs);
  EXPECT_EQ(info.has_fill, 1);
  EXPECT_EQ(info.fill, -1);
  EXPECT_EQ(info.chunk_count, 1u);
  EXPECT_EQ(info.original_bytes, 8000u);
  EXPECT_EQ(info.compressed_bytes, stream.size());
  EXPECT_EQ(info.complete, 1);
}

TEST_F(CApi, Verifies) {
  const auto stream = compressed();
  firn_comparison comparison;
  firn_comparison_init(&comparison);
  ASSERT_EQ(firn_verify(context_, &array_, stream.data(), stream.size(), &comparison), FIRN_OK);
  EXPECT_EQ(comparison.count, 2000u);
  EXPECT_EQ(comparison.violations, 0u);
  EXPECT_GT(comparison.psnr_db, 20);
  values_[99] += 5;
  EXPECT_EQ(firn_verify(context_, &array_, stream.data(), stream.size(), &comparison),
            FIRN_BOUND_EXCEEDED);
  EXPECT_EQ(comparison.violations, 1u);
  EXPECT_EQ(comparison.first_violation, 99u);
  expect_message("99");
  EXPECT_EQ(firn_verify(context_, &array_, stream.data(), stream.size(), nullptr),
            FIRN_BOUND_EXCEEDED);
}

// A program built against an older, shorter struct.
TEST_F(CApi, TakesShorterStructs) {
  const auto stream = compressed();
  firn_options shorter = options_;
  shorter.struct_size = offsetof(firn_options, chunk_rank);
  std::memset(reinterpret_cast<char*>(&shorter) + shorter.struct_size, 0xEE,
              sizeof shorter - shorter.struct_size);
  void* bytes = nullptr;
  size_t size = 0;
  ASSERT_EQ(firn_compress(context_, &array_, &shorter, &bytes, &size), FIRN_OK);
  EXPECT_EQ(size, stream.size());
  firn_free(bytes);

  firn_info info;
  std::memset(&info, 0x77, sizeof info);
  info.struct_size = offsetof(firn_info, extents);
  ASSERT_EQ(firn_inspect(context_, stream.data(), stream.size(), &info), FIRN_OK);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.struct_size, offsetof(firn_info, extents));
  EXPECT_EQ(info.extents[0], 0x7777777777777777u) << "beyond what the caller has";
}

TEST_F(CApi, BadArgumentsAreStatuses) {
  void* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(firn_compress(nullptr, &array_, &options_, &bytes, &size), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_compress(context_, nullptr, &options_, &bytes, &size), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_compress(context_, &array_, nullptr, &bytes, &size), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_compress(context_, &array_, &options_, nullptr, &size), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_compress(context_, &array_, &options_, &bytes, nullptr), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_compress_into(context_, &array_, &options_, nullptr, 10, &size),
            FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_inspect(context_, nullptr, 0, nullptr), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_worst_case_size(nullptr, &array_, &options_), 0u);
  firn_array uninitialised;
  std::memset(&uninitialised, 0, sizeof uninitialised);
  EXPECT_EQ(firn_compress(context_, &uninitialised, &options_, &bytes, &size),
            FIRN_INVALID_ARGUMENT);

  firn_array array = array_;
  array.type = 9;
  EXPECT_EQ(firn_compress(context_, &array, &options_, &bytes, &size), FIRN_INVALID_ARGUMENT);
  for (const int32_t rank : {0, 5, -1, 1000000}) {
    array = array_;
    array.rank = rank;
    EXPECT_EQ(firn_compress(context_, &array, &options_, &bytes, &size), FIRN_INVALID_ARGUMENT);
    EXPECT_EQ(firn_worst_case_size(context_, &array, &options_), 0u);
  }
  firn_options options = options_;
  options.bound = 17;
  EXPECT_EQ(firn_compress(context_, &array_, &options, &bytes, &size), FIRN_INVALID_ARGUMENT);
  expect_message("firn_options.bound is 17; there are FIRN_LOSSLESS (0), FIRN_ABS");
  options = options_;
  options.preset = -1;
  EXPECT_EQ(firn_compress(context_, &array_, &options, &bytes, &size), FIRN_INVALID_ARGUMENT);
  expect_message("firn_options.preset is -1; there are FIRN_FAST (0)");
  options = options_;
  options.pipeline = "nothing";
  EXPECT_EQ(firn_compress(context_, &array_, &options, &bytes, &size), FIRN_INVALID_ARGUMENT);
  expect_message("nothing");
  options = options_;
  options.bound_value = -1;
  EXPECT_EQ(firn_compress(context_, &array_, &options, &bytes, &size), FIRN_INVALID_ARGUMENT);
  expect_message("-1");
  EXPECT_EQ(bytes, nullptr);
  const auto stream = compressed();
  EXPECT_EQ(firn_decompress_region(context_, stream.data(), stream.size(), nullptr, &array_),
            FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_decompress_region(nullptr, stream.data(), stream.size(), nullptr, &array_),
            FIRN_INVALID_ARGUMENT);
}

TEST_F(CApi, SalvagesAndTellsWhatIsLost) {
  options_.chunk_rank = 2;
  options_.chunk[0] = 10;
  options_.chunk[1] = 50;
  auto stream = compressed();
  const auto whole = test::decompressed<float>(stream, {40, 50});
  std::vector<float> decoded(2000);
  firn_array out = array_;
  out.data = decoded.data();
  std::size_t count = 9;
  ASSERT_EQ(firn_salvage(context_, stream.data(), stream.size(), &out, nullptr, 0, &count),
            FIRN_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(decoded, whole);

  stream[stream.size() / 2] ^= 4;
  EXPECT_EQ(firn_decompress(context_, stream.data(), stream.size(), &out), FIRN_CORRUPT);
  ASSERT_EQ(firn_salvage(context_, stream.data(), stream.size(), &out, nullptr, 0, &count),
            FIRN_OK);
  ASSERT_EQ(count, 1u);
  firn_damage damages[2] = {};
  damages[1].chunk = 77;
  ASSERT_EQ(firn_salvage(context_, stream.data(), stream.size(), &out, damages, 2, &count),
            FIRN_OK);
  const firn_damage& damage = damages[0];
  EXPECT_EQ(damage.status, FIRN_CORRUPT);
  EXPECT_EQ(damage.origin[0], 10 * damage.chunk);
  EXPECT_EQ(damage.origin[1], 0u);
  EXPECT_EQ(damage.extents[0], 10u);
  EXPECT_EQ(damage.extents[1], 50u);
  EXPECT_EQ(damages[1].chunk, 77u);
  for (std::size_t i = 0; i < 2000; ++i) {
    if (i / 500 == damage.chunk) {
      EXPECT_TRUE(std::isnan(decoded[i])) << i;
    } else {
      EXPECT_EQ(decoded[i], whole[i]) << i;
    }
  }

  const auto salvage = [&](std::size_t size, firn_damage* to, std::size_t* number) {
    return firn_salvage(context_, stream.data(), size, &out, to, 1, number);
  };
  EXPECT_EQ(salvage(stream.size(), nullptr, &count), FIRN_INVALID_ARGUMENT);
  expect_message("damages");
  EXPECT_EQ(salvage(stream.size(), damages, nullptr), FIRN_INVALID_ARGUMENT);
  expect_message("count");
  EXPECT_NE(salvage(3, damages, &count), FIRN_OK);
  EXPECT_EQ(firn_salvage(nullptr, stream.data(), stream.size(), &out, damages, 1, &count),
            FIRN_INVALID_ARGUMENT);
}

TEST_F(CApi, DamageIsAStatus) {
  auto stream = compressed();
  std::vector<float> decoded(2000);
  firn_array out = array_;
  out.data = decoded.data();
  EXPECT_EQ(firn_decompress(context_, stream.data(), stream.size() - 1, &out), FIRN_TRUNCATED);
  expect_message("chunk 0");
  stream[stream.size() / 2] ^= 4;
  EXPECT_EQ(firn_decompress(context_, stream.data(), stream.size(), &out), FIRN_CORRUPT);
  stream[0] = 'X';
  EXPECT_EQ(firn_decompress(context_, stream.data(), stream.size(), &out), FIRN_NOT_FIRN);
  EXPECT_EQ(firn_decompress(context_, nullptr, 0, &out), FIRN_NOT_FIRN);
}

TEST_F(CApi, AMessageIsOfTheLastCall) {
  array_.rank = 9;
  EXPECT_EQ(firn_worst_case_size(context_, &array_, &options_), 0u);
  EXPECT_STRNE(firn_context_error(context_), "");
  array_.rank = 2;
  EXPECT_NE(firn_worst_case_size(context_, &array_, &options_), 0u);
  EXPECT_STREQ(firn_context_error(context_), "");
}

TEST(CNames, AreThere) {
  EXPECT_STREQ(firn_status_name(FIRN_OK), "ok");
  EXPECT_STREQ(firn_status_name(FIRN_CANCELLED), "cancelled");
  EXPECT_STREQ(firn_status_name(static_cast<firn_status>(99)), "unknown");
  EXPECT_STREQ(firn_version(), version());
  EXPECT_STREQ(firn_simd_target(), simd_target());
  firn_context_free(nullptr);
  firn_array_init(nullptr);
  EXPECT_STRNE(firn_context_error(nullptr), "");
}

TEST(CNames, StatusesAreTheErrorCodes) {
  EXPECT_EQ(static_cast<int>(FIRN_INVALID_ARGUMENT), static_cast<int>(ErrorCode::invalid_argument));
  EXPECT_EQ(static_cast<int>(FIRN_BUFFER_TOO_SMALL), static_cast<int>(ErrorCode::buffer_too_small));
  EXPECT_EQ(static_cast<int>(FIRN_CORRUPT), static_cast<int>(ErrorCode::corrupt));
  EXPECT_EQ(static_cast<int>(FIRN_CANCELLED), static_cast<int>(ErrorCode::cancelled));
}

}  // namespace
}  // namespace firn
