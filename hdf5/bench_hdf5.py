#!/usr/bin/env python3
"""h5py with the Firn filter against h5py without, on one disk, in one run.

    bench_hdf5.py BUILD [--directory DIR] [--megabytes 128] [--rounds 5] [--field FILE --dims AxBxC]

BUILD is a build directory with FIRN_WITH_HDF5 (and the target direct_chunks_program). Each way
writes and reads the same array; the best of the rounds counts. Prints ratios to the uncompressed
file: above 1 is faster. "cached" ends when HDF5 has given the file to the system and reads it back
from memory; "disk" waits until it is on the disk and reads with the cache dropped."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FILTER_ID = 478
CHUNK_BYTES = 1 << 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--directory", type=Path, default=Path("."))
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rel", type=float, default=1e-3)
    parser.add_argument("--preset", choices=("fast", "balanced", "small"), default="fast")
    parser.add_argument("--field", type=Path,
                        default=REPOSITORY / "data" / "mitgcm_conv_u_50x100x100.f32")
    parser.add_argument("--dims", default="50x100x100")
    return parser.parse_args()


arguments = parse_arguments()
os.environ["HDF5_PLUGIN_PATH"] = str(arguments.build / "hdf5" / "plugin")

import h5py  # noqa: E402
import numpy as np  # noqa: E402


def make_field():
    """The field again and again along the slowest axis, each time a little different."""
    dims = tuple(map(int, arguments.dims.split("x")))
    field = np.fromfile(arguments.field, "<f4").reshape(dims)
    copies = max(1, arguments.megabytes * 1_000_000 // field.nbytes)
    return np.concatenate([np.roll(field, 7 * i, axis=-1) * np.float32(1 + 0.01 * i)
                           for i in range(copies)])


def firn_parameters(bound):
    high, low = np.array([bound], ">f8").view(">u4")
    preset = ("fast", "balanced", "small").index(arguments.preset)
    return {"compression": FILTER_ID, "compression_opts": (1, preset, int(high), int(low))}


class Way:
    """One way of writing and reading the array; remembers its best times."""

    def __init__(self, name, threads=1, creation=None, direct=False):
        self.name = name
        self.threads = str(threads)
        self.creation = creation or {}
        self.direct = direct
        self.path = arguments.directory / f"bench-{name.replace(' ', '-').replace(',', '')}.h5"
        self.best = {}
        self.stored_bytes = 0

    def note(self, what, seconds):
        self.best[what] = min(seconds, self.best.get(what, seconds))

    def write(self, data):
        self.path.unlink(missing_ok=True)
        if self.direct:
            with h5py.File(self.path, "w") as file:
                file.create_dataset("u", data.shape, data.dtype, **self.creation)
            seconds, _, _, _, synced = map(float, self.run_direct("write", RAW).split())
            self.note("write, cached", seconds)
            self.note("write, disk", synced)
        else:
            os.environ["FIRN_HDF5_THREADS"] = self.threads
            with h5py.File(self.path, "w") as file:
                start = time.perf_counter()
                file.create_dataset("u", data=data, **self.creation)
                file.flush()
                self.note("write, cached", time.perf_counter() - start)
                os.fsync(file.id.get_vfd_handle())
                self.note("write, disk", time.perf_counter() - start)
        with h5py.File(self.path) as file:
            self.stored_bytes = file["u"].id.get_storage_size()

    def read(self, out, what):
        if what == "read, disk":
            descriptor = os.open(self.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        if self.direct:
            self.note(what, float(self.run_direct("read", "/dev/null").split()[0]))
            return
        with h5py.File(self.path) as file:
            start = time.perf_counter()
            file["u"].read_direct(out)
            self.note(what, time.perf_counter() - start)

    def run_direct(self, action, values):
        program = arguments.build / "hdf5" / "direct_chunks_program"
        result = subprocess.run([program, action, self.path, "u", values, self.threads], check=True,
                                capture_output=True, text=True)
        return result.stdout


def main():
    data = make_field()
    data.tofile(RAW)
    bound = arguments.rel * float(data.max() - data.min())
    rows = max(1, CHUNK_BYTES // data[0].nbytes)
    chunked = {"chunks": (rows, *data.shape[1:])}
    firn = {**chunked, **firn_parameters(bound)}
    ways = [Way("uncompressed"), Way("uncompressed, chunked", creation=chunked),
            Way("filter, 1 thread", 1, firn), Way("filter, 2 threads", 2, firn),
            Way("direct, 1 thread", 1, firn, direct=True),
            Way("direct, 2 threads", 2, firn, direct=True)]
    columns = ("write, cached", "write, disk", "read, cached", "read, disk")
    out = np.zeros_like(data)
    try:
        for _ in range(arguments.rounds):
            for way in ways:
                way.write(data)
                for what in columns[2:]:
                    way.read(out, what)
                if not way.direct and np.abs(out - data).max() > bound:
                    sys.exit(f"{way.name}: the bound is broken")
    finally:
        for way in ways:
            way.path.unlink(missing_ok=True)
        Path(RAW).unlink(missing_ok=True)

    print(f"{data.nbytes / 1e6:.0f} MB, {arguments.field.name}, rel {arguments.rel:g}, "
          f"preset {arguments.preset}, chunks of {chunked['chunks']}, best of {arguments.rounds}; "
          f"speed relative to uncompressed")
    print(f"{'':24}{'ratio':>8}" + "".join(f"{column:>16}" for column in columns))
    plain = ways[0]
    for way in ways:
        speeds = "".join(f"{plain.best[column] / way.best[column]:16.2f}" for column in columns)
        print(f"{way.name:24}{data.nbytes / way.stored_bytes:8.2f}{speeds}")
    print("uncompressed, MB/s".ljust(32)
          + "".join(f"{data.nbytes / 1e6 / plain.best[column]:16.0f}" for column in columns))


RAW = str(arguments.directory / "bench-values.raw")
main()
