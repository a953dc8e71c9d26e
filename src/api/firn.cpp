// The C++ entry points: argument checks, and the edge where exceptions end.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <firn/firn.hpp>
#include <new>

#include "base/geometry.hpp"
#include "base/simd_target.hpp"
#include "engine/compare.hpp"
#include "engine/compress.hpp"
#include "engine/decompress.hpp"
#include "pipelines/pipeline.hpp"
#include "plan/plan.hpp"

namespace firn {

Shape::Shape(std::initializer_list<std::uint64_t> list) : rank(static_cast<int>(list.size())) {
  // More than four extents keep their rank, which every entry point refuses.
  std::copy_n(list.begin(), std::min<std::size_t>(list.size(), kMaxRank), extents.begin());
}

std::uint64_t Shape::count() const {
  if (rank == 0) return 0;
  std::uint64_t product = 1;
  for (int k = 0; k < std::min(rank, kMaxRank); ++k) product *= extents[k];
  return product;
}

std::size_t size_of(Type type) { return type == Type::f32 ? 4 : 8; }
const char* name_of(Type type) { return type == Type::f32 ? "f32" : "f64"; }

namespace {

struct NamedPipeline {
  Pipeline pipeline;
  const char* name;
};
constexpr NamedPipeline kPipelines[] = {
    {Pipeline::automatic, "auto"},    {Pipeline::raw, "raw"},
    {Pipeline::constant, "constant"}, {Pipeline::shuffle, "shuffle"},
    {Pipeline::lorenzo, "lorenzo"},   {Pipeline::blockpack, "blockpack"},
    {Pipeline::ceresz, "ceresz"},     {Pipeline::ceresz4, "ceresz4"},
    {Pipeline::contexts, "contexts"}, {Pipeline::interp, "interp"},
    {Pipeline::fre, "fre"},           {Pipeline::fre_round, "fre-round"},
};
constexpr const char* kPresets[] = {"fast", "balanced", "small"};
constexpr const char* kBounds[] = {"lossless", "abs", "rel", "psnr", "pwrel"};

// Runs what may throw and turns an exception into an error.
template <class Body>
auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory"};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unsupported, exception.what()};
  }
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (int k = 0; k < std::min(shape.rank, kMaxRank); ++k) {
    text += (k ? "x" : "") + std::to_string(shape.extents[k]);
  }
  return text;
}

Status check_output(const container::Header& header, const Shape& wanted,
                    const MutableArrayView& out) {
  if (out.type != header.type) {
    return Error{ErrorCode::invalid_argument, std::string("the stream holds ") +
                                                  name_of(header.type) + ", the output array " +
                                                  name_of(out.type)};
  }
  if (!(out.shape == wanted)) {
    return Error{ErrorCode::invalid_argument, "the output array is " + text_of(out.shape) +
                                                  ", but " + text_of(wanted) +
                                                  " is decoded (slowest axis first)"};
  }
  if (out.data == nullptr && wanted.count() != 0) {
    return Error{ErrorCode::invalid_argument, "the output array's data is null"};
  }
  return std::monostate{};
}

Status check_threads(const Execution& execution) {
  if (execution.threads < 0 || execution.threads > 4096) {
    return Error{ErrorCode::invalid_argument, "threads " + std::to_string(execution.threads) +
                                                  "; it must be 0 (all cores) to 4096"};
  }
  return std::monostate{};
}

// The workers of a context, made anew when the caller asks for another number of threads.
pipelines::Workers& workers_for(std::unique_ptr<pipelines::Workers>& workers, int threads) {
  if (!workers ||
      (threads != 0 && workers->threads() != std::min(threads, pipelines::Workers::all_cores())) ||
      (threads == 0 && workers->threads() != pipelines::Workers::all_cores())) {
    workers = std::make_unique<pipelines::Workers>(threads);
  }
  return *workers;
}

}  // namespace

const char* name_of(Pipeline pipeline) {
  for (const NamedPipeline& named : kPipelines) {
    if (named.pipeline == pipeline) return named.name;
  }
  return "unknown";
}
const char* name_of(Preset preset) { return kPresets[static_cast<int>(preset)]; }
const char* name_of(BoundKind kind) { return kBounds[static_cast<int>(kind)]; }

Result<Pipeline> parse_pipeline(const std::string& name) {
  std::string known;
  for (const NamedPipeline& named : kPipelines) {
    if (name == named.name) return named.pipeline;
    known += std::string(known.empty() ? "" : ", ") + named.name;
  }
  return Error{ErrorCode::invalid_argument, "no pipeline \"" + name + "\"; there are " + known};
}

Result<Preset> parse_preset(const std::string& name) {
  for (int i = 0; i < 3; ++i) {
    if (name == kPresets[i]) return static_cast<Preset>(i);
  }
  return Error{ErrorCode::invalid_argument,
               "no preset \"" + name + "\"; there are fast, balanced, small"};
}

