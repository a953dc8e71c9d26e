#include "field_description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "failure.hpp"
#include "numbers.hpp"

namespace firn_cli {
namespace {

constexpr std::string_view kOrder = "dims are slowest first; zfp and SZ name the fastest first";

std::optional<firn::Shape> shape_from_text(std::string_view text) {
  firn::Shape shape;
  while (true) {
    const std::size_t end = std::min(text.find('x'), text.size());
    const std::optional<std::uint64_t> extent = parse_count(text.substr(0, end));
    if (!extent || shape.rank == firn::kMaxRank) return std::nullopt;
    shape.extents[shape.rank++] = *extent;
    if (end == text.size()) return shape;
    text.remove_prefix(end + 1);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<firn::Type> type_from_ending(std::string_view ending) {
  if (ending == "f32") return firn::Type::f32;
  if (ending == "f64" || ending == "d64") return firn::Type::f64;
  return std::nullopt;
}

// The given shape with one extent changed so that it has `count` values, for each axis where that
// works.
std::vector<firn::Shape> fitting_shapes(std::uint64_t count, const firn::Shape& shape) {
  std::vector<firn::Shape> fits;
  if (count == 0) return fits;
  for (int axis = 0; axis < shape.rank; ++axis) {
    firn::Shape fit = shape;
    fit.extents[axis] = 1;
    const std::uint64_t others = fit.count();
    if (others == 0 || count % others != 0) continue;
    fit.extents[axis] = count / others;
    if (fit.count() == count) fits.push_back(fit);
  }
  return fits;
}

}  // namespace

std::string to_text(const firn::Shape& shape) {
  return fmt::format("{}",
                     fmt::join(shape.extents.begin(), shape.extents.begin() + shape.rank, "x"));
}

firn::Shape parse_dims(std::string_view option, std::string_view text, bool* any_steps) {
  std::optional<firn::Shape> shape;
  if (any_steps != nullptr && (text == "N" || text.starts_with("Nx"))) {
    shape = shape_from_text(fmt::format("1{}", text.substr(1)));
    *any_steps = shape.has_value();
  } else {
    shape = shape_from_text(text);
  }
  if (!shape) {
    fail(ExitCode::usage,
         "{} takes 1 to {} whole numbers such as 100x500x500, slowest first{}, not '{}'", option,
         firn::kMaxRank,
         any_steps == nullptr ? "" : ", or Nx500x500 for as many steps as the input has", text);
  }
  return *shape;
}

firn::Type parse_type(std::string_view text) {
  const std::optional<firn::Type> type = type_from_ending(text);
  if (!type) fail(ExitCode::usage, "--type is f32 or f64, not '{}'", text);
  return *type;
}

NameHints hints_from_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  NameHints hints;
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) hints.type = type_from_ending(name.substr(dot + 1));

  std::size_t start = 0;
  while (start < name.size()) {
    if (!is_word(name[start])) {
      ++start;
      continue;
    }
    std::size_t end = start;
    while (end < name.size() && is_word(name[end])) ++end;
    const std::string_view word = name.substr(start, end - start);
    if (word.find('x') != std::string_view::npos) {
      if (const std::optional<firn::Shape> shape = shape_from_text(word)) hints.shape = shape;
    }
    start = end;
  }
  return hints;
}

bool is_reverse_of(const firn::Shape& shape, const firn::Shape& other) {
  if (shape.rank != other.rank || shape == other) return false;
  return std::equal(shape.extents.begin(), shape.extents.begin() + shape.rank,
                    std::make_reverse_iterator(other.extents.begin() + other.rank));
}

std::optional<std::uint64_t> array_bytes(firn::Type type, const firn::Shape& shape) {
  std::uint64_t bytes = firn::size_of(type);
  const auto end = shape.extents.begin() + shape.rank;
  if (shape.rank == 0 || std::find(shape.extents.begin(), end, 0u) != end) return 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (__builtin_mul_overflow(bytes, shape.extents[axis], &bytes)) return std::nullopt;
  }
  if (bytes >> 63 != 0) return std::nullopt;
  return bytes;
}

