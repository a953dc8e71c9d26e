"""Section "fre (10)" of docs/format.md.

Bit strings of signs, exponents and shortened mantissas.
"""

import itertools

import numpy

from .conventions import require, unpack_bits
from .exact_points import read_exact_points

STREAMS, ONE_STREAM_BELOW = 8, 4096


def decode_fre(payload, chunk):
    require(chunk.header.is_pointwise(), f"{payload.what}: fre without a point-wise bound")
    is_single = chunk.header.dtype == "<f4"
    mantissa_bits, exponent_bits = (23, 8) if is_single else (52, 11)
    flags = payload.number("B")
    require(flags <= 7, f"{payload.what}: reserved flags are set")
    kept = payload.number("B")
    require(kept <= (20 if is_single else 45), f"{payload.what}: {kept} mantissa bits")
    rank_of = list(range(10))
    if flags & 4:
        rank_of = [byte >> shift & 15 for byte in payload.bytes(5) for shift in (0, 4)]
        require(sorted(rank_of) == list(range(10)), f"{payload.what}: code words {rank_of}")
    is_exact, exact_values = read_exact_points(payload, chunk) if flags & 1 else (None, None)

    streams = 1 if chunk.count < ONE_STREAM_BELOW else STREAMS
    sizes = [payload.varint() for _ in range(streams - 1)]
    sizes.append(payload.left() - sum(sizes))
    require(sizes[-1] >= 0, f"{payload.what}: streams of {sizes} bytes")
    length = -(-chunk.count // streams)
    patterns = []
    for size in sizes:
        count = min(length, chunk.count - len(patterns))
        patterns += fre_stream(payload.bytes(size), count, kept, mantissa_bits, exponent_bits,
                               rank_of, payload.what)
    values = numpy.array(patterns, chunk.unsigned()).view(chunk.header.dtype)
    if is_exact is not None:
        values[is_exact] = exact_values
    return values


def fre_stream(data, count, kept, mantissa_bits, exponent_bits, rank_of, what):
    """The bit patterns of one stream's values."""
    bits = iter(unpack_bits(data).tolist())

    def take(width):
        taken = list(itertools.islice(bits, width))
        require(len(taken) == width, f"{what}: a bit string ends too early")
        return sum(bit << place for place, bit in enumerate(taken))

    def take_rank():
        ones = 0
        while ones < 6 and take(1):
            ones += 1
        return 6 + 2 * take(1) + take(1) if ones == 6 else ones

    sign = exponent = mantissa = 0
    patterns = []
    dropped = mantissa_bits - kept
    for _ in range(count):
        if take(1):
            sign, mantissa = take(1), take(kept) << dropped
            difference = rank_of.index(take_rank())
            if difference and take(1):
                difference = -difference
            exponent = (exponent + difference) % (1 << exponent_bits)
        elif take(1):
            is_normal, sign = take(1), take(1)
            exponent = take(exponent_bits) if is_normal else 0
            mantissa = take(kept) << dropped if is_normal else take(mantissa_bits)
        patterns.append((sign << exponent_bits | exponent) << mantissa_bits | mantissa)
    padding = list(bits)
    require(len(padding) < 8 and not any(padding), f"{what}: bits after the last value")
    return patterns
