"""Anything array-like as what the extension takes: native, aligned floats of 1 to 4 axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InvalidArgument

AnyArray = NDArray[Any]

MAX_RANK = 4


def check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind != "f" or dtype.itemsize not in (4, 8):
        if dtype.kind == "c":
            advice = "array.real and array.imag are to be given separately"
        else:
            # float32 holds 16 bits exactly, not 32.
            name = "float64" if dtype.itemsize >= 4 else "float32"
            advice = f"array.astype(numpy.{name}) makes one"
        raise TypeError(
            f"the array's type is {dtype}; Firn takes float32 and float64 ({advice})"
        )


def is_plain(array: AnyArray) -> bool:
    """Whether the extension can use the array's memory as it is."""
    return (
        array.dtype.isnative
        and array.flags.aligned
        and all(stride % array.itemsize == 0 for stride in array.strides)
    )


def as_input(array: Any, *, merge_axes: bool = False) -> AnyArray:
    """The array without a copy, unless its bytes are swapped or unaligned.

    More than four axes are refused, as a stream cannot hold them, or, for callers that keep the
    shape themselves, merged from the slowest on.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            "a masked array: pass array.filled(value) and fill=value, so that masked values "
            "come back as they are"
        )
    values: AnyArray = np.asarray(array)
    check_dtype(values.dtype)
    if values.ndim == 0:
        raise InvalidArgument(
            "an array without axes (shape ()): Firn takes 1 to 4 axes; array.reshape(1) has one"
        )
    if values.ndim > MAX_RANK:
        fastest = values.shape[1 - MAX_RANK :]
        if not merge_axes:
            raise InvalidArgument(
                f"an array of {values.ndim} axes: Firn streams hold 1 to {MAX_RANK}; merge the "
                f"slowest with array.reshape{(-1, *fastest)} and keep the shape "
                f"{values.shape} beside the stream"
            )
        # Not -1: that cannot be found out when an extent is 0.
        slowest = int(np.prod(values.shape[: 1 - MAX_RANK], dtype=np.int64))
        values = values.reshape(slowest, *fastest)
    if not is_plain(values):
        values = values.astype(values.dtype.newbyteorder("="), order="C", copy=True)
    return values


def check_output(out: Any) -> AnyArray:
    """`out` if it is an array that can be written to."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy array, not {type(out).__name__}")
    check_dtype(out.dtype)
    if not out.flags.writeable:
        raise InvalidArgument("the array out is read-only")
    return out
