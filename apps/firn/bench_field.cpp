#include "bench_field.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "failure.hpp"
#include "field_description.hpp"

namespace firn_cli {
namespace {

constexpr std::size_t kCacheLine = 64;

// Copies the part of a strided array that starts at `source` and spans the axes from `axis` on.
template <class T>
T* gather(const T* source, const firn::ArrayView& view, int axis, T* out) {
  if (axis == view.shape.rank) {
    *out = *source;
    return out + 1;
  }
  const auto extent = static_cast<std::int64_t>(view.shape.extents[axis]);
  for (std::int64_t i = 0; i < extent; ++i) {
    out = gather(source + i * (*view.strides)[axis], view, axis + 1, out);
  }
  return out;
}

template <class T>
void replace_all(T* values, std::uint64_t count, T from) {
  std::replace(values, values + count, from, T{0});
}

}  // namespace

void BenchMemory::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

BenchMemory::BenchMemory(std::uint64_t size_bytes) : size_(size_bytes) {
  const std::size_t rounded = (size_ / kCacheLine + 1) * kCacheLine;
  data_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kCacheLine, rounded)));
  if (!data_) fail(ExitCode::out_of_memory, "bench needs {} more bytes of memory", size_bytes);
  std::memset(data_.get(), 1, rounded);  // not 0: that could leave the pages untouched
}

BenchField make_bench_field(const firn::ArrayView& source, std::uint64_t least_bytes) {
  const std::uint64_t bytes = array_bytes_or_fail(source.type, source.shape);
  const std::uint64_t copies = std::max<std::uint64_t>(1, (least_bytes + bytes - 1) / bytes);
  firn::Shape shape = source.shape;
  shape.extents[0] *= copies;

  BenchMemory memory(array_bytes_or_fail(source.type, shape));
  if (!source.strides) {
    std::memcpy(memory.data(), source.data, bytes);
  } else if (source.type == firn::Type::f32) {
    gather(static_cast<const float*>(source.data), source, 0,
           reinterpret_cast<float*>(memory.data()));
  } else {
    gather(static_cast<const double*>(source.data), source, 0,
           reinterpret_cast<double*>(memory.data()));
  }
  for (std::uint64_t copy = 1; copy < copies; ++copy) {
    std::memcpy(memory.data() + copy * bytes, memory.data(), bytes);
  }
  const firn::ArrayView view{memory.data(), source.type, shape, {}};
  return {std::move(memory), view};
}

BenchField without_fill(const firn::ArrayView& contiguous, double fill) {
  BenchField field = make_bench_field(contiguous, 0);
  const std::uint64_t count = contiguous.shape.count();
  if (contiguous.type == firn::Type::f32) {
    replace_all(reinterpret_cast<float*>(field.memory.data()), count, static_cast<float>(fill));
  } else {
    replace_all(reinterpret_cast<double*>(field.memory.data()), count, fill);
  }
  return field;
}

}  // namespace firn_cli
