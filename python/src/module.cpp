// firn._core: the library's calls on Python buffers. firn/_api.py is what users meet.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "firn/hdf5_parameters.h"
#include "parameters.hpp"
#include "reports.hpp"
#include "streams.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace firn_python {
namespace {

// Compressors and decompressors that wait for the next call, so that working memory is kept.
// One per call that runs at the same time. Never destroyed: threads may outlive the module.
template <class Worker>
class Pool {
 public:
  static Pool& instance() {
    static Pool* const pool = new Pool;
    return *pool;
  }

  std::unique_ptr<Worker> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Worker>();
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }
  void give_back(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(worker));
  }

  // A forked child has none of the threads that these workers' arenas know of.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child() {
    for (auto& worker : idle_) (void)worker.release();
    idle_.clear();
    mutex_.unlock();
  }

 private:
  static constexpr std::size_t kMaxIdle = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};
using Compressors = Pool<firn::Compressor>;
using Decompressors = Pool<firn::Decompressor>;

void handle_forks() {
  pthread_atfork(
      [] {
        Compressors::instance().before_fork();
        Decompressors::instance().before_fork();
      },
      [] {
        Compressors::instance().after_fork_in_parent();
        Decompressors::instance().after_fork_in_parent();
      },
      [] {
        Compressors::instance().after_fork_in_child();
        Decompressors::instance().after_fork_in_child();
      });
}

firn::Execution execution_of(int threads) {
  firn::Execution execution;
  execution.threads = threads;
  return execution;
}

firn::Bound bound_of(const std::string& name, double value) {
  for (int number = 0; number <= static_cast<int>(firn::BoundKind::ratio); ++number) {
    const auto kind = static_cast<firn::BoundKind>(number);
    if (name == firn::name_of(kind)) return {kind, value};
  }
  throw nb::value_error(("no bound " + name).c_str());
}

// Raises what compress() would raise for any array.
firn::Options options_of(const std::string& bound, double bound_value, const std::string& preset,
                         const std::optional<std::string>& pipeline,
                         const std::vector<std::uint64_t>& chunk, std::optional<double> fill,
                         std::optional<double> max_abs, const std::string& tune,
                         const std::string& books) {
  firn::Options options;
  options.bound = bound_of(bound, bound_value);
  options.preset = value_or_raise(firn::parse_preset(preset));
  if (pipeline) options.pipeline = value_or_raise(firn::parse_pipeline(*pipeline));
  options.fill = fill;
  options.max_abs = max_abs;
  options.tune = value_or_raise(firn::parse_tune(tune));
  options.books = value_or_raise(firn::parse_book_policy(books));
  value_or_raise(firn::worst_case_size(firn::Type::f64, {1}, options));
  options.chunk = shape_of(chunk);  // which has to fit an array
  return options;
}

// What to warn of; none when a ratio was met or not asked for.
std::optional<std::string> missed_ratio(const firn::Options& options, std::uint64_t original_bytes,
                                        std::uint64_t compressed_bytes) {
  if (!options.bound.is_missed(original_bytes, compressed_bytes)) return std::nullopt;
  char text[128];
  std::snprintf(text, sizeof text, "the ratio %g was not met%s: it is %.2f", options.bound.value,
                options.max_abs ? " within max_abs" : "",
                static_cast<double>(original_bytes) / static_cast<double>(compressed_bytes));
  return text;
}

nb::object compress(nb::handle array, const firn::Options& options, int threads) {
  const Array input(array);
  const firn::ArrayView view = input.view();
  const std::uint64_t room = value_or_raise(firn::worst_case_size(view.type, view.shape, options));
  // Pages that are not written to cost nothing, so the stream grows in the result itself.
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(room));
  if (bytes == nullptr) throw nb::python_error();
  nb::object holder = nb::steal(bytes);
  const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t*>(PyBytes_AsString(bytes)),
                                    static_cast<std::size_t>(room));
  prefer_huge_pages(out);
  firn::Result<std::size_t> size = std::size_t{0};
  {
    const nb::gil_scoped_release released;
    auto compressor = Compressors::instance().take();
    size = compressor->compress_into(view, options, out, execution_of(threads));
    Compressors::instance().give_back(std::move(compressor));
  }
  const auto used = static_cast<Py_ssize_t>(value_or_raise(std::move(size)));
  bytes = holder.release().ptr();
  if (_PyBytes_Resize(&bytes, used) != 0) throw nb::python_error();
  return nb::steal(bytes);
}

