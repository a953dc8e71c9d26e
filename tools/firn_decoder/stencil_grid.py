"""Trained stencils in section "interp (9)" of docs/format.md.

Which points a stencil takes, and how it corrects a prediction.
"""

import itertools

import numpy


class StencilGrid:
    """The points around those of a class that its trained stencil takes, on the grid of a level."""

    MOST_PAIRS = 12

    def __init__(self, extents, is_frozen, spacing):
        self.is_frozen = is_frozen
        self.steps = [1 if cold else spacing for cold in is_frozen]
        self.is_active = [-(-extent // step) >= 8 for extent, step in zip(extents, self.steps)]
        self.reach = 5 if sum(self.is_active) <= 2 else 3

    def parities(self, odd_axes, offset):
        """Of the point at that distance from one of a class: 1 along the axes where it is odd."""
        return tuple(0 if cold else ((axis in odd_axes) + far) % 2
                     for axis, (cold, far) in enumerate(zip(self.is_frozen, offset)))

    def pairs(self, odd_axes):
        """One offset of each pair, nearest first."""
        own = self.parities(odd_axes, (0, 0, 0, 0))
        most = [(1 if cold else (self.reach + 1) // 2) if active else 0
                for cold, active in zip(self.is_frozen, self.is_active)]
        offsets = [tuple(far if other == axis else 0 for other in range(4))
                   for axis in range(4) if self.is_active[axis]
                   for far in range(1, self.reach + 1)]
        offsets += [offset for offset in itertools.product(*(range(-far, far + 1) for far in most))
                    if offset > (0, 0, 0, 0) and 4 - offset.count(0) > 1]

        def distance(offset):
            square = sum(far * far * (4 if cold else 1)
                         for far, cold in zip(offset, self.is_frozen))
            return (6 if offset.count(0) == 3 else 10) * square, offset

        known = [offset for offset in offsets if self.parities(odd_axes, offset) < own]
        return sorted(known, key=distance)[: self.MOST_PAIRS]

    def correct(self, values, odd_axes, weights_and_shift, prediction):
        weights, shift = weights_and_shift
        number = values.dtype.type
        scale = number(1) / number(2 << shift)
        total = prediction * (number(weights[0]) * (number(2) * scale))
        for weight, offset in zip(weights[1:], self.pairs(odd_axes)):
            opposite = tuple(-far for far in offset)
            both = (self.neighbours(values, odd_axes, offset, prediction.shape) +
                    self.neighbours(values, odd_axes, opposite, prediction.shape))
            total = total + both * (number(weight) * scale)
        return total

    def neighbours(self, values, odd_axes, offset, shape):
        parities = self.parities(odd_axes, offset)
        points = values[tuple(slice(None) if cold else slice(parity * step, None, 2 * step)
                              for cold, parity, step in zip(self.is_frozen, parities, self.steps))]
        for axis in (3, 2, 1, 0):
            first = offset[axis]
            if not self.is_frozen[axis]:
                first = ((axis in odd_axes) + first) // 2
            points = continued(numpy.moveaxis(points, axis, -1), first, shape[axis])
            points = numpy.moveaxis(points, -1, axis)
        return points


def continued(lines, first, count):
    """`count` points of lines from `first` on, which go on in straight lines at both ends."""
    length = lines.shape[-1]
    points = [lines[..., place] for place in range(length)]
    start = points[0] - points[min(1, length - 1)]
    end = points[-1] - points[max(length - 2, 0)]
    before, behind = [points[0]], points
    while len(before) <= max(0, -first):
        before.append(before[-1] + start)
    while len(behind) < first + count:
        behind.append(behind[-1] + end)
    return numpy.stack((before[:0:-1] + behind)[len(before) - 1 + first:][:count], axis=-1)
