import enum
import os
from dataclasses import dataclass
from types import EllipsisType, TracebackType
from typing import Any, SupportsFloat, SupportsIndex, TypedDict, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

# bytes, bytearray, memoryview, mmap, arrays: anything contiguous with the buffer protocol.
_Buffer = Any
_Path = Union[str, os.PathLike[str]]
_Array = NDArray[Any]
_Index = Union[SupportsIndex, slice, EllipsisType, None, list[int], _Array]
_Key = Union[_Index, tuple[_Index, ...]]
_Box = tuple[
    Union[tuple[int, ...], list[int], _Array], Union[tuple[int, ...], list[int], _Array]
]

__version__: str

class ErrorCode(enum.IntEnum):
    INVALID_ARGUMENT = 1
    UNSUPPORTED = 2
    BUFFER_TOO_SMALL = 3
    NOT_FIRN = 4
    NEWER_VERSION = 5
    TRUNCATED = 6
    CORRUPT = 7
    OUT_OF_MEMORY = 8
    BOUND_EXCEEDED = 9
    CANCELLED = 10

class Error(Exception):
    code: ErrorCode

class InvalidArgument(Error, ValueError): ...
class Unsupported(Error, NotImplementedError): ...
class BufferTooSmall(Error, ValueError): ...
class NotFirn(Error, ValueError): ...
class NewerVersion(Error, NotImplementedError): ...
class Truncated(Error, EOFError): ...
class Corrupt(Error, ValueError): ...
class OutOfMemory(Error, MemoryError): ...

class BoundExceeded(Error, ArithmeticError):
    comparison: Comparison | None

class Cancelled(Error): ...

@dataclass(frozen=True)
class ChunkInfo:
    offset: int
    size_bytes: int
    pipeline: str
    max_abs_error: float
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    detail: str

@dataclass(frozen=True)
class Info:
    format_version: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    bound: str
    bound_value: float
    bound_abs: float
    max_abs_error: float
    fill: float | None
    chunk_count: int
    original_bytes: int
    compressed_bytes: int
    complete: bool
    chunks: tuple[ChunkInfo, ...] | None = None
    @property
    def ratio(self) -> float: ...

@dataclass(frozen=True)
class Comparison:
    count: int
    exact_count: int
    violations: int
    first_violation: int | None
    max_abs_error: float
    value_range: float
    mean_squared_error: float
    psnr_db: float

@dataclass(frozen=True)
class Damage:
    chunk: int
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    code: int
    message: str

class File:
    def __init__(self, path: _Path, *, threads: int = 0) -> None: ...
    @property
    def info(self) -> Info: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: _Key) -> Any: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> _Array: ...
    def close(self) -> None: ...
    def __enter__(self) -> File: ...
    def __exit__(
        self,
        *exception: type[BaseException] | BaseException | TracebackType | None,
    ) -> None: ...

class _Gradient(TypedDict):
    max_error: float
    rmse: float
    relative_rmse: float

class _Spectrum(TypedDict):
    original: NDArray[np.float64]
    decoded: NDArray[np.float64]
    max_relative_error: float
    max_relative_error_low_half: float
    box: tuple[int, ...]

class _Metrics(TypedDict):
    count: int
    excluded: int
    excluded_different: int
    broken: int
    minimum: float
    maximum: float
    range: float
    max_abs_error: float
    max_range_relative_error: float
    max_pointwise_relative_error: float
    zeros_changed: int
    mean_error: float
    rmse: float
    nrmse: float
    psnr_db: float
    ssim: float | None
    error_autocorrelation: NDArray[np.float64]
    histogram_limit: float
    error_histogram: NDArray[np.uint64]
    histogram_outside: int
    gradient: _Gradient | None
    spectrum: _Spectrum | None

def compress(
    array: ArrayLike,
    *,
    abs: SupportsFloat | None = None,
    rel: SupportsFloat | None = None,
    psnr: SupportsFloat | None = None,
    lossless: bool = False,
    preset: str = "balanced",
    pipeline: str | None = None,
    chunk: int | tuple[int, ...] | list[int] | None = None,
    fill: SupportsFloat | None = None,
    threads: int = 0,
) -> bytes: ...
def decompress(buffer: _Buffer, *, out: _Array | None = None, threads: int = 0) -> _Array: ...
def decompress_region(
    buffer: _Buffer, region: _Key | _Box, *, out: _Array | None = None, threads: int = 0
) -> Any: ...
def info(buffer: _Buffer, *, chunks: bool = False) -> Info: ...
def verify(original: ArrayLike, buffer: _Buffer, *, threads: int = 0) -> Comparison: ...
def salvage(buffer: _Buffer, *, threads: int = 0) -> tuple[_Array, list[Damage]]: ...
def metrics(
    original: ArrayLike,
    decoded: ArrayLike | bytes | bytearray | memoryview,
    *,
    fill: SupportsFloat | None = None,
    lags: int = 10,
    histogram_bins: int = 64,
    histogram_limit: float = 0.0,
    ssim: bool = True,
    gradient: bool = True,
    spectrum: bool = True,
    spectrum_values: int = 16777216,
    threads: int = 0,
) -> _Metrics: ...
def open(path: _Path, *, threads: int = 0) -> File: ...
def load(path: _Path, *, threads: int = 0) -> _Array: ...
def save(path: _Path, array: ArrayLike, **options: Any) -> Info: ...
def hdf5(
    *,
    abs: SupportsFloat | None = None,
    rel: SupportsFloat | None = None,
    psnr: SupportsFloat | None = None,
    lossless: bool = False,
    preset: str = "balanced",
) -> dict[str, Any]: ...
def hdf5_plugin_path() -> str | None: ...
def simd_target() -> str: ...
def simd_targets() -> list[str]: ...
def version() -> str: ...

__all__: list[str]
