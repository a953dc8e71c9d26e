"""Streams as steps are made and as bytes arrive: the steps of a simulation, a pipe, a socket."""

from __future__ import annotations

import contextlib
import mmap
import os
import warnings
from builtins import open as open_file
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import AnyArray, as_input
from ._errors import InvalidArgument, RatioWarning, Truncated
from ._options import Options, make_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A path, or a file that is open for bytes.
File = Union[str, os.PathLike[str], BinaryIO]

_READ_BYTES = 1 << 20


class StreamWriter:
    """Writes an array step by step along its first axis, without holding all of it.

    Parameters
    ----------
    file
        A path, or an object with write(), which takes the bytes in their order.
    mode
        "w" begins a new file, "x" only where there is none, "a" continues the array that a file
        holds (or begins one). A file that exists stays as it is until there are bytes to write, or
        until close() without an error.
    threads
        0: all cores.
    **options
        Those of firn.compress. Every few steps become a part of the stream, and `rel` and `psnr`
        hold in each part by itself; `ratio` is kept on the average (firn.RatioWarning on close()
        where what this writer wrote missed it by more than 1 %).

    The type and the shape of a step are the first one's. What has been flushed can be read by
    others, also when this program never comes to close(). firn.open and all else read such files
    as one array.

    Examples
    --------
    >>> with firn.StreamWriter("run.firn", abs=1e-3) as writer:
    ...     for time in range(100):
    ...         writer.append(np.sin(np.arange(600.0).reshape(20, 30) + time))
    >>> firn.open("run.firn").shape
    (100, 20, 30)
    >>> with firn.StreamWriter("run.firn", mode="a", abs=1e-3) as writer:
    ...     writer.extend(np.zeros((5, 20, 30)))
    >>> firn.open("run.firn").shape
    (105, 20, 30)
    """

    def __init__(
        self, file: File, *, mode: str = "w", threads: int = 0, **options: Unpack[Options]
    ) -> None:
        if mode not in ("w", "x", "a"):
            raise InvalidArgument(f'no mode "{mode}"; there are w, x and a')
        self._options = make_options(**options)
        self._threads = threads
        self._writer: _core.StreamWriter | None = None
        self._has_steps = False
        self._original_bytes = self._written_bytes = 0
        self._was_tried = False  # without a step in the end, the file stays as it was
        self._cut_at: int | None = None  # of a file in which something may stand
        self._made: str | None = None  # the path of a file that was not there before
        self._file: Any = None
        self._owns_file = isinstance(file, (str, os.PathLike))
        if isinstance(file, (str, os.PathLike)):
            self._open(os.path.abspath(os.fspath(file)), mode)
        elif mode == "a":
            raise InvalidArgument("only a file that is given by its path can be continued")
        else:
            self._file = file

    def _open(self, path: str, mode: str) -> None:
        if mode == "a" and os.path.exists(path) and os.path.getsize(path) > 0:
            self._file = open_file(path, "r+b")
            try:
                self._continue()
            except BaseException:
                self._file.close()
                raise
            return
        is_new = not os.path.lexists(path)
        # Opened at once, so that a path that cannot be written to is told before the first step.
        self._file = open_file(path, "xb" if mode == "x" else "wb", opener=_without_emptying)
        self._cut_at = 0
        self._made = path if is_new else None

    def _continue(self) -> None:
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as existing:
            self._writer = _core.StreamWriter.append_to(existing, self._options, self._threads)
        self._cut_at = self._writer.append_offset
        self._file.seek(self._cut_at)

    def append(self, step: ArrayLike) -> None:
        """Write one step."""
        self._was_tried = True
        # A masked array is still one when extend() looks at it.
        self.extend(np.asanyarray(step)[np.newaxis])

    def extend(self, steps: ArrayLike) -> None:
        """Write the steps that lie along an array's first axis."""
        file = self._open_file()
        self._was_tried = True
        array = as_input(steps)
        writer = self._writer
        if writer is None:
            writer = _core.StreamWriter(
                array.dtype.name, array.shape[1:], self._options, self._threads
            )
        ready = writer.push(array)
        self._writer, self._has_steps = writer, True  # not before the step was accepted
        self._original_bytes += array.nbytes
        self._write(file, ready)

    def flush(self) -> None:
        """Make everything that was written readable for others."""
        file = self._open_file()
        if self._writer is not None:
            self._write(file, self._writer.flush())
        file.flush()

    def close(self) -> None:
        """Write what is left. A file that was passed in stays open."""
        self._close(failed=False)

    def _close(self, failed: bool) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        is_void = self._was_tried and not self._has_steps
        try:
            if not is_void:
                if self._writer is not None:
                    self._write(file, self._writer.finish())
                self._cut(file)
            file.flush()
        finally:
            if self._owns_file:
                file.close()
            if is_void and self._made is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._made)
        missed = self._options.missed_ratio(self._original_bytes, self._written_bytes)
        if missed is not None and not failed:
            warnings.warn(missed, RatioWarning, stacklevel=3)

    def _write(self, file: Any, data: bytes) -> None:
        if data:
            self._cut(file)
            file.write(data)
            self._written_bytes += len(data)

    def _cut(self, file: Any) -> None:
        """Drop what stood in the file: behind a shorter part, its rest could not be read."""
        if self._cut_at is not None and os.fstat(file.fileno()).st_size > self._cut_at:
            file.truncate(self._cut_at)
        self._cut_at = None

    def _open_file(self) -> Any:
        if self._file is None:
            raise ValueError("the writer is closed")
        return self._file

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        failed = exception[0] is not None
        self._was_tried |= failed
        self._close(failed)


