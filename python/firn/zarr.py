"""Firn as an array-to-bytes codec of Zarr version 3 (docs/zarr-and-xarray.md)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin

from ._api import decompress_region
from ._arrays import MAX_RANK, AnyArray
from ._codec_options import CodecOptions


@dataclass(frozen=True, init=False)
class FirnCodec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """The serializer of a Zarr array of float32 or float64.

    Takes one bound (abs=, rel=, pwrel=, psnr= or lossless=True), preset=, pipeline= and
    fill=, as firn.compress does. `rel` and `psnr` hold in each chunk by itself. Without fill=, the array's
    fill value is the one that is kept exactly and does not count for the value range.

    Examples
    --------
    >>> import zarr
    >>> from firn.zarr import FirnCodec
    >>> array = zarr.create_array(
    ...     {}, shape=(100, 100), chunks=(50, 50), dtype="float32",
    ...     serializer=FirnCodec(abs=1e-3), compressors=None)
    >>> array[:] = np.sin(np.arange(10_000, dtype=np.float32)).reshape(100, 100)
    >>> array[3, 4:6].shape
    (2,)
    """

    options: CodecOptions
    is_fixed_size = False

    def __init__(self, **options: Any) -> None:
        object.__setattr__(self, "options", CodecOptions.of(options))

    @classmethod
    def from_dict(cls, data: Any) -> FirnCodec:
        return cls(**data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        return {"name": "firn", "configuration": self.options.to_json()}

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        native = dtype.to_native_dtype()
        if native.kind != "f" or native.itemsize not in (4, 8):
            raise ValueError(f"the array's type is {native}; Firn takes float32 and float64")

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError  # it is not known beforehand

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        array = np.atleast_1d(chunk_array.as_numpy_array())
        stream = await asyncio.to_thread(
            self.options.encode, array, fill=float(chunk_spec.fill_value)
        )
        return chunk_spec.prototype.buffer.from_bytes(stream)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        decoded = await asyncio.to_thread(self.options.decode, chunk_data.as_numpy_array())
        return _as_wanted(decoded.reshape(chunk_spec.shape), chunk_spec)

    async def _decode_partial_single(
        self, byte_getter: Any, selection: Any, chunk_spec: Any
    ) -> Any:
        chunk_data = await byte_getter.get(prototype=chunk_spec.prototype)
        if chunk_data is None:
            return None
        stream = chunk_data.as_numpy_array()
        parts = selection if isinstance(selection, tuple) else (selection,)
        is_basic = all(isinstance(part, (int, slice)) for part in parts)
        if is_basic and 1 <= len(chunk_spec.shape) <= MAX_RANK:
            part = await asyncio.to_thread(decompress_region, stream, selection, threads=1)
        else:
            decoded = await asyncio.to_thread(self.options.decode, stream)
            part = decoded.reshape(chunk_spec.shape)[selection]
        return _as_wanted(np.asarray(part), chunk_spec)


def _as_wanted(array: AnyArray, chunk_spec: Any) -> Any:
    wanted = array.astype(chunk_spec.dtype.to_native_dtype(), order=chunk_spec.order, copy=False)
    return chunk_spec.prototype.nd_buffer.from_numpy_array(wanted)
