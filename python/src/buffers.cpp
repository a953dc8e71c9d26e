#include "buffers.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <bit>
#include <string_view>

namespace nb = nanobind;

namespace firn_python {

namespace {

// A buffer's format without a byte order that is this machine's own.
std::string_view native_kind(const char* format) {
  const std::string_view text = format == nullptr ? "" : format;
  const char own = std::endian::native == std::endian::little ? '<' : '>';
  const bool is_native = !text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == own);
  return is_native ? text.substr(1) : text;
}

}  // namespace

HeldBuffer::HeldBuffer(nb::handle object, int flags) {
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
}

Array::Array(nb::handle object, int flags) : HeldBuffer(object, flags) {
  const std::string_view kind = native_kind(view_.format);
  const bool is_float = kind == "f";
  if (!is_float && kind != "d") throw nb::type_error("not a native float32 or float64 array");
  if (view_.ndim < 1 || view_.ndim > firn::kMaxRank) {
    throw nb::value_error("not an array of 1 to 4 axes");
  }
  type_ = is_float ? firn::Type::f32 : firn::Type::f64;
  shape_.rank = view_.ndim;
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) strides_.emplace();
  bool aligned = reinterpret_cast<std::uintptr_t>(view_.buf) % firn::size_of(type_) == 0;
  for (int k = 0; k < view_.ndim; ++k) {
    shape_.extents[k] = static_cast<std::uint64_t>(view_.shape[k]);
    if (strides_) (*strides_)[k] = view_.strides[k] / view_.itemsize;
    aligned = aligned && view_.strides[k] % view_.itemsize == 0;
  }
  if (!aligned) throw nb::value_error("not an aligned array");
}

void prefer_huge_pages([[maybe_unused]] std::span<std::uint8_t> memory) {
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kPage = std::uintptr_t{1} << 21;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (address + memory.size()) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace firn_python
