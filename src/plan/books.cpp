#include "plan/books.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "container/format.hpp"
#include "container/records.hpp"
#include "encode/distributions.hpp"
#include "encode/huffman.hpp"
#include "encode/huffman_books.hpp"
#include "encode/residual_symbols.hpp"
#include "pipelines/lorenzo.hpp"

namespace firn::plan {
namespace {

using encode::kCostPerBit;

// What of_chunk_ holds besides numbers of books.
constexpr std::uint8_t kOpen = 255;     // the chunk decides for itself
constexpr std::uint8_t kOffline = 254;  // chi: an offline book
constexpr std::uint8_t kStored = 253;   // chi: a new one that no other chunk takes
static_assert(format::kMaxSharedBooks < kStored);

// Samples of this many chunks are held at a time.
constexpr std::uint64_t kWindow = 64;
// A book learns from so many symbols; more would change nothing and might overflow.
constexpr std::uint64_t kEnoughSymbols = std::uint64_t{1} << 24;

const std::size_t kSampleAlphabet = encode::alphabet_size(encode::kMaxRangeLog2);
constexpr std::int64_t kSampleRange = std::int64_t{1} << encode::kMaxRangeLog2;

// The smallest range that leaves at most 1 symbol in 256 outside, as a chunk would choose it.
int range_for(std::span<const std::uint32_t> histogram, std::uint64_t total) {
  std::uint64_t inside = 0;
  std::int64_t reached = 0;
  for (int k = encode::kMinRangeLog2; k < encode::kMaxRangeLog2; ++k) {
    const std::int64_t range = std::int64_t{1} << k;
    for (std::int64_t r = reached; r < range; ++r) {
      inside += std::uint64_t{histogram[kSampleRange + r]} + histogram[kSampleRange - 1 - r];
    }
    reached = range;
    if ((total - inside) * 256 <= total) return k;
  }
  return encode::kMaxRangeLog2;
}

// A sample's histogram over the alphabet of a smaller range; returns the extra bits of its classes.
std::uint64_t fold(std::span<const std::uint32_t> histogram, int range_log2, std::uint32_t* out) {
  const std::int64_t range = std::int64_t{1} << range_log2;
  std::uint32_t* classes = out + 2 * range;
  std::copy_n(histogram.data() + kSampleRange - range, 2 * range, out);
  std::fill_n(classes, encode::kMagnitudeClasses, 0u);
  std::uint64_t extra_bits = 0;
  const auto add = [&](std::uint64_t magnitude, std::uint32_t count) {
    const int width = static_cast<int>(std::bit_width(magnitude));
    classes[width] += count;
    extra_bits += std::uint64_t{count} * static_cast<std::uint64_t>(std::max(1, width));
  };
  for (std::int64_t r = range; r < kSampleRange; ++r) {
    const std::uint32_t count = histogram[kSampleRange + r] + histogram[kSampleRange - 1 - r];
    if (count != 0) add(static_cast<std::uint64_t>(r - range), count);
  }
  for (unsigned width = 0; width < encode::kMagnitudeClasses; ++width) {
    const std::uint32_t count = histogram[2 * kSampleRange + width];
    const std::uint64_t first = width == 0 ? 0 : std::uint64_t{1} << (width - 1);
    if (count != 0) add(first + static_cast<std::uint64_t>(kSampleRange - range), count);
  }
  return extra_bits;
}

// What having learnt from the very sample that it is judged by flatters a book by, for each symbol:
// 1 / ln 2 bits, in 1/kCostPerBit.
constexpr std::uint64_t kLearning = 2955;

// Bits that symbols take with the ideal code for `book` counts, each of them taken for a little
// more than it is so that all symbols have one. 1/kCostPerBit.
std::uint64_t cross_entropy(std::span<const std::uint32_t> histogram, const std::uint32_t* book) {
  std::uint64_t book_total = 0, total = 0, cost = 0;
  for (std::size_t s = 0; s < histogram.size(); ++s) {
    book_total += 16 * std::uint64_t{book[s]} + 1;
    if (histogram[s] == 0) continue;
    total += histogram[s];
    cost += std::uint64_t{histogram[s]} * encode::scaled_log2(16 * book[s] + 1);
  }
  return total * encode::scaled_log2(static_cast<std::uint32_t>(book_total)) - cost;
}

}  // namespace

double frequency_deviation(std::span<const std::uint32_t> histogram, std::uint64_t total) {
  constexpr std::int64_t kReach = 512;
  std::uint64_t sum = 0, squares = 0;
  for (std::int64_t r = -kReach; r < kReach; ++r) {
    const std::uint64_t count = histogram[kSampleRange + r];
    sum += count;
    squares += count * count;
  }
  const double symbols = 2.0 * kReach;
  const double mean = static_cast<double>(sum) / symbols;
  const double variance = static_cast<double>(squares) / symbols - mean * mean;
  return 1000.0 / static_cast<double>(total) * std::sqrt(std::max(variance, 0.0));
}

pipelines::Parameters BookPlan::parameters_of(const pipelines::Parameters& shared,
                                              std::uint64_t chunk) const {
  pipelines::Parameters parameters = shared;
  if (of_chunk_.empty()) return parameters;
  parameters.shared_books = payloads_;
  switch (const std::uint8_t mark = of_chunk_[static_cast<std::size_t>(chunk)]) {
    case kOpen:
      break;
    case kOffline:
      parameters.books = BookPolicy::offline;
      break;
    case kStored:
      parameters.books = BookPolicy::stored;
      break;
    default:
      parameters.book = mark;
  }
  return parameters;
}

class BookPlanner {
 public:
  BookPlanner(const Plan& plan, BookPlan& result)
      : plan_(plan), grid_(plan.header.shape, plan.header.chunk), result_(result) {
    result.of_chunk_.clear();
    result.bytes_.clear();
    result.ends_.clear();
    result.payloads_.clear();
    result.members_.clear();
  }

