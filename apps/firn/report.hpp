// What the commands measure, and its JSON. Every command prints the same keys; a value that it
// does not measure is null.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "firn/firn.hpp"

namespace firn_cli {

struct Report {
  std::uint64_t original_bytes = 0;
  std::uint64_t compressed_bytes = 0;
  std::optional<double> bound_abs;
  std::optional<double> max_abs_error;
  std::optional<double> bound_pwrel;  // for pwrel instead of the two above
  std::optional<double> max_pwrel_error;
  std::optional<double> psnr_db;        // infinite, when there is no error, becomes null
  std::optional<double> compress_mb_s;  // megabytes (1e6) of the original per second
  std::optional<double> decompress_mb_s;
  std::optional<double> memcpy_mb_s;

  double ratio() const;
  // The bound that a stream promises, and an error in the same terms.
  void set_bound(const firn::Info& info, double abs_error, double pwrel_error);
  double error_over_bound() const;
};

nlohmann::ordered_json to_json(const Report& report);

// Adds "type" and "dims" (slowest first).
void add_array(nlohmann::ordered_json& json, firn::Type type, const firn::Shape& shape);

// One object on stdout, or on stderr when standard output carries data.
void print_json(const nlohmann::ordered_json& json, bool to_stderr = false);

// In the bound's own terms: absolute, or for pwrel relative to each value.
double enforced_bound(const firn::Info& info);
double achieved_error(const firn::Info& info);
std::string describe_bound(const firn::Info& info);  // "1.253e-04 (rel 0.001)"

// The value of FIRN_SIMD when it is no target of this machine and so has no effect.
std::optional<std::string> ignored_simd_target();

// A ratio that cannot be met is not an error: the stream is sound, and says how exact it is.
void tell_missed_ratio(const firn::Options& options, firn::Type type, std::uint64_t original_bytes,
                       std::uint64_t compressed_bytes);

double megabytes_per_second(std::uint64_t bytes, double seconds);

}  // namespace firn_cli
