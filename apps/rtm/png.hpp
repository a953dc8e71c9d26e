// Grey pictures as PNG files: stored deflate blocks, so no compressor is needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rtm {

// `pixels` row after row, 0 is black.
std::vector<std::uint8_t> encode_png(int width, int height, std::span<const std::uint8_t> pixels);

}  // namespace rtm