  void run(const ArrayView& array, pipelines::Workers& workers) {
    const BookPolicy policy = plan_.parameters.books;
    if (plan_.parameters.pipeline != Pipeline::lorenzo || !(plan_.parameters.bound_abs > 0) ||
        grid_.count() < 2 || (policy != BookPolicy::cost && policy != BookPolicy::chi)) {
      return;
    }
    result_.of_chunk_.assign(static_cast<std::size_t>(grid_.count()), kOpen);
    result_.sample_counts_.resize(kWindow);
    result_.samples_.reserve(kWindow * kSampleAlphabet);
    result_.gathered_.reserve(kSampleAlphabet);
    result_.folded_.reserve(kSampleAlphabet);
    for (std::uint64_t begin = 0; begin < grid_.count(); begin += kWindow) {
      const std::uint64_t end = std::min(begin + kWindow, grid_.count());
      take_samples(array, begin, end, workers);
      for (std::uint64_t chunk = begin; chunk < end; ++chunk) {
        const std::span<const std::uint32_t> sample = sample_of(chunk - begin);
        const std::uint64_t total = result_.sample_counts_[chunk - begin];
        if (total == 0) continue;  // not for `lorenzo`
        if (policy == BookPolicy::cost) {
          decide_by_cost(chunk, sample, total);
        } else {
          decide_by_chi(chunk, sample, total);
        }
      }
    }
    close_book();
    std::size_t from = 0;
    for (const std::size_t end : result_.ends_) {
      result_.payloads_.push_back({result_.bytes_.data() + from, end - from});
      from = end;
    }
  }

 private:
  std::span<std::uint32_t> sample_of(std::uint64_t place) {
    return {result_.samples_.data() + place * kSampleAlphabet, kSampleAlphabet};
  }

