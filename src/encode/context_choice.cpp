#include "encode/context_choice.hpp"

#include <algorithm>
#include <array>

namespace firn::encode {
namespace {

// Below these a table or a merger cannot save what it takes to find it.
constexpr std::uint64_t kTableWorth = 600 * kCostPerBit;
constexpr std::uint64_t kMisfitWorth = 20 * kCostPerBit;
constexpr std::uint64_t kQuickMisfitWorth = 64 * kCostPerBit, kQuickMisfitShare = 256;
constexpr std::uint64_t kMergerWorth = 100 * kCostPerBit;
constexpr std::uint64_t kManyTokens = 2048;
constexpr std::uint64_t kFineSteps = 16384;  // tokens that tell them apart
constexpr double kSignsAlike = 20, kSignsEven = 40, kSignsApart = 80;  // bits

constexpr std::uint64_t cost_of_bits(int bits) {
  return static_cast<std::uint64_t>(bits) * kCostPerBit;
}

// The tokens of one context, or of several.
struct Tokens {
  const std::uint32_t* counts;
  std::uint64_t total = 0;
  int last = kMaxToken;  // the largest magnitude of those that are no escapes

  explicit Tokens(const std::uint32_t* from) : counts(from) {
    std::uint32_t sum = 0;
    for (int i = 0; i < kTokenCount; ++i) sum += counts[i];
    total = sum;
    while (last > 0 && counts[token_index(last)] + counts[token_index(-last)] == 0) --last;
  }
  std::uint64_t cost(const TokenCosts& costs) const {
    std::uint64_t sum = std::uint64_t{counts[0]} * costs[0];
    for (int index = 32 - last; index <= 32 + last; ++index) {
      sum += std::uint64_t{counts[static_cast<std::size_t>(index)]} *
             costs[static_cast<std::size_t>(index)];
    }
    return sum;
  }
};

// Bits of the tokens with a perfect table, and how many more with one of both signs alike.
struct Entropy {
  double bits, symmetric;
};
Entropy entropy_of(const Tokens& tokens) {
  const auto times_log2 = [](std::uint32_t n) { return n == 0 ? 0 : n * rough_log2(n); };
  Entropy entropy{
      static_cast<double>(tokens.total) * rough_log2(static_cast<std::uint32_t>(tokens.total)), 0};
  entropy.bits -= times_log2(tokens.counts[token_index(kEscapeToken)]) +
                  times_log2(tokens.counts[token_index(0)]);
  for (int token = 1; token <= tokens.last; ++token) {
    const std::uint32_t a = tokens.counts[token_index(token)];
    const std::uint32_t b = tokens.counts[token_index(-token)];
    if (a + b == 0) continue;
    const double apart = times_log2(a) + times_log2(b);
    entropy.bits -= apart;
    entropy.symmetric += apart - (times_log2(a + b) - (a + b));
  }
  return entropy;
}

class Chooser {
 public:
  Chooser(const Tokens& tokens, int shift, const ExpectedDescription& expected,
          const ContextChoice* before, bool thoroughly, ContextChoice& best)
      : tokens_(tokens),
        shift_(shift),
        expected_(expected),
        before_(before),
        thoroughly_(thoroughly),
        best_(best) {}

  void choose() {
    best_.description.shift = shift_;
    const MemberChoice member = choose_member(tokens_.counts, tokens_.last);
    take_member(member.member, member.cost);
    consider_members(member.member);
    if (before_ != nullptr) consider_repetition();
    if (best_.cost() < kTableWorth) return;
    const Entropy entropy = entropy_of(tokens_);
    const auto perfect = static_cast<std::uint64_t>(std::max(0.0, entropy.bits * kCostPerBit));
    const std::uint64_t worth =
        thoroughly_ ? kMisfitWorth : kQuickMisfitWorth + perfect / kQuickMisfitShare;
    if (best_.cost() < perfect + worth) return;
    // Told from what is nearer, with signs apart if that is worth their codes. Where tokens are
    // many the time is there to try both when there is no telling.
    const bool thorough = thoroughly_ && tokens_.total >= kManyTokens;
    const std::uint64_t slack = thorough ? 8 : 1;
    const std::uint64_t of_member = member.cost - std::min(member.cost, perfect);
    const std::uint64_t of_before =
        before_ == nullptr ? ~std::uint64_t{0} / slack
                           : best_.repeated_cost - std::min(best_.repeated_cost, perfect);
    for (const bool symmetric : {true, false}) {
      if (thorough ? (symmetric ? entropy.symmetric > kSignsApart : entropy.symmetric < kSignsAlike)
                   : symmetric != (entropy.symmetric < kSignsEven)) {
        continue;
      }
      if (before_ != nullptr && of_before < slack * of_member) {
        consider_table(DescriptionKind::changed_table, before_->frequencies(),
                       kind_bits(DescriptionKind::changed_table), symmetric, 0);
      }
      if (of_member <= slack * of_before) {
        consider_table(
            DescriptionKind::table, family().frequencies[member.member],
            kind_bits(DescriptionKind::table) + expected_.member_bits(member.member, shift_),
            symmetric, member.member);
      }
    }
  }

 private:
  std::uint64_t description_cost(int member) const {
    return cost_of_bits(member == expected_.expected_member(shift_)
                            ? kind_bits(DescriptionKind::expected)
                            : kind_bits(DescriptionKind::member) +
                                  expected_.member_bits(member, shift_));
  }