nb::dict estimate(nb::handle array, const firn::Options& options, int threads) {
  const Array input(array);
  firn::Result<firn::Estimate> result = firn::Estimate{};
  {
    const nb::gil_scoped_release released;
    result = firn::estimate(input.view(), options, execution_of(threads));
  }
  return to_dict(value_or_raise(std::move(result)));
}

template <class Call>
auto with_decompressor(Call call) {
  const nb::gil_scoped_release released;
  auto decompressor = Decompressors::instance().take();
  auto result = call(*decompressor);
  Decompressors::instance().give_back(std::move(decompressor));
  return result;
}

void decompress(nb::handle stream, nb::handle out, int threads) {
  const Bytes bytes(stream);
  const MutableArray array(out);
  value_or_raise(with_decompressor([&](firn::Decompressor& decompressor) {
    return decompressor.decompress(bytes.span(), array.view(), execution_of(threads));
  }));
}

void decompress_region(nb::handle stream, const std::vector<std::uint64_t>& origin, nb::handle out,
                       int threads) {
  const Bytes bytes(stream);
  const MutableArray array(out);
  firn::Region region;
  region.shape = array.view().shape;
  if (origin.size() != static_cast<std::size_t>(region.shape.rank)) {
    throw nb::value_error("origin and output array differ in rank");
  }
  std::copy(origin.begin(), origin.end(), region.origin.begin());
  value_or_raise(with_decompressor([&](firn::Decompressor& decompressor) {
    return decompressor.decompress_region(bytes.span(), region, array.view(),
                                          execution_of(threads));
  }));
}

std::vector<std::uint64_t> preview_shape(nb::handle stream, int factor) {
  const Bytes bytes(stream);
  const firn::Shape shape = value_or_raise(firn::preview_shape(bytes.span(), factor));
  return {shape.extents.begin(), shape.extents.begin() + shape.rank};
}

void decompress_preview(nb::handle stream, int factor, nb::handle out, int threads) {
  const Bytes bytes(stream);
  const MutableArray array(out);
  value_or_raise(with_decompressor([&](firn::Decompressor& decompressor) {
    return decompressor.decompress_preview(bytes.span(), factor, array.view(),
                                           execution_of(threads));
  }));
}

nb::list salvage(nb::handle stream, nb::handle out, int threads) {
  const Bytes bytes(stream);
  const MutableArray array(out);
  const auto damages = value_or_raise(with_decompressor([&](firn::Decompressor& decompressor) {
    return decompressor.salvage(bytes.span(), array.view(), execution_of(threads));
  }));
  nb::list list;
  for (const firn::Damage& damage : damages) list.append(to_dict(damage, array.view().shape.rank));
  return list;
}

nb::dict inspect(nb::handle stream) {
  const Bytes bytes(stream);
  return to_dict(value_or_raise(firn::inspect(bytes.span())));
}

nb::list inspect_chunks(nb::handle stream) {
  const Bytes bytes(stream);
  nb::list list;
  for (const firn::ChunkInfo& chunk : value_or_raise(firn::inspect_chunks(bytes.span()))) {
    list.append(to_dict(chunk));
  }
  return list;
}

nb::dict verify(nb::handle original, nb::handle stream, int threads) {
  const Array array(original);
  const Bytes bytes(stream);
  firn::Result<firn::Comparison> result = firn::Comparison{};
  {
    const nb::gil_scoped_release released;
    result = firn::verify(array.view(), bytes.span(), execution_of(threads));
  }
  return to_dict(value_or_raise(std::move(result)));
}

