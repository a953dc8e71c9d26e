// The list of SIMD targets and the variable that chooses one.
#include "base/simd_target.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <firn/firn.hpp>
#include <set>
#include <string>

namespace firn::simd {
namespace {

TEST(SimdTargets, EndWithTheReferenceAndHaveNames) {
  const auto& targets = available_targets();
  ASSERT_GE(targets.size(), 2u);
  EXPECT_EQ(targets.back(), Target::reference);
  std::set<std::string> names;
  for (const Target target : targets) names.insert(name_of(target));
  EXPECT_EQ(names.size(), targets.size());
}

TEST(SimdTargets, AreWhatHighwayFinds) {
  const auto& targets = available_targets();
  for (const Target target : targets) {
    if (target == Target::reference) continue;
    EXPECT_NE(hwy::SupportedTargets() & static_cast<std::int64_t>(target), 0) << name_of(target);
  }
#if HWY_ARCH_X86
  const bool has_avx2 = std::count(targets.begin(), targets.end(), Target{HWY_AVX2}) != 0;
  EXPECT_EQ(has_avx2, (hwy::SupportedTargets() & HWY_AVX2) != 0);
#endif
}

TEST(SimdTargets, TheEnvironmentChoosesOne) {
  const char* wanted = std::getenv("FIRN_SIMD");
  const auto names = simd_targets();
  if (wanted != nullptr && std::count(names.begin(), names.end(), wanted) != 0) {
    EXPECT_STREQ(simd_target(), wanted);
  } else {
    EXPECT_EQ(simd_target(), names.front());
  }
}

}  // namespace
}  // namespace firn::simd
