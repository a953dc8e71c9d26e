// The pipelines that this build knows.
#pragma once

#include <cstring>
#include <firn/firn.hpp>
#include <vector>

namespace firn::test {

// Those that take any bound.
inline std::vector<Pipeline> chosen_pipelines() {
  std::vector<Pipeline> list;
  for (int id = 1; id < 256; ++id) {
    const auto pipeline = static_cast<Pipeline>(id);
    if (pipeline == Pipeline::fre || pipeline == Pipeline::fre_round) continue;
    if (std::strcmp(name_of(pipeline), "unknown") != 0) list.push_back(pipeline);
  }
  return list;
}

// Those that take a point-wise relative bound.
inline std::vector<Pipeline> pointwise_pipelines() {
  std::vector<Pipeline> list = chosen_pipelines();
  std::erase(list, Pipeline::causal);  // absolute bounds only
  list.push_back(Pipeline::fre);
  list.push_back(Pipeline::fre_round);
  return list;
}

}  // namespace firn::test
