// Frames and folders for the tests of the frame store.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <firn/store.hpp>
#include <fstream>
#include <string>
#include <vector>

namespace firn::test {

inline const Shape kFrame{12, 20, 24};

// A smooth frame that differs from every other one.
inline std::vector<float> frame_values(std::uint64_t number, const Shape& shape = kFrame) {
  std::vector<float> values(shape.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(number) * 10.0f + static_cast<float>(i % 97) * 0.01f;
  }
  return values;
}

inline constexpr double kBound = 0.004;

// True when the decoded values are those of that frame within the bound.
inline bool is_frame(const float* values, std::uint64_t number, const Shape& shape = kFrame) {
  const std::vector<float> expected = frame_values(number, shape);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(double{values[i]} - double{expected[i]}) <= kBound)) return false;
  }
  return true;
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "firn-store-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline StoreOptions store_options(StorePolicy policy, const std::string& path = {}) {
  StoreOptions options;
  options.policy = policy;
  options.shape = kFrame;
  options.path = path;
  options.compression.bound = Bound::abs(kBound);
  options.compression.preset = Preset::fast;
  return options;
}

inline Status put_frame(FrameStore& store, std::uint64_t number) {
  const std::vector<float> values = frame_values(number, store.shape());
  return store.put(number, view(values.data(), store.shape()));
}

inline ::testing::AssertionResult holds_frame(FrameStore& store, std::uint64_t number) {
  std::vector<float> values(store.shape().count());
  const Status status = store.get(number, mutable_view(values.data(), store.shape()));
  if (!status.ok()) return ::testing::AssertionFailure() << status.error().message;
  if (!is_frame(values.data(), number, store.shape())) {
    return ::testing::AssertionFailure() << "frame " << number << " has wrong values";
  }
  return ::testing::AssertionSuccess();
}

inline std::vector<char> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
inline void write_file(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace firn::test
