#include "engine/compress.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

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
  const Grid grid(plan.header.shape, plan.header.chunk);
  return container::kMaxHeaderBytes + plan.header.shape.count() * size_of(plan.header.type) +
         grid.count() * container::kMaxRecordOverhead + container::kMaxIndexOverhead +
         plan::worst_case_book_bytes(plan);
}

namespace {

Error too_small(const Output& output) {
  return {ErrorCode::buffer_too_small,
          "the output buffer is full after " + std::to_string(output.size()) +
              " bytes; worst_case_size() tells how much always suffices"};
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

// Encodes a chunk as a whole record at `to`, which has record_capacity() bytes.
template <class T>
std::size_t encode_record(const ArrayView& array, const std::array<std::int64_t, kMaxRank>& strides,
                          const plan::Plan& plan, const plan::BookPlan& books, const Region& region,
                          std::uint64_t number, pipelines::Choice* choice, SquaredError* error,
                          pipelines::Workspace& workspace, std::uint8_t* to) {
  const Box<const T> box(static_cast<const T*>(array.data), strides, region);
  const std::uint64_t raw_bytes = region.shape.count() * sizeof(T);
  auto parameters = books.parameters_of(plan.parameters, number);
  if (choice != nullptr) parameters.choice = *choice;
  parameters.keep_choice = choice != nullptr;
  std::uint8_t* const payload = to + container::record_head_bytes(raw_bytes);
  const pipelines::Encoded encoded = pipelines::encode<T>(box, parameters, workspace, payload);
  if (choice != nullptr) *choice = encoded.choice;
  if (error != nullptr) *error = squared_error(box, parameters, encoded, payload, workspace);
  return container::finish_record(to, raw_bytes, encoded.pipeline, encoded.max_error, encoded.size,
                                  plan.header, number);
}

}  // namespace

Status compress(const ArrayView& array, plan::Plan& plan, const Execution& execution,
                pipelines::Workers& workers, CompressScratch& scratch, Output& output,
                std::vector<pipelines::Choice>* choices, std::vector<SquaredError>* errors,
                Watch* watch) {
  std::uint8_t header_bytes[container::kMaxHeaderBytes];
  ByteWriter header_writer(header_bytes);
  container::write_header(plan.header, header_writer);
  const auto append = [&](const std::uint8_t* bytes, std::size_t size) {
    std::uint8_t* to = output.reserve(size);
    if (to == nullptr) return false;
    std::memcpy(to, bytes, size);
    output.commit(size);
    return true;
  };
  if (!append(header_bytes, header_writer.size())) return too_small(output);

  plan::plan_books(array, plan, workers, &scratch.books);
  for (std::size_t i = 0; i < scratch.books.books().size(); ++i) {
    const auto book = scratch.books.books()[i];
    ByteWriter writer(scratch.tail.reserve(book.size() + container::kBookOverhead));
    container::write_book(book, plan.header, i, writer);
    if (!append(scratch.tail.data(), writer.size())) return too_small(output);
  }

  const Grid grid(plan.header.shape, plan.header.chunk);
  const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
  const std::size_t capacity =
      container::kMaxRecordOverhead +
      pipelines::payload_capacity(static_cast<std::size_t>(plan.header.chunk.count()), array.type);
  Progress progress(execution, array.shape.count() * size_of(array.type));
  scratch.entries.clear();
  if (choices != nullptr) choices->resize(static_cast<std::size_t>(grid.count()));
  if (errors != nullptr) errors->resize(static_cast<std::size_t>(grid.count()));
  const auto encode = [&](std::uint64_t number, pipelines::Workspace& workspace, std::uint8_t* to) {
    const Region region = grid.region(number);
    const auto at = static_cast<std::size_t>(number);
    pipelines::Choice* const choice = choices != nullptr ? &(*choices)[at] : nullptr;
    SquaredError* const error = errors != nullptr ? &(*errors)[at] : nullptr;
    return array.type == Type::f32
               ? encode_record<float>(array, strides, plan, scratch.books, region, number, choice,
                                      error, workspace, to)
               : encode_record<double>(array, strides, plan, scratch.books, region, number, choice,
                                       error, workspace, to);
  };

  std::vector<std::vector<std::uint8_t>> ahead(watch != nullptr ? watch->ahead.size() : 0);
  workers.for_each(ahead.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
    const auto at = static_cast<std::size_t>(i);
    std::uint8_t* const record = workspace.output.reserve(capacity);
    ahead[at].assign(record, record + encode(watch->ahead[at], workspace, record));
    return true;
  });
  const auto goes_on = [&](std::uint64_t number, std::size_t size) {
    if (watch != nullptr && !watch->given_up) watch->given_up = !watch->goes_on(number, size);
    return watch == nullptr || !watch->given_up;
  };
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    if (!goes_on(watch->ahead[i], ahead[i].size())) return std::monostate{};
  }
  // The record of a chunk that was encoded ahead, or null.
  const auto find_ahead = [&](std::uint64_t number) -> const std::vector<std::uint8_t>* {
    if (ahead.empty()) return nullptr;
    const auto found = std::lower_bound(watch->ahead.begin(), watch->ahead.end(), number);
    if (found == watch->ahead.end() || *found != number) return nullptr;
    return &ahead[static_cast<std::size_t>(found - watch->ahead.begin())];
  };
  const auto take_or_encode = [&](std::uint64_t number, pipelines::Workspace& workspace,
                                  std::uint8_t* to) {
    const auto* const record = find_ahead(number);
    if (record == nullptr) return encode(number, workspace, to);
    std::memcpy(to, record->data(), record->size());
    return record->size();
  };
  // The error's place in a record is fixed; the index repeats it.
  const auto note = [&](std::uint64_t number, const std::uint8_t* record, std::size_t size) {
    scratch.entries.push_back({output.size() - size, size, load_le<std::uint16_t>(record + 1)});
    return progress.add(grid.region(number).shape.count() * size_of(array.type)) &&
           (find_ahead(number) != nullptr || goes_on(number, size));
  };

  bool room = true;
  if (workers.threads() == 1 || grid.count() == 1) {
    pipelines::Workspace& workspace = workers.workspace(0);
    for (std::uint64_t number = 0; number < grid.count(); ++number) {
      std::uint8_t* to = output.reserve(capacity);
      const bool direct = to != nullptr;
      if (!direct) to = workspace.output.reserve(capacity);
      const std::size_t size = take_or_encode(number, workspace, to);
      if (direct) {
        output.commit(size);
      } else if (!append(to, size)) {
        return too_small(output);
      }
      if (!note(number, to, size)) break;
    }
  } else {
    scratch.slots.resize(workers.slots());
    scratch.slot_sizes.resize(workers.slots());
    workers.ordered(
        grid.count(),
        [&](std::uint64_t number, std::size_t slot, pipelines::Workspace& workspace) {
          scratch.slot_sizes[slot] =
              take_or_encode(number, workspace, scratch.slots[slot].reserve(capacity));
        },
        [&](std::uint64_t number, std::size_t slot) {
          const std::uint8_t* record = scratch.slots[slot].data();
          room = append(record, scratch.slot_sizes[slot]);
          return room && note(number, record, scratch.slot_sizes[slot]);
        });
  }
  if (!room) return too_small(output);
  if (progress.cancelled()) return Progress::error();
  if (watch != nullptr && watch->given_up) return std::monostate{};

  if (grid.count() > 1) {
    ByteWriter tail(
        scratch.tail.reserve(container::kMaxIndexOverhead + grid.count() * (kMaxVarintBytes + 2)));
    container::write_index(scratch.entries, plan.header, tail);
    if (!append(scratch.tail.data(), tail.size())) return too_small(output);
  }
  output.finish();
  return std::monostate{};
}

}  // namespace firn::engine
