#include "base/simd_target.hpp"

#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <cstdlib>
#include <string_view>

namespace firn::simd {

const std::vector<Target>& available_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> list;
    // Lower bits are better targets in Highway.
    std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
#if HWY_ARCH_X86
    // The kernels for it (encode/blockpack_gfni-inl.hpp) need an instruction that Highway's list of
    // what makes an AVX3_DL lacks.
    if (!__builtin_cpu_supports("gfni")) usable &= ~std::int64_t{HWY_AVX3_DL};
#endif
    for (int bit = 0; bit < 63; ++bit) {
      if (usable & (std::int64_t{1} << bit)) list.push_back(Target{std::int64_t{1} << bit});
    }
    list.push_back(Target::reference);
    return list;
  }();
  return targets;
}

Target default_target() {
  static const Target chosen = [] {
    const char* wanted = std::getenv("FIRN_SIMD");
    if (wanted != nullptr) {
      for (Target target : available_targets()) {
        if (std::string_view(wanted) == name_of(target)) return target;
      }
    }
    return available_targets().front();
  }();
  return chosen;
}

const char* name_of(Target target) {
  if (target == Target::reference) return "reference";
  return hwy::TargetName(static_cast<std::int64_t>(target));
}

}  // namespace firn::simd
