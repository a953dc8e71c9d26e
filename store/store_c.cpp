// The C ABI of the frame store: translates structs and statuses, adds nothing.
#include <firn/store.h>

#include <algorithm>
#include <cstring>
#include <firn/store.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

struct firn_store {
  std::optional<firn::FrameStore> store;
  std::mutex mutex;
  std::map<std::thread::id, std::string> messages;
  std::multimap<std::uint64_t, firn::HeldFrame> held;
};

namespace {

template <class Struct>
bool read_struct(const Struct* from, Struct* to) {
  std::memset(to, 0, sizeof *to);
  if (from == nullptr || from->struct_size < sizeof(size_t)) return false;
  std::memcpy(to, from, std::min(from->struct_size, sizeof *to));
  return true;
}

firn::Error bad(const char* message) { return {firn::ErrorCode::invalid_argument, message}; }

firn::Shape shape_of(int32_t rank, const uint64_t* extents) {
  firn::Shape shape;
  shape.rank = rank;
  if (rank > 0 && rank <= firn::kMaxRank) std::copy_n(extents, rank, shape.extents.begin());
  return shape;
}

firn::Result<firn::MutableArrayView> view_of(const firn_array* given) {
  firn_array array;
  if (!read_struct(given, &array) || (array.type != FIRN_F32 && array.type != FIRN_F64)) {
    return bad("the array is NULL, not initialised by firn_array_init, or of an unknown type");
  }
  firn::MutableArrayView view;
  view.data = const_cast<void*>(array.data);
  view.type = static_cast<firn::Type>(array.type);
  view.shape = shape_of(array.rank, array.extents);
  if (array.has_strides != 0) {
    view.strides.emplace();
    std::copy_n(array.strides, firn::kMaxRank, view.strides->begin());
  }
  return view;
}

firn::Result<firn::StoreOptions> options_of(const firn_store_options* given) {
  firn_store_options options;
  if (!read_struct(given, &options)) {
    return bad("the options are NULL or not initialised by firn_store_options_init");
  }
  if (options.type != FIRN_F32 && options.type != FIRN_F64) return bad("unknown type of values");
  if (options.policy < FIRN_STORE_MEMORY || options.policy > FIRN_STORE_AUTOMATIC) {
    return bad("unknown policy");
  }
  const firn_options& compression = options.compression;
  if (compression.preset < FIRN_FAST || compression.preset > FIRN_SMALL) {
    return bad("unknown preset");
  }
  firn::StoreOptions result;
  result.policy = static_cast<firn::StorePolicy>(options.policy);
  result.type = static_cast<firn::Type>(options.type);
  result.shape = shape_of(options.rank, options.extents);
  result.compression.bound = {static_cast<firn::BoundKind>(compression.bound),
                              compression.bound_value};
  result.compression.preset = static_cast<firn::Preset>(compression.preset);
  if (compression.pipeline != nullptr) {
    const auto pipeline = firn::parse_pipeline(compression.pipeline);
    if (!pipeline) return pipeline.error();
    result.compression.pipeline = *pipeline;
  }
  result.compression.chunk = shape_of(compression.chunk_rank, compression.chunk);
  if (compression.has_fill != 0) result.compression.fill = compression.fill;
  if (options.path != nullptr) result.path = options.path;
  result.replace = options.replace != 0;
  result.temporary = options.temporary != 0;
  result.direct = options.direct != 0;
  result.memory_budget = options.memory_budget;
  result.put_buffers = options.put_buffers;
  result.get_buffers = options.get_buffers;
  result.servants = options.servants;
  if (options.servant_core_count > 0 && options.servant_cores != nullptr) {
    result.servant_cores.assign(options.servant_cores,
                                options.servant_cores + options.servant_core_count);
  }
  return result;
}

firn_status fail(firn_store* store, const firn::Error& error) {
  const std::lock_guard lock(store->mutex);
  store->messages[std::this_thread::get_id()] = error.message;
  return static_cast<firn_status>(error.code);
}

// Nothing may leave through a C function, not even a failing std::string.
template <class Body>
firn_status guarded(firn_store* store, Body body) {
  if (store == nullptr) return FIRN_INVALID_ARGUMENT;
  try {
    if (!store->store) return fail(store, bad("the store could not be made"));
    const firn::Status status = body();
    return status.ok() ? FIRN_OK : fail(store, status.error());
  } catch (...) {
    return FIRN_OUT_OF_MEMORY;
  }
}

template <class Make>
firn_status make_store(const firn_store_options* given, firn_store** result, Make make) {
  if (result == nullptr) return FIRN_INVALID_ARGUMENT;
  *result = nullptr;
  try {
    *result = new firn_store;
    const auto options = options_of(given);
    if (!options) return fail(*result, options.error());
    auto store = make(*options);
    if (!store) return fail(*result, store.error());
    (*result)->store.emplace(std::move(*store));
    return FIRN_OK;
  } catch (...) {
    return FIRN_OUT_OF_MEMORY;
  }
}

}  // namespace

