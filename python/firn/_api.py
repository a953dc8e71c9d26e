"""The functions on arrays and streams."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from . import _core, _indexing
from ._arrays import AnyArray, as_input, check_output, is_plain
from ._errors import BoundExceeded, InvalidArgument, RatioWarning
from ._options import ChunkShape, Options, make_options
from ._types import ChunkInfo, Comparison, Damage, Estimate, Gradient, Info, Metrics, Spectrum

if TYPE_CHECKING:
    from typing_extensions import Unpack

# bytes, bytearray, memoryview, mmap, arrays: anything contiguous with the buffer protocol.
Buffer = Any


def compress(
    array: ArrayLike,
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
    threads: int = 0,
) -> bytes:
    """Compress an array; every decoded value will be within the bound.

    Parameters
    ----------
    array
        float32 or float64 with 1 to 4 axes: a numpy array with any strides (a transposed or
        sliced view is read where it is), or anything with Python's buffer protocol. Only an array
        with swapped bytes or unaligned values is copied.
    abs, rel, pwrel, psnr, ratio, lossless
        The bound, one of: largest absolute error; largest error as a fraction of the value range;
        the same as a fraction of each value's own magnitude, zeros staying zeros; peak
        signal-to-noise ratio in decibels, met or exceeded; original bytes per compressed
        byte, with the smallest error that this allows (firn.RatioWarning where it is missed by
        more than 1 %); nothing lost at all. NaN, infinities and fill values always return bit for
        bit.
    max_abs
        With ratio: no larger absolute error than this, even where the ratio is then missed.
    preset
        "fast", "balanced" or "small".
    pipeline
        What encodes, by its name ("lorenzo", "blockpack", ...), instead of the preset's choice.
    chunk
        Shape of the chunks, which are decoded one by one; chosen from the array's shape if None.
    fill
        A value that marks missing data: kept exactly and left out of the value range.
    tune
        What "balanced" and "small" make least: "size", or "psnr", the size at equal PSNR.
    books
        Where pipeline "lorenzo" takes its Huffman books from: "cost", "chi", "stored", "offline".
    threads
        0: all cores. The bytes are the same for any number.

    Returns
    -------
    bytes
        The stream; write it to a file with the ending .firn, or use firn.save.

    Examples
    --------
    >>> field = np.linspace(0, 1, 1_000_000, dtype=np.float32).reshape(100, 100, 100)
    >>> stream = firn.compress(field, abs=1e-4, preset="small")
    >>> len(stream) < field.nbytes / 10
    True
    >>> stream == firn.compress(field, abs=1e-4, preset="small", threads=1)
    True
    """
    options = make_options(
        abs=abs,
        rel=rel,
        pwrel=pwrel,
        psnr=psnr,
        ratio=ratio,
        lossless=lossless,
        max_abs=max_abs,
        preset=preset,
        pipeline=pipeline,
        chunk=chunk,
        fill=fill,
        tune=tune,
        books=books,
    )
    return compress_with(array, options, threads)


def compress_with(array: ArrayLike, options: _core.Options, threads: int) -> bytes:
    """compress() with options that are made. A warning is for the caller's caller."""
    values = as_input(array)
    stream = _core.compress(values, options, threads)
    missed = options.missed_ratio(values.nbytes, len(stream))
    if missed is not None:
        warnings.warn(missed, RatioWarning, stacklevel=3)
    return stream


def estimate(array: ArrayLike, *, threads: int = 0, **options: Unpack[Options]) -> Estimate:
    """What to expect of a bound, judged by a sample of the array.

    The options are those of firn.compress. Of a ratio or a PSNR it tells which absolute bound it
    takes.

    Examples
    --------
    >>> field = np.sin(np.arange(10_000.0) / 50).reshape(100, 100)
    >>> firn.estimate(field, abs=1e-3).ratio > 4
    True
    """
    return Estimate(**_core.estimate(as_input(array), make_options(**options), threads))


