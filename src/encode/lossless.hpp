// zstd with contexts that are kept, for the parts of a chunk that are plain bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace firn::encode {

class Lossless {
 public:
  Lossless();
  ~Lossless();
  Lossless(Lossless&&) noexcept;
  Lossless& operator=(Lossless&&) noexcept;

  static constexpr int kMaxLevel = 3;
  static std::size_t capacity(std::size_t size);
  // Both throw std::bad_alloc when there is no memory for a context.
  // At most kMaxLevel. Returns the bytes written; 0 when they do not fit, as they always do with
  // a room of capacity(in.size()).
  std::size_t compress(std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t room,
                       int level);
  // False unless `in` decodes to exactly out.size() bytes.
  bool decompress(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

 private:
  // In memory of ours: zstd would give back and take its own as sizes change.
  void* compressor_memory_ = nullptr;
  ZSTD_CCtx_s* compressor_ = nullptr;
  ZSTD_DCtx_s* decompressor_ = nullptr;
};

}  // namespace firn::encode
