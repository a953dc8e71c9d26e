// Geometry of a wave field: the part of the earth that is imaged, a sponge around it that absorbs
// waves, and a halo of zeros that the stencil reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace rtm {

inline constexpr int kHalo = 4;           // reach of the stencil
inline constexpr int kRowAlignment = 16;  // floats before a row's first value: halo, aligned

// Extents and indices are z (depth), y, x; x is the fastest. Index 0 is the first value of the
// sponge, except where a function says otherwise.
struct Grid {
  std::array<int, 3> imaged{};  // without the sponge
  int sponge = 0;               // width, on every side
  float spacing = 10;           // metres

  int extent(int axis) const { return imaged[static_cast<std::size_t>(axis)] + 2 * sponge; }
  std::ptrdiff_t pitch() const {
    const int row = 2 * kRowAlignment + extent(2);
    return (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  }
  std::ptrdiff_t plane() const { return pitch() * (extent(1) + 2 * kHalo); }
  std::size_t size() const { return static_cast<std::size_t>(plane() * (extent(0) + 2 * kHalo)); }
  std::ptrdiff_t at(int z, int y, int x) const {
    return (z + kHalo) * plane() + (y + kHalo) * pitch() + kRowAlignment + x;
  }
  // Of a point counted from the imaged part's corner.
  std::ptrdiff_t imaged_at(int z, int y, int x) const {
    return at(z + sponge, y + sponge, x + sponge);
  }
  std::size_t imaged_count() const {
    return static_cast<std::size_t>(imaged[0]) * static_cast<std::size_t>(imaged[1]) *
           static_cast<std::size_t>(imaged[2]);
  }
};

// Floats of a whole grid, zero at first.
class Field {
 public:
  explicit Field(const Grid& grid) : size_(grid.size()) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, size_ * sizeof(float)) != 0) throw std::bad_alloc();
    values_.reset(static_cast<float*>(memory));
    clear();
  }
  void clear() { std::memset(values_.get(), 0, size_ * sizeof(float)); }
  float* data() { return values_.get(); }
  const float* data() const { return values_.get(); }
  float& operator[](std::ptrdiff_t i) { return values_.get()[i]; }
  float operator[](std::ptrdiff_t i) const { return values_.get()[i]; }
  void swap(Field& other) noexcept { values_.swap(other.values_); }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<float, Free> values_;
};

}  // namespace rtm
