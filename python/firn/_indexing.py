"""Reading parts of an array by numpy's index expressions, decoding only the chunks they touch."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

import numpy as np

from ._arrays import AnyArray, is_plain

# Parts with steps are decoded as whole boxes and thinned out afterwards. Above this size the
# boxes are single chunks along the axes with steps.
_BOX_BYTES = 1 << 28

# Decodes the box at an origin into an array of the box's shape.
DecodeBox = Callable[[Sequence[int], AnyArray], None]

# One box along one axis: its first value and its end, its place in the selection, and what of it
# is wanted.
_Run = tuple[int, int, slice, Union[slice, AnyArray]]


class _Axis:
    """The wanted places of one axis, ascending, and how they turn into the result."""

    def __init__(self, extent: int, index: Any, number: int) -> None:
        self.places: Any = range(extent)
        self.is_dropped = False  # indexed by an integer
        self.is_reversed = False  # by a slice with a negative step
        self.reorder: AnyArray | None = None  # by a list: indices into the ascending places
        if isinstance(index, slice):
            self.places = self.places[index]
            if self.places.step < 0:
                self.places = self.places[::-1]
                self.is_reversed = True
        elif _is_integer(index):
            place = operator.index(index)
            if not -extent <= place < extent:
                raise IndexError(
                    f"index {place} is out of bounds for axis {number} with size {extent}"
                )
            self.places = range(place % extent, place % extent + 1)
            self.is_dropped = True
        else:
            wanted = _integer_array(index, extent, number)
            self.places, self.reorder = np.unique(wanted, return_inverse=True)

    def runs(self, chunk: int, single_chunks: bool) -> list[_Run]:
        places = self.places
        if len(places) == 0:
            return []
        if isinstance(places, range) and places.step == 1:
            return [(places.start, places.stop, slice(None), slice(None))]
        # A box must not hold chunks that nothing is wanted of.
        gaps = np.diff(np.asarray(places) // chunk)
        cuts = np.flatnonzero(gaps > (0 if single_chunks else 1)) + 1
        borders = [0, *cuts.tolist(), len(places)]
        return [
            (
                int(places[a]),
                int(places[b - 1]) + 1,
                slice(a, b),
                slice(None, None, places.step)
                if isinstance(places, range)
                else places[a:b] - places[a],
            )
            for a, b in zip(borders, borders[1:])
        ]


def _is_integer(index: Any) -> bool:
    if isinstance(index, (bool, np.bool_)):
        return False
    if isinstance(index, np.ndarray):
        return index.ndim == 0 and index.dtype.kind in "iu"
    return hasattr(index, "__index__")


def _integer_array(index: Any, extent: int, number: int) -> AnyArray:
    array = np.asarray(index) if isinstance(index, (list, tuple, np.ndarray)) else np.empty(0, "O")
    if array.ndim == 1 and array.dtype == bool:
        if len(array) != extent:
            raise IndexError(f"a mask of {len(array)} values for axis {number} with size {extent}")
        return np.flatnonzero(array)
    if array.ndim == 1 and array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.intp)  # numpy's reading of []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise IndexError(
            "an index is an integer, a slice, an Ellipsis, None or one list of integers"
        )
    wrapped = np.where(array < 0, array + extent, array)
    if array.size and not (0 <= wrapped.min() and wrapped.max() < extent):
        raise IndexError(f"a list has indices out of bounds for axis {number} with size {extent}")
    return wrapped


def _expand(key: Any, rank: int) -> list[Any]:
    """The key as one item per axis, with None where the result has a new axis."""
    items = list(key) if isinstance(key, tuple) else [key]
    ellipses = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can have one Ellipsis ('...') only")
    given = sum(item is not Ellipsis and item is not None for item in items)
    if given > rank:
        raise IndexError(f"{given} indices for an array of {rank} axes")
    place = ellipses[0] if ellipses else len(items)
    items[place : place + 1] = [slice(None)] * (rank - given)
    return items


def read(
    decode_box: DecodeBox,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    chunk: Sequence[int],
    key: Any,
    out: AnyArray | None = None,
) -> Any:
    """What an array of this shape, whose values decode_box decodes, gives for array[key]."""
    items = _expand(key, len(shape))
    indices = (item for item in items if item is not None)
    axes = [
        _Axis(extent, index, number) for number, (extent, index) in enumerate(zip(shape, indices))
    ]
    lists = sum(axis.reorder is not None for axis in axes)
    if lists > 1:
        raise IndexError("lists of integers along more than one axis are not supported")
    if lists == 1:
        ascending = np.empty([len(axis.places) for axis in axes], dtype)
        _decode(decode_box, dtype, chunk, axes, ascending)
        selection = _arrange(ascending, axes, items)
        return selection if out is None else _copy_into(_checked(out, selection.shape), selection)

    # The result, seen with the axes of the array in ascending order.
    remaining = iter(axes)
    final: list[int] = []
    view: list[Any] = []
    for item in items:
        if item is None:
            final.append(1)
            view.append(0)
            continue
        axis = next(remaining)
        if axis.is_dropped:
            view.append(np.newaxis)
        else:
            final.append(len(axis.places))
            view.append(slice(None, None, -1 if axis.is_reversed else 1))
    result = np.empty(final, dtype) if out is None else _checked(out, tuple(final))
    plain = result if is_plain(result) and result.dtype == dtype else np.empty(final, dtype)
    _decode(decode_box, dtype, chunk, axes, plain[tuple(view)])
    if out is None:
        return result[()]  # a number, if there is only one
    return result if plain is result else _copy_into(result, plain)


def _checked(out: AnyArray, shape: Iterable[int]) -> AnyArray:
    if out.shape != tuple(shape):
        raise ValueError(f"the array out has shape {out.shape}, the selection {tuple(shape)}")
    return out


def _copy_into(out: AnyArray, values: AnyArray) -> AnyArray:
    out[...] = values
    return out


def _decode(
    decode_box: DecodeBox,
    dtype: np.dtype[Any],
    chunk: Sequence[int],
    axes: list[_Axis],
    result: AnyArray,
) -> None:
    if result.size == 0:
        return
    box_values = math.prod(int(axis.places[-1] - axis.places[0]) + 1 for axis in axes)
    single_chunks = box_values * dtype.itemsize > _BOX_BYTES
    runs = [axis.runs(extent, single_chunks) for axis, extent in zip(axes, chunk)]
    for boxes in itertools.product(*runs):
        origin = [first for first, _, _, _ in boxes]
        target = result[tuple(place for _, _, place, _ in boxes)]
        wanted = tuple(wanted for _, _, _, wanted in boxes)
        if all(isinstance(part, slice) and part.step is None for part in wanted):
            decode_box(origin, target)
        else:
            box = np.empty([end - first for first, end, _, _ in boxes], dtype)
            decode_box(origin, box)
            target[...] = box[wanted]


def _arrange(ascending: AnyArray, axes: list[_Axis], items: list[Any]) -> AnyArray:
    """The selection of a key with a list: order, dropped axes and new axes, as numpy has them."""
    result = ascending
    for number, axis in enumerate(axes):
        if axis.reorder is not None:
            result = np.take(result, axis.reorder, axis=number)
        elif axis.is_reversed:
            result = np.flip(result, number)
    final: list[Any] = []
    advanced: list[int] = []
    list_place = kept = 0
    remaining = iter(axes)
    for position, item in enumerate(items):
        axis_or_new = None if item is None else next(remaining)
        if axis_or_new is None:
            final.append(np.newaxis)
        elif axis_or_new.is_dropped:
            final.append(0)
            advanced.append(position)
            continue
        else:
            final.append(slice(None))
            if axis_or_new.reorder is not None:
                advanced.append(position)
                list_place = kept
        kept += 1
    result = result[tuple(final)]
    # numpy moves a list's axis to the front when integers stand apart from it.
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        result = np.moveaxis(result, list_place, 0)
    return result
