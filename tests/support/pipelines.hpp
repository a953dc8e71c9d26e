// The pipelines that this build knows.
#pragma once

#include <cstring>
#include <firn/firn.hpp>
#include <vector>

namespace firn::test {

inline std::vector<Pipeline> chosen_pipelines() {
  std::vector<Pipeline> list;
  for (int id = 1; id < 256; ++id) {
    const auto pipeline = static_cast<Pipeline>(id);
    if (std::strcmp(name_of(pipeline), "unknown") != 0) list.push_back(pipeline);
  }
  return list;
}

}  // namespace firn::test
