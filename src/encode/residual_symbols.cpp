#include "encode/residual_symbols.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/bytes.hpp"

namespace firn::encode {

void ExtraBitsWriter::put(std::uint64_t value, int bits) {
  if (bits > 32) {
    put(value & 0xFFFFFFFF, 32);
    value >>= 32;
    bits -= 32;
  }
  pending_ |= value << count_;
  count_ += bits;
  while (count_ >= 8) {
    *out_++ = static_cast<std::uint8_t>(pending_);
    pending_ >>= 8;
    count_ -= 8;
  }
}

std::size_t ExtraBitsWriter::finish() {
  if (count_ > 0) *out_++ = static_cast<std::uint8_t>(pending_);
  count_ = 0;
  return static_cast<std::size_t>(out_ - begin_);
}

std::uint64_t ExtraBitsReader::get(int bits) {
  if (bit_ + static_cast<std::size_t>(bits) > in_.size() * 8) {
    ok_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (int have = 0; have < bits;) {
    const int offset = static_cast<int>(bit_ & 7);
    const int take = bits - have < 8 - offset ? bits - have : 8 - offset;
    const std::uint64_t part = in_[bit_ >> 3] >> offset & ((1u << take) - 1);
    value |= part << have;
    have += take;
    bit_ += static_cast<std::size_t>(take);
  }
  return value;
}

template <class Q>
std::uint16_t residual_to_symbol(Q residual, int range_log2, ExtraBitsWriter& extra) {
  using U = std::make_unsigned_t<Q>;
  const U range = U(1) << range_log2;
  const U shifted = static_cast<U>(residual) + range;
  if (shifted < 2 * range) return static_cast<std::uint16_t>(shifted);
  const bool negative = residual < 0;
  const U magnitude =
      negative ? ~static_cast<U>(residual) - range : static_cast<U>(residual) - range;
  const int width = static_cast<int>(std::bit_width(magnitude));
  extra.put(negative, 1);
  if (width > 1) extra.put(magnitude & ~(U(1) << (width - 1)), width - 1);
  return static_cast<std::uint16_t>(2 * range + static_cast<U>(width));
}

template <class Q>
Q symbol_to_residual(std::uint16_t symbol, int range_log2, ExtraBitsReader& extra) {
  using U = std::make_unsigned_t<Q>;
  const U range = U(1) << range_log2;
  if (symbol < 2 * range) return static_cast<Q>(static_cast<U>(symbol) - range);
  const int width = static_cast<int>(symbol - 2 * range);
  if (width > static_cast<int>(sizeof(Q) * 8)) {
    extra.get(1 << 30);  // no such class: fails the reader
    return 0;
  }
  const bool negative = extra.get(1) != 0;
  U magnitude = 0;
  if (width >= 1) magnitude = U(1) << (width - 1);
  if (width > 1) magnitude |= static_cast<U>(extra.get(width - 1));
  magnitude += range;
  return static_cast<Q>(negative ? ~magnitude : magnitude);
}

template std::uint16_t residual_to_symbol(std::int32_t, int, ExtraBitsWriter&);
template std::uint16_t residual_to_symbol(std::int64_t, int, ExtraBitsWriter&);
template std::int32_t symbol_to_residual(std::uint16_t, int, ExtraBitsReader&);
template std::int64_t symbol_to_residual(std::uint16_t, int, ExtraBitsReader&);

namespace reference {

template <class Q>
void to_symbols(const Q* residuals, std::size_t count, int range_log2, std::uint16_t* symbols,
                ExtraBitsWriter& extra) {
  for (std::size_t i = 0; i < count; ++i) {
    symbols[i] = residual_to_symbol(residuals[i], range_log2, extra);
  }
}

template <class Q>
void to_residuals(const std::uint16_t* symbols, std::size_t count, int range_log2,
                  ExtraBitsReader& extra, Q* residuals) {
  for (std::size_t i = 0; i < count; ++i) {
    residuals[i] = symbol_to_residual<Q>(symbols[i], range_log2, extra);
  }
}

template <class Q>
const SymbolKernels<Q>& symbol_kernels() {
  static constexpr SymbolKernels<Q> table{to_symbols<Q>, to_residuals<Q>};
  return table;
}
template const SymbolKernels<std::int32_t>& symbol_kernels();
template const SymbolKernels<std::int64_t>& symbol_kernels();

}  // namespace reference
}  // namespace firn::encode
