// The C++ entry points: argument checks, and the edge where exceptions end.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <firn/firn.hpp>

#include "api/edge.hpp"
#include "base/geometry.hpp"
#include "base/simd_target.hpp"
#include "engine/compare.hpp"
#include "engine/compress.hpp"
#include "engine/estimate.hpp"
#include "engine/quality.hpp"
#include "engine/rate.hpp"
#include "engine/reader.hpp"
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
    {Pipeline::causal, "causal"},     {Pipeline::bits, "bits"},
};
constexpr const char* kPresets[] = {"fast", "balanced", "small"};
constexpr const char* kBookPolicies[] = {"cost", "chi", "stored", "offline"};
constexpr const char* kBounds[] = {"lossless", "abs", "rel", "psnr", "pwrel", "ratio"};

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

}  // namespace

const char* name_of(Pipeline pipeline) {
  for (const NamedPipeline& named : kPipelines) {
    if (named.pipeline == pipeline) return named.name;
  }
  return "unknown";
}
const char* name_of(Tune tune) {
  return tune == Tune::size ? "size" : tune == Tune::psnr ? "psnr" : "unknown";
}
const char* name_of(Preset preset) { return kPresets[static_cast<int>(preset)]; }
const char* name_of(BoundKind kind) { return kBounds[static_cast<int>(kind)]; }

const char* name_of(BookPolicy policy) { return kBookPolicies[static_cast<int>(policy)]; }

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

Result<BookPolicy> parse_book_policy(const std::string& name) {
  for (int i = 0; i < 4; ++i) {
    if (name == kBookPolicies[i]) return static_cast<BookPolicy>(i);
  }
  return Error{ErrorCode::invalid_argument,
               "no book policy \"" + name + "\"; there are cost, chi, stored, offline"};
}

