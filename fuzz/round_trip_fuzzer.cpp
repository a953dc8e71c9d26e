// Values and options of every kind: the bound holds exactly, specials return bit for bit, and the
// bytes do not depend on threads.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <firn/stream.hpp>
#include <vector>

#include "fuzz_input.hpp"
#include "support/exact_bound.hpp"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

template <class T>
void step_by_step(const firn::fuzz::ForgedChunk& input, const std::vector<T>& values,
                  const firn::Options& options);

// The first bytes are values, repeated with small changes to fill the shape.
template <class T>
void round_trip(const firn::fuzz::ForgedChunk& input, firn::Options options) {
  std::vector<T> values(input.shape.count());
  for (std::size_t i = 0; i < values.size() && !input.payload.empty(); ++i) {
    std::uint8_t bytes[sizeof(T)];
    for (std::size_t b = 0; b < sizeof(T); ++b) {
      bytes[b] = input.payload[(i * sizeof(T) + b) % input.payload.size()];
    }
    std::memcpy(&values[i], bytes, sizeof(T));
  }
  const firn::ArrayView view = firn::test::const_view_of(values, input.shape);
  firn::Execution one, two;
  one.threads = 1;
  two.threads = 2;
  static firn::Compressor compressor;
  const auto stream = compressor.compress(view, options, one);
  if (!stream) fail(stream.error().message);
  const auto again = compressor.compress(view, options, two);
  if (!again || firn::test::bytes_of(*again) != firn::test::bytes_of(*stream)) {
    fail("other bytes with two threads");
  }
  if (stream->size() > *firn::worst_case_size(view.type, view.shape, options)) fail("too large");
  std::vector<T> decoded(values.size());
  const auto status = firn::decompress(*stream, firn::test::view_of(decoded, input.shape), one);
  if (!status) fail(status.error().message);
  const auto info = firn::inspect(*stream);
  const auto broken = firn::test::broken_promise(values, decoded, *info, options.fill);
  if (broken) fail(*broken);
  if (input.pointwise) step_by_step(input, values, options);
}

// Also step by step: pushed in slabs with flushes between them, read as pieces of bytes arrive.
template <class T>
void step_by_step(const firn::fuzz::ForgedChunk& input, const std::vector<T>& values,
                  const firn::Options& options) {
  firn::Execution one;
  one.threads = 1;
  firn::Shape step, slab = input.shape;
  step.rank = input.shape.rank - 1;
  for (int k = 0; k < step.rank; ++k) step.extents[k] = input.shape.extents[k + 1];
  const std::uint64_t steps = input.shape.extents[0], step_values = values.size() / steps;
  auto writer = firn::StreamWriter::create(input.type, step, options, one);
  if (!writer) fail(writer.error().message);
  for (std::uint64_t at = 0; at < steps; at += slab.extents[0]) {
    slab.extents[0] = std::min<std::uint64_t>(static_cast<std::uint64_t>(input.margin), steps - at);
    const auto pushed =
        writer->push({values.data() + at * step_values, input.type, slab, std::nullopt});
    if (!pushed) fail(pushed.error().message);
    if (at % 5 != 0) continue;
    if (const auto flushed = writer->flush(); !flushed) fail(flushed.error().message);
  }
  if (const auto finished = writer->finish(); !finished) fail(finished.error().message);
  const auto series = writer->ready();
  const auto info = firn::inspect(series);
  if (!info) fail(info.error().message);

  firn::StreamReader reader;
  std::vector<T> decoded(values.size());
  std::uint64_t done = 0;
  const std::size_t piece = 1 + series.size() / 7;
  for (std::size_t at = 0; at < series.size(); at += piece) {
    const auto fed = reader.feed(series.subspan(at, std::min(piece, series.size() - at)));
    if (!fed) fail(fed.error().message);
    while (reader.started() && done < steps) {
      slab.extents[0] = steps - done;
      const auto read =
          reader.read({decoded.data() + done * step_values, input.type, slab, std::nullopt}, one);
      if (!read) fail(read.error().message);
      if (*read == 0) break;
      done += *read;
    }
  }
  if (done != steps) fail("steps are missing");
  const auto broken = firn::test::broken_promise(values, decoded, *info, options.fill);
  if (broken) fail(*broken);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  firn::ByteReader in({data, size});
  const auto choice = in.read<std::uint8_t>();
  auto input = firn::fuzz::ForgedChunk::read(in);
  firn::Options options;
  options.pipeline = input.pipeline;
  if (std::strcmp(name_of(options.pipeline), "unknown") == 0) {
    options.pipeline = firn::Pipeline::automatic;
  }
  options.preset = static_cast<firn::Preset>(choice / 8 % 3);
  const double bound = std::ldexp(1.0 + input.margin / 16.0, input.bound_exponent);
  switch (choice % 4) {
    case 0:
      options.bound = firn::Bound::abs(bound);
      break;
    case 1:
      options.bound = firn::Bound::rel(bound);
      break;
    case 2:
      options.bound = firn::Bound::psnr(1 + (input.bound_exponent & 0x7F));
      break;
    default:
      break;
  }
  const bool only_pointwise =
      options.pipeline == firn::Pipeline::fre || options.pipeline == firn::Pipeline::fre_round;
  if (only_pointwise || (choice % 16 == 7 && options.pipeline != firn::Pipeline::causal)) {
    options.bound = firn::Bound::pwrel(
        std::ldexp(1.0 + input.margin / 16.0, -2 - (input.bound_exponent & 0x3F)));
  }
  // Many tries: not with tables for each of many small chunks.
  if (choice % 16 == 11 && !only_pointwise && options.pipeline != firn::Pipeline::lorenzo) {
    options.bound = firn::Bound::ratio(std::ldexp(1.0 + input.margin / 16.0, input.margin % 8));
    if (input.bound_exponent > 0) options.max_abs = bound;
  }
  if ((choice & 4) != 0) options.fill = 0;
  if ((choice & 0x80) != 0) {
    options.chunk = input.shape;
    for (int k = 0; k < options.chunk.rank; ++k) {
      options.chunk.extents[k] = (options.chunk.extents[k] + 2) / 3;
    }
  }
  if (input.type == firn::Type::f32) {
    round_trip<float>(input, options);
  } else {
    round_trip<double>(input, options);
  }
  return 0;
}
