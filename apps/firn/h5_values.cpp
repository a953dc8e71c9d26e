#include "h5_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "failure.hpp"
#include "firn/hdf5_parameters.h"
#include "forgotten_fill.hpp"
#include "hdf5/parameters.hpp"
#include "stopwatch.hpp"

namespace firn_cli {
namespace {

using firn::hdf5::Box;

constexpr std::uint64_t kMostBytesInMemory = std::uint64_t{256} << 20;

std::uint64_t product(const std::vector<std::uint64_t>& extents) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) count *= extent;
  return count;
}

template <class T>
hid_t native_type() {
  return sizeof(T) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

template <class T>
void read_box(hid_t dataset, const std::string& path, const Box& box, std::vector<T>& values) {
  const std::vector<hsize_t> origin(box.origin.begin(), box.origin.end());
  const std::vector<hsize_t> extents(box.extents.begin(), box.extents.end());
  values.resize(product(box.extents));
  const Handle file_space = opened(H5Dget_space(dataset), ExitCode::cannot_read, path);
  const Handle memory_space =
      opened(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
             ExitCode::cannot_read, path);
  check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, origin.data(), nullptr, extents.data(),
                            nullptr),
        ExitCode::cannot_read, path);
  check(H5Dread(dataset, native_type<T>(), memory_space, file_space, H5P_DEFAULT, values.data()),
        ExitCode::cannot_read, path);
}

// What must be known of all values before the first is written.
struct Survey {
  double least = std::numeric_limits<double>::infinity();  // of finite values that are not missing
  double greatest = -std::numeric_limits<double>::infinity();
  std::vector<double> missing_found;  // those of Treatment::missing that occur
  ForgottenFill others;

  // A fraction of the value range, which itself may be more than a double holds.
  double fraction_of_range(double fraction) const {
    return greatest > least ? fraction * greatest - fraction * least : 0;
  }
};

bool is_relative(const firn::Bound& bound) {
  return bound.kind == firn::BoundKind::rel || bound.kind == firn::BoundKind::psnr;
}

bool needs_survey(const Treatment& treatment) {
  return is_relative(treatment.bound) || treatment.missing.size() > 1;
}

template <class T>
void extend(Survey& survey, const std::vector<T>& values, const std::vector<double>& missing) {
  for (const T value : values) {
    const auto wide = static_cast<double>(value);
    const bool is_missing = std::find(missing.begin(), missing.end(), wide) != missing.end();
    if (is_missing) {
      std::vector<double>& found = survey.missing_found;
      if (std::find(found.begin(), found.end(), wide) == found.end()) found.push_back(wide);
    } else if (std::isfinite(value)) {
      survey.least = std::min(survey.least, wide);
      survey.greatest = std::max(survey.greatest, wide);
      survey.others.look(wide);
    }
  }
}

// The same bound as one number for all chunks. An error of at most E everywhere gives a PSNR of at
// least 20 log10(range / E).
firn::Bound absolute_bound(const firn::Bound& bound, const Survey& survey,
                           const std::string& path) {
  if (!is_relative(bound)) return bound;
  const double fraction =
      bound.kind == firn::BoundKind::rel ? bound.value : std::pow(10.0, -bound.value / 20);
  const double error = survey.fraction_of_range(fraction);
  if (!std::isfinite(error)) {
    fail(ExitCode::unsupported, "{}: its value range is too wide for a relative bound", path);
  }
  return error > 0 ? firn::Bound::abs(error) : firn::Bound::lossless();
}

Handle create_dataset(hid_t source, hid_t output, const std::string& path, hid_t type,
                      hid_t link_creation, const Treatment& treatment, const firn::Bound& bound,
                      std::optional<double> fill) {
  const Handle space = opened(H5Dget_space(source), ExitCode::cannot_read, path);
  const Handle creation = opened(H5Dget_create_plist(source), ExitCode::cannot_read, path);
  const std::vector<hsize_t> chunk(treatment.chunk.begin(), treatment.chunk.end());
  if (H5Pget_nfilters(creation) > 0) {
    check(H5Premove_filter(creation, H5Z_FILTER_ALL), ExitCode::cannot_write, path);
  }
  check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
        ExitCode::cannot_write, path);
  check(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_INCR), ExitCode::cannot_write, path);
  const std::vector<unsigned> words =
      firn::hdf5::user_parameters({bound, treatment.preset, firn::Pipeline::automatic, fill});
  check(
      H5Pset_filter(creation, FIRN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, words.size(), words.data()),
      ExitCode::cannot_write, path);
  return opened(H5Dcreate2(output, path.c_str(), type, space, link_creation, creation, H5P_DEFAULT),
                ExitCode::cannot_write, path);
}

