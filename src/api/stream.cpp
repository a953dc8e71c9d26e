// Series as they are made and as they arrive.
#include <algorithm>
#include <cstring>
#include <firn/stream.hpp>

#include "api/edge.hpp"
#include "base/elementary.hpp"
#include "base/geometry.hpp"
#include "container/format.hpp"
#include "container/records.hpp"
#include "container/series.hpp"
#include "engine/compress.hpp"
#include "engine/decompress.hpp"

namespace firn {
namespace {

// Values of a part: enough for several chunks of any preset, few enough to hold.
constexpr std::uint64_t kPartValues = std::uint64_t{1} << 21;
constexpr std::uint64_t kMostPartBytes = std::uint64_t{1} << 40;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Shape array_shape(const Shape& step, std::uint64_t steps) {
  Shape shape;
  shape.rank = step.rank + 1;
  shape.extents[0] = steps;
  for (int k = 0; k < step.rank; ++k) shape.extents[k + 1] = step.extents[k];
  return shape;
}

Shape step_of(const Shape& shape) {
  Shape step;
  step.rank = shape.rank - 1;
  for (int k = 0; k < step.rank; ++k) step.extents[k] = shape.extents[k + 1];
  return step;
}

std::uint64_t values_of(const Shape& step) { return step.rank == 0 ? 1 : step.count(); }

// Copies the view's values in row-major order.
template <class T>
void gather(const ArrayView& view, T* to) {
  Region all;
  all.shape = view.shape;
  const auto strides = view.strides ? *view.strides : contiguous_strides(view.shape);
  const Box<const T> box(static_cast<const T*>(view.data), strides, all);
  box.for_each_row([&](const T* row, std::size_t offset) {
    if (box.row_stride() == 1) {
      std::copy_n(row, box.row_length(), to + offset);
    } else {
      for (std::size_t i = 0; i < box.row_length(); ++i) {
        to[offset + i] = row[static_cast<std::int64_t>(i) * box.row_stride()];
      }
    }
    return true;
  });
}

}  // namespace

struct StreamWriter::State {
  Type type = Type::f32;
  Shape step;
  Options options;
  Execution execution;
  std::uint64_t steps_per_part = 1;
  std::uint64_t step_bytes = 0;
  std::uint64_t append_offset = 0;

  std::unique_ptr<pipelines::Workers> workers;
  engine::CompressScratch scratch;
  Buffer waiting;  // values that are not yet a part
  std::uint64_t waiting_steps = 0;
  std::uint64_t pushed_steps = 0;
  std::vector<std::uint8_t> ready;
  std::size_t taken = 0;
  std::vector<container::Part> parts;
  bool finished = false;

  // For a ratio: by how much the parts so far have taken too many bytes (or too few, if negative),
  // and the last bound and its rate.
  double debt = 0;
  double last_bound = 0, last_bits = 0;

  Status check() {
    if (type != Type::f32 && type != Type::f64) return wrong("unknown value type");
    if (step.rank < 0 || step.rank >= kMaxRank) {
      return wrong("a step of rank " + std::to_string(step.rank) +
                   "; an array has at most 4 axes, and time is one of them");
    }
    if (const Status status = check_threads(execution); !status) return status;
    // One value more than a chunk may hold is too much for a step as well, but not for an array.
    const auto plan = plan::check_options(type, array_shape(step, 1), options);
    if (!plan) return plan.error();
    if (values_of(step) == 0) return wrong("a step without values");
    step_bytes = values_of(step) * size_of(type);
    steps_per_part = std::max<std::uint64_t>(1, kPartValues / values_of(step));
    if (options.chunk.rank != 0) {
      // Whole chunks, so that none is cut short by the end of a part.
      const std::uint64_t along = std::max<std::uint64_t>(1, options.chunk.extents[0]);
      steps_per_part = std::max(along, steps_per_part / along * along);
      if (steps_per_part > kMostPartBytes / step_bytes) {
        return wrong("chunks of " + text_of(options.chunk) + ": " + std::to_string(along) +
                     " steps, which are held until they are complete, take more than 2^40 bytes");
      }
    }
    return std::monostate{};
  }

