// The C ABI: translates structs and statuses, adds nothing.
#include <firn/firn.h>

#include <algorithm>
#include <cstring>
#include <firn/firn.hpp>
#include <firn/stream.hpp>
#include <new>

struct firn_context {
  firn::Compressor compressor;
  firn::Decompressor decompressor;
  int threads = 0;
  std::string message;
};

struct firn_writer {
  firn::StreamWriter writer;
};
struct firn_reader {
  firn::StreamReader reader;
};

namespace {

// Members beyond what the caller's version of a struct has are left at their defaults.
template <class Struct>
bool read_struct(const Struct* from, Struct* to) {
  std::memset(to, 0, sizeof *to);
  if (from == nullptr || from->struct_size < sizeof(size_t)) return false;
  std::memcpy(to, from, std::min(from->struct_size, sizeof *to));
  return true;
}

template <class Struct>
void init_struct(Struct* target) {
  if (target == nullptr) return;
  std::memset(target, 0, sizeof *target);
  target->struct_size = sizeof *target;
}

template <class Struct>
void write_struct(const Struct& from, Struct* to) {
  if (to == nullptr || to->struct_size < sizeof(size_t)) return;
  const size_t size = to->struct_size;
  std::memcpy(to, &from, std::min(size, sizeof from));
  to->struct_size = size;
}

firn_status fail(firn_context* context, firn::ErrorCode code, std::string message) {
  context->message = std::move(message);
  return static_cast<firn_status>(code);
}
firn_status fail(firn_context* context, const firn::Error& error) {
  return fail(context, error.code, error.message);
}
firn_status bad_argument(firn_context* context, const char* message) {
  return fail(context, firn::ErrorCode::invalid_argument, message);
}

firn::Shape shape_of(int32_t rank, const uint64_t* extents) {
  firn::Shape shape;
  shape.rank = rank;
  if (rank > 0 && rank <= firn::kMaxRank) std::copy_n(extents, rank, shape.extents.begin());
  return shape;
}

// False when the struct is missing or says something that no array can be.
bool view_of(const firn_array* given, firn::ArrayView* view) {
  firn_array array;
  if (!read_struct(given, &array)) return false;
  if (array.type != FIRN_F32 && array.type != FIRN_F64) return false;
  view->data = array.data;
  view->type = static_cast<firn::Type>(array.type);
  view->shape = shape_of(array.rank, array.extents);
  if (array.has_strides != 0) {
    view->strides.emplace();
    std::copy_n(array.strides, firn::kMaxRank, view->strides->begin());
  }
  return true;
}

// None when the pointer is NULL, so that it is refused as what is no stream.
std::span<const std::uint8_t> bytes_of(const void* stream, size_t size) {
  return {static_cast<const std::uint8_t*>(stream), stream == nullptr ? 0 : size};
}

constexpr const char* kBadArray =
    "the array is NULL, not initialised by firn_array_init, or of an unknown type";

firn::Result<firn::Options> options_of(const firn_options* given, int* threads) {
  firn_options options;
  if (!read_struct(given, &options)) {
    return firn::Error{firn::ErrorCode::invalid_argument,
                       "the options are NULL or not initialised by firn_options_init"};
  }
  firn::Options result;
  const auto unknown = [](const char* field, int32_t value, const char* known) {
    return firn::Error{firn::ErrorCode::invalid_argument, "firn_options." + std::string(field) +
                                                              " is " + std::to_string(value) +
                                                              "; there are " + known};
  };
  if (options.bound < FIRN_LOSSLESS || options.bound > FIRN_RATIO) {
    return unknown("bound", options.bound,
                   "FIRN_LOSSLESS (0), FIRN_ABS, FIRN_REL, FIRN_PSNR, FIRN_PWREL, FIRN_RATIO (5)");
  }
  if (options.preset < FIRN_FAST || options.preset > FIRN_SMALL) {
    return unknown("preset", options.preset, "FIRN_FAST (0), FIRN_BALANCED, FIRN_SMALL (2)");
  }
  if (options.books < FIRN_BOOKS_COST || options.books > FIRN_BOOKS_OFFLINE) {
    return unknown(
        "books", options.books,
        "FIRN_BOOKS_COST (0), FIRN_BOOKS_CHI, FIRN_BOOKS_STORED, FIRN_BOOKS_OFFLINE (3)");
  }
  if (options.tune < FIRN_TUNE_SIZE || options.tune > FIRN_TUNE_PSNR) {
    return unknown("tune", options.tune, "FIRN_TUNE_SIZE (0), FIRN_TUNE_PSNR (1)");
  }
  result.books = static_cast<firn::BookPolicy>(options.books);
  result.bound = {static_cast<firn::BoundKind>(options.bound), options.bound_value};
  result.preset = static_cast<firn::Preset>(options.preset);
  if (options.pipeline != nullptr) {
    const auto pipeline = firn::parse_pipeline(options.pipeline);
    if (!pipeline) return pipeline.error();
    result.pipeline = *pipeline;
  }
  result.chunk = shape_of(options.chunk_rank, options.chunk);
  if (options.has_fill != 0) result.fill = options.fill;
  if (options.max_abs != 0) result.max_abs = options.max_abs;
  result.tune = static_cast<firn::Tune>(options.tune);
  *threads = options.threads;
  return result;
}

// Nothing may leave through a C function, not even a failing std::string.
template <class Body>
firn_status guarded(firn_context* context, Body body) {
  if (context == nullptr) return FIRN_INVALID_ARGUMENT;
  try {
    context->message.clear();
    return body();
  } catch (...) {
    return FIRN_OUT_OF_MEMORY;
  }
}

template <class Make>
firn_status make_writer(firn_context* context, const firn_options* options, firn_writer** writer,
                        const Make& make) {
  return guarded(context, [&] {
    if (writer == nullptr) return bad_argument(context, "writer is NULL");
    *writer = nullptr;
    firn::Execution execution;
    const auto wanted = options_of(options, &execution.threads);
    if (!wanted) return fail(context, wanted.error());
    auto made = make(*wanted, execution);
    if (!made) return fail(context, made.error());
    *writer = new firn_writer{std::move(*made)};
    return FIRN_OK;
  });
}

// Calls `decode` with the array that is to be written to.
template <class Decode>
firn_status decode_to(firn_context* context, const firn_array* array, Decode decode) {
  return guarded(context, [&] {
    firn::ArrayView view;
    if (!view_of(array, &view)) return bad_argument(context, kBadArray);
    const firn::MutableArrayView out{const_cast<void*>(view.data), view.type, view.shape,
                                     view.strides};
    firn::Execution execution;
    execution.threads = context->threads;
    return decode(out, execution);
  });
}

}  // namespace

