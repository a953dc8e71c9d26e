// What goes wrong with disks, processes and files: every failure is reported, nothing hangs, and
// frames are there whole or not at all.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/store_support.hpp"

namespace firn::test {
namespace {

constexpr StorePolicy kFilePolicies[] = {StorePolicy::disk, StorePolicy::compressed_disk};
constexpr std::size_t kBlock = 4096;

// Fills the store until a call reports a failure; returns it.
Status fill(FrameStore& store, std::uint64_t* number) {
  Status status = std::monostate{};
  while (status.ok() && *number < 100000) status = put_frame(store, (*number)++);
  return status;
}

void expect_full_disk(FrameStore& store) {
  std::uint64_t number = 0;
  const Status status = fill(store, &number);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::io_error);
  EXPECT_NE(status.error().message.find("is lost: cannot write frame"), std::string::npos)
      << status.error().message;
  const Status unseen = store.flush();  // frames that were on their way may have failed as well
  std::uint64_t whole = 0, lost = 0;
  std::vector<float> values(kFrame.count());
  for (std::uint64_t i = 0; i < number; ++i) {
    if (store.contains(i)) {
      // A failure of another frame may be reported by the first call after it.
      const bool first = static_cast<bool>(holds_frame(store, i));
      EXPECT_TRUE(first || holds_frame(store, i));
      ++whole;
    } else {
      EXPECT_FALSE(store.get(i, mutable_view(values.data(), kFrame)).ok());
      ++lost;
    }
  }
  EXPECT_GT(whole, 2u);
  EXPECT_GT(lost, 0u);
}

TEST(StoreFailures, AFileThatMayNotGrowIsReported) {
  for (const StorePolicy policy : kFilePolicies) {
    Folder folder;
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{300000, 300000};
      setrlimit(RLIMIT_FSIZE, &limit);
      auto store = FrameStore::create(store_options(policy, folder.file("s")));
      if (!store.ok()) _exit(9);
      expect_full_disk(*store);
      const Status closed = store->close();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << name_of(policy) << " " << state;
    // And what was stored can be read by the next process.
    auto again = FrameStore::open(store_options(policy, folder.file("s")));
    ASSERT_TRUE(again.ok()) << again.error().message;
    const auto numbers = again->numbers();
    EXPECT_GT(numbers.size(), 2u);
    for (const std::uint64_t number : numbers) EXPECT_TRUE(holds_frame(*again, number));
  }
}

TEST(StoreFailures, AFullFileSystemIsReported) {
  Folder folder;
  const std::string mount_point = folder.file("full");
  std::filesystem::create_directory(mount_point);
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=400k") != 0) {
    GTEST_SKIP() << "only root can mount a small file system";
  }
  for (const StorePolicy policy : kFilePolicies) {
    auto store = FrameStore::create(store_options(policy, mount_point + "/s"));
    ASSERT_TRUE(store.ok()) << store.error().message;
    expect_full_disk(*store);
    const Status closed = store->close();
    std::filesystem::remove(mount_point + "/s");
  }
  EXPECT_EQ(umount(mount_point.c_str()), 0);
}

TEST(StoreFailures, ADirectoryThatIsNotThereIsReported) {
  Folder folder;
  const auto store = FrameStore::create(store_options(StorePolicy::disk, folder.file("no/s")));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::io_error);
  EXPECT_NE(store.error().message.find("No such file"), std::string::npos);
}

TEST(StoreFailures, TwoStoresDoNotShareAFile) {
  Folder folder;
  StoreOptions options = store_options(StorePolicy::disk, folder.file("s"));
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_TRUE(put_frame(*store, 4).ok());
  EXPECT_FALSE(FrameStore::open(options).ok());
  options.replace = true;
  EXPECT_FALSE(FrameStore::create(options).ok());
  EXPECT_TRUE(store->close().ok());
  options.replace = false;
  EXPECT_FALSE(FrameStore::create(options).ok());  // an existing file is not overwritten
  EXPECT_TRUE(FrameStore::open(options).ok());
}

