// The C interface: the same store behind a handle.
#include <firn/store.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/store_support.hpp"

namespace firn::test {
namespace {

firn_array array_of(const std::vector<float>& values) {
  firn_array array;
  firn_array_init(&array);
  array.data = values.data();
  array.type = FIRN_F32;
  array.rank = 3;
  for (std::size_t k = 0; k < 3; ++k) array.extents[k] = kFrame.extents[k];
  return array;
}

firn_store_options c_options(firn_store_policy policy, const char* path) {
  firn_store_options options;
  firn_store_options_init(&options);
  options.policy = policy;
  options.rank = 3;
  for (std::size_t k = 0; k < 3; ++k) options.extents[k] = kFrame.extents[k];
  options.compression.bound = FIRN_ABS;
  options.compression.bound_value = kBound;
  options.path = path;
  return options;
}

TEST(StoreC, FramesGoAndComeBack) {
  Folder folder;
  const std::string path = folder.file("s");
  const firn_store_options options = c_options(FIRN_STORE_COMPRESSED_DISK, path.c_str());
  firn_store* store = nullptr;
  ASSERT_EQ(firn_store_create(&options, &store), FIRN_OK) << firn_store_error(store);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::vector<float> values = frame_values(i);
    const firn_array array = array_of(values);
    ASSERT_EQ(firn_store_put(store, i, &array), FIRN_OK);
  }
  for (std::uint64_t i = 12; i-- > 0;) {
    const void* values = nullptr;
    ASSERT_EQ(firn_store_hold(store, i, &values), FIRN_OK) << firn_store_error(store);
    EXPECT_TRUE(is_frame(static_cast<const float*>(values), i));
    EXPECT_EQ(firn_store_release(store, i), FIRN_OK);
  }
  EXPECT_EQ(firn_store_release(store, 3), FIRN_INVALID_ARGUMENT);
  EXPECT_EQ(firn_store_contains(store, 3), 1);
  EXPECT_EQ(firn_store_contains(store, 30), 0);
  firn_store_stats stats;
  firn_store_stats_init(&stats);
  ASSERT_EQ(firn_store_get_stats(store, &stats), FIRN_OK);
  EXPECT_EQ(stats.puts, 12u);
  EXPECT_GT(stats.encoded_raw_bytes, stats.encoded_bytes);
  EXPECT_EQ(firn_store_flush(store), FIRN_OK);
  EXPECT_EQ(firn_store_close(store), FIRN_OK);
  firn_store_free(store);

  ASSERT_EQ(firn_store_open(&options, &store), FIRN_OK) << firn_store_error(store);
  const std::vector<float> decoded(kFrame.count());
  const firn_array array = array_of(decoded);
  ASSERT_EQ(firn_store_get(store, 5, &array), FIRN_OK);
  EXPECT_TRUE(is_frame(decoded.data(), 5));
  firn_store_free(store);
}

TEST(StoreC, FailuresHaveAMessage) {
  firn_store* store = nullptr;
  firn_store_options options = c_options(FIRN_STORE_DISK, "/no/such/folder/s");
  EXPECT_EQ(firn_store_create(&options, &store), FIRN_IO_ERROR);
  EXPECT_NE(std::string(firn_store_error(store)).find("No such file"), std::string::npos);
  EXPECT_EQ(firn_store_flush(store), FIRN_INVALID_ARGUMENT);
  firn_store_free(store);
  options = c_options(FIRN_STORE_MEMORY, nullptr);
  options.type = 7;
  EXPECT_EQ(firn_store_create(&options, &store), FIRN_INVALID_ARGUMENT);
  firn_store_free(store);
  EXPECT_EQ(firn_store_create(nullptr, &store), FIRN_INVALID_ARGUMENT);
  firn_store_free(store);
  EXPECT_EQ(firn_store_put(nullptr, 1, nullptr), FIRN_INVALID_ARGUMENT);
  options = c_options(FIRN_STORE_MEMORY, nullptr);
  ASSERT_EQ(firn_store_create(&options, &store), FIRN_OK);
  EXPECT_EQ(firn_store_put(store, 1, nullptr), FIRN_INVALID_ARGUMENT);
  const void* values = nullptr;
  EXPECT_EQ(firn_store_hold(store, 1, &values), FIRN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(firn_store_error(store)).find("frame 1 "), std::string::npos);
  firn_store_free(store);
}

}  // namespace
}  // namespace firn::test
