#include "store_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

namespace firn::store {
namespace {

static_assert(std::endian::native == std::endian::little, "big-endian hosts need a byte swap");

constexpr std::array<char, 8> kFileMagic{'F', 'I', 'R', 'N', 'S', 'T', 'O', 'R'};
constexpr std::array<char, 8> kFrameMagic{'F', 'I', 'R', 'N', 'F', 'R', 'A', 'M'};
constexpr std::array<char, 8> kIndexMagic{'F', 'I', 'R', 'N', 'I', 'N', 'D', 'X'};
constexpr std::array<char, 8> kEndMagic{'F', 'I', 'R', 'N', 'D', 'O', 'N', 'E'};
constexpr std::uint32_t kFileVersion = 1;
constexpr std::size_t kFileHeadBytes = 80;
constexpr std::size_t kEntryBytes = 40;
constexpr std::size_t kFooterBytes = 16;
// A payload beyond this cannot be a frame's: compression adds a small constant at most.
std::uint64_t largest_payload(std::uint64_t frame_bytes) { return frame_bytes * 2 + (1 << 20); }

template <class Word>
Word load(const std::uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <class Word>
void save(std::uint8_t* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}
bool has_magic(const std::uint8_t* bytes, const std::array<char, 8>& magic) {
  return std::memcmp(bytes, magic.data(), magic.size()) == 0;
}

// The 64 bytes before a payload.
struct Head {
  std::uint64_t number = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;
  std::uint32_t encoding = 0;
};

void save_head(std::uint8_t* to, const std::array<char, 8>& magic, const Head& head,
               std::uint64_t id) {
  std::memset(to, 0, kHeadBytes);
  std::memcpy(to, magic.data(), magic.size());
  save(to + 8, head.number);
  save(to + 16, head.payload_bytes);
  save(to + 24, head.checksum);
  save(to + 32, head.encoding);
  save(to + 56, XXH3_64bits_withSeed(to, 56, id));
}

bool load_head(const std::uint8_t* from, const std::array<char, 8>& magic, std::uint64_t id,
               Head* head) {
  if (!has_magic(from, magic)) return false;
  if (load<std::uint64_t>(from + 56) != XXH3_64bits_withSeed(from, 56, id)) return false;
  *head = {load<std::uint64_t>(from + 8), load<std::uint64_t>(from + 16),
           load<std::uint64_t>(from + 24), load<std::uint32_t>(from + 32)};
  return true;
}

bool known_encoding(std::uint32_t encoding) {
  return encoding == static_cast<std::uint32_t>(Encoding::raw) ||
         encoding == static_cast<std::uint32_t>(Encoding::firn);
}

std::uint64_t random_id() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Error StoreFile::failure(const std::string& what, int error) const {
  return {ErrorCode::io_error, "cannot " + what + " " + path_ + ": " + std::strerror(error)};
}
Error StoreFile::damaged(const std::string& what) const {
  return {ErrorCode::corrupt, path_ + ": " + what};
}

Status StoreFile::write_all(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
                            const std::string& what) {
  while (count > 0) {
    // Linux moves at most 2 GiB in one call.
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, 1 << 30));
    const ssize_t done = pwrite(descriptor_, bytes, part, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failure(what, done < 0 ? errno : ENOSPC);
    offset += static_cast<std::uint64_t>(done);
    bytes += done;
    count -= static_cast<std::uint64_t>(done);
  }
  return std::monostate{};
}

Result<std::uint64_t> StoreFile::read_some(std::uint64_t offset, std::uint8_t* bytes,
                                           std::uint64_t count) const {
  std::uint64_t total = 0;
  while (total < count) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count - total, 1 << 30));
    const ssize_t done =
        pread(descriptor_, bytes + total, part, static_cast<off_t>(offset + total));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure("read", errno);
    if (done == 0) break;
    total += static_cast<std::uint64_t>(done);
  }
  return total;
}

void StoreFile::set_direct(bool on) {
  if (!direct_) return;
  const int flags = fcntl(descriptor_, F_GETFL);
  // A file system that cannot (tmpfs) goes on with its cache.
  if (fcntl(descriptor_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) != 0) direct_ = false;
}

