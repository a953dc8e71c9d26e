// Options that several commands share, and how their text becomes the library's types.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "firn/firn.hpp"
#include "input_files.hpp"

namespace firn_cli {

// --type and --dims: what a raw input does not say.
class FieldOptions {
 public:
  void add_to(CLI::App& command);
  FieldRequest request() const;

 private:
  std::string type_;
  std::string dims_;
};

// A bound of any kind but ratio and lossless, or a usage Failure that names the option.
firn::Bound parse_bound(firn::BoundKind kind, const std::string& option, const std::string& text);

// --abs, --rel, --pwrel, --psnr, --ratio, --bits, --max-abs, --lossless, --preset, --tune,
// --pipeline,
// --chunk, --fill.
class CompressionOptions {
 public:
  void add_to(CLI::App& command);
  // Without a bound option: `fallback`, or a usage Failure when there is none. --bits depends on
  // the values' type; while that is not known, the bound is right only about mistakes.
  firn::Options options(std::optional<firn::Bound> fallback = {},
                        firn::Type type = firn::Type::f64) const;
  bool has_bound() const { return bounds_given() > 0; }

 private:
  int bounds_given() const;
  firn::Bound bound(std::optional<firn::Bound> fallback, firn::Type type) const;

  std::string abs_;
  std::string rel_;
  std::string pwrel_;
  std::string psnr_;
  std::string ratio_;
  std::string bits_;
  std::string max_abs_;
  bool lossless_ = false;
  std::string preset_;
  std::string tune_;
  std::string pipeline_;
  std::string books_;
  std::string chunk_;
  std::string fill_;
};

// --threads.
class ThreadOption {
 public:
  explicit ThreadOption(int fallback = 0) : threads_(fallback) {}  // 0: all cores
  void add_to(CLI::App& command);
  int threads() const { return threads_; }

 private:
  int threads_;
};

}  // namespace firn_cli
