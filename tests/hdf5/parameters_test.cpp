// The filter's numbers: both forms, and arbitrary ones, which a file may hold.
#include "hdf5/parameters.hpp"

#include <gtest/gtest.h>

#include <random>

#include "firn/hdf5_parameters.h"

namespace firn::hdf5 {
namespace {

FilterParameters stored_example() {
  FilterParameters parameters;
  parameters.request = {Bound::abs(1e-3), Preset::small, Pipeline::blockpack, {}};
  parameters.layout = {Type::f64, true, {7, 5, 3}, 1e20};
  return parameters;
}

void expect_same(const FilterParameters& a, const FilterParameters& b) {
  EXPECT_EQ(a.request.bound.kind, b.request.bound.kind);
  EXPECT_EQ(a.request.bound.value, b.request.bound.value);
  EXPECT_EQ(a.request.preset, b.request.preset);
  EXPECT_EQ(a.request.pipeline, b.request.pipeline);
  EXPECT_EQ(a.request.fill, b.request.fill);
  EXPECT_EQ(a.layout.type, b.layout.type);
  EXPECT_EQ(a.layout.big_endian, b.layout.big_endian);
  EXPECT_EQ(a.layout.shape, b.layout.shape);
  EXPECT_EQ(a.layout.fill, b.layout.fill);
}

TEST(Parameters, TheHeaderForCAndTheLibraryAgree) {
  unsigned words[FIRN_HDF5_PARAMETER_COUNT];
  firn_hdf5_parameters(firn_hdf5_abs(0.125), FIRN_SMALL, words);
  EXPECT_EQ(user_parameters({Bound::abs(0.125), Preset::small, Pipeline::automatic, {}}),
            std::vector<unsigned>(words, words + FIRN_HDF5_PARAMETER_COUNT));
}

TEST(Parameters, AUsersFormReturns) {
  for (const FilterRequest& request :
       {FilterRequest{Bound::abs(1e-3), Preset::fast, Pipeline::automatic, {}},
        FilterRequest{Bound::rel(1e-300), Preset::balanced, Pipeline::lorenzo, {}},
        FilterRequest{Bound::pwrel(1e-3), Preset::balanced, Pipeline::automatic, {}},
        FilterRequest{Bound::psnr(70), Preset::small, Pipeline::automatic, -9999.0},
        FilterRequest{Bound::lossless(), Preset::balanced, Pipeline::automatic, 1e20}}) {
    const Result<FilterParameters> parsed = parse_parameters(user_parameters(request));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_FALSE(parsed->stored());
    expect_same(*parsed, {request, {}});
  }
}

TEST(Parameters, TheStoredFormReturnsAndFits) {
  FilterParameters parameters = stored_example();
  for (const Shape& shape : {Shape{1}, Shape{3, std::uint64_t{1} << 33}, Shape{2, 3, 4, 5}}) {
    for (const bool given_by_user : {false, true}) {
      parameters.layout.shape = shape;
      parameters.layout.fill = given_by_user ? std::nullopt : std::optional<double>(1e20);
      parameters.request.fill = given_by_user ? std::optional<double>(-1) : std::nullopt;
      const std::vector<unsigned> words = stored_parameters(parameters);
      EXPECT_LE(words.size(), kMaxParameterWords);
      const Result<FilterParameters> parsed = parse_parameters(words);
      ASSERT_TRUE(parsed) << parsed.error().message;
      EXPECT_TRUE(parsed->stored());
      expect_same(*parsed, parameters);
    }
  }
}

TEST(Parameters, AUsersFillComesBeforeTheDatasets) {
  FilterParameters parameters = stored_example();
  EXPECT_EQ(parameters.options().fill, 1e20);
  parameters.request.fill = -9999;
  EXPECT_EQ(parameters.options().fill, -9999);
}

TEST(Parameters, ANewerLayoutSaysSo) {
  std::vector<unsigned> words = stored_parameters(stored_example());
  words[1] = 2;
  const Result<FilterParameters> parsed = parse_parameters(words);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::newer_version);
}

TEST(Parameters, NoCutOfTheStoredFormPassesForTheWhole) {
  const std::vector<unsigned> words = stored_parameters(stored_example());
  for (std::size_t count = 0; count < words.size(); ++count) {
    const Result<FilterParameters> parsed = parse_parameters({words.data(), count});
    // Whole extents may be missing: that is a smaller chunk, which the stream then contradicts.
    EXPECT_TRUE(!parsed || parsed->layout.shape != stored_example().layout.shape);
  }
}

TEST(Parameters, ArbitraryWordsGiveAnErrorOrParametersThatCanBeUsed) {
  std::mt19937 random(1);
  const std::vector<unsigned> valid = stored_parameters(stored_example());
  std::size_t accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<unsigned> words = valid;
    if (round % 2 == 0) {
      words.resize(random() % 20);
      for (unsigned& word : words) word = random() % 4 == 0 ? random() : random() % 4;
    } else {
      words[random() % words.size()] = random() >> random() % 32;
    }
    const Result<FilterParameters> parsed = parse_parameters(words);
    if (!parsed) continue;
    ++accepted;
    if (!parsed->stored()) continue;
    EXPECT_GT(parsed->layout.shape.count(), 0u);
    EXPECT_LE(parsed->layout.size_bytes(), std::uint64_t{8} << 56);
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(Parameters, ChunksAreSeenWithAtMostFourAxes) {
  const auto shape = [](std::vector<unsigned long long> extents) { return chunk_shape(extents); };
  EXPECT_EQ(shape({7}), (Shape{7}));
  EXPECT_EQ(shape({1, 1}), (Shape{1}));
  EXPECT_EQ(shape({1, 5, 1, 6}), (Shape{5, 6}));
  EXPECT_EQ(shape({2, 3, 4, 5, 6}), (Shape{6, 4, 5, 6}));
  EXPECT_EQ(shape({2, 3, 4, 5, 1, 6, 7}), (Shape{24, 5, 6, 7}));
}

}  // namespace
}  // namespace firn::hdf5
