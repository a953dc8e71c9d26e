#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

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
      {"bound_pwrel", number_or_null(report.bound_pwrel)},
      {"max_pwrel_error", number_or_null(report.max_pwrel_error)},
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
  const double bound = enforced_bound(info);
  const std::string enforced = bound == 0 ? "lossless" : format_number(bound);
  if (info.bound.kind == firn::BoundKind::abs) return enforced;
  return fmt::format("{} ({} {:g})", enforced, firn::name_of(info.bound.kind), info.bound.value);
}

double enforced_bound(const firn::Info& info) {
  return info.bound.kind == firn::BoundKind::pwrel ? info.bound_pwrel : info.bound_abs;
}

double achieved_error(const firn::Info& info) {
  return info.bound.kind == firn::BoundKind::pwrel ? info.max_pwrel_error : info.max_abs_error;
}

void Report::set_bound(const firn::Info& info, double abs_error, double pwrel_error) {
  if (info.bound.kind == firn::BoundKind::pwrel) {
    bound_pwrel = info.bound_pwrel;
    max_pwrel_error = pwrel_error;
  } else {
    bound_abs = info.bound_abs;
    max_abs_error = abs_error;
  }
}

double Report::error_over_bound() const {
  const double bound = bound_pwrel ? *bound_pwrel : bound_abs.value_or(0);
  const double error = bound_pwrel ? max_pwrel_error.value_or(0) : max_abs_error.value_or(0);
  if (bound > 0) return error / bound;
  return error > 0 ? std::numeric_limits<double>::infinity() : 0;
}

std::optional<std::string> ignored_simd_target() {
  const char* const wanted = std::getenv("FIRN_SIMD");
  if (wanted == nullptr || *wanted == 0) return std::nullopt;
  const std::vector<std::string> targets = firn::simd_targets();
  if (std::find(targets.begin(), targets.end(), wanted) != targets.end()) return std::nullopt;
  return wanted;
}

void tell_missed_ratio(const firn::Options& options, firn::Type type, std::uint64_t original_bytes,
                       std::uint64_t compressed_bytes) {
  if (!options.bound.is_missed(original_bytes, compressed_bytes)) return;
  const double ratio = static_cast<double>(original_bytes) / static_cast<double>(compressed_bytes);
  const double bits = 8 * static_cast<double>(firn::size_of(type));
  fmt::print(stderr,
             "firn: the ratio {:g} ({:.3g} bits a value) was not met{}: it is {:.2f} ({:.3g})\n",
             options.bound.value, bits / options.bound.value,
             options.max_abs ? " within --max-abs" : "", ratio, bits / ratio);
}

double megabytes_per_second(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) / 1e6 / std::max(seconds, 1e-9);
}

}  // namespace firn_cli
