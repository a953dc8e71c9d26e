"""What the Zarr codecs of both versions share: options as JSON, and a chunk to and from bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from . import _core
from ._api import Buffer, decompress
from ._arrays import AnyArray, as_input
from ._options import check_filter_names, make_filter_options


@dataclass(frozen=True)
class CodecOptions:
    """The options of a codec, checked and in the form that its metadata keeps."""

    abs: float | None = None
    rel: float | None = None
    pwrel: float | None = None
    psnr: float | None = None
    lossless: bool = False
    preset: str = "balanced"
    pipeline: str | None = None
    fill: float | None = None

    @staticmethod
    def of(options: Mapping[str, Any]) -> CodecOptions:
        """Of a codec's keywords, with a message that users can use where one is not taken."""
        check_filter_names(options)
        return CodecOptions(**options)

    def __post_init__(self) -> None:
        for name in ("abs", "rel", "pwrel", "psnr", "fill"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, float(value))  # numpy's numbers are not JSON's
        self._library_options(None)  # raises what is wrong

    def _library_options(self, fill: float | None) -> _core.Options:
        values: Any = {option.name: getattr(self, option.name) for option in fields(self)}
        if self.fill is None:
            values["fill"] = fill
        return make_filter_options(values)

    def to_json(self) -> dict[str, Any]:
        """What is not as it would be anyway."""
        return {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if getattr(self, option.name) != option.default
        }

    def encode(self, array: AnyArray, *, fill: float | None = None) -> bytes:
        # One thread: many chunks are encoded at once.
        return _core.compress(as_input(array, merge_axes=True), self._library_options(fill), 1)

    @staticmethod
    def decode(stream: Buffer) -> AnyArray:
        return decompress(stream, threads=1)
