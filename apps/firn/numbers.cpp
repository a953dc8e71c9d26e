#include "numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "failure.hpp"

namespace firn_cli {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return parse_whole<double>(text);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

double parse_positive(std::string_view option, std::string_view text, std::string_view example) {
  const std::optional<double> value = parse_number(text);
  if (!value || !std::isfinite(*value) || *value <= 0) {
    fail(ExitCode::usage, "{} takes a positive number such as {}, not '{}'", option, example, text);
  }
  return *value;
}

double parse_fill(std::string_view option, std::string_view text) {
  const std::optional<double> value = parse_number(text);
  if (!value) fail(ExitCode::usage, "{} takes a number such as 1e20, not '{}'", option, text);
  if (std::isnan(*value)) {
    fail(ExitCode::usage, "{} takes a number; NaN needs none, it never counts as a value", option);
  }
  return *value;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr std::string_view kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

std::string format_number(double value) { return fmt::format("{:.4g}", value); }

std::string format_decibels(double value) {
  if (std::isinf(value)) return "exact";
  return fmt::format("{:.1f}", value);
}

}  // namespace firn_cli
