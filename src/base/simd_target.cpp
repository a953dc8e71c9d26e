#include "base/simd_target.hpp"

#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>

namespace firn::simd {
namespace {

// The targets that base/simd_dispatch.hpp knows and this machine, its system included, can run.
// Highway's library would tell as well, but takes milliseconds to load.
#if HWY_ARCH_X86
std::int64_t usable_targets() {
  // What compilers' lists of names lack.
  constexpr unsigned kF16c = 1u << 29, kVaes = 1u << 9;
  unsigned a = 0, b = 0, leaf1 = 0, leaf7 = 0, d = 0;
  __get_cpuid(1, &a, &b, &leaf1, &d);
  __get_cpuid_count(7, 0, &a, &b, &leaf7, &d);
  __builtin_cpu_init();
  std::int64_t usable = 0;
  if (!__builtin_cpu_supports("ssse3")) return usable;
  usable |= HWY_SSSE3;
  if (!(__builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
        __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes"))) {
    return usable;
  }
  usable |= HWY_SSE4;
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && (leaf1 & kF16c) != 0)) {
    return usable;
  }
  usable |= HWY_AVX2;
  if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd"))) {
    return usable;
  }
  usable |= HWY_AVX3;
  if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni") &&
      __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") &&
      __builtin_cpu_supports("gfni") && (leaf7 & kVaes) != 0) {
    usable |= HWY_AVX3_DL;
  }
  return usable;
}
#else
std::int64_t usable_targets() { return 0; }
#endif

}  // namespace

const std::vector<Target>& available_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> list;
    // Lower bits are better targets in Highway. What the compiler assumes of any machine is there.
    const std::int64_t usable = (usable_targets() & HWY_TARGETS) | HWY_STATIC_TARGET;
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
