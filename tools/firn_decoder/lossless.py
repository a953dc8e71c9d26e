"""Sections "Payloads" (raw and constant) and "shuffle (3)" of docs/format.md.

The pipelines that lose nothing.
"""

import numpy

from .conventions import read_zstd, undo_zigzag
from .differences import read_difference_lags, undo_differences


def decode_raw(payload, chunk):
    return numpy.frombuffer(payload.bytes(chunk.count * chunk.header.dtype.itemsize),
                            chunk.header.dtype)


def decode_constant(payload, chunk):
    value = numpy.frombuffer(payload.bytes(chunk.header.dtype.itemsize), chunk.header.dtype)
    return numpy.repeat(value, chunk.count)


def decode_shuffle(payload, chunk):
    unsigned = chunk.unsigned()
    width = unsigned.itemsize
    lags = read_difference_lags(payload, chunk)
    content = read_zstd(payload.rest(), chunk.count * width, payload.what)
    planes = numpy.frombuffer(content, numpy.uint8).reshape(width, chunk.count)
    zigzag = numpy.ascontiguousarray(planes.T).view(unsigned).reshape(-1)
    return values_in_order(undo_differences(undo_zigzag(zigzag), lags), chunk)


def values_in_order(codes, chunk):
    """Codes in the order of the values, as two's complement, to the values."""
    unsigned = chunk.unsigned()
    all_but_highest = unsigned.type((1 << 8 * unsigned.itemsize - 1) - 1)
    negative = codes > all_but_highest
    return numpy.where(negative, codes ^ all_but_highest, codes).view(chunk.header.dtype)
