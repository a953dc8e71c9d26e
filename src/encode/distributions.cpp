#include "encode/distributions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

namespace firn::encode {
namespace {

// A member of the family: weight(magnitude) = exp(-rate / 65536 * magnitude^(quarters / 4)), that
// is a generalised Gaussian with exponent 1/4, 1/2, 1, 3/2 or 2. Within a shape the rates are those
// whose mean magnitude climbs in half octaves from 2^-11 to 2^2.5 (larger residuals are shifted
// down first); members that quantise to the same frequencies as another are left out.
struct Member {
  int quarters;
  int rate;
};

constexpr std::array<Member, kFamilySize> kMembers = {{
    {0, 0},  // no weights: zero or an escape
    {1, 490983}, {1, 473079}, {1, 455535}, {1, 438369}, {1, 421595}, {1, 405228}, {1, 389278},
    {1, 373754}, {1, 358662}, {1, 344004}, {1, 329779}, {1, 315982}, {1, 302606}, {1, 289638},
    {1, 277063}, {1, 264863}, {1, 253017}, {1, 241500}, {1, 230285}, {1, 219344}, {1, 208647},
    {1, 198164}, {1, 187865}, {2, 440645}, {2, 419352}, {2, 398273}, {2, 377436}, {2, 356870},
    {2, 336607}, {2, 316681}, {2, 297123}, {2, 277966}, {2, 259238}, {2, 240964}, {2, 223166},
    {2, 205857}, {2, 189046}, {2, 172739}, {2, 156938}, {2, 141657}, {2, 126924}, {2, 112794},
    {2, 99360},  {2, 86747},  {2, 75093},  {2, 64518},  {4, 545113}, {4, 499687}, {4, 476974},
    {4, 454261}, {4, 431548}, {4, 408835}, {4, 386122}, {4, 363410}, {4, 340698}, {4, 317987},
    {4, 295278}, {4, 272573}, {4, 249875}, {4, 227194}, {4, 204545}, {4, 181959}, {4, 159497},
    {4, 137279}, {4, 115523}, {4, 94610},  {4, 75118},  {4, 57761},  {4, 43146},  {4, 31492},
    {4, 22611},  {4, 16102},  {4, 11442},  {6, 339978}, {6, 293842}, {6, 270546}, {6, 247017},
    {6, 223168}, {6, 198886}, {6, 174040}, {6, 148522}, {6, 122363}, {6, 96028},  {6, 70823},
    {6, 48831},  {6, 31759},  {6, 19836},  {6, 12098},  {6, 7273},   {6, 4316},   {6, 2569},
    {8, 246883}, {8, 222906}, {8, 198368}, {8, 173004}, {8, 146421}, {8, 118107}, {8, 87899},
    {8, 58126},  {8, 34349},  {8, 18850},  {8, 9904},   {8, 5080},   {8, 2573},   {8, 1285},
    {8, 636},
}};

// Where each shape's members begin, and the end.
constexpr std::array<int, kShapeCount + 1> kShapes = {1, 24, 47, 74, 92, kFamilySize};

// exp(-y) for y >= 0, by the series for y / 256 and eight squarings.
double exp_negative(double y) {
  if (y > 60.0) return 0.0;
  const double z = y / 256.0;
  double series = 1.0;
  for (int k = 8; k >= 1; --k) series = 1.0 + series * z / k;
  double result = 1.0 / series;
  for (int k = 0; k < 8; ++k) result = result * result;
  return result;
}

double power(double base, int quarters) {
  switch (quarters) {
    case 1:
      return std::sqrt(std::sqrt(base));
    case 2:
      return std::sqrt(base);
    case 4:
      return base;
    case 6:
      return base * std::sqrt(base);
    default:
      return base * base;
  }
}

// A class counts as its size times the weight of its centre; class 32 stands for all beyond.
double class_weight(const Member& member, int magnitude_token) {
  const int bits = extra_bits(magnitude_token);
  const double size = static_cast<double>(1 << bits);
  const double centre = first_magnitude(magnitude_token) + ((1 << bits) - 1) / 2.0;
  return size * exp_negative(member.rate / 65536.0 * power(centre, member.quarters));
}

Frequencies member_frequencies(const Member& member) {
  if (member.quarters == 0) {
    Frequencies frequencies{};
    frequencies[token_index(kEscapeToken)] = 1;
    frequencies[token_index(0)] = kProbabilityScale - 1;
    return frequencies;
  }
  std::array<double, kMaxToken + 2> weight;
  for (int token = 0; token <= kMaxToken + 1; ++token) weight[token] = class_weight(member, token);
  double total = weight[0];
  for (int token = 1; token <= kMaxToken + 1; ++token) total = total + 2.0 * weight[token];

  const double scale = static_cast<double>(kProbabilityScale);
  Frequencies frequencies{};
  int used = 0;
  int last = 0;
  for (int token = 1; token <= kMaxToken; ++token) {
    int frequency = static_cast<int>(std::floor(weight[token] * scale / total + 0.5));
    if (token == 1 && frequency < 1) frequency = 1;
    if (frequency < 1) break;
    frequencies[token_index(token)] = static_cast<std::uint16_t>(frequency);
    frequencies[token_index(-token)] = static_cast<std::uint16_t>(frequency);
    used += 2 * frequency;
    last = token;
  }
  double tail = 0.0;
  for (int token = last + 1; token <= kMaxToken + 1; ++token) tail = tail + 2.0 * weight[token];
  int escape = static_cast<int>(std::floor(tail * scale / total + 0.5));
  if (escape < 1) escape = 1;
  frequencies[token_index(kEscapeToken)] = static_cast<std::uint16_t>(escape);
  frequencies[token_index(0)] =
      static_cast<std::uint16_t>(static_cast<int>(kProbabilityScale) - used - escape);
  return frequencies;
}

// Mean |token| in units of 1 / kProbabilityScale, the escape taken for the class beyond the last.
std::uint32_t mean_magnitude(const Frequencies& frequencies) {
  std::uint32_t sum = 0;
  for (int index = 0; index < kTokenCount; ++index) {
    const auto magnitude = static_cast<std::uint32_t>(index < 32 ? 32 - index : index - 32);
    sum += frequencies[index] * magnitude;
  }
  return sum;
}

int bit_length(std::uint32_t value) { return static_cast<int>(std::bit_width(value)); }

}  // namespace

// By squaring a 1.31 fixed-point number eleven times.
std::uint32_t scaled_log2(std::uint32_t value) {
  const int exponent = bit_length(value) - 1;
  std::uint64_t x = static_cast<std::uint64_t>(value) << (31 - exponent);
  std::uint32_t result = static_cast<std::uint32_t>(exponent);
  for (int bit = 1; bit < kCostPerBit; bit *= 2) {
    x = (x * x) >> 31;
    result <<= 1;
    if (x >= (std::uint64_t{1} << 32)) {
      result |= 1;
      x >>= 1;
    }
  }
  return result;
}

namespace {

std::uint16_t cost_of_frequency(std::uint32_t frequency) {
  static const auto costs = [] {
    std::array<std::uint16_t, kProbabilityScale> table{};
    for (std::uint32_t f = 1; f < kProbabilityScale; ++f) {
      table[f] = static_cast<std::uint16_t>(kProbabilityBits * kCostPerBit - scaled_log2(f));
    }
    return table;
  }();
  return costs[frequency];
}

// Token 0 has the first slots, so that a decoder can tell it by a comparison; the others follow in
// their order.
int index_in_slot_order(int place) {
  const int zero = token_index(0);
  return place == 0 ? zero : place <= zero ? place - 1 : place;
}

}  // namespace

void build_decode_slots(const Frequencies& frequencies, DecodeSlots& slots) {
  // In blocks of 8, whose overrun the next token overwrites: most runs are short.
  std::uint32_t begin = 0;
  for (int place = 0; place < kTokenCount; ++place) {
    const int index = index_in_slot_order(place);
    const std::uint32_t frequency = frequencies[index];
    const std::uint32_t end = begin + frequency;
    const DecodeSlot slot = static_cast<std::uint32_t>(index - 32) << 24 | frequency << 12 | begin;
    std::size_t i = begin;
    for (; i < end && i + 8 <= slots.size(); i += 8) {
      for (std::size_t k = 0; k < 8; ++k) slots[i + k] = slot;
    }
    for (; i < end; ++i) slots[i] = slot;
    begin = end;
  }
}

void build_encode_tokens(const Frequencies& frequencies, EncodeTokens& tokens) {
  std::uint32_t start = 0;
  for (int place = 0; place < kTokenCount; ++place) {
    const int index = index_in_slot_order(place);
    const std::uint32_t frequency = frequencies[index];
    if (frequency == 0) {
      tokens[index] = {0, kTokenAbsent};
      continue;
    }
    const int token = index < 32 ? 32 - index : index - 32;
    const std::uint32_t flag = token >= kDirectTokens ? kTokenHasExtraBits : 0;
    const std::uint32_t complement = kProbabilityScale - frequency;
    if (frequency == 1) {
      // (state * (2^32 - 1)) >> 32 is state - 1; the bias makes up for the missing complement.
      tokens[index] = {0xFFFFFFFFu, (start + kProbabilityScale - 1) | complement << 13 | flag};
    } else {
      const int log = bit_length(frequency - 1);  // ceil(log2(frequency)), at least 1
      const std::uint64_t numerator = (std::uint64_t{1} << (log + 31)) + frequency - 1;
      tokens[index] = {static_cast<std::uint32_t>(numerator / frequency),
                       start | complement << 13 | static_cast<std::uint32_t>(log - 1) << 25 | flag};
    }
    start += frequency;
  }
}

void build_token_costs(const Frequencies& frequencies, TokenCosts& costs) {
  const std::uint32_t escape = cost_of_frequency(frequencies[token_index(kEscapeToken)]);
  for (int index = 0; index < kTokenCount; ++index) {
    if (frequencies[index] != 0) {
      costs[index] = cost_of_frequency(frequencies[index]);
    } else {
      const int token = index < 32 ? 32 - index : index - 32;
      costs[index] = static_cast<std::uint16_t>(escape + escape_bits(token) * kCostPerBit);
    }
  }
}

const Family& family() {
  static const std::unique_ptr<const Family> instance = [] {
    auto built = std::make_unique<Family>();
    for (int i = 0; i < kFamilySize; ++i) {
      built->frequencies[i] = member_frequencies(kMembers[i]);
      build_token_costs(built->frequencies[i], built->costs[i]);
      built->spread[i] = mean_magnitude(built->frequencies[i]);
      build_encode_tokens(built->frequencies[i], built->encode[i]);
      build_decode_slots(built->frequencies[i], built->decode[i]);
    }
    return built;
  }();
  return *instance;
}

MemberPlace place_of_member(int member) {
  int shape = 0;
  while (member >= kShapes[static_cast<std::size_t>(shape) + 1]) ++shape;
  return {shape, kTopLevel + 1 - (kShapes[static_cast<std::size_t>(shape) + 1] - member)};
}

int member_at(MemberPlace place) {
  const int end = kShapes[static_cast<std::size_t>(place.shape) + 1];
  const int member = end - (kTopLevel + 1 - place.level);
  return place.level <= kTopLevel && member >= kShapes[static_cast<std::size_t>(place.shape)]
             ? member
             : -1;
}

MemberChoice choose_member(const std::uint32_t* counts, int last) {
  // Members are symmetric, so magnitudes will do, of those that occur; most members drop out after
  // a few of them.
  struct Magnitude {
    std::size_t index;
    std::uint64_t count;
  };
  std::array<Magnitude, kMaxToken + 1> seen;
  seen[0] = {token_index(0), counts[token_index(0)]};
  std::size_t different = 1;
  const std::uint64_t escapes = counts[token_index(kEscapeToken)];
  std::uint64_t total = escapes + seen[0].count, sum = escapes * (kMaxToken + 1);
  for (int token = 1; token <= last; ++token) {
    const std::uint64_t count =
        std::uint64_t{counts[token_index(token)]} + counts[token_index(-token)];
    seen[different] = {token_index(token), count};
    different += count != 0;
    total += count;
    sum += count * static_cast<std::uint64_t>(token);
  }
  const Family& members = family();
  MemberChoice choice{0, ~std::uint64_t{0}};
  const auto consider = [&](int member) {
    const TokenCosts& costs = members.costs[member];
    std::uint64_t cost = escapes * costs[token_index(kEscapeToken)];
    for (std::size_t i = 0; i < different && cost < choice.cost; ++i) {
      cost += seen[i].count * costs[seen[i].index];
    }
    if (cost >= choice.cost) return false;
    choice = {member, cost};
    return true;
  };
  const auto spread =
      static_cast<std::uint32_t>(sum * kProbabilityScale / std::max<std::uint64_t>(total, 1));
  consider(0);
  // Those in the middle first: where they fit, others are not looked at closely.
  constexpr std::uint64_t kFar = 16;
  for (const std::size_t shape : {2, 1, 3, 0, 4}) {
    // From the member that spreads as far, on as long as that helps.
    const auto first = members.spread.begin() + kShapes[shape];
    const auto end = members.spread.begin() + kShapes[shape + 1];
    const int nearest = static_cast<int>(std::min(std::lower_bound(first, end, spread), end - 1) -
                                         members.spread.begin());
    const MemberChoice before = choice;
    choice.cost += choice.cost / kFar;
    if (consider(nearest)) {
      for (int member = nearest - 1; member >= kShapes[shape] && consider(member);) --member;
      for (int member = nearest + 1; member < kShapes[shape + 1] && consider(member);) ++member;
    }
    if (before.cost <= choice.cost) choice = before;
  }
  return choice;
}

}  // namespace firn::encode
