// Numbers in the user's words: parsing what was typed, formatting what is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn_cli {

// The whole text as a number, in the C locale whatever the user's is.
std::optional<double> parse_number(std::string_view text);
std::optional<std::uint64_t> parse_count(std::string_view text);

// A positive finite number, or a usage Failure that names the option.
double parse_positive(std::string_view option, std::string_view text,
                      std::string_view example = "1e-3");

// A number that means "nothing here", or a usage Failure that names the option.
double parse_fill(std::string_view option, std::string_view text);

// Decimal units, three significant digits: "2.00 MB".
std::string format_bytes(std::uint64_t bytes);
// Four significant digits at most: "9.374", "0.001", "1.25e-05".
std::string format_number(double value);
// "64.9"; "exact" when infinite.
std::string format_decibels(double value);

}  // namespace firn_cli
