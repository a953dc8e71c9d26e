#include "pipelines/lorenzo.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "container/format.hpp"
#include "encode/distributions.hpp"
#include "encode/huffman.hpp"
#include "encode/huffman_books.hpp"
#include "encode/residual_symbols.hpp"
#include "pipelines/quantized_chunk.hpp"

namespace firn::pipelines {
namespace {

// Residuals are made and used in pieces that stay in the L1 cache.
constexpr std::size_t kPiece = 2048;

// Values of a chunk that the choice of shared books looks at.
constexpr std::size_t kSampleValues = 8192;

// Huffman spends at least one bit a value; below this many zstd finds the long runs behind it.
constexpr std::size_t kZstdBelowBitsPerValue = 3;
constexpr int kZstdLevel = 1;

// The smallest range that leaves about 1 residual in 256 of a sample outside.
template <class Q>
int choose_range(const Q* codes, std::size_t count, const predict::Lags& lags,
                 Workspace& workspace) {
  constexpr std::size_t kPieces = 16, kLength = 128;
  const auto& kernels = predict::kernels<Q>(workspace.target);
  std::array<std::size_t, 66> of_width{};
  std::size_t sampled = 0;
  Q residuals[kLength];
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const std::size_t length = std::min(kLength, count);
    const std::size_t begin = (count - length) * (2 * piece + 1) / (2 * kPieces);
    kernels.difference(codes + begin, length, lags, residuals);
    for (std::size_t i = 0; i < length; ++i) {
      const auto r = static_cast<std::uint64_t>(static_cast<std::int64_t>(residuals[i]));
      ++of_width[static_cast<std::size_t>(std::bit_width(residuals[i] < 0 ? ~r : r))];
    }
    sampled += length;
  }
  std::size_t outside = sampled;
  for (int width = 0; width < encode::kMaxRangeLog2; ++width) {
    outside -= of_width[static_cast<std::size_t>(width)];
    if (outside * 256 <= sampled) return std::max(width, encode::kMinRangeLog2);
  }
  return encode::kMaxRangeLog2;
}

// Moves the residuals of a piece that are not exact points together; returns how many. `begin` is
// a multiple of 64.
template <class Q>
std::size_t drop_exact(Q* residuals, std::size_t begin, std::size_t length,
                       const encode::BitMap& map) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < length; i += 64) {
    const std::size_t end = std::min(i + 64, length);
    const std::uint64_t exact = map.word((begin + i) / 64);
    if (exact == 0) {
      std::memmove(residuals + kept, residuals + i, (end - i) * sizeof(Q));
      kept += end - i;
      continue;
    }
    if (exact == ~std::uint64_t{0}) continue;
    for (std::size_t k = i; k < end; ++k) {
      residuals[kept] = residuals[k];
      kept += ~exact >> (k - i) & 1;
    }
  }
  return kept;
}

// The inverse: spreads `kept` residuals over the points of a piece, 0 at the exact ones.
template <class Q>
void spread_exact(const Q* kept, std::size_t begin, std::size_t length, const encode::BitMap& map,
                  Q* residuals) {
  for (std::size_t i = 0; i < length; i += 64) {
    const std::size_t end = std::min(i + 64, length);
    const std::uint64_t exact = map.word((begin + i) / 64);
    if (exact == 0) {
      std::memcpy(residuals + i, kept, (end - i) * sizeof(Q));
      kept += end - i;
      continue;
    }
    for (std::size_t k = i; k < end; ++k) {
      const bool is_exact = exact >> (k - i) & 1;
      residuals[k] = is_exact ? Q{0} : *kept;
      kept += !is_exact;
    }
  }
}

