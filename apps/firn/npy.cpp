#include "npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "failure.hpp"
#include "numbers.hpp"

namespace firn_cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Reads the header's text, a Python dictionary literal with the keys descr, fortran_order and
// shape in any order.
class DictionaryReader {
 public:
  DictionaryReader(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        header.type = read_type();
        has_type = true;
      } else if (key == "fortran_order") {
        header.fortran_order = read_boolean();
        has_order = true;
      } else if (key == "shape") {
        header.extents = read_extents();
        has_shape = true;
      } else {
        broken();
      }
      if (!accept(',') && peek() != '}') broken();
    }
    if (!has_type || !has_order || !has_shape) broken();
    return header;
  }

 private:
  [[noreturn]] void broken() const {
    fail(ExitCode::damaged, "{}: its .npy header cannot be read", name_);
  }

  char peek() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) {
      text_.remove_prefix(1);
    }
    return text_.empty() ? '\0' : text_[0];
  }

  bool accept(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) broken();
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') broken();
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) broken();
    const std::string_view word = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return word;
  }

  std::string_view word() {
    peek();
    std::size_t end = 0;
    while (end < text_.size() && text_.substr(end, 1).find_first_of(" ,:(){}\n") != 0) ++end;
    const std::string_view result = text_.substr(0, end);
    text_.remove_prefix(end);
    return result;
  }

  firn::Type read_type() {
    if (peek() == '[') {
      fail(ExitCode::unsupported, "{} holds records; save the f4 or f8 field you want on its own",
           name_);
    }
    const std::string_view descr = quoted();
    if (descr == "<f4") return firn::Type::f32;
    if (descr == "<f8") return firn::Type::f64;
    if (descr == ">f4" || descr == ">f8") {
      fail(ExitCode::unsupported,
           "{} is big-endian ('{}'); save it with .astype('<{}') in numpy first", name_, descr,
           descr.substr(1));
    }
    fail(ExitCode::unsupported, "{} holds values of numpy type '{}'; Firn takes '<f4' and '<f8'",
         name_, descr);
  }

  bool read_boolean() {
    const std::string_view value = word();
    if (value != "True" && value != "False") broken();
    return value == "True";
  }

  std::vector<std::uint64_t> read_extents() {
    std::vector<std::uint64_t> extents;
    expect('(');
    while (!accept(')')) {
      std::string_view digits = word();
      if (digits.ends_with('L')) digits.remove_suffix(1);  // Python 2 wrote long integers so
      const std::optional<std::uint64_t> extent = parse_count(digits);
      if (!extent) broken();
      extents.push_back(*extent);
      if (!accept(',') && peek() != ')') broken();
    }
    return extents;
  }

  const std::string& name_;
  std::string_view text_;
};

}  // namespace

bool has_npy_magic(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

NpyHeader parse_npy_header(const std::string& name, std::span<const std::uint8_t> bytes) {
  // magic, major, minor, then the text's length: 2 bytes in version 1, 4 from version 2 on.
  if (!has_npy_magic(bytes)) fail(ExitCode::damaged, "{} is no .npy file", name);
  const std::size_t version_end = kMagic.size() + 2;
  if (bytes.size() < version_end + 4) fail(ExitCode::truncated, "{} ends in its header", name);
  const int major = bytes[kMagic.size()];
  if (major < 1 || major > 3) {
    fail(ExitCode::unsupported, "{} is a .npy file of version {}; 1 to 3 are known", name, major);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(bytes[version_end + i]) << (8 * i);
  }
  const std::size_t text_start = version_end + length_bytes;
  if (bytes.size() - text_start < length) {
    fail(ExitCode::truncated, "{} ends in its header", name);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + text_start, length);
  NpyHeader header = DictionaryReader(name, text).read();
  header.data_offset = text_start + length;
  return header;
}

std::string make_npy_header(firn::Type type, const firn::Shape& shape) {
  std::string extents;
  for (int axis = 0; axis < shape.rank; ++axis) {
    extents += fmt::format("{}{}", axis == 0 ? "" : ", ", shape.extents[axis]);
  }
  if (shape.rank == 1) extents += ',';
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type == firn::Type::f32 ? "<f4" : "<f8", extents);
  const std::size_t prefix = kMagic.size() + 4;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  const auto low = static_cast<char>(text.size() & 0xff);
  const auto high = static_cast<char>(text.size() >> 8);
  return std::string(kMagic) + '\x01' + '\x00' + low + high + text;
}

}  // namespace firn_cli
