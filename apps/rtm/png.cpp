// PNG: ISO/IEC 15948; zlib and deflate: RFC 1950 and 1951.
#include "png.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace rtm {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_big_endian(Bytes& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    to.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

std::uint32_t adler32(std::span<const std::uint8_t> bytes) {
  std::uint32_t a = 1, b = 0;
  for (const std::uint8_t byte : bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

void append_chunk(Bytes& to, std::string_view type, const Bytes& content) {
  append_big_endian(to, static_cast<std::uint32_t>(content.size()));
  const std::size_t start = to.size();
  to.insert(to.end(), type.begin(), type.end());
  to.insert(to.end(), content.begin(), content.end());
  append_big_endian(to, crc32({to.data() + start, to.size() - start}));
}

Bytes zlib_stored(const Bytes& content) {
  Bytes stream{0x78, 0x01};
  std::size_t at = 0;
  do {
    const std::size_t size = std::min<std::size_t>(content.size() - at, 65535);
    stream.push_back(at + size == content.size() ? 1 : 0);
    for (const std::size_t word : {size, ~size & 0xFFFFu}) {
      stream.push_back(static_cast<std::uint8_t>(word & 0xFF));
      stream.push_back(static_cast<std::uint8_t>(word >> 8));
    }
    stream.insert(stream.end(), content.begin() + static_cast<std::ptrdiff_t>(at),
                  content.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  } while (at < content.size());
  append_big_endian(stream, adler32(content));
  return stream;
}

}  // namespace

std::vector<std::uint8_t> encode_png(int width, int height, std::span<const std::uint8_t> pixels) {
  Bytes rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    const auto row = pixels.subspan(static_cast<std::size_t>(y) * static_cast<std::size_t>(width),
                                    static_cast<std::size_t>(width));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  Bytes header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  header.insert(header.end(), {8, 0, 0, 0, 0});  // 8 bits, grey
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", zlib_stored(rows));
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace rtm
