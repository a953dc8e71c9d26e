#include "encode/context_descriptions.hpp"

#include <bit>

namespace firn::encode {
namespace {

constexpr int kShapeBits = 3, kShiftBits = 6;
constexpr std::uint32_t kNoShape = kShapeCount;  // member 0

// Two bits, 0 for the first kind; else a third that adds 3 to them.
void write_kind(DescriptionKind kind, BitWriter& out) {
  const auto number = static_cast<std::uint32_t>(kind);
  out.put(number <= 3 ? number : number - 3, 2);
  if (number > 0) out.put(number > 3 ? 1 : 0, 1);
}
DescriptionKind read_kind(BitReader& in) {
  const std::uint32_t low = in.get(2);
  return static_cast<DescriptionKind>(low == 0 ? 0 : low + 3 * in.get(1));
}

// A change of level: 0, or 1, its sign, and its magnitude behind as many zeros as it has bits after
// the first.
void write_level_change(int change, BitWriter& out) {
  out.put(change != 0 ? 1 : 0, 1);
  if (change == 0) return;
  out.put(change < 0 ? 1 : 0, 1);
  const auto size = static_cast<std::uint32_t>(change < 0 ? -change : change);
  const int more = static_cast<int>(std::bit_width(size)) - 1;
  out.put(1u << more, more + 1);
  out.put(size - (1u << more), more);
}
int level_change_bits(int change) {
  const auto size = static_cast<std::uint32_t>(change < 0 ? -change : change);
  return change == 0 ? 1 : 1 + 2 * static_cast<int>(std::bit_width(size));
}

// False when it is too large for any level.
bool read_level_change(BitReader& in, int* change) {
  *change = 0;
  if (in.get(1) == 0) return true;
  const bool negative = in.get(1) != 0;
  int more = 0;
  while (more < 5 && in.get(1) == 0) ++more;
  if (more == 5) return false;
  const int size = static_cast<int>(1u << more | in.get(more));
  *change = negative ? -size : size;
  return true;
}

}  // namespace

int ExpectedDescription::member_bits(int member, int shift) const {
  if (member == 0) return 1 + kShapeBits;
  const MemberPlace place = place_of_member(member);
  return (place.shape == shape_ ? 1 : 1 + kShapeBits) +
         level_change_bits(place.level - level_for(shift));
}

void ExpectedDescription::advance(const Description& description) {
  const bool unused = description.kind == DescriptionKind::unused;
  level_ = level_for(unused ? shift_ : description.shift);
  if (unused) return;
  shift_ = description.shift;
  const bool tells_member =
      description.kind == DescriptionKind::member || description.kind == DescriptionKind::table;
  if (!tells_member || description.member == 0) return;
  const MemberPlace place = place_of_member(description.member);
  shape_ = place.shape;
  level_ = place.level;
}

void ExpectedDescription::write(const Description& description, const Frequencies& before,
                                BitWriter& out) {
  const DescriptionKind kind = description.kind;
  if (kind != DescriptionKind::unused && description.shift != shift_) {
    write_kind(DescriptionKind::shift, out);
    const bool next = description.shift == shift_ + 1;
    out.put(next ? 0 : 1, 1);
    if (!next) out.put(static_cast<std::uint32_t>(description.shift), kShiftBits);
  }
  write_kind(kind, out);
  if (kind == DescriptionKind::member || kind == DescriptionKind::table) {
    const bool placed = description.member != 0;
    const MemberPlace place = placed ? place_of_member(description.member) : MemberPlace{};
    const bool same = placed && place.shape == shape_;
    out.put(same ? 0 : 1, 1);
    if (!same) out.put(placed ? static_cast<std::uint32_t>(place.shape) : kNoShape, kShapeBits);
    if (placed) write_level_change(place.level - level_for(description.shift), out);
  }
  if (description.has_table()) {
    write_stored_table(
        description.table,
        kind == DescriptionKind::table ? family().frequencies[description.member] : before, out);
  }
  advance(description);
}

bool ExpectedDescription::read_member(BitReader& in, int* member) {
  const auto shape = in.get(1) == 0 ? static_cast<std::uint32_t>(shape_) : in.get(kShapeBits);
  *member = 0;
  if (shape == kNoShape) return in.ok();
  int change = 0;
  if (shape > kNoShape || !read_level_change(in, &change)) return false;
  *member = member_at({static_cast<int>(shape), level_ + change});
  return in.ok() && *member > 0;
}

bool ExpectedDescription::read(BitReader& in, const Frequencies& before, Description& description) {
  DescriptionKind kind = read_kind(in);
  description.shift = shift_;
  if (kind == DescriptionKind::shift) {
    description.shift = in.get(1) == 0 ? shift_ + 1 : static_cast<int>(in.get(kShiftBits));
    if (description.shift >= 1 << kShiftBits) return false;
    kind = read_kind(in);
    if (kind == DescriptionKind::shift || kind == DescriptionKind::unused) return false;
  }
  description.kind = kind;
  level_ = level_for(description.shift);
  shift_ = description.shift;
  if (kind == DescriptionKind::expected) {
    description.member = member_at({shape_, level_});
    return in.ok() && description.member > 0;
  }
  if (kind == DescriptionKind::member || kind == DescriptionKind::table) {
    if (!read_member(in, &description.member)) return false;
    if (description.member != 0) {
      const MemberPlace place = place_of_member(description.member);
      shape_ = place.shape;
      level_ = place.level;
    }
  }
  if (!description.has_table()) return in.ok();
  return read_stored_table(
      in, kind == DescriptionKind::table ? family().frequencies[description.member] : before,
      description.table);
}

}  // namespace firn::encode
