"""Section "lorenzo (4)" of docs/format.md: residuals of symbols and extra bits.

The codes of the symbols are in huffman.py.
"""

import numpy

from .conventions import Reader, StreamError, read_zstd, require, unpack_bits
from .huffman import offline_book, read_code_lengths, read_huffman_streams, shared_book
from .quantized import QuantizedChunk


def decode_lorenzo(payload, chunk):
    quantized = QuantizedChunk(payload, chunk, may_have_phase=True)
    count = chunk.count - int(quantized.is_exact.sum())

    k = payload.number("B")
    require(3 <= k <= 12, f"{payload.what}: k is {k}, not 3 to 12")
    extra_bits = payload.bytes(payload.varint())
    mode = payload.number("B")
    alphabet_size = (1 << k + 1) + 65
    coding, book = mode & 15, mode >> 4
    if mode == 0:
        symbol = payload.number("H")
        require(symbol < alphabet_size, f"{payload.what}: symbol {symbol} is not in the alphabet")
        symbols = numpy.full(count, symbol)
    elif coding in (1, 2) and book in (0, 1, 2):
        if book == 0:
            lengths = read_code_lengths(payload, alphabet_size)
        elif book == 1:
            lengths = offline_book(payload, k, quantized.is_wide)
        else:
            lengths = shared_book(payload, k, chunk)
        streams = payload
        if coding == 2:
            size = payload.varint()
            what = f"{payload.what}, Huffman streams"
            streams = Reader(read_zstd(payload.rest(), size, what), what)
        symbols = read_huffman_streams(streams, lengths, count)
        streams.finish()
    else:
        raise StreamError(f"{payload.what}: unknown mode {mode}")
    residuals = numpy.zeros(chunk.count, quantized.unsigned)
    residuals[~quantized.is_exact] = residuals_of(symbols, k, extra_bits, payload.what)
    return quantized.values(residuals)


def residuals_of(symbols, k, extra_bits, what):
    """The residuals, modulo 2^64."""
    residuals = (symbols - (1 << k)).astype(numpy.uint64)
    is_large = symbols >= 1 << k + 1
    class_of = symbols[is_large] - (1 << k + 1)
    low_bits = numpy.maximum(class_of - 1, 0)  # how many, beside the sign

    bits = unpack_bits(extra_bits).astype(numpy.uint64)
    end = numpy.cumsum(1 + low_bits)
    total = int(end[-1]) if len(end) else 0
    require(len(extra_bits) == -(-total // 8), f"{what}: {len(extra_bits)} bytes of extra bits, "
            f"but the symbols need {total} bits")
    sign_at = end - 1 - low_bits
    is_negative = bits[sign_at] == 1
    magnitude = numpy.zeros(len(class_of), numpy.uint64)
    for bit in range(int(class_of.max(initial=0))):
        # Bit class - 1 is implied, those below it are stored.
        stored, implied = low_bits > bit, class_of == bit + 1
        magnitude[stored] |= bits[sign_at[stored] + 1 + bit] << numpy.uint64(bit)
        magnitude[implied] |= numpy.uint64(1 << bit)
    magnitude += numpy.uint64(1 << k)
    residuals[is_large] = numpy.where(is_negative, ~magnitude, magnitude)  # ~m = -m - 1
    return residuals