// Symbols of all points that are not exact; returns how many.
template <class Q>
std::size_t make_symbols(const Q* codes, std::size_t count, const predict::Lags& lags,
                         int range_log2, std::size_t exact_count, Workspace& workspace,
                         std::size_t* extra_bytes) {
  const auto& difference = predict::kernels<Q>(workspace.target);
  const auto& to_symbols = encode::symbol_kernels<Q>(workspace.target);
  encode::ExtraBitsWriter extra(workspace.extra.reserve(encode::max_extra_bytes<Q>(count)));
  std::uint16_t* symbols = workspace.symbols.reserve(count + 64);
  const unsigned alphabet = encode::alphabet_size(range_log2);
  std::uint32_t* histogram = workspace.histogram.reserve(4 * alphabet);
  std::memset(histogram, 0, 4 * alphabet * sizeof(std::uint32_t));
  Q residuals[kPiece];
  std::size_t made = 0;
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    std::size_t length = std::min(kPiece, count - begin);
    difference.difference(codes + begin, length, lags, residuals);
    if (exact_count != 0) length = drop_exact(residuals, begin, length, workspace.exact_map);
    std::uint16_t* out = symbols + made;
    to_symbols.to_symbols(residuals, length, range_log2, out, extra);
    // Four histograms, so that equal neighbours do not wait for each other.
    std::size_t i = 0;
    for (; i + 4 <= length; i += 4) {
      ++histogram[out[i]];
      ++histogram[alphabet + out[i + 1]];
      ++histogram[2 * alphabet + out[i + 2]];
      ++histogram[3 * alphabet + out[i + 3]];
    }
    for (; i < length; ++i) ++histogram[out[i]];
    made += length;
  }
  for (unsigned s = 0; s < alphabet; ++s) {
    histogram[s] +=
        histogram[alphabet + s] + histogram[2 * alphabet + s] + histogram[3 * alphabet + s];
  }
  *extra_bytes = extra.finish();
  return made;
}

// A book that the chunk's symbols may be coded with, and what that takes altogether.
struct BookOffer {
  std::uint8_t kind;
  std::span<const std::uint8_t> lengths;
  std::uint64_t bits;
};

// The parameters' rule decides; `cost` takes the fewest bits, the book's own included.
BookOffer choose_book(std::span<const std::uint32_t> histogram, int range_log2, bool wide,
                      const Parameters& parameters, Workspace& workspace,
                      encode::OfflineBook* offline) {
  const std::size_t alphabet = histogram.size();
  const auto stored = [&]() -> BookOffer {
    std::uint8_t* lengths = workspace.code_lengths.reserve(alphabet);
    encode::build_code_lengths(histogram, lengths, workspace.huffman_build);
    const std::span<const std::uint8_t> made(lengths, alphabet);
    return {format::kBookStored, made,
            encode::cost_in_bits(histogram, made) + 8 * encode::code_lengths_bytes(made)};
  };
  const auto from_family = [&]() -> BookOffer {
    *offline = encode::choose_offline_book(histogram, range_log2).book;
    const auto lengths = workspace.offline_books.lengths(*offline, range_log2, wide);
    return {format::kBookOffline, lengths, encode::cost_in_bits(histogram, lengths) + 16};
  };
  const auto shared = [&]() -> BookOffer {
    std::uint8_t* lengths = workspace.shared_lengths.reserve(alphabet);
    ByteReader in(parameters.shared_books[parameters.book]);
    in.read<std::uint8_t>();  // its range, which is this chunk's
    encode::read_code_lengths(in, {lengths, alphabet});
    const std::span<const std::uint8_t> read(lengths, alphabet);
    return {format::kBookShared, read, encode::cost_in_bits(histogram, read) + 8};
  };
  const bool planned = parameters.book != kNoBook;
  switch (parameters.books) {
    case BookPolicy::stored:
      return stored();
    case BookPolicy::offline:
      return from_family();
    case BookPolicy::chi:
      return planned ? shared() : from_family();
    default: {
      BookOffer best = from_family();
      if (const BookOffer other = stored(); other.bits < best.bits) best = other;
      if (!planned) return best;
      const BookOffer other = shared();
      return other.bits < best.bits ? other : best;
    }
  }
}

