"""Firn's HDF5 filter for h5py, and where its plugin is."""

import os

from . import _core
from ._api import BOUND_KINDS, bound_of
from ._errors import Unsupported

_PLUGIN_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5_plugin")


def hdf5_plugin_path():
    """The directory of the HDF5 plugin in this package, for HDF5_PLUGIN_PATH; None without one.

    Examples
    --------
    For programs other than this one::

        HDF5_PLUGIN_PATH=$(python -c "import firn; print(firn.hdf5_plugin_path())") h5dump a.h5
    """
    try:
        found = any(name.endswith(".so") for name in os.listdir(_PLUGIN_DIRECTORY))
    except FileNotFoundError:
        found = False
    return _PLUGIN_DIRECTORY if found else None


def register_hdf5_plugin():
    """Tell h5py's HDF5 where the plugin is; does nothing where it knows already.

    firn.hdf5() does this. To read files that others wrote, `import firn.h5py` suffices.
    """
    import h5py

    path = hdf5_plugin_path()
    if path is not None:
        known = [h5py.h5pl.get(number) for number in range(h5py.h5pl.size())]
        if path.encode() not in known:
            h5py.h5pl.prepend(path.encode())
    if not h5py.h5z.filter_avail(_core.hdf5_filter_id):
        raise Unsupported(
            "HDF5 does not find Firn's filter: "
            + (
                "this package was built without it (FIRN_WITH_HDF5=OFF) and HDF5_PLUGIN_PATH "
                "names no directory with it"
                if path is None
                else f"the plugin in {path} does not load"
            )
        )


def hdf5(*, abs=None, rel=None, psnr=None, lossless=False, preset="balanced"):
    """Keywords for h5py's create_dataset that store a dataset through Firn.

    `rel` and `psnr` hold in each chunk of the dataset by itself, as a filter sees nothing else;
    `abs` is the same everywhere. The dataset's fill value is kept exactly and does not count.

    Examples
    --------
    >>> import h5py
    >>> field = np.sin(np.arange(64.0**3) / 1000).reshape(64, 64, 64)
    >>> with h5py.File("field.h5", "w") as file:
    ...     dataset = file.create_dataset("u", data=field, **firn.hdf5(abs=1e-3))
    >>> with h5py.File("field.h5") as file:
    ...     bool(np.abs(file["u"][...] - field).max() <= 1e-3)
    True
    """
    register_hdf5_plugin()
    kind, value = bound_of(abs, rel, psnr, lossless)
    return {
        "compression": _core.hdf5_filter_id,
        "compression_opts": tuple(_core.hdf5_parameters(BOUND_KINDS[kind], value, preset)),
    }