Result<Tune> parse_tune(const std::string& name) {
  for (const Tune tune : {Tune::size, Tune::psnr}) {
    if (name == name_of(tune)) return tune;
  }
  return Error{ErrorCode::invalid_argument,
               "cannot tune for \"" + name + "\"; there are size, psnr"};
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

Status compress_array(const ArrayView& array, const Options& options, const Execution& execution,
                      pipelines::Workers& workers, engine::CompressScratch& scratch,
                      engine::Output& output) {
  if (options.bound.kind == BoundKind::ratio) {
    return engine::compress_to_ratio(array, options, execution, workers, scratch, output);
  }
  if (options.bound.kind == BoundKind::psnr && options.preset != Preset::fast &&
      options.pipeline == Pipeline::automatic) {
    return engine::compress_to_psnr(array, options, execution, workers, scratch, output);
  }
  plan::Plan plan;
  if (const Status status = plan::make_plan(array, options, workers, &plan); !status) return status;
  return engine::compress(array, plan, execution, workers, scratch, output);
}

struct Compressor::State {
  std::unique_ptr<pipelines::Workers> workers;
  engine::CompressScratch scratch;

  Status run(const ArrayView& array, const Options& options, const Execution& execution,
             engine::Output& output) {
    if (const Status status = check_threads(execution); !status) return status;
    pipelines::Workers& crew = workers_for(workers, execution.threads);
    return compress_array(array, options, execution, crew, scratch, output);
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
  engine::Reader reader;

  Status run(std::span<const std::uint8_t> bytes, const Region* region, const MutableArrayView& out,
             const Execution& execution, std::vector<Damage>* damages) {
    if (const Status status = check_threads(execution); !status) return status;
    if (const Status status = reader.open(bytes); !status) return status;
    const Shape& shape = reader.shape();
    // A region may lie in what is there; all of the array is more than that.
    if (!reader.whole() && region == nullptr && damages == nullptr) return reader.cut_off();
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
    if (const Status status = check_output(reader.header(), wanted.shape, out); !status) {
      return status;
    }
    return reader.decompress(wanted, out, execution, workers_for(workers, execution.threads),
                             damages);
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

namespace {

Status check_factor(int factor) {
  if (factor >= 1 && factor <= 1 << 20 && (factor & (factor - 1)) == 0) return std::monostate{};
  return Error{ErrorCode::invalid_argument, "the factor of a preview is " + std::to_string(factor) +
                                                "; it must be a power of two: 2, 4, 8, ..."};
}

}  // namespace

namespace {

// Parts of a series are thinned out one by one.
Result<Shape> preview_shape_of(engine::Reader& reader, std::uint64_t factor) {
  Shape shape = reader.shape();
  if (shape.rank > 0) shape.extents[0] = 0;
  const Status status = reader.for_each_part(
      [&](const engine::OpenStream& stream, std::uint64_t, std::uint64_t) -> Status {
        const Shape part = engine::preview_shape(stream.header, factor);
        shape.extents[0] += part.extents[0];
        for (int k = 1; k < shape.rank; ++k) shape.extents[k] = part.extents[k];
        return std::monostate{};
      });
  if (!status) return status.error();
  return shape;
}

}  // namespace

Result<PreviewReport> Decompressor::decompress_preview(std::span<const std::uint8_t> stream,
                                                       int factor, const MutableArrayView& out,
                                                       const Execution& execution) {
  return guarded([&]() -> Result<PreviewReport> {
    if (!state_) state_ = std::make_unique<State>();
    if (const Status status = check_threads(execution); !status) return status.error();
    if (const Status status = check_factor(factor); !status) return status.error();
    engine::Reader& reader = state_->reader;
    if (const Status status = reader.open(stream); !status) return status.error();
    if (!reader.whole()) return reader.cut_off();
    const auto divisor = static_cast<std::uint64_t>(factor);
    const Result<Shape> shape = preview_shape_of(reader, divisor);
    if (!shape) return shape.error();
    if (const Status status = check_output(reader.header(), *shape, out); !status) {
      return status.error();
    }
    PreviewReport report;
    report.shape = *shape;
    MutableArrayView place = out;
    place.strides = out.strides ? *out.strides : contiguous_strides(*shape);
    pipelines::Workers& workers = workers_for(state_->workers, execution.threads);
    const Status status = reader.for_each_part(
        [&](const engine::OpenStream& part, std::uint64_t, std::uint64_t) -> Status {
          const auto done = engine::preview(part, divisor, place, execution, workers);
          if (!done) return done.error();
          report.chunks_from_prefix += done->chunks_from_prefix;
          report.chunks_decoded_whole += done->chunks_decoded_whole;
          place.data = static_cast<std::uint8_t*>(place.data) +
                       static_cast<std::int64_t>(done->shape.extents[0]) * (*place.strides)[0] *
                           static_cast<std::int64_t>(size_of(out.type));
          return std::monostate{};
        });
    if (!status) return status.error();
    return report;
  });
}

Result<PreviewReport> decompress_preview(std::span<const std::uint8_t> stream, int factor,
                                         const MutableArrayView& out, const Execution& execution) {
  return Decompressor().decompress_preview(stream, factor, out, execution);
}

Result<Shape> preview_shape(std::span<const std::uint8_t> bytes, int factor) {
  return guarded([&]() -> Result<Shape> {
    if (const Status status = check_factor(factor); !status) return status.error();
    engine::Reader reader;
    if (const Status status = reader.open(bytes); !status) return status.error();
    return preview_shape_of(reader, static_cast<std::uint64_t>(factor));
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

Result<Estimate> estimate(const ArrayView& array, const Options& options,
                          const Execution& execution) {
  return guarded([&]() -> Result<Estimate> {
    if (const Status status = check_threads(execution); !status) return status.error();
    pipelines::Workers workers(execution.threads);
    return engine::estimate(array, options, workers);
  });
}

Result<Info> inspect(std::span<const std::uint8_t> bytes) {
  return guarded([&]() -> Result<Info> {
    engine::Reader reader;
    if (const Status status = reader.open(bytes); !status) return status.error();
    const container::Header& header = reader.header();
    Info info;
    info.format_version = bytes[4];
    info.type = header.type;
    info.shape = header.shape;
    info.chunk = header.chunk;
    info.bound = header.bound;
    info.fill = header.fill;
    info.part_count = reader.part_count();
    info.original_bytes = header.shape.count() * size_of(header.type);
    info.compressed_bytes = bytes.size();
    info.complete = reader.whole();
    bool alike = true;  // all parts were asked for the same
    bool damaged = false;
    const Status status = reader.for_each_part(
        [&](const engine::OpenStream& part, std::uint64_t, std::uint64_t) -> Status {
          const bool pointwise = part.header.bound.kind == BoundKind::pwrel;
          double& bound = pointwise ? info.bound_pwrel : info.bound_abs;
          double& error = pointwise ? info.max_pwrel_error : info.max_abs_error;
          alike = alike && part.header.bound.kind == info.bound.kind &&
                  part.header.bound.value == info.bound.value;
          bound = std::max(bound, part.header.promised());
          info.chunk_count += part.grid.count();
          if (part.records.entries.size() != part.grid.count()) {
            info.complete = false;
            error = std::max(error, part.header.promised());
          }
          for (const auto& entry : part.records.entries) {
            error = std::max(error,
                             container::error_of_units(entry.error_units, part.header.bound_abs));
          }
          return std::monostate{};
        },
        &damaged);
    if (damaged) info.complete = false;
    if (!status) return status.error();
    if (!alike) {
      info.bound = info.bound_abs > 0     ? Bound::abs(info.bound_abs)
                   : info.bound_pwrel > 0 ? Bound::pwrel(info.bound_pwrel)
                                          : Bound::lossless();
    }
    return info;
  });
}

Result<std::vector<ChunkInfo>> inspect_chunks(std::span<const std::uint8_t> bytes) {
  return guarded([&]() -> Result<std::vector<ChunkInfo>> {
    engine::Reader reader;
    if (const Status status = reader.open(bytes); !status) return status.error();
    std::vector<ChunkInfo> chunks;
    bool damaged = false;  // such parts' chunks are not among them
    const Status status = reader.for_each_part(
        [&](const engine::OpenStream& part, std::uint64_t offset, std::uint64_t begin) -> Status {
          const container::Header& header = part.header;
          for (std::uint64_t number = 0; number < part.records.entries.size(); ++number) {
            const auto& entry = part.records.entries[number];
            const Region region = part.grid.region(number);
            const auto record = container::read_record(
                part.bytes, entry, region.shape.count() * size_of(header.type), header, number);
            ChunkInfo chunk;
            chunk.offset = offset + entry.offset;
            chunk.size_bytes = entry.size;
            const bool pointwise = header.bound.kind == BoundKind::pwrel;
            if (!pointwise) chunk.bound_abs = header.promised();
            (pointwise ? chunk.max_pwrel_error : chunk.max_abs_error) =
                container::error_of_units(entry.error_units, header.bound_abs);
            chunk.origin = region.origin;
            chunk.origin[0] += begin;
            chunk.shape = region.shape;
            if (record) {
              chunk.pipeline = record->pipeline;
              chunk.detail = pipelines::describe(record->pipeline, record->payload,
                                                 header.shape.rank, header.tighter);
            } else {
              chunk.detail = "damaged: " + record.error().message;
            }
            chunks.push_back(std::move(chunk));
          }
          return std::monostate{};
        },
        &damaged);
    if (!status) return status.error();
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
    const ArrayView values{decoded.data(), info->type, info->shape, {}};
    const auto promised = [](BoundKind kind, double bound) {
      return kind == BoundKind::pwrel ? Bound::pwrel(bound) : Bound::abs(bound);
    };
    auto whole = compare(original, values,
                         promised(info->bound.kind, std::max(info->bound_abs, info->bound_pwrel)),
                         info->fill, execution);
    if (!whole || info->part_count == 1) return whole;
    // Each part of a series promises a bound of its own.
    whole->violations = 0;
    engine::Reader reader;
    if (const Status status = reader.open(bytes); !status) return status.error();
    const Status status = reader.for_each_part(
        [&](const engine::OpenStream& part, std::uint64_t, std::uint64_t begin) -> Status {
          const auto slice = [&](ArrayView view) {
            const auto strides = view.strides ? *view.strides : contiguous_strides(view.shape);
            view.shape = part.header.shape;
            view.data = static_cast<const std::uint8_t*>(view.data) +
                        static_cast<std::int64_t>(begin) * strides[0] *
                            static_cast<std::int64_t>(size_of(view.type));
            return view;
          };
          const auto compared = compare(slice(original), slice(values),
                                        promised(part.header.bound.kind, part.header.promised()),
                                        part.header.fill, execution);
          if (!compared) return compared.error();
          if (compared->violations != 0 && whole->violations == 0) {
            whole->first_violation =
                begin * (info->shape.count() / info->shape.extents[0]) + compared->first_violation;
          }
          whole->violations += compared->violations;
          return std::monostate{};
        });
    if (!status) return status.error();
    return whole;
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
