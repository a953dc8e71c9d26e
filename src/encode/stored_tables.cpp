#include "encode/stored_tables.hpp"

#include <algorithm>
#include <bit>

namespace firn::encode {
namespace {

constexpr int kToldBits = 5, kLowBitsBits = 2;
constexpr int kHeadBits = kToldBits + 1 + 1 + kLowBitsBits;
constexpr int kMaxLowBits = (1 << kLowBitsBits) - 1;

// Weights: those below 2^(step_bits + 1) are their own codes, then 2^step_bits codes an octave.
constexpr int step_bits(bool fine) { return fine ? 3 : 2; }
constexpr int max_code(bool fine) { return (14 - step_bits(fine)) << step_bits(fine); }  // of 8192

constexpr std::uint32_t weight_of_code(int code, bool fine) {
  const int steps = 1 << step_bits(fine);
  if (code < steps) return static_cast<std::uint32_t>(code);
  return static_cast<std::uint32_t>(steps + code % steps) << (code / steps - 1);
}

// To the nearest.
int code_of_weight(std::uint32_t weight, bool fine) {
  const int bits = step_bits(fine);
  if (weight < 2u << bits) return static_cast<int>(weight);
  const int below = static_cast<int>(std::bit_width(weight)) - bits - 1;
  const int code = ((below + 1) << bits) + static_cast<int>(weight >> below & ((1u << bits) - 1));
  const bool up = (weight & ((1u << below) - 1)) > (1u << below) / 2;
  return std::min(up ? code + 1 : code, max_code(fine));
}

// A signed change, folded to a number for a Rice code of `low_bits`: its bits above these as so
// many ones and a zero, then these.
int fold(int change) { return change < 0 ? -2 * change - 1 : 2 * change; }
int change_bits(int change, int low_bits) { return (fold(change) >> low_bits) + 1 + low_bits; }

// The code that is expected at each position: the reference's, and as much more as the one before
// had, of the same sign if the table tells signs apart. Nothing is expected of the escape's
// neighbour.
class ExpectedCodes {
 public:
  ExpectedCodes(const StoredTable& table, const Frequencies& reference)
      : most_(max_code(table.fine)), symmetric_(table.symmetric) {
    for (int i = 0; i < table.size(); ++i) {
      of_reference_[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(
          code_of_weight(reference[token_index(table.token(i))], table.fine));
    }
  }

  void rewind() { excess_ = {}; }
  int next(int position) const {
    return std::clamp(reference_code(position) + excess_[slot(position)], 0, most_);
  }
  // Of a position that is not told: a token that the reference lacks is absent, others are not.
  int untold(int position) const {
    return reference_code(position) == 0 ? 0 : std::max(1, next(position));
  }
  // The code that is there; of absent tokens nothing is learned.
  void take(int position, int code) {
    if (code == 0 || position == 0) return;
    excess_[slot(position)] = code - reference_code(position);
    if (position == 1) excess_[1] = excess_[0];
  }

 private:
  int reference_code(int position) const {
    return of_reference_[static_cast<std::size_t>(position)];
  }
  std::size_t slot(int position) const {
    return !symmetric_ && position > 1 && position % 2 != 0 ? 1 : 0;
  }

  int most_;
  bool symmetric_;
  std::array<std::uint8_t, kTokenCount> of_reference_;
  std::array<int, 2> excess_{};
};

// What codes cost, in 1/kCostPerBit bit.
struct CodePrices {
  static constexpr int kCodes = max_code(true) + 1;
  std::array<std::int64_t, kCodes> token;   // one with this code, the weights' sum being the scale
  std::array<std::int64_t, kCodes> weight;  // as a number
  explicit CodePrices(bool fine) : token{}, weight{} {
    for (int code = 1; code <= max_code(fine); ++code) {
      const std::uint32_t value = weight_of_code(code, fine);
      token[static_cast<std::size_t>(code)] =
          kProbabilityBits * kCostPerBit - static_cast<std::int64_t>(scaled_log2(value));
      weight[static_cast<std::size_t>(code)] = value;
    }
  }
};
const CodePrices& code_prices(bool fine) {
  static const CodePrices coarse_prices(false), fine_prices(true);
  return fine ? fine_prices : coarse_prices;
}

// The best codes for some tokens. Each is chosen for the bits that it takes and those of its
// tokens, as if what follows were told as well; then where to stop telling.
class TableFit {
 public:
  TableFit(const std::uint32_t* counts, std::uint64_t total, int last, const Frequencies& reference,
           bool symmetric, bool fine)
      : prices_(code_prices(fine)) {
    table_.symmetric = symmetric;
    table_.fine = fine;
    // A weight takes its part of the scale from all tokens: 1 / ln 2 bits for each 4,096th.
    per_weight_ = static_cast<std::int64_t>(total * 2955 / kProbabilityScale);
    int top = kMaxToken;
    while (top > last && reference[token_index(top)] + reference[token_index(-top)] == 0) --top;
    size_ = 2 + (symmetric ? top : 2 * top);
    const double scale = static_cast<double>(kProbabilityScale) / static_cast<double>(total);
    for (int i = 0; i < size_; ++i) {
      const int token = table_.token(i);
      std::uint32_t count = counts[token_index(token)];
      const bool both = symmetric && token > 0;
      if (both) count += counts[token_index(-token)];
      Entry& entry = entries_[static_cast<std::size_t>(i)];
      entry.count = count;
      entry.per_weight = both ? 2 * per_weight_ : per_weight_;
      // Few tokens are escapes, so one takes about 11 bits.
      entry.absent =
          std::int64_t{count} * kCostPerBit * (11 + escape_bits(token < 0 ? -token : token));
      const double weight = static_cast<double>(count) * (both ? 0.5 * scale : scale);
      entry.ideal =
          count == 0 && i > 0
              ? 0
              : code_of_weight(std::max(1u, static_cast<std::uint32_t>(weight + 0.5)), fine);
    }
    rest_[static_cast<std::size_t>(size_)] = 0;
    for (int i = size_; i-- > 0;) {
      const Entry& entry = entries_[static_cast<std::size_t>(i)];
      rest_[static_cast<std::size_t>(i)] =
          rest_[static_cast<std::size_t>(i) + 1] + price(entry, entry.ideal);
    }
  }

