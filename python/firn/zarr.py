"""Firn as an array-to-bytes codec of Zarr version 3 (docs/zarr-and-xarray.md)."""

import asyncio
from dataclasses import dataclass

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin

from ._api import decompress_region
from ._codec_options import CodecOptions


@dataclass(frozen=True, init=False)
class FirnCodec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """The serializer of a Zarr array of float32 or float64.

    Takes one bound (abs=, rel=, psnr= or lossless=True), preset=, pipeline= and fill=, as
    firn.compress does. `rel` and `psnr` hold in each chunk by itself. Without fill=, the array's
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

    def __init__(self, **options):
        object.__setattr__(self, "options", CodecOptions(**options))

    @classmethod
    def from_dict(cls, data):
        return cls(**data.get("configuration", {}))

    def to_dict(self):
        return {"name": "firn", "configuration": self.options.to_json()}

    def validate(self, *, shape, dtype, chunk_grid):
        native = dtype.to_native_dtype() if hasattr(dtype, "to_native_dtype") else np.dtype(dtype)
        if native.kind != "f" or native.itemsize not in (4, 8):
            raise ValueError(f"the array's type is {native}; Firn takes float32 and float64")

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        raise NotImplementedError

    async def _encode_single(self, chunk_array, chunk_spec):
        array = np.atleast_1d(chunk_array.as_numpy_array())
        fill = chunk_spec.fill_value
        fill = float(fill) if fill is not None and np.isfinite(fill) else None
        stream = await asyncio.to_thread(self.options.encode, array, fill=fill)
        return chunk_spec.prototype.buffer.from_bytes(stream)

    async def _decode_single(self, chunk_bytes, chunk_spec):
        decoded = await asyncio.to_thread(self.options.decode, chunk_bytes.as_numpy_array())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(
            _as_wanted(decoded.reshape(chunk_spec.shape), chunk_spec)
        )

    async def _decode_partial_single(self, byte_getter, selection, chunk_spec):
        chunk_bytes = await byte_getter.get(prototype=chunk_spec.prototype)
        if chunk_bytes is None:
            return None
        stream = chunk_bytes.as_numpy_array()
        whole = len(chunk_spec.shape) > 4 or not all(
            isinstance(part, (int, slice)) for part in _as_tuple(selection)
        )
        if whole:
            decoded = await asyncio.to_thread(self.options.decode, stream)
            part = decoded.reshape(chunk_spec.shape)[selection]
        else:
            part = await asyncio.to_thread(decompress_region, stream, selection, threads=1)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(_as_wanted(part, chunk_spec))


def _as_tuple(selection):
    return selection if isinstance(selection, tuple) else (selection,)


def _as_wanted(array, chunk_spec):
    return array.astype(chunk_spec.dtype.to_native_dtype(), order=chunk_spec.order, copy=False)