def _without_emptying(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


class StreamReader:
    """Reads an array step by step along its first axis, as its bytes arrive.

    `file` is a path or an object with read(), such as a pipe or a socket's makefile("rb"); it need
    not know where it ends, nor be able to seek. To read parts of a file in any order, firn.open
    is the right way.

    Examples
    --------
    >>> about = firn.save("v.firn", np.arange(24.0).reshape(4, 2, 3), lossless=True)
    >>> with firn.StreamReader("v.firn") as reader:
    ...     print(reader.dtype, reader.step_shape)
    ...     for step in reader:
    ...         print(step.sum())
    float64 (2, 3)
    15.0
    51.0
    87.0
    123.0
    """

    def __init__(self, file: File, *, threads: int = 0) -> None:
        self._threads = threads
        self._reader = _core.StreamReader()
        self._owns_file = isinstance(file, (str, os.PathLike))
        self._file: Any = (
            open_file(file, "rb") if isinstance(file, (str, os.PathLike)) else file
        )
        # What is there, rather than waiting for more.
        self._read_some = getattr(self._file, "read1", self._file.read)
        try:
            while (about := self._reader.about()) is None:
                if not self._feed():
                    raise Truncated("the stream ends before its header does")
        except BaseException:
            self.close()
            raise
        self._dtype, self._step_shape = np.dtype(about[0]), about[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def step_shape(self) -> tuple[int, ...]:
        return self._step_shape

    def read(self, count: int | None = None) -> AnyArray:
        """The next `count` steps, or all that are left; fewer only where the array ends."""
        if count is None:
            step_bytes = int(np.prod(self._step_shape, dtype=np.int64)) * self._dtype.itemsize
            some = max(1, _READ_BYTES // max(step_bytes, 1))
            pieces = [self.read(some)]
            while len(pieces[-1]) == some:
                pieces.append(self.read(some))
            return np.concatenate(pieces)
        if count < 0:
            raise InvalidArgument(
                f"{count} steps: a count is 0 or more; read() gives all that are left"
            )
        steps = np.empty((count, *self._step_shape), self._dtype)
        done = 0
        while done < count:
            now = self._reader.read(steps[done:], self._threads)
            done += now
            if now == 0 and not self._feed():
                if not self._reader.at_boundary():
                    raise Truncated("the stream ends before all of its chunks have arrived")
                break
        return steps[:done]

    def _feed(self) -> bool:
        data = self._read_some(_READ_BYTES)
        if data:
            self._reader.feed(data)
        return bool(data)

    def __iter__(self) -> Iterator[Any]:
        while len(step := self.read(1)):
            yield step[0]

    def close(self) -> None:
        """Close the file, if it was given by its path."""
        if self._owns_file:
            self._file.close()

    def __enter__(self) -> StreamReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