  void take_samples(const ArrayView& array, std::uint64_t begin, std::uint64_t end,
                    pipelines::Workers& workers) {
    const auto strides = array.strides ? *array.strides : contiguous_strides(array.shape);
    workers.for_each(end - begin, [&](std::uint64_t i, pipelines::Workspace& workspace) {
      const auto take = [&]<class T>(const T* data) {
        const Box<const T> box(data, strides, grid_.region(begin + i));
        return pipelines::sample_lorenzo(box, plan_.parameters, workspace, sample_of(i));
      };
      result_.sample_counts_[i] = array.type == Type::f32
                                      ? take(static_cast<const float*>(array.data))
                                      : take(static_cast<const double*>(array.data));
      return true;
    });
  }

  // Costs are those of the sample, in 1/kCostPerBit; a table weighs as much less as the sample is
  // smaller than the chunk.
  void decide_by_cost(std::uint64_t chunk, std::span<const std::uint32_t> sample,
                      std::uint64_t total) {
    std::uint32_t* folded = result_.folded_.data();
    const int range_log2 = range_for(sample, total);
    const std::size_t alphabet = encode::alphabet_size(range_log2);
    const std::uint64_t extra = fold(sample, range_log2, folded) * kCostPerBit;
    const std::span<const std::uint32_t> histogram(folded, alphabet);
    const std::uint64_t offline =
        extra + encode::choose_offline_book(histogram, range_log2).bits * kCostPerBit;

    // A new book: the sample's own entropy and what its symbols take to store.
    std::uint64_t present = 0, fresh = extra;
    for (const std::uint32_t count : histogram) {
      if (count == 0) continue;
      ++present;
      fresh += std::uint64_t{count} * (encode::scaled_log2(static_cast<std::uint32_t>(total)) -
                                       encode::scaled_log2(count));
    }
    fresh += present * kLearning;
    const std::uint64_t table_bits = 8 * container::kBookOverhead + 16 + 4 * present;
    const std::uint64_t stored =
        fresh + table_bits * kCostPerBit * total / grid_.region(chunk).shape.count();
    const Member member{chunk, total, std::min(stored, offline) - extra};
    if (range_ == range_log2) {
      const std::uint64_t previous = extra + cross_entropy(histogram, result_.gathered_.data());
      if (previous <= stored && previous <= offline) return join(member, folded);
    }
    if (stored < offline) open_book(member, range_log2, folded);
  }

  void decide_by_chi(std::uint64_t chunk, std::span<const std::uint32_t> sample,
                     std::uint64_t total) {
    const double deviation = frequency_deviation(sample, total);
    const double change = deviation_ < 0 ? 0 : std::fabs(deviation - deviation_);
    deviation_ = deviation;
    std::uint32_t* folded = result_.folded_.data();
    result_.of_chunk_[chunk] = kOffline;
    if (change > kChiOffline) {
      close_book();
    } else if (change > kChiKeep) {
      const int range_log2 = range_for(sample, total);
      fold(sample, range_log2, folded);
      open_book({chunk, total}, range_log2, folded);
    } else if (range_ >= 0) {
      fold(sample, range_, folded);
      join({chunk, total}, folded);
    }
  }

  // A chunk that takes the book being planned.
  struct Member {
    std::uint64_t chunk;
    std::uint64_t symbols;    // in its sample
    std::uint64_t alone = 0;  // what those take without the book, in 1/kCostPerBit
  };

  void open_book(const Member& first, int range_log2, const std::uint32_t* folded) {
    close_book();
    result_.of_chunk_[first.chunk] = alone();
    if (result_.ends_.size() == format::kMaxSharedBooks) return;
    range_ = range_log2;
    std::fill_n(result_.gathered_.data(), encode::alphabet_size(range_), 0u);
    join(first, folded);
  }