void write_symbols(const std::uint16_t* symbols, std::size_t count, int range_log2, bool wide,
                   std::size_t extra_bytes, const Parameters& parameters, Workspace& workspace,
                   ByteWriter& out) {
  const unsigned alphabet = encode::alphabet_size(range_log2);
  const std::span<const std::uint32_t> histogram(workspace.histogram.data(), alphabet);
  out.write<std::uint8_t>(static_cast<std::uint8_t>(range_log2));
  out.write_varint(extra_bytes);
  out.write_bytes({workspace.extra.data(), extra_bytes});
  const auto present = alphabet - std::count(histogram.begin(), histogram.end(), 0u);
  if (present <= 1) {
    out.write<std::uint8_t>(format::kSymbolsSingle);
    out.write<std::uint16_t>(count == 0 ? std::uint16_t{0} : symbols[0]);
    return;
  }
  encode::OfflineBook offline;
  const BookOffer book = choose_book(histogram, range_log2, wide, parameters, workspace, &offline);
  encode::EncodeTable* table = workspace.encode_table.reserve(alphabet);
  encode::build_encode_table(book.lengths, table);

  std::uint8_t* const mode = out.here();
  out.write<std::uint8_t>(format::kSymbolsHuffman | book.kind);
  if (book.kind == format::kBookOffline) {
    out.write<std::uint8_t>(offline.member);
    out.write<std::uint8_t>(offline.shift);
  } else if (book.kind == format::kBookShared) {
    out.write<std::uint8_t>(static_cast<std::uint8_t>(parameters.book));
  } else {
    encode::write_code_lengths(book.lengths, out);
  }
  const std::size_t room = encode::huffman_capacity(count);
  std::uint8_t* scratch = workspace.streams.reserve(room);
  std::uint8_t* const streams = out.here();
  std::uint8_t* const end =
      encode::huffman_kernels(workspace.target).encode(symbols, count, table, streams, scratch);
  const auto size = static_cast<std::size_t>(end - streams);
  if (size * 8 < count * kZstdBelowBitsPerValue) {
    std::uint8_t* packed = workspace.streams.reserve(encode::Lossless::capacity(size));
    const std::size_t packed_size =
        workspace.lossless.compress({streams, size}, packed, workspace.streams.size(), kZstdLevel);
    if (packed_size != 0 && packed_size + packed_size / 32 + kMaxVarintBytes < size) {
      *mode = format::kSymbolsHuffmanZstd | book.kind;
      out.write_varint(size);
      out.write_bytes({packed, packed_size});
      return;
    }
  }
  out.advance(size);
}

// The lengths of the book that follows or is named. Empty: malformed, or the book is lost.
std::span<const std::uint8_t> read_book(ByteReader& in, unsigned kind, int range_log2, bool wide,
                                        const Parameters& parameters, Workspace& workspace) {
  const unsigned alphabet = encode::alphabet_size(range_log2);
  std::uint8_t* lengths = workspace.code_lengths.reserve(alphabet);
  switch (kind) {
    case format::kBookStored:
      if (!encode::read_code_lengths(in, {lengths, alphabet})) return {};
      return {lengths, alphabet};
    case format::kBookOffline: {
      encode::OfflineBook book;
      book.member = in.read<std::uint8_t>();
      book.shift = in.read<std::uint8_t>();
      if (!in.ok() || book.member >= encode::kFamilySize || book.shift > encode::kMaxBookShift) {
        return {};
      }
      return workspace.offline_books.lengths(book, range_log2, wide);
    }
    case format::kBookShared: {
      const std::size_t number = in.read<std::uint8_t>();
      if (!in.ok() || number >= parameters.shared_books.size()) return {};
      ByteReader book(parameters.shared_books[number]);
      if (book.read<std::uint8_t>() != range_log2 ||
          !encode::read_code_lengths(book, {lengths, alphabet}) || book.remaining() != 0) {
        return {};
      }
      return {lengths, alphabet};
    }
    default:
      return {};
  }
}

