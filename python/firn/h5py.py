"""`import firn.h5py` lets h5py in this process read and write datasets compressed by Firn.

HDF5 compresses one chunk after the other. `write` and `read` do what `dataset[...] = array` and
`dataset[key]` do, with the chunks compressed and decompressed side by side.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import _core, _indexing
from ._arrays import AnyArray, as_input, check_output
from ._errors import Corrupt, InvalidArgument, Unsupported
from ._hdf5 import register_hdf5_plugin

__all__ = ["read", "write"]

register_hdf5_plugin()

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
_Offset = tuple[int, ...]


def write(
    dataset: Any, array: ArrayLike, *, origin: Sequence[int] | None = None, threads: int = 0
) -> None:
    """Write an array into a dataset, compressing many chunks at once.

    The file is the same as after `dataset[...] = array`. Firn must be the dataset's only filter.

    Parameters
    ----------
    dataset
        An h5py.Dataset made with `**firn.hdf5(...)`.
    array
        All of the dataset or, with `origin`, the box that begins there, which must begin and end
        with chunks (or at the dataset's end).
    threads
        0: all cores.

    Examples
    --------
    >>> import h5py, firn.h5py
    >>> field = np.sin(np.arange(64.0**3) / 1000).reshape(64, 64, 64)
    >>> with h5py.File("fast.h5", "w") as file:
    ...     dataset = file.create_dataset(
    ...         "u", field.shape, field.dtype, chunks=(16, 64, 64), **firn.hdf5(abs=1e-3))
    ...     firn.h5py.write(dataset, field)
    ...     bool(np.abs(dataset[...] - field).max() <= 1e-3)
    True
    """
    chunks = _Chunks(dataset)
    values = np.asarray(array)
    first = tuple(origin) if origin is not None else (0,) * len(dataset.shape)
    _check_box(first, values.shape, dataset)
    offsets = list(_offsets(first, values.shape, chunks.extents))
    threads, threads_inside = _share_out(threads, len(offsets))

    def encode(offset: _Offset) -> bytes:
        inside = tuple(
            slice(at - start, at - start + extent)
            for at, start, extent in zip(offset, first, chunks.extents)
        )
        return chunks.encode(values[inside], threads_inside)

    for offset, stream in zip(offsets, _in_order(threads, encode, offsets)):
        dataset.id.write_direct_chunk(offset, stream)


def read(dataset: Any, key: Any = ..., *, out: AnyArray | None = None, threads: int = 0) -> Any:
    """Read `dataset[key]`, decompressing many chunks at once.

    Parameters
    ----------
    dataset
        An h5py.Dataset whose only filter is Firn.
    key
        What would stand in brackets behind a numpy array: integers, slices, Ellipsis, one list.
    out
        An array of the selection's shape to write into.
    threads
        0: all cores.

    Examples
    --------
    >>> import h5py, firn.h5py
    >>> with h5py.File("some.h5", "w") as file:
    ...     dataset = file.create_dataset(
    ...         "u", data=np.arange(1000.0), chunks=(100,), **firn.hdf5(lossless=True))
    ...     firn.h5py.read(dataset, np.s_[::-300])
    array([999., 699., 399.,  99.])
    """
    chunks = _Chunks(dataset)
    if out is not None:
        check_output(out)

    def decode_box(origin: Sequence[int], target: AnyArray) -> None:
        offsets = list(_offsets(origin, target.shape, chunks.extents))
        shared, inside = _share_out(threads, len(offsets))

        def decode(offset: _Offset) -> None:
            chunks.decode_into(target, origin, offset, inside)

        for _ in _in_order(shared, decode, offsets):
            pass

    return _indexing.read(decode_box, dataset.shape, chunks.dtype, chunks.extents, key, out)


class _Chunks:
    """How the chunks of a dataset are compressed."""

    def __init__(self, dataset: Any) -> None:
        creation = dataset.id.get_create_plist()
        filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
        if filters != [_core.hdf5_filter_id]:
            raise Unsupported(
                "only a dataset whose one filter is Firn can be read or written this way; "
                f"{dataset.name} has {filters or 'none'}"
            )
        described = _core.hdf5_chunks(creation.get_filter_by_id(_core.hdf5_filter_id)[1])
        if described is None:
            raise Unsupported(
                f"Firn does not apply to {dataset.name}, whose type is {dataset.dtype}: h5py "
                "stores it as it is"
            )
        self._dataset = dataset
        self._shape, self._options = described  # of a chunk as Firn sees it
        self.extents: tuple[int, ...] = dataset.chunks
        self.dtype = dataset.dtype.newbyteorder("=")
        self._fill = np.zeros((), self.dtype)
        if creation.fill_value_defined():
            creation.get_fill_value(self._fill)

    def encode(self, part: AnyArray, threads: int) -> bytes:
        chunk = part.astype(self.dtype, copy=False)
        if chunk.shape != self.extents:  # at the dataset's end
            padded = np.full(self.extents, self._fill, self.dtype)
            padded[tuple(map(slice, chunk.shape))] = chunk
            chunk = padded
        return _core.compress(as_input(chunk.reshape(self._shape)), self._options, threads)

    def decode_into(
        self, target: AnyArray, origin: Sequence[int], offset: _Offset, threads: int
    ) -> None:
        """Decode what the chunk at `offset` has of the box at `origin`."""
        starts = [max(at - start, 0) for at, start in zip(offset, origin)]
        part = target[
            tuple(
                slice(place, at + extent - start)
                for place, at, extent, start in zip(starts, offset, self.extents, origin)
            )
        ]
        inside = [start + place - at for start, place, at in zip(origin, starts, offset)]
        dataset = self._dataset.id
        if dataset.get_chunk_info_by_coord(offset).byte_offset is None:  # never written
            part[...] = self._fill
            return
        filter_mask, stream = dataset.read_direct_chunk(offset)
        box = tuple(slice(first, first + count) for first, count in zip(inside, part.shape))
        if filter_mask & 1:  # stored as it is, where the filter could not be applied
            part[...] = np.frombuffer(stream, self._dataset.dtype).reshape(self.extents)[box]
            return
        if _core.inspect(stream)["shape"] != self._shape:
            raise Corrupt(f"the chunk at {offset} has another shape than the dataset's chunks")
        kept = [axis for axis, extent in enumerate(self.extents) if extent != 1]
        if len(kept) == len(self._shape):
            view = part[tuple(slice(None) if axis in kept else 0 for axis in range(part.ndim))]
            _core.decompress_region(stream, [inside[axis] for axis in kept], view, threads)
        else:
            whole = np.empty(self._shape, self.dtype)
            _core.decompress(stream, whole, threads)
            part[...] = whole.reshape(self.extents)[box]


def _check_box(origin: Sequence[int], shape: Sequence[int], dataset: Any) -> None:
    where = f"the array of shape {tuple(shape)} at {tuple(origin)}"
    if not len(origin) == len(shape) == len(dataset.shape) or any(
        first < 0 or first + count > extent
        for first, count, extent in zip(origin, shape, dataset.shape)
    ):
        raise InvalidArgument(f"{where} does not lie in the dataset of shape {dataset.shape}")
    if origin == (0,) * len(origin) and tuple(shape) == dataset.shape:
        return
    if any(
        first % chunk or ((first + count) % chunk and first + count != extent)
        for first, count, extent, chunk in zip(origin, shape, dataset.shape, dataset.chunks)
    ):
        raise InvalidArgument(
            f"{where} does not begin and end with chunks, whose shape is {dataset.chunks}"
        )


def _offsets(
    origin: Sequence[int], shape: Sequence[int], chunk: Sequence[int]
) -> Iterator[_Offset]:
    """Where the chunks begin that a box touches."""
    return itertools.product(
        *(
            range(first - first % step, first + count, step)
            for first, count, step in zip(origin, shape, chunk)
        )
    )


def _share_out(threads: int, count: int) -> tuple[int, int]:
    """Chunks to work on at once, and threads within each: more where chunks are few."""
    if threads < 0:
        raise InvalidArgument(f"threads {threads}; 0 means all cores")
    threads = threads or len(os.sched_getaffinity(0))
    return (threads, 1) if count >= threads else (1, threads)


def _in_order(
    threads: int, function: Callable[[_Item], _Answer], items: Iterable[_Item]
) -> Iterator[_Answer]:
    """map() by several threads, which are never more than a few items ahead."""
    if threads == 1:
        yield from map(function, items)
        return
    pending: deque[Future[_Answer]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            if len(pending) == 2 * threads:
                yield pending.popleft().result()
            pending.append(pool.submit(function, item))
        while pending:
            yield pending.popleft().result()