def decompress(buffer: Buffer, *, out: AnyArray | None = None, threads: int = 0) -> AnyArray:
    """Decode a whole stream.

    Parameters
    ----------
    buffer
        The stream: bytes, bytearray, memoryview, mmap or any contiguous buffer.
    out
        An array of the stream's type and shape, with any strides, to write into.
    threads
        0: all cores.

    Examples
    --------
    >>> stream = firn.compress(np.arange(12.0).reshape(3, 4), abs=0.01)
    >>> firn.decompress(stream).shape
    (3, 4)
    >>> out = np.empty((3, 4))
    >>> firn.decompress(stream, out=out) is out
    True
    """
    if out is None:
        about = _core.inspect(buffer)
        out = np.empty(about["shape"], about["dtype"])
        _core.decompress(buffer, out, threads)
        return out
    if is_plain(check_output(out)):
        _core.decompress(buffer, out, threads)
    else:
        plain = np.empty(out.shape, out.dtype.newbyteorder("="))
        _core.decompress(buffer, plain, threads)
        out[...] = plain
    return out


def decompress_preview(buffer: Buffer, factor: int, *, threads: int = 0) -> AnyArray:
    """Decode every factor-th value along each axis of each chunk.

    Chunks that were encoded by interpolation are read from their beginning only; others are decoded
    and thinned out. The values are those of the whole array.

    Parameters
    ----------
    buffer
        The stream, as for decompress.
    factor
        A power of two.

    Examples
    --------
    >>> field = np.sin(np.arange(4096.0) / 50).reshape(64, 64)
    >>> firn.decompress_preview(firn.compress(field, abs=1e-3), 4).shape
    (16, 16)
    """
    out = np.empty(_core.preview_shape(buffer, factor), _core.inspect(buffer)["dtype"])
    _core.decompress_preview(buffer, factor, out, threads)
    return out


def decompress_region(
    buffer: Buffer, region: Any, *, out: AnyArray | None = None, threads: int = 0
) -> Any:
    """Decode a part of a stream, reading only the chunks that it touches.

    Parameters
    ----------
    buffer
        The stream, as for decompress.
    region
        What would stand in brackets behind the decoded array (integers, slices, Ellipsis; numpy.s_
        makes one), or a pair (origin, shape) of sequences.
    out
        An array of the part's shape and the stream's type to write into.

    Examples
    --------
    >>> field = np.arange(1000.0).reshape(10, 10, 10)
    >>> stream = firn.compress(field, lossless=True, chunk=(5, 5, 5))
    >>> firn.decompress_region(stream, np.s_[3, 2:4, ::5])
    array([[320., 325.],
           [330., 335.]])
    >>> firn.decompress_region(stream, ((9, 9, 0), (1, 1, 3)))
    array([[[990., 991., 992.]]])
    """
    about = info(buffer)
    if _is_box(region):
        origin, shape = region
        region = _slices_of_box(origin, shape, about.shape)
    if out is not None:
        check_output(out)
    return read_stream(buffer, about, region, threads, out)


def read_stream(
    buffer: Buffer, about: Info, key: Any, threads: int, out: AnyArray | None = None
) -> Any:
    """decompress_region() of a stream that is known."""

    def decode_box(origin: Any, target: AnyArray) -> None:
        _core.decompress_region(buffer, origin, target, threads)

    return _indexing.read(decode_box, about.shape, about.dtype, about.chunk, key, out)


def _is_box(region: Any) -> bool:
    return (
        isinstance(region, tuple)
        and len(region) == 2
        and all(isinstance(part, (tuple, list, np.ndarray)) for part in region)
    )


def _slices_of_box(origin: Any, shape: Any, extents: tuple[int, ...]) -> tuple[slice, ...]:
    inside = len(origin) == len(shape) == len(extents) and all(
        0 <= first and 0 <= count and first + count <= extent
        for first, count, extent in zip(origin, shape, extents)
    )
    if not inside:
        raise InvalidArgument(
            f"the box of shape {tuple(shape)} at {tuple(origin)} does not lie in the array of "
            f"shape {extents}"
        )
    return tuple(slice(first, first + count) for first, count in zip(origin, shape))


def info(buffer: Buffer, *, chunks: bool = False) -> Info:
    """What a stream says of itself, without decoding it.

    With chunks=True, also how each chunk was encoded, in `.chunks`.

    Examples
    --------
    >>> stream = firn.compress(np.arange(100, dtype=np.float32), rel=0.01)
    >>> about = firn.info(stream)
    >>> about.shape, about.dtype.name, about.bound, about.bound_value
    ((100,), 'float32', 'rel', 0.01)
    >>> about.max_abs_error <= about.bound_abs <= 0.01 * 99
    True
    """
    about = _core.inspect(buffer)
    about["dtype"] = np.dtype(about["dtype"])
    if chunks:
        about["chunks"] = tuple(ChunkInfo(**chunk) for chunk in _core.inspect_chunks(buffer))
    return Info(**about)


