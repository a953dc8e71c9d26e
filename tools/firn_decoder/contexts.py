"""Sections "contexts (8)" and "bits (12)" of docs/format.md.

Residuals whose contexts follow from residuals before them.
"""

import numpy

from .conventions import require
from .differences import read_difference_lags, undo_differences
from .lossless import values_in_order
from .quantized import QuantizedChunk
from .rans import RansReader

BATCH = 32  # all taps are at least as far, so that the contexts of a batch are known before it
LARGEST_MAGNITUDE = 2047
EXACT_CONTEXT = 33


def decode_contexts(payload, chunk):
    quantized = QuantizedChunk(payload, chunk, may_have_phase=True)
    shift = payload.number("B")
    residuals = read_residuals(RansReader(payload, quantized.bits()), chunk, shift,
                               quantized.is_exact)
    return quantized.values(residuals.astype(quantized.unsigned))


def decode_bits(payload, chunk):
    unsigned = chunk.unsigned()
    lags = read_difference_lags(payload, chunk)
    shift = payload.number("B")
    require(shift < 32, f"{payload.what}: shift {shift} of magnitudes")
    low = 0
    if unsigned.itemsize == 8:
        low = numpy.frombuffer(payload.bytes(4 * chunk.count), "<i4").astype(numpy.int64)
    nothing = numpy.zeros(chunk.count, bool)
    residuals = read_residuals(RansReader(payload, 32), chunk, shift, nothing)
    residuals = (residuals << 8 * unsigned.itemsize - 32) + low
    return values_in_order(undo_differences(residuals.astype(unsigned), lags), chunk)


def read_residuals(rans, chunk, shift, exact):
    """All residuals of a chunk, those of exact points in a context of their own."""
    taps = context_taps(chunk)
    distances, weights = (numpy.array(each) for each in zip(*taps))
    furthest = int(distances.max())
    taps_of_batch = numpy.arange(BATCH) + furthest - distances[:, None]
    context_of_sum = [0]
    for number in range(1, LARGEST_MAGNITUDE * int(weights.sum()) + 1):
        width = number.bit_length()
        context_of_sum.append(2 * width - 1 + (number << 1 >> width - 1 & 1))
    context_of_sum = numpy.array(context_of_sum)

    # Magnitude i is at furthest + i, behind the zeros before the chunk.
    magnitudes = numpy.zeros(furthest + chunk.count + BATCH, numpy.int64)
    residuals = []
    for begin in range(0, chunk.count, BATCH):
        is_exact = exact[begin : begin + BATCH]
        contexts = context_of_sum[weights @ magnitudes[begin + taps_of_batch]]
        contexts = numpy.where(is_exact, EXACT_CONTEXT, contexts[: len(is_exact)])
        batch = rans.segment(contexts.tolist())
        residuals += batch
        magnitudes[furthest + begin : furthest + begin + len(batch)] = [
            min(abs(residual) >> shift, LARGEST_MAGNITUDE) for residual in batch
        ]
    rans.finish()
    return numpy.array(residuals, numpy.int64)


def context_taps(chunk):
    """Pairs of a distance and a weight."""
    rank = len(chunk.extents)
    if rank == 1:
        return [(distance, 2) for distance in range(32, 48)]
    lags = chunk.lags()
    row = lags[-2]
    y = -(-33 // row) * row
    z = lags[-3] if rank >= 3 else 0
    t = lags[-4] if rank == 4 else 0
    if rank == 4 and z >= y + row and t >= z + row:
        return [(y - 1, 4), (y, 5), (y + 1, 4), (z - 1, 2), (z, 4), (z + 1, 2), (t - 1, 2), (t, 6),
                (t + 1, 3)]
    if rank >= 3 and z >= y + row:
        return [(y - 1, 6), (y, 8), (y + 1, 6), (z - 1, 3), (z, 6), (z + 1, 3)]
    return [(y - 1, 8), (y, 12), (y + 1, 8), (y + row, 4)]
