"""What the functions report."""

from dataclasses import dataclass, field
from typing import Optional, Tuple

import numpy as np


@dataclass(frozen=True)
class ChunkInfo:
    """One chunk of a stream."""

    offset: int  #: of its record in the stream
    size_bytes: int  #: of its record
    pipeline: str  #: what encoded it
    max_abs_error: float  #: achieved
    origin: Tuple[int, ...]  #: of its first value
    shape: Tuple[int, ...]
    detail: str  #: how it was encoded, for people


@dataclass(frozen=True)
class Info:
    """What a stream says of itself."""

    format_version: int
    dtype: np.dtype
    shape: Tuple[int, ...]
    chunk: Tuple[int, ...]
    bound: str  #: "abs", "rel", "psnr" or "lossless", as asked for
    bound_value: float  #: as asked for
    bound_abs: float  #: as enforced; 0 when lossless
    max_abs_error: float  #: achieved
    fill: Optional[float]
    chunk_count: int
    original_bytes: int
    compressed_bytes: int
    complete: bool  #: every chunk's record was found
    chunks: Optional[Tuple[ChunkInfo, ...]] = field(default=None, repr=False)

    @property
    def ratio(self) -> float:
        """Original bytes per compressed byte."""
        return self.original_bytes / self.compressed_bytes


@dataclass(frozen=True)
class Comparison:
    """A decoded stream compared with its original, value by value."""

    count: int  #: values compared
    exact_count: int  #: NaN, infinite and fill values among them
    violations: int  #: finite ones out of bound and special ones not bit for bit
    first_violation: Optional[int]  #: its linear index
    max_abs_error: float  #: over finite values
    value_range: float
    mean_squared_error: float
    psnr_db: float  #: infinity when there is no error


@dataclass(frozen=True)
class Damage:
    """A chunk that could not be decoded; its values are NaN."""

    chunk: int
    origin: Tuple[int, ...]
    shape: Tuple[int, ...]
    code: int
    message: str
