// Distributions written into a stream, for what no member of the family fits: a table says how it
// differs from another distribution, its reference, in some 2 to 20 bytes. docs/format.md, "Stored
// table".
#pragma once

#include <array>
#include <cstdint>

#include "base/bits.hpp"
#include "encode/distributions.hpp"

namespace firn::encode {

// Frequencies are codes on a logarithmic scale of four steps an octave, or eight (code 0: absent).
struct StoredTable {
  bool symmetric;
  bool fine;     // eight steps
  int told;      // the largest |token| whose code is told; the others follow the reference
  int low_bits;  // of the Rice code of changes, 0 to 3
  // In the order of the stream: escape, 0, then 1, 2, ... (symmetric) or 1, -1, 2, -2, ...
  std::array<std::uint8_t, kTokenCount> codes;

  int size() const { return entries(kMaxToken); }
  int told_size() const { return entries(told); }
  int token(int position) const {
    if (position == 0) return kEscapeToken;
    if (symmetric) return position - 1;
    return position % 2 == 0 ? position / 2 : -(position / 2);
  }

 private:
  int entries(int last) const { return 2 + (symmetric ? last : 2 * last); }
};

// A table that tells these tokens (by index) from the reference in about the fewest bits, its own
// included; total > 0 is how many they are, none is beyond +-last.
StoredTable fit_stored_table(const std::uint32_t* counts, std::uint64_t total, int last,
                             const Frequencies& reference, bool symmetric, bool fine);
int stored_table_bits(const StoredTable& table, const Frequencies& reference);
void write_stored_table(const StoredTable& table, const Frequencies& reference, BitWriter& out);
// False when it is malformed or cut short.
bool read_stored_table(BitReader& in, const Frequencies& reference, StoredTable& table);
// Scales the weights to frequencies that sum to 2^kProbabilityBits. False when they cannot.
bool stored_table_frequencies(const StoredTable& table, Frequencies& frequencies);

}  // namespace firn::encode
