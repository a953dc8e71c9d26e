/* The frame store for C: the concepts of store.hpp behind an opaque handle, by the rules of
 * firn.h. Any thread may call; a put that failed after it had returned is reported by the next
 * call, which has then done nothing itself. */
#ifndef FIRN_STORE_H_
#define FIRN_STORE_H_

#include <firn/firn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are pinned. */
typedef enum firn_store_policy {
  FIRN_STORE_MEMORY = 0,
  FIRN_STORE_DISK = 1,
  FIRN_STORE_COMPRESSED_MEMORY = 2,
  FIRN_STORE_COMPRESSED_DISK = 3,
  FIRN_STORE_AUTOMATIC = 4
} firn_store_policy;

typedef struct firn_store firn_store;

typedef struct firn_store_options {
  size_t struct_size;
  int32_t policy; /* firn_store_policy */
  int32_t type;   /* firn_type, of every frame */
  int32_t rank;
  uint64_t extents[FIRN_MAX_RANK]; /* slowest axis first */
  firn_options compression;        /* its threads are not used */
  const char* path;
  int32_t replace;        /* an existing file */
  int32_t temporary;      /* the file has no name and goes with the store */
  int32_t direct;         /* past the operating system's cache */
  uint64_t memory_budget; /* bytes; 0: as the policy needs */
  int32_t put_buffers;
  int32_t get_buffers;
  int32_t servants;
  int32_t servant_core_count;
  const int32_t* servant_cores;
} firn_store_options;

typedef struct firn_store_stats {
  size_t struct_size;
  uint64_t puts, gets, gets_ready;
  double put_wait_seconds, put_copy_seconds, get_wait_seconds;
  double compress_seconds, decompress_seconds, write_seconds, read_seconds;
  uint64_t frames_encoded, encoded_raw_bytes, encoded_bytes;
  uint64_t written_bytes, read_bytes;
  uint64_t queue_depth, queue_depth_max;
  uint64_t memory_bytes, memory_bytes_max;
  uint64_t recovered_frames, damaged_records;
} firn_store_stats;

FIRN_C_API void firn_store_options_init(firn_store_options* options);
FIRN_C_API void firn_store_stats_init(firn_store_stats* stats);

/* *store is set also when they fail (NULL only when memory is short), for its message; free it. */
FIRN_C_API firn_status firn_store_create(const firn_store_options* options, firn_store** store);
FIRN_C_API firn_status firn_store_open(const firn_store_options* options, firn_store** store);

FIRN_C_API firn_status firn_store_put(firn_store* store, uint64_t number, const firn_array* frame);
/* Into the array's memory. */
FIRN_C_API firn_status firn_store_get(firn_store* store, uint64_t number, const firn_array* frame);
/* Without a copy: *values stay until firn_store_release. */
FIRN_C_API firn_status firn_store_hold(firn_store* store, uint64_t number, const void** values);
FIRN_C_API firn_status firn_store_release(firn_store* store, uint64_t number);

FIRN_C_API int32_t firn_store_contains(firn_store* store, uint64_t number);
FIRN_C_API firn_status firn_store_get_stats(firn_store* store, firn_store_stats* stats);
FIRN_C_API firn_status firn_store_flush(firn_store* store);
FIRN_C_API firn_status firn_store_close(firn_store* store);
/* Closes it if that was not done. */
FIRN_C_API void firn_store_free(firn_store* store);
/* About the calling thread's last call that failed on this store; valid until its next call. */
FIRN_C_API const char* firn_store_error(const firn_store* store);

#ifdef __cplusplus
}
#endif

#endif /* FIRN_STORE_H_ */
