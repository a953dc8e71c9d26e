// From a stream to an array, a region of it, or what can be saved of it.
#pragma once

#include <firn/firn.hpp>
#include <functional>
#include <vector>

#include "container/records.hpp"
#include "pipelines/pipeline.hpp"
#include "pipelines/workers.hpp"

namespace firn::engine {

// A stream whose header has been read and whose records have been looked for.
// May be opened again and again; it keeps the table's memory.
struct OpenStream {
  std::span<const std::uint8_t> bytes;
  container::Header header;
  Grid grid;
  container::RecordTable records;

  Status open(std::span<const std::uint8_t> stream);
};

// The message about a chunk: which one, where it lies, what is wrong.
Error chunk_error(const OpenStream& stream, std::uint64_t number, const Error& error);

// What the stream says to its chunks.
pipelines::Parameters parameters_of(const OpenStream& stream);

// Sets every value of an array to NaN.
void fill_with_nan(const MutableArrayView& array);

// Decodes the region's chunks into `out`, which has its shape. With `damages`, failed chunks are
// set to NaN and listed there instead of ending the work.
Status decompress(const OpenStream& stream, const Region& region, const MutableArrayView& out,
                  const Execution& execution, pipelines::Workers& workers,
                  std::vector<Damage>* damages);

// The shape of a preview: of each chunk every factor-th value along each axis.
Shape preview_shape(const container::Header& header, std::uint64_t factor);

// `out` has the preview's shape; `factor` is a power of two.
Result<PreviewReport> preview(const OpenStream& stream, std::uint64_t factor,
                              const MutableArrayView& out, const Execution& execution,
                              pipelines::Workers& workers);

}  // namespace firn::engine