nb::dict measure(nb::handle original, nb::handle decoded, std::optional<double> fill, int lags,
                 int histogram_bins, double histogram_limit, bool ssim, bool gradient,
                 bool spectrum, std::uint64_t spectrum_values, int threads) {
  const Array first(original);
  const Array second(decoded);
  firn::MetricsOptions options;
  options.fill = fill;
  options.lags = lags;
  options.histogram_bins = histogram_bins;
  options.histogram_limit = histogram_limit;
  options.ssim = ssim;
  options.gradient = gradient;
  options.spectrum = spectrum;
  options.spectrum_values = spectrum_values;
  firn::Result<firn::Metrics> result = firn::Metrics{};
  {
    const nb::gil_scoped_release released;
    result = firn::measure(first.view(), second.view(), options, execution_of(threads));
  }
  return to_dict(value_or_raise(std::move(result)));
}

// The numbers that a user gives to the HDF5 filter.
std::vector<unsigned> hdf5_parameters(const firn::Options& options) {
  const auto words =
      firn::hdf5::user_parameters({options.bound, options.preset, options.pipeline, options.fill});
  value_or_raise(firn::hdf5::parse_parameters(words));
  return words;
}

// Of the numbers that the HDF5 filter stores with a dataset: the shape of a chunk as Firn sees it,
// and the options. None when the numbers are a user's.
nb::object hdf5_chunks(const std::vector<unsigned>& words) {
  const auto parameters = value_or_raise(firn::hdf5::parse_parameters(words));
  if (!parameters.stored()) return nb::none();
  return nb::make_tuple(tuple_of(parameters.layout.shape), parameters.options());
}

// Raises firn._errors.error_of(code, message).
void raise_failure(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Failure& failure) {
    const nb::object error =
        nb::module_::import_("firn._errors")
            .attr("error_of")(static_cast<int>(failure.error.code), failure.error.message.c_str());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  }
}

}  // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator(raise_failure);
  handle_forks();
  nb::class_<firn::Options>(module, "Options")
      .def(
          "__init__",
          [](firn::Options* self, const std::string& bound, double bound_value,
             const std::string& preset, const std::optional<std::string>& pipeline,
             const std::vector<std::uint64_t>& chunk, std::optional<double> fill,
             std::optional<double> max_abs, const std::string& tune, const std::string& books) {
            new (self) firn::Options(options_of(bound, bound_value, preset, pipeline, chunk, fill,
                                                max_abs, tune, books));
          },
          "bound"_a, "bound_value"_a, "preset"_a, "pipeline"_a.none(), "chunk"_a, "fill"_a.none(),
          "max_abs"_a.none(), "tune"_a, "books"_a)
      .def("missed_ratio", &missed_ratio, "original_bytes"_a, "compressed_bytes"_a);
  define_streams(module);
  module.def("compress", &compress, "array"_a, "options"_a, "threads"_a);
  module.def("estimate", &estimate, "array"_a, "options"_a, "threads"_a);
  module.def("decompress", &decompress, "stream"_a, "out"_a, "threads"_a);
  module.def("decompress_region", &decompress_region, "stream"_a, "origin"_a, "out"_a, "threads"_a);
  module.def("preview_shape", &preview_shape, "stream"_a, "factor"_a);
  module.def("decompress_preview", &decompress_preview, "stream"_a, "factor"_a, "out"_a,
             "threads"_a);
  module.def("salvage", &salvage, "stream"_a, "out"_a, "threads"_a);
  module.def("inspect", &inspect, "stream"_a);
  module.def("inspect_chunks", &inspect_chunks, "stream"_a);
  module.def("verify", &verify, "original"_a, "stream"_a, "threads"_a);
  module.def("measure", &measure, "original"_a, "decoded"_a, "fill"_a.none(), "lags"_a,
             "histogram_bins"_a, "histogram_limit"_a, "ssim"_a, "gradient"_a, "spectrum"_a,
             "spectrum_values"_a, "threads"_a);
  module.def("hdf5_parameters", &hdf5_parameters, "options"_a);
  module.def("hdf5_chunks", &hdf5_chunks, "words"_a);
  module.attr("hdf5_filter_id") = FIRN_HDF5_FILTER_ID;
  module.def("version", &firn::version);
  module.def("simd_target", &firn::simd_target);
  module.def("simd_targets", &firn::simd_targets);
}

}  // namespace firn_python