Result<std::unique_ptr<StoreFile>> StoreFile::create(const std::string& path, Type type,
                                                     const Shape& shape, FileOptions options) {
  std::unique_ptr<StoreFile> file(new StoreFile);
  file->path_ = path;
  file->type_ = type;
  file->shape_ = shape;
  file->direct_ = options.direct;
  file->descriptor_ =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (options.replace ? 0 : O_EXCL), 0666);
  if (file->descriptor_ < 0) {
    if (errno != EEXIST) return file->failure("create", errno);
    return Error{ErrorCode::io_error,
                 path + " exists already; open it, or ask for it to be replaced"};
  }
  if (flock(file->descriptor_, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::io_error, path + " is in use by another store"};
  }
  if (options.temporary) unlink(path.c_str());
  if (ftruncate(file->descriptor_, 0) != 0) return file->failure("empty", errno);
  file->id_ = random_id();
  Pages head(kBlockBytes);
  if (!head) return Error{ErrorCode::out_of_memory, "no memory for the head of a store's file"};
  std::uint8_t* to = head.data();
  std::memset(to, 0, kBlockBytes);
  std::memcpy(to, kFileMagic.data(), kFileMagic.size());
  save(to + 8, kFileVersion);
  save(to + 12, static_cast<std::uint32_t>(type));
  save(to + 16, static_cast<std::uint32_t>(shape.rank));
  for (int axis = 0; axis < kMaxRank; ++axis) {
    const auto extent = shape.extents[static_cast<std::size_t>(axis)];
    save(to + 24 + 8 * axis, axis < shape.rank ? extent : std::uint64_t{0});
  }
  save(to + 56, file->id_);
  save(to + kFileHeadBytes - 8, XXH3_64bits(to, kFileHeadBytes - 8));
  if (const Status written = file->write_all(0, to, kBlockBytes, "write to"); !written.ok()) {
    if (!options.temporary) unlink(path.c_str());
    return written.error();
  }
  file->end_ = kBlockBytes;
  file->set_direct(true);
  return file;
}

