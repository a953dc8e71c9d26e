#include "encode/lossless.hpp"

#include <zstd.h>

#include <utility>

namespace firn::encode {

Lossless::Lossless() = default;
Lossless::~Lossless() {
  ZSTD_freeCCtx(compressor_);
  ZSTD_freeDCtx(decompressor_);
}
Lossless::Lossless(Lossless&& other) noexcept
    : compressor_(std::exchange(other.compressor_, nullptr)),
      decompressor_(std::exchange(other.decompressor_, nullptr)) {}
Lossless& Lossless::operator=(Lossless&& other) noexcept {
  std::swap(compressor_, other.compressor_);
  std::swap(decompressor_, other.decompressor_);
  return *this;
}

std::size_t Lossless::capacity(std::size_t size) { return ZSTD_compressBound(size); }

std::size_t Lossless::compress(std::span<const std::uint8_t> in, std::uint8_t* out,
                               std::size_t room, int level) {
  if (compressor_ == nullptr) compressor_ = ZSTD_createCCtx();
  if (compressor_ == nullptr) return 0;
  const std::size_t size = ZSTD_compressCCtx(compressor_, out, room, in.data(), in.size(), level);
  return ZSTD_isError(size) ? 0 : size;
}

bool Lossless::decompress(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  if (decompressor_ == nullptr) decompressor_ = ZSTD_createDCtx();
  if (decompressor_ == nullptr) return false;
  const std::size_t size =
      ZSTD_decompressDCtx(decompressor_, out.data(), out.size(), in.data(), in.size());
  return !ZSTD_isError(size) && size == out.size();
}

}  // namespace firn::encode
