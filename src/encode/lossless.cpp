#include "encode/lossless.hpp"

#define ZSTD_STATIC_LINKING_ONLY  // for contexts in memory of ours
#include <zstd.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace firn::encode {

Lossless::Lossless() = default;
Lossless::~Lossless() {
  std::free(compressor_memory_);
  ZSTD_freeDCtx(decompressor_);
}
Lossless::Lossless(Lossless&& other) noexcept
    : compressor_memory_(std::exchange(other.compressor_memory_, nullptr)),
      compressor_(std::exchange(other.compressor_, nullptr)),
      decompressor_(std::exchange(other.decompressor_, nullptr)) {}
Lossless& Lossless::operator=(Lossless&& other) noexcept {
  std::swap(compressor_memory_, other.compressor_memory_);
  std::swap(compressor_, other.compressor_);
  std::swap(decompressor_, other.decompressor_);
  return *this;
}

std::size_t Lossless::capacity(std::size_t size) { return ZSTD_COMPRESSBOUND(size); }

std::size_t Lossless::compress(std::span<const std::uint8_t> in, std::uint8_t* out,
                               std::size_t room, int level) {
  if (compressor_ == nullptr) {
    const std::size_t bytes = ZSTD_estimateCCtxSize(kMaxLevel);
    compressor_memory_ = std::malloc(bytes);
    if (compressor_memory_ != nullptr) {
      compressor_ = ZSTD_initStaticCCtx(compressor_memory_, bytes);
    }
    if (compressor_ == nullptr) {
      std::free(std::exchange(compressor_memory_, nullptr));
      throw std::bad_alloc();
    }
  }
  const std::size_t size = ZSTD_compressCCtx(compressor_, out, room, in.data(), in.size(), level);
  return ZSTD_isError(size) ? 0 : size;
}

bool Lossless::decompress(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  if (decompressor_ == nullptr) decompressor_ = ZSTD_createDCtx();
  if (decompressor_ == nullptr) throw std::bad_alloc();
  const std::size_t size =
      ZSTD_decompressDCtx(decompressor_, out.data(), out.size(), in.data(), in.size());
  return !ZSTD_isError(size) && size == out.size();
}

}  // namespace firn::encode
