"""The HDF5 filter from h5py and xarray, with the plugin that the package carries."""

import os
import subprocess
import sys

import numpy as np
import pytest

import firn
from conftest import smooth_field

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("need_hdf5")


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("preset", ["fast", "balanced", "small"])
def test_datasets_keep_their_bound(in_tmp, dtype, preset):
    field = smooth_field((40, 50, 60)).astype(dtype)
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset(
            "u", data=field, chunks=(20, 50, 30), **firn.hdf5(abs=1e-3, preset=preset)
        )
        assert dataset.id.get_storage_size() < field.nbytes / 2
    with h5py.File("u.h5") as file:
        dataset = file["u"]
        assert dataset.dtype == dtype
        assert np.abs(dataset[...] - field).max() <= 1e-3
        assert np.array_equal(dataset[3, 10:20], dataset[...][3, 10:20])


@pytest.mark.parametrize("bound", [{"rel": 1e-3}, {"psnr": 80}, {"lossless": True}])
def test_other_bounds(in_tmp, bound):
    field = smooth_field((64, 64), np.float64)
    with h5py.File("u.h5", "w") as file:
        decoded = file.create_dataset("u", data=field, **firn.hdf5(**bound))[...]
    limit = {"rel": 1e-3 * np.ptp(field), "psnr": 1e-3 * np.ptp(field), "lossless": 0}[[*bound][0]]
    assert np.abs(decoded - field).max() <= limit


def test_another_process_reads_with_one_import(in_tmp):
    field = smooth_field((64, 64))
    with h5py.File("u.h5", "w") as file:
        file.create_dataset("u", data=field, **firn.hdf5(abs=1e-3))
    program = "import h5py{}; print(h5py.File('u.h5')['u'][...].shape)"
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    run = lambda text, **more: subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env={**environment, **more}
    )
    assert run(program.format("")).returncode != 0
    assert run(program.format(", firn.h5py")).stdout == "(64, 64)\n"
    path = firn.hdf5_plugin_path()
    assert run(program.format(""), HDF5_PLUGIN_PATH=path).stdout == "(64, 64)\n"


def test_registering_twice_changes_nothing():
    firn.hdf5(abs=1)
    before = h5py.h5pl.size()
    firn.hdf5(abs=1)
    assert h5py.h5pl.size() == before


def test_wrong_options_are_refused():
    with pytest.raises(firn.InvalidArgument, match="one bound"):
        firn.hdf5()
    with pytest.raises(firn.InvalidArgument, match="fast, balanced, small"):
        firn.hdf5(abs=1, preset="tiny")
    bounds = "abs=, rel=, pwrel=, psnr= or lossless=True"
    with pytest.raises(firn.InvalidArgument, match=f"one bound is needed, {bounds}, and none"):
        firn.hdf5()
    with pytest.raises(firn.InvalidArgument, match=f"{bounds}; ratio= is for firn.compress"):
        firn.hdf5(ratio=10)
    with pytest.raises(firn.InvalidArgument, match="chunks= says"):
        firn.hdf5(abs=1, chunk=(5, 5))
    for bound in ({"abs": 1}, {"rel": 1e-3}, {"pwrel": 1e-3}, {"psnr": 60}, {"lossless": True}):
        firn.hdf5(**bound)


def test_integers_are_stored_as_they_are(in_tmp):
    """h5py adds filters as optional ones: HDF5 leaves out what does not apply."""
    numbers = np.arange(1000)
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset("u", data=numbers, chunks=(100,), **firn.hdf5(abs=1))
        assert np.array_equal(dataset[...], numbers)


def test_refused_options_say_why():
    with pytest.raises(firn.InvalidArgument, match="bound"):
        firn.hdf5(abs=-1)
    with pytest.raises(firn.InvalidArgument, match="lorenzo"):
        firn.hdf5(abs=1, pipeline="zip")


CHUNKS = [
    ((40, 50, 60), (20, 25, 30)),
    ((41, 53, 67), (16, 16, 16)),
    ((1000,), (64,)),
    ((12, 30, 1, 40), (1, 30, 1, 16)),
    ((3, 4, 5, 6, 14), (2, 3, 4, 5, 6)),
    ((3, 4), (1, 1)),
]


def stored(dataset):
    """Every chunk as it is in the file."""
    identifier = dataset.id
    return {
        identifier.get_chunk_info(i).chunk_offset: identifier.read_direct_chunk(
            identifier.get_chunk_info(i).chunk_offset
        )
        for i in range(identifier.get_num_chunks())
    }