  double bits_of(double bytes, double part_bytes) const {
    return bytes / part_bytes * 8 * static_cast<double>(size_of(type));
  }

  // Of the next part under a ratio: the last one's, moved by the bits that this part may take.
  double next_bound(double bits) const {
    // Few bits move slower than one with each doubling of the bound.
    double change = last_bits - bits;
    if (bits < 2) change = 1.5 * log2_of(last_bits / bits);
    const double bound =
        std::min(last_bound * exp2_of(std::clamp(change, -4.0, 4.0)), plan::largest_bound(type));
    return options.max_abs ? std::min(bound, *options.max_abs) : bound;
  }

  // Under the bound that the parts before suggest, if there is one and it leads near the size that
  // is wanted; otherwise nothing is written.
  Result<bool> compress_as_before(const ArrayView& values, double fair, double part_bytes,
                                  pipelines::Workers& crew, Buffer* buffer) {
    constexpr double kOff = 1.3;
    if (last_bound == 0) return false;
    // Makes up for half of what the others took too much or too little.
    const double wanted = std::clamp(fair - debt / 2, fair / 2, fair * 2);
    const double bound = next_bound(bits_of(wanted, part_bytes));
    auto plan = plan::plan_for_bound(values, options, bound, crew);
    if (!plan) return plan.error();
    engine::Output output(buffer);
    if (const Status status = engine::compress(values, *plan, execution, crew, scratch, output);
        !status) {
      return status.error();
    }
    const auto got = static_cast<double>(buffer->size());
    const bool limited = options.max_abs && bound >= *options.max_abs;
    return got >= std::min(wanted, fair) / kOff &&
           (limited || got <= std::max(wanted, fair) * kOff);
  }

  Status compress_part(const ArrayView& values) {
    pipelines::Workers& crew = workers_for(workers, execution.threads);
    const auto part_bytes = static_cast<double>(values.shape.count() * size_of(type));
    const bool with_ratio = options.bound.kind == BoundKind::ratio;
    const double fair = with_ratio ? part_bytes / options.bound.value : 0;
    Buffer buffer;
    const auto done = compress_as_before(values, fair, part_bytes, crew, &buffer);
    if (!done) return done.error();
    if (!*done) {
      // The first part, or the field has changed: the bound is looked for.
      engine::Output output(&buffer);
      if (const Status status = compress_array(values, options, execution, crew, scratch, output);
          !status) {
        return status;
      }
    }
    const std::uint64_t offset =
        parts.empty() ? append_offset : parts.back().offset + parts.back().size;
    parts.push_back({offset, buffer.size(), values.shape.extents[0]});
    if (with_ratio) {
      const auto info = inspect(buffer);
      if (!info) return info.error();
      const auto bytes = static_cast<double>(buffer.size());
      last_bound = info->bound_abs;
      last_bits = bits_of(bytes, part_bytes);
      // What quiet parts save does not let later ones burst.
      constexpr double kMostSaved = 0.05;
      debt = std::max(debt + bytes - fair, -kMostSaved * fair);
    }
    ready.insert(ready.end(), buffer.data(), buffer.data() + buffer.size());
    return std::monostate{};
  }

  Status flush() {
    if (waiting_steps == 0) return std::monostate{};
    const ArrayView values{waiting.data(), type, array_shape(step, waiting_steps), {}};
    if (const Status status = compress_part(values); !status) return status;
    waiting_steps = 0;
    return std::monostate{};
  }

  void forget_taken() {
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(taken));
    taken = 0;
  }

  // `view` has the array's rank.
  Status push(ArrayView view) {
    const auto strides = view.strides ? *view.strides : contiguous_strides(view.shape);
    std::uint64_t left = view.shape.extents[0];
    const auto* from = static_cast<const std::uint8_t*>(view.data);
    while (left != 0) {
      const std::uint64_t now = std::min(left, steps_per_part - waiting_steps);
      ArrayView piece{from, type, array_shape(step, now), strides};
      if (waiting_steps == 0 && now == steps_per_part) {
        // A whole part need not be copied.
        if (const Status status = compress_part(piece); !status) return status;
      } else {
        if (waiting.size() == 0 &&
            !waiting.resize(static_cast<std::size_t>(steps_per_part * step_bytes))) {
          throw std::bad_alloc();
        }
        std::uint8_t* const to = waiting.data() + waiting_steps * step_bytes;
        if (type == Type::f32) {
          gather(piece, reinterpret_cast<float*>(to));
        } else {
          gather(piece, reinterpret_cast<double*>(to));
        }
        waiting_steps += now;
        if (waiting_steps == steps_per_part) {
          if (const Status status = flush(); !status) return status;
        }
      }
      from +=
          static_cast<std::int64_t>(now) * strides[0] * static_cast<std::int64_t>(size_of(type));
      left -= now;
      pushed_steps += now;
    }
    return std::monostate{};
  }
};

