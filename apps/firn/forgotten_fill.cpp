#include "forgotten_fill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "numbers.hpp"

namespace firn_cli {

template <class T>
void ForgottenFill::look(const T* values, std::uint64_t count) {
  constexpr std::uint64_t kBlock = 256;
  for (std::uint64_t begin = 0; begin < count; begin += kBlock) {
    const std::uint64_t end = std::min(count, begin + kBlock);
    // Most blocks have nothing of interest, and this loop is as fast as memory.
    const T others = static_cast<T>(others_);
    int any = count_ + (end - begin) > next_sample_;
    for (std::uint64_t i = begin; i < end; ++i) any |= std::fabs(values[i]) > others;
    if (any == 0) {
      count_ += end - begin;
      continue;
    }
    for (std::uint64_t i = begin; i < end; ++i) look(static_cast<double>(values[i]));
  }
}

void ForgottenFill::look(const firn::ArrayView& field) {
  if (field.type == firn::Type::f32) {
    look(static_cast<const float*>(field.data), field.shape.count());
  } else {
    look(static_cast<const double*>(field.data), field.shape.count());
  }
}

void ForgottenFill::look_at_some(const firn::ArrayView& field) {
  constexpr std::uint64_t kSome = 1024;
  const std::uint64_t count = field.shape.count(), step = 1 + count / kSome;
  for (std::uint64_t i = 0; i < count; i += step) {
    look(field.type == firn::Type::f32
             ? static_cast<double>(static_cast<const float*>(field.data)[i])
             : static_cast<const double*>(field.data)[i]);
  }
}

void ForgottenFill::sample(double value) {
  constexpr std::size_t kMostSamples = 2048;
  if (std::isfinite(value)) samples_.push_back(value);
  if (samples_.size() == kMostSamples) {
    for (std::size_t i = 0; i < kMostSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kMostSamples / 2);
    spacing_ *= 2;
  }
  next_sample_ += spacing_;
}

void ForgottenFill::look_at_large(double value, double size) {
  if (value == farthest_) {
    ++times_;
  } else if (size > std::fabs(farthest_)) {
    others_ = std::fabs(farthest_);
    farthest_ = value;
    times_ = 1;
  } else {
    others_ = size;
  }
}

// How much most values differ, seen at the samples without the farthest one: from a tenth of the
// way up to nine tenths.
double ForgottenFill::usual_spread() const {
  std::vector<double> seen = samples_;
  std::erase(seen, farthest_);
  if (seen.empty()) return 0;
  std::sort(seen.begin(), seen.end());
  return seen[seen.size() * 9 / 10] - seen[seen.size() / 10];
}

bool ForgottenFill::is_large(double bound_abs) const {
  constexpr double kOfSpread = 0.1;
  return bound_abs >= kOfSpread * usual_spread();
}

std::string ForgottenFill::found(firn::Type type, double bound_abs, const char* remedy) const {
  constexpr std::uint64_t kFew = 64;  // of so few values any may be far from the others
  constexpr double kFar = 100;
  if (count_ < kFew || others_ == 0 || std::fabs(farthest_) / kFar < others_ ||
      !is_large(bound_abs)) {
    return "";
  }
  const std::string value = type == firn::Type::f32
                                ? fmt::format("{}", static_cast<float>(farthest_))
                                : fmt::format("{}", farthest_);
  return fmt::format(
      "{} value{} {}, all others at most {}: if that means 'nothing here', {}; without it the "
      "bound is {}",
      times_, times_ == 1 ? " is" : "s are", value, format_number(others_),
      fmt::format(fmt::runtime(remedy), value), format_number(bound_abs));
}

bool follows_range(const firn::Options& options) {
  const firn::BoundKind kind = options.bound.kind;
  return !options.fill && (kind == firn::BoundKind::rel || kind == firn::BoundKind::psnr ||
                           kind == firn::BoundKind::ratio);
}

void tell_forgotten_fill(const firn::ArrayView& field, const firn::Options& options,
                         double bound_abs) {
  if (!follows_range(options)) return;
  // Some values are enough for most fields, of which no more than these may be in memory.
  ForgottenFill some, seen;
  some.look_at_some(field);
  if (!some.is_large(bound_abs)) return;
  seen.look(field);
  tell_forgotten_fill(seen, field.type, bound_abs);
}

void tell_forgotten_fill(const ForgottenFill& seen, firn::Type type, double bound_abs) {
  const std::string found = seen.found(type, bound_abs, "say --fill {}");
  if (!found.empty()) fmt::print(stderr, "firn: {}\n", found);
}

}  // namespace firn_cli
