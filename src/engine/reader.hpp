// What bytes hold: one stream, or a series of them that is read as one array.
#pragma once

#include <firn/firn.hpp>
#include <functional>
#include <vector>

#include "container/series.hpp"
#include "engine/decompress.hpp"

namespace firn::engine {

// May be opened again and again; a single stream then allocates nothing.
class Reader {
 public:
  Status open(std::span<const std::uint8_t> bytes);

  // The first part's header, but with the whole array's shape.
  const container::Header& header() const { return header_; }
  const Shape& shape() const { return header_.shape; }
  std::uint64_t part_count() const { return series_.parts.empty() ? 1 : series_.parts.size(); }
  // False: behind the last whole part lie bytes of another, or something else.
  bool whole() const { return !series_.ragged; }
  Error cut_off() const;
  std::uint64_t end() const { return series_.parts.empty() ? bytes_.size() : series_.end; }

  // visit(stream, offset in the bytes, first index along the slowest axis) for each part; stops
  // when it fails, and at a part whose header is damaged. With `damaged`, such parts are passed
  // over, and make that true.
  Status for_each_part(
      const std::function<Status(const OpenStream&, std::uint64_t, std::uint64_t)>& visit,
      bool* damaged = nullptr);

  // As engine::decompress, over the parts that touch the region. Where the series is cut off nobody
  // knows how much followed: a damage without values at the end says so.
  Status decompress(const Region& region, const MutableArrayView& out, const Execution& execution,
                    pipelines::Workers& workers, std::vector<Damage>* damages);

 private:
  // Checks that it `fits` the series, whose header is known then.
  Status open_part(const container::Part& part, bool fits = true);

  std::span<const std::uint8_t> bytes_;
  container::Header header_;
  container::Series series_;  // no parts: a single stream, which stream_ is
  OpenStream stream_;
};

}  // namespace firn::engine
