"""Section "ceresz (6) and ceresz4 (7)" of docs/format.md.

Signs and bit planes of small blocks.
"""

import numpy

from .conventions import require, unpack_bits
from .quantized import QuantizedChunk

BLOCK = 32  # codes


def decode_ceresz(payload, chunk, length_code="B"):
    quantized = QuantizedChunk(payload, chunk)
    quantized.require_plain_codes(payload.what)
    block_count = -(-chunk.count // BLOCK)
    differences = numpy.zeros((block_count, BLOCK), numpy.uint32)
    for block in differences:
        length = payload.number(length_code)
        require(length <= 32, f"{payload.what}: a block of {length} planes")
        if length == 0:
            continue
        is_negative = unpack_bits(payload.bytes(4)) == 1
        for number in range(length):
            block |= unpack_bits(payload.bytes(4)).astype(numpy.uint32) << numpy.uint32(number)
        block[is_negative] = -block[is_negative]
    require(not differences.reshape(-1)[chunk.count :].any(), f"{payload.what}: codes after the "
            "last point")
    codes = differences.cumsum(axis=1, dtype=numpy.uint32)
    return quantized.values(codes.reshape(-1)[: chunk.count])


def decode_ceresz4(payload, chunk):
    return decode_ceresz(payload, chunk, length_code="I")