  void take_member(int member, std::uint64_t token_cost) {
    best_.description.kind = member == expected_.expected_member(shift_) ? DescriptionKind::expected
                                                                         : DescriptionKind::member;
    best_.description.member = member;
    best_.token_cost = token_cost;
    best_.description_cost = description_cost(member);
  }

  // Beside the best-fitting member, those near it that are cheaper to describe.
  void consider_members(int fitting) {
    const auto consider = [&](int member) {
      if (member < 0 || member == best_.description.member) return;
      const std::uint64_t token_cost = tokens_.cost(family().costs[member]);
      if (token_cost + description_cost(member) < best_.cost()) take_member(member, token_cost);
    };
    consider(expected_.expected_member(shift_));
    if (thoroughly_ && fitting > 0) {
      const MemberPlace place = place_of_member(fitting);
      for (int near = -1; near <= 1; ++near) {
        consider(expected_.member_of_expected_shape(place.level + near));
      }
    }
    best_.member = best_.description.member;
    best_.own = false;
  }

  void consider_repetition() {
    const std::uint64_t token_cost = tokens_.cost(before_->costs());
    const std::uint64_t described = cost_of_bits(kind_bits(DescriptionKind::repeated));
    best_.repeated_cost = token_cost + described;
    if (best_.repeated_cost >= best_.cost()) return;
    best_.description.kind = DescriptionKind::repeated;
    best_.take_distribution_of(*before_);
    best_.token_cost = token_cost;
    best_.description_cost = described;
  }

  void consider_table(DescriptionKind kind, const Frequencies& reference, int bits, bool symmetric,
                      int member) {
    const StoredTable table = fit_stored_table(tokens_.counts, tokens_.total, tokens_.last,
                                               reference, symmetric, tokens_.total >= kFineSteps);
    Frequencies frequencies;
    if (!stored_table_frequencies(table, frequencies)) return;
    TokenCosts costs;
    build_token_costs(frequencies, costs);
    const std::uint64_t token_cost = tokens_.cost(costs);
    const std::uint64_t described = cost_of_bits(bits + stored_table_bits(table, reference));
    if (token_cost + described >= best_.cost()) return;
    best_.description.kind = kind;
    best_.description.member = member;
    best_.description.table = table;
    best_.own = true;
    best_.own_frequencies = frequencies;
    best_.own_costs = costs;
    best_.token_cost = token_cost;
    best_.description_cost = described;
  }

  const Tokens& tokens_;
  int shift_;
  const ExpectedDescription& expected_;
  const ContextChoice* before_;  // none for the first context
  bool thoroughly_;
  ContextChoice& best_;
};

}  // namespace

void choose_contexts(const std::uint32_t* counts, const ContextShifts& shifts, bool thoroughly,
                     ContextChoice* choices) {
  const auto tokens_of = [&](int c) { return Tokens(counts + c * kTokenCount); };
  const auto shift_of = [&](int c) { return int{shifts.shift[static_cast<std::size_t>(c)]}; };
  const ContextChoice* before = nullptr;
  ExpectedDescription expected;
  int chosen = -1;  // one that was chosen in advance
  for (int c = 0; c < shifts.context_count; ++c) {
    ContextChoice& choice = choices[c];
    Tokens tokens = tokens_of(c);
    if (tokens.total == 0) {
      choice.description.kind = DescriptionKind::unused;
      choice.token_cost = choice.description_cost = 0;
      expected.advance(choice.description);
      continue;
    }
    if (chosen != c) Chooser(tokens, shift_of(c), expected, before, thoroughly, choice).choose();

    // Contexts that follow may do with the same distribution, made for all of them.
    bool merged = false;
    std::array<std::uint32_t, kTokenCount> together;
    ExpectedDescription after = expected;
    after.advance(choice.description);
    const int end = thoroughly ? shifts.context_count : 0;
    for (int next = c + 1; next < end && choice.description.kind != DescriptionKind::repeated;
         ++next) {
      const Tokens more = tokens_of(next);
      if (more.total == 0) {
        choices[next].description.kind = DescriptionKind::unused;
        after.advance(choices[next].description);
        continue;
      }
      if (shift_of(next) != shift_of(c)) break;
      Chooser(more, shift_of(next), after, &choice, thoroughly, choices[next]).choose();
      if (!merged) chosen = next;
      if (choices[next].repeated_cost > choices[next].cost() + kMergerWorth) break;
      std::array<std::uint32_t, kTokenCount> sum;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = tokens.counts[i] + more.counts[i];
      const Tokens all(sum.data());
      ContextChoice both;
      Chooser(all, shift_of(c), expected, before, thoroughly, both).choose();
      const std::uint64_t apart =
          tokens.cost(choice.costs()) + choice.description_cost + choices[next].cost();
      if (both.cost() + cost_of_bits(kind_bits(DescriptionKind::repeated)) >= apart) break;
      choice = both;
      together = sum;
      tokens = Tokens(together.data());
      merged = true;
      chosen = -1;
      after = expected;
      after.advance(choice.description);
      for (int k = c + 1; k <= next; ++k) {
        Description repeated;
        repeated.kind =
            tokens_of(k).total == 0 ? DescriptionKind::unused : DescriptionKind::repeated;
        repeated.shift = shift_of(c);
        after.advance(repeated);
      }
    }
    if (merged) choice.token_cost = tokens_of(c).cost(choice.costs());
    expected.advance(choice.description);
    before = &choice;
  }
}

}  // namespace firn::encode
