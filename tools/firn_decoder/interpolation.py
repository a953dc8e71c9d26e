"""Predictions and contexts in section "interp (9)" of docs/format.md.

Cubics and lines along the odd axes of a class, and how far they disagree.
"""

import numpy

LARGEST_NEIGHBOUR = 255

# By which of the neighbours a, c, d exist: the cubic's weights of a, b, c, d in sixteenths, the
# linear's of b and c.
NEIGHBOUR_WEIGHTS = {
    (True, True, True): (-1, 9, 9, -1, 0.5, 0.5),
    (True, True, False): (-1, 10, 7, 0, 0.5, 0.5),
    (False, True, True): (0, 7, 10, -1, 0.5, 0.5),
    (False, True, False): (0, 8, 8, 0, 0.5, 0.5),
    (True, False, False): (-8, 24, 0, 0, 1, 0),
    (False, False, False): (0, 16, 0, 0, 1, 0),
}


def predict(values, codes, box, odd_axes, is_linear, step, bound):
    """The predictions of the points in a box, and their contexts but for the level's part.

    Without a step the bound is a point-wise one.
    """
    number = values.dtype.type
    share = number(1) / number(len(odd_axes))
    total = bend = spread = number(0)
    code_sum = 0
    chosen = []
    for axis in odd_axes:
        count = len(range(*box[axis].indices(values.shape[axis])))
        # The lines of known points along the axis, which is made the last one for a while.
        line_box = tuple(slice(0, None, box[axis].step) if other == axis else part
                         for other, part in enumerate(box))
        lines = numpy.moveaxis(values[line_box], axis, -1)
        cubic, linear = interpolate(lines, count, is_fastest=axis == 3)
        chosen.append(numpy.moveaxis(linear if is_linear else cubic, -1, axis))
        total = total + chosen[-1]
        bend = bend + numpy.moveaxis(numpy.abs(cubic - linear), -1, axis)

        sizes = numpy.minimum(numpy.abs(codes[line_box].astype(numpy.int64)), LARGEST_NEIGHBOUR)
        sizes = numpy.moveaxis(sizes, axis, -1)
        after = numpy.concatenate([sizes[..., 1:], sizes[..., -1:]], axis=-1)
        code_sum = code_sum + numpy.moveaxis((sizes + after)[..., :count], -1, axis)

    prediction = total * share
    for interpolant in chosen:
        spread = spread + numpy.abs(interpolant - prediction)

    bent = bend * number(0.35) + spread * number(0.25)
    if step is None:
        doubt, size = bent * share, numpy.abs(prediction)
        reference = numpy.where(doubt > size, doubt, size)
        inverse_step = number(1) / (number(2) * number(bound))
        steps = (doubt * inverse_step / reference).astype(numpy.float32)
        signed = numpy.copysign(reference, prediction)
        prediction = numpy.where(reference <= numpy.finfo(number).max, signed, number(0))
        weight = number(0.1)
    else:
        steps = (bent * (share * (number(1) / step))).astype(numpy.float32)
        weight = number(0.2)
    around = code_sum.astype(numpy.float32) * numpy.float32(share * weight)
    activity = (steps + around) + numpy.float32(0.03125)
    bits = activity.view(numpy.uint32).astype(numpy.int64)
    return prediction, numpy.clip((bits >> 22) - 244, 0, 19)


def interpolate(lines, count, is_fastest):
    """Cubic and linear of the `count` points behind the first ones of lines of known points."""
    known = lines.shape[-1]
    first, second = lines[..., :1], lines[..., 1:2] if known > 1 else lines[..., :1]
    last, before_last = lines[..., -1:], lines[..., -2:-1] if known > 1 else lines[..., -1:]
    if is_fastest:
        slope = last - before_last
        ends = [first + (first - second), last + slope, (last + slope) + slope]
        exist = [(True, True, True)] * count
    else:
        ends = [numpy.zeros_like(first)] * 3
        exist = [(j > 0, j + 1 < known, j + 2 < known) for j in range(count)]
    line = numpy.concatenate([ends[0], lines, ends[1], ends[2]], axis=-1)
    a, b, c, d = (line[..., place : place + count] for place in range(4))
    weights = numpy.array([NEIGHBOUR_WEIGHTS[which] for which in exist], lines.dtype).T
    w0, w1, w2, w3 = weights[:4] / lines.dtype.type(16)
    u0, u1 = weights[4:]
    return (b * w1 + c * w2) + (a * w0 + d * w3), b * u0 + c * u1
