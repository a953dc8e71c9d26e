"""Reading parts of a stream by numpy's index expressions, decoding only the chunks they touch."""

import itertools
import operator

import numpy as np

from . import _core
from ._arrays import is_plain

# Parts with steps are decoded as whole boxes and thinned out afterwards. Above this size the
# boxes are single chunks along the axes with steps.
_BOX_BYTES = 1 << 28


class _Axis:
    """The wanted places of one axis: ascending `places`, and what turns them into the result."""

    def __init__(self, extent):
        self.places = range(extent)
        self.is_dropped = False  # indexed by an integer
        self.is_array = False  # indexed by an array
        self.reorder = None  # index into the ascending places, for falling steps and arrays

    @classmethod
    def of(cls, extent, index, axis):
        self = cls(extent)
        if isinstance(index, slice):
            places = range(*index.indices(extent))
            if places.step < 0:
                places = places[::-1]
                self.reorder = slice(None, None, -1)
            self.places = places
        elif _is_integer(index):
            self.places = _one_place(extent, operator.index(index), axis)
            self.is_dropped = True
        else:
            wanted = _integer_array(index, extent, axis)
            self.places, self.reorder = np.unique(wanted, return_inverse=True)
            self.is_array = True
        return self

    def runs(self, chunk, single_chunks):
        """(first, end, place in the ascending result, wanted in [first, end)) of each box."""
        places = self.places
        if len(places) == 0:
            return []
        if isinstance(places, range) and places.step == 1:
            return [(places[0], places[-1] + 1, slice(None), None)]
        places = np.asarray(places)
        chunks = places // chunk
        # A box must not hold chunks that nothing is wanted of.
        cuts = np.flatnonzero(np.diff(chunks) > (0 if single_chunks else 1)) + 1
        borders = [0, *cuts.tolist(), len(places)]
        return [
            (int(places[a]), int(places[b - 1]) + 1, slice(a, b), places[a:b] - places[a])
            for a, b in zip(borders, borders[1:])
        ]


def _is_integer(index):
    if isinstance(index, (bool, np.bool_)):
        return False
    if isinstance(index, np.ndarray):
        return index.ndim == 0 and index.dtype.kind in "iu"
    return hasattr(index, "__index__")


def _one_place(extent, index, axis):
    place = index + extent if index < 0 else index
    if not 0 <= place < extent:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
    return range(place, place + 1)


def _integer_array(index, extent, axis):
    try:
        array = np.asarray(index)
    except Exception:
        array = np.empty(0, object)
    if array.ndim == 1 and array.dtype == bool:
        if len(array) != extent:
            raise IndexError(
                f"a mask of {len(array)} values for axis {axis} with size {extent}"
            )
        return np.flatnonzero(array)
    if array.ndim == 1 and array.size == 0 and not isinstance(index, str):
        array = array.astype(np.intp) if array.dtype != object else array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise IndexError(
            "an index is an integer, a slice, an Ellipsis, None or one list of integers per axis"
        )
    wrapped = np.where(array < 0, array + extent, array)
    if array.size and not (0 <= wrapped.min() and wrapped.max() < extent):
        raise IndexError(f"a list has indices out of bounds for axis {axis} with size {extent}")
    return wrapped


def _expand(key, rank):
    """The key as one item per axis, with None where the result has a new axis."""
    key = key if isinstance(key, tuple) else (key,)
    ellipses = sum(item is Ellipsis for item in key)
    given = sum(item is not Ellipsis and item is not None for item in key)
    if ellipses > 1:
        raise IndexError("an index can have one Ellipsis ('...') only")
    if given > rank:
        raise IndexError(f"{given} indices for an array of {rank} axes")
    if ellipses == 0:
        key = (*key, Ellipsis)
    items = []
    for item in key:
        items.extend([slice(None)] * (rank - given) if item is Ellipsis else [item])
    return items


def read(stream, info, key, threads, out=None):
    """What info.shape's array gives for array[key]."""
    items = _expand(key, len(info.shape))
    indices = [item for item in items if item is not None]
    axes = [
        _Axis.of(extent, index, number)
        for number, (extent, index) in enumerate(zip(info.shape, indices))
    ]
    if sum(axis.is_array for axis in axes) > 1:
        raise IndexError("lists of integers along more than one axis are not supported")

    shape = tuple(len(axis.places) for axis in axes)
    direct = out is not None and out.shape == shape and out.dtype == info.dtype and is_plain(out)
    result = out if direct else np.empty(shape, info.dtype)
    _decode(stream, info, axes, result, threads)
    result = _arrange(result, axes, items)
    if out is None:
        return result
    if not direct or result is not out:
        if out.shape != result.shape:
            raise ValueError(f"the array out has shape {out.shape}, the selection {result.shape}")
        out[...] = result.copy() if direct else result
    return out


def _decode(stream, info, axes, result, threads):
    if result.size == 0:
        return
    box_values = 1
    for axis in axes:
        box_values *= axis.places[-1] - axis.places[0] + 1
    single_chunks = int(box_values) * info.dtype.itemsize > _BOX_BYTES
    runs = [axis.runs(chunk, single_chunks) for axis, chunk in zip(axes, info.chunk)]
    for boxes in itertools.product(*runs):
        origin = [first for first, _, _, _ in boxes]
        target = result[tuple(place for _, _, place, _ in boxes)]
        if all(wanted is None for _, _, _, wanted in boxes):
            _core.decompress_region(stream, origin, target, threads)
            continue
        box = np.empty([end - first for first, end, _, _ in boxes], info.dtype)
        _core.decompress_region(stream, origin, box, threads)
        for number, (_, _, _, wanted) in enumerate(boxes):
            if wanted is not None:
                box = np.take(box, wanted, axis=number)
        target[...] = box


def _arrange(result, axes, items):
    """Order, dropped axes and new axes, as numpy has them."""
    for number, axis in enumerate(axes):
        if axis.is_array:
            result = np.take(result, axis.reorder, axis=number)
        elif axis.reorder is not None:
            result = result[(slice(None),) * number + (axis.reorder,)]
    final, advanced, array_place, kept = [], [], None, 0
    remaining = iter(axes)
    for position, item in enumerate(items):
        if item is None:
            final.append(np.newaxis)
            kept += 1
            continue
        axis = next(remaining)
        if axis.is_dropped or axis.is_array:
            advanced.append(position)
        if axis.is_array:
            array_place = kept
        final.append(0 if axis.is_dropped else slice(None))
        kept += not axis.is_dropped
    result = result[tuple(final)]
    # numpy moves a list's axis to the front when integers stand apart from it.
    if array_place is not None and advanced[-1] - advanced[0] + 1 != len(advanced):
        result = np.moveaxis(result, array_place, 0)
    return result