// Symbols into the workspace. False: malformed.
bool read_symbols(ByteReader& in, std::size_t count, bool wide, const Parameters& parameters,
                  Workspace& workspace, int* range_log2, std::span<const std::uint8_t>* extra) {
  *range_log2 = in.read<std::uint8_t>();
  *extra = in.read_bytes(in.read_varint());
  const unsigned mode = in.read<std::uint8_t>();
  if (!in.ok() || *range_log2 < encode::kMinRangeLog2 || *range_log2 > encode::kMaxRangeLog2) {
    return false;
  }
  std::uint16_t* symbols = workspace.symbols.reserve(count + 64);
  if (mode == format::kSymbolsSingle) {
    const std::uint16_t symbol = in.read<std::uint16_t>();
    std::fill_n(symbols, count, symbol);
    return in.ok() && symbol < encode::alphabet_size(*range_log2);
  }
  const unsigned coding = mode & format::kSymbolsMask;
  if (coding != format::kSymbolsHuffman && coding != format::kSymbolsHuffmanZstd) return false;
  const auto lengths =
      read_book(in, mode & format::kBookMask, *range_log2, wide, parameters, workspace);
  if (lengths.empty()) return false;
  std::span<const std::uint8_t> streams;
  if (coding == format::kSymbolsHuffmanZstd) {
    const std::uint64_t size = in.read_varint();
    if (!in.ok() || size > encode::huffman_capacity(count)) return false;
    std::uint8_t* unpacked = workspace.streams.reserve(size + 1);
    if (!workspace.lossless.decompress(in.read_rest(),
                                       {unpacked, static_cast<std::size_t>(size)})) {
      return false;
    }
    streams = {unpacked, static_cast<std::size_t>(size)};
  } else {
    streams = in.read_rest();
  }
  encode::DecodeTable& table = *workspace.decode_table.reserve(1);
  encode::build_decode_table(lengths, table);
  return encode::huffman_kernels(workspace.target).decode(streams, table, count, symbols);
}

template <class T, class Q>
QuantizeOutcome encode_as(const Box<const T>& chunk, const Parameters& parameters,
                          Workspace& workspace, std::uint8_t* out, Encoded* encoded) {
  QuantizedChunk<T, Q> quantized;
  const QuantizeOutcome outcome = quantize_chunk<T, Q>(chunk, parameters, workspace, &quantized);
  if (outcome != QuantizeOutcome::done) return outcome;
  PayloadHead head;
  head.wide = sizeof(Q) == 8;
  head.base = quantized.base;
  head.exact_count = quantized.exact_count;
  head.exact_alike = quantized.exact_alike;
  head.signs = quantized.signs;
  head.finer = parameters.finer;
  head.phase = quantized.phase;
  head.orders =
      kept_or_chosen_orders(Pipeline::lorenzo, parameters, quantized.codes, quantized.count,
                            chunk.rank(), chunk.extents(), {}, workspace);
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  if (head.exact_count != 0) {
    predict::kernels<Q>(workspace.target)
        .fill(quantized.codes, quantized.count, lags, workspace.exact_map.words());
  }
  // A book counts by its range. `chi` takes what is planned; `cost` passes over a book whose range
  // is not the chunk's own.
  Parameters rule = parameters;
  int range_log2 = choose_range(quantized.codes, quantized.count, lags, workspace);
  if (rule.book != kNoBook) {
    const int planned = rule.shared_books[rule.book].front();
    if (rule.books == BookPolicy::chi) range_log2 = planned;
    if (range_log2 != planned) rule.book = kNoBook;
  }
  std::size_t extra_bytes = 0;
  const std::size_t symbols = make_symbols(quantized.codes, quantized.count, lags, range_log2,
                                           quantized.exact_count, workspace, &extra_bytes);
  ByteWriter writer(out);
  write_payload_head(head, chunk.rank(), chunk.extents(), sizeof(T), workspace, writer);
  write_symbols(workspace.symbols.data(), symbols, range_log2, head.wide, extra_bytes, rule,
                workspace, writer);
  encoded->pipeline = Pipeline::lorenzo;
  encoded->size = writer.size();
  encoded->max_error = quantized.max_error;
  encoded->written = true;
  keep_orders(head.orders, encoded);
  if (parameters.measured) encoded->mean_square = mean_square(chunk, parameters, quantized);
  return outcome;
}