std::uint64_t array_bytes_or_fail(firn::Type type, const firn::Shape& shape) {
  const std::optional<std::uint64_t> bytes = array_bytes(type, shape);
  if (!bytes) {
    fail(ExitCode::usage, "dims {} of {} take more than 2^63 bytes", to_text(shape),
         firn::name_of(type));
  }
  return *bytes;
}

std::string describe_size_mismatch(std::string_view name, std::uint64_t found_bytes, bool more,
                                   firn::Type type, const firn::Shape& shape,
                                   const NameHints& hints) {
  const std::uint64_t expected = array_bytes_or_fail(type, shape);
  std::string line =
      fmt::format("{} has {}{} bytes, but {} values of {} take {}", name, more ? "more than " : "",
                  found_bytes, to_text(shape), firn::name_of(type), expected);
  if (more) return line + fmt::format(" ({})", kOrder);

  std::vector<std::string> fits;
  if (hints.shape && *hints.shape != shape && array_bytes(type, *hints.shape) == found_bytes) {
    fits.push_back(fmt::format("--dims {} as its name says", to_text(*hints.shape)));
  }
  const firn::Type other_type = type == firn::Type::f32 ? firn::Type::f64 : firn::Type::f32;
  if (array_bytes(other_type, shape) == found_bytes) {
    fits.push_back(fmt::format("--type {}", firn::name_of(other_type)));
  }
  const std::uint64_t value_bytes = firn::size_of(type);
  if (found_bytes % value_bytes != 0) {
    line += fmt::format(", and it is no whole number of {} values", firn::name_of(type));
  } else if (fits.empty()) {
    for (const firn::Shape& fit : fitting_shapes(found_bytes / value_bytes, shape)) {
      fits.push_back("--dims " + to_text(fit));
    }
    if (fits.empty() && found_bytes != 0) {
      fits.push_back(fmt::format("any --dims of {} values", found_bytes / value_bytes));
    }
  }
  if (!fits.empty()) line += fmt::format("; would fit: {}", fmt::join(fits, " or "));
  return line + fmt::format(" ({})", kOrder);
}

std::string describe_broken_step(std::string_view name, std::uint64_t found_bytes, firn::Type type,
                                 const firn::Shape& step) {
  if (found_bytes == 0) return fmt::format("{} has no values", name);
  if (step.count() == 0) return fmt::format("a step of {} has no values", to_text(step));
  return fmt::format(
      "{} has {} bytes, no whole number of steps: one of {} values of {} takes {} ({})", name,
      found_bytes, to_text(step), firn::name_of(type), array_bytes_or_fail(type, step), kOrder);
}

std::string describe_missing_dims(std::string_view name, std::uint64_t found_bytes,
                                  firn::Type type) {
  const std::uint64_t value_bytes = firn::size_of(type);
  if (found_bytes % value_bytes != 0) {
    return fmt::format("{} has {} bytes, no whole number of {} values, and no dims were given",
                       name, found_bytes, firn::name_of(type));
  }
  return fmt::format(
      "{0} has {1} values of {2} and its name carries no dims: give --dims AxBxC, or --dims {1} if "
      "it has one dimension ({3})",
      name, found_bytes / value_bytes, firn::name_of(type), kOrder);
}

std::string describe_missing_type(std::string_view name, std::uint64_t found_bytes,
                                  const std::optional<firn::Shape>& shape) {
  std::string line =
      fmt::format("the type of {} is not known: give --type f32 or --type f64", name);
  if (!shape) return line;
  for (const firn::Type type : {firn::Type::f32, firn::Type::f64}) {
    if (array_bytes(type, *shape) == found_bytes) {
      line += fmt::format(" ({} of {} would fit its {} bytes)", to_text(*shape),
                          firn::name_of(type), found_bytes);
    }
  }
  return line;
}

}  // namespace firn_cli
