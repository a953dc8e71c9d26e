// The edge of the library, for the C++ entry points: where exceptions end, and common checks.
#pragma once

#include <algorithm>
#include <exception>
#include <firn/firn.hpp>
#include <memory>
#include <new>
#include <string>

#include "engine/compress.hpp"
#include "pipelines/workers.hpp"

namespace firn {

// Runs what may throw and turns an exception into an error.
template <class Body>
auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory"};
  } catch (const std::exception& exception) {
    return Error{ErrorCode::unsupported, exception.what()};
  } catch (...) {
    return Error{ErrorCode::unsupported, "the progress callback threw something"};
  }
}

inline std::string text_of(const Shape& shape) {
  std::string text;
  for (int k = 0; k < std::min(shape.rank, kMaxRank); ++k) {
    text += (k ? "x" : "") + std::to_string(shape.extents[k]);
  }
  return text;
}

inline Status check_threads(const Execution& execution) {
  if (execution.threads < 0 || execution.threads > 4096) {
    return Error{ErrorCode::invalid_argument, "threads " + std::to_string(execution.threads) +
                                                  "; it must be 0 (all cores) to 4096"};
  }
  return std::monostate{};
}

// The workers of a context, made anew when the caller asks for another number of threads.
inline pipelines::Workers& workers_for(std::unique_ptr<pipelines::Workers>& workers, int threads) {
  if (!workers ||
      (threads != 0 && workers->threads() != std::min(threads, pipelines::Workers::all_cores())) ||
      (threads == 0 && workers->threads() != pipelines::Workers::all_cores())) {
    workers = std::make_unique<pipelines::Workers>(threads);
  }
  return *workers;
}

// Compresses under any kind of bound, those that are searched for among them.
Status compress_array(const ArrayView& array, const Options& options, const Execution& execution,
                      pipelines::Workers& workers, engine::CompressScratch& scratch,
                      engine::Output& output);

}  // namespace firn
