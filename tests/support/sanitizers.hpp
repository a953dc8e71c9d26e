// Which sanitizer this is built with: some tests are too slow or make no sense there.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIRN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define FIRN_SANITIZED 1
#endif
#endif
#ifndef FIRN_SANITIZED
#define FIRN_SANITIZED 0
#endif
