// Golden streams: what was once written decodes to the same values for ever, and today's encoder
// still writes the same bytes.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "golden/cases.hpp"

namespace firn {
namespace {

std::vector<std::uint8_t> file_bytes(const std::string& name) {
  std::ifstream file(std::string(FIRN_GOLDEN_DIR) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Digests {
  unsigned zstd_version = 0;
  std::map<std::string, std::string> of;
};

Digests read_digests() {
  Digests digests;
  std::ifstream file(std::string(FIRN_GOLDEN_DIR) + "/digests.txt");
  std::string name, digest;
  file >> name >> digests.zstd_version;
  while (file >> name >> digest) digests.of[name] = digest;
  return digests;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

TEST(Golden, EveryCaseHasItsStream) {
  const Digests digests = read_digests();
  EXPECT_EQ(digests.of.size(), test::golden_cases().size());
  for (const auto& golden : test::golden_cases()) EXPECT_EQ(digests.of.count(golden.name), 1u);
}

// Needs nothing but the file: shape and type come from the stream.
TEST(Golden, StreamsDecodeToTheSameValuesForEver) {
  for (const auto& [name, digest] : read_digests().of) {
    SCOPED_TRACE(name);
    const auto stream = file_bytes(name + ".firn");
    const auto info = inspect(stream);
    ASSERT_TRUE(info.ok()) << info.error().message;
    std::vector<std::uint8_t> decoded(info->original_bytes);
    const Status status = decompress(stream, {decoded.data(), info->type, info->shape, {}});
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(hexadecimal(test::digest(decoded.data(), decoded.size())), digest);
  }
}

// Streams may hold zstd frames, whose bytes are that version's: with another version of zstd only
// the values are compared.
TEST(Golden, TheEncoderStillWritesTheSameBytes) {
  const Digests digests = read_digests();
  const bool same_zstd = digests.zstd_version == ZSTD_versionNumber();
  for (const auto& golden : test::golden_cases()) {
    SCOPED_TRACE(golden.name);
    const auto values = test::golden_bytes(golden);
    const auto stream = test::golden_stream(golden, values);
    if (same_zstd) {
      EXPECT_TRUE(stream == file_bytes(golden.name + ".firn"));
    }
    std::vector<std::uint8_t> decoded(values.size());
    ASSERT_TRUE(decompress(stream, {decoded.data(), golden.type, golden.shape, {}}).ok());
    EXPECT_EQ(hexadecimal(test::digest(decoded.data(), decoded.size())),
              digests.of.at(golden.name));
  }
  if (!same_zstd) {
    GTEST_SKIP() << "zstd " << ZSTD_versionString()
                 << " is not the version that the golden streams were written with: bytes not "
                    "compared, values are the same";
  }
}

TEST(Golden, SharedBooksAndSeriesAreAmongThem) {
  const auto shared = inspect_chunks(file_bytes("lorenzo_shared_books_1d_f32.firn"));
  ASSERT_TRUE(shared.ok());
  EXPECT_TRUE(std::any_of(shared->begin(), shared->end(), [](const ChunkInfo& chunk) {
    return chunk.detail.find("shared book") != std::string::npos;
  }));
  EXPECT_EQ(inspect(file_bytes("series_3d_f32.firn"))->part_count, 3u);
  EXPECT_EQ(inspect(file_bytes("series_joined_2d_f64.firn"))->part_count, 6u);
}

// Every pipeline that this build knows has a golden stream in which a chunk really uses it.
TEST(Golden, EveryPipelineIsAmongThem) {
  std::map<Pipeline, int> seen;
  for (const auto& [name, digest] : read_digests().of) {
    const auto chunks = inspect_chunks(file_bytes(name + ".firn"));
    ASSERT_TRUE(chunks.ok());
    for (const ChunkInfo& chunk : *chunks) ++seen[chunk.pipeline];
  }
  for (int id = 1; id < 256; ++id) {
    const auto pipeline = static_cast<Pipeline>(id);
    if (std::string(name_of(pipeline)) == "unknown") continue;
    if (pipeline == Pipeline::fre_round) continue;  // in streams it is `fre`
    EXPECT_GT(seen[pipeline], 0) << name_of(pipeline);
  }
}

}  // namespace
}  // namespace firn