extern "C" {

void firn_store_options_init(firn_store_options* options) {
  if (options == nullptr) return;
  std::memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
  options->policy = FIRN_STORE_AUTOMATIC;
  options->type = FIRN_F32;
  firn_options_init(&options->compression);
  const firn::StoreOptions usual;
  options->put_buffers = usual.put_buffers;
  options->get_buffers = usual.get_buffers;
  options->servants = usual.servants;
}

void firn_store_stats_init(firn_store_stats* stats) {
  if (stats == nullptr) return;
  std::memset(stats, 0, sizeof *stats);
  stats->struct_size = sizeof *stats;
}

firn_status firn_store_create(const firn_store_options* options, firn_store** store) {
  return make_store(options, store, firn::FrameStore::create);
}

firn_status firn_store_open(const firn_store_options* options, firn_store** store) {
  return make_store(options, store, firn::FrameStore::open);
}

firn_status firn_store_put(firn_store* store, uint64_t number, const firn_array* frame) {
  return guarded(store, [&]() -> firn::Status {
    const auto view = view_of(frame);
    if (!view) return view.error();
    return store->store->put(number, {view->data, view->type, view->shape, view->strides});
  });
}

firn_status firn_store_get(firn_store* store, uint64_t number, const firn_array* frame) {
  return guarded(store, [&]() -> firn::Status {
    const auto view = view_of(frame);
    if (!view) return view.error();
    return store->store->get(number, *view);
  });
}

firn_status firn_store_hold(firn_store* store, uint64_t number, const void** values) {
  return guarded(store, [&]() -> firn::Status {
    if (values == nullptr) return bad("no place for the values' address");
    auto held = store->store->hold(number);
    if (!held) return held.error();
    *values = held->data();
    const std::lock_guard lock(store->mutex);
    store->held.emplace(number, std::move(*held));
    return std::monostate{};
  });
}

firn_status firn_store_release(firn_store* store, uint64_t number) {
  return guarded(store, [&]() -> firn::Status {
    const std::lock_guard lock(store->mutex);
    const auto held = store->held.find(number);
    if (held == store->held.end()) return bad("the frame is not held");
    store->held.erase(held);
    return std::monostate{};
  });
}

int32_t firn_store_contains(firn_store* store, uint64_t number) {
  return store != nullptr && store->store && store->store->contains(number) ? 1 : 0;
}

firn_status firn_store_get_stats(firn_store* store, firn_store_stats* stats) {
  return guarded(store, [&]() -> firn::Status {
    if (stats == nullptr || stats->struct_size < sizeof(size_t)) {
      return bad("the stats are NULL or not initialised by firn_store_stats_init");
    }
    const firn::StoreStats from = store->store->stats();
    firn_store_stats to;
    to.struct_size = stats->struct_size;
    to.puts = from.puts, to.gets = from.gets, to.gets_ready = from.gets_ready;
    to.put_wait_seconds = from.put_wait_seconds;
    to.put_copy_seconds = from.put_copy_seconds;
    to.get_wait_seconds = from.get_wait_seconds;
    to.compress_seconds = from.compress_seconds;
    to.decompress_seconds = from.decompress_seconds;
    to.write_seconds = from.write_seconds;
    to.read_seconds = from.read_seconds;
    to.frames_encoded = from.frames_encoded;
    to.encoded_raw_bytes = from.encoded_raw_bytes;
    to.encoded_bytes = from.encoded_bytes;
    to.written_bytes = from.written_bytes;
    to.read_bytes = from.read_bytes;
    to.queue_depth = from.queue_depth;
    to.queue_depth_max = from.queue_depth_max;
    to.memory_bytes = from.memory_bytes;
    to.memory_bytes_max = from.memory_bytes_max;
    to.recovered_frames = from.recovered_frames;
    to.damaged_records = from.damaged_records;
    std::memcpy(stats, &to, std::min(stats->struct_size, sizeof to));
    return std::monostate{};
  });
}

firn_status firn_store_flush(firn_store* store) {
  return guarded(store, [&] { return store->store->flush(); });
}

firn_status firn_store_close(firn_store* store) {
  return guarded(store, [&] { return store->store->close(); });
}

void firn_store_free(firn_store* store) { delete store; }

const char* firn_store_error(const firn_store* store) {
  if (store == nullptr) return "";
  auto* changing = const_cast<firn_store*>(store);
  const std::lock_guard lock(changing->mutex);
  const auto message = changing->messages.find(std::this_thread::get_id());
  return message == changing->messages.end() ? "" : message->second.c_str();
}

}  // extern "C"
