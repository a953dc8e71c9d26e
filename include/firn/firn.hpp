// Firn: error-bounded lossy compression of floating-point arrays. This is the C++ interface;
// firn.h has the same concepts for C. Streams are specified in docs/format.md.
//
// Five concepts: an ArrayView says what to compress, a Bound how exact it must stay, Options what
// the bytes will be, Execution how fast they are made, and a Result holds a value or an Error.
// No function here prints, exits, or keeps state between calls, none that returns a Result or a
// Status throws, and all but the members of one object may be called by several threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#if defined(_WIN32)
#define FIRN_API
#else
#define FIRN_API __attribute__((visibility("default")))
#endif

namespace firn {

// Values are pinned: firn.h, the command line's exit codes and other bindings share them.
enum class ErrorCode : int {
  ok = 0,
  invalid_argument = 1,  // an option, shape or pointer that cannot be right
  unsupported = 2,       // right, but not something this build or this stream can do
  buffer_too_small = 3,  // the caller's memory cannot hold the result
  not_firn = 4,          // the bytes are not a Firn stream
  newer_version = 5,     // a Firn stream of a format version that this library does not know
  truncated = 6,         // the stream ends too early
  corrupt = 7,           // a checksum or a value in the stream is wrong
  out_of_memory = 8,
  bound_exceeded = 9,  // verify: some value is further from the original than the bound
  cancelled = 10,      // the progress callback asked to stop
  io_error = 11,       // a file cannot be opened, read or written
};

struct Error {
  ErrorCode code = ErrorCode::ok;
  std::string message;  // names the offending thing and what would be right
};

// A value or an error. value() on an error aborts, and so does error() on a value: test first.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    return ok() ? *std::get_if<0>(&state_) : (std::abort(), *std::get_if<0>(&state_));
  }
  const T& value() const& { return const_cast<Result*>(this)->value(); }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    return ok() ? (std::abort(), *std::get_if<1>(&state_)) : *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;

enum class Type : std::uint8_t { f32 = 1, f64 = 2 };
FIRN_API std::size_t size_of(Type type);
FIRN_API const char* name_of(Type type);

inline constexpr int kMaxRank = 4;

// Extents of an array, SLOWEST axis first, as in C and numpy: {nz, ny, nx} for a[z][y][x].
// (zfp and SZ name the fastest axis first.) Rank 0 means "not given".
struct Shape {
  int rank = 0;
  std::array<std::uint64_t, kMaxRank> extents{};

  Shape() = default;
  Shape(std::initializer_list<std::uint64_t> list);
  std::uint64_t count() const;  // number of values; 0 for rank 0
  // What lies beyond the rank does not matter.
  bool operator==(const Shape& other) const {
    return rank == other.rank &&
           std::equal(extents.begin(), extents.begin() + std::clamp(rank, 0, kMaxRank),
                      other.extents.begin());
  }
};

// Memory that the caller owns. Strides are in values, not bytes, and may be negative or zero;
// without them the array is contiguous in row-major order.
template <class Pointer>
struct BasicArrayView {
  Pointer data = nullptr;
  Type type = Type::f32;
  Shape shape;
  std::optional<std::array<std::int64_t, kMaxRank>> strides;
};
using ArrayView = BasicArrayView<const void*>;
using MutableArrayView = BasicArrayView<void*>;

inline ArrayView view(const float* data, Shape shape) { return {data, Type::f32, shape, {}}; }
inline ArrayView view(const double* data, Shape shape) { return {data, Type::f64, shape, {}}; }
inline MutableArrayView mutable_view(float* data, Shape shape) {
  return {data, Type::f32, shape, {}};
}
inline MutableArrayView mutable_view(double* data, Shape shape) {
  return {data, Type::f64, shape, {}};
}

enum class BoundKind : std::uint8_t {
  lossless = 0,
  abs = 1,
  rel = 2,
  psnr = 3,
  pwrel = 4,
  ratio = 5
};

// How far a decoded value may be from the original. Compression settles on one bound, which is in
// the stream: for pwrel a fraction r of each value, |decoded - original| <= r |original|; for all
// others an absolute one, |decoded - original| <= it. It holds for every finite value; NaN,
// infinities and fill values return bit for bit.
struct Bound {
  BoundKind kind = BoundKind::lossless;
  double value = 0;

