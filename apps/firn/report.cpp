#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "numbers.hpp"

namespace firn_cli {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

}  // namespace

double Report::ratio() const {
  return compressed_bytes == 0
             ? 0
             : static_cast<double>(original_bytes) / static_cast<double>(compressed_bytes);
}

nlohmann::ordered_json to_json(const Report& report) {
  return {
      {"original_bytes", report.original_bytes},
      {"compressed_bytes", report.compressed_bytes},
      {"ratio", report.ratio()},
      {"bound_abs", number_or_null(report.bound_abs)},
      {"max_abs_error", number_or_null(report.max_abs_error)},
      {"psnr_db", number_or_null(report.psnr_db)},
      {"compress_mb_s", number_or_null(report.compress_mb_s)},
      {"decompress_mb_s", number_or_null(report.decompress_mb_s)},
      {"memcpy_mb_s", number_or_null(report.memcpy_mb_s)},
  };
}

void add_array(nlohmann::ordered_json& json, firn::Type type, const firn::Shape& shape) {
  json["type"] = firn::name_of(type);
  json["dims"] =
      std::vector<std::uint64_t>(shape.extents.begin(), shape.extents.begin() + shape.rank);
}

void print_json(const nlohmann::ordered_json& json, bool to_stderr) {
  // File names need not be UTF-8; what is not becomes U+FFFD.
  fmt::print(to_stderr ? stderr : stdout, "{}\n",
             json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string describe_bound(const firn::Info& info) {
  if (info.bound.kind == firn::BoundKind::lossless) return "lossless";
  const std::string enforced = format_number(info.bound_abs);
  if (info.bound.kind == firn::BoundKind::abs) return enforced;
  return fmt::format("{} ({} {:g})", enforced, firn::name_of(info.bound.kind), info.bound.value);
}

double megabytes_per_second(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) / 1e6 / std::max(seconds, 1e-9);
}

}  // namespace firn_cli
