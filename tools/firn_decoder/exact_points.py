"""Section "Exact points" of docs/format.md.

Maps of one bit a point, and values that are stored as they are.
"""

import numpy

from .conventions import read_zstd, require, unpack_bits


def read_exact_points(payload, chunk, without_zeros=False):
    """Returns which points are exact, and their values."""
    is_exact = read_bit_map(payload, chunk, without_zeros)
    size = payload.varint()
    exact_size = int(is_exact.sum()) * chunk.header.dtype.itemsize
    if size == chunk.header.dtype.itemsize:  # all have this value
        value = numpy.frombuffer(payload.bytes(size), chunk.header.dtype)
        return is_exact, numpy.repeat(value, int(is_exact.sum()))
    values = read_zstd(payload.bytes(size), exact_size, f"{payload.what}, exact values")
    return is_exact, numpy.frombuffer(values, chunk.header.dtype)


def read_nonzero_bytes(content, size, what):
    """A map of so many bytes, stored without those that are 0."""
    sizes = [size]
    for _ in range(3):
        sizes.append(-(-sizes[-1] // 8))
    stored = numpy.frombuffer(content, "u1")
    level, stored = stored[: sizes[-1]], stored[sizes[-1] :]
    require(len(level) == sizes[-1], f"{what}: it is too short")
    for size in reversed(sizes[:-1]):
        there = unpack_bits(level).astype(bool)
        require(not there[size:].any(), f"{what}: bytes after the last")
        count = int(there.sum())
        require(len(stored) >= count, f"{what}: it is too short")
        level = numpy.zeros(size, "u1")
        level[there[:size]], stored = stored[:count], stored[count:]
    require(len(stored) == 0, f"{what}: it is too long")
    return level


def read_bit_map(payload, chunk, without_zeros=False):
    """One bit a point."""
    lag = payload.varint()
    require(lag == 0 or 64 <= lag < chunk.count, f"{payload.what}: lag {lag} of the bit map")
    size = payload.varint()
    map_size, what = -(-chunk.count // 8), f"{payload.what}, bit map"
    read = read_nonzero_bytes if without_zeros else read_zstd
    bits = unpack_bits(read(payload.bytes(size), map_size, what))
    require(not bits[chunk.count :].any(), f"{payload.what}: bits after the last point")
    bit_map = bits[: chunk.count].copy()
    if lag:
        # Piece after piece of `lag` bits, since a piece needs only the one before it; the first
        # of them likewise, but by rows.
        row_length = chunk.extents[-1]
        row_lag = -(-64 // row_length) * row_length
        for part, distance in ((bit_map[:lag], row_lag), (bit_map, lag)):
            for begin in range(distance, len(part), distance):
                piece = part[begin : begin + distance]
                piece ^= part[begin - distance : begin - distance + len(piece)]
    return bit_map.astype(bool)
