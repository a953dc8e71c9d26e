#include "streams.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <firn/stream.hpp>
#include <mutex>
#include <utility>

#include "buffers.hpp"
#include "reports.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace firn_python {
namespace {

// The library's objects are not for concurrent use, and the GIL is released while they work.
template <class Call>
auto exclusively(std::mutex& mutex, Call call) {
  const nb::gil_scoped_release released;
  const std::lock_guard lock(mutex);
  return call();
}

firn::Execution execution_of(int threads) { return {threads, {}}; }

// Each call returns the bytes that are ready after it.
class Writer {
 public:
  Writer(const std::string& dtype, const std::vector<std::uint64_t>& step,
         const firn::Options& options, int threads)
      : writer_(value_or_raise(firn::StreamWriter::create(type_of(dtype), shape_of(step), options,
                                                          execution_of(threads)))) {}
  Writer(nb::handle existing, const firn::Options& options, int threads)
      : writer_(value_or_raise(firn::StreamWriter::append_to(Bytes(existing).span(), options,
                                                             execution_of(threads)))) {}

  nb::bytes push(nb::handle steps) {
    const Array array(steps);
    return bytes_after([&] { return writer_.push(array.view()); });
  }
  nb::bytes flush() {
    return bytes_after([&] { return writer_.flush(); });
  }
  nb::bytes finish() {
    return bytes_after([&] { return writer_.finish(); });
  }
  std::uint64_t append_offset() const { return writer_.append_offset(); }

 private:
  template <class Call>
  nb::bytes bytes_after(Call call) {
    std::vector<std::uint8_t> bytes;
    value_or_raise(exclusively(mutex_, [&]() -> firn::Status {
      const firn::Status status = call();
      if (status) {
        const auto ready = writer_.ready();
        bytes.assign(ready.begin(), ready.end());
        writer_.take(ready.size());
      }
      return status;
    }));
    return nb::bytes(bytes.data(), bytes.size());
  }

  std::mutex mutex_;
  firn::StreamWriter writer_;
};

class Reader {
 public:
  void feed(nb::handle buffer) {
    const Bytes bytes(buffer);
    value_or_raise(exclusively(mutex_, [&] { return reader_.feed(bytes.span()); }));
  }
  // The type and the shape of a step, once they are known.
  nb::object about() const {
    if (!reader_.started()) return nb::none();
    return nb::make_tuple(dtype_name(reader_.type()), tuple_of(reader_.step()));
  }
  std::uint64_t read(nb::handle out, int threads) {
    const MutableArray array(out);
    return value_or_raise(
        exclusively(mutex_, [&] { return reader_.read(array.view(), execution_of(threads)); }));
  }
  bool at_boundary() const { return reader_.at_boundary(); }

 private:
  std::mutex mutex_;
  firn::StreamReader reader_;
};

}  // namespace

void define_streams(nb::module_& module) {
  nb::class_<Writer>(module, "StreamWriter")
      .def(nb::init<const std::string&, const std::vector<std::uint64_t>&, const firn::Options&,
                    int>(),
           "dtype"_a, "step"_a, "options"_a, "threads"_a)
      .def_static(
          "append_to",
          [](nb::handle existing, const firn::Options& options, int threads) {
            return new Writer(existing, options, threads);
          },
          nb::rv_policy::take_ownership, "existing"_a, "options"_a, "threads"_a)
      .def("push", &Writer::push, "steps"_a)
      .def("flush", &Writer::flush)
      .def("finish", &Writer::finish)
      .def_prop_ro("append_offset", &Writer::append_offset);
  nb::class_<Reader>(module, "StreamReader")
      .def(nb::init<>())
      .def("feed", &Reader::feed, "bytes"_a)
      .def("about", &Reader::about)
      .def("read", &Reader::read, "out"_a, "threads"_a)
      .def("at_boundary", &Reader::at_boundary);
}

}  // namespace firn_python
