"""Bounds, errors, what streams say of themselves, verification, regions and salvage."""

import multiprocessing
import pickle
import re

import numpy as np
import pytest

import firn
from conftest import REPOSITORY, smooth_field


def test_exactly_one_bound_is_needed():
    field = smooth_field((10, 10))
    with pytest.raises(ValueError, match="none is given"):
        firn.compress(field)
    with pytest.raises(ValueError, match="abs, rel are given"):
        firn.compress(field, abs=1, rel=1)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"abs": -1}, "bound"),
        ({"abs": float("nan")}, "bound"),
        ({"abs": float("inf")}, "bound"),
        ({"rel": 0}, "bound"),
        ({"abs": 1, "preset": "tiny"}, "fast, balanced, small"),
        ({"abs": 1, "pipeline": "zip"}, "lorenzo"),
        ({"abs": 1, "chunk": (4,)}, "rank"),
        ({"abs": 1, "chunk": (4, 0)}, "positive"),
        ({"abs": 1, "threads": -1}, "threads"),
    ],
)
def test_wrong_options_raise_with_the_librarys_message(options, words):
    with pytest.raises(firn.InvalidArgument, match=words) as caught:
        firn.compress(smooth_field((10, 10)), **options)
    assert caught.value.code == firn.ErrorCode.INVALID_ARGUMENT == 1
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, firn.Error)


def test_point_wise_relative_bounds_hold():
    field = np.exp(smooth_field((30, 40), np.float64)) - 5
    field[3] = 0
    stream = firn.compress(field, pwrel=1e-3)
    decoded = firn.decompress(stream)
    assert np.all(np.abs(decoded - field) <= 1e-3 * np.abs(field))
    about = firn.info(stream, chunks=True)
    assert about.bound == "pwrel" and about.bound_pwrel == 1e-3
    assert 0 < about.chunks[0].max_pwrel_error <= about.max_pwrel_error <= 1e-3
    assert 0 < firn.verify(field, stream).max_pwrel_error <= 1e-3
    with pytest.raises(firn.BoundExceeded, match="out of bound 0.001, .* largest error is 0.9"):
        firn.verify(field * 10, stream)