Result<std::unique_ptr<StoreFile>> StoreFile::open(const std::string& path, FileOptions options) {
  std::unique_ptr<StoreFile> file(new StoreFile);
  file->path_ = path;
  file->direct_ = options.direct;
  file->descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file->descriptor_ < 0 && (errno == EACCES || errno == EROFS)) {
    file->read_only_ = true;
    file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (file->descriptor_ < 0) return file->failure("open", errno);
  if (flock(file->descriptor_, (file->read_only_ ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    return Error{ErrorCode::io_error, path + " is in use by another store"};
  }
  struct stat about {};
  if (fstat(file->descriptor_, &about) != 0) return file->failure("inspect", errno);
  file->file_bytes_ = static_cast<std::uint64_t>(about.st_size);
  if (const Status head = file->read_file_head(); !head.ok()) return head.error();
  const auto indexed = file->read_index();
  if (!indexed) return indexed.error();
  file->indexed_ = *indexed;
  if (!*indexed) {
    if (const Status scanned = file->scan(); !scanned.ok()) return scanned.error();
  }
  file->set_direct(true);
  return file;
}

StoreFile::~StoreFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status StoreFile::read_file_head() {
  std::array<std::uint8_t, kFileHeadBytes> head{};
  const auto count = read_some(0, head.data(), head.size());
  if (!count) return count.error();
  if (*count < 12 || !has_magic(head.data(), kFileMagic)) {
    return Error{ErrorCode::not_firn, path_ + " is not the file of a frame store"};
  }
  const auto version = load<std::uint32_t>(head.data() + 8);
  if (version > kFileVersion) {
    return Error{ErrorCode::newer_version, path_ + " has version " + std::to_string(version) +
                                               "; this library knows up to " +
                                               std::to_string(kFileVersion)};
  }
  if (*count < head.size()) return Error{ErrorCode::truncated, path_ + " ends within its head"};
  if (load<std::uint64_t>(head.data() + kFileHeadBytes - 8) !=
      XXH3_64bits(head.data(), kFileHeadBytes - 8)) {
    return damaged("the head's checksum is wrong");
  }
  const auto type = load<std::uint32_t>(head.data() + 12);
  const auto rank = load<std::uint32_t>(head.data() + 16);
  if (type < 1 || type > 2 || rank < 1 || rank > kMaxRank)
    return damaged("impossible type or rank");
  type_ = static_cast<Type>(type);
  shape_.rank = static_cast<int>(rank);
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    shape_.extents[axis] = load<std::uint64_t>(head.data() + 24 + 8 * axis);
  }
  id_ = load<std::uint64_t>(head.data() + 56);
  end_ = kBlockBytes;
  return std::monostate{};
}

// True when the file ends with an index; a file that was not closed has none.
Result<bool> StoreFile::read_index() {
  if (file_bytes_ < 2 * kBlockBytes || file_bytes_ % kBlockBytes != 0) return false;
  std::array<std::uint8_t, kFooterBytes> footer{};
  auto count = read_some(file_bytes_ - kFooterBytes, footer.data(), footer.size());
  if (!count) return count.error();
  const auto offset = load<std::uint64_t>(footer.data());
  if (*count < footer.size() || !has_magic(footer.data() + 8, kEndMagic) || offset < kBlockBytes ||
      offset % kBlockBytes != 0 || offset >= file_bytes_) {
    return false;
  }
  // No larger than the file itself.
  std::vector<std::uint8_t> record(static_cast<std::size_t>(file_bytes_ - offset));
  count = read_some(offset, record.data(), record.size());
  if (!count) return count.error();
  Head head;
  if (*count < record.size() || !load_head(record.data(), kIndexMagic, id_, &head)) return false;
  const std::uint8_t* payload = record.data() + kHeadBytes;
  if (head.payload_bytes != record.size() - kHeadBytes ||
      head.number > (head.payload_bytes - kFooterBytes) / kEntryBytes ||
      head.checksum != XXH3_64bits_withSeed(payload, head.payload_bytes, id_)) {
    return false;
  }
  const std::uint64_t limit = largest_payload(shape_.count() * size_of(type_));
  for (std::uint64_t i = 0; i < head.number; ++i) {
    const std::uint8_t* entry = payload + i * kEntryBytes;
    const Location location{load<std::uint64_t>(entry + 8), load<std::uint64_t>(entry + 16),
                            load<std::uint64_t>(entry + 24),
                            static_cast<Encoding>(load<std::uint32_t>(entry + 32))};
    if (!known_encoding(static_cast<std::uint32_t>(location.encoding)) ||
        location.payload_bytes > limit || location.offset % kBlockBytes != 0 ||
        location.offset > offset ||
        record_bytes(location.payload_bytes) > offset - location.offset) {
      return damaged("the index points outside the file");
    }
    index_[load<std::uint64_t>(entry)] = location;
  }
  end_ = offset;
  return true;
}

// Looks for records at every block, checking their payloads: a later one replaces an earlier one of
// the same frame; what is not whole is passed over.
Status StoreFile::scan() {
  const std::uint64_t limit = largest_payload(shape_.count() * size_of(type_));
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  std::uint64_t offset = kBlockBytes;
  bool in_damage = false;  // several blocks of one record count once
  while (offset < file_bytes_) {
    std::array<std::uint8_t, kHeadBytes> bytes{};
    const auto count = read_some(offset, bytes.data(), bytes.size());
    if (!count) return count.error();
    Head head;
    const bool sound = *count == bytes.size() && load_head(bytes.data(), kFrameMagic, id_, &head) &&
                       known_encoding(head.encoding) && head.payload_bytes <= limit;
    if (!sound || record_bytes(head.payload_bytes) > file_bytes_ - offset) {
      Head index_head;
      const bool index =
          *count == bytes.size() && load_head(bytes.data(), kIndexMagic, id_, &index_head);
      if (!in_damage && !index) ++damaged_records_;
      in_damage = true;
      offset += kBlockBytes;
      continue;
    }
    in_damage = false;
    XXH3_state_t* state = XXH3_createState();
    if (state == nullptr) return Error{ErrorCode::out_of_memory, "no memory for a checksum"};
    XXH3_64bits_reset_withSeed(state, id_);
    std::uint64_t done = 0;
    Status status = std::monostate{};
    while (done < head.payload_bytes) {
      const auto part = std::min<std::uint64_t>(piece.size(), head.payload_bytes - done);
      const auto got = read_some(offset + kHeadBytes + done, piece.data(), part);
      if (!got) status = got.error();
      if (!got || *got < part) break;
      XXH3_64bits_update(state, piece.data(), static_cast<std::size_t>(part));
      done += part;
    }
    const std::uint64_t checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (!status.ok()) return status;
    if (done == head.payload_bytes && checksum == head.checksum) {
      index_[head.number] = {offset, head.payload_bytes, head.checksum,
                             static_cast<Encoding>(head.encoding)};
      end_ = offset + record_bytes(head.payload_bytes);
    } else {
      ++damaged_records_;
    }
    offset += record_bytes(head.payload_bytes);
  }
  recovered_frames_ = index_.size();
  return std::monostate{};
}

Result<Location> StoreFile::append(std::uint64_t number, Encoding encoding, std::uint8_t* record,
                                   std::uint64_t payload_bytes) {
  const std::uint64_t size = record_bytes(payload_bytes);
  std::memset(record + kHeadBytes + payload_bytes, 0,
              static_cast<std::size_t>(size - kHeadBytes - payload_bytes));
  const std::uint64_t checksum =
      XXH3_64bits_withSeed(record + kHeadBytes, static_cast<std::size_t>(payload_bytes), id_);
  save_head(record, kFrameMagic,
            {number, payload_bytes, checksum, static_cast<std::uint32_t>(encoding)}, id_);
  const std::lock_guard lock(mutex_);
  if (read_only_) {
    return Error{ErrorCode::io_error, path_ + " may only be read: no frame can be put into it"};
  }
  // The index, or what a killed process left behind the last whole record.
  if (!appended_ && ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) {
    return failure("write to", errno);
  }
  appended_ = true;
  indexed_ = false;
  const Status written =
      write_all(end_, record, size, "write frame " + std::to_string(number) + " to");
  if (!written.ok()) {
    // What is left of it would be found not whole anyway; this gives the room back.
    [[maybe_unused]] const int ignored = ftruncate(descriptor_, static_cast<off_t>(end_));
    return written.error();
  }
  const Location location{end_, payload_bytes, checksum, encoding};
  end_ += size;
  return location;
}

Status StoreFile::read(std::uint64_t number, const Location& location, std::uint8_t* record) const {
  const std::uint64_t size = record_bytes(location.payload_bytes);
  const auto count = read_some(location.offset, record, size);
  if (!count) return count.error();
  const std::string name = "frame " + std::to_string(number);
  if (*count < size) {
    return Error{ErrorCode::truncated, path_ + " ends within " + name};
  }
  Head head;
  if (!load_head(record, kFrameMagic, id_, &head) || head.number != number ||
      head.payload_bytes != location.payload_bytes || head.checksum != location.checksum ||
      head.checksum != XXH3_64bits_withSeed(record + kHeadBytes,
                                            static_cast<std::size_t>(head.payload_bytes), id_)) {
    return damaged(name + " is damaged: its checksum is wrong");
  }
  return std::monostate{};
}

Status StoreFile::sync() {
  if (fdatasync(descriptor_) != 0) return failure("sync", errno);
  return std::monostate{};
}

Status StoreFile::close(const Index& index) {
  const std::lock_guard lock(mutex_);
  if (indexed_ || read_only_) return std::monostate{};
  const std::uint64_t size = record_bytes(index.size() * kEntryBytes + kFooterBytes);
  Pages record(static_cast<std::size_t>(size));
  if (!record) return Error{ErrorCode::out_of_memory, "no memory for the index of " + path_};
  std::memset(record.data(), 0, static_cast<std::size_t>(size));
  std::uint8_t* entry = record.data() + kHeadBytes;
  for (const auto& [number, location] : index) {
    save(entry, number);
    save(entry + 8, location.offset);
    save(entry + 16, location.payload_bytes);
    save(entry + 24, location.checksum);
    save(entry + 32, static_cast<std::uint32_t>(location.encoding));
    entry += kEntryBytes;
  }
  std::uint8_t* footer = record.data() + size - kFooterBytes;
  save(footer, end_);
  std::memcpy(footer + 8, kEndMagic.data(), kEndMagic.size());
  const std::uint64_t payload_bytes = size - kHeadBytes;
  save_head(record.data(), kIndexMagic,
            {index.size(), payload_bytes,
             XXH3_64bits_withSeed(record.data() + kHeadBytes,
                                  static_cast<std::size_t>(payload_bytes), id_),
             0},
            id_);
  if (ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) return failure("write to", errno);
  Status status = write_all(end_, record.data(), size, "write the index of");
  if (!status.ok()) {
    [[maybe_unused]] const int ignored = ftruncate(descriptor_, static_cast<off_t>(end_));
    return status;
  }
  indexed_ = true;
  return sync();
}

}  // namespace firn::store