StreamWriter::StreamWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamWriter::~StreamWriter() = default;
StreamWriter::StreamWriter(StreamWriter&&) noexcept = default;
StreamWriter& StreamWriter::operator=(StreamWriter&&) noexcept = default;

Result<StreamWriter> StreamWriter::create(Type type, const Shape& step, const Options& options,
                                          const Execution& execution) {
  return guarded([&]() -> Result<StreamWriter> {
    auto state = std::make_unique<State>();
    state->type = type;
    state->step = step;
    state->options = options;
    state->execution = execution;
    if (const Status status = state->check(); !status) return status.error();
    return StreamWriter(std::move(state));
  });
}

Result<StreamWriter> StreamWriter::append_to(std::span<const std::uint8_t> existing,
                                             const Options& options, const Execution& execution) {
  return guarded([&]() -> Result<StreamWriter> {
    const auto info = inspect(existing);
    if (!info) return info.error();
    container::Series series = container::find_parts(existing);
    if (!series.ragged && !info->complete) {
      return Error{ErrorCode::corrupt, "the existing series is damaged: salvage it first"};
    }
    if (series.ragged) {
      return Error{ErrorCode::truncated,
                   series.end == 0
                       ? "the existing stream is cut off or damaged, and nothing can follow it"
                       : "the existing series does not end with a whole part: cut it at byte " +
                             std::to_string(series.end) + " first, or it cannot be read on"};
    }
    // One bound speaks for a series, so its parts have one that can be compared.
    const BoundKind kind = options.bound.kind;
    if (kind == BoundKind::pwrel && info->bound_abs > 0) {
      return wrong("the existing series has absolute bounds: append with another bound than pwrel");
    }
    if (kind != BoundKind::pwrel && kind != BoundKind::lossless && info->bound_pwrel > 0) {
      return wrong("the existing series has bounds relative to each value: append with pwrel");
    }
    auto created = create(info->type, step_of(info->shape), options, execution);
    if (!created) return created;
    created->state_->append_offset = series.end;
    created->state_->parts = std::move(series.parts);
    return created;
  });
}

Status StreamWriter::push(const ArrayView& values) {
  return guarded([&]() -> Status {
    State& state = *state_;
    if (state.finished) return wrong("the series is finished: nothing can be pushed any more");
    ArrayView view = values;
    if (values.shape.rank == state.step.rank && values.shape == state.step) {
      view.shape = array_shape(state.step, 1);
      if (values.strides) {
        view.strides.emplace();
        for (int k = 0; k < state.step.rank; ++k) (*view.strides)[k + 1] = (*values.strides)[k];
      }
    }
    if (values.type != state.type || view.shape.rank != state.step.rank + 1 ||
        !(step_of(view.shape) == state.step)) {
      return wrong("values of " + std::string(name_of(values.type)) + " " + text_of(values.shape) +
                   "; a step is " + name_of(state.type) + " " +
                   (state.step.rank == 0 ? "of one value" : text_of(state.step)) +
                   ", several have one axis more before it");
    }
    if (values.data == nullptr && view.shape.count() != 0) return wrong("the values are null");
    state.forget_taken();
    return state.push(view);
  });
}

Status StreamWriter::flush() {
  return guarded([&] {
    state_->forget_taken();
    return state_->flush();
  });
}

