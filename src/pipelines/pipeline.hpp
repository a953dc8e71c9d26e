// A pipeline encodes and decodes one chunk. Each is a pair of functions over f32 and f64; the
// choice is one switch per chunk, nothing is virtual inside. To add one: an id in firn.hpp and
// docs/format.md, a file pair here, a case in pipeline.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <firn/firn.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/geometry.hpp"
#include "pipelines/workspace.hpp"

namespace firn::pipelines {

inline constexpr std::uint32_t kNoBook = ~std::uint32_t{0};

// A way to encode a chunk: a pipeline; for `interp`, its frozen axes, how much finer its coarse
// levels are, and whether its stencils are trained; and by how much the step is smaller than it
// might be.
struct Candidate {
  Pipeline pipeline = Pipeline::automatic;
  unsigned frozen = 0;
  int fineness = 0;
  std::uint8_t finer = 0;
  bool trained = false;
  double score = 0;  // what it counted for in a trial

  bool same_way(const Candidate& other) const {
    return pipeline == other.pipeline && frozen == other.frozen && fineness == other.fineness &&
           trained == other.trained && finer == other.finer;
  }
};

// The one that was chosen, to be used again; automatic: none was. For `lorenzo`, `blockpack` and
// `contexts` also the packed orders of its differences; for `causal` and `interp`, if it will be
// used again, what it was trained to and the bases with their stencils.
struct Choice {
  static constexpr std::uint8_t kAnyOrders = 255;  // none were chosen

  Candidate candidate{};
  std::uint8_t orders = 0;
  RunnerUp runner_up{};
  std::shared_ptr<const CausalModel> model{};
  std::shared_ptr<const std::vector<std::uint8_t>> bases{};
};

// Where an array's values gather: their median, how far apart their quartiles are, and the largest
// step for which codes may have a phase.
struct Gathering {
  double middle = 0, width = 0, most_step = std::numeric_limits<double>::infinity();
};

// The same for all chunks of a stream, but for what is said to differ.
struct Parameters {
  Pipeline pipeline = Pipeline::lorenzo;  // the one to try first; automatic: the best of several
  bool thorough = false;                  // automatic: try more, harder
  bool tune_psnr = false;                 // automatic: the least size at equal PSNR
  bool trial = false;                     // only Encoded::size is wanted, and only about
  bool rehearsal = false;                 // likewise, but to a percent or so
  bool choose_only = false;               // automatic: only Encoded::choice is wanted
  std::size_t look_at_one_in = 1;         // block of many residuals, in a rehearsal
  // In a rehearsal: payloads that take about so many bytes are encoded all the same.
  std::size_t least_wanted = 1, most_wanted = 0;
  // Pipelines that code contexts need not write a payload that is larger.
  std::size_t most_useful = std::numeric_limits<std::size_t>::max();
  double bound_abs = 0;    // exact in the value's type; 0: lossless
  bool pointwise = false;  // the bound is relative to each value's magnitude
  int margin = 0;
  // To encode: the step is smaller by so many 256ths, not for pwrel, in which a chunk may differ
  // from others; and whether Encoded::mean_square is wanted, not of `fre` and `ceresz`.
  std::uint8_t finer = 0;
  bool measured = false;
  bool trained = false;                // `causal` finds its model in the workspace
  std::optional<Gathering> gathering;  // to encode; none: codes have no phase
  std::optional<double> fill;
  // For `lorenzo`. The payloads of the stream's shared books by number, empty where damaged; and,
  // to encode, the rule for this chunk and the shared book that the plan has for it. With `chi`
  // that one is used; else chi has been settled to `stored` or `offline`.
  std::span<const std::span<const std::uint8_t>> shared_books;
  BookPolicy books = BookPolicy::cost;
  std::uint32_t book = kNoBook;
  Choice choice;  // of this chunk for `automatic`, made under a bound not far from this one
  bool keep_choice = false;  // the choice that is made will be used again
  bool streaming = false;    // decode: the output is too large for the caches to be of use

  bool size_only() const { return trial || rehearsal; }
  bool wants_any() const { return rehearsal && !trial && most_wanted >= least_wanted; }
};

struct Encoded {
  Pipeline pipeline = Pipeline::raw;  // the one that was used
  std::size_t size = 0;               // bytes of payload, or about that
  double max_error = 0;               // relative when the bound is
  double mean_square = 0;             // of the errors, in bounds, on a sample; if it was wanted
  bool written = true;                // the payload, not only its size is known
  Choice choice{};                    // that was made, for another time
};

// Room that encode() needs for a chunk of `count` values.
std::size_t payload_capacity(std::size_t count, Type type, Pipeline pipeline = Pipeline::automatic);

// Encodes a chunk to `out`. Falls back to `constant`, `bits`, `shuffle` and `raw`, so the payload
// is never larger than the values themselves.
template <class T>
Encoded encode(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
               std::uint8_t* out);

// Decodes a payload into a chunk's place. False: malformed.
template <class T>
bool decode(Pipeline pipeline, std::span<const std::uint8_t> payload, const Parameters& parameters,
            const Box<T>& chunk, Workspace& workspace);

// Every factor-th value along each axis of a chunk with these extents; `out` has a factor-th of
// them, rounded up. `factor` is a power of two. False: malformed.
template <class T>
bool preview(Pipeline pipeline, std::span<const std::uint8_t> payload, const Parameters& parameters,
             int rank, const std::array<std::size_t, kMaxRank>& extents, std::size_t factor,
             const Box<T>& out, Workspace& workspace);
// Whether preview() needs only the beginning of the payload.
inline bool has_levels(Pipeline pipeline) { return pipeline == Pipeline::interp; }

// One line for people about how a payload was encoded.
// `tighter`: as in the header.
std::string describe(Pipeline pipeline, std::span<const std::uint8_t> payload, int rank,
                     unsigned tighter);

}  // namespace firn::pipelines
