"""`import firn.h5py` lets h5py in this process read and write datasets compressed by Firn."""

from ._hdf5 import register_hdf5_plugin

register_hdf5_plugin()
