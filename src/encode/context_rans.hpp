// Entropy coder for signed residuals with contexts: every residual is coded with the distribution
// that its context (0 to 63, given by the caller) names, by interleaved rANS. A context's
// distribution is a member of the static family or a short stored table, whichever is cheaper in
// exact bits. Layout of the payload: docs/format.md, "Context rANS section".
//
// The caller's contexts may depend on residuals decoded earlier. So the encoder takes whole arrays,
// the decoder is pulled piece by piece:
//
//   const std::size_t size = encoder.encode(residuals, contexts, count, {}, target, out);
//   ...
//   decoder.start(payload, target) && decoder.decode(contexts, 32, residuals) && ... &&
//   decoder.finish()
//
// Residuals are dealt to the lanes in turn. Pieces of a multiple of kRansGroup leave no trace; a
// piece of another size ends a segment, and the encoder must be told the same segments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/scratch.hpp"
#include "base/simd_target.hpp"
#include "encode/distributions.hpp"

namespace firn::encode {

inline constexpr int kMaxContexts = 64;
inline constexpr std::size_t kRansGroup = 32;  // the most lanes

// Bytes that encode may write for count residuals of type Q (std::int32_t or std::int64_t).
template <class Q>
constexpr std::size_t context_rans_capacity(std::size_t count) {
  // Per residual: 12 bits of token, 7 of escape header, 32 or 64 of value, and rounding.
  return (sizeof(Q) == 4 ? 7 : 11) * count + 8192;
}

struct ContextShifts;
struct ContextChoice;

// Reusable; keeps its working memory. One thread at a time.
class ContextRansEncoder {
 public:
  // How hard to look for the distributions of contexts; thoroughly unless told.
  void set_thorough(bool thorough) { thorough_ = thorough; }

  // contexts[i] < kMaxContexts. `segments` sums to count; empty means one segment. Writes to `out`
  // and returns the size, the same for every target. `capacity` is the room there:
  // context_rans_capacity<Q>(count), or that of a smaller number plus 1/64 byte for each further
  // residual when those are 0 and have a context to themselves.
  template <class Q>
  std::size_t encode(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                     std::span<const std::size_t> segments, simd::Target target, std::uint8_t* out,
                     std::size_t capacity);
  template <class Q>
  std::size_t encode(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                     std::span<const std::size_t> segments, simd::Target target,
                     std::uint8_t* out) {
    return encode(residuals, contexts, count, segments, target, out,
                  context_rans_capacity<Q>(count));
  }

  // The same only if it takes from `least` to `most` bytes, as is seen before anything is coded;
  // else returns what it would take, with a `least` of 0 only about. `written`: whether it is.
  struct Outcome {
    std::size_t size;
    bool written;
  };
  template <class Q>
  Outcome encode_if_within(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                           std::span<const std::size_t> segments, simd::Target target,
                           std::uint8_t* out, std::size_t capacity, std::size_t least,
                           std::size_t most);

  // About what encode() would return, from the entropies of the contexts: for comparisons. Of many
  // residuals one block in so many is looked at.
  template <class Q>
  std::size_t estimate(const Q* residuals, const std::uint8_t* contexts, std::size_t count,
                       std::size_t one_in, simd::Target target);

 private:
  bool thorough_ = true;
  ScratchArray<std::uint16_t> cells_;
  ScratchArray<std::uint32_t> histogram_;
  ScratchArray<ContextChoice> choices_;
  ScratchArray<EncodeTokens> tables_;
};

// ---- What the kernels share; of no interest to callers ----------------------------------------

// A lane's state stays in [2^15, 2^31) between steps; it moves 16 bits at a time.
inline constexpr std::uint32_t kRansLow = 1u << 15;
inline constexpr int kRawPieceBits = 15;  // raw bits that one step can move
// In the head: how many bits the state has beyond the least, then those below its first.
inline constexpr int kStateLengthBits = 4, kLeastStateBits = 15;

// By context: how many low bits of its residuals go raw; how many contexts there may be.
struct ContextShifts {
  std::array<std::uint8_t, kMaxContexts> shift{};
  int context_count = kMaxContexts;
  int max = 0;
};

// A residual's place in the encoder's tables: 64 * context + token index.
using Cell = std::uint16_t;

struct RansWriter {
  alignas(64) std::array<std::uint32_t, kRansGroup> states;
  ContextShifts shifts;
  const EncodeTokens* tables;  // by context
  std::size_t lanes;
  std::uint8_t* next;  // moves down; at least 16 bytes below it are writable
};

// next <= limit: the vector code may read kMargin bytes from next on. Near the end of the payload
// the reader moves to a copy of its last bytes, followed by zeros, so that this always holds.
struct RansReader {
  // A group's words, three for a lane, and a vector.
  static constexpr std::size_t kMargin = 6 * kRansGroup + 16;