def verify(original: ArrayLike, buffer: Buffer, *, threads: int = 0) -> Comparison:
    """Decode a stream and compare it with the original under the bound that it promises.

    Returns a Comparison, or raises firn.BoundExceeded (whose `comparison` is one) when a value is
    further from the original than that.

    Examples
    --------
    >>> field = np.sin(np.arange(1000.0))
    >>> comparison = firn.verify(field, firn.compress(field, abs=1e-3))
    >>> comparison.max_abs_error <= 1e-3, comparison.violations
    (True, 0)
    """
    array = as_input(original)
    comparison = Comparison(**_core.verify(array, buffer, threads))
    if comparison.first_violation is not None:
        at = tuple(int(i) for i in np.unravel_index(comparison.first_violation, array.shape))
        about = info(buffer)
        bound, largest = (
            (about.bound_pwrel, comparison.max_pwrel_error)
            if about.bound == "pwrel"
            else (about.bound_abs, comparison.max_abs_error)
        )
        error = BoundExceeded(
            f"{comparison.violations} of {comparison.count} values are out of bound {bound:g}, "
            f"the first at {at}; the largest error is {largest:g}"
        )
        error.comparison = comparison
        raise error
    return comparison


def salvage(buffer: Buffer, *, threads: int = 0) -> tuple[AnyArray, list[Damage]]:
    """Decode what can be decoded of a damaged or cut stream.

    Returns the array, NaN where a chunk is lost, and a list with a Damage for each such chunk.

    Examples
    --------
    >>> stream = firn.compress(np.arange(1000.0), abs=1e-3, chunk=100)
    >>> array, damages = firn.salvage(stream[: len(stream) // 2])
    >>> len(damages) > 0 and bool(np.isnan(array[-1])) and not np.isnan(array[0])
    True
    """
    about = _core.inspect(buffer)
    out = np.empty(about["shape"], about["dtype"])
    damages = _core.salvage(buffer, out, threads)
    return out, [Damage(**damage) for damage in damages]


def metrics(
    original: ArrayLike,
    decoded: ArrayLike | Buffer,
    *,
    fill: SupportsFloat | None = None,
    lags: int = 10,
    histogram_bins: int = 64,
    histogram_limit: float = 0.0,
    ssim: bool = True,
    gradient: bool = True,
    spectrum: bool = True,
    spectrum_values: int = 1 << 24,
    threads: int = 0,
) -> Metrics:
    """Measure how far a decoded array, or a stream's, is from the original.

    NaN, infinite and `fill` values of the original are left out. docs/metrics.md defines each
    measure. `ssim`, `gradient` and `spectrum` take most of the time and can be turned off.

    Examples
    --------
    >>> field = np.sin(np.arange(10_000.0) / 50).reshape(100, 100)
    >>> measured = firn.metrics(field, firn.compress(field, rel=1e-3))
    >>> measured.max_range_relative_error <= 1e-3, measured.ssim > 0.99
    (True, True)
    """
    if isinstance(decoded, (bytes, bytearray, memoryview)):
        if fill is None:
            fill = info(decoded).fill
        decoded = decompress(decoded, threads=threads)
    measured = _core.measure(
        as_input(original),
        as_input(decoded),
        None if fill is None else float(fill),
        lags,
        histogram_bins,
        histogram_limit,
        ssim,
        gradient,
        spectrum,
        spectrum_values,
        threads,
    )
    measured["error_autocorrelation"] = np.array(measured["error_autocorrelation"], np.float64)
    measured["error_histogram"] = np.array(measured["error_histogram"], np.uint64)
    if measured["gradient"] is not None:
        measured["gradient"] = Gradient(**measured["gradient"])
    if measured["spectrum"] is not None:
        for name in ("original", "decoded"):
            measured["spectrum"][name] = np.array(measured["spectrum"][name], np.float64)
        measured["spectrum"] = Spectrum(**measured["spectrum"])
    return Metrics(**measured)
