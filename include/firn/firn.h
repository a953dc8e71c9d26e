/* Firn for C: the concepts of firn.hpp behind opaque handles.
 *
 * Every struct that a caller fills begins with its size, set by the matching init function, so
 * that later versions can add members. Every call that can fail returns a firn_status; the
 * context then holds a message. A context may be used by one thread at a time; it keeps its
 * working memory, so use one for many calls. No call prints, exits or throws. */
#ifndef FIRN_FIRN_H_
#define FIRN_FIRN_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define FIRN_C_API
#else
#define FIRN_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_MAX_RANK 4

/* Values are pinned. */
typedef enum firn_status {
  FIRN_OK = 0,
  FIRN_INVALID_ARGUMENT = 1,
  FIRN_UNSUPPORTED = 2,
  FIRN_BUFFER_TOO_SMALL = 3,
  FIRN_NOT_FIRN = 4,
  FIRN_NEWER_VERSION = 5,
  FIRN_TRUNCATED = 6,
  FIRN_CORRUPT = 7,
  FIRN_OUT_OF_MEMORY = 8,
  FIRN_BOUND_EXCEEDED = 9,
  FIRN_CANCELLED = 10,
  FIRN_IO_ERROR = 11
} firn_status;

typedef enum firn_type { FIRN_F32 = 1, FIRN_F64 = 2 } firn_type;
typedef enum firn_bound {
  FIRN_LOSSLESS = 0,
  FIRN_ABS = 1,   /* absolute error */
  FIRN_REL = 2,   /* fraction of the value range */
  FIRN_PSNR = 3,  /* decibels, met or exceeded */
  FIRN_PWREL = 4, /* fraction of each value's magnitude */
  FIRN_RATIO = 5  /* original over compressed bytes, held within 1 % */
} firn_bound;
typedef enum firn_preset { FIRN_FAST = 0, FIRN_BALANCED = 1, FIRN_SMALL = 2 } firn_preset;
typedef enum firn_books { /* where pipeline "lorenzo" takes its Huffman books from */
                          FIRN_BOOKS_COST =
                              0, /* whichever takes the fewest bits, its own included */
                          FIRN_BOOKS_CHI = 1, /* CEAZ's rule on the spread of symbol frequencies */
                          FIRN_BOOKS_STORED = 2, /* a new one for every chunk */
                          FIRN_BOOKS_OFFLINE = 3 /* none is ever stored */
} firn_books;

typedef struct firn_context firn_context;

/* What balanced and small make least: the size, or the size at equal PSNR. */
typedef enum firn_tune { FIRN_TUNE_SIZE = 0, FIRN_TUNE_PSNR = 1 } firn_tune;

/* An array in memory. Extents are SLOWEST axis first, as in C: {nz, ny, nx} for a[z][y][x]. */
typedef struct firn_array {
  size_t struct_size;
  const void* data;
  int32_t type; /* firn_type */
  int32_t rank; /* 1 to 4 */
  uint64_t extents[FIRN_MAX_RANK];
  int32_t has_strides;
  int64_t strides[FIRN_MAX_RANK]; /* in values; used when has_strides is not 0 */
} firn_array;

typedef struct firn_options {
  size_t struct_size;
  int32_t bound; /* firn_bound */
  double bound_value;
  int32_t preset;       /* firn_preset */
  const char* pipeline; /* NULL: the preset chooses */
  int32_t chunk_rank;   /* 0: chosen from the shape */
  uint64_t chunk[FIRN_MAX_RANK];
  int32_t has_fill;
  double fill;     /* this value is a mask */
  int32_t threads; /* 0: all cores */
  double max_abs;  /* with FIRN_RATIO: no larger absolute error; 0: no limit */
  int32_t books;   /* firn_books */
  int32_t tune;    /* firn_tune */
} firn_options;

typedef struct firn_info {
  size_t struct_size;
  int32_t format_version;
  int32_t type;
  int32_t rank;
  uint64_t extents[FIRN_MAX_RANK];
  uint64_t chunk[FIRN_MAX_RANK];
  int32_t bound;
  double bound_value;   /* as asked for */
  double bound_abs;     /* as enforced; 0 when lossless and for FIRN_PWREL */
  double max_abs_error; /* achieved */
  int32_t has_fill;
  double fill;
  uint64_t chunk_count;
  uint64_t original_bytes;
  uint64_t compressed_bytes;
  int32_t complete;       /* every chunk's record was found */
  uint64_t part_count;    /* more than 1: a series, see the writer below */
  double bound_pwrel;     /* as enforced, relative to each value; 0 unless FIRN_PWREL */
  double max_pwrel_error; /* achieved; 0 unless FIRN_PWREL */
} firn_info;