extern "C" {

void firn_array_init(firn_array* array) { init_struct(array); }
void firn_info_init(firn_info* info) { init_struct(info); }
void firn_comparison_init(firn_comparison* comparison) { init_struct(comparison); }
void firn_estimation_init(firn_estimation* estimation) { init_struct(estimation); }
void firn_options_init(firn_options* options) {
  init_struct(options);
  if (options != nullptr) options->preset = FIRN_BALANCED;
}

firn_context* firn_context_new(void) { return new (std::nothrow) firn_context; }
void firn_context_free(firn_context* context) { delete context; }
const char* firn_context_error(const firn_context* context) {
  return context == nullptr ? "no context" : context->message.c_str();
}
void firn_context_set_threads(firn_context* context, int32_t threads) {
  if (context != nullptr) context->threads = threads;
}

uint64_t firn_worst_case_size(firn_context* context, const firn_array* array,
                              const firn_options* options) {
  uint64_t size = 0;
  guarded(context, [&] {
    firn::ArrayView view;
    int threads = 0;
    if (!view_of(array, &view)) return bad_argument(context, kBadArray);
    const auto wanted = options_of(options, &threads);
    if (!wanted) return fail(context, wanted.error());
    const auto result = firn::worst_case_size(view.type, view.shape, *wanted);
    if (!result) return fail(context, result.error());
    size = *result;
    return FIRN_OK;
  });
  return size;
}

firn_status firn_compress_into(firn_context* context, const firn_array* array,
                               const firn_options* options, void* out, size_t room, size_t* size) {
  return guarded(context, [&] {
    firn::ArrayView view;
    firn::Execution execution;
    if (!view_of(array, &view)) return bad_argument(context, kBadArray);
    if (out == nullptr || size == nullptr) return bad_argument(context, "out or size is NULL");
    const auto wanted = options_of(options, &execution.threads);
    if (!wanted) return fail(context, wanted.error());
    const auto used = context->compressor.compress_into(
        view, *wanted, {static_cast<std::uint8_t*>(out), room}, execution);
    if (!used) return fail(context, used.error());
    *size = *used;
    return FIRN_OK;
  });
}

firn_status firn_compress(firn_context* context, const firn_array* array,
                          const firn_options* options, void** out, size_t* size) {
  return guarded(context, [&] {
    firn::ArrayView view;
    firn::Execution execution;
    if (!view_of(array, &view)) return bad_argument(context, kBadArray);
    if (out == nullptr || size == nullptr) return bad_argument(context, "out or size is NULL");
    const auto wanted = options_of(options, &execution.threads);
    if (!wanted) return fail(context, wanted.error());
    auto buffer = context->compressor.compress(view, *wanted, execution);
    if (!buffer) return fail(context, buffer.error());
    *size = buffer->size();
    *out = buffer->release();
    return FIRN_OK;
  });
}

void firn_free(void* bytes) { std::free(bytes); }

firn_status firn_estimate(firn_context* context, const firn_array* array,
                          const firn_options* options, firn_estimation* estimation) {
  return guarded(context, [&] {
    firn::ArrayView view;
    firn::Execution execution;
    if (estimation == nullptr) return bad_argument(context, "estimation is NULL");
    if (!view_of(array, &view)) return bad_argument(context, kBadArray);
    const auto wanted = options_of(options, &execution.threads);
    if (!wanted) return fail(context, wanted.error());
    const auto found = firn::estimate(view, *wanted, execution);
    if (!found) return fail(context, found.error());
    firn_estimation result;
    init_struct(&result);
    result.bound_abs = found->bound_abs;
    result.ratio = found->ratio;
    result.psnr_db = found->psnr_db;
    result.sampled_values = found->sampled_values;
    write_struct(result, estimation);
    return FIRN_OK;
  });
}

firn_status firn_inspect(firn_context* context, const void* stream, size_t size, firn_info* info) {
  return guarded(context, [&] {
    if (info == nullptr) return bad_argument(context, "info is NULL");
    const auto found = firn::inspect(bytes_of(stream, size));
    if (!found) return fail(context, found.error());
    firn_info result;
    init_struct(&result);
    result.format_version = found->format_version;
    result.type = static_cast<int32_t>(found->type);
    result.rank = found->shape.rank;
    std::copy_n(found->shape.extents.begin(), firn::kMaxRank, result.extents);
    std::copy_n(found->chunk.extents.begin(), firn::kMaxRank, result.chunk);
    result.bound = static_cast<int32_t>(found->bound.kind);
    result.bound_value = found->bound.value;
    result.bound_abs = found->bound_abs;
    result.max_abs_error = found->max_abs_error;
    result.has_fill = found->fill.has_value();
    result.fill = found->fill.value_or(0);
    result.chunk_count = found->chunk_count;
    result.original_bytes = found->original_bytes;
    result.compressed_bytes = found->compressed_bytes;
    result.complete = found->complete;
    result.part_count = found->part_count;
    result.bound_pwrel = found->bound_pwrel;
    result.max_pwrel_error = found->max_pwrel_error;
    write_struct(result, info);
    return FIRN_OK;
  });
}

static firn_status decompress_box(firn_context* context, const void* stream, size_t size,
                                  const uint64_t* origin, const firn_array* array) {
  return decode_to(context, array, [&](const auto& out, const auto& execution) {
    const std::span<const std::uint8_t> bytes = bytes_of(stream, size);
    firn::Region region;
    region.shape = out.shape;
    if (origin != nullptr && out.shape.rank > 0 && out.shape.rank <= firn::kMaxRank) {
      std::copy_n(origin, out.shape.rank, region.origin.begin());
    }
    const firn::Status status =
        origin == nullptr ? context->decompressor.decompress(bytes, out, execution)
                          : context->decompressor.decompress_region(bytes, region, out, execution);
    return status ? FIRN_OK : fail(context, status.error());
  });
}

firn_status firn_decompress(firn_context* context, const void* stream, size_t size,
                            const firn_array* array) {
  return decompress_box(context, stream, size, nullptr, array);
}

firn_status firn_decompress_region(firn_context* context, const void* stream, size_t size,
                                   const uint64_t* origin, const firn_array* array) {
  if (origin == nullptr) {
    return guarded(context, [&] { return bad_argument(context, "origin is NULL"); });
  }
  return decompress_box(context, stream, size, origin, array);
}

firn_status firn_inspect_chunks(firn_context* context, const void* stream, size_t size,
                                firn_chunk* chunks, size_t room, size_t* count) {
  return guarded(context, [&] {
    if (count == nullptr) return bad_argument(context, "count is NULL");
    if (chunks == nullptr && room != 0) return bad_argument(context, "chunks is NULL");
    const auto found = firn::inspect_chunks(bytes_of(stream, size));
    if (!found) return fail(context, found.error());
    *count = found->size();
    for (size_t i = 0; i < std::min(room, found->size()); ++i) {
      const firn::ChunkInfo& from = (*found)[i];
      firn_chunk& chunk = chunks[i];
      chunk = {};
      chunk.offset = from.offset;
      chunk.size = from.size_bytes;
      chunk.pipeline = firn::name_of(from.pipeline);
      chunk.bound_abs = from.bound_abs;
      chunk.max_abs_error = from.max_abs_error;
      chunk.max_pwrel_error = from.max_pwrel_error;
      std::copy(from.origin.begin(), from.origin.end(), chunk.origin);
      std::copy(from.shape.extents.begin(), from.shape.extents.end(), chunk.extents);
    }
    return FIRN_OK;
  });
}

firn_status firn_salvage(firn_context* context, const void* stream, size_t size,
                         const firn_array* array, firn_damage* damages, size_t room,
                         size_t* count) {
  return decode_to(context, array, [&](const auto& out, const auto& execution) {
    if (count == nullptr) return bad_argument(context, "count is NULL");
    if (damages == nullptr && room != 0) return bad_argument(context, "damages is NULL");
    const auto found = context->decompressor.salvage(bytes_of(stream, size), out, execution);
    if (!found) return fail(context, found.error());
    *count = found->size();
    for (size_t i = 0; i < std::min(room, found->size()); ++i) {
      const firn::Damage& damage = (*found)[i];
      damages[i] = {};
      damages[i].chunk = damage.chunk;
      std::copy(damage.region.origin.begin(), damage.region.origin.end(), damages[i].origin);
      std::copy(damage.region.shape.extents.begin(), damage.region.shape.extents.end(),
                damages[i].extents);
      damages[i].status = static_cast<int32_t>(damage.error.code);
    }
    return FIRN_OK;
  });
}

firn_status firn_preview_shape(firn_context* context, const void* stream, size_t size,
                               int32_t factor, uint64_t* extents) {
  return guarded(context, [&] {
    if (extents == nullptr) return bad_argument(context, "extents is NULL");
    const auto shape = firn::preview_shape(bytes_of(stream, size), factor);
    if (!shape) return fail(context, shape.error());
    std::copy(shape->extents.begin(), shape->extents.end(), extents);
    return FIRN_OK;
  });
}

firn_status firn_decompress_preview(firn_context* context, const void* stream, size_t size,
                                    int32_t factor, const firn_array* array) {
  return decode_to(context, array, [&](const auto& out, const auto& execution) {
    const auto report =
        context->decompressor.decompress_preview(bytes_of(stream, size), factor, out, execution);
    return report ? FIRN_OK : fail(context, report.error());
  });
}

firn_status firn_verify(firn_context* context, const firn_array* original, const void* stream,
                        size_t size, firn_comparison* comparison) {
  return guarded(context, [&] {
    firn::ArrayView view;
    if (!view_of(original, &view)) return bad_argument(context, kBadArray);
    firn::Execution execution;
    execution.threads = context->threads;
    const auto found = firn::verify(view, bytes_of(stream, size), execution);
    if (!found) return fail(context, found.error());
    firn_comparison result;
    init_struct(&result);
    result.count = found->count;
    result.exact_count = found->exact_count;
    result.violations = found->violations;
    result.first_violation = found->first_violation;
    result.max_abs_error = found->max_abs_error;
    result.value_range = found->value_range;
    result.mean_squared_error = found->mean_squared_error;
    result.psnr_db = found->psnr_db;
    result.max_pwrel_error = found->max_pwrel_error;
    write_struct(result, comparison);
    if (found->violations == 0) return FIRN_OK;
    return fail(context, firn::ErrorCode::bound_exceeded,
                std::to_string(found->violations) + " values break the bound, the first at index " +
                    std::to_string(found->first_violation));
  });
}

firn_status firn_writer_new(firn_context* context, const firn_array* step,
                            const firn_options* options, firn_writer** writer) {
  return make_writer(context, options, writer,
                     [&](const firn::Options& wanted,
                         const firn::Execution& execution) -> firn::Result<firn::StreamWriter> {
                       firn::ArrayView view;
                       if (!view_of(step, &view)) {
                         return firn::Error{firn::ErrorCode::invalid_argument, kBadArray};
                       }
                       return firn::StreamWriter::create(view.type, view.shape, wanted, execution);
                     });
}

firn_status firn_writer_append(firn_context* context, const void* stream, size_t size,
                               const firn_options* options, firn_writer** writer,
                               uint64_t* offset) {
  const firn_status status =
      make_writer(context, options, writer,
                  [&](const firn::Options& wanted,
                      const firn::Execution& execution) -> firn::Result<firn::StreamWriter> {
                    return firn::StreamWriter::append_to(bytes_of(stream, size), wanted, execution);
                  });
  if (status == FIRN_OK && offset != nullptr) *offset = (*writer)->writer.append_offset();
  return status;
}

void firn_writer_free(firn_writer* writer) { delete writer; }

firn_status firn_writer_push(firn_context* context, firn_writer* writer, const firn_array* values) {
  return guarded(context, [&] {
    firn::ArrayView view;
    if (writer == nullptr) return bad_argument(context, "writer is NULL");
    if (!view_of(values, &view)) return bad_argument(context, kBadArray);
    const firn::Status status = writer->writer.push(view);
    return status ? FIRN_OK : fail(context, status.error());
  });
}

firn_status firn_writer_flush(firn_context* context, firn_writer* writer) {
  return guarded(context, [&] {
    if (writer == nullptr) return bad_argument(context, "writer is NULL");
    const firn::Status status = writer->writer.flush();
    return status ? FIRN_OK : fail(context, status.error());
  });
}

firn_status firn_writer_finish(firn_context* context, firn_writer* writer) {
  return guarded(context, [&] {
    if (writer == nullptr) return bad_argument(context, "writer is NULL");
    const firn::Status status = writer->writer.finish();
    return status ? FIRN_OK : fail(context, status.error());
  });
}

const void* firn_writer_ready(firn_writer* writer, size_t* size) {
  const auto ready = writer == nullptr ? std::span<const std::uint8_t>() : writer->writer.ready();
  if (size != nullptr) *size = ready.size();
  return ready.data();
}

void firn_writer_take(firn_writer* writer, size_t bytes) {
  if (writer != nullptr) writer->writer.take(bytes);
}

uint64_t firn_writer_steps_per_part(const firn_writer* writer) {
  return writer == nullptr ? 0 : writer->writer.steps_per_part();
}

firn_reader* firn_reader_new(void) {
  try {
    return new firn_reader;
  } catch (...) {
    return nullptr;
  }
}
void firn_reader_free(firn_reader* reader) { delete reader; }

firn_status firn_reader_feed(firn_context* context, firn_reader* reader, const void* bytes,
                             size_t size) {
  return guarded(context, [&] {
    if (reader == nullptr) return bad_argument(context, "reader is NULL");
    const firn::Status status =
        reader->reader.feed({static_cast<const std::uint8_t*>(bytes), size});
    return status ? FIRN_OK : fail(context, status.error());
  });
}

int32_t firn_reader_step(firn_reader* reader, firn_array* step) {
  if (reader == nullptr || !reader->reader.started()) return 0;
  firn_array result;
  init_struct(&result);
  const firn::Shape shape = reader->reader.step();
  result.type = static_cast<int32_t>(reader->reader.type());
  result.rank = shape.rank;
  std::copy_n(shape.extents.begin(), firn::kMaxRank, result.extents);
  write_struct(result, step);
  return 1;
}

firn_status firn_reader_read(firn_context* context, firn_reader* reader, const firn_array* out,
                             uint64_t* steps) {
  return guarded(context, [&] {
    if (reader == nullptr || steps == nullptr) {
      return bad_argument(context, "reader or steps is NULL");
    }
    *steps = 0;
    firn::ArrayView view;
    if (!view_of(out, &view)) return bad_argument(context, kBadArray);
    firn::Execution execution;
    execution.threads = context->threads;
    const auto read = reader->reader.read(
        {const_cast<void*>(view.data), view.type, view.shape, view.strides}, execution);
    if (!read) return fail(context, read.error());
    *steps = *read;
    return FIRN_OK;
  });
}

uint64_t firn_reader_next_steps(const firn_reader* reader) {
  return reader == nullptr ? 0 : reader->reader.next_steps();
}

int32_t firn_reader_at_boundary(firn_reader* reader) {
  return reader != nullptr && reader->reader.at_boundary();
}

const char* firn_status_name(firn_status status) {
  static const char* const names[] = {"ok",
                                      "invalid argument",
                                      "unsupported",
                                      "buffer too small",
                                      "not a Firn stream",
                                      "newer version",
                                      "truncated",
                                      "corrupt",
                                      "out of memory",
                                      "bound exceeded",
                                      "cancelled",
                                      "input or output failed"};
  const auto index = static_cast<unsigned>(status);
  return index < sizeof names / sizeof *names ? names[index] : "unknown";
}

const char* firn_version(void) { return firn::version(); }
const char* firn_simd_target(void) { return firn::simd_target(); }

}  // extern "C"
