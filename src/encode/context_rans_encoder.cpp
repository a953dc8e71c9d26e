#include <bit>
#include <cstring>
#include <numeric>

#include "base/bits.hpp"
#include "base/bytes.hpp"
#include "encode/context_choice.hpp"
#include "encode/context_descriptions.hpp"
#include "encode/context_rans.hpp"
#include "encode/context_tokens.hpp"
#include "encode/residual_tokens.hpp"

namespace firn::encode {
namespace {

// A lane's last state: how many bits it has beyond the least, and those below its first.
void write_state(std::uint32_t state, BitWriter& out) {
  const int bits = static_cast<int>(std::bit_width(state)) - 1;
  out.put(static_cast<std::uint32_t>(bits - kLeastStateBits), kStateLengthBits);
  out.put(state - (1u << bits), bits);
}

// A lane costs about 2 bytes beyond what it holds, so a small payload takes few of them.
constexpr std::size_t lanes_for(std::uint64_t payload_bytes) {
  return payload_bytes < 1024 ? 8 : payload_bytes < 8192 ? 16 : 32;
}

// A piece at a time: what compilers make of the whole is slow to start.
void copy(const EncodeTokens& from, EncodeTokens& to) {
  constexpr std::size_t kPiece = 8;
  static_assert(kTokenCount % kPiece == 0);
  for (std::size_t i = 0; i < from.size(); i += kPiece) {
    std::memcpy(&to[i], &from[i], kPiece * sizeof from[i]);
  }
}

// Of what is beyond the classes.
template <class Q>
double escaped_bits(const Q* residuals, const std::uint8_t* contexts, const Cell* cells,
                    std::size_t count, const ContextShifts& shifts) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (cells[i] % kTokenCount != token_index(kEscapeToken)) continue;
    const auto high = high_part(residuals[i], shifts.shift[contexts[i]]);
    bits += 6 + static_cast<unsigned>(std::bit_width(magnitude(high) + 1));
  }
  return static_cast<double>(bits);
}

// What tokens take by the entropies of their contexts.
constexpr int kEscapeBits = 20;  // of one, about
struct Entropies {
  double bits = 0, described = 0;
  std::size_t escapes = 0, total = 0;

  std::size_t bytes() const { return static_cast<std::size_t>((bits + described) / 8); }
  bool many_escapes() const {
    constexpr std::size_t kFew = 256;
    return escapes > total / kFew;
  }
  // What each takes.
  template <class Q>
  void look_at_escapes(const Q* residuals, const std::uint8_t* contexts, const Cell* cells,
                       std::size_t count, const ContextShifts& shifts) {
    bits += escaped_bits(residuals, contexts, cells, count, shifts) -
            kEscapeBits * static_cast<double>(escapes);
  }

  Entropies(const std::uint32_t* counts, const ContextShifts& shifts) {
    for (int c = 0; c < shifts.context_count; ++c) {
      const std::uint32_t* tokens = counts + c * kTokenCount;
      const std::uint32_t all = std::accumulate(tokens, tokens + kTokenCount, 0u);
      if (all == 0) continue;
      // Describing the distribution takes 2 bits for each token.
      std::uint32_t rest = all;
      const auto add = [&](int token, int raw) {
        const std::uint32_t seen = tokens[token_index(token)];
        if (seen == 0) return;
        rest -= seen;
        bits += static_cast<double>(seen) * (raw - rough_log2(seen));
        described += 2;
      };
      escapes += tokens[token_index(kEscapeToken)];
      add(kEscapeToken, kEscapeBits);
      add(0, extra_bits(0));
      for (int token = 1; token <= kMaxToken && rest != 0; ++token) {
        add(token, extra_bits(token));
        add(-token, extra_bits(token));
      }
      bits += static_cast<double>(all) * (shifts.shift[c] + rough_log2(all));
      described += 8;
      total += all;
    }
  }
};

// All bits that go raw.
template <class Q>
double raw_bits(const Q* residuals, const std::uint8_t* contexts, const Cell* cells,
                const std::uint32_t* counts, std::size_t count, const ContextShifts& shifts) {
  std::uint64_t bits = 0;
  bool escapes = false;
  for (int c = 0; c < shifts.context_count; ++c) {
    const std::uint32_t* tokens = counts + c * kTokenCount;
    escapes |= tokens[token_index(kEscapeToken)] != 0;
    for (int token = -kMaxToken; token <= kMaxToken; ++token) {
      const auto each = static_cast<unsigned>(extra_bits(token < 0 ? -token : token));
      bits += std::uint64_t{tokens[token_index(token)]} * (each + shifts.shift[c]);
    }
    bits += std::uint64_t{tokens[token_index(kEscapeToken)]} * shifts.shift[c];
  }
  return static_cast<double>(bits) +
         (escapes ? escaped_bits(residuals, contexts, cells, count, shifts) : 0);
}

}  // namespace

template <class Q>
std::size_t ContextRansEncoder::estimate(const Q* residuals, const std::uint8_t* contexts,
                                         std::size_t count, std::size_t one_in,
                                         simd::Target target) {
  if (count == 0) return 0;
  ContextShifts shifts;
  Cell* const cells = cells_.reserve(count);
  const std::uint32_t* counts =
      count_tokens(residuals, contexts, count, one_in, target, shifts, cells, histogram_);
  Entropies entropies(counts, shifts);
  if (entropies.many_escapes()) {
    if (entropies.total < count) return estimate(residuals, contexts, count, 1, target);
    entropies.look_at_escapes(residuals, contexts, cells, count, shifts);
  }
  entropies.bits *= static_cast<double>(count) / static_cast<double>(entropies.total);
  return entropies.bytes();
}

