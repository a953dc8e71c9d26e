// The frame store's promises under every policy: what was put comes back, in any order; the budget
// is kept; waiting is for servants only.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "store/store_support.hpp"

namespace firn::test {
namespace {

constexpr StorePolicy kPolicies[] = {StorePolicy::memory, StorePolicy::disk,
                                     StorePolicy::compressed_memory, StorePolicy::compressed_disk,
                                     StorePolicy::automatic};
constexpr std::uint64_t kFrames = 25;

class EveryPolicy : public ::testing::TestWithParam<StorePolicy> {
 protected:
  StoreOptions options() const {
    StoreOptions options = store_options(GetParam(), folder_.file("frames"));
    options.temporary = true;
    return options;
  }
  Folder folder_;
};
INSTANTIATE_TEST_SUITE_P(Store, EveryPolicy, ::testing::ValuesIn(kPolicies), [](const auto& param) {
  std::string name = name_of(param.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryPolicy, FramesComeBackInReverse) {
  for (const int servants : {1, 3}) {
    StoreOptions given = options();
    given.servants = servants;
    auto store = FrameStore::create(given);
    ASSERT_TRUE(store.ok()) << store.error().message;
    for (std::uint64_t i = 0; i < kFrames; ++i) ASSERT_TRUE(put_frame(*store, 7 * i).ok());
    for (std::uint64_t i = kFrames; i-- > 0;) ASSERT_TRUE(holds_frame(*store, 7 * i));
    const StoreStats stats = store->stats();
    EXPECT_EQ(stats.puts, kFrames);
    EXPECT_EQ(stats.gets, kFrames);
    EXPECT_TRUE(store->close().ok());
  }
}

TEST_P(EveryPolicy, FramesComeBackInAnyOrder) {
  auto store = FrameStore::create(options());
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < kFrames; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  for (std::uint64_t i = 0; i < kFrames; ++i) ASSERT_TRUE(holds_frame(*store, i));
  for (std::uint64_t i = 0; i < kFrames; i += 3) ASSERT_TRUE(holds_frame(*store, i));
  for (std::uint64_t i = 0; i < 60; ++i) ASSERT_TRUE(holds_frame(*store, i * i * 7 % kFrames));
  EXPECT_EQ(store->numbers().size(), kFrames);
}

TEST_P(EveryPolicy, PutAndGetInTurn) {
  auto store = FrameStore::create(options());
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(put_frame(*store, i).ok());
    ASSERT_TRUE(holds_frame(*store, i / 2));
  }
}

TEST_P(EveryPolicy, PuttingANumberAgainReplacesTheFrame) {
  auto store = FrameStore::create(options());
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  const std::vector<float> other = frame_values(99);
  for (std::uint64_t i = 0; i < 10; i += 2) {
    ASSERT_TRUE(store->put(i, view(other.data(), kFrame)).ok());
  }
  for (std::uint64_t i = 10; i-- > 0;) {
    const auto held = store->hold(i);
    ASSERT_TRUE(held.ok());
    EXPECT_TRUE(is_frame(static_cast<const float*>(held->data()), i % 2 == 0 ? 99 : i));
  }
}

TEST_P(EveryPolicy, HeldFramesStayAsTheyAre) {
  StoreOptions given = options();
  given.get_buffers = 4;
  auto store = FrameStore::create(given);
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < kFrames; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  auto first = store->hold(3);
  auto second = store->hold(20);
  ASSERT_TRUE(first.ok() && second.ok());
  for (std::uint64_t i = kFrames; i-- > 0;) ASSERT_TRUE(holds_frame(*store, i));
  EXPECT_TRUE(is_frame(static_cast<const float*>(first->data()), 3));
  EXPECT_TRUE(is_frame(static_cast<const float*>(second->data()), 20));
  EXPECT_FALSE(put_frame(*store, 3).ok());  // held: it may not change under the reader
  EXPECT_TRUE(store->close().ok());
  EXPECT_TRUE(is_frame(static_cast<const float*>(first->data()), 3));
}

TEST_P(EveryPolicy, StridedViewsGoInAndOut) {
  auto store = FrameStore::create(options());
  ASSERT_TRUE(store.ok()) << store.error().message;
  const std::vector<float> expected = frame_values(5);
  const std::int64_t pitch = 31, plane = 31 * 23;
  std::vector<float> padded(static_cast<std::size_t>(plane) * 14, -1.0f);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    padded[i / 480 * 713 + i / 24 % 20 * 31 + i % 24 + 40] = expected[i];
  }
  ArrayView from = view(padded.data() + 40, kFrame);
  from.strides = {plane, pitch, 1, 0};
  ASSERT_TRUE(store->put(5, from).ok());
  // Out with the fastest axis strided.
  std::vector<float> spread(2 * expected.size());
  MutableArrayView to = mutable_view(spread.data(), kFrame);
  to.strides = {960, 48, 2, 0};
  ASSERT_TRUE(store->get(5, to).ok());
  std::vector<float> values(expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = spread[2 * i];
  EXPECT_TRUE(is_frame(values.data(), 5));
}

TEST_P(EveryPolicy, ManyThreadsAtOnce) {
  StoreOptions given = options();
  given.servants = 2;
  given.get_buffers = 6;
  auto store = FrameStore::create(given);
  ASSERT_TRUE(store.ok()) << store.error().message;
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (std::uint64_t user = 0; user < 3; ++user) {
    users.emplace_back([&, user] {
      for (std::uint64_t i = 0; i < 12; ++i) {
        if (!put_frame(*store, user * 100 + i).ok()) ++wrong;
      }
      for (std::uint64_t i = 12; i-- > 0;) {
        if (!holds_frame(*store, user * 100 + i)) ++wrong;
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryPolicy, MissingFramesAndWrongShapesAreErrors) {
  auto store = FrameStore::create(options());
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_TRUE(put_frame(*store, 1).ok());
  std::vector<float> values(kFrame.count());
  const Status missing = store->get(2, mutable_view(values.data(), kFrame));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(missing.error().message.find("frame 2 "), std::string::npos);
  EXPECT_FALSE(store->put(2, view(values.data(), Shape{24, 20, 12})).ok());
  EXPECT_FALSE(store->contains(2));
  EXPECT_TRUE(store->close().ok());
  EXPECT_FALSE(put_frame(*store, 3).ok());  // closed
}

TEST(Store, ReadsAheadInReverseForwardAndWithAStride) {
  Folder folder;
  auto store = FrameStore::create(store_options(StorePolicy::compressed_disk, folder.file("s")));
  ASSERT_TRUE(store.ok()) << store.error().message;
  constexpr std::uint64_t kMany = 60;
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_TRUE(put_frame(*store, 3 * i).ok());
  const auto share_ready = [&](std::uint64_t first, std::int64_t step, int count) {
    const std::uint64_t before = store->stats().gets_ready;
    auto number = static_cast<std::int64_t>(first);
    for (int i = 0; i < count; ++i, number += step) {
      EXPECT_TRUE(holds_frame(*store, static_cast<std::uint64_t>(number)));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the caller computes
    }
    return static_cast<double>(store->stats().gets_ready - before) / count;
  };
  // The reader is slower than the servant, so all but the first few are waiting in memory. Some
  // slack for a busy machine.
  EXPECT_GT(share_ready(3 * (kMany - 1), -3, 59), 0.7);
  EXPECT_GT(share_ready(0, 3, 59), 0.7);
  EXPECT_GT(share_ready(3 * (kMany - 1), -9, 19), 0.6);
}

TEST(Store, KeepsItsBudget) {
  Folder folder;
  StoreOptions options = store_options(StorePolicy::automatic, folder.file("s"));
  const std::uint64_t slot = (kFrame.count() * 4 + 64 + 4095) / 4096 * 4096;
  options.memory_budget = 14 * slot;
  auto refused = options;
  refused.memory_budget = 5 * slot;
  EXPECT_FALSE(FrameStore::create(refused).ok());  // not even the buffers fit
  options.memory_budget += 64 * kFrame.count();
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < 120; ++i) {
    ASSERT_TRUE(put_frame(*store, i).ok());
    ASSERT_LE(store->stats().memory_bytes, options.memory_budget);
  }
  for (std::uint64_t i = 120; i-- > 0;) ASSERT_TRUE(holds_frame(*store, i));
  const StoreStats stats = store->stats();
  EXPECT_LE(stats.memory_bytes_max, options.memory_budget);
  EXPECT_GT(stats.memory_bytes_max, options.memory_budget / 2);
  EXPECT_GT(stats.written_bytes, 0u);  // memory alone did not do
  EXPECT_LT(stats.written_bytes, 120 * slot / 2);
}

TEST(Store, AutomaticCompressesNothingWhileMemoryLasts) {
  StoreOptions options = store_options(StorePolicy::automatic);
  options.memory_budget = std::uint64_t{64} << 20;
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  EXPECT_EQ(store->stats().frames_encoded, 0u);
}

TEST(Store, AFullBudgetIsReportedAtTheNextCall) {
  for (const StorePolicy policy : {StorePolicy::memory, StorePolicy::compressed_memory}) {
    StoreOptions options = store_options(policy);
    options.memory_budget = (std::uint64_t{2} << 20);
    options.compression.bound = Bound::lossless();
    options.compression.pipeline = Pipeline::raw;
    auto store = FrameStore::create(options);
    ASSERT_TRUE(store.ok()) << store.error().message;
    Status status = std::monostate{};
    std::uint64_t number = 0;
    while (status.ok() && number < 1000) status = put_frame(*store, number++);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(status.error().message.find("budget"), std::string::npos);
    // Frames that were under way are lost too, each with a report of its own.
    for (int reports = 0; reports < 20 && !store->flush().ok(); ++reports) continue;
    EXPECT_TRUE(holds_frame(*store, 0));  // the others are as they were
  }
}

TEST(Store, HoldingEveryBufferIsAnErrorAndNoDeadlock) {
  Folder folder;
  auto store = FrameStore::create(store_options(StorePolicy::disk, folder.file("s")));
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  std::vector<HeldFrame> held;
  for (std::uint64_t i = 0; i < 4; ++i) {
    auto frame = store->hold(i);
    ASSERT_TRUE(frame.ok()) << frame.error().message;
    held.push_back(std::move(*frame));
  }
  EXPECT_FALSE(store->hold(7).ok());
  EXPECT_FALSE(put_frame(*store, 30).ok());
  held.pop_back();
  EXPECT_TRUE(holds_frame(*store, 7));
}

TEST(Store, OptionsThatCannotBeAreErrors) {
  const auto refused = [](auto change) {
    StoreOptions options = store_options(StorePolicy::compressed_memory);
    change(options);
    const auto store = FrameStore::create(options);
    return !store.ok() && !store.error().message.empty();
  };
  EXPECT_FALSE(refused([](StoreOptions&) {}));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.shape = {}; }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.shape = {0, 3}; }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.servants = 0; }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.put_buffers = 0; }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.policy = StorePolicy::disk; }));  // no path
  EXPECT_TRUE(refused([](StoreOptions& o) { o.memory_budget = 1000; }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.compression.bound = Bound::abs(-1); }));
  EXPECT_TRUE(refused([](StoreOptions& o) { o.servant_cores = {100000}; }));
}

TEST(Store, PolicyNamesGoBothWays) {
  for (const StorePolicy policy : kPolicies) {
    EXPECT_EQ(*parse_store_policy(name_of(policy)), policy);
  }
  EXPECT_EQ(*parse_store_policy("auto"), StorePolicy::automatic);
  EXPECT_FALSE(parse_store_policy("disc").ok());
}

#ifdef FIRN_WITH_HWLOC
TEST(Store, ServantsCanBeBoundToACore) {
  StoreOptions options = store_options(StorePolicy::compressed_memory);
  options.servant_cores = {0};
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_TRUE(put_frame(*store, 1).ok());
  EXPECT_TRUE(holds_frame(*store, 1));
}
#endif

}  // namespace
}  // namespace firn::test