  static Bound lossless() { return {}; }
  static Bound abs(double error) { return {BoundKind::abs, error}; }
  // A fraction of the field's value range (maximum - minimum of its finite, unmasked values).
  static Bound rel(double fraction) { return {BoundKind::rel, fraction}; }
  // Peak signal-to-noise ratio, 20 log10(range) - 10 log10(mean squared error), met or exceeded.
  static Bound psnr(double decibels) { return {BoundKind::psnr, decibels}; }
  // Original bytes over compressed bytes: the finest absolute bound that reaches it, within 1 %
  // on arrays of a megabyte or more. Options::max_abs limits that bound.
  static Bound ratio(double ratio) { return {BoundKind::ratio, ratio}; }
  // A fraction, below 1, of each value's own magnitude: zeros and signs stay as they are.
  static Bound pwrel(double fraction) { return {BoundKind::pwrel, fraction}; }

  // A ratio that cannot be met is no error. Whether such a stream misses it, by more than 1 %.
  bool is_missed(std::uint64_t original_bytes, std::uint64_t compressed_bytes) const {
    return kind == BoundKind::ratio && original_bytes != 0 &&
           static_cast<double>(original_bytes) <
               0.99 * value * static_cast<double>(compressed_bytes);
  }
};

enum class Preset : std::uint8_t { fast, balanced, small };

// What encodes a chunk. `automatic` lets the preset choose; the encoder falls back to `constant`,
// `bits`, `shuffle` or `raw` for a chunk where that is right.
enum class Pipeline : std::uint8_t {
  automatic = 0,
  raw = 1,        // the values as they are
  constant = 2,   // one value for the whole chunk
  shuffle = 3,    // lossless: differences of the bit patterns, byte planes, zstd
  lorenzo = 4,    // cuSZ: quantise, differences along the axes, canonical Huffman
  blockpack = 5,  // quantise, differences, bit planes of small blocks: speed of memory
  ceresz = 6,     // CereSZ as published: independent blocks of 32, one-byte headers
  ceresz4 = 7,    // the same with the four-byte headers of the paper
  contexts = 8,   // quantise, differences, rANS whose distributions follow the neighbourhood
  interp = 9,     // interpolation with feedback from coarse to fine, the same coder
  fre = 10,       // pwrel only: prefix codes on exponent differences, mantissas cut
  causal = 11,    // trained prediction from decoded neighbours in a wavefront, the same coder
  bits = 12,      // lossless: differences of the bit patterns, rANS as in `contexts`
  // Never in a stream: `fre` with mantissas rounded, which needs one bit less for the same bound.
  fre_round = 26,
};

// Where `lorenzo` takes each chunk's Huffman book from: the offline ones that are part of the
// format, one that several chunks share, or a new one stored with the chunk.
enum class BookPolicy : std::uint8_t {
  cost = 0,     // whichever takes the fewest bits, its own included
  chi = 1,      // CEAZ's rule: by how much the spread of symbol frequencies has changed
  stored = 2,   // a new one for every chunk
  offline = 3,  // none is ever stored
};
FIRN_API const char* name_of(Pipeline pipeline);
FIRN_API const char* name_of(Preset preset);
FIRN_API const char* name_of(BoundKind kind);
FIRN_API const char* name_of(BookPolicy policy);
FIRN_API Result<Pipeline> parse_pipeline(const std::string& name);
FIRN_API Result<Preset> parse_preset(const std::string& name);
FIRN_API Result<BookPolicy> parse_book_policy(const std::string& name);

// What the presets `balanced` and `small` make least at the bound: the stream's size, or the size
// at equal PSNR (a few per cent larger, errors well below the bound).
enum class Tune : std::uint8_t { size, psnr };
FIRN_API const char* name_of(Tune tune);
FIRN_API Result<Tune> parse_tune(const std::string& name);

