"""Huffman codes in section "lorenzo (4)" of docs/format.md.

Code lengths, be they stored, of a shared book or of an offline one, and the streams of codes.
"""

import heapq

import numpy

from .conventions import Reader, require, unpack_bits
from .distributions import MEMBERS, family_distribution, token_class

LONGEST_CODE = 15


def read_code_lengths(payload, alphabet_size):
    lengths = []
    waiting = []  # the other nibble of the byte that was last read

    def nibble():
        if waiting:
            return waiting.pop()
        byte = payload.number("B")
        waiting.append(byte >> 4)
        return byte & 15

    while len(lengths) < alphabet_size:
        length = nibble()
        lengths += [length] if length else [0] * ((nibble() | nibble() << 4) + 1)
    require(len(lengths) == alphabet_size, f"{payload.what}: lengths of too many codes")
    require(not any(waiting), f"{payload.what}: the nibble after the code lengths is not 0")
    return numpy.array(lengths)


def offline_book(payload, k, is_wide):
    member, shift = payload.number("B"), payload.number("B")
    require(member < len(MEMBERS) and shift <= 12,
            f"{payload.what}: no offline book {member} with shift {shift}")
    frequency = family_distribution(member)

    def weight(residual, count):
        """Of a symbol that stands for so many residuals, of which this is one."""
        high = residual + (1 << shift >> 1) >> shift
        size = next((s for s in range(31, -1, -1) if token_class(s)[1] <= abs(high)), 0)
        extra, first = token_class(size)
        if abs(high) >= first + 2**extra:
            return 2**15
        found = frequency[size if high >= 0 else -size]
        return min(max((found * count << 18) >> shift + extra, 2**15), 2**30)

    edge = 1 << k
    weights = [weight(residual, 1) for residual in range(-edge, edge)]
    for width in range(65):
        if width < 24:
            weights.append(weight(edge + (1 << width >> 1), max(2, 1 << width)))
        else:
            weights.append(2**15 if width <= 32 or is_wide else 0)
    return lengths_from_weights(weights)


def lengths_from_weights(weights):
    order = sorted((weight, symbol) for symbol, weight in enumerate(weights) if weight)
    symbols = [symbol for _, symbol in order]
    depths = huffman_depths([weight for weight, _ in order])
    least = max(1, sum(weights) >> LONGEST_CODE + 1)
    while max(depths) > LONGEST_CODE:
        depths = huffman_depths([max(weight, least) for weight, _ in order])
        least += least // 4 + 1
    lengths = numpy.zeros(len(weights), int)
    lengths[symbols] = depths
    return lengths


def huffman_depths(weights):
    """Of equal weights leaves come first, in their order, then nodes, by age."""
    heap = [(weight, leaf) for leaf, weight in enumerate(weights)]
    parent = {}
    for node in range(len(weights), 2 * len(weights) - 1):
        (one, left), (other, right) = heapq.heappop(heap), heapq.heappop(heap)
        parent[left] = parent[right] = node
        heapq.heappush(heap, (one + other, node))
    depth = {heap[0][1]: 0}
    for node in sorted(parent, reverse=True):
        depth[node] = depth[parent[node]] + 1
    return [depth[leaf] for leaf in range(len(weights))]


def shared_book(payload, k, chunk):
    number = payload.number("B")
    require(number < len(chunk.header.books), f"{payload.what}: there is no book {number}")
    book = Reader(chunk.header.books[number], f"book {number}")
    require(book.number("B") == k, f"{payload.what}: book {number} has another k")
    lengths = read_code_lengths(book, (1 << k + 1) + 65)
    book.finish()
    return lengths


def read_huffman_streams(reader, lengths, count):
    # A code of b bits is what 2^(15 - b) of the 2^15 strings of 15 bits begin with, and canonical
    # codes have them one after the other: this is the whole decoding table.
    present = numpy.flatnonzero(lengths)
    by_code = present[numpy.argsort(lengths[present], kind="stable")]
    symbol_of = numpy.repeat(by_code, 1 << LONGEST_CODE - lengths[by_code])
    require(len(symbol_of) == 1 << LONGEST_CODE, f"{reader.what}: the prefix code is not complete")

    sizes = [reader.varint() for _ in range(3)]
    parts = [reader.bytes(size) for size in sizes] + [reader.rest()]
    part_count = -(-count // 4)
    symbols = []
    for number, part in enumerate(parts):
        due = min(part_count, max(0, count - number * part_count))
        symbols.append(read_huffman_stream(part, symbol_of, lengths, due,
                                           f"{reader.what}, Huffman stream {number}"))
    return numpy.concatenate(symbols)


def read_huffman_stream(data, symbol_of, lengths, count, what):
    # Look up the symbol that would begin at every single bit, then walk from code to code.
    bits = unpack_bits(data)
    padded = numpy.concatenate([bits, numpy.zeros(LONGEST_CODE, numpy.uint8)])
    window = numpy.zeros(len(bits), numpy.int64)
    for bit in range(LONGEST_CODE):
        window = window << 1 | padded[bit : bit + len(bits)]
    symbol_at = symbol_of[window]
    length_at = lengths[symbol_at].tolist()

    starts = []
    position = 0
    for _ in range(count):
        require(position < len(bits), f"{what} ends too early")
        starts.append(position)
        position += length_at[position]
    require(-(-position // 8) == len(data), f"{what} has {len(data)} bytes, but its {count} "
            f"symbols take {position} bits")
    return symbol_at[numpy.array(starts, numpy.int64)]