def test_damaged_streams_raise_what_is_wrong():
    stream = firn.compress(smooth_field((100, 100)), abs=1e-3)
    with pytest.raises(firn.NotFirn):
        firn.decompress(b"GIF89a, certainly no stream of ours")
    with pytest.raises(firn.Truncated) as caught:
        firn.decompress(stream[: len(stream) // 2])
    assert isinstance(caught.value, EOFError)
    newer = bytearray(stream)
    newer[4] = 200
    with pytest.raises(firn.NewerVersion):
        firn.decompress(newer)
    damaged = bytearray(stream)
    damaged[len(damaged) // 2] ^= 0xFF
    with pytest.raises(firn.Corrupt, match="chunk|checksum"):
        firn.decompress(damaged)
    with pytest.raises(firn.Error):
        firn.decompress(b"")
    with pytest.raises(TypeError):
        firn.decompress("text")


def test_every_error_of_the_library_has_its_exception():
    header = (REPOSITORY / "include" / "firn" / "firn.hpp").read_text()
    body = re.search(r"enum class ErrorCode : int {(.*?)};", header, re.S).group(1)
    codes = {name: int(code) for name, code in re.findall(r"(\w+) = (\d+),", body)}
    del codes["ok"]
    assert {code.name.lower(): code.value for code in firn.ErrorCode} == codes
    for code in firn.ErrorCode:
        error = firn._errors.error_of(code, "why")
        assert error.code is code and str(error) == "why" and isinstance(error, firn.Error)


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(firn.Corrupt("chunk 3")))
    assert type(error) is firn.Corrupt and str(error) == "chunk 3" and error.code == 7


def test_info_has_every_field():
    field = smooth_field((40, 50, 60), np.float64)
    field[0] = -999
    stream = firn.compress(field, rel=1e-3, fill=-999, chunk=(20, 50, 30))
    info = firn.info(stream, chunks=True)
    assert info.dtype == np.float64 and info.shape == (40, 50, 60) and info.chunk == (20, 50, 30)
    assert info.bound == "rel" and info.bound_value == 1e-3 and info.fill == -999
    good = field[1:]
    assert info.bound_abs == pytest.approx(1e-3 * (good.max() - good.min()), rel=1e-3)
    assert 0 < info.max_abs_error <= info.bound_abs
    assert info.chunk_count == 4 == len(info.chunks)
    assert info.original_bytes == field.nbytes and info.compressed_bytes == len(stream)
    assert info.ratio == field.nbytes / len(stream) and info.complete
    assert info.format_version >= 1
    assert info.chunks[3].origin == (20, 0, 30) and info.chunks[3].shape == (20, 50, 30)
    assert sum(chunk.size_bytes for chunk in info.chunks) < len(stream)
    assert firn.info(stream).chunks is None


def test_pipelines_can_be_named():
    field = smooth_field((64, 64))
    for name in ("lorenzo", "blockpack", "shuffle", "bits"):
        bound = {"lossless": True} if name in ("shuffle", "bits") else {"abs": 1e-3}
        stream = firn.compress(field, pipeline=name, **bound)
        assert firn.info(stream, chunks=True).chunks[0].pipeline == name


def test_verify_compares_and_raises():
    field = smooth_field((30, 40))
    stream = firn.compress(field, abs=1e-2)
    comparison = firn.verify(field, stream)
    decoded = firn.decompress(stream)
    assert comparison.count == field.size and comparison.violations == 0
    assert comparison.first_violation is None
    assert comparison.max_abs_error == np.abs(decoded.astype(float) - field).max()
    wrong = field.copy()
    wrong[3, 4] += 1
    with pytest.raises(firn.BoundExceeded, match=r"1 of 1200 .* \(3, 4\)") as caught:
        firn.verify(wrong, stream)
    assert caught.value.comparison.violations == 1
    with pytest.raises(firn.InvalidArgument, match="30x40"):
        firn.verify(field.T, stream)


def test_previews_are_values_of_the_whole():
    field = smooth_field((40, 50, 60))
    for preset in ("fast", "balanced"):
        stream = firn.compress(field, abs=1e-3, preset=preset, chunk=field.shape)
        whole = firn.decompress(stream)
        preview = firn.decompress_preview(stream, 4, threads=1)
        assert np.array_equal(preview, whole[::4, ::4, ::4])
    with pytest.raises(firn.InvalidArgument, match="power of two"):
        firn.decompress_preview(stream, 3)


def test_tuning_and_books():
    field = smooth_field((64, 64, 64)) + np.float32(0.001)
    for tune in ("size", "psnr"):
        assert firn.verify(field, firn.compress(field, rel=1e-3, tune=tune)).violations == 0
    for books in ("cost", "chi", "stored", "offline"):
        stream = firn.compress(field, rel=1e-3, pipeline="lorenzo", books=books)
        assert firn.verify(field, stream).violations == 0
    with pytest.raises(firn.InvalidArgument, match="size, psnr"):
        firn.compress(field, rel=1e-3, tune="speed")
    with pytest.raises(firn.InvalidArgument, match="cost, chi, stored, offline"):
        firn.compress(field, rel=1e-3, books="none")


def test_regions():
    field = smooth_field((40, 50, 60))
    stream = firn.compress(field, abs=1e-3, chunk=(16, 16, 16))
    whole = firn.decompress(stream)
    part = firn.decompress_region(stream, np.s_[3:30, 17, ::2])
    assert np.array_equal(part, whole[3:30, 17, ::2])
    box = firn.decompress_region(stream, ((10, 20, 30), (5, 6, 7)))
    assert np.array_equal(box, whole[10:15, 20:26, 30:37])
    out = np.zeros((9, 50, 60), np.float32)[:, ::-1]
    assert firn.decompress_region(stream, np.s_[1:10], out=out) is out
    assert np.array_equal(out, whole[1:10])
    out = np.zeros((2, 60), np.float32)
    assert firn.decompress_region(stream, np.s_[5:7, 3, ::-1], out=out) is out
    assert np.array_equal(out, whole[5:7, 3, ::-1])
    with pytest.raises(firn.InvalidArgument, match="does not lie"):
        firn.decompress_region(stream, ((10, 20, 30), (5, 6, 70)))
    with pytest.raises(ValueError):
        firn.decompress_region(stream, np.s_[1:10], out=np.zeros((3, 50, 60), np.float32))


def test_salvage_returns_what_is_left():
    field = smooth_field((40, 50, 60))
    stream = bytearray(firn.compress(field, abs=1e-3, chunk=(20, 50, 60)))
    second = firn.info(stream, chunks=True).chunks[1]
    stream[second.offset + second.size_bytes // 2] ^= 0xFF
    with pytest.raises(firn.Corrupt):
        firn.decompress(stream)
    array, damages = firn.salvage(stream)
    assert np.abs(array[:20] - field[:20]).max() <= 1e-3
    assert np.isnan(array[20:]).all()
    assert [(d.chunk, d.origin, d.shape) for d in damages] == [(1, (20, 0, 0), (20, 50, 60))]


def _compress_in_child(queue):
    field = smooth_field((64, 64, 64))
    queue.put(firn.compress(field, abs=1e-3, threads=2))


def test_forked_children_can_compress():
    expected = firn.compress(smooth_field((64, 64, 64)), abs=1e-3, threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_compress_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        child.join(10)
        if child.is_alive():
            child.kill()


def test_versions_are_told():
    assert firn.__version__ == firn.version()
    assert firn.simd_target() in firn.simd_targets()
