"""Section "Differences" of docs/format.md.

Their orders along the axes, and how they are undone.
"""

import numpy

from .conventions import require


def read_difference_lags(payload, chunk):
    """The lags that a byte of difference orders names, each as often as its order."""
    orders = payload.number("B")
    require(orders >> 2 * len(chunk.extents) == 0, f"{payload.what}: an order of a missing axis")
    order_of_axis = [orders >> 2 * axis & 3 for axis in range(len(chunk.extents))]
    require(max(order_of_axis) <= 2 and sum(order_of_axis) <= 4, f"{payload.what}: difference "
            f"orders {order_of_axis}")
    return [lag for lag, order in zip(chunk.lags(), order_of_axis) for _ in range(order)]


def undo_differences(residuals, lags):
    """Unsigned residuals to codes: c[i] += c[i - lag] for ascending i, for every lag."""
    codes = residuals
    for lag in lags:
        # A table of rows of `lag` values, the last one padded, so that i - lag is right above i.
        table = numpy.zeros(-(-len(codes) // lag) * lag, codes.dtype)
        table[: len(codes)] = codes
        sums = table.reshape(-1, lag).cumsum(axis=0, dtype=codes.dtype)
        codes = sums.reshape(-1)[: len(codes)]
    return codes
