// Little-endian bytes: a bounded reader for everything that comes from a stream, and a writer
// into memory whose size the caller has proved sufficient.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace firn {

template <class Word>
Word load_le(const std::uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  static_assert(std::endian::native == std::endian::little, "big-endian hosts need a byte swap");
  return word;
}

template <class Word>
void store_le(std::uint8_t* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

// Every read is checked; after the first failure all reads return zero and ok() is false, so a
// parser may read a group of fields and test once.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::uint8_t> bytes)
      : begin_(bytes.data()), next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - next_); }
  std::size_t position() const { return static_cast<std::size_t>(next_ - begin_); }

  template <class Word>
  Word read() {
    if (remaining() < sizeof(Word)) return fail<Word>();
    const Word word = load_le<Word>(next_);
    next_ += sizeof(Word);
    return word;
  }

  // Base-128, low group first, at most 10 bytes.
  std::uint64_t read_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (!ok_) return 0;
      if (shift == 63 && byte > 1) return fail<std::uint64_t>();
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail<std::uint64_t>();
  }

  std::span<const std::uint8_t> read_bytes(std::uint64_t count) {
    if (!ok_ || remaining() < count) {
      fail<int>();
      return {};
    }
    const std::span<const std::uint8_t> bytes(next_, static_cast<std::size_t>(count));
    next_ += count;
    return bytes;
  }

  std::span<const std::uint8_t> read_rest() { return read_bytes(remaining()); }

 private:
  template <class Word>
  Word fail() {
    ok_ = false;
    next_ = end_;
    return Word{};
  }

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool ok_ = true;
};

inline constexpr int kMaxVarintBytes = 10;

class ByteWriter {
 public:
  explicit ByteWriter(std::uint8_t* begin) : begin_(begin), next_(begin) {}

  template <class Word>
  void write(Word word) {
    store_le(next_, word);
    next_ += sizeof(Word);
  }

  void write_varint(std::uint64_t value) {
    while (value >= 0x80) {
      *next_++ = static_cast<std::uint8_t>(value | 0x80);
      value >>= 7;
    }
    *next_++ = static_cast<std::uint8_t>(value);
  }

  void write_bytes(std::span<const std::uint8_t> bytes) {
    if (!bytes.empty()) std::memcpy(next_, bytes.data(), bytes.size());
    next_ += bytes.size();
  }

  std::uint8_t* here() { return next_; }
  void advance(std::size_t count) { next_ += count; }
  std::size_t size() const { return static_cast<std::size_t>(next_ - begin_); }

 private:
  std::uint8_t* begin_;
  std::uint8_t* next_;
};

}  // namespace firn
