"""The keywords that say how an array is compressed, which many functions share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsFloat, SupportsIndex, TypedDict, Union

from . import _core
from ._errors import InvalidArgument

ChunkShape = Union[SupportsIndex, Iterable[SupportsIndex]]


class FilterOptions(TypedDict, total=False):
    """What HDF5 and Zarr leave to a codec, which sees one chunk at a time."""

    abs: SupportsFloat | None
    rel: SupportsFloat | None
    pwrel: SupportsFloat | None
    psnr: SupportsFloat | None
    lossless: bool
    preset: str
    pipeline: str | None
    fill: SupportsFloat | None


class Options(FilterOptions, total=False):
    """The keywords of firn.compress."""

    ratio: SupportsFloat | None
    max_abs: SupportsFloat | None
    chunk: ChunkShape | None
    tune: str
    books: str


def make_options(
    *,
    abs: SupportsFloat | None = None,
    rel: SupportsFloat | None = None,
    pwrel: SupportsFloat | None = None,
    psnr: SupportsFloat | None = None,
    ratio: SupportsFloat | None = None,
    lossless: bool = False,
    max_abs: SupportsFloat | None = None,
    preset: str = "balanced",
    pipeline: str | None = None,
    chunk: ChunkShape | None = None,
    fill: SupportsFloat | None = None,
    tune: str = "size",
    books: str = "cost",
) -> _core.Options:
    """The library's options. Raises what is wrong with them, as far as it depends on no array."""
    bounds = {"abs": abs, "rel": rel, "pwrel": pwrel, "psnr": psnr, "ratio": ratio}
    bounds["lossless"] = 0 if lossless else None
    given = {name: float(value) for name, value in bounds.items() if value is not None}
    if len(given) != 1:
        raise InvalidArgument(
            "one bound is needed, abs=, rel=, pwrel=, psnr=, ratio= or lossless=True, "
            + (f"and {', '.join(given)} are given" if given else "and none is given")
        )
    ((bound, value),) = given.items()
    extents: list[int] = []
    if chunk is not None:
        extents = [int(extent) for extent in (chunk if isinstance(chunk, Iterable) else (chunk,))]
    if any(extent < 1 for extent in extents):
        raise InvalidArgument(f"chunk {tuple(extents)}: its extents must be positive")
    return _core.Options(
        bound,
        value,
        preset,
        pipeline,
        extents,
        None if fill is None else float(fill),
        None if max_abs is None else float(max_abs),
        tune,
        books,
    )