Status StreamWriter::finish() {
  return guarded([&]() -> Status {
    State& state = *state_;
    if (state.finished) return std::monostate{};
    state.forget_taken();
    if (const Status status = state.flush(); !status) return status;
    if (state.parts.empty()) {
      // Still a stream: an array without steps.
      const ArrayView none{nullptr, state.type, array_shape(state.step, 0), {}};
      Options options = state.options;
      options.chunk = {};
      Buffer buffer;
      engine::Output output(&buffer);
      auto plan = plan::check_options(state.type, none.shape, options);
      if (!plan) return plan.error();
      if (const Status status = engine::compress(none, *plan, {}, workers_for(state.workers, 1),
                                                 state.scratch, output);
          !status) {
        return status;
      }
      state.ready.insert(state.ready.end(), buffer.data(), buffer.data() + buffer.size());
    } else if (state.parts.size() > 1) {
      const std::size_t before = state.ready.size();
      state.ready.resize(before + container::directory_capacity(state.parts.size()));
      ByteWriter writer(state.ready.data() + before);
      container::write_directory(state.parts, writer);
      state.ready.resize(before + writer.size());
    }
    state.finished = true;
    return std::monostate{};
  });
}

std::span<const std::uint8_t> StreamWriter::ready() const {
  return std::span<const std::uint8_t>(state_->ready).subspan(state_->taken);
}
void StreamWriter::take(std::size_t bytes) {
  state_->taken = std::min(state_->taken + bytes, state_->ready.size());
}
std::uint64_t StreamWriter::steps() const { return state_->pushed_steps; }
std::uint64_t StreamWriter::steps_per_part() const { return state_->steps_per_part; }
std::uint64_t StreamWriter::append_offset() const { return state_->append_offset; }

struct StreamReader::State {
  // From the start of a part or a directory on, behind `done` bytes that have been decoded.
  std::vector<std::uint8_t> bytes;
  std::size_t done = 0;
  std::optional<container::Header> first;
  std::optional<container::RecordWalk> walk;  // of the part that is arriving
  std::uint64_t parts = 0, before = 0;        // that have been decoded, and their steps
  std::unique_ptr<pipelines::Workers> workers;
  Buffer values;  // of the part that is being read, if not all of it had room
  std::uint64_t steps = 0, steps_read = 0;

  std::span<const std::uint8_t> rest() const {
    return std::span<const std::uint8_t>(bytes).subspan(done);
  }

  // Decodes the next part, if all of it is there: into `out`, if that has room for its steps, or
  // else into `values`. Returns the steps that went to `out`.
  Result<std::uint64_t> next_part(std::uint8_t* out, std::uint64_t room,
                                  const Execution& execution) {
    constexpr std::size_t kDirectoryHead = 8;
    for (;;) {
      if (rest().size() < kDirectoryHead) return std::uint64_t{0};
      if (load_le<std::uint32_t>(rest().data()) == format::kDirectoryMagic) {
        const std::size_t size = load_le<std::uint32_t>(rest().data() + 4);
        if (size < kDirectoryHead) {
          return Error{ErrorCode::corrupt, "the directory of a series has no size"};
        }
        if (rest().size() < size) return std::uint64_t{0};
        done += size;
        continue;
      }
      if (!walk) {
        ByteReader in(rest());
        const auto header = container::read_header(in, rest());
        if (!header && header.error().code == ErrorCode::truncated) return std::uint64_t{0};
        if (!header && parts != 0 && header.error().code == ErrorCode::not_firn) {
          return Error{ErrorCode::truncated, "something else follows a whole part of the series"};
        }
        if (!header) return header.error();
        if (!first) first = *header;
        if (!container::same_series(*first, *header)) {
          return container::foreign_part(before);
        }
        walk.emplace(*header, in.position());
      }
      const auto end = walk->end(rest());
      if (!end && end.error().code == ErrorCode::truncated) return std::uint64_t{0};
      if (!end) return end.error();
      engine::OpenStream stream;
      if (const Status status = stream.open(rest().first(static_cast<std::size_t>(*end)));
          !status) {
        return status.error();
      }
      const Shape& shape = stream.header.shape;
      const bool direct = shape.extents[0] <= room;
      if (!direct) {
        const std::uint64_t size = shape.count() * size_of(stream.header.type);
        if (!values.resize(static_cast<std::size_t>(size))) throw std::bad_alloc();
      }
      Region all;
      all.shape = shape;
      const MutableArrayView place{direct ? out : values.data(), stream.header.type, shape, {}};
      const Status status = engine::decompress(stream, all, place, execution,
                                               workers_for(workers, execution.threads), nullptr);
      if (!status) {
        const Error& error = status.error();
        if (parts == 0 || error.code == ErrorCode::cancelled) return error;
        return Error{error.code,
                     "in the part from " + std::to_string(before) + " on: " + error.message};
      }
      walk.reset();
      ++parts;
      before += shape.extents[0];
      done += static_cast<std::size_t>(*end);
      if (shape.extents[0] == 0) continue;
      steps = direct ? 0 : shape.extents[0];
      steps_read = 0;
      return direct ? shape.extents[0] : 0;
    }
  }

