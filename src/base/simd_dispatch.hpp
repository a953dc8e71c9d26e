// For the HWY_ONCE part of a *_simd.cpp: FIRN_SELECT_KERNELS(target, f) calls the f() of that
// target's namespace, where each returns a reference to a constant table of kernels.
#pragma once

#include <hwy/highway.h>

#include "base/simd_target.hpp"

// Files in which AVX3_DL has nothing to offer are compiled without it.
#if HWY_TARGETS & HWY_AVX3_DL
#define FIRN_CASE_AVX3(...)          \
  case HWY_AVX3_DL:                  \
    return N_AVX3_DL::__VA_ARGS__(); \
  case HWY_AVX3:                     \
    return N_AVX3::__VA_ARGS__();
#elif HWY_TARGETS & HWY_AVX3
#define FIRN_CASE_AVX3(...) \
  case HWY_AVX3_DL:         \
  case HWY_AVX3:            \
    return N_AVX3::__VA_ARGS__();
#else
#define FIRN_CASE_AVX3(...)
#endif
#if HWY_TARGETS & HWY_AVX2
#define FIRN_CASE_AVX2(...) \
  case HWY_AVX2:            \
    return N_AVX2::__VA_ARGS__();
#else
#define FIRN_CASE_AVX2(...)
#endif
#if HWY_TARGETS & HWY_SSE4
#define FIRN_CASE_SSE4(...) \
  case HWY_SSE4:            \
    return N_SSE4::__VA_ARGS__();
#else
#define FIRN_CASE_SSE4(...)
#endif
#if HWY_TARGETS & HWY_SSSE3
#define FIRN_CASE_SSSE3(...) \
  case HWY_SSSE3:            \
    return N_SSSE3::__VA_ARGS__();
#else
#define FIRN_CASE_SSSE3(...)
#endif

// The last return is the baseline's: NEON, EMU128 or whatever the compiler targets by default.
#define FIRN_SELECT_KERNELS(target, ...)       \
  switch (static_cast<std::int64_t>(target)) { \
    FIRN_CASE_AVX3(__VA_ARGS__)                \
    FIRN_CASE_AVX2(__VA_ARGS__)                \
    FIRN_CASE_SSE4(__VA_ARGS__)                \
    FIRN_CASE_SSSE3(__VA_ARGS__)               \
    default:                                   \
      return HWY_NAMESPACE::__VA_ARGS__();     \
  }