template <class Q>
std::size_t ContextRansEncoder::encode(const Q* residuals, const std::uint8_t* contexts,
                                       std::size_t count, std::span<const std::size_t> segments,
                                       simd::Target target, std::uint8_t* out,
                                       std::size_t capacity) {
  return encode_if_within(residuals, contexts, count, segments, target, out, capacity, 0, capacity)
      .size;
}

template <class Q>
ContextRansEncoder::Outcome ContextRansEncoder::encode_if_within(
    const Q* residuals, const std::uint8_t* contexts, std::size_t count,
    std::span<const std::size_t> segments, simd::Target target, std::uint8_t* out,
    std::size_t capacity, std::size_t least, std::size_t most) {
  if (count == 0) return {0, true};
  const ContextRansKernels<Q>& kernels = context_rans_kernels<Q>(target);
  RansWriter writer;
  Cell* cells = cells_.reserve(count);
  const std::uint32_t* counts =
      count_tokens(residuals, contexts, count, 0, target, writer.shifts, cells, histogram_);
  const int context_count = writer.shifts.context_count;
  // Distributions, or the best of them, are not looked for where entropies alone tell that it will
  // not be written.
  const bool limited = least > 0 || most < capacity;
  bool thorough = thorough_;
  if (limited && (thorough || least == 0)) {
    constexpr double kMore = 1.03, kDescriptions = 512;
    Entropies entropies(counts, writer.shifts);
    if (entropies.escapes > 0) {
      entropies.look_at_escapes(residuals, contexts, cells, count, writer.shifts);
    }
    const double bytes = entropies.bits / 8;
    if (least == 0 && bytes > static_cast<double>(most)) return {entropies.bytes(), false};
    thorough = thorough && bytes <= static_cast<double>(most) &&
               kMore * bytes + kDescriptions >= static_cast<double>(least);
  }

  // Distributions and the head of the payload.
  ContextChoice* choices = choices_.reserve(kMaxContexts);
  choose_contexts(counts, writer.shifts, thorough, choices);
  const Family& members = family();
  EncodeTokens* tables = tables_.reserve(kMaxContexts);
  writer.tables = tables;
  ByteWriter head(out + 1);
  head.write(static_cast<std::uint8_t>(context_count));
  BitWriter bits(head);
  ExpectedDescription expected;
  int before = -1;
  std::uint64_t cost = 0, token_cost = 0;
  for (int c = 0; c < context_count; ++c) {
    const ContextChoice& choice = choices[c];
    const Description& description = choice.description;
    expected.write(description, before < 0 ? members.frequencies[0] : choices[before].frequencies(),
                   bits);
    if (description.kind == DescriptionKind::unused) continue;
    if (description.kind == DescriptionKind::repeated) {
      copy(before < 0 ? members.encode[0] : tables[before], tables[c]);
    } else if (description.has_table()) {
      build_encode_tokens(choice.frequencies(), tables[c]);
    } else {
      copy(members.encode[description.member], tables[c]);
    }
    before = c;
    const std::uint32_t* tokens = counts + c * kTokenCount;
    const std::uint64_t total = std::accumulate(tokens, tokens + kTokenCount, std::uint64_t{0});
    cost += choice.cost() + total * writer.shifts.shift[c] * kCostPerBit;
    token_cost += choice.token_cost;
  }
  writer.lanes = lanes_for(cost / (8 * kCostPerBit));
  out[0] = static_cast<std::uint8_t>(std::countr_zero(writer.lanes));

  if (limited) {
    const double coded = static_cast<double>(token_cost) / kCostPerBit +
                         raw_bits(residuals, contexts, cells, counts, count, writer.shifts);
    // A lane's state begins with as many bits as it has at least.
    const auto states = static_cast<double>(writer.lanes * (kStateLengthBits + kLeastStateBits));
    const std::size_t size = 1 + head.size() + static_cast<std::size_t>((coded + states) / 8);
    if (size < least || size > most) return {size, false};
  }

  // Words from the end of `out` down, then moved behind the head.
  std::uint8_t* const end = out + capacity;
  writer.next = end;
  writer.states.fill(kRansLow);
  const std::size_t whole[] = {count};
  if (segments.empty()) segments = whole;
  std::size_t segment_end = count;
  for (std::size_t s = segments.size(); s-- > 0;) {
    const std::size_t begin = segment_end - segments[s];
    kernels.encode(writer, residuals + begin, contexts + begin, cells + begin, segments[s]);
    segment_end = begin;
  }
  for (std::size_t lane = 0; lane < writer.lanes; ++lane) write_state(writer.states[lane], bits);
  bits.finish();
  const auto words = static_cast<std::size_t>(end - writer.next);
  std::memmove(head.here(), writer.next, words);
  return {1 + head.size() + words, true};
}

#define FIRN_INSTANTIATE(Q)                                                                     \
  template std::size_t ContextRansEncoder::encode(const Q*, const std::uint8_t*, std::size_t,   \
                                                  std::span<const std::size_t>, simd::Target,   \
                                                  std::uint8_t*, std::size_t);                  \
  template ContextRansEncoder::Outcome ContextRansEncoder::encode_if_within(                    \
      const Q*, const std::uint8_t*, std::size_t, std::span<const std::size_t>, simd::Target,   \
      std::uint8_t*, std::size_t, std::size_t, std::size_t);                                    \
  template std::size_t ContextRansEncoder::estimate(const Q*, const std::uint8_t*, std::size_t, \
                                                    std::size_t, simd::Target);
FIRN_INSTANTIATE(std::int32_t)
FIRN_INSTANTIATE(std::int64_t)
#undef FIRN_INSTANTIATE

}  // namespace firn::encode
