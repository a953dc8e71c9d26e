#include "region_text.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "failure.hpp"
#include "field_description.hpp"
#include "numbers.hpp"

namespace firn_cli {
namespace {

struct Range {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;  // to the axis' end when absent
};

std::optional<Range> parse_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  Range range;
  if (colon == std::string_view::npos) {
    const std::optional<std::uint64_t> index = parse_count(text);
    if (!index || *index == UINT64_MAX) return std::nullopt;
    range.begin = *index;
    range.end = *index + 1;
    return range;
  }
  const std::string_view first = text.substr(0, colon);
  const std::string_view last = text.substr(colon + 1);
  if (!first.empty()) {
    const std::optional<std::uint64_t> begin = parse_count(first);
    if (!begin) return std::nullopt;
    range.begin = *begin;
  }
  if (!last.empty()) {
    range.end = parse_count(last);
    if (!range.end) return std::nullopt;
  }
  return range;
}

bool fits(const Range& range, std::uint64_t extent) {
  const std::uint64_t end = range.end.value_or(extent);
  return range.begin <= end && end <= extent;
}

}  // namespace

firn::Region parse_region(std::string_view text, const firn::Shape& shape) {
  std::vector<Range> ranges;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<Range> range = parse_range(rest.substr(0, comma));
    if (!range) {
      fail(ExitCode::usage,
           "--region takes ranges such as 0:10,:,5:7, one for each axis, slowest first, not '{}'",
           text);
    }
    ranges.push_back(*range);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (ranges.size() != static_cast<std::size_t>(shape.rank)) {
    fail(ExitCode::usage, "--region {} has {} ranges, but the field {} has {} axes", text,
         ranges.size(), to_text(shape), shape.rank);
  }

  firn::Region region;
  region.shape.rank = shape.rank;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const Range& range = ranges[axis];
    if (!fits(range, shape.extents[axis])) {
      bool reverse_fits = true;
      for (int other = 0; other < shape.rank; ++other) {
        reverse_fits = reverse_fits && fits(ranges[other], shape.extents[shape.rank - 1 - other]);
      }
      fail(ExitCode::usage, "--region {}: {}:{} is not within axis {} of {}, which has {} values{}",
           text, range.begin, range.end ? std::to_string(*range.end) : "", axis, to_text(shape),
           shape.extents[axis],
           reverse_fits ? "; in reverse order it would fit, and axes are slowest first" : "");
    }
    region.origin[axis] = range.begin;
    region.shape.extents[axis] = range.end.value_or(shape.extents[axis]) - range.begin;
  }
  return region;
}

}  // namespace firn_cli