bool Buffer::resize(std::size_t size) {
  // Gives memory back only when that is worth a call.
  if (size > capacity_ || size < capacity_ / 2) {
    void* moved = std::realloc(data_, size == 0 ? 1 : size);
    if (moved == nullptr) return false;
    data_ = static_cast<std::uint8_t*>(moved);
    capacity_ = size;
  }
  size_ = size;
  return true;
}

std::uint8_t* Buffer::release() {
  size_ = capacity_ = 0;
  return std::exchange(data_, nullptr);
}

Result<std::uint64_t> worst_case_size(Type type, const Shape& shape, const Options& options) {
  const auto plan = plan::check_options(type, shape, options);
  if (!plan) return plan.error();
  return engine::worst_case_size(*plan);
}

struct Compressor::State {
  std::unique_ptr<pipelines::Workers> workers;
  engine::CompressScratch scratch;

  Status run(const ArrayView& array, const Options& options, const Execution& execution,
             engine::Output& output) {
    if (const Status status = check_threads(execution); !status) return status;
    pipelines::Workers& crew = workers_for(workers, execution.threads);
    auto plan = plan::make_plan(array, options, crew);
    if (!plan) return plan.error();
    return engine::compress(array, *plan, execution, crew, scratch, output);
  }
};

Compressor::Compressor() = default;
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

Result<Buffer> Compressor::compress(const ArrayView& array, const Options& options,
                                    const Execution& execution) {
  return guarded([&]() -> Result<Buffer> {
    if (!state_) state_ = std::make_unique<State>();
    Buffer buffer;
    engine::Output output(&buffer);
    if (const Status status = state_->run(array, options, execution, output); !status) {
      return status.error();
    }
    return buffer;
  });
}

Result<std::size_t> Compressor::compress_into(const ArrayView& array, const Options& options,
                                              std::span<std::uint8_t> out,
                                              const Execution& execution) {
  return guarded([&]() -> Result<std::size_t> {
    if (!state_) state_ = std::make_unique<State>();
    engine::Output output(out);
    if (const Status status = state_->run(array, options, execution, output); !status) {
      return status.error();
    }
    return output.size();
  });
}

struct Decompressor::State {
  std::unique_ptr<pipelines::Workers> workers;
  engine::OpenStream stream;

  Status run(std::span<const std::uint8_t> bytes, const Region* region, const MutableArrayView& out,
             const Execution& execution, std::vector<Damage>* damages) {
    if (const Status status = check_threads(execution); !status) return status;
    if (const Status status = stream.open(bytes); !status) return status;
    const Shape& shape = stream.header.shape;
    Region wanted;
    wanted.shape = shape;
    if (region != nullptr) {
      wanted = *region;
      bool inside = wanted.shape.rank == shape.rank;
      for (int k = 0; inside && k < shape.rank; ++k) {
        inside = wanted.origin[k] <= shape.extents[k] &&
                 wanted.shape.extents[k] <= shape.extents[k] - wanted.origin[k];
      }
      if (!inside) {
        return Error{ErrorCode::invalid_argument, "the region does not lie in the array of " +
                                                      text_of(shape) + " (slowest axis first)"};
      }
    }
    if (const Status status = check_output(stream.header, wanted.shape, out); !status) {
      return status;
    }
    return engine::decompress(stream, wanted, out, execution,
                              workers_for(workers, execution.threads), damages);
  }
};

Decompressor::Decompressor() = default;
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;

Status Decompressor::decompress(std::span<const std::uint8_t> stream, const MutableArrayView& out,
                                const Execution& execution) {
  return guarded([&] {
    if (!state_) state_ = std::make_unique<State>();
    return state_->run(stream, nullptr, out, execution, nullptr);
  });
}

Status Decompressor::decompress_region(std::span<const std::uint8_t> stream, const Region& region,
                                       const MutableArrayView& out, const Execution& execution) {
  return guarded([&] {
    if (!state_) state_ = std::make_unique<State>();
    return state_->run(stream, &region, out, execution, nullptr);
  });
}

Result<std::vector<Damage>> Decompressor::salvage(std::span<const std::uint8_t> stream,
                                                  const MutableArrayView& out,
                                                  const Execution& execution) {
  return guarded([&]() -> Result<std::vector<Damage>> {
    if (!state_) state_ = std::make_unique<State>();
    std::vector<Damage> damages;
    if (const Status status = state_->run(stream, nullptr, out, execution, &damages); !status) {
      return status.error();
    }
    return damages;
  });
}

Result<Buffer> compress(const ArrayView& array, const Options& options,
                        const Execution& execution) {
  return Compressor().compress(array, options, execution);
}
Status decompress(std::span<const std::uint8_t> stream, const MutableArrayView& out,
                  const Execution& execution) {
  return Decompressor().decompress(stream, out, execution);
}
Status decompress_region(std::span<const std::uint8_t> stream, const Region& region,
                         const MutableArrayView& out, const Execution& execution) {
  return Decompressor().decompress_region(stream, region, out, execution);
}