// Everything that decides the bytes of a stream.
struct Options {
  Bound bound;
  Preset preset = Preset::balanced;
  Pipeline pipeline = Pipeline::automatic;
  Shape chunk;                 // rank 0: chosen from the shape
  std::optional<double> fill;  // this value (compared in the array's type) is a mask
  // With Bound::ratio: no larger absolute error than this, even where the ratio is then missed.
  std::optional<double> max_abs;
  BookPolicy books = BookPolicy::cost;
  Tune tune = Tune::size;
};

// Everything that decides only how fast they are made.
struct Execution {
  int threads = 0;  // 0: all cores
  // Called now and then, from any one thread at a time; return false to cancel.
  std::function<bool(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
};

// Bytes that the library allocated.
class FIRN_API Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  const std::uint8_t* data() const { return data_; }
  std::uint8_t* data() { return data_; }
  std::size_t size() const { return size_; }
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  operator std::span<const std::uint8_t>() const { return bytes(); }

  // Grows or shrinks; new bytes are not initialised. False when memory is short (unchanged then).
  bool resize(std::size_t size);
  std::uint8_t* release();  // the caller frees it with std::free

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// What a stream says of itself.
struct Info {
  int format_version = 0;
  Type type = Type::f32;
  Shape shape;
  Shape chunk;
  Bound bound;  // as asked for; abs with the largest, where parts of a series differ in that
  double bound_abs = 0;      // as enforced; 0 when lossless and for pwrel
  double max_abs_error = 0;  // achieved, over all chunks, rounded up a little
  // The same for pwrel, relative to each value; 0 for other kinds.
  double bound_pwrel = 0;
  double max_pwrel_error = 0;
  std::optional<double> fill;
  std::uint64_t part_count = 1;  // more: a series (firn/stream.hpp), whose bound_abs is the largest
  std::uint64_t chunk_count = 0;
  std::uint64_t original_bytes = 0;
  std::uint64_t compressed_bytes = 0;
  bool complete = false;  // every chunk's record was found; otherwise the error is the bound
};

struct ChunkInfo {
  std::uint64_t offset = 0;      // of its record in the stream
  std::uint64_t size_bytes = 0;  // of its record
  Pipeline pipeline = Pipeline::raw;
  double bound_abs = 0;        // of its part; 0 for pwrel
  double max_abs_error = 0;    // 0 for pwrel
  double max_pwrel_error = 0;  // 0 for other kinds
  std::array<std::uint64_t, kMaxRank> origin{};
  Shape shape;
  std::string detail;  // how it was encoded, for people
};

// A box of an array: `origin` of its first value and its `shape`, slowest axis first.
struct Region {
  std::array<std::uint64_t, kMaxRank> origin{};
  Shape shape;
};

// One chunk that could not be decoded; or, where a series of streams is cut off, an empty region
// behind its last whole part.
struct Damage {
  std::uint64_t chunk = 0;
  Region region;  // whose values were set to NaN
  Error error;
};

// How a preview came about.
struct PreviewReport {
  Shape shape;
  std::uint64_t chunks_from_prefix = 0;    // only the beginning of these was read
  std::uint64_t chunks_decoded_whole = 0;  // these have no levels: decoded, then thinned out
};

struct Comparison {
  std::uint64_t count = 0;            // values compared
  std::uint64_t exact_count = 0;      // NaN, infinite and fill values among them
  std::uint64_t violations = 0;       // finite ones out of bound and special ones not bit for bit
  std::uint64_t first_violation = 0;  // its linear index, when there is one
  double max_abs_error = 0;           // over finite values
  double max_pwrel_error = 0;         // |error| / |original|; infinite where a zero is lost
  double value_range = 0;
  double mean_squared_error = 0;
  double psnr_db = 0;  // infinity when there is no error
};

// What a bound would give, judged by a sample of the array.
struct Estimate {
  Bound bound;
  double bound_abs = 0;  // rel is taken of the sample's value range; 0 for pwrel and lossless
  double ratio = 0;
  double psnr_db = 0;  // infinity when there is no error
  std::uint64_t sampled_values = 0;
};

// Largest stream that compress can make of this shape with these options.
FIRN_API Result<std::uint64_t> worst_case_size(Type type, const Shape& shape,
                                               const Options& options);

// A reusable compressor: keeps its working memory between calls, so that compress_into with one
// thread allocates nothing from the second call on, unless the bound is searched for (ratio, psnr)
// or an array needs more memory than those before it.
// Not for concurrent use.
class FIRN_API Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  Result<Buffer> compress(const ArrayView& array, const Options& options,
                          const Execution& execution = {});
  // Into the caller's memory; returns the bytes used. worst_case_size() always suffices.
  Result<std::size_t> compress_into(const ArrayView& array, const Options& options,
                                    std::span<std::uint8_t> out, const Execution& execution = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A reusable decompressor, likewise.
class FIRN_API Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;

  // `out` must have the stream's type and shape.
  Status decompress(std::span<const std::uint8_t> stream, const MutableArrayView& out,
                    const Execution& execution = {});
  // Only the chunks that touch the region are read; `out` has the region's shape.
  Status decompress_region(std::span<const std::uint8_t> stream, const Region& region,
                           const MutableArrayView& out, const Execution& execution = {});
  // A fraction of the resolution: of each chunk every factor-th value along each axis, its first
  // one first. `factor` is a power of two up to 2^20; `out` has preview_shape(). Checksums of
  // chunks that are not read to their end are not checked.
  Result<PreviewReport> decompress_preview(std::span<const std::uint8_t> stream, int factor,
                                           const MutableArrayView& out,
                                           const Execution& execution = {});
  // Decodes what can be decoded, sets the rest to NaN and lists it. Fails only when the header
  // is unusable.
  Result<std::vector<Damage>> salvage(std::span<const std::uint8_t> stream,
                                      const MutableArrayView& out, const Execution& execution = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same without keeping anything.
FIRN_API Result<Buffer> compress(const ArrayView& array, const Options& options,
                                 const Execution& execution = {});
FIRN_API Status decompress(std::span<const std::uint8_t> stream, const MutableArrayView& out,
                           const Execution& execution = {});
FIRN_API Status decompress_region(std::span<const std::uint8_t> stream, const Region& region,
                                  const MutableArrayView& out, const Execution& execution = {});

// Reads some 1 % of the array (512 Ki values at least) and tells what to expect of options.bound;
// of a ratio or a PSNR, which bound it takes. docs/measurements.md has how far off it is.
FIRN_API Result<Estimate> estimate(const ArrayView& array, const Options& options,
                                   const Execution& execution = {});

FIRN_API Result<PreviewReport> decompress_preview(std::span<const std::uint8_t> stream, int factor,
                                                  const MutableArrayView& out,
                                                  const Execution& execution = {});
FIRN_API Result<Shape> preview_shape(std::span<const std::uint8_t> stream, int factor);

// Reads the header and, if there is one, the index; decodes nothing. A few hundred bytes of a
// longer stream are enough for the header's part.
FIRN_API Result<Info> inspect(std::span<const std::uint8_t> stream);
FIRN_API Result<std::vector<ChunkInfo>> inspect_chunks(std::span<const std::uint8_t> stream);

// Compares decoded values with the original's, value by value. The bound decides what counts as a
// violation: an absolute one, pwrel, or lossless (0).
FIRN_API Result<Comparison> compare(const ArrayView& original, const ArrayView& decoded,
                                    const Bound& bound, std::optional<double> fill = {},
                                    const Execution& execution = {});
inline Result<Comparison> compare(const ArrayView& original, const ArrayView& decoded,
                                  double bound_abs, std::optional<double> fill = {},
                                  const Execution& execution = {}) {
  return compare(original, decoded, Bound::abs(bound_abs), fill, execution);
}
// Decodes the stream and compares it with the original under the bound that it promises.
// Succeeds with violations > 0 when the bound is broken.
FIRN_API Result<Comparison> verify(const ArrayView& original, std::span<const std::uint8_t> stream,
                                   const Execution& execution = {});

// The SIMD target in use ("AVX2", "SSE4", ..., "reference"). The environment variable FIRN_SIMD
// names another one; the bytes are the same for all.
FIRN_API const char* simd_target();
FIRN_API std::vector<std::string> simd_targets();
FIRN_API const char* version();

}  // namespace firn
