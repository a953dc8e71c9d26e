"""Section "blockpack (5)" of docs/format.md.

Bit planes of residuals, dense and sparse ones.
"""

import numpy

from .conventions import require, undo_zigzag, unpack_bits
from .quantized import QuantizedChunk

SUPERBLOCK = 256  # residuals
RUN_LIMIT = 4096  # no run of zeros crosses a multiple of this many residuals


def decode_blockpack(payload, chunk):
    quantized = QuantizedChunk(payload, chunk, is_blockpack=True, may_have_phase=True)
    block_count = -(-chunk.count // SUPERBLOCK)
    zigzag = numpy.zeros((block_count, SUPERBLOCK), quantized.unsigned)
    block = 0
    while block < block_count:
        head = payload.number("B")
        width, dense = head >> 4, head & 15
        if width == 0:
            end = block + dense + 1
            limit = (block * SUPERBLOCK // RUN_LIMIT + 1) * RUN_LIMIT // SUPERBLOCK
            require(end <= min(limit, block_count), f"{payload.what}: too long a run of zeros")
            block = end
            continue
        if width == 15:
            require(dense == 0, f"{payload.what}: a long width with a nibble of {dense}")
            width, dense = payload.number("B"), payload.number("B")
            require(15 <= width <= quantized.bits(), f"{payload.what}: width {width}")
        require(dense <= width, f"{payload.what}: {dense} of {width} planes are dense")
        planes = [payload.bytes(SUPERBLOCK // 8) for _ in range(dense)]
        planes += read_sparse_planes(payload, width - dense)
        for number, plane in enumerate(planes):
            zigzag[block] |= unpack_bits(plane).astype(zigzag.dtype) << zigzag.dtype.type(number)
        block += 1

    zigzag = zigzag.reshape(-1)
    require(not zigzag[chunk.count :].any(), f"{payload.what}: residuals after the last point")
    return quantized.values(undo_zigzag(zigzag[: chunk.count]))


def read_sparse_planes(payload, count):
    """Bytes that are not 0, of planes whose masks say where, themselves without bytes that are 0."""
    nibbles = []
    for byte in payload.bytes(-(-count // 2)):
        nibbles += [byte & 15, byte >> 4]
    require(not any(nibbles[count:]), f"{payload.what}: the mask of a missing plane")
    masks = [scatter(payload, unpack_bits(bytes([nibble]))[:4]) for nibble in nibbles[:count]]
    return [scatter(payload, unpack_bits(mask)) for mask in masks]


def scatter(payload, is_present):
    """A byte of the payload wherever a bit is set, 0 elsewhere."""
    data = numpy.zeros(len(is_present), numpy.uint8)
    stored = numpy.frombuffer(payload.bytes(int(is_present.sum())), numpy.uint8)
    require(stored.all(), f"{payload.what}: a byte that is 0 is stored in a sparse plane")
    data[is_present == 1] = stored
    return data
