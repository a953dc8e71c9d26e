"""What the functions report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ChunkInfo:
    """One chunk of a stream."""

    offset: int  #: of its record in the stream
    size_bytes: int  #: of its record
    pipeline: str  #: what encoded it
    bound_abs: float  #: of its part of the stream; 0 for pwrel
    max_abs_error: float  #: achieved; 0 for pwrel
    max_pwrel_error: float  #: relative to each value; 0 for other bounds
    origin: tuple[int, ...]  #: of its first value
    shape: tuple[int, ...]
    detail: str  #: how it was encoded, for people


@dataclass(frozen=True)
class Info:
    """What a stream says of itself."""

    format_version: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    bound: str  #: "abs", "rel", "pwrel", "psnr", "ratio" or "lossless", as asked for
    bound_value: float  #: as asked for
    bound_abs: float  #: as enforced; 0 when lossless and for pwrel
    max_abs_error: float  #: achieved; 0 for pwrel
    bound_pwrel: float  #: the same relative to each value; 0 for other bounds
    max_pwrel_error: float
    fill: float | None
    part_count: int  #: more than 1 for what a StreamWriter wrote
    chunk_count: int
    original_bytes: int
    compressed_bytes: int
    complete: bool  #: every chunk's record was found
    chunks: tuple[ChunkInfo, ...] | None = field(default=None, repr=False)

    @property
    def ratio(self) -> float:
        """Original bytes per compressed byte."""
        return self.original_bytes / self.compressed_bytes


@dataclass(frozen=True)
class Estimate:
    """What firn.estimate expects."""

    bound: str
    bound_value: float
    bound_abs: float  #: `rel` is taken of the sample's value range
    ratio: float
    psnr_db: float
    sampled_values: int


@dataclass(frozen=True)
class Comparison:
    """A decoded stream compared with its original, value by value."""

    count: int  #: values compared
    exact_count: int  #: NaN, infinite and fill values among them
    violations: int  #: finite ones out of bound and special ones not bit for bit
    first_violation: int | None  #: its linear index
    max_abs_error: float  #: over finite values
    max_pwrel_error: float  #: relative to each value; infinite where a zero is lost
    value_range: float
    mean_squared_error: float
    psnr_db: float  #: infinity when there is no error


@dataclass(frozen=True)
class Damage:
    """A chunk that could not be decoded; its values are NaN."""

    chunk: int
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    code: int
    message: str


@dataclass(frozen=True)
class Gradient:
    """Lengths of the difference between the gradients of two arrays."""

    max_error: float
    rmse: float
    relative_rmse: float  #: to the root mean square length of the original's


@dataclass(frozen=True)
class Spectrum:
    """Power by frequency, in shells up to half a cycle per value."""

    original: NDArray[np.float64]
    decoded: NDArray[np.float64]
    max_relative_error: float
    max_relative_error_low_half: float  #: over the lower half of the shells
    box: tuple[int, ...]  #: the shape of what was transformed


@dataclass(frozen=True)
class Metrics:
    """What firn.metrics measures; docs/metrics.md defines each. None: does not exist here."""

    count: int
    excluded: int  #: NaN, infinite and fill values of the original
    excluded_different: int  #: those that were not decoded bit for bit
    broken: int  #: finite values decoded as NaN or infinity
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
    psnr_db: float  #: infinity when there is no error
    ssim: float | None
    error_autocorrelation: NDArray[np.float64]  #: at lags 1, 2, ...
    histogram_limit: float
    error_histogram: NDArray[np.uint64]
    histogram_outside: int
    gradient: Gradient | None
    spectrum: Spectrum | None