  // Only when that halves the bytes, so that many parts fed at once are not moved once for each.
  void forget_done() {
    if (done < bytes.size() - done) return;
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(done));
    done = 0;
  }
};

StreamReader::StreamReader() : state_(std::make_unique<State>()) {}
StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

Status StreamReader::feed(std::span<const std::uint8_t> bytes) {
  return guarded([&]() -> Status {
    State& state = *state_;
    if (bytes.data() == nullptr && !bytes.empty()) return wrong("the bytes are null");
    state.forget_done();
    state.bytes.insert(state.bytes.end(), bytes.begin(), bytes.end());
    if (state.first) return std::monostate{};
    ByteReader in(state.bytes);
    const auto header = container::read_header(in, state.bytes);
    if (header) {
      state.first = *header;
    } else if (header.error().code != ErrorCode::truncated && state.bytes.size() >= 4) {
      return header.error();
    }
    return std::monostate{};
  });
}

bool StreamReader::started() const { return state_->first.has_value(); }
Type StreamReader::type() const { return state_->first ? state_->first->type : Type::f32; }
Shape StreamReader::step() const { return state_->first ? step_of(state_->first->shape) : Shape(); }
std::uint64_t StreamReader::next_steps() const {
  const auto steps = guarded([&]() -> Result<std::uint64_t> {
    ByteReader in(state_->rest());
    const auto header = container::read_header(in, state_->rest());
    return header ? header->shape.extents[0] : 0;
  });
  return steps ? *steps : 0;
}
bool StreamReader::at_boundary() const { return state_->rest().empty(); }

Result<std::uint64_t> StreamReader::read(const MutableArrayView& out, const Execution& execution) {
  return guarded([&]() -> Result<std::uint64_t> {
    State& state = *state_;
    if (const Status status = check_threads(execution); !status) return status.error();
    if (!state.first) return std::uint64_t{0};
    const Shape step = step_of(state.first->shape);
    if (out.type != state.first->type || out.shape.rank != step.rank + 1 ||
        !(step_of(out.shape) == step)) {
      return wrong("the output is " + std::string(name_of(out.type)) + " " + text_of(out.shape) +
                   "; steps are " + name_of(state.first->type) + " " +
                   (step.rank == 0 ? "of one value" : text_of(step)) +
                   ", with one axis more before them");
    }
    if (out.strides) return wrong("steps are read into contiguous memory, without strides");
    if (out.data == nullptr && out.shape.count() != 0) return wrong("the output is null");
    const std::uint64_t step_bytes = values_of(step) * size_of(out.type);
    std::uint64_t done = 0;
    while (done < out.shape.extents[0]) {
      std::uint8_t* const to = static_cast<std::uint8_t*>(out.data) + done * step_bytes;
      if (state.steps_read == state.steps) {
        state.steps = state.steps_read = 0;
        const auto decoded = state.next_part(to, out.shape.extents[0] - done, execution);
        if (!decoded) {
          // Steps that were good are given first; the next call fails.
          if (done != 0) break;
          return decoded.error();
        }
        done += *decoded;
        if (*decoded != 0) continue;
        if (state.steps == 0) break;
      }
      const std::uint64_t now =
          std::min(out.shape.extents[0] - done, state.steps - state.steps_read);
      std::memcpy(to, state.values.data() + state.steps_read * step_bytes,
                  static_cast<std::size_t>(now * step_bytes));
      state.steps_read += now;
      done += now;
    }
    return done;
  });
}

}  // namespace firn
