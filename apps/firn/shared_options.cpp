#include "shared_options.hpp"

#include <cmath>

#include "failure.hpp"
#include "field_description.hpp"
#include "numbers.hpp"

namespace firn_cli {

void FieldOptions::add_to(CLI::App& command) {
  command
      .add_option("--type", type_,
                  "f32 or f64; not needed for .npy files and names that end in\n"
                  ".f32, .f64 or .d64")
      ->type_name("TYPE");
  command
      .add_option("--dims", dims_,
                  "Extents, SLOWEST axis first, as in C and numpy: 100x500x400 for\n"
                  "a[100][500][400] (zfp and SZ name the fastest first); not needed\n"
                  "for .npy files and names such as u_25x125x125.f32. Nx500x400: as\n"
                  "many steps of 500x400 as the input has")
      ->type_name("AxBxC");
}

FieldRequest FieldOptions::request() const {
  FieldRequest request;
  if (!type_.empty()) request.type = parse_type(type_);
  if (!dims_.empty()) request.shape = parse_dims("--dims", dims_, &request.any_steps);
  return request;
}

firn::Bound parse_bound(firn::BoundKind kind, const std::string& option, const std::string& text) {
  const bool exact_at_0 = kind != firn::BoundKind::psnr;
  if (exact_at_0 && parse_number(text) == 0) {
    fail(ExitCode::usage, "{} must be more than 0; to keep every bit use --lossless", option);
  }
  firn::Options options;
  options.bound = {kind, parse_positive(option, text, exact_at_0 ? "1e-3" : "60")};
  value_or_fail(firn::worst_case_size(firn::Type::f64, {1}, options), option);
  return options.bound;
}

void CompressionOptions::add_to(CLI::App& command) {
  const std::string bounds = "Error bound, one of";
  command.add_option("--abs", abs_, "Every value within E of the original")
      ->type_name("E")
      ->group(bounds);
  command.add_option("--rel", rel_, "Every value within E times the field's value range")
      ->type_name("E")
      ->group(bounds);
  command.add_option("--pwrel", pwrel_, "Every value within E times its own magnitude")
      ->type_name("E")
      ->group(bounds);
  command.add_option("--psnr", psnr_, "A peak signal-to-noise ratio of at least DB decibels")
      ->type_name("DB")
      ->group(bounds);
  command.add_option("--ratio", ratio_, "The finest bound that makes the field R times smaller")
      ->type_name("R")
      ->group(bounds);
  command.add_option("--bits", bits_, "The same, as B bits a value")->type_name("B")->group(bounds);
  command
      .add_option("--max-abs", max_abs_,
                  "With --ratio or --bits: never further than E from the original")
      ->type_name("E")
      ->group(bounds);
  command.add_flag("--lossless", lossless_, "Every bit as it was")->group(bounds);
  command
      .add_option("--preset", preset_,
                  "fast (speed of memory), balanced (when not given) or small\n"
                  "(best ratio)")
      ->type_name("NAME");
  command
      .add_option("--tune", tune_,
                  "What balanced and small make least: size (when not given), or psnr:\n"
                  "the size at equal PSNR")
      ->type_name("NAME");
  command.add_option("--pipeline", pipeline_, "Encode with this pipeline instead of the preset's")
      ->type_name("NAME");
  command
      .add_option("--books", books_,
                  "Where pipeline lorenzo takes each chunk's Huffman book from: cost\n"
                  "(when not given: the fewest bits), chi (CEAZ's rule), stored (a new\n"
                  "one each) or offline (none stored)")
      ->type_name("NAME");
  command.add_option("--chunk", chunk_, "Extents of a chunk, slowest first; chosen when not given")
      ->type_name("AxBxC");
  command
      .add_option("--fill", fill_,
                  "A value that means 'nothing here', e.g. 1e20: kept exactly, and\n"
                  "not part of the value range")
      ->type_name("V");
}

int CompressionOptions::bounds_given() const {
  return !abs_.empty() + !rel_.empty() + !pwrel_.empty() + !psnr_.empty() + !ratio_.empty() +
         !bits_.empty() + (lossless_ ? 1 : 0);
}

firn::Bound CompressionOptions::bound(std::optional<firn::Bound> fallback, firn::Type type) const {
  constexpr std::string_view kChoice =
      "--abs E, --rel E (of the value range), --pwrel E (of each value), --psnr DB, --ratio R, "
      "--bits B, --lossless";
  if (bounds_given() > 1) fail(ExitCode::usage, "give only one of {}", kChoice);
  if (!abs_.empty()) return parse_bound(firn::BoundKind::abs, "--abs", abs_);
  if (!rel_.empty()) return parse_bound(firn::BoundKind::rel, "--rel", rel_);
  if (!pwrel_.empty()) return parse_bound(firn::BoundKind::pwrel, "--pwrel", pwrel_);
  if (!psnr_.empty()) return parse_bound(firn::BoundKind::psnr, "--psnr", psnr_);
  if (!ratio_.empty()) {
    const double ratio = parse_number(ratio_).value_or(0);
    if (!(ratio > 1 && ratio <= 1e9)) {
      fail(ExitCode::usage, "--ratio takes a number above 1 and up to 1e9, such as 10, not '{}'",
           ratio_);
    }
    return firn::Bound::ratio(ratio);
  }
  if (!bits_.empty()) {
    const double bits = parse_number(bits_).value_or(0);
    const double all = 8 * static_cast<double>(firn::size_of(type));
    if (!(bits >= 1e-7 && bits < all)) {
      fail(ExitCode::usage,
           "--bits takes a number from 1e-7 to below what values have, 32 (f32) or 64 (f64), such "
           "as 4, not '{}'",
           bits_);
    }
    return firn::Bound::ratio(all / bits);
  }
  if (lossless_) return firn::Bound::lossless();
  if (!fallback) fail(ExitCode::usage, "how exact? give one of {}", kChoice);
  return *fallback;
}

firn::Options CompressionOptions::options(std::optional<firn::Bound> fallback,
                                          firn::Type type) const {
  firn::Options options;
  options.bound = bound(fallback, type);
  if (!max_abs_.empty()) {
    if (options.bound.kind != firn::BoundKind::ratio) {
      fail(ExitCode::usage, "--max-abs goes with --ratio or --bits");
    }
    options.max_abs = parse_positive("--max-abs", max_abs_);
  }
  if (!tune_.empty()) options.tune = value_or_fail(firn::parse_tune(tune_), "--tune");
  if (!preset_.empty()) options.preset = value_or_fail(firn::parse_preset(preset_), "--preset");
  if (!pipeline_.empty()) {
    options.pipeline = value_or_fail(firn::parse_pipeline(pipeline_), "--pipeline");
  }
  if (!books_.empty()) {
    options.books = value_or_fail(firn::parse_book_policy(books_), "--books");
    if (options.pipeline != firn::Pipeline::lorenzo) {
      fail(ExitCode::usage, "--books goes with --pipeline lorenzo: the others have no books");
    }
  }
  if (!chunk_.empty()) options.chunk = parse_dims("--chunk", chunk_);
  if (!fill_.empty()) {
    options.fill = parse_fill("--fill", fill_);
    if (type == firn::Type::f32 && std::isfinite(*options.fill) &&
        !std::isfinite(static_cast<float>(*options.fill))) {
      fail(ExitCode::usage, "--fill {} is no value of f32, which end at 3.4e38", fill_);
    }
  }
  return options;
}

void ThreadOption::add_to(CLI::App& command) {
  command
      .add_option(
          "--threads", threads_,
          threads_ == 0 ? "All cores when not given" : "One when not given; 0 for all cores")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
}

}  // namespace firn_cli
