#include "access_pattern.hpp"

#include <gtest/gtest.h>

namespace firn::store {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::map<std::uint64_t, int> frames(std::uint64_t count, std::uint64_t step) {
  std::map<std::uint64_t, int> all;
  for (std::uint64_t i = 0; i < count; ++i) all[i * step] = 0;
  return all;
}

TEST(AccessPattern, NothingIsExpectedBeforeTheFirstRead) {
  EXPECT_EQ(AccessPattern().expected(frames(10, 1), 3), Numbers{});
}

TEST(AccessPattern, ReverseIsAssumedAtOnce) {
  AccessPattern pattern;
  const auto all = frames(10, 5);
  pattern.note(all, 45);
  EXPECT_EQ(pattern.expected(all, 3), (Numbers{40, 35, 30}));
  pattern.note(all, 40);
  EXPECT_EQ(pattern.expected(all, 2), (Numbers{35, 30}));
  pattern.note(all, 5);
  EXPECT_EQ(pattern.expected(all, 3), (Numbers{0}));  // and no further
}

TEST(AccessPattern, ForwardIsAssumedFromTheFirstFrame) {
  AccessPattern pattern;
  const auto all = frames(10, 2);
  pattern.note(all, 0);
  EXPECT_EQ(pattern.expected(all, 3), (Numbers{2, 4, 6}));
}

TEST(AccessPattern, AStrideIsTakenOnceItRepeats) {
  AccessPattern pattern;
  const auto all = frames(100, 1);
  pattern.note(all, 90);
  pattern.note(all, 87);
  EXPECT_EQ(pattern.expected(all, 1), (Numbers{86}));
  pattern.note(all, 84);
  EXPECT_EQ(pattern.expected(all, 3), (Numbers{81, 78, 75}));
  pattern.note(all, 84);  // again: no news
  EXPECT_EQ(pattern.expected(all, 1), (Numbers{81}));
}

TEST(AccessPattern, OneJumpDoesNotChangeIt) {
  AccessPattern pattern;
  const auto all = frames(200, 1);
  for (const std::uint64_t number : {10, 11, 12, 13, 150}) pattern.note(all, number);
  EXPECT_EQ(pattern.expected(all, 2), (Numbers{151, 152}));
}

}  // namespace
}  // namespace firn::store
