// How the head of a context rANS section says which distribution each context has.
// docs/format.md, "Descriptions of contexts".
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bits.hpp"
#include "encode/distributions.hpp"
#include "encode/stored_tables.hpp"

namespace firn::encode {

// Their numbers are part of the format; `shift` comes before one of the others.
enum class DescriptionKind : std::uint8_t {
  expected,  // the member that is expected
  unused,    // the context does not occur
  shift,
  member,
  repeated,       // the distribution of the context before
  table,          // told from a member
  changed_table,  // told from the distribution of the context before
};

struct Description {
  DescriptionKind kind;
  int shift;          // of all but `unused`
  int member;         // of `expected`, `member`, `table`
  StoredTable table;  // of `table`, `changed_table`

  bool has_table() const {
    return kind == DescriptionKind::table || kind == DescriptionKind::changed_table;
  }
};

// What a description is told from: the ones before. Contexts are in order of what goes on around a
// residual, so each is expected to have the shape of the one before, and to spread half an octave
// further.
class ExpectedDescription {
 public:
  // That of a context with this shift; -1 when there is none, here and below.
  int expected_member(int shift) const { return member_at({shape_, level_for(shift)}); }
  // What telling this member takes after its kind.
  int member_bits(int member, int shift) const;
  int member_of_expected_shape(int level) const { return member_at({shape_, level}); }

  // `before` is the distribution of the context before that occurs; member 0's for the first.
  void write(const Description& description, const Frequencies& before, BitWriter& out);
  // False when it is malformed or cut short.
  bool read(BitReader& in, const Frequencies& before, Description& description);
  // As if it had been written.
  void advance(const Description& description);

 private:
  // The level of a context with this shift, which takes two levels a bit.
  int level_for(int shift) const {
    return std::clamp(level_ + 1 - 2 * (shift - shift_), 0, kTopLevel);
  }
  bool read_member(BitReader& in, int* member);

  int shape_ = 2;
  int level_ = -1;
  int shift_ = 0;
};

// Bits of a kind.
constexpr int kind_bits(DescriptionKind kind) { return kind == DescriptionKind::expected ? 2 : 3; }

}  // namespace firn::encode
