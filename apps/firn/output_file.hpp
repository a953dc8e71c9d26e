// An output that appears under its name only when it is complete: a temporary file beside it is
// written, synced and renamed. "-" and what is no regular file (a pipe, /dev/null) get the bytes
// directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace firn_cli {

class OutputFile {
 public:
  // Fails early when the path cannot become a file, or exists and `replace` is false. Creates
  // nothing yet.
  OutputFile(std::string path, bool replace);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // removes the temporary file when commit() was not reached

  // Memory that holds the output's contents at commit(): the temporary file itself, its room on the
  // disk already taken, or plain memory for a pipe. All zero at first. Call once.
  std::span<std::uint8_t> map(std::uint64_t size_bytes);

  // Or the contents, in one piece or several.
  void write(std::span<const std::uint8_t> bytes);

  // Or the temporary file's descriptor, for a library that reads and writes anywhere in it and
  // leaves its offset at the start. A Failure when the output is no regular file. Call once.
  int create_for_library();

  // Makes the output durable and gives it its name.
  void commit();

  // The same for what cannot be made again: the first so many bytes of what was written; and when
  // the output has come into being meanwhile, under another name beside it. Returns the name that
  // it has, none if it could not be kept.
  std::string keep(std::uint64_t size_bytes);

  bool is_standard_output() const;
  bool is_regular() const { return !direct_; }       // or will be
  const std::string& name() const { return name_; }  // for messages
  [[noreturn]] void fail_to_write(int error) const;  // with a Failure for this errno

 private:
  void create_temporary();
  void unmap();

  std::string path_;  // with symbolic links resolved
  std::string name_;
  bool replace_;
  bool direct_ = false;  // not a regular file: no temporary
  std::string temporary_;
  int descriptor_ = -1;
  std::uint8_t* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
};

}  // namespace firn_cli
