"""The HDF5 filter from h5py and xarray, with the plugin that the package carries."""

import os
import subprocess
import sys

import numpy as np
import pytest

import firn
from conftest import smooth_field

pytestmark = pytest.mark.usefixtures("need_hdf5")


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("preset", ["fast", "balanced", "small"])
def test_datasets_keep_their_bound(in_tmp, dtype, preset):
    import h5py

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
    import h5py

    field = smooth_field((64, 64), np.float64)
    with h5py.File("u.h5", "w") as file:
        decoded = file.create_dataset("u", data=field, **firn.hdf5(**bound))[...]
    limit = {"rel": 1e-3 * np.ptp(field), "psnr": 1e-3 * np.ptp(field), "lossless": 0}[[*bound][0]]
    assert np.abs(decoded - field).max() <= limit


def test_another_process_reads_with_one_import(in_tmp):
    import h5py

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
    import h5py

    firn.hdf5(abs=1)
    before = h5py.h5pl.size()
    firn.hdf5(abs=1)
    assert h5py.h5pl.size() == before


def test_wrong_options_are_refused():
    with pytest.raises(firn.InvalidArgument, match="one bound"):
        firn.hdf5()
    with pytest.raises(firn.InvalidArgument, match="fast, balanced, small"):
        firn.hdf5(abs=1, preset="tiny")


def test_integers_are_stored_as_they_are(in_tmp):
    """h5py adds filters as optional ones: HDF5 leaves out what does not apply."""
    import h5py

    numbers = np.arange(1000)
    with h5py.File("u.h5", "w") as file:
        dataset = file.create_dataset("u", data=numbers, chunks=(100,), **firn.hdf5(abs=1))
        assert np.array_equal(dataset[...], numbers)
