// Fields of a folder for the benchmarks, and the residuals of their chunks as the pipelines that
// difference see them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <firn/firn.hpp>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "pipelines/quantized_chunk.hpp"
#include "plan/plan.hpp"
#include "predict/contexts.hpp"
#include "usage.hpp"

namespace bench {

struct Field {
  std::string name;
  firn::Type type = firn::Type::f32;
  firn::Shape shape;
  std::optional<double> fill;
  std::vector<std::uint8_t> bytes;

  firn::ArrayView view() const { return {bytes.data(), type, shape, {}}; }
};

// Of rank 0 when the text is not like 25x125x125.
inline firn::Shape shape_of(const std::string& dims) {
  firn::Shape shape;
  std::istringstream in(dims);
  for (std::string part; std::getline(in, part, 'x');) {
    const bool number = !part.empty() && part.size() < 19 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    if (!number || shape.rank == firn::kMaxRank) return {};
    shape.extents[static_cast<std::size_t>(shape.rank++)] = std::stoull(part);
  }
  return shape;
}

inline bool load(const std::filesystem::path& path, const std::string& type,
                 const std::string& dims, std::vector<Field>* fields) {
  Field field;
  field.name = path.stem().string();
  field.type = type == "f64" ? firn::Type::f64 : firn::Type::f32;
  field.shape = shape_of(dims);
  std::ifstream in(path, std::ios::binary);
  field.bytes.assign(std::istreambuf_iterator<char>(in), {});
  if (field.bytes.empty() ||
      field.bytes.size() != field.shape.count() * firn::size_of(field.type)) {
    return false;
  }
  // A field named after its fill value has it as its largest.
  if (field.name.find("fill") != std::string::npos && field.type == firn::Type::f32) {
    const auto* values = reinterpret_cast<const float*>(field.bytes.data());
    field.fill = static_cast<double>(*std::max_element(values, values + field.shape.count()));
  }
  fields->push_back(std::move(field));
  return true;
}

// Those of a MANIFEST.tsv (columns file, dtype, dims), or else files named like u_25x125x125.f32,
// of so many bytes at least. Without any, the program ends.
inline std::vector<Field> load_folder(const std::filesystem::path& folder, const char* usage,
                                      std::size_t least_bytes = 0) {
  std::error_code failed;
  if (folder.empty()) exit_with_usage(usage, "a folder with fields is needed");
  if (!std::filesystem::is_directory(folder, failed)) {
    exit_with_usage(usage, "there is no folder " + folder.string());
  }
  std::vector<Field> fields;
  const auto checked = [&] {
    std::erase_if(fields, [&](const Field& field) { return field.bytes.size() < least_bytes; });
    if (!fields.empty()) return std::move(fields);
    exit_with_usage(usage, folder.string() + " has no fields of " + std::to_string(least_bytes) +
                               " bytes or more: neither a MANIFEST.tsv with columns file, dtype "
                               "and dims, nor files named like u_25x125x125.f32");
  };
  std::ifstream manifest(folder / "MANIFEST.tsv");
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, '\t');) cells.push_back(cell);
    return cells;
  };
  if (std::string line; std::getline(manifest, line)) {
    const auto head = cells_of(line);
    const auto column = [&](const char* name) {
      return static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin());
    };
    const std::size_t file = column("file"), type = column("dtype"), dims = column("dims");
    while (std::getline(manifest, line)) {
      const auto cells = cells_of(line);
      if (cells.size() <= std::max({file, type, dims})) continue;
      if (!load(folder / cells[file], cells[type], cells[dims], &fields)) {
        std::fprintf(stderr, "%s: not as MANIFEST.tsv says\n", cells[file].c_str());
      }
    }
    return checked();
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".f32" || entry.path().extension() == ".f64") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const std::string stem = path.stem().string();
    if (!load(path, path.extension().string().substr(1), stem.substr(stem.rfind('_') + 1),
              &fields)) {
      std::fprintf(stderr, "%s: not as its name says\n", path.filename().c_str());
    }
  }
  return checked();
}

// Residuals of the points of one chunk that are not exact, in order, and how `contexts` would look
// around in it.
struct Residuals {
  std::vector<std::int64_t> values;
  firn::predict::ContextRule rule;
};

// visit(Residuals) for every chunk of about `chunk_values` that can be quantised under the bound.
template <class Visit>
void for_each_chunk(const Field& field, double rel, std::uint64_t chunk_values, Visit visit) {
  using namespace firn;
  Options options;
  options.bound = Bound::rel(rel);
  options.pipeline = Pipeline::lorenzo;
  options.fill = field.fill;
  options.chunk = choose_chunk(field.shape, chunk_values);
  pipelines::Workers workers(1);
  const auto plan = plan::make_plan(field.view(), options, workers);
  if (!plan || !(plan->parameters.bound_abs > 0)) return;
  pipelines::Workspace& workspace = workers.workspace(0);
  const Grid grid(plan->header.shape, plan->header.chunk);
  const auto strides = contiguous_strides(field.shape);
  const auto take = [&]<class T, class Q>(const T* data, Q, std::uint64_t number) {
    const Box<const T> box(data, strides, grid.region(number));
    pipelines::QuantizedChunk<T, Q> chunk;
    if (quantize_chunk<T, Q>(box, plan->parameters, workspace, &chunk) !=
        pipelines::QuantizeOutcome::done) {
      return false;
    }
    const auto orders =
        choose_orders(chunk.codes, chunk.count, box.rank(), box.extents(), {}, workspace);
    const auto lags = pipelines::lags_of(orders, box.rank(), box.extents());
    const auto& kernels = predict::kernels<Q>(workspace.target);
    if (chunk.exact_count != 0) {
      kernels.fill(chunk.codes, chunk.count, lags, workspace.exact_map.words());
    }
    std::vector<Q> all(chunk.count + 64);
    kernels.difference(chunk.codes, chunk.count, lags, all.data());
    Residuals residuals;
    residuals.rule =
        predict::context_rule(box.rank(), pipelines::axis_lags(box.rank(), box.extents()));
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const bool exact =
          chunk.exact_count != 0 && (workspace.exact_map.word(i / 64) >> i % 64 & 1) != 0;
      if (!exact) residuals.values.push_back(all[i]);
    }
    visit(residuals);
    return true;
  };
  for (std::uint64_t number = 0; number < grid.count(); ++number) {
    if (field.type == Type::f32) {
      take(reinterpret_cast<const float*>(field.bytes.data()), std::int32_t{0}, number);
    } else {
      const auto* data = reinterpret_cast<const double*>(field.bytes.data());
      if (!take(data, std::int32_t{0}, number)) take(data, std::int64_t{0}, number);
    }
  }
}

inline double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// Repeats a field along its slowest axis until it has so many bytes.
inline void tile(Field* field, std::size_t bytes) {
  const std::vector<std::uint8_t> one = field->bytes;
  const std::size_t copies = (bytes + one.size() - 1) / one.size();
  for (std::size_t i = 1; i < copies; ++i) {
    field->bytes.insert(field->bytes.end(), one.begin(), one.end());
  }
  field->shape.extents[0] *= copies;
}

}  // namespace bench
