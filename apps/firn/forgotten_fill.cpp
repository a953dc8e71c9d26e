#include "forgotten_fill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "numbers.hpp"

namespace firn_cli {
namespace {

// How much most values differ, seen at some of them without the farthest one: from a tenth of the
// way up to nine tenths.
template <class T>
double usual_spread(const T* values, std::uint64_t count) {
  constexpr std::uint64_t kSeen = 1024;
  const double step = static_cast<double>(count) / static_cast<double>(kSeen);
  std::vector<double> seen;
  double farthest = 0;
  for (std::uint64_t i = 0; i < kSeen; ++i) {
    const auto value =
        static_cast<double>(values[static_cast<std::uint64_t>(static_cast<double>(i) * step)]);
    if (!std::isfinite(value)) continue;
    seen.push_back(value);
    if (std::fabs(value) > std::fabs(farthest)) farthest = value;
  }
  std::erase(seen, farthest);
  if (seen.empty()) return 0;
  std::sort(seen.begin(), seen.end());
  return seen[seen.size() * 9 / 10] - seen[seen.size() / 10];
}

// The value of the largest magnitude, how often it is there, and the largest magnitude of others.
template <class T>
struct Farthest {
  T value = 0;
  std::uint64_t times = 0;
  T others = 0;

  Farthest(const T* values, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const T size = std::fabs(values[i]);
      if (!std::isfinite(size)) continue;
      if (values[i] == value) {
        ++times;
      } else if (size > std::fabs(value)) {
        others = std::fabs(value);
        value = values[i];
        times = 1;
      } else {
        others = std::max(others, size);
      }
    }
  }
};

template <class T>
void look(const T* values, std::uint64_t count, double bound_abs) {
  constexpr double kOfSpread = 0.1;
  constexpr T kFar = 100;
  if (bound_abs < kOfSpread * usual_spread(values, count)) return;
  const Farthest<T> farthest(values, count);
  if (farthest.others == 0 || std::fabs(farthest.value) / kFar < farthest.others) return;
  fmt::print(stderr,
             "firn: {} value{} {}, all others at most {}: if that means 'nothing here', say "
             "--fill {}; without it the bound is {}\n",
             farthest.times, farthest.times == 1 ? " is" : "s are", farthest.value,
             format_number(static_cast<double>(farthest.others)), farthest.value,
             format_number(bound_abs));
}

}  // namespace

void tell_forgotten_fill(const firn::ArrayView& field, const firn::Options& options,
                         double bound_abs) {
  const firn::BoundKind kind = options.bound.kind;
  const bool follows_range = kind == firn::BoundKind::rel || kind == firn::BoundKind::psnr ||
                             kind == firn::BoundKind::ratio;
  const std::uint64_t count = field.shape.count();
  constexpr std::uint64_t kFew = 64;  // of so few values any may be far from the others
  if (options.fill || !follows_range || count < kFew) return;
  if (field.type == firn::Type::f32) {
    look(static_cast<const float*>(field.data), count, bound_abs);
  } else {
    look(static_cast<const double*>(field.data), count, bound_abs);
  }
}

}  // namespace firn_cli
