"""Files as arrays: every index expression against numpy, laziness, dask, saving."""

import os
import pickle
import random
import stat

import numpy as np
import pytest

import firn
from conftest import smooth_field


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "u.firn"
    firn.save(path, smooth_field((30, 41, 25)), abs=1e-3, chunk=(8, 16, 10))
    with firn.open(path) as file:
        yield file, np.asarray(file), path


KEYS = [
    np.s_[3],
    np.s_[-1],
    np.s_[3, :, 10:20],
    np.s_[...],
    np.s_[()],
    np.s_[..., 4],
    np.s_[5, 6, 7],
    np.s_[2:20:3, ::-1, ::7],
    np.s_[::-5, 40, :],
    np.s_[20:3:-2],
    np.s_[5:5],
    np.s_[29:100, -3:, :-20],
    np.s_[::17, ::40, ::24],
    np.s_[None, 3, :, None, 4:6],
    np.s_[..., None],
    np.s_[[1, 3, 29]],
    np.s_[[29, 0, 0, -1], :, 2],
    np.s_[:, [4, 2], ::2],
    np.s_[3, [4, 2], :],
    np.s_[3, :, [4, 2]],
    np.s_[np.array([2, 5]), ..., 0],
    np.s_[:, np.arange(41) % 5 == 0],
    np.s_[[]],
    np.s_[np.int64(3), np.uint8(4)],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(opened, key):
    file, array, _ = opened
    part = file[key]
    expected = array[key]
    assert part.shape == expected.shape and part.dtype == expected.dtype
    assert np.array_equal(part, expected)


def test_indexing_is_numpys_for_random_slices(opened):
    file, array, _ = opened
    dice = random.Random(5)

    def one(extent):
        kind = dice.random()
        if kind < 0.25:
            return dice.randrange(-extent, extent)
        bound = lambda: dice.choice([None, dice.randrange(-extent - 5, extent + 5)])
        return slice(bound(), bound(), dice.choice([None, 1, -1, 2, -3, 9, 20]))

    for _ in range(200):
        key = tuple(one(extent) for extent in array.shape[: dice.randint(1, 3)])
        assert np.array_equal(file[key], array[key]), key


@pytest.mark.parametrize(
    "key", [30, -31, np.s_[0, 0, 25], np.s_[0, 0, 0, 0], np.s_[..., ...], "u", 1.5, [[1, 2]], [30], [True]]
)
def test_wrong_indices_raise(opened, key):
    file, _, _ = opened
    with pytest.raises(IndexError):
        file[key]


def test_two_lists_are_refused(opened):
    file, _, _ = opened
    with pytest.raises(IndexError, match="more than one"):
        file[[1, 2], [1, 2]]


def test_a_file_looks_like_an_array(opened):
    file, array, path = opened
    assert (file.shape, file.ndim, file.size, len(file)) == ((30, 41, 25), 3, 30 * 41 * 25, 30)
    assert file.dtype == np.float32 and file.nbytes == array.nbytes and file.chunks == (8, 16, 10)
    assert file.info.bound == "abs" and "30, 41, 25" in repr(file)
    assert np.asarray(file, np.float64).dtype == np.float64
    assert np.array_equal(sum(plane for plane in file), sum(plane for plane in array))
    again = pickle.loads(pickle.dumps(file))
    assert np.array_equal(again[3], array[3])


def test_only_touched_chunks_are_decoded(tmp_path):
    path = tmp_path / "u.firn"
    firn.save(path, smooth_field((40, 20, 20)), abs=1e-3, chunk=(10, 20, 20))
    stream = bytearray(path.read_bytes())
    second = firn.info(stream, chunks=True).chunks[1]
    stream[second.offset + second.size_bytes // 2] ^= 0xFF
    path.write_bytes(stream)
    with firn.open(path) as file:
        assert file[0:10].shape == (10, 20, 20) and file[20:].shape == (20, 20, 20)
        assert file[::20].shape == (2, 20, 20)  # steps over the damaged chunk
        assert file[[5, 25, 39]].shape == (3, 20, 20)
        with pytest.raises(firn.Corrupt):
            file[9:11]


def test_large_boxes_are_decoded_chunk_by_chunk(opened, monkeypatch):
    file, array, _ = opened
    monkeypatch.setattr(firn._indexing, "_BOX_BYTES", 1000)
    assert np.array_equal(file[::2, ::3, ::-4], array[::2, ::3, ::-4])


def test_dask_reads_blocks(opened):
    da = pytest.importorskip("dask.array")
    file, array, _ = opened
    lazy = da.from_array(file, chunks=(10, 20, 25))
    assert np.array_equal(lazy.max(axis=0).compute(), array.max(axis=0))
    assert np.array_equal(lazy[3:20, ::2, 5].compute(), array[3:20, ::2, 5])
    assert np.array_equal(lazy[[1, 5, 7]].compute(), array[[1, 5, 7]])
    assert da.from_array(file).max().compute() == array.max()


def test_saving_is_atomic(in_tmp, monkeypatch):
    field = smooth_field((20, 20))
    firn.save("u.firn", field, abs=1e-3)
    before = open("u.firn", "rb").read()
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        firn.save("u.firn", field + 1, abs=1e-3)
    monkeypatch.undo()
    os.chdir(in_tmp)
    assert open("u.firn", "rb").read() == before
    assert os.listdir(".") == ["u.firn"]


def test_saved_files_have_the_usual_permissions(in_tmp):
    mask = os.umask(0o027)
    try:
        firn.save("u.firn", smooth_field((20, 20)), abs=1e-3)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(os.stat("u.firn").st_mode) == 0o640


def test_loading(in_tmp):
    field = smooth_field((20, 20))
    info = firn.save("u.firn", field, lossless=True)
    assert info.bound == "lossless"
    assert np.array_equal(firn.load("u.firn"), field)


def test_files_that_are_no_streams(in_tmp):
    open("empty.firn", "w").close()
    with pytest.raises(firn.NotFirn, match="empty"):
        firn.open("empty.firn")
    open("text.firn", "w").write("hello, this is text")
    with pytest.raises(firn.NotFirn, match="text.firn: "):
        firn.open("text.firn")
    with pytest.raises(FileNotFoundError):
        firn.open("missing.firn")


def test_a_closed_file_cannot_be_read(in_tmp):
    firn.save("u.firn", smooth_field((20, 20)), abs=1e-3)
    file = firn.open("u.firn")
    file.close()
    with pytest.raises(ValueError):
        file[3]