template <class T, class Q>
bool decode_as(ByteReader& in, const PayloadHead& head, const Parameters& parameters,
               const Box<T>& chunk, Workspace& workspace) {
  const std::size_t count = chunk.count();
  int range_log2 = 0;
  std::span<const std::uint8_t> extra_bytes;
  if (!read_symbols(in, count - head.exact_count, head.wide, parameters, workspace, &range_log2,
                    &extra_bytes)) {
    return false;
  }
  const predict::Lags lags = lags_of(head.orders, chunk.rank(), chunk.extents());
  const auto& difference = predict::kernels<Q>(workspace.target);
  const auto& to_residuals = encode::symbol_kernels<Q>(workspace.target);
  Q* codes = reserve_codes<Q>(count, history_room(chunk.rank(), chunk.extents()), workspace);
  encode::ExtraBitsReader extra(extra_bytes);
  predict::Carry<Q> carry;
  Q residuals[kPiece];
  const std::uint16_t* symbols = workspace.symbols.data();
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    const std::size_t length = std::min(kPiece, count - begin);
    if (head.exact_count == 0) {
      to_residuals.to_residuals(symbols, length, range_log2, extra, residuals);
      symbols += length;
    } else {
      std::size_t kept = length;
      workspace.exact_map.for_each(begin, begin + length, [&](std::size_t) { --kept; });
      Q compact[kPiece + 1];  // one more may be looked at, never used
      to_residuals.to_residuals(symbols, kept, range_log2, extra, compact);
      compact[kept] = 0;
      symbols += kept;
      spread_exact(compact, begin, length, workspace.exact_map, residuals);
    }
    difference.reconstruct(residuals, length, lags, carry, codes + begin);
  }
  if (!extra.ok()) return false;
  restore_chunk<T, Q>(codes, head, parameters, chunk, workspace);
  return true;
}

}  // namespace

namespace {

template <class T, class Q>
QuantizeOutcome sample_as(const Box<const T>& part, const Parameters& parameters,
                          Workspace& workspace, std::size_t* count) {
  QuantizedChunk<T, Q> quantized;
  const QuantizeOutcome outcome = quantize_chunk<T, Q>(part, parameters, workspace, &quantized);
  if (outcome != QuantizeOutcome::done) return outcome;
  const Orders orders =
      choose_orders(quantized.codes, quantized.count, part.rank(), part.extents(), {}, workspace);
  const predict::Lags lags = lags_of(orders, part.rank(), part.extents());
  if (quantized.exact_count != 0) {
    predict::kernels<Q>(workspace.target)
        .fill(quantized.codes, quantized.count, lags, workspace.exact_map.words());
  }
  std::size_t extra_bytes = 0;
  *count = make_symbols(quantized.codes, quantized.count, lags, encode::kMaxRangeLog2,
                        quantized.exact_count, workspace, &extra_bytes);
  return outcome;
}

}  // namespace

