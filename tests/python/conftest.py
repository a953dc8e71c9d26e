"""What the tests of the Python package share."""

import os
import pathlib

import numpy as np
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def smooth_field(shape, dtype=np.float32, seed=0):
    """Waves and a little noise."""
    random = np.random.default_rng(seed)
    field = np.zeros(shape)
    for axis, extent in enumerate(shape):
        along = np.sin(np.arange(extent) * (0.1 + 0.05 * axis))
        field = field + along.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return (10 * field + 0.01 * random.standard_normal(shape)).astype(dtype)


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    """Runs the test in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def ocean():
    """The repository's field: 50 x 100 x 100 floats."""
    path = REPOSITORY / "data" / "mitgcm_conv_u_50x100x100.f32"
    return np.fromfile(path, np.float32).reshape(50, 100, 100)


@pytest.fixture(scope="session")
def need_hdf5():
    """Skips where the package has no HDF5 plugin, unless the build promised one."""
    import firn

    pytest.importorskip("h5py")
    if firn.hdf5_plugin_path() is None:
        if os.environ.get("FIRN_EXPECT_HDF5_PLUGIN") == "1":
            pytest.fail("the package was to have the HDF5 plugin and has none")
        pytest.skip("the package was built without the HDF5 plugin")
