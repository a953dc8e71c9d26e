"""Files with one stream each (.firn), opened as arrays that are decoded where they are indexed."""

from __future__ import annotations

import mmap
import os
import tempfile
from builtins import open as open_file
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._api import compress_with, decompress, info, read_stream
from ._arrays import AnyArray
from ._errors import Error, NotFirn
from ._options import Options, make_options
from ._types import Info

if TYPE_CHECKING:
    from typing_extensions import Unpack

Path = Union[str, os.PathLike[str]]


class File:
    """A .firn file as an array: indexing decodes only the chunks that are touched.

    Made by firn.open. Takes numpy's basic indices (integers, slices with any step, Ellipsis,
    None) and one list of integers; numpy.asarray decodes all of it. Safe to read from many
    threads. dask.array.from_array takes it as it is.
    """

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = os.path.abspath(os.fspath(path))
        self._threads = threads
        with open_file(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise NotFirn(f"{self._path}: the file is empty")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._info = info(self._map)
        except Error as error:
            self._map.close()
            raise type(error)(f"{self._path}: {error}") from None

    @property
    def info(self) -> Info:
        """What the stream says of itself: a firn.Info."""
        return self._info

    @property
    def shape(self) -> tuple[int, ...]:
        return self._info.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._info.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of the chunks that are decoded one by one."""
        return self._info.chunk

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.nbytes // self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Of the decoded array."""
        return self._info.original_bytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return read_stream(self._map, self._info, key, self._threads)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("a .firn file has to be decoded, so it cannot be had without a copy")
        array = decompress(self._map, threads=self._threads)
        return array if dtype is None else array.astype(dtype, copy=False)

    def close(self) -> None:
        """Give the file back; it cannot be read afterwards."""
        self._map.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self._path, self._threads)

    def __repr__(self) -> str:
        return (
            f"<firn.File {self._path!r}: shape {self.shape}, {self.dtype}, "
            f"{self._info.bound} bound, ratio {self._info.ratio:.3g}>"
        )


def _reopen(kind: type[File], path: str, threads: int) -> File:
    return kind(path, threads=threads)


def open(path: Path, *, threads: int = 0) -> File:
    """Open a .firn file as an array.

    Examples
    --------
    >>> firn.save("u.firn", np.arange(1000.0).reshape(10, 10, 10), abs=1e-3)  # doctest: +ELLIPSIS
    Info(...)
    >>> with firn.open("u.firn") as f:
    ...     print(f.shape, f.dtype, f[3, :, 1:3].shape)
    (10, 10, 10) float64 (10, 2)
    """
    return File(path, threads=threads)


def load(path: Path, *, threads: int = 0) -> AnyArray:
    """Decode a whole .firn file.

    Examples
    --------
    >>> about = firn.save("v.firn", np.zeros(5, np.float32), lossless=True)
    >>> firn.load("v.firn")
    array([0., 0., 0., 0., 0.], dtype=float32)
    """
    with open(path, threads=threads) as file:
        return np.asarray(file)


def save(path: Path, array: ArrayLike, *, threads: int = 0, **options: Unpack[Options]) -> Info:
    """Compress an array into a .firn file. The options are those of firn.compress.

    The file appears under its name when it is complete: a crash or a full disk leaves what was
    there before. Returns the stream's firn.Info.

    Examples
    --------
    >>> about = firn.save("w.firn", np.linspace(0, 1, 10_000), rel=1e-3)
    >>> about.ratio > 10
    True
    """
    stream = compress_with(array, make_options(**options), threads)
    path = os.path.abspath(os.fspath(path))
    directory, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            # What open() would have given the file.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
            file.write(stream)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return info(stream)