@pytest.mark.parametrize("shape, chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_write_and_read_what_the_filter_does(in_tmp, shape, chunks, dtype, threads):
    import firn.h5py

    field = smooth_field(shape).astype(dtype)
    options = dict(chunks=chunks, fillvalue=-9.0, **firn.hdf5(abs=1e-3, preset="fast"))
    with h5py.File("u.h5", "w") as file:
        slow = file.create_dataset("slow", data=field, **options)
        fast = file.create_dataset("fast", shape, dtype, **options)
        firn.h5py.write(fast, field, threads=threads)
        assert stored(fast) == stored(slow)
    with h5py.File("u.h5") as file:
        decoded = file["slow"][...]
        assert np.abs(decoded - field).max() <= 1e-3
        both = firn.h5py.read(file["fast"], threads=threads)
        assert both.dtype == decoded.dtype.newbyteorder("=") and np.array_equal(both, decoded)


@pytest.mark.parametrize(
    "key", [np.s_[3], np.s_[5:38:4, ::-1, 7], np.s_[..., -1], np.s_[[1, 30]], np.s_[2, 3, 4], np.s_[5:5]],
    ids=str,
)
def test_parts_are_read_as_numpy_would(in_tmp, key):
    import firn.h5py

    field = smooth_field((41, 53, 67))
    with h5py.File("u.h5", "w") as file:
        file.create_dataset("u", data=field, chunks=(16, 16, 16), **firn.hdf5(abs=1e-3))
    with h5py.File("u.h5") as file:
        dataset = file["u"]
        expected = dataset[...][key]
        part = firn.h5py.read(dataset, key)
        assert part.shape == expected.shape and np.array_equal(part, expected)
        out = np.empty(expected.shape, np.float32)
        assert firn.h5py.read(dataset, key, out=out) is out and np.array_equal(out, expected)


def test_boxes_of_chunks_can_be_written_one_by_one(in_tmp):
    import firn.h5py

    field = smooth_field((40, 50)).T  # any strides
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset(
            "u", field.shape, "f4", chunks=(20, 16), fillvalue=7, **firn.hdf5(abs=1e-3)
        )
        firn.h5py.write(dataset, field[20:40, 16:], origin=(20, 16))
        expected = np.full(field.shape, 7, "f4")
        expected[20:40, 16:] = field[20:40, 16:]
        for decoded in (dataset[...], firn.h5py.read(dataset)):
            assert np.abs(decoded - expected).max() <= 1e-3
        for origin in ((10, 16), (20, 20), (40, 0)):
            with pytest.raises(firn.InvalidArgument, match="does not (lie|begin)"):
                firn.h5py.write(dataset, field[20:40, 16:], origin=origin)
        with pytest.raises(firn.InvalidArgument, match="does not lie"):
            firn.h5py.write(dataset, field.T)


def test_chunks_that_were_not_compressed_are_read(in_tmp):
    import firn.h5py

    field = smooth_field((40, 20)).astype(">f4")
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset("u", (40, 20), ">f4", chunks=(20, 20), **firn.hdf5(abs=1e-3))
        dataset.id.write_direct_chunk((0, 0), field[:20].tobytes(), filter_mask=1)
        firn.h5py.write(dataset, field[20:], origin=(20, 0))
        decoded = firn.h5py.read(dataset)
    assert np.array_equal(decoded[:20], field[:20])
    assert np.abs(decoded[20:] - field[20:]).max() <= 1e-3


def test_damaged_chunks_raise(in_tmp):
    import firn.h5py

    field = smooth_field((40, 20))
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset("u", data=field, chunks=(20, 20), **firn.hdf5(abs=1e-3))
        _, stream = dataset.id.read_direct_chunk((20, 0))
        damaged = bytearray(stream)
        damaged[len(damaged) // 2] ^= 1
        dataset.id.write_direct_chunk((20, 0), bytes(damaged))
        assert firn.h5py.read(dataset, np.s_[:20]).shape == (20, 20)
        with pytest.raises(firn.Corrupt):
            firn.h5py.read(dataset)
        dataset.id.write_direct_chunk((20, 0), firn.compress(field[:10], abs=1e-3))
        with pytest.raises(firn.Corrupt, match="shape"):
            firn.h5py.read(dataset)


def test_datasets_without_the_filter_are_refused(in_tmp):
    import firn.h5py

    with h5py.File("u.h5", "w") as file:
        for name, options in {
            "plain": {},
            "gzip": {"chunks": (5,), "compression": "gzip"},
            "two": {"chunks": (5,), "fletcher32": True, **firn.hdf5(abs=1)},
        }.items():
            dataset = file.create_dataset(name, data=np.zeros(10), **options)
            with pytest.raises(firn.Unsupported, match="whose one filter is Firn"):
                firn.h5py.read(dataset)
        numbers = file.create_dataset("i", data=np.arange(10), chunks=(5,), **firn.hdf5(abs=1))
        with pytest.raises(firn.Unsupported, match="int64"):
            firn.h5py.write(numbers, np.arange(10))


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_xarray_reads_netcdf_by_either_engine(in_tmp, engine):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    pytest.importorskip("netCDF4" if engine == "netcdf4" else "h5netcdf")
    field = smooth_field((10, 30, 40))
    field[:, :5, :5] = np.nan
    dataset = xarray.Dataset({"t": (("time", "y", "x"), field)}, attrs={"title": "test"})
    encoding = {"t": {"chunksizes": (5, 30, 40), **firn.hdf5(abs=1e-3)}}
    dataset.to_netcdf("t.nc", engine="h5netcdf", encoding=encoding)
    program = (
        "import sys, numpy as np, xarray\n"
        f"t = xarray.open_dataset('t.nc', engine='{engine}')['t'].values\n"
        "np.save('t.npy', t)"
    )
    environment = {**os.environ, "HDF5_PLUGIN_PATH": firn.hdf5_plugin_path()}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    values = np.load("t.npy")
    assert np.isnan(values[:, :5, :5]).all() and np.nanmax(np.abs(values - field)) <= 1e-3
