// The callbacks of the HDF5 filter. docs/hdf5-and-netcdf.md describes what users see of them.
#include "filter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "firn/firn.hpp"
#include "firn/hdf5_parameters.h"
#include "hdf5_calls.hpp"
#include "parameters.hpp"

namespace firn::hdf5 {
namespace {

constexpr bool kHostIsBigEndian = std::endian::native == std::endian::big;
constexpr htri_t kYes = 1;
constexpr htri_t kNo = 0;

void push_error(const Hdf5Calls& hdf5, const char* callback, const std::string& message) {
  // The message is passed as an argument, not as a format.
  hdf5.H5Epush2(H5E_DEFAULT, __FILE__, callback, static_cast<unsigned>(__LINE__), *hdf5.error_class,
                *hdf5.error_pipeline, *hdf5.error_callback, "%s", message.c_str());
}

// Runs a callback's body. Nothing may be thrown into HDF5, and only memory can run out here.
template <class Answer, class Body>
Answer guarded(const void* caller, const char* callback, Answer on_failure, const Body& body) {
  const Hdf5Calls* hdf5 = hdf5_calls(caller);
  if (hdf5 == nullptr) return on_failure;
  try {
    return body(*hdf5);
  } catch (const std::bad_alloc&) {
    push_error(*hdf5, callback, "Firn: out of memory");
  } catch (const std::exception& exception) {
    push_error(*hdf5, callback, std::string("Firn: ") + exception.what());
  }
  return on_failure;
}

// Empty when the type is an IEEE 754 single or double of either byte order.
std::string why_not_type(const Hdf5Calls& hdf5, hid_t type) {
  const std::string takes = "Firn compresses 32-bit and 64-bit IEEE floating-point values; ";
  if (hdf5.H5Tget_class(type) != H5T_FLOAT) {
    return takes + "this dataset's type is not floating-point";
  }
  const std::size_t size = hdf5.H5Tget_size(type);
  if (size != 4 && size != 8) {
    return takes + "a value of this dataset has " + std::to_string(size) + " bytes";
  }
  const H5T_order_t order = hdf5.H5Tget_order(type);
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (hdf5.H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
    return takes + "this dataset's type could not be read";
  }
  const bool is_double = size == 8;
  const bool ieee = (order == H5T_ORDER_LE || order == H5T_ORDER_BE) &&
                    hdf5.H5Tget_precision(type) == 8 * size && hdf5.H5Tget_offset(type) == 0 &&
                    hdf5.H5Tget_norm(type) == H5T_NORM_IMPLIED && mantissa == 0 &&
                    mantissa_bits == (is_double ? 52u : 23u) && exponent == mantissa_bits &&
                    exponent_bits == (is_double ? 11u : 8u) && sign == 8 * size - 1 &&
                    hdf5.H5Tget_ebias(type) == (is_double ? 1023u : 127u);
  return ieee ? "" : takes + "this dataset's floating-point type is laid out otherwise";
}

// Empty when Firn is the first filter: after another one, the bytes would be no values.
std::string why_not_order(const Hdf5Calls& hdf5, hid_t creation) {
  std::array<char, 64> name{};
  unsigned flags = 0;
  unsigned configuration = 0;
  std::size_t count = 0;
  const H5Z_filter_t first = hdf5.H5Pget_filter2(creation, 0, &flags, &count, nullptr,
                                                 name.size() - 1, name.data(), &configuration);
  if (first == FIRN_HDF5_FILTER_ID) return "";
  return "Firn must be the first filter of the dataset, because it needs the values; filter " +
         std::to_string(first) + " (" + name.data() + ") comes before it" +
         (first == H5Z_FILTER_SHUFFLE ? ": turn shuffle off" : "");
}

// Empty when the dataset can be compressed.
std::string why_not(const Hdf5Calls& hdf5, hid_t creation, hid_t type) {
  std::string reason = why_not_type(hdf5, type);
  return reason.empty() ? why_not_order(hdf5, creation) : reason;
}

// An optional filter that does not apply is no error for HDF5: it creates the dataset, and still
// calls the other callbacks. They see to it that such a dataset's chunks are stored as they are.
htri_t can_apply_to(const Hdf5Calls& hdf5, hid_t creation, hid_t type) {
  const std::string reason = why_not(hdf5, creation, type);
  if (reason.empty()) return kYes;
  push_error(hdf5, "can_apply", reason);
  return kNo;
}

// The fill value that someone chose, if it is one that needs care. HDF5's own default, 0, is an
// ordinary value; NaN is kept exactly without being named.
std::optional<double> chosen_fill(const Hdf5Calls& hdf5, hid_t creation) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  double fill = 0;
  if (hdf5.H5Pfill_value_defined(creation, &defined) < 0 ||
      defined != H5D_FILL_VALUE_USER_DEFINED ||
      hdf5.H5Pget_fill_value(creation, *hdf5.native_double, &fill) < 0 || std::isnan(fill)) {
    return std::nullopt;
  }
  return fill;
}

bool describe_chunks(const Hdf5Calls& hdf5, hid_t creation, hid_t type,
                     FilterParameters& parameters) {
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = hdf5.H5Pget_chunk(creation, static_cast<int>(extents.size()), extents.data());
  if (rank < 1) {
    push_error(hdf5, "set_local", "Firn: a filter needs a chunked dataset");
    return false;
  }
  const std::vector<unsigned long long> wide(extents.begin(), extents.begin() + rank);
  ChunkLayout& layout = parameters.layout;
  layout.type = hdf5.H5Tget_size(type) == 4 ? Type::f32 : Type::f64;
  layout.big_endian = hdf5.H5Tget_order(type) == H5T_ORDER_BE;
  layout.shape = chunk_shape(wide);
  layout.fill = chosen_fill(hdf5, creation);
  // The library's own view of the options, before anything is written with them.
  const Result<std::uint64_t> size =
      worst_case_size(layout.type, layout.shape, parameters.options());
  if (!size) push_error(hdf5, "set_local", "Firn: " + size.error().message);
  return size.ok();
}

herr_t describe_dataset(const Hdf5Calls& hdf5, hid_t creation, hid_t type) {
  std::array<unsigned, kMaxParameterWords> words{};
  std::size_t count = words.size();
  unsigned flags = 0;
  if (hdf5.H5Pget_filter_by_id2(creation, FIRN_HDF5_FILTER_ID, &flags, &count, words.data(), 0,
                                nullptr, nullptr) < 0) {
    push_error(hdf5, "set_local", "Firn: the filter's parameters cannot be read");
    return -1;
  }
  Result<FilterParameters> parsed = parse_parameters({words.data(), std::min(count, words.size())});
  if (!parsed) {
    push_error(hdf5, "set_local", parsed.error().message);
    return -1;
  }
  FilterParameters parameters = *parsed;
  std::vector<unsigned> to_store;
  if (why_not(hdf5, creation, type).empty()) {
    if (!describe_chunks(hdf5, creation, type, parameters)) return -1;
    to_store = stored_parameters(parameters);
  } else {
    // A user's form is never taken for a description of chunks.
    to_store = user_parameters(parameters.request);
  }
  if (hdf5.H5Pmodify_filter(creation, FIRN_HDF5_FILTER_ID, flags, to_store.size(),
                            to_store.data()) < 0) {
    push_error(hdf5, "set_local", "Firn: the filter's parameters cannot be stored");
    return -1;
  }
  return 0;
}

int threads_to_use() {
  const char* text = std::getenv("FIRN_HDF5_THREADS");
  if (text == nullptr) return 1;
  char* end = nullptr;
  const long threads = std::strtol(text, &end, 10);
  return end != text && *end == '\0' && threads >= 0 && threads <= 4096 ? static_cast<int>(threads)
                                                                        : 1;
}

// Working memory, kept from chunk to chunk.
struct Workspace {
  Compressor compressor;
  Decompressor decompressor;
  std::vector<std::uint8_t> stream;
};

Workspace& workspace() {
  thread_local Workspace instance;
  return instance;
}

// HDF5's buffer, which a filter may fill or replace.
struct ChunkBuffer {
  std::size_t* capacity;
  void** data;
};

bool replace(const Hdf5Calls& hdf5, const ChunkBuffer& buffer, std::size_t size) {
  void* memory = hdf5.H5allocate_memory(size, false);
  if (memory == nullptr) return false;
  hdf5.H5free_memory(*buffer.data);
  *buffer.data = memory;
  *buffer.capacity = size;
  return true;
}

std::size_t encode_chunk(const Hdf5Calls& hdf5, const FilterParameters& parameters,
                         std::size_t size, const ChunkBuffer& buffer) {
  const ChunkLayout& layout = parameters.layout;
  if (size != layout.size_bytes()) {
    push_error(hdf5, "filter",
               "Firn: a chunk of " + std::to_string(size) + " bytes instead of " +
                   std::to_string(layout.size_bytes()));
    return 0;
  }
  Workspace& space = workspace();
  const Options options = parameters.options();
  const Result<std::uint64_t> room = worst_case_size(layout.type, layout.shape, options);
  if (room && space.stream.size() < *room) space.stream.resize(*room);
  const bool swapped = layout.big_endian != kHostIsBigEndian;
  if (swapped) swap_bytes(*buffer.data, layout.shape.count(), layout.type);
  Result<std::size_t> used =
      room ? space.compressor.compress_into({*buffer.data, layout.type, layout.shape, {}}, options,
                                            space.stream, {threads_to_use(), {}})
           : Result<std::size_t>(room.error());
  if (!used) {
    // An optional filter's chunk is then stored as it was.
    if (swapped) swap_bytes(*buffer.data, layout.shape.count(), layout.type);
    push_error(hdf5, "filter", "Firn: " + used.error().message);
    return 0;
  }
  if (*used > *buffer.capacity && !replace(hdf5, buffer, *used)) {
    push_error(hdf5, "filter", "Firn: out of memory");
    return 0;
  }
  std::memcpy(*buffer.data, space.stream.data(), *used);
  return *used;
}

std::size_t decode_chunk(const Hdf5Calls& hdf5, const FilterParameters& parameters,
                         std::size_t size, const ChunkBuffer& buffer) {
  const ChunkLayout& layout = parameters.layout;
  const std::span<const std::uint8_t> stream(static_cast<const std::uint8_t*>(*buffer.data), size);
  // The stream says what it holds; memory is taken only for what the dataset expects.
  const Result<Info> info = inspect(stream);
  if (!info) {
    push_error(hdf5, "filter", "Firn: a compressed chunk: " + info.error().message);
    return 0;
  }
  if (info->type != layout.type || info->shape != layout.shape) {
    push_error(hdf5, "filter",
               "Firn: a compressed chunk has another type or shape than its dataset");
    return 0;
  }
  const std::size_t decoded_size = layout.size_bytes();
  void* decoded = hdf5.H5allocate_memory(decoded_size, false);
  if (decoded == nullptr) {
    push_error(hdf5, "filter", "Firn: out of memory");
    return 0;
  }
  const Status status = workspace().decompressor.decompress(
      stream, {decoded, layout.type, layout.shape, {}}, {threads_to_use(), {}});
  if (!status) {
    hdf5.H5free_memory(decoded);
    push_error(hdf5, "filter", "Firn: a compressed chunk: " + status.error().message);
    return 0;
  }
  if (layout.big_endian != kHostIsBigEndian) {
    swap_bytes(decoded, layout.shape.count(), layout.type);
  }
  hdf5.H5free_memory(*buffer.data);
  *buffer.data = decoded;
  *buffer.capacity = decoded_size;
  return decoded_size;
}

extern "C" {

htri_t firn_hdf5_can_apply(hid_t creation, hid_t type, hid_t) {
  return guarded<htri_t>(__builtin_return_address(0), "can_apply", -1,
                         [&](const Hdf5Calls& hdf5) { return can_apply_to(hdf5, creation, type); });
}

herr_t firn_hdf5_set_local(hid_t creation, hid_t type, hid_t) {
  return guarded<herr_t>(__builtin_return_address(0), "set_local", -1, [&](const Hdf5Calls& hdf5) {
    return describe_dataset(hdf5, creation, type);
  });
}

// Returns the bytes in the buffer now, 0 for failure.
std::size_t firn_hdf5_filter(unsigned flags, std::size_t word_count, const unsigned* words,
                             std::size_t size, std::size_t* capacity, void** data) {
  return guarded<std::size_t>(
      __builtin_return_address(0), "filter", 0, [&](const Hdf5Calls& hdf5) -> std::size_t {
        const Result<FilterParameters> parameters = parse_parameters({words, word_count});
        if (!parameters) {
          push_error(hdf5, "filter", parameters.error().message);
          return 0;
        }
        if (!parameters->stored()) {
          push_error(
              hdf5, "filter",
              "Firn: the filter's parameters do not describe this dataset's chunks: Firn does "
              "not apply to its type or after its other filters");
          return 0;
        }
        const ChunkBuffer buffer{capacity, data};
        return (flags & H5Z_FLAG_REVERSE) != 0 ? decode_chunk(hdf5, *parameters, size, buffer)
                                               : encode_chunk(hdf5, *parameters, size, buffer);
      });
}

}  // extern "C"

}  // namespace

const H5Z_class2_t kFilterClass = {
    H5Z_CLASS_T_VERS,    FIRN_HDF5_FILTER_ID, 1, 1, FIRN_HDF5_FILTER_NAME, firn_hdf5_can_apply,
    firn_hdf5_set_local, firn_hdf5_filter,
};

}  // namespace firn::hdf5
