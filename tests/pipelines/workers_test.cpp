// The parallel loops: every number once, results in order, early ends.
#include "pipelines/workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace firn::pipelines {
namespace {

TEST(Workers, VisitEveryNumberOnce) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    for (const std::uint64_t count : {0u, 1u, 2u, 1000u}) {
      std::vector<std::atomic<int>> seen(count);
      workers.for_each(count, [&](std::uint64_t number, Workspace&) {
        ++seen[number];
        return true;
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Workers, TakeResultsInOrder) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    std::vector<std::uint64_t> slots(workers.slots()), taken;
    workers.ordered(
        500,
        [&](std::uint64_t number, std::size_t slot, Workspace&) { slots[slot] = number * number; },
        [&](std::uint64_t number, std::size_t slot) {
          EXPECT_EQ(slots[slot], number * number);
          taken.push_back(number);
          return true;
        });
    ASSERT_EQ(taken.size(), 500u);
    for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(taken[i], i);
  }
}

TEST(Workers, EndEarlyWhenAsked) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    std::atomic<int> visited{0};
    workers.for_each(100000, [&](std::uint64_t, Workspace&) { return ++visited < 10; });
    EXPECT_GE(visited, 10);
    EXPECT_LT(visited, 1000);
    int taken = 0;
    workers.ordered(
        100000, [&](std::uint64_t, std::size_t, Workspace&) {},
        [&](std::uint64_t, std::size_t) { return ++taken < 10; });
    EXPECT_EQ(taken, 10);
  }
}

TEST(Workers, GiveEachThreadItsOwnWorkspace) {
  Workers workers(4);
  std::vector<std::atomic<bool>> busy(4);
  workers.for_each(2000, [&](std::uint64_t, Workspace& workspace) {
    const auto index = static_cast<std::size_t>(workspace.thread);
    EXPECT_LT(index, 4u);
    EXPECT_FALSE(busy[index].exchange(true));
    busy[index] = false;
    return true;
  });
}

}  // namespace
}  // namespace firn::pipelines
