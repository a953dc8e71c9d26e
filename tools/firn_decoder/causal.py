"""Section "causal (11)" of docs/format.md: cells predicted from those visited before them.

The order of the cells, their padding and their taps are in causal_front.py.
"""

import numpy

from .causal_front import WINDOW, CausalFront
from .conventions import require
from .quantized import QuantizedChunk
from .rans import RansReader

NOT_CODED_CONTEXT = 32
LARGEST_MAGNITUDE = 255


def decode_causal(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    require(not quantized.lags and quantized.bits() == 32 and -(1 << 31) <= quantized.base < 1 << 31,
            f"{payload.what}: its head has orders, 64-bit codes or a base that is too large")
    fast, shift = payload.number("B"), payload.number("B")
    require(fast <= len(chunk.extents) and shift < 31, f"{payload.what}: axis {fast}, shift {shift}")
    class_weights = [payload.number("B") for _ in range(5)]
    spread_weight, floor = payload.number("B"), payload.number("B")
    front = CausalFront(chunk, fast)
    kinds = sorted({kind for _, _, kind in front.runs})
    taps = {kind: front.taps(kind) for kind in kinds}
    number = chunk.header.dtype.type
    weights = {kind: read_stencil(payload, len(taps[kind]), number) for kind in kinds}
    rans = RansReader(payload, 32)

    step = quantized.step
    spread_scale = (number(1) / step) * (number(spread_weight) / (number(256) * number(1 << shift)))
    cells = numpy.full(front.shape, number(quantized.base) * step)
    sizes = numpy.zeros(front.shape, numpy.int64)  # magnitudes of the codes
    values = numpy.zeros(chunk.count, chunk.header.dtype)

    def predict_cell(row, column, kind):
        near = [cells[row + rows, column + columns] for rows, columns in taps[kind]]
        sums = [number(0), number(0)]
        for place in reversed(range(len(weights[kind]))):
            sums[place % 2] = sums[place % 2] + near[place] * weights[kind][place]
        prediction = sums[0] + sums[1]
        if not numpy.isfinite(prediction):
            prediction = number(0)
        spread = number(0)
        for value in reversed(near[: min(4, len(weights[kind]))]):
            spread = spread + abs(value - prediction)
        around = sum(class_weights[which] * int(sizes[row + rows, column + columns])
                     for which, rows, columns in front.context_taps(kind)) % (1 << 16)
        activity = ((numpy.float32(spread * spread_scale) + numpy.float32(around) / numpy.float32(64))
                    + numpy.float32(floor) / numpy.float32(256))
        context = (int(activity.view(numpy.uint32)) >> 22) - 242
        return prediction, min(max(context, 0), 31)

    with numpy.errstate(all="ignore"):
        for kind, lanes in front.steps(cells):
            contexts, predictions = [NOT_CODED_CONTEXT] * WINDOW, {}
            for lane, (row, column, place) in lanes.items():
                predictions[lane], context = predict_cell(row, column, kind)
                if not quantized.is_exact[place]:
                    contexts[lane] = context
            codes = rans.segment(contexts)
            for lane, (row, column, place) in lanes.items():
                cells[row, column] = predictions[lane] + number(codes[lane]) * step
                sizes[row, column] = min(abs(codes[lane]) >> shift, LARGEST_MAGNITUDE)
                values[place] = cells[row, column]
    rans.finish()
    values[quantized.is_exact] = quantized.exact_values
    return values


def read_stencil(payload, most, number):
    """The weights of the taps."""
    count = payload.number("B")
    require(1 <= count <= most, f"{payload.what}: {count} taps")
    shift = payload.number("B") if count > 1 else 0
    require(shift <= 20, f"{payload.what}: weights in 2^-{shift}")
    others = [payload.svarint() for _ in range(count - 1)]
    require(all(abs(weight) <= 1 << 24 for weight in others), f"{payload.what}: a weight is too large")
    return [number(weight) / number(1 << shift) for weight in [(1 << shift) - sum(others)] + others]
