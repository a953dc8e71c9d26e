// Which Huffman book each chunk of `lorenzo` takes. A shared book must be known before its chunks
// are encoded, in parallel and in any order; so a small sample of every chunk is looked at first,
// chunks are gone through in order by the rule of BookPolicy, and books that two or more of them
// take are written before the first chunk.
#pragma once

#include <cstdint>
#include <firn/firn.hpp>
#include <span>
#include <vector>

#include "base/scratch.hpp"
#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::plan {

// CEAZ's thresholds on the change of the standard deviation of symbol frequencies. The paper does
// not state its unit; frequencies in thousandths over its 1,024 symbols put them where it has them.
inline constexpr double kChiKeep = 5.18;     // up to here: the previous book
inline constexpr double kChiOffline = 9.69;  // beyond: an offline book; between: a new one

// Standard deviation of the frequencies, in thousandths, of the residuals -512 to 511 of a
// histogram over the alphabet of kMaxRangeLog2 with `total` symbols.
double frequency_deviation(std::span<const std::uint32_t> histogram, std::uint64_t total);

// Keeps its memory, so that planning again allocates nothing.
class BookPlan {
 public:
  std::span<const std::span<const std::uint8_t>> books() const { return payloads_; }
  pipelines::Parameters parameters_of(const pipelines::Parameters& shared,
                                      std::uint64_t chunk) const;

 private:
  friend class BookPlanner;
  std::vector<std::uint8_t> of_chunk_;  // a book's number or one of the planner's marks
  std::vector<std::uint8_t> bytes_;     // payloads of all books
  std::vector<std::size_t> ends_;       // where each ends
  std::vector<std::span<const std::uint8_t>> payloads_;
  std::vector<std::uint64_t> members_;  // chunks of the book being planned
  ScratchArray<std::uint32_t> samples_, gathered_, folded_, weights_;
  ScratchArray<std::uint64_t> build_;
  ScratchArray<std::uint8_t> lengths_;
  std::vector<std::size_t> sample_counts_;
};

// Does nothing but for `lorenzo` with several chunks and the policies `cost` and `chi`.
void plan_books(const ArrayView& array, const Plan& plan, pipelines::Workers& workers,
                BookPlan* result);
std::uint64_t worst_case_book_bytes(const Plan& plan);

}  // namespace firn::plan