TEST(StoreFailures, AKilledProcessLeavesWholeFrames) {
  for (const StorePolicy policy : kFilePolicies) {
    Folder folder;
    StoreOptions options = store_options(policy, folder.file("s"));
    options.shape = Shape{40, 50, 60};
    const pid_t child = fork();
    if (child == 0) {
      auto store = FrameStore::create(options);
      for (std::uint64_t i = 0; store.ok(); ++i) {
        if (!put_frame(*store, i % 50).ok()) break;
      }
      _exit(1);
    }
    // Wherever it is by then: within a frame, as like as not, and behind several whole ones.
    for (int i = 0; i < 6000; ++i) {
      usleep(10000);
      std::error_code none;
      const auto size = std::filesystem::file_size(options.path, none);
      if (!none && size > 1500000) break;
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    ASSERT_TRUE(WIFSIGNALED(state));

    auto again = FrameStore::open(options);
    ASSERT_TRUE(again.ok()) << again.error().message;
    const auto numbers = again->numbers();
    EXPECT_GT(numbers.size(), 0u);
    EXPECT_EQ(again->stats().recovered_frames, numbers.size());
    for (const std::uint64_t number : numbers) EXPECT_TRUE(holds_frame(*again, number));
    // And the store goes on.
    ASSERT_TRUE(put_frame(*again, 1000).ok());
    ASSERT_TRUE(again->close().ok());
    auto third = FrameStore::open(options);
    ASSERT_TRUE(third.ok()) << third.error().message;
    EXPECT_EQ(third->stats().recovered_frames, 0u);  // this time there is an index
    EXPECT_TRUE(holds_frame(*third, 1000));
    EXPECT_TRUE(holds_frame(*third, numbers.front()));
  }
}

class StoredFile : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = store_options(StorePolicy::compressed_disk, folder_.file("s"));
    auto store = FrameStore::create(options_);
    ASSERT_TRUE(store.ok()) << store.error().message;
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
    ASSERT_TRUE(put_frame(*store, 2).ok());  // twice: the file has an old record of it
    ASSERT_TRUE(store->close().ok());
    bytes_ = read_file(options_.path);
    ASSERT_EQ(bytes_.size() % kBlock, 0u);
  }
  // Frames that can be read, among the 8; -1 when the file cannot be opened.
  int readable() {
    write_file(options_.path, bytes_);
    auto store = FrameStore::open(options_);
    if (!store.ok()) return -1;
    int count = 0;
    std::vector<float> values(kFrame.count());
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Status status = store->get(i, mutable_view(values.data(), kFrame));
      if (!status.ok()) continue;
      EXPECT_TRUE(is_frame(values.data(), i));  // never wrong values
      ++count;
    }
    damaged_ = store->stats().damaged_records;
    return count;
  }
  Folder folder_;
  StoreOptions options_;
  std::vector<char> bytes_;
  std::uint64_t damaged_ = 0;
};

TEST_F(StoredFile, CanBeOpenedAgain) {
  EXPECT_EQ(readable(), 8);
  EXPECT_EQ(damaged_, 0u);
}

TEST_F(StoredFile, EveryTruncationLeavesWholeFrames) {
  const std::vector<char> whole = bytes_;
  int before = 0;
  for (std::size_t size = kBlock; size < whole.size(); size += 512) {
    bytes_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const int count = readable();
    EXPECT_GE(count, before) << size;  // a longer file holds more frames
    before = count;
  }
  EXPECT_EQ(before, 8);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{60}}) {
    bytes_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(readable(), -1);
  }
}

TEST_F(StoredFile, DamageCostsOneFrameAndIsReported) {
  const std::vector<char> whole = bytes_;
  for (std::size_t at = kBlock + 13; at < whole.size(); at += 1111) {
    bytes_ = whole;
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x20);
    const int count = readable();
    EXPECT_GE(count, 7) << at;
    // Without the index (its last bytes cut off) too.
    bytes_.erase(bytes_.end() - 16, bytes_.end());
    EXPECT_GE(readable(), 7) << at;
  }
}

TEST_F(StoredFile, DamageInTheHeadIsReported) {
  const std::vector<char> whole = bytes_;
  for (std::size_t at = 0; at < 80; ++at) {
    bytes_ = whole;
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x01);
    EXPECT_EQ(readable(), -1) << at;
  }
}

TEST_F(StoredFile, ADamagedFrameSaysWhichOneItIs) {
  // The first record's payload.
  bytes_[kBlock + 100] = static_cast<char>(bytes_[kBlock + 100] ^ 1);
  write_file(options_.path, bytes_);
  auto store = FrameStore::open(options_);
  ASSERT_TRUE(store.ok()) << store.error().message;
  std::vector<float> values(kFrame.count());
  const Status status = store->get(0, mutable_view(values.data(), kFrame));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::corrupt);
  EXPECT_NE(status.error().message.find("frame 0 is damaged"), std::string::npos);
  EXPECT_TRUE(holds_frame(*store, 1));
}

TEST_F(StoredFile, AFileThatShrinksUnderTheStoreIsReported) {
  auto store = FrameStore::open(options_);
  ASSERT_TRUE(store.ok()) << store.error().message;
  std::filesystem::resize_file(options_.path, 2 * kBlock);
  std::vector<float> values(kFrame.count());
  const Status status = store->get(7, mutable_view(values.data(), kFrame));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::truncated);
}

TEST_F(StoredFile, OtherFilesAreRefused) {
  bytes_.assign(10000, 'x');
  write_file(options_.path, bytes_);
  const auto store = FrameStore::open(options_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::not_firn);
}

TEST(StoreFailures, DirectInputAndOutputGivesTheSameFile) {
  Folder folder;
  StoreOptions options = store_options(StorePolicy::disk, folder.file("s"));
  options.direct = true;
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  for (std::uint64_t i = 20; i-- > 0;) ASSERT_TRUE(holds_frame(*store, i));
  ASSERT_TRUE(store->close().ok());
  options.direct = false;
  auto again = FrameStore::open(options);
  ASSERT_TRUE(again.ok()) << again.error().message;
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(holds_frame(*again, i));
}

TEST(StoreFailures, ATemporaryFileLeavesNothing) {
  Folder folder;
  StoreOptions options = store_options(StorePolicy::compressed_disk, folder.file("s"));
  options.temporary = true;
  auto store = FrameStore::create(options);
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_FALSE(std::filesystem::exists(options.path));
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(put_frame(*store, i).ok());
  EXPECT_TRUE(holds_frame(*store, 3));
}

}  // namespace
}  // namespace firn::test
