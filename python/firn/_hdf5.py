"""Firn's HDF5 filter for h5py, and where its plugin is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import Unsupported
from ._options import FilterOptions, make_filter_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PLUGIN_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5_plugin")


def hdf5_plugin_path() -> str | None:
    """The directory of the HDF5 plugin in this package, for HDF5_PLUGIN_PATH; None without one.

    Examples
    --------
    For programs other than this one::

        HDF5_PLUGIN_PATH=$(python -c "import firn; print(firn.hdf5_plugin_path())") h5dump a.h5
    """
    return _PLUGIN_DIRECTORY if os.path.isdir(_PLUGIN_DIRECTORY) else None


def register_hdf5_plugin() -> None:
    """Tell h5py's HDF5 where the plugin is; does nothing where it knows already."""
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
                "this package was built without it, for want of HDF5's headers (Debian: "
                "libhdf5-dev), and HDF5_PLUGIN_PATH names no directory with it"
                if path is None
                else f"the plugin in {path} does not load"
            )
        )


def hdf5(**options: Unpack[FilterOptions]) -> dict[str, Any]:
    """Keywords for h5py's create_dataset that store a dataset through Firn's filter.

    The options are those of firn.compress: one bound (abs=, rel=, pwrel=, psnr= or lossless=True),
    preset=, pipeline= and fill=. `rel` and `psnr` hold in each chunk of the dataset by
    itself, as a filter sees nothing else; `abs` is the same everywhere. The dataset's fill value
    is kept exactly and does not count for the value range; `fill` names another one.

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
    words = _core.hdf5_parameters(make_filter_options(options))
    return {"compression": _core.hdf5_filter_id, "compression_opts": tuple(words)}
