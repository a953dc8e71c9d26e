// What a raw file does not say of itself: its type and dims, from options or from its name.
// Dims are always slowest axis first, as in C and numpy; zfp and SZ name the fastest first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "firn/firn.hpp"

namespace firn_cli {

std::string to_text(const firn::Shape& shape);  // "50x100x100"

// From what the user typed after `option`; a usage Failure when it cannot be right. With
// `any_steps` the first may be N: then that is true, and the shape is one step's, 1x500x400.
firn::Shape parse_dims(std::string_view option, std::string_view text, bool* any_steps = nullptr);
firn::Type parse_type(std::string_view text);

// What a file name says: the type by its ending (.f32 .f64 .d64) and dims from the last part such
// as 25x125x125 that stands apart from other letters and digits.
struct NameHints {
  std::optional<firn::Type> type;
  std::optional<firn::Shape> shape;
};
NameHints hints_from_name(std::string_view path);

bool is_reverse_of(const firn::Shape& shape, const firn::Shape& other);  // and not the same

// Bytes of an array; nothing when that passes 2^63.
std::optional<std::uint64_t> array_bytes(firn::Type type, const firn::Shape& shape);
// The same, as a usage Failure.
std::uint64_t array_bytes_or_fail(firn::Type type, const firn::Shape& shape);

// One line that says what was found, what was expected, and which type or dims would fit: `hints`
// from the name first. `more` when the input was not read to its end.
std::string describe_size_mismatch(std::string_view name, std::uint64_t found_bytes, bool more,
                                   firn::Type type, const firn::Shape& shape,
                                   const NameHints& hints);
// One line for an input that is no whole number of steps.
std::string describe_broken_step(std::string_view name, std::uint64_t found_bytes, firn::Type type,
                                 const firn::Shape& step);
// One line for an input whose dims are not known.
std::string describe_missing_dims(std::string_view name, std::uint64_t found_bytes,
                                  firn::Type type);
// One line for an input whose type is not known.
std::string describe_missing_type(std::string_view name, std::uint64_t found_bytes,
                                  const std::optional<firn::Shape>& shape);

}  // namespace firn_cli
