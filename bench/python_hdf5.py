#!/usr/bin/env python3
"""firn.h5py's threads beside HDF5's own, serial use of the filter.

    python bench/python_hdf5.py [--megabytes 64] [--rounds 7] [--preset fast] [--directory DIR]

Writes and reads one array in every way in turns; the best of the rounds counts. Prints speeds
relative to h5py without a filter, to the system's cache: above 1 is faster.
"""

import argparse
import os
import pathlib
import tempfile
import time

import h5py
import numpy as np

import firn
import firn.h5py

FIELD = pathlib.Path(__file__).resolve().parents[1] / "data" / "mitgcm_conv_u_50x100x100.f32"
CHUNK = (25, 100, 100)  # 1 MB


def make_array(megabytes):
    """The field again and again, each time a little different."""
    field = np.fromfile(FIELD, np.float32).reshape(50, 100, 100)
    copies = max(1, megabytes * 1_000_000 // field.nbytes)
    return np.concatenate([np.roll(field, 7 * i, axis=-1) for i in range(copies)])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--preset", choices=("fast", "balanced", "small"), default="fast")
    parser.add_argument("--directory", default=".", help="on the disk to measure")
    arguments = parser.parse_args()
    array = make_array(arguments.megabytes)
    options = {"chunks": CHUNK, **firn.hdf5(abs=1e-3 * float(np.ptp(array)), preset=arguments.preset)}

    def by_threads(threads):
        return (
            options,
            lambda dataset: firn.h5py.write(dataset, array, threads=threads),
            lambda dataset: firn.h5py.read(dataset, threads=threads),
        )

    def by_h5py(options):
        return options, lambda dataset: dataset.write_direct(array), lambda dataset: dataset[...]

    ways = {"h5py, no filter": by_h5py({}), "h5py, filter": by_h5py(options)}
    for threads in sorted({1, 2, len(os.sched_getaffinity(0))}):
        ways[f"firn.h5py, {threads} threads"] = by_threads(threads)
    best = {name: [float("inf")] * 2 for name in ways}
    sizes = {}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        path = os.path.join(directory, "u.h5")
        for _ in range(arguments.rounds):
            for name, (creation, write, read) in ways.items():
                start = time.perf_counter()
                with h5py.File(path, "w") as file:
                    write(file.create_dataset("u", array.shape, array.dtype, **creation))
                middle = time.perf_counter()
                with h5py.File(path) as file:
                    read(file["u"])
                    sizes[name] = file["u"].id.get_storage_size()
                end = time.perf_counter()
                best[name] = [min(best[name][0], middle - start), min(best[name][1], end - middle)]
    print(f"{array.nbytes / 1e6:.0f} MB, rel 1e-3, {arguments.preset}")
    print(f"{'':<24}{'write':>8}{'read':>8}{'ratio':>8}")
    for name, times in best.items():
        speeds = [plain / own for plain, own in zip(best["h5py, no filter"], times)]
        print(f"{name:<24}{speeds[0]:>8.2f}{speeds[1]:>8.2f}{array.nbytes / sizes[name]:>8.1f}")


if __name__ == "__main__":
    main()
