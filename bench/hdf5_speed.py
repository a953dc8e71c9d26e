#!/usr/bin/env python3
"""h5py with the Firn filter against h5py without, on one disk, in one run.

    bench/hdf5_speed.py BUILD [--directory DIR] [--megabytes 128] [--rounds 7] [--field FILE --dims AxBxC]

BUILD is a build directory with FIRN_WITH_HDF5 whose target direct_chunks_program is built. Every
way writes and reads the same array, in turns; the best of the rounds counts. Prints speeds relative
to h5py without chunks or filter: above 1 is faster.

cached  until HDF5 has given the file to the system; read back from the system's memory
disk    until the file is on the disk; read with the system's memory of it dropped
CPU     processor time of the cached way, all threads: of use where the machine is busy"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PRESETS = ("fast", "balanced", "small")
CHUNK_BYTES = 1 << 20
COLUMNS = ("write cached", "write disk", "write CPU", "read cached", "read disk", "read CPU")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--directory", type=Path, default=Path("."), help="on the disk to measure")
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rel", type=float, default=1e-3, help="of the array's value range")
    parser.add_argument("--preset", choices=PRESETS, default="fast")
    parser.add_argument("--field", type=Path, help="f32 values; repeated to fill the megabytes",
                        default=REPOSITORY / "data" / "mitgcm_conv_u_50x100x100.f32")
    parser.add_argument("--dims", default="50x100x100")
    return parser.parse_args()


arguments = parse_arguments()
os.environ["HDF5_PLUGIN_PATH"] = str(arguments.build.resolve() / "hdf5" / "plugin")

import h5py  # noqa: E402
import numpy as np  # noqa: E402


def make_field():
    """The field again and again along the slowest axis, each time a little different."""
    dims = tuple(map(int, arguments.dims.split("x")))
    field = np.fromfile(arguments.field, "<f4").reshape(dims)
    copies = max(1, arguments.megabytes * 1_000_000 // field.nbytes)
    return np.concatenate([np.roll(field, 7 * i, axis=-1) * np.float32(1 + 0.01 * i)
                           for i in range(copies)])


def firn_filter(bound):
    """What `firn h5 params --abs BOUND` prints for h5py."""
    program = arguments.build / "apps" / "firn" / "firn"
    shown = subprocess.run([program, "h5", "params", "--abs", repr(bound), "--preset",
                            arguments.preset, "--json"], check=True, capture_output=True)
    settings = json.loads(shown.stdout)
    return {"compression": settings["filter_id"],
            "compression_opts": tuple(settings["parameters"])}


class Way:
    """One way of writing and reading the array; remembers its best times."""

    def __init__(self, name, creation=None, threads=1, direct=False):
        self.name = name
        self.creation = creation or {}
        self.threads = str(threads)
        self.direct = direct
        self.path = arguments.directory / f"bench-{name.replace(' ', '-').replace(',', '')}.h5"
        self.best = {}
        self.stored_bytes = 0

    def note(self, column, seconds):
        self.best[column] = min(seconds, self.best.get(column, seconds))

    def write(self, data, raw):
        self.path.unlink(missing_ok=True)
        if self.direct:
            with h5py.File(self.path, "w") as file:
                file.create_dataset("u", data.shape, data.dtype, **self.creation)
            cached, disk, processor = self.run_direct("write", raw)
        else:
            os.environ["FIRN_HDF5_THREADS"] = self.threads
            with h5py.File(self.path, "w") as file:
                start, processor_start = time.perf_counter(), time.process_time()
                file.create_dataset("u", data=data, **self.creation)
                file.flush()
                cached = time.perf_counter() - start
                processor = time.process_time() - processor_start
                os.fsync(file.id.get_vfd_handle())
                disk = time.perf_counter() - start
        self.note("write cached", cached)
        self.note("write disk", disk)
        self.note("write CPU", processor)
        with h5py.File(self.path) as file:
            self.stored_bytes = file["u"].id.get_storage_size()

    def read(self, out, from_disk):
        if from_disk:
            descriptor = os.open(self.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        if self.direct:
            seconds, _, processor = self.run_direct("read", "/dev/null")
        else:
            with h5py.File(self.path) as file:
                start, processor_start = time.perf_counter(), time.process_time()
                file["u"].read_direct(out)
                seconds = time.perf_counter() - start
                processor = time.process_time() - processor_start
        self.note("read disk" if from_disk else "read cached", seconds)
        if not from_disk:
            self.note("read CPU", processor)

    def run_direct(self, action, values):
        program = arguments.build / "hdf5" / "direct_chunks_program"
        shown = subprocess.run([program, action, self.path, "u", values, self.threads], check=True,
                               capture_output=True, text=True).stdout
        return map(float, shown.split()[:3])


def main():
    data = make_field()
    bound = arguments.rel * float(data.max() - data.min())
    rows = max(1, CHUNK_BYTES // data[0].nbytes)
    chunked = {"chunks": (rows, *data.shape[1:])}
    firn = {**chunked, **firn_filter(bound)}
    ways = [Way("no filter"), Way("no filter, chunks", chunked),
            Way("filter, 1 thread", firn), Way("filter, 2 threads", firn, 2),
            Way("direct, 1 thread", firn, 1, direct=True),
            Way("direct, 2 threads", firn, 2, direct=True)]
    out = np.zeros_like(data)
    raw = arguments.directory / "bench-values.raw"
    data.tofile(raw)
    try:
        for _ in range(arguments.rounds):
            for way in ways:
                way.write(data, raw)
                for from_disk in (False, True):
                    way.read(out, from_disk)
                if not way.direct and np.abs(out - data).max() > bound:
                    sys.exit(f"{way.name}: the bound is broken")
    finally:
        for path in (raw, *(way.path for way in ways)):
            path.unlink(missing_ok=True)

    print(f"{data.nbytes / 1e6:.0f} MB, {arguments.field.name}, rel {arguments.rel:g}, preset "
          f"{arguments.preset}, chunks {chunked['chunks']}, best of {arguments.rounds}")
    print(f"{'speed / no filter':20}{'ratio':>8}" + "".join(f"{name:>14}" for name in COLUMNS))
    plain = ways[0]
    for way in ways:
        speeds = "".join(f"{plain.best[name] / way.best[name]:14.2f}" for name in COLUMNS)
        print(f"{way.name:20}{data.nbytes / way.stored_bytes:8.2f}{speeds}")
    print(f"{'no filter, MB/s':28}"
          + "".join(f"{data.nbytes / 1e6 / plain.best[name]:14.0f}" for name in COLUMNS))


main()