  void join(const Member& member, const std::uint32_t* folded) {
    result_.members_.push_back(member.chunk);
    result_.of_chunk_[member.chunk] = alone();
    if (learnt_ + member.symbols > kEnoughSymbols) return;
    learnt_ += member.symbols;
    alone_ += member.alone;
    values_ += grid_.region(member.chunk).shape.count();
    for (std::size_t s = 0; s < encode::alphabet_size(range_); ++s) {
      result_.gathered_.data()[s] += folded[s];
    }
  }

  // What a chunk is told whose book nobody else takes.
  std::uint8_t alone() const { return plan_.parameters.books == BookPolicy::chi ? kStored : kOpen; }

  // Whether chunks are better off with the book that is made of these counts, its bytes included.
  bool is_worth(std::span<const std::uint32_t> counts, std::span<const std::uint8_t> lengths,
                std::size_t bytes) const {
    if (plan_.parameters.books == BookPolicy::chi) {
      // The paper's rule does not weigh a book; it must not make a stream larger than the values.
      const std::uint64_t coded = encode::cost_in_bits(counts, lengths) * values_ / learnt_;
      return coded + 8 * (bytes + container::kBookOverhead) <
             8 * values_ * size_of(plan_.header.type);
    }
    const auto present = counts.size() - std::count(counts.begin(), counts.end(), 0u);
    const std::uint64_t cost =
        encode::cost_in_bits(counts, lengths) * kCostPerBit + present * kLearning;
    const std::uint64_t table = 8 * (bytes + container::kBookOverhead) * kCostPerBit;
    return cost + table * learnt_ / values_ < alone_;
  }

  // Writes the book that is being planned, if that is worth it for more than one chunk.
  void close_book() {
    if (result_.members_.size() > 1) {
      const std::size_t alphabet = encode::alphabet_size(range_);
      const std::span<const std::uint32_t> counts(result_.gathered_.data(), alphabet);
      std::uint32_t* weights = result_.weights_.reserve(alphabet);
      for (std::size_t s = 0; s < alphabet; ++s) weights[s] = 16 * counts[s] + 1;
      std::uint8_t* lengths = result_.lengths_.reserve(alphabet);
      encode::build_code_lengths({weights, alphabet}, lengths, result_.build_);
      const std::size_t begin = result_.bytes_.size();
      result_.bytes_.resize(begin + 1 + 2 * alphabet + 2);
      ByteWriter out(result_.bytes_.data() + begin);
      out.write<std::uint8_t>(static_cast<std::uint8_t>(range_));
      encode::write_code_lengths({lengths, alphabet}, out);
      const bool worth = is_worth(counts, {lengths, alphabet}, out.size());
      result_.bytes_.resize(begin + (worth ? out.size() : 0));
      if (worth) {
        for (const std::uint64_t member : result_.members_) {
          result_.of_chunk_[member] = static_cast<std::uint8_t>(result_.ends_.size());
        }
        result_.ends_.push_back(result_.bytes_.size());
      }
    }
    result_.members_.clear();
    range_ = -1;
    learnt_ = alone_ = values_ = 0;
  }

  const Plan& plan_;
  const Grid grid_;
  BookPlan& result_;
  int range_ = -1;  // of the book being planned; -1: none
  // Of its members: symbols in their samples, what those take without it, and values.
  std::uint64_t learnt_ = 0, alone_ = 0, values_ = 0;
  double deviation_ = -1;  // of the chunk before
};

void plan_books(const ArrayView& array, const Plan& plan, pipelines::Workers& workers,
                BookPlan* result) {
  BookPlanner(plan, *result).run(array, workers);
}

std::uint64_t worst_case_book_bytes(const Plan& plan) {
  if (plan.parameters.pipeline != Pipeline::lorenzo) return 0;
  const std::uint64_t most = std::min<std::uint64_t>(
      Grid(plan.header.shape, plan.header.chunk).count() / 2, format::kMaxSharedBooks);
  return most * (container::kBookOverhead + 3 + 2 * kSampleAlphabet);
}

}  // namespace firn::plan