  alignas(64) std::array<std::uint32_t, kRansGroup> states;
  ContextShifts shifts;
  std::array<std::uint8_t, kMaxContexts> table;  // of each context, an index into `tables`
  // Token 0 has so many slots, the first ones: 16 times the one and the other, if any 1 to 16.
  std::array<std::uint8_t, kMaxContexts> zeros, more_zeros;
  std::size_t zero_groups;  // how many before the next had nothing but token 0
  const DecodeSlots* tables;
  std::size_t lanes;
  const std::uint8_t* next;
  const std::uint8_t* limit;
  const std::uint8_t* end;
  bool in_tail;
  std::array<std::uint8_t, 2 * kMargin> tail;

  // Called when next > limit. False when more was read than the payload has.
  bool refill();
};

template <class Q>
struct ContextRansKernels {
  // The cell of each residual, escapes for those beyond the classes.
  void (*tokenize)(const Q* residuals, const std::uint8_t* contexts, const ContextShifts& shifts,
                   std::size_t count, Cell* cells);
  // One segment, its last group first.
  void (*encode)(RansWriter& writer, const Q* residuals, const std::uint8_t* contexts,
                 const Cell* cells, std::size_t count);
  // One piece. False when the payload ended before it.
  bool (*decode)(RansReader& reader, const std::uint8_t* contexts, std::size_t count, Q* residuals);
};
template <class Q>
const ContextRansKernels<Q>& context_rans_kernels(simd::Target target);
template <class Q>
const ContextRansKernels<Q>& context_rans_reference();

// Of one group. Escapes go lane by lane, before anything else of their group when it is encoded,
// last when it is decoded. `coded`: the cells as they are coded, as escapes where a context has no
// other token for a residual.
template <class Q>
void encode_escapes(RansWriter& writer, const Q* residuals, const Cell* cells, std::size_t count,
                    Cell* coded);
// Its high part.
template <class Q>
bool decode_escape(RansReader& reader, std::size_t lane, Q& high);
// The second part of decoding, from the tokens on; vector code leaves what only damaged payloads
// have to it.
template <class Q>
bool decode_raw_bits(RansReader& reader, const std::uint8_t* contexts, const std::int32_t* tokens,
                     std::size_t count, Q* residuals);

// -----------------------------------------------------------------------------------------------

// Reusable; keeps its working memory. One thread at a time. Not movable while in use.
class ContextRansDecoder {
 public:
  ContextRansDecoder() = default;
  ContextRansDecoder(const ContextRansDecoder&) = delete;
  ContextRansDecoder& operator=(const ContextRansDecoder&) = delete;

  // Reads the head of a payload, which must stay in place. False when it is malformed.
  bool start(std::span<const std::uint8_t> payload, simd::Target target);

  // The next `count` residuals. False (residuals unspecified) when the payload has no more.
  template <class Q>
  bool decode(const std::uint8_t* contexts, std::size_t count, Q* residuals);

  // True when exactly everything was decoded; catches most corruption.
  bool finish() const;

  // What the head said.
  const ContextShifts& shifts() const { return reader_.shifts; }
  std::size_t lanes() const { return reader_.lanes; }

 private:
  RansReader reader_;
  simd::Target target_ = simd::Target::reference;
  // For payloads with stored tables: copies of the family's (made when first needed), then those.
  ScratchArray<DecodeSlots> slots_;
  std::array<bool, kFamilySize> copied_{};
};

}  // namespace firn::encode