template <class T>
CompressedDataset compress_values(hid_t source, hid_t output, const std::string& path, hid_t type,
                                  hid_t link_creation, const Treatment& treatment, int threads,
                                  const std::function<void(std::uint64_t)>& progress) {
  const Stopwatch stopwatch;
  const std::vector<Box> boxes =
      boxes_of(treatment.extents, treatment.chunk, kMostBytesInMemory / sizeof(T));
  std::vector<T> values;
  Survey survey;
  if (needs_survey(treatment)) {
    for (const Box& box : boxes) {
      read_box(source, path, box, values);
      extend(survey, values, treatment.missing);
    }
  }
  const bool in_memory = needs_survey(treatment) && boxes.size() == 1;

  CompressedDataset result;
  result.bound = absolute_bound(treatment.bound, survey, path);
  std::optional<double> fill;
  if (!treatment.missing.empty()) fill = treatment.missing.front();
  if (!survey.missing_found.empty()) fill = survey.missing_found.front();
  if (survey.missing_found.size() > 1 && result.bound.kind != firn::BoundKind::lossless) {
    // A stream keeps one value exactly beside NaN and infinities.
    result.bound = firn::Bound::lossless();
    result.remark = fmt::format("lossless, to keep the missing values {:g}",
                                fmt::join(survey.missing_found, " and "));
  }
  if (is_relative(treatment.bound) && result.bound.kind == firn::BoundKind::abs) {
    result.forgotten_fill = survey.others.found(treatment.type, result.bound.value,
                                                "give --rules a line for it with fill={}");
  }
  const Handle dataset =
      create_dataset(source, output, path, type, link_creation, treatment, result.bound, fill);
  std::uint64_t done = 0;
  for (const Box& box : boxes) {
    if (!in_memory) read_box(source, path, box, values);
    firn::Execution execution;
    execution.threads = threads;
    execution.progress = [&](std::uint64_t box_done, std::uint64_t) {
      progress(done + box_done);
      return true;
    };
    const firn::hdf5::DirectWriteReport written =
        value_or_fail(firn::hdf5::write_chunks(dataset, values.data(), execution, &box), path);
    result.written.chunk_count += written.chunk_count;
    result.written.original_bytes += written.original_bytes;
    result.written.compressed_bytes += written.compressed_bytes;
    result.written.max_abs_error = std::max(result.written.max_abs_error, written.max_abs_error);
    result.written.max_pwrel_error =
        std::max(result.written.max_pwrel_error, written.max_pwrel_error);
    done += written.original_bytes;
  }
  result.seconds = stopwatch.seconds();
  return result;
}

}  // namespace

std::vector<Box> boxes_of(const std::vector<std::uint64_t>& extents,
                          const std::vector<std::uint64_t>& chunk, std::uint64_t most_values) {
  const std::size_t rank = extents.size();
  std::vector<std::uint64_t> box = chunk;
  for (std::size_t axis = 0; axis < rank; ++axis) box[axis] = std::min(box[axis], extents[axis]);
  // Grow along the fastest axes first, so that a box is few pieces of the file.
  for (std::size_t axis = rank; axis-- > 0;) {
    const std::uint64_t others = product(box) / box[axis];
    const std::uint64_t fitting = most_values / others / chunk[axis] * chunk[axis];
    box[axis] = std::min(extents[axis], std::max(box[axis], fitting));
    if (box[axis] < extents[axis]) break;
  }
  std::vector<Box> boxes;
  std::vector<std::uint64_t> origin(rank, 0);
  for (;;) {
    Box next{origin, box};
    for (std::size_t axis = 0; axis < rank; ++axis) {
      next.extents[axis] = std::min(box[axis], extents[axis] - origin[axis]);
    }
    boxes.push_back(std::move(next));
    std::size_t axis = rank;
    for (;;) {
      if (axis-- == 0) return boxes;
      origin[axis] += box[axis];
      if (origin[axis] < extents[axis]) break;
      origin[axis] = 0;
    }
  }
}

CompressedDataset compress_dataset(hid_t source, hid_t output, const std::string& path, hid_t type,
                                   hid_t link_creation, const Treatment& treatment, int threads,
                                   const std::function<void(std::uint64_t)>& progress) {
  return treatment.type == firn::Type::f32
             ? compress_values<float>(source, output, path, type, link_creation, treatment, threads,
                                      progress)
             : compress_values<double>(source, output, path, type, link_creation, treatment,
                                       threads, progress);
}

}  // namespace firn_cli