  StoredTable best(const Frequencies& reference) {
    ExpectedCodes expected(table_, reference);
    table_.low_bits = 1;
    const std::int64_t least = choose_codes(expected, INT64_MAX);
    StoredTable best = table_;
    table_.low_bits = best_low_bits(expected);
    if (table_.low_bits != 1 && choose_codes(expected, least) < least) best = table_;
    expected.rewind();
    for (int i = 0; i < best.told_size(); ++i) {
      expected.take(i, best.codes[static_cast<std::size_t>(i)]);
    }
    for (int i = best.told_size(); i < best.size(); ++i) {
      best.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(expected.untold(i));
    }
    return best;
  }

 private:
  struct Entry {
    std::int64_t count;       // of one sign or both, as they share a code
    std::int64_t per_weight;  // price of each unit of weight
    std::int64_t absent;      // price of code 0
    int ideal;                // nearest to the frequency
  };

  std::int64_t price(const Entry& entry, int code) const {
    const auto c = static_cast<std::size_t>(code);
    return code == 0 ? entry.absent
                     : entry.count * prices_.token[c] + prices_.weight[c] * entry.per_weight;
  }

  int choose_code(int position, int expected, std::int64_t* cost) const {
    const Entry& entry = entries_[static_cast<std::size_t>(position)];
    const auto with_bits = [&](int code) {
      return price(entry, code) +
             change_bits(code - expected, table_.low_bits) * std::int64_t{kCostPerBit};
    };
    int code = entry.ideal;
    *cost = with_bits(code);
    const auto consider = [&](int other) {
      const std::int64_t cost_of_other = with_bits(other);
      if (cost_of_other >= *cost) return false;
      *cost = cost_of_other;
      code = other;
      return true;
    };
    if (code == expected) return code;
    // From the ideal towards the expected, as long as that helps.
    const int step = expected < code ? -1 : 1;
    for (int next = code; next != expected;) {
      next += step;
      if ((next == 0 && position == 0) || !consider(next)) break;
    }
    if (position > 0) {
      consider(expected);
      consider(0);
    }
    return code;
  }

  // For the changes that are told.
  int best_low_bits(ExpectedCodes& expected) const {
    std::array<int, kMaxLowBits + 1> bits{};
    expected.rewind();
    for (int i = 0; i < table_.told_size(); ++i) {
      const int code = table_.codes[static_cast<std::size_t>(i)];
      const int change = code - expected.next(i);
      for (int low = 0; low <= kMaxLowBits; ++low) {
        bits[static_cast<std::size_t>(low)] += change_bits(change, low);
      }
      expected.take(i, code);
    }
    return static_cast<int>(std::min_element(bits.begin(), bits.end()) - bits.begin());
  }

  // Sets codes and `told` for these low bits; returns what it costs, or no less than `least`.
  std::int64_t choose_codes(ExpectedCodes& expected, std::int64_t least) {
    expected.rewind();
    std::int64_t told_cost = kHeadBits * kCostPerBit;
    const int pair = table_.symmetric ? 1 : 2;
    bool changed = true;  // since the last place to stop; without, that one is no worse
    for (int i = 0;; ++i) {
      if (changed && i >= 2 && (i - 2) % pair == 0) {
        changed = false;
        std::int64_t cost = told_cost;
        int k = i;
        for (; k < size_ && cost + rest_[static_cast<std::size_t>(k)] < least; ++k) {
          cost += price(entries_[static_cast<std::size_t>(k)], expected.untold(k));
        }
        if (k == size_ && cost < least) {
          least = cost;
          table_.told = (i - 2) / pair;
        }
      }
      if (i == size_ || told_cost + rest_[static_cast<std::size_t>(i)] >= least) return least;
      std::int64_t cost = 0;
      const int next = expected.next(i);
      const int code = choose_code(i, next, &cost);
      changed |= code != next;
      table_.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(code);
      expected.take(i, code);
      told_cost += cost;
    }
  }

