"""Writes a golden file: datasets through the filter, and beside each what it decodes to.

    cmake --build build/check --target make_golden_hdf5

A released version's file stays for ever. Until 1.0 a change of the stream format replaces it, in
the commit that changes docs/format.md."""

import sys

import hdf5_support as support
from hdf5_support import ABS, FAST, LOSSLESS, SMALL, h5py, np

with h5py.File(sys.argv[1], "w", libver=("earliest", "v110")) as file:
    compressed = file.create_group("compressed")
    masked = support.smooth_field((12, 20))
    masked[3:6, 4:9] = 1e20
    masked[0, 0] = np.nan
    for name, data, chunk, fill, options in (
            ("f32", support.smooth_field((10, 12, 14)), (5, 12, 14), None, (ABS, 1e-3)),
            ("f64_big_endian", support.smooth_field((9, 30), ">f8"), (9, 16), None, (ABS, 1e-4)),
            ("rank_6", support.smooth_field((2, 2, 3, 2, 3, 4)), (2, 2, 3, 2, 3, 4), None,
             (ABS, 1e-2, SMALL)),
            ("masked", masked, (12, 20), 1e20, (ABS, 1e-3, FAST)),
            ("lossless", support.smooth_field((50,), "<f8"), (50,), None, (LOSSLESS,)),
            ("tiny", support.smooth_field((3,)), (1,), None, (ABS, 0.5))):
        compressed.create_dataset(name, data=data, chunks=chunk, fillvalue=fill,
                                  **support.with_firn(*options))
with h5py.File(sys.argv[1], "r+") as file:
    for name in file["compressed"]:
        file.create_dataset(f"decoded/{name}", data=file["compressed"][name][...])
