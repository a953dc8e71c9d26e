"""Every kind of array that can be passed in, and what is refused."""

import array
import mmap
import threading
import tracemalloc

import numpy as np
import pytest

import firn
from conftest import smooth_field

SHAPES = [(1,), (1000,), (0,), (3, 0, 5), (40, 50), (17, 23, 31), (3, 5, 20, 30)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("preset", ["fast", "balanced", "small"])
def test_every_value_is_within_the_bound(shape, dtype, preset):
    field = smooth_field(shape, dtype)
    stream = firn.compress(field, abs=1e-2, preset=preset)
    assert isinstance(stream, bytes)
    decoded = firn.decompress(stream)
    assert decoded.shape == shape and decoded.dtype == dtype
    assert np.all(np.abs(decoded.astype(np.float64) - field) <= 1e-2)


def test_relative_and_psnr_bounds_hold():
    field = smooth_field((60, 70))
    value_range = float(field.max()) - float(field.min())
    decoded = firn.decompress(firn.compress(field, rel=1e-3))
    assert np.abs(decoded.astype(float) - field).max() <= 1e-3 * value_range
    decoded = firn.decompress(firn.compress(field, psnr=70))
    mse = np.mean((decoded.astype(float) - field) ** 2)
    assert 20 * np.log10(value_range) - 10 * np.log10(mse) >= 70


def test_lossless_is_bit_for_bit():
    field = smooth_field((30, 40), np.float64)
    field[3, 4] = np.nan
    field[5, 6] = -np.inf
    field[7, 8] = -0.0
    decoded = firn.decompress(firn.compress(field, lossless=True))
    assert decoded.tobytes() == field.tobytes()


def test_special_and_fill_values_return_exactly():
    field = smooth_field((50, 60))
    field[10:20] = 1e20
    field[30, 30] = np.nan
    decoded = firn.decompress(firn.compress(field, rel=1e-3, fill=1e20))
    assert np.array_equal(decoded[10:20], field[10:20]) and np.isnan(decoded[30, 30])
    good = np.isfinite(field) & (field != np.float32(1e20))
    bound = 1e-3 * float(field[good].max() - field[good].min())
    assert np.abs(decoded[good] - field[good]).max() <= bound


def strided_views():
    base = smooth_field((20, 24, 28))
    yield "transposed", base.T
    yield "fortran", np.asfortranarray(base)
    yield "stepped", base[::2, 1::3, ::-1]
    yield "backwards", base[::-1, ::-1, ::-1]
    yield "one plane", base[:, 5, :]
    yield "swapped axes", base.swapaxes(0, 1)
    yield "broadcast", np.broadcast_to(base[0], (5, 24, 28))
    yield "column", base[:, 3, 4]


@pytest.mark.parametrize("name, view", list(strided_views()), ids=lambda x: x if isinstance(x, str) else "")
def test_strided_views_give_the_same_bytes_as_copies(name, view):
    assert firn.compress(view, abs=1e-3) == firn.compress(view.copy(order="C"), abs=1e-3)


def test_strided_views_are_not_copied():
    base = smooth_field((64, 128, 128))
    firn.compress(base.T[:8], abs=1e-3)
    tracemalloc.start()
    try:
        stream = firn.compress(base.T, abs=1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The room for the result is counted, though hardly any of it is used.
    assert peak < 1.5 * base.nbytes, stream[:0]


def test_strided_outputs():
    field = smooth_field((20, 24, 28))
    stream = firn.compress(field, abs=1e-3)
    expected = firn.decompress(stream)
    for make in (
        lambda: np.empty((28, 24, 20), np.float32).T,
        lambda: np.empty((40, 24, 56), np.float32)[::2, :, ::-2],
        lambda: np.empty((20, 24, 28), ">f4"),
    ):
        out = make()
        assert firn.decompress(stream, out=out) is out
        assert np.array_equal(out, expected)


def test_swapped_and_unaligned_arrays_are_copied():
    field = smooth_field((20, 30), np.float64)
    expected = firn.compress(field, abs=1e-3)
    assert firn.compress(field.astype(">f8"), abs=1e-3) == expected
    packed = np.zeros(20 * 30, np.dtype([("a", "u1"), ("b", "f8")]))
    packed["b"] = field.ravel()
    assert firn.compress(packed["b"].reshape(20, 30), abs=1e-3) == expected
    shifted = np.frombuffer(b"x" + field.tobytes(), np.uint8)[1:].view(np.float64)
    assert firn.compress(shifted.reshape(20, 30), abs=1e-3) == expected


def test_anything_with_a_buffer_is_taken():
    values = smooth_field((1000,), np.float64)
    expected = firn.compress(values, abs=1e-3)
    assert firn.compress(array.array("d", values), abs=1e-3) == expected
    assert firn.compress(memoryview(values), abs=1e-3) == expected
    assert firn.compress(values.tolist(), abs=1e-3) == expected
    assert firn.compress(values.view(values.dtype.newbyteorder("<")), abs=1e-3) == expected
    read_only = values.copy()
    read_only.flags.writeable = False
    assert firn.compress(read_only, abs=1e-3) == expected


def test_streams_can_be_any_bytes():
    field = smooth_field((30, 40))
    stream = firn.compress(field, abs=1e-3)
    expected = firn.decompress(stream)
    with mmap.mmap(-1, len(stream)) as mapping:
        mapping[:] = stream
        for buffer in (
            bytearray(stream),
            memoryview(stream),
            np.frombuffer(stream, np.uint8),
            mapping,
        ):
            assert np.array_equal(firn.decompress(buffer), expected)


def test_threads_and_reuse_give_the_same_bytes():
    field = smooth_field((100, 200, 60))
    streams = {firn.compress(field, rel=1e-4, threads=threads) for threads in (1, 2, 3, 0, 1)}
    assert len(streams) == 1


@pytest.mark.parametrize(
    "value, exception, words",
    [
        (np.float32(1), firn.InvalidArgument, "without axes"),
        (np.zeros((2, 2, 2, 3, 4), np.float32), firn.InvalidArgument, r"reshape\(-1, 2, 3, 4\)"),
        (np.zeros(5, np.int32), TypeError, "float32 and float64"),
        (np.zeros(5, np.float16), TypeError, "float32 and float64"),
        (np.zeros(5, complex), TypeError, "float32 and float64.*real and array.imag .* separately"),
        (np.zeros(5, np.int16), TypeError, "astype.numpy.float32"),
        (np.zeros(5, np.int32), TypeError, "astype.numpy.float64"),
        (np.zeros(5, np.int64), TypeError, "astype.numpy.float64"),
        (np.zeros(5, np.uint64), TypeError, "astype.numpy.float64"),
        (np.zeros(5, np.longdouble), TypeError, "astype.numpy.float64"),
        (b"abc", TypeError, "float32 and float64"),
        (np.ma.masked_equal(np.zeros(5), 0), TypeError, "fill="),
    ],
)
def test_what_cannot_be_compressed_is_refused_with_reasons(value, exception, words):
    with pytest.raises(exception, match=words):
        firn.compress(value, abs=1e-3)


def test_outputs_that_do_not_fit_are_refused():
    stream = firn.compress(smooth_field((10, 12)), abs=1e-3)
    with pytest.raises(firn.InvalidArgument, match="10x12"):
        firn.decompress(stream, out=np.empty((12, 10), np.float32))
    with pytest.raises(firn.InvalidArgument, match="f64"):
        firn.decompress(stream, out=np.empty((10, 12), np.float64))
    out = np.empty((10, 12), np.float32)
    out.flags.writeable = False
    with pytest.raises(firn.InvalidArgument, match="read-only"):
        firn.decompress(stream, out=out)
    with pytest.raises(TypeError):
        firn.decompress(stream, out=[1.0])


def test_other_threads_run_meanwhile():
    field = smooth_field((256, 256, 64))
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)
            stop.wait(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = len(ticks)
        stream = firn.compress(field, rel=1e-5, preset="small", threads=1)
        during_compress = len(ticks) - before
        before = len(ticks)
        firn.decompress(stream, threads=1)
        during_decompress = len(ticks) - before
    finally:
        stop.set()
        thread.join()
    # A call that kept the lock would let at most one pass.
    assert during_compress > 2 and during_decompress > 2


def test_many_threads_can_call_at_once():
    field = smooth_field((64, 64, 32))
    expected = firn.compress(field, abs=1e-3)
    wrong = []

    def work():
        for _ in range(5):
            stream = firn.compress(field, abs=1e-3, threads=2)
            if stream != expected or not np.array_equal(
                firn.decompress(stream, threads=2), firn.decompress(expected, threads=1)
            ):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