  const CodePrices& prices_;
  int size_;  // positions beyond are absent from tokens and reference
  std::int64_t per_weight_;
  StoredTable table_;
  std::array<Entry, kTokenCount> entries_;
  std::array<std::int64_t, kTokenCount + 1> rest_;  // price of these and all after, if ideal
};

}  // namespace

StoredTable fit_stored_table(const std::uint32_t* counts, std::uint64_t total, int last,
                             const Frequencies& reference, bool symmetric, bool fine) {
  return TableFit(counts, total, last, reference, symmetric, fine).best(reference);
}

int stored_table_bits(const StoredTable& table, const Frequencies& reference) {
  int bits = kHeadBits;
  ExpectedCodes expected(table, reference);
  for (int i = 0; i < table.told_size(); ++i) {
    const int code = table.codes[static_cast<std::size_t>(i)];
    bits += change_bits(code - expected.next(i), table.low_bits);
    expected.take(i, code);
  }
  return bits;
}

void write_stored_table(const StoredTable& table, const Frequencies& reference, BitWriter& out) {
  out.put(static_cast<std::uint32_t>(table.told), kToldBits);
  out.put(table.symmetric ? 1 : 0, 1);
  out.put(table.fine ? 1 : 0, 1);
  out.put(static_cast<std::uint32_t>(table.low_bits), kLowBitsBits);
  ExpectedCodes expected(table, reference);
  for (int i = 0; i < table.told_size(); ++i) {
    const int code = table.codes[static_cast<std::size_t>(i)];
    const auto folded = static_cast<std::uint32_t>(fold(code - expected.next(i)));
    for (std::uint32_t k = folded >> table.low_bits; k > 0; --k) out.put(1, 1);
    out.put(0, 1);
    out.put(folded & ((1u << table.low_bits) - 1), table.low_bits);
    expected.take(i, code);
  }
}

bool read_stored_table(BitReader& in, const Frequencies& reference, StoredTable& table) {
  table.told = static_cast<int>(in.get(kToldBits));
  table.symmetric = in.get(1) != 0;
  table.fine = in.get(1) != 0;
  table.low_bits = static_cast<int>(in.get(kLowBitsBits));
  const int most = max_code(table.fine);
  ExpectedCodes expected(table, reference);
  for (int i = 0; i < table.told_size(); ++i) {
    int high = 0;
    while (in.ok() && in.get(1) != 0) {
      if (++high > 2 * most) return false;
    }
    const int folded = high << table.low_bits | static_cast<int>(in.get(table.low_bits));
    const int code = expected.next(i) + (folded % 2 != 0 ? -(folded + 1) / 2 : folded / 2);
    if (!in.ok() || code < 0 || code > most) return false;
    table.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(code);
    expected.take(i, code);
  }
  for (int i = table.told_size(); i < table.size(); ++i) {
    table.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(expected.untold(i));
  }
  return table.codes[0] > 0;
}

bool stored_table_frequencies(const StoredTable& table, Frequencies& frequencies) {
  std::array<std::uint32_t, kTokenCount> weights{};
  std::uint32_t total = 0;
  for (int i = 0; i < table.size(); ++i) {
    const int token = table.token(i);
    const std::uint32_t weight =
        weight_of_code(table.codes[static_cast<std::size_t>(i)], table.fine);
    weights[token_index(token)] = weight;
    total += weight;
    if (table.symmetric && token > 0) {
      weights[token_index(-token)] = weight;
      total += weight;
    }
  }
  frequencies.fill(0);
  std::uint32_t sum = 0;
  std::size_t largest = 0;
  for (std::size_t index = 0; index < weights.size(); ++index) {
    if (weights[index] == 0) continue;
    const std::uint32_t frequency =
        std::max(1u, (weights[index] * kProbabilityScale + total / 2) / total);
    frequencies[index] = static_cast<std::uint16_t>(frequency);
    sum += frequency;
    if (frequencies[index] > frequencies[largest]) largest = index;
  }
  const std::int64_t rest = std::int64_t{kProbabilityScale} - sum + frequencies[largest];
  if (rest < 1 || rest >= kProbabilityScale) return false;
  frequencies[largest] = static_cast<std::uint16_t>(rest);
  return true;
}

}  // namespace firn::encode