typedef struct firn_comparison {
  size_t struct_size;
  uint64_t count;
  uint64_t exact_count;
  uint64_t violations;
  uint64_t first_violation;
  double max_abs_error;
  double value_range;
  double mean_squared_error;
  double psnr_db;
  double max_pwrel_error; /* |error| / |original|; infinite where a zero is lost */
} firn_comparison;

/* What a bound would give, judged by a sample of the array. */
typedef struct firn_estimation {
  size_t struct_size;
  double bound_abs; /* FIRN_REL is taken of the sample's value range */
  double ratio;
  double psnr_db; /* infinite when there is no error */
  uint64_t sampled_values;
} firn_estimation;

/* A chunk that could not be decoded; or, where a series is cut off, nothing behind its last whole
 * part. */
typedef struct firn_damage {
  uint64_t chunk;
  uint64_t origin[FIRN_MAX_RANK];
  uint64_t extents[FIRN_MAX_RANK]; /* the values in here were set to NaN */
  int32_t status;                  /* firn_status: what is wrong with it */
} firn_damage;

/* One chunk of a stream or a series. */
typedef struct firn_chunk {
  uint64_t offset;        /* of its record */
  uint64_t size;          /* of its record */
  const char* pipeline;   /* its name, never freed */
  double bound_abs;       /* of its part; 0 for FIRN_PWREL */
  double max_abs_error;   /* achieved; 0 for FIRN_PWREL */
  double max_pwrel_error; /* achieved; 0 unless FIRN_PWREL */
  uint64_t origin[FIRN_MAX_RANK];
  uint64_t extents[FIRN_MAX_RANK];
} firn_chunk;

FIRN_C_API void firn_array_init(firn_array* array);
FIRN_C_API void firn_options_init(firn_options* options);
FIRN_C_API void firn_info_init(firn_info* info);
FIRN_C_API void firn_comparison_init(firn_comparison* comparison);
FIRN_C_API void firn_estimation_init(firn_estimation* estimation);

/* NULL when memory is short. */
FIRN_C_API firn_context* firn_context_new(void);
FIRN_C_API void firn_context_free(firn_context* context);
/* About the last call that failed on this context; valid until its next call. */
FIRN_C_API const char* firn_context_error(const firn_context* context);
/* Threads for the calls that take no options; 0, the default: all cores. */
FIRN_C_API void firn_context_set_threads(firn_context* context, int32_t threads);

/* Bytes that always suffice for firn_compress_into; 0 when the arguments are wrong. */
FIRN_C_API uint64_t firn_worst_case_size(firn_context* context, const firn_array* array,
                                         const firn_options* options);

/* Into the caller's memory; *size becomes the bytes used. */
FIRN_C_API firn_status firn_compress_into(firn_context* context, const firn_array* array,
                                          const firn_options* options, void* out, size_t room,
                                          size_t* size);
/* Into memory that the library allocates; free it with firn_free. */
FIRN_C_API firn_status firn_compress(firn_context* context, const firn_array* array,
                                     const firn_options* options, void** out, size_t* size);
FIRN_C_API void firn_free(void* bytes);

/* Reads some 1 % of the array (512 Ki values at least) and tells what to expect of the bound,
 * of any kind. */
FIRN_C_API firn_status firn_estimate(firn_context* context, const firn_array* array,
                                     const firn_options* options, firn_estimation* estimation);

FIRN_C_API firn_status firn_inspect(firn_context* context, const void* stream, size_t size,
                                    firn_info* info);
/* *count becomes how many chunks there are, of which the first `room` are written to `chunks` (NULL
 * with a room of 0). */
FIRN_C_API firn_status firn_inspect_chunks(firn_context* context, const void* stream, size_t size,
                                           firn_chunk* chunks, size_t room, size_t* count);

/* `array` describes the output (its data is written to) and has the stream's type and shape. */
FIRN_C_API firn_status firn_decompress(firn_context* context, const void* stream, size_t size,
                                       const firn_array* array);
