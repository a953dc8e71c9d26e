// Writes the golden streams and digests.txt to the folder named: make_golden tests/golden
#include <zstd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

#include "golden/cases.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_golden FOLDER\n", stderr);
    return 1;
  }
  const std::string folder = argv[1];
  std::FILE* digests = std::fopen((folder + "/digests.txt").c_str(), "w");
  if (digests == nullptr) {
    std::perror("digests.txt");
    return 1;
  }
  std::fprintf(digests, "zstd %u\n", ZSTD_versionNumber());
  for (const auto& golden : firn::test::golden_cases()) {
    const auto values = firn::test::golden_bytes(golden);
    const auto stream = firn::test::golden_stream(golden, values);
    std::vector<std::uint8_t> decoded(values.size());
    if (!firn::decompress(stream, {decoded.data(), golden.type, golden.shape, {}})) {
      std::fprintf(stderr, "%s cannot be made\n", golden.name.c_str());
      return 1;
    }
    std::fprintf(digests, "%s %016" PRIx64 "\n", golden.name.c_str(),
                 firn::test::digest(decoded.data(), decoded.size()));
    std::FILE* file = std::fopen((folder + "/" + golden.name + ".firn").c_str(), "wb");
    if (file == nullptr || std::fwrite(stream.data(), 1, stream.size(), file) != stream.size() ||
        std::fclose(file) != 0) {
      std::perror(golden.name.c_str());
      return 1;
    }
  }
  return std::fclose(digests) == 0 ? 0 : 1;
}
