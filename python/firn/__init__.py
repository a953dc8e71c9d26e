"""Firn: error-bounded lossy compression of floating-point arrays.

>>> import firn, numpy as np
>>> field = np.sin(np.linspace(0, 20, 100_000, dtype=np.float32)).reshape(10, 100, 100)
>>> stream = firn.compress(field, rel=1e-3)      # bytes, much smaller than the field
>>> decoded = firn.decompress(stream)            # every value within 1e-3 of the value range
>>> bool(np.abs(decoded - field).max() <= 1e-3 * (field.max() - field.min()))
True

The manual is docs/python.md in Firn's repository.
"""

from ._api import (
    compress,
    decompress,
    decompress_preview,
    decompress_region,
    estimate,
    info,
    metrics,
    salvage,
    verify,
)
from ._core import simd_target, simd_targets, version
from ._errors import (
    BoundExceeded,
    BufferTooSmall,
    Cancelled,
    Corrupt,
    Error,
    ErrorCode,
    InvalidArgument,
    IoError,
    NewerVersion,
    NotFirn,
    OutOfMemory,
    RatioWarning,
    Truncated,
    Unsupported,
)
from ._files import File, load, open, save
from ._hdf5 import hdf5, hdf5_plugin_path
from ._streams import StreamReader, StreamWriter
from ._types import ChunkInfo, Comparison, Damage, Estimate, Gradient, Info, Metrics, Spectrum

__version__ = version()

__all__ = [
    "BoundExceeded",
    "BufferTooSmall",
    "Cancelled",
    "ChunkInfo",
    "Comparison",
    "Corrupt",
    "Damage",
    "Error",
    "ErrorCode",
    "Estimate",
    "File",
    "Gradient",
    "Info",
    "InvalidArgument",
    "IoError",
    "Metrics",
    "NewerVersion",
    "NotFirn",
    "OutOfMemory",
    "RatioWarning",
    "Spectrum",
    "StreamReader",
    "StreamWriter",
    "Truncated",
    "Unsupported",
    "compress",
    "decompress",
    "decompress_preview",
    "decompress_region",
    "estimate",
    "hdf5",
    "hdf5_plugin_path",
    "info",
    "load",
    "metrics",
    "open",
    "salvage",
    "save",
    "simd_target",
    "simd_targets",
    "verify",
    "version",
]