/* Only the box at `origin` with the array's shape. */
FIRN_C_API firn_status firn_decompress_region(firn_context* context, const void* stream,
                                              size_t size, const uint64_t* origin,
                                              const firn_array* array);

/* All that can be decoded; the rest becomes NaN. *count becomes how many damages there are, of
 * which the first `room` are written to `damages` (NULL with a room of 0). Fails only when the
 * header is unusable. */
FIRN_C_API firn_status firn_salvage(firn_context* context, const void* stream, size_t size,
                                    const firn_array* array, firn_damage* damages, size_t room,
                                    size_t* count);

/* The extents of a preview: of each chunk every factor-th value along each axis; factor is a power
   of two. `extents` has room for FIRN_MAX_RANK. */
FIRN_C_API firn_status firn_preview_shape(firn_context* context, const void* stream, size_t size,
                                          int32_t factor, uint64_t* extents);
/* `array` has those extents. Chunks with levels are read only as far as needed. */
FIRN_C_API firn_status firn_decompress_preview(firn_context* context, const void* stream,
                                               size_t size, int32_t factor,
                                               const firn_array* array);

/* Decodes and compares; FIRN_BOUND_EXCEEDED when a value breaks the bound. */
FIRN_C_API firn_status firn_verify(firn_context* context, const firn_array* original,
                                   const void* stream, size_t size, firn_comparison* comparison);

/* Values as they arrive (firn/stream.hpp has more words): push steps along the slowest axis, take
 * bytes. Every so many steps become a part that decodes without the others; parts one after the
 * other are a series, which all functions above read as one array. */
typedef struct firn_writer firn_writer;
typedef struct firn_reader firn_reader;

/* `step` describes one step (its data is not used; rank 0: single values). The writer is freed
 * with firn_writer_free, whatever happened to it. */
FIRN_C_API firn_status firn_writer_new(firn_context* context, const firn_array* step,
                                       const firn_options* options, firn_writer** writer);
/* Continues the series in `stream`; what the writer gives out belongs at *offset in it. */
FIRN_C_API firn_status firn_writer_append(firn_context* context, const void* stream, size_t size,
                                          const firn_options* options, firn_writer** writer,
                                          uint64_t* offset);
FIRN_C_API void firn_writer_free(firn_writer* writer);
/* One step (the step's shape), or several (one axis more). */
FIRN_C_API firn_status firn_writer_push(firn_context* context, firn_writer* writer,
                                        const firn_array* values);
/* Makes a part of what has been pushed. */
FIRN_C_API firn_status firn_writer_flush(firn_context* context, firn_writer* writer);
FIRN_C_API firn_status firn_writer_finish(firn_context* context, firn_writer* writer);
/* Bytes that are ready, valid until the writer's next call; *size may become 0. */
FIRN_C_API const void* firn_writer_ready(firn_writer* writer, size_t* size);
FIRN_C_API void firn_writer_take(firn_writer* writer, size_t bytes);
/* After so many steps a part is made without being asked for. */
FIRN_C_API uint64_t firn_writer_steps_per_part(const firn_writer* writer);

FIRN_C_API firn_reader* firn_reader_new(void); /* NULL when memory is short */
FIRN_C_API void firn_reader_free(firn_reader* reader);
FIRN_C_API firn_status firn_reader_feed(firn_context* context, firn_reader* reader,
                                        const void* bytes, size_t size);
/* 1 once type and step are known, which it then writes to *step. */
FIRN_C_API int32_t firn_reader_step(firn_reader* reader, firn_array* step);
/* Of the part that comes next; 0 while its header has not arrived. */
FIRN_C_API uint64_t firn_reader_next_steps(const firn_reader* reader);
/* Decodes the next steps into `out`, whose shape is {steps, step...}; *steps becomes how many
 * there were, 0 when more bytes are needed. */
FIRN_C_API firn_status firn_reader_read(firn_context* context, firn_reader* reader,
                                        const firn_array* out, uint64_t* steps);
/* After a read that gave no steps: 1 when what was fed ends with a whole part, or is nothing; 0 at
 * the end of the input means that the series was cut off. */
FIRN_C_API int32_t firn_reader_at_boundary(firn_reader* reader);

FIRN_C_API const char* firn_status_name(firn_status status);
FIRN_C_API const char* firn_version(void);
FIRN_C_API const char* firn_simd_target(void);

#ifdef __cplusplus
}
#endif

#endif /* FIRN_FIRN_H_ */
