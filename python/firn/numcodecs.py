"""Firn for numcodecs, and so for Zarr of version 2 (docs/zarr-and-xarray.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray_like, ensure_ndarray_like

from ._codec_options import CodecOptions
from ._errors import Unsupported


class Firn(Codec):  # type: ignore[misc]  # numcodecs has no types
    """A compressor of float32 and float64 chunks.

    Takes one bound (abs=, rel=, pwrel=, psnr= or lossless=True), preset=, pipeline= and
    fill=, as firn.compress does. `rel` and `psnr` hold in each chunk by itself.

    Examples
    --------
    >>> from firn.numcodecs import Firn
    >>> codec = Firn(abs=1e-3)
    >>> codec.get_config()
    {'id': 'firn', 'abs': 0.001}
    >>> codec.decode(codec.encode(np.zeros((4, 4), np.float32))).shape
    (4, 4)
    """

    codec_id = "firn"

    def __init__(self, **options: Any) -> None:
        self._options = CodecOptions.of(options)

    def encode(self, buf: Any) -> bytes:
        array = ensure_ndarray_like(buf)
        if not array.dtype.isnative:
            # Decoding gives native values, which Zarr would take for swapped ones.
            raise Unsupported(
                f"numcodecs does not tell a decoder the byte order: store "
                f"{array.dtype.newbyteorder('=').str} instead of {array.dtype.str}"
            )
        # The order of the values in memory is what has to come back.
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            array = array.T
        return self._options.encode(np.atleast_1d(array))

    def decode(self, buf: Any, out: Any = None) -> Any:
        # A stream is bytes whatever they were stored as.
        decoded = self._options.decode(ensure_contiguous_ndarray_like(buf).view(np.uint8))
        if out is None:
            return decoded
        target = ensure_contiguous_ndarray_like(out)
        target.view(decoded.dtype)[...] = decoded.reshape(-1)
        return out

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, **self._options.to_json()}

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.to_json().items())
        return f"Firn({options})"