Result<Info> inspect(std::span<const std::uint8_t> bytes) {
  return guarded([&]() -> Result<Info> {
    engine::OpenStream stream;
    if (const Status status = stream.open(bytes); !status) return status.error();
    const container::Header& header = stream.header;
    Info info;
    info.format_version = bytes[4];
    info.type = header.type;
    info.shape = header.shape;
    info.chunk = header.chunk;
    info.bound = header.bound;
    const bool pointwise = header.bound.kind == BoundKind::pwrel;
    (pointwise ? info.bound_pwrel : info.bound_abs) = header.bound_abs;
    info.fill = header.fill;
    info.chunk_count = stream.grid.count();
    info.original_bytes = header.shape.count() * size_of(header.type);
    info.compressed_bytes = bytes.size();
    info.complete = stream.records.entries.size() == info.chunk_count;
    double& error = pointwise ? info.max_pwrel_error : info.max_abs_error;
    error = info.complete ? 0 : header.bound_abs;
    for (const auto& entry : stream.records.entries) {
      error = std::max(error, container::error_of_units(entry.error_units, header.bound_abs));
    }
    return info;
  });
}

Result<std::vector<ChunkInfo>> inspect_chunks(std::span<const std::uint8_t> bytes) {
  return guarded([&]() -> Result<std::vector<ChunkInfo>> {
    engine::OpenStream stream;
    if (const Status status = stream.open(bytes); !status) return status.error();
    const container::Header& header = stream.header;
    std::vector<ChunkInfo> chunks;
    for (std::uint64_t number = 0; number < stream.records.entries.size(); ++number) {
      const auto& entry = stream.records.entries[number];
      const Region region = stream.grid.region(number);
      const auto record = container::read_record(
          bytes, entry, region.shape.count() * size_of(header.type), header, number);
      ChunkInfo chunk;
      chunk.offset = entry.offset;
      chunk.size_bytes = entry.size;
      (header.bound.kind == BoundKind::pwrel ? chunk.max_pwrel_error : chunk.max_abs_error) =
          container::error_of_units(entry.error_units, header.bound_abs);
      chunk.origin = region.origin;
      chunk.shape = region.shape;
      if (record) {
        chunk.pipeline = record->pipeline;
        chunk.detail = pipelines::describe(record->pipeline, record->payload, header.shape.rank);
      } else {
        chunk.detail = "damaged: " + record.error().message;
      }
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  });
}

Result<Comparison> compare(const ArrayView& original, const ArrayView& decoded, const Bound& bound,
                           std::optional<double> fill, const Execution& execution) {
  return guarded([&]() -> Result<Comparison> {
    if (bound.kind == BoundKind::rel || bound.kind == BoundKind::psnr) {
      return Error{ErrorCode::invalid_argument,
                   std::string("values cannot be compared under a bound of kind ") +
                       name_of(bound.kind) + "; give an absolute one, or pwrel"};
    }
    if (const Status status = check_threads(execution); !status) return status.error();
    if (original.type != decoded.type || !(original.shape == decoded.shape)) {
      return Error{ErrorCode::invalid_argument,
                   std::string("the original is ") + name_of(original.type) + " " +
                       text_of(original.shape) + ", the other array " + name_of(decoded.type) +
                       " " + text_of(decoded.shape)};
    }
    if (const Status status =
            check_shapes(original.type, original.shape, original.shape, ~std::uint64_t{0});
        !status) {
      return status.error();
    }
    if ((original.data == nullptr || decoded.data == nullptr) && original.shape.count() != 0) {
      return Error{ErrorCode::invalid_argument, "an array's data is null"};
    }
    pipelines::Workers workers(execution.threads);
    return engine::compare(original, decoded, bound, fill, workers);
  });
}

Result<Comparison> verify(const ArrayView& original, std::span<const std::uint8_t> bytes,
                          const Execution& execution) {
  return guarded([&]() -> Result<Comparison> {
    const auto info = inspect(bytes);
    if (!info) return info.error();
    if (original.type != info->type || !(original.shape == info->shape)) {
      return Error{ErrorCode::invalid_argument,
                   std::string("the original is ") + name_of(original.type) + " " +
                       text_of(original.shape) + ", the stream holds " + name_of(info->type) + " " +
                       text_of(info->shape) + " (slowest axis first)"};
    }
    Buffer decoded;
    if (!decoded.resize(static_cast<std::size_t>(info->original_bytes))) throw std::bad_alloc();
    const MutableArrayView out{decoded.data(), info->type, info->shape, {}};
    if (const Status status = decompress(bytes, out, execution); !status) return status.error();
    const Bound promised = info->bound.kind == BoundKind::pwrel ? Bound::pwrel(info->bound_pwrel)
                                                                : Bound::abs(info->bound_abs);
    return compare(original, {decoded.data(), info->type, info->shape, {}}, promised, info->fill,
                   execution);
  });
}

const char* simd_target() { return simd::name_of(simd::default_target()); }

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const simd::Target target : simd::available_targets()) {
    names.emplace_back(simd::name_of(target));
  }
  return names;
}

const char* version() { return FIRN_VERSION; }

}  // namespace firn
