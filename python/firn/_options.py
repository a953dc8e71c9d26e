"""The keywords that say how an array is compressed, which many functions share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat, SupportsIndex, TypedDict, Union

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
    bound, value = _one_bound(
        {"abs": abs, "rel": rel, "pwrel": pwrel, "psnr": psnr, "ratio": ratio}, lossless
    )
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


_FILTER_BOUNDS = ("abs", "rel", "pwrel", "psnr")


def make_filter_options(options: Mapping[str, Any]) -> _core.Options:
    """make_options for a codec that sees one chunk at a time. Refuses what makes no sense there."""
    check_filter_names(options)
    bounds = {name: options.get(name) for name in _FILTER_BOUNDS}
    _one_bound(bounds, options.get("lossless", False))  # whose message does not offer a ratio
    return make_options(**options)


def check_filter_names(names: Iterable[str]) -> None:
    """Raises what is wrong with the names of a codec's options."""
    for name in names:
        if name in FilterOptions.__annotations__:
            continue
        if name == "chunk":
            raise InvalidArgument(
                "chunk= is not taken here: the chunks are HDF5's or Zarr's, and chunks= says there "
                "how large they are"
            )
        if name in ("ratio", "max_abs"):
            raise InvalidArgument(
                f"a codec of chunks takes {_list_of(_FILTER_BOUNDS)}; {name}= is for firn.compress "
                "and firn.save"
            )
        if name in Options.__annotations__:
            raise InvalidArgument(
                f"a codec of chunks does not take {name}=, which is for firn.compress and firn.save"
            )
        raise TypeError(f"no option {name}=; there are {', '.join(FilterOptions.__annotations__)}")


def _list_of(bounds: Iterable[str]) -> str:
    return ", ".join(f"{name}=" for name in bounds) + " or lossless=True"


def _one_bound(bounds: Mapping[str, SupportsFloat | None], lossless: bool) -> tuple[str, float]:
    given = {name: float(value) for name, value in bounds.items() if value is not None}
    if lossless:
        given["lossless"] = 0.0
    if len(given) != 1:
        raise InvalidArgument(
            f"one bound is needed, {_list_of(bounds)}, "
            + (f"and {', '.join(given)} are given" if given else "and none is given")
        )
    ((name, value),) = given.items()
    return name, value
