"""Section "interp (9)" of docs/format.md: levels and classes, from coarse to fine.

What predicts a class is in interpolation.py and, if it has trained weights, stencil_grid.py.
"""

import itertools
import math

import numpy

from .conventions import require
from .interpolation import predict
from .log_scale import LogScale
from .quantized import QuantizedChunk
from .rans import RansReader
from .stencil_grid import StencilGrid

ROOT_CONTEXT, EXACT_POINT_CONTEXT = 60, 61
# Growth of a step's divisor per level, the most
FINENESS = [(1, 1), (1.125, 4), (1.1875, 4), (1.25, 4), (1.5, 4), (2, 8)]


def decode_interp(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    quantized.require_plain_codes(payload.what)
    quantized.require_no_signs(payload.what)
    scale = LogScale(chunk.header) if chunk.header.is_pointwise() else None
    require(scale is None or scale.step >= (1 if scale.is_single else 1 << 35),
            f"{payload.what}: the bound is too tight for 32-bit codes")
    packed = payload.number("B")
    frozen, fineness, any_stencil = packed & 15, packed >> 4 & 7, bool(packed & 128)
    require(scale is None or fineness == 0, f"{payload.what}: fineness under a point-wise bound")
    rank = len(chunk.extents)
    require(frozen >> rank == 0, f"{payload.what}: a missing axis is frozen")
    require(fineness < len(FINENESS), f"{payload.what}: fineness {fineness}")
    extents = [1] * (4 - rank) + chunk.extents
    is_frozen = [False] * (4 - rank) + [bool(frozen >> axis & 1) for axis in range(rank)]
    longest = max([extent for extent, cold in zip(extents, is_frozen) if not cold], default=1)
    levels = (longest - 1).bit_length()
    dtype = chunk.header.dtype
    schedule = []  # of each level from coarse to fine: its classes with their bases
    for level in reversed(range(levels)):
        grid = StencilGrid(extents, is_frozen, 1 << level)
        schedule.append((level, grid, [
            (box, odd_axes) + ((odd_axes, False, None) if scale else
                               read_base(payload, extents, box, odd_axes,
                                         grid if any_stencil else None))
            for box, odd_axes in interpolated_classes(extents, is_frozen, 1 << level)]))

    rans = RansReader(payload, quantized.bits())

    def step_of(level):
        growth, most = FINENESS[fineness]
        factor = 1.0
        for _ in range(level):
            factor = factor * growth if factor < most else factor
        return None if scale else chunk.header.cut(quantized.step / dtype.type(min(factor, most)))

    is_exact = quantized.is_exact.reshape(extents)
    values = numpy.zeros(extents, dtype)  # of exact points: what they count as
    codes = numpy.zeros(extents, numpy.int32)

    def read_codes(box, contexts):
        contexts = numpy.where(is_exact[box], EXACT_POINT_CONTEXT, contexts)
        residuals = numpy.array(rans.segment(contexts.reshape(-1).tolist()), numpy.int32)
        codes[box] = residuals.reshape(contexts.shape)

    with numpy.errstate(all="ignore"):
        roots = tuple(slice(None) if cold else slice(0, 1) for cold in is_frozen)
        read_codes(roots, ROOT_CONTEXT)
        if scale:
            root_values, previous = [], numpy.zeros(1, dtype)
            for code, exact in zip(codes[roots].reshape(-1), is_exact[roots].reshape(-1)):
                if not exact:
                    previous = scale.restore(numpy.array([code], numpy.int32), previous)
                root_values.append(previous[0])
            values[roots] = numpy.array(root_values, dtype).reshape(values[roots].shape)
        else:
            steps = codes[roots].reshape(-1).astype(dtype) * step_of(levels)
            values[roots] = numpy.add.accumulate(steps, dtype=dtype).reshape(values[roots].shape)

        for level, grid, classes in schedule:
            step = step_of(level)
            for box, odd_axes, along, is_linear, weights in classes:
                prediction, contexts = predict(values, codes, box, along, is_linear, step,
                                               chunk.header.bound)
                if weights:
                    prediction = grid.correct(values, odd_axes, weights, prediction)
                read_codes(box, contexts + min(level, 2) * 20)
                if scale:  # exact points too, whose code is 0
                    values[box] = scale.restore(codes[box], prediction)
                    continue
                values[box] = prediction + codes[box].astype(dtype) * step
                as_neighbour = numpy.where(numpy.isfinite(prediction), prediction, dtype.type(0))
                values[box] = numpy.where(is_exact[box], as_neighbour, values[box])
    rans.finish()
    values[is_exact] = quantized.exact_values
    return values.reshape(-1)


def interpolated_classes(extents, is_frozen, spacing):
    """The classes that have points: each its box of slices and its odd axes, slowest first."""
    for is_odd in itertools.product((False, True), repeat=4):
        odd_axes = [axis for axis in range(4) if is_odd[axis]]
        if not odd_axes or any(is_frozen[axis] or extents[axis] <= spacing for axis in odd_axes):
            continue
        yield tuple(slice(None) if cold else slice(spacing if odd else 0, None, 2 * spacing)
                    for cold, odd in zip(is_frozen, is_odd)), odd_axes


def read_base(payload, extents, box, odd_axes, grid):
    """The axes that a class is interpolated along, whether linearly, and the weights of its
    stencil if it has one, that of the interpolation first. Without a grid none may have."""
    if math.prod(len(range(*part.indices(extent))) for part, extent in zip(box, extents)) < 512:
        return odd_axes, False, None
    packed = payload.number("B")
    along = [axis for place, axis in enumerate(odd_axes) if packed >> place & 1]
    require(along and packed < 64 and (packed & 15) >> len(odd_axes) == 0,
            f"{payload.what}: base {packed}")
    if not packed & 32:
        return along, bool(packed >> 4), None
    require(grid is not None and all(grid.is_active[axis] for axis in odd_axes),
            f"{payload.what}: a stencil for axes {odd_axes}")
    shift = payload.number("B")
    weights = [payload.svarint() for _ in grid.pairs(odd_axes)]
    require(shift <= 20 and all(-1 << 24 <= weight <= 1 << 24 for weight in weights),
            f"{payload.what}: weights of a stencil")
    weights.insert(0, (1 << shift) - sum(weights))
    return along, bool(packed >> 4 & 1), (weights, shift)
