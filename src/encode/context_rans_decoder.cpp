#include <algorithm>
#include <array>
#include <cstring>

#include "base/bits.hpp"
#include "base/bytes.hpp"
#include "encode/context_descriptions.hpp"
#include "encode/context_rans.hpp"

namespace firn::encode {
namespace {

std::uint32_t read_state(BitReader& in) {
  const int bits = kLeastStateBits + static_cast<int>(in.get(kStateLengthBits));
  return 1u << bits | in.get(bits);
}

}  // namespace

bool RansReader::refill() {
  if (in_tail) return false;
  const auto left = static_cast<std::size_t>(end - next);
  tail.fill(0);
  std::memcpy(tail.data(), next, left);
  next = tail.data();
  end = limit = tail.data() + left;
  in_tail = true;
  return true;
}

bool ContextRansDecoder::start(std::span<const std::uint8_t> payload, simd::Target target) {
  target_ = target;
  RansReader& reader = reader_;
  reader.lanes = 0;
  reader.in_tail = false;
  reader.shifts = {};
  reader.table.fill(0);
  reader.next = reader.limit = reader.end = payload.data() + payload.size();
  if (payload.empty()) return true;

  ByteReader in(payload);
  const int log_lanes = in.read<std::uint8_t>();
  const int described = in.read<std::uint8_t>();
  if (!in.ok() || log_lanes < 3 || log_lanes > 5 || described > kMaxContexts) return false;
  const Family& members = family();
  reader.tables = members.decode.data();
  // Which table each context has: a member, or kFamilySize + the context that told it.
  std::array<Frequencies, kMaxContexts> stored;
  bool any_stored = false;
  const Frequencies* before = &members.frequencies[0];
  std::uint8_t table_before = 0;
  BitReader bits(in);
  ExpectedDescription expected;
  Description description;
  for (int c = 0; c < described; ++c) {
    if (!expected.read(bits, *before, description)) return false;
    if (description.kind == DescriptionKind::unused) continue;
    reader.shifts.shift[c] = static_cast<std::uint8_t>(description.shift);
    reader.shifts.max = std::max(reader.shifts.max, description.shift);
    if (description.has_table()) {
      if (!stored_table_frequencies(description.table, stored[c])) return false;
      before = &stored[c];
      table_before = static_cast<std::uint8_t>(kFamilySize + c);
      any_stored = true;
    } else if (description.kind != DescriptionKind::repeated) {
      before = &members.frequencies[description.member];
      table_before = static_cast<std::uint8_t>(description.member);
    }
    reader.table[c] = table_before;
  }
  reader.shifts.context_count = std::max(1, described);
  if (any_stored) {
    DecodeSlots* slots = slots_.reserve(kFamilySize + kMaxContexts);
    for (int c = 0; c < kMaxContexts; ++c) {  // those not described count as member 0
      const std::uint8_t table = reader.table[c];
      if (table == kFamilySize + c) {
        build_decode_slots(stored[c], slots[table]);
      } else if (table < kFamilySize && !copied_[table]) {
        slots[table] = members.decode[table];
        copied_[table] = true;
      }
    }
    reader.tables = slots;
  }
  reader.zeros.fill(0);
  reader.more_zeros.fill(0);
  reader.zero_groups = 0;
  for (int c = 0; c < described; ++c) {
    const DecodeSlot first = reader.tables[reader.table[c]][0];
    if (first >> 24 != 0) continue;
    const std::uint32_t frequency = first >> 12 & 0xFFF;
    reader.zeros[c] = static_cast<std::uint8_t>((frequency - 1) / 16);
    reader.more_zeros[c] = static_cast<std::uint8_t>(frequency - 16 * reader.zeros[c]);
  }
  const std::size_t lanes = std::size_t{1} << log_lanes;
  for (std::size_t lane = 0; lane < lanes; ++lane) reader.states[lane] = read_state(bits);
  if (!bits.finish()) return false;
  const std::span<const std::uint8_t> words = in.read_rest();
  if (!in.ok() || words.size() % 2 != 0) return false;
  reader.lanes = lanes;
  reader.next = words.data();
  reader.end = words.data() + words.size();
  if (words.size() < RansReader::kMargin) {
    reader.refill();
  } else {
    reader.limit = reader.end - RansReader::kMargin;
  }
  return true;
}

template <class Q>
bool ContextRansDecoder::decode(const std::uint8_t* contexts, std::size_t count, Q* residuals) {
  if (count == 0) return true;
  if (reader_.lanes == 0) return false;
  return context_rans_kernels<Q>(target_).decode(reader_, contexts, count, residuals);
}

bool ContextRansDecoder::finish() const {
  if (reader_.next != reader_.end) return false;
  for (std::size_t lane = 0; lane < reader_.lanes; ++lane) {
    if (reader_.states[lane] != kRansLow) return false;
  }
  return true;
}

template bool ContextRansDecoder::decode(const std::uint8_t*, std::size_t, std::int32_t*);
template bool ContextRansDecoder::decode(const std::uint8_t*, std::size_t, std::int64_t*);

}  // namespace firn::encode
