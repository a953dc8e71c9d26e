// Inputs: raw files, .npy files and pipes, as bytes or as an array with its type and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "firn/firn.hpp"

namespace firn_cli {

inline constexpr const char* kStandardStream = "-";

class InputPipe;

// The whole of an input: a mapping of a regular file, or memory that a pipe was read into.
class InputBytes {
 public:
  // "-" is standard input. Of a pipe at most `limit` bytes and one more are read.
  static InputBytes open(const std::string& path, std::optional<std::uint64_t> limit = {});
  // What has been read of a pipe, and the rest of it.
  static InputBytes rest_of(InputPipe& pipe, std::span<const std::uint8_t> head);
  // Memory aligned for any value, with a copy of `bytes`.
  static InputBytes copy_of(std::span<const std::uint8_t> bytes);

  InputBytes(InputBytes&& other) noexcept;
  InputBytes& operator=(InputBytes&& other) noexcept;
  ~InputBytes();

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  bool is_mapped() const { return mapped_; }

 private:
  InputBytes() = default;
  void swap(InputBytes& other) noexcept;

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

// An input that is read as its bytes come.
class InputPipe {
 public:
  explicit InputPipe(const std::string& path);
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;
  ~InputPipe();

  // Waits for bytes; how many came, 0 at the end, and also once a signal has told the process to
  // end (interruption.hpp, defer_signals()).
  std::size_t read(std::span<std::uint8_t> into);
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int descriptor_;
};

// Standard input, or a path that is there and no regular file.
bool is_pipe(const std::string& path);
bool has_npy_name(const std::string& path);
// A usage Failure when bytes that are taken as raw begin a .npy file.
void refuse_npy(const std::string& name, std::span<const std::uint8_t> bytes);

// What is known of a field before its file is opened.
struct FieldRequest {
  std::optional<firn::Type> type;
  std::optional<firn::Shape> shape;
  // Who says so, for messages: the options, or a stream that the field is compared with.
  enum class Source { options, stream } source = Source::options;
  bool any_steps = false;  // the shape is one step's, and the input has as many as it has
};

// An array and the memory it lies in.
struct Field {
  std::string name;  // for messages
  InputBytes storage;
  firn::ArrayView view;
};

// A Failure when the type or shape is not known or does not fit the file.
Field open_field(const std::string& path, const FieldRequest& request);

// "standard input" for "-".
std::string input_name(const std::string& path);

}  // namespace firn_cli
