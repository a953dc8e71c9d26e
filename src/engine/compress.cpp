#include "engine/compress.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "container/format.hpp"
#include "engine/progress.hpp"

namespace firn::engine {

std::uint8_t* Output::reserve(std::size_t bytes) {
  if (buffer_ == nullptr) return room_ - size_ >= bytes ? data_ + size_ : nullptr;
  if (buffer_->size() - size_ < bytes) {
    // Grows by half, so that a long stream is copied a few times at most.
    const std::size_t wanted = size_ + bytes;
    if (!buffer_->resize(wanted + wanted / 2)) throw std::bad_alloc();
  }
  return buffer_->data() + size_;
}

void Output::finish() {
  if (buffer_ != nullptr) buffer_->resize(size_);
}

std::uint64_t worst_case_size(const plan::Plan& plan) {
  const Grid grid(plan.header.shape, plan.pieces.rank > 0 ? plan.pieces : plan.header.chunk);
  return container::kMaxHeaderBytes + plan.header.shape.count() * size_of(plan.header.type) +
         grid.count() * container::kMaxRecordOverhead + container::kMaxIndexOverhead +
         plan::worst_case_book_bytes(plan);
}

namespace {

Error too_small(const Output& output) {
  return {ErrorCode::buffer_too_small, "the output buffer is full after " +
                                           std::to_string(output.size()) +
                                           " bytes; the worst-case size always suffices"};
}

template <class T>
SquaredError squared_error(const Box<const T>& box, const pipelines::Parameters& parameters,
                           const pipelines::Encoded& encoded, const std::uint8_t* payload,
                           pipelines::Workspace& workspace) {
  Region whole;
  whole.shape.rank = box.rank();
  for (int k = 0; k < box.rank(); ++k) whole.shape.extents[k] = box.extents()[k];
  T* const decoded = reinterpret_cast<T*>(workspace.trial.reserve(box.count() * sizeof(T)));
  pipelines::decode<T>(encoded.pipeline, {payload, encoded.size}, parameters,
                       Box<T>(decoded, contiguous_strides(whole.shape), whole), workspace);
  const T fill = parameters.fill ? static_cast<T>(*parameters.fill) : T(NAN);
  SquaredError error;
  box.for_each_row([&](const T* row, std::size_t offset) {
    for (std::size_t i = 0; i < box.row_length(); ++i) {
      const T value = row[static_cast<std::int64_t>(i) * box.row_stride()];
      if (!std::isfinite(value) || value == fill) continue;
      const double part = (static_cast<double>(decoded[offset + i]) - static_cast<double>(value)) /
                          parameters.bound_abs;
      error.sum += part * part;
      ++error.count;
    }
    return true;
  });
  return error;
}

bool append(const std::uint8_t* bytes, std::size_t size, Output& output) {
  std::uint8_t* to = output.reserve(size);
  if (to == nullptr) return false;
  std::memcpy(to, bytes, size);
  output.commit(size);
  return true;
}

// The index repeats its error.
void note_record(const std::uint8_t* record, std::size_t size, const Output& output,
                 CompressScratch& scratch) {
  scratch.entries.push_back({output.size() - size, size, container::record_error({record, size})});
}

Status write_tail(const plan::Plan& plan, CompressScratch& scratch, Output& output) {
  const std::size_t count = scratch.entries.size();
  if (count > 1) {
    ByteWriter tail(
        scratch.tail.reserve(container::kMaxIndexOverhead + count * (kMaxVarintBytes + 2)));
    container::write_index(scratch.entries, plan.header, tail);
    if (!append(scratch.tail.data(), tail.size(), output)) return too_small(output);
  }
  output.finish();
  return std::monostate{};
}

}  // namespace

ChunkEncoder::ChunkEncoder(const ArrayView& array, const plan::Plan& plan,
                           const plan::BookPlan& books)
    : array_(array),
      plan_(plan),
      books_(books),
      grid_(plan.header.shape, plan.header.chunk),
      strides_(array.strides ? *array.strides : contiguous_strides(array.shape)),
      capacity_(container::kMaxRecordOverhead +
                pipelines::payload_capacity(static_cast<std::size_t>(plan.header.chunk.count()),
                                            array.type, plan.parameters.pipeline)) {}

// One that could not be used under this bound is still the one for others.
static void keep(const pipelines::Choice& made, pipelines::Choice* choice) {
  if (choice == nullptr) return;
  // One that was made for a larger chunk lacks what each chunk has of its own.
  const bool lacks =
      choice->orders == pipelines::Choice::kAnyOrders && choice->candidate.same_way(made.candidate);
  if (choice->candidate.pipeline == Pipeline::automatic || lacks) *choice = made;
}

pipelines::Parameters ChunkEncoder::parameters_of(std::uint64_t chunk,
                                                  const pipelines::Choice* choice) const {
  auto parameters = books_.parameters_of(plan_.parameters, chunk);
  if (choice != nullptr) parameters.choice = *choice;
  parameters.keep_choice = choice != nullptr;
  return parameters;
}

template <class Function>
auto ChunkEncoder::with_box(std::uint64_t chunk, Function function) const {
  const Region region = grid_.region(chunk);
  if (array_.type == Type::f32) {
    return function(Box<const float>(static_cast<const float*>(array_.data), strides_, region));
  }
  return function(Box<const double>(static_cast<const double*>(array_.data), strides_, region));
}

std::size_t ChunkEncoder::encode(std::uint64_t chunk, pipelines::Choice* choice, unsigned finer,
                                 SquaredError* error, pipelines::Workspace& workspace,
                                 std::uint8_t* to) const {
  return with_box(chunk, [&]<class T>(const Box<const T>& box) {
    const std::uint64_t raw_bytes = box.count() * sizeof(T);
    auto parameters = parameters_of(chunk, choice);
    parameters.finer = static_cast<std::uint8_t>(finer);
    std::uint8_t* const payload = to + container::record_head_bytes(raw_bytes);
    const pipelines::Encoded encoded = pipelines::encode<T>(box, parameters, workspace, payload);
    keep(encoded.choice, choice);
    if (error != nullptr) *error = squared_error(box, parameters, encoded, payload, workspace);
    return container::finish_record(to, raw_bytes, encoded.pipeline, encoded.max_error,
                                    encoded.size, plan_.header, chunk);
  });
}

ChunkEncoder::Rehearsed ChunkEncoder::rehearse(std::uint64_t chunk, pipelines::Choice* choice,
                                               pipelines::Workspace& workspace, std::uint8_t* to,
                                               double least, double most) const {
  return with_box(chunk, [&]<class T>(const Box<const T>& box) -> Rehearsed {
    const std::uint64_t raw_bytes = box.count() * sizeof(T);
    const std::size_t head = container::record_head_bytes(raw_bytes);
    const std::size_t others = head + format::kChecksumBytes;
    auto parameters = parameters_of(chunk, choice);
    parameters.rehearsal = true;
    // But for a line that is one chunk, every other block of codes tells as much.
    parameters.look_at_one_in = grid_.count() > 1 || box.rank() > 1 ? 2 : 1;
    parameters.least_wanted = static_cast<std::size_t>(std::max(least - others, 1.0));
    parameters.most_wanted = static_cast<std::size_t>(std::max(most - others, 0.0));
    const pipelines::Encoded encoded = pipelines::encode<T>(box, parameters, workspace, to + head);
    keep(encoded.choice, choice);
    const std::size_t size = others + encoded.size;
    const auto bytes = static_cast<double>(size);
    if (!encoded.written || bytes < least || bytes > most) return {size, false};
    return {container::finish_record(to, raw_bytes, encoded.pipeline, encoded.max_error,
                                     encoded.size, plan_.header, chunk),
            true};
  });
}

pipelines::Choice ChunkEncoder::choose(std::uint64_t chunk, pipelines::Workspace& workspace) const {
  pipelines::Choice result;
  with_box(chunk, [&]<class T>(const Box<const T>& box) {
    auto parameters = parameters_of(chunk, nullptr);
    parameters.choose_only = true;
    result = pipelines::encode<T>(box, parameters, workspace, workspace.output.reserve(capacity_))
                 .choice;
    return std::size_t{0};
  });
  return result;
}

Status write_head(plan::Plan& plan, CompressScratch& scratch, Output& output) {
  std::uint8_t header_bytes[container::kMaxHeaderBytes];
  ByteWriter header_writer(header_bytes);
  container::write_header(plan.header, header_writer);
  if (!append(header_bytes, header_writer.size(), output)) return too_small(output);
  for (std::size_t i = 0; i < scratch.books.books().size(); ++i) {
    const auto book = scratch.books.books()[i];
    ByteWriter writer(scratch.tail.reserve(book.size() + container::kBookOverhead));
    container::write_book(book, plan.header, i, writer);
    if (!append(scratch.tail.data(), writer.size(), output)) return too_small(output);
  }
  return std::monostate{};
}

Status write_records(const plan::Plan& plan, std::span<const std::span<std::uint8_t>> records,
                     CompressScratch& scratch, Output& output) {
  scratch.entries.clear();
  for (const auto& record : records) {
    if (!append(record.data(), record.size(), output)) return too_small(output);
    note_record(record.data(), record.size(), output, scratch);
  }
  return write_tail(plan, scratch, output);
}

Status compress(const ArrayView& array, plan::Plan& plan, const Execution& execution,
                pipelines::Workers& workers, CompressScratch& scratch, Output& output,
                std::vector<pipelines::Choice>* choices, std::vector<SquaredError>* errors) {
  plan::plan_books(array, plan, workers, &scratch.books);
  if (const Status status = write_head(plan, scratch, output); !status) return status;
  const ChunkEncoder encoder(array, plan, scratch.books);
  const std::uint64_t count = encoder.grid().count();
  Progress progress(execution, array.shape.count() * size_of(array.type));
  scratch.entries.clear();
  if (choices != nullptr) choices->resize(static_cast<std::size_t>(count));
  if (errors != nullptr) errors->resize(static_cast<std::size_t>(count));
  const auto encode = [&](std::uint64_t number, pipelines::Workspace& workspace, std::uint8_t* to) {
    const auto at = static_cast<std::size_t>(number);
    pipelines::Choice* const choice = choices != nullptr ? &(*choices)[at] : nullptr;
    SquaredError* const error = errors != nullptr ? &(*errors)[at] : nullptr;
    return encoder.encode(number, choice, 0, error, workspace, to);
  };
  const auto note = [&](std::uint64_t number, const std::uint8_t* record, std::size_t size) {
    note_record(record, size, output, scratch);
    return progress.add(encoder.values(number) * size_of(array.type));
  };

  bool room = true;
  if (workers.threads() == 1 || count == 1) {
    pipelines::Workspace& workspace = workers.workspace(0);
    for (std::uint64_t number = 0; number < count; ++number) {
      std::uint8_t* to = output.reserve(encoder.capacity());
      const bool direct = to != nullptr;
      if (!direct) to = workspace.output.reserve(encoder.capacity());
      const std::size_t size = encode(number, workspace, to);
      if (direct) {
        output.commit(size);
      } else if (!append(to, size, output)) {
        return too_small(output);
      }
      if (!note(number, to, size)) break;
    }
  } else {
    scratch.slots.resize(workers.slots());
    scratch.slot_sizes.resize(workers.slots());
    workers.ordered(
        count,
        [&](std::uint64_t number, std::size_t slot, pipelines::Workspace& workspace) {
          scratch.slot_sizes[slot] =
              encode(number, workspace, scratch.slots[slot].reserve(encoder.capacity()));
        },
        [&](std::uint64_t number, std::size_t slot) {
          const std::uint8_t* record = scratch.slots[slot].data();
          room = append(record, scratch.slot_sizes[slot], output);
          return room && note(number, record, scratch.slot_sizes[slot]);
        });
  }
  if (!room) return too_small(output);
  if (progress.cancelled()) return Progress::error();
  return write_tail(plan, scratch, output);
}

}  // namespace firn::engine