template <class T>
std::size_t sample_lorenzo(const Box<const T>& chunk, const Parameters& parameters,
                           Workspace& workspace, std::span<std::uint32_t> histogram) {
  // A box in the middle, its largest extents halved until it is small.
  std::array<std::size_t, kMaxRank> origin{}, extents = chunk.extents();
  std::size_t values = chunk.count();
  while (values > kSampleValues) {
    const auto k = static_cast<std::size_t>(
        std::max_element(extents.begin(), extents.begin() + chunk.rank()) - extents.begin());
    values = values / extents[k] * (extents[k] / 2);
    origin[k] += extents[k] / 4;
    extents[k] /= 2;
  }
  const Box<const T> part = chunk.part(origin, extents);
  std::size_t count = 0;
  QuantizeOutcome outcome = sample_as<T, std::int32_t>(part, parameters, workspace, &count);
  if constexpr (sizeof(T) == 8) {
    if (outcome == QuantizeOutcome::needs_wide) {
      outcome = sample_as<T, std::int64_t>(part, parameters, workspace, &count);
    }
  }
  if (outcome != QuantizeOutcome::done) return 0;
  std::copy_n(workspace.histogram.data(), histogram.size(), histogram.begin());
  return count;
}
template std::size_t sample_lorenzo(const Box<const float>&, const Parameters&, Workspace&,
                                    std::span<std::uint32_t>);
template std::size_t sample_lorenzo(const Box<const double>&, const Parameters&, Workspace&,
                                    std::span<std::uint32_t>);

std::string describe_lorenzo(std::span<const std::uint8_t> payload, int rank, unsigned tighter) {
  std::string text = describe_head(payload, rank, tighter);
  ByteReader in(payload);
  pass_head(in, tighter);
  const int range_log2 = in.read<std::uint8_t>();
  in.read_bytes(in.read_varint());  // extra bits
  const unsigned mode = in.read<std::uint8_t>();
  if (mode == format::kSymbolsSingle) {
    text += ", one symbol";
  } else if ((mode & format::kBookMask) == format::kBookOffline) {
    const unsigned member = in.read<std::uint8_t>();
    text += ", offline book " + std::to_string(member) + " x 2^" +
            std::to_string(in.read<std::uint8_t>());
  } else if ((mode & format::kBookMask) == format::kBookShared) {
    text += ", shared book " + std::to_string(in.read<std::uint8_t>());
  } else {
    text += ", own book";
  }
  text += ", range 2^" + std::to_string(range_log2);
  return in.ok() ? text : "damaged";
}

std::size_t lorenzo_capacity(std::size_t count) {
  return 64 + 2 * encode::kMaxHuffmanSymbols + count * 8 + encode::huffman_capacity(count);
}

template <class T>
bool encode_lorenzo(const Box<const T>& chunk, const Parameters& parameters, Workspace& workspace,
                    std::uint8_t* out, Encoded* encoded) {
  QuantizeOutcome outcome = encode_as<T, std::int32_t>(chunk, parameters, workspace, out, encoded);
  if constexpr (sizeof(T) == 8) {
    if (outcome == QuantizeOutcome::needs_wide) {
      outcome = encode_as<T, std::int64_t>(chunk, parameters, workspace, out, encoded);
    }
  }
  return outcome == QuantizeOutcome::done;
}
template bool encode_lorenzo(const Box<const float>&, const Parameters&, Workspace&, std::uint8_t*,
                             Encoded*);
template bool encode_lorenzo(const Box<const double>&, const Parameters&, Workspace&, std::uint8_t*,
                             Encoded*);

template <class T>
bool decode_lorenzo(std::span<const std::uint8_t> payload, const Parameters& parameters,
                    const Box<T>& chunk, Workspace& workspace) {
  ByteReader in(payload);
  PayloadHead head;
  if (!read_payload_head(in, parameters, chunk.rank(), chunk.extents(), sizeof(T), chunk.count(),
                         workspace, &head)) {
    return false;
  }
  if constexpr (sizeof(T) == 8) {
    if (head.wide) return decode_as<T, std::int64_t>(in, head, parameters, chunk, workspace);
  }
  return decode_as<T, std::int32_t>(in, head, parameters, chunk, workspace);
}
template bool decode_lorenzo(std::span<const std::uint8_t>, const Parameters&, const Box<float>&,
                             Workspace&);
template bool decode_lorenzo(std::span<const std::uint8_t>, const Parameters&, const Box<double>&,
                             Workspace&);

}  // namespace firn::pipelines
