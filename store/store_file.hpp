// The file of a frame store: records appended one after another, each a checksummed head and a
// payload, and an index once it is closed. docs/frame-store.md specifies it.
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pages.hpp"

namespace firn::store {

enum class Encoding : std::uint32_t {
  raw = 1,   // the values, row after row
  firn = 2,  // a Firn stream
};

// Records start at multiples of kBlockBytes, so that direct I/O can read and write them in place.
inline constexpr std::uint64_t kBlockBytes = 4096;
inline constexpr std::uint64_t kHeadBytes = 64;
constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes) {
  return (kHeadBytes + payload_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

struct Location {
  std::uint64_t offset = 0;  // of the record
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;  // of the payload
  Encoding encoding = Encoding::raw;
};
using Index = std::map<std::uint64_t, Location>;

struct FileOptions {
  bool replace = false;
  bool temporary = false;
  bool direct = false;
};

class StoreFile {
 public:
  static Result<std::unique_ptr<StoreFile>> create(const std::string& path, Type type,
                                                   const Shape& shape, FileOptions options);
  static Result<std::unique_ptr<StoreFile>> open(const std::string& path, FileOptions options);
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;
  ~StoreFile();

  // `record` is page-aligned memory of record_bytes(payload_bytes): the head is filled in here, the
  // payload stands behind it. Either the whole record is appended or none of it. One thread at a
  // time writes; others wait.
  Result<Location> append(std::uint64_t number, Encoding encoding, std::uint8_t* record,
                          std::uint64_t payload_bytes);
  // Reads a record into page-aligned memory of record_bytes(payload_bytes) and checks it. Any
  // number of threads at a time.
  Status read(std::uint64_t number, const Location& location, std::uint8_t* record) const;

  Status sync();
  // Writes the index, unless nothing was appended since the file was opened with one.
  Status close(const Index& index);

  Type type() const { return type_; }
  const Shape& shape() const { return shape_; }
  const Index& index() const { return index_; }  // as found by open()
  std::uint64_t recovered_frames() const { return recovered_frames_; }
  std::uint64_t damaged_records() const { return damaged_records_; }

 private:
  StoreFile() = default;
  Error failure(const std::string& what, int error) const;
  Error damaged(const std::string& what) const;
  Status write_all(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
                   const std::string& what);
  // Fewer bytes than asked for at the end of the file.
  Result<std::uint64_t> read_some(std::uint64_t offset, std::uint8_t* bytes,
                                  std::uint64_t count) const;
  Status read_file_head();
  Result<bool> read_index();
  Status scan();
  void set_direct(bool on);

  std::string path_;
  int descriptor_ = -1;
  bool direct_ = false;
  bool read_only_ = false;
  bool indexed_ = false;   // the file ends with a sound index at end_
  bool appended_ = false;  // since it was opened
  Type type_ = Type::f32;
  Shape shape_;
  std::uint64_t id_ = 0;  // seeds the checksums, so that no other file's records are taken for ours
  std::uint64_t file_bytes_ = 0;
  Index index_;
  std::uint64_t recovered_frames_ = 0, damaged_records_ = 0;

  std::mutex mutex_;
  std::uint64_t end_ = 0;  // where the next record goes
};

}  // namespace firn::store
