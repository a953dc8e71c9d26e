// The encoder's policy: which distribution each context gets, so that descriptions and tokens
// together take about the fewest bits. Not part of the format.
#pragma once

#include <cstdint>

#include "encode/context_descriptions.hpp"
#include "encode/context_rans.hpp"

namespace firn::encode {

struct ContextChoice {
  Description description;
  // Whose distribution it has: a member's, or one of its own.
  int member = 0;
  bool own = false;
  Frequencies own_frequencies;
  TokenCosts own_costs;
  // In 1/kCostPerBit: its tokens without raw bits, and the description without a shift.
  std::uint64_t token_cost, description_cost;
  std::uint64_t repeated_cost;  // all of it with the distribution of the context before

  std::uint64_t cost() const { return token_cost + description_cost; }
  const Frequencies& frequencies() const {
    return own ? own_frequencies : family().frequencies[member];
  }
  const TokenCosts& costs() const { return own ? own_costs : family().costs[member]; }
  void take_distribution_of(const ContextChoice& other) {
    member = other.member;
    own = other.own;
    if (!own) return;
    own_frequencies = other.own_frequencies;
    own_costs = other.own_costs;
  }
};

// For tokens counted by cell; fills choices[0] to [shifts.context_count - 1]. Looking thoroughly
// takes several times as long and saves some 0.1 %.
void choose_contexts(const std::uint32_t* counts, const ContextShifts& shifts, bool thoroughly,
                     ContextChoice* choices);

}  // namespace firn::encode
