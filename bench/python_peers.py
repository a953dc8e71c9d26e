#!/usr/bin/env python3
"""Firn beside its peers from PyPI: ratio, speed and whether the error bound held.

    pip install . hdf5plugin h5py zfpy
    python bench/python_peers.py [FOLDER] [--rel 1e-3] [--repeats 3] [--only NAME ...]

FOLDER has files whose names end in their dims and type, such as u_50x100x100.f32 (slowest axis
first), or a MANIFEST.tsv with the columns name, file, dtype, dims and notes ("fill 1e20" in the
notes marks missing values). Without one: the repository's field and three generated ones.
Everything runs on one thread. hdf5plugin's filters run through h5py on a file in memory with one
chunk, the others on arrays; "firn ... h5py" is Firn the same way. Each measurement runs in a
process of its own, so that a peer that crashes is a line of the report. Speeds are best of
--repeats, in MB (1e6) of the field per second of processor time (which other programs do not
disturb), and as a share of a memory copy's in the same run.
"""

import argparse
import csv
import itertools
import math
import multiprocessing
import pathlib
import re
import time

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
TYPES = {"f32": np.float32, "f64": np.float64}
TIME_LIMIT_SECONDS = 300


def fields_in(folder):
    """(name, array, fill) of every field of a folder."""
    manifest = folder / "MANIFEST.tsv"
    if manifest.exists():
        with open(manifest, newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                fill = re.search(r"fill (-?[0-9.e+]+)", row.get("notes") or "")
                field = np.fromfile(folder / row["file"], TYPES[row["dtype"]])
                dims = tuple(map(int, row["dims"].split("x")))
                yield row["name"], field.reshape(dims), float(fill.group(1)) if fill else None
        return
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(r"(.*?)_?([0-9]+(?:x[0-9]+)*)\.(f32|f64)", path.name)
        if match:
            dims = tuple(map(int, match.group(2).split("x")))
            yield match.group(1), np.fromfile(path, TYPES[match.group(3)]).reshape(dims), None


def random_field(shape, slope, seed):
    """Noise whose power falls with the frequency to this slope: cascades of any roughness."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    frequencies = np.meshgrid(*map(np.fft.fftfreq, shape), indexing="ij", sparse=True)
    square = sum(f * f for f in frequencies)
    square.flat[0] = 1
    return np.fft.ifftn(np.fft.fftn(noise) * square ** (-slope / 4)).real


def default_fields():
    yield from fields_in(DATA)
    yield "turbulence", random_field((128, 128, 128), 11 / 3, 1).astype(np.float32), None
    yield "smooth", random_field((96, 96, 96), 7, 2), None
    masked = random_field((512, 768), 3, 3).astype(np.float32)
    masked[random_field((512, 768), 4, 4) > 0] = np.nan  # continents
    yield "coast", masked, None


class Codec:
    """encode() returns something with the size `size_of` gives; decode() returns the array."""

    def size_of(self, encoded):
        return len(encoded)


class Firn(Codec):
    def __init__(self, preset):
        self.name = f"firn {preset}"
        self.preset = preset

    def encode(self, field, bound, fill):
        import firn

        return firn.compress(field, abs=bound, fill=fill, preset=self.preset, threads=1)

    def decode(self, encoded, field):
        import firn

        return firn.decompress(encoded, threads=1)


class Zfpy(Codec):
    name = "zfpy"

    def encode(self, field, bound, fill):
        import zfpy

        return zfpy.compress_numpy(field, tolerance=bound)

    def decode(self, encoded, field):
        import zfpy

        return zfpy.decompress_numpy(encoded)


class Hdf5(Codec):
    """A filter of HDF5; `keywords(bound)` are h5py's for create_dataset."""

    def __init__(self, name, keywords):
        self.name = name
        self.keywords = keywords
        self.numbers = itertools.count()

    def encode(self, field, bound, fill):
        import h5py

        # HDF5 opens no name twice, though nothing of that name is ever on disk.
        name = f"memory-{next(self.numbers)}"
        file = h5py.File(name, "w", driver="core", backing_store=False, rdcc_nbytes=0)
        dataset = file.create_dataset(
            "u", shape=field.shape, dtype=field.dtype, chunks=field.shape, fillvalue=fill,
            **self.keywords(bound),
        )
        dataset[...] = field
        file.flush()
        return file

    def size_of(self, encoded):
        return encoded["u"].id.get_storage_size()

    def decode(self, encoded, field):
        return encoded["u"][...]


def all_codecs():
    def filter_of(make):
        def keywords(bound):
            import hdf5plugin

            return make(hdf5plugin, bound)

        return keywords

    def firn_filter(bound):
        import firn

        return firn.hdf5(abs=bound)

    return [
        Firn("fast"),
        Firn("balanced"),
        Firn("small"),
        Hdf5("firn balanced h5py", firn_filter),
        Hdf5("SZ3", filter_of(lambda plugin, bound: plugin.SZ3(absolute=bound))),
        Hdf5("ZFP", filter_of(lambda plugin, bound: plugin.Zfp(accuracy=bound))),
        Hdf5("SPERR", filter_of(lambda plugin, bound: plugin.Sperr(absolute=bound))),
        Hdf5("Blosc2 zstd (lossless)", filter_of(lambda plugin, bound: plugin.Blosc2(cname="zstd"))),
        Zfpy(),
    ]


def best_time(call, repeats):
    """(result, seconds of the fastest call)."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return result, best


def is_special(field, fill):
    special = ~np.isfinite(field)
    return special if fill is None else special | (field == field.dtype.type(fill))


def measure(codec, field, bound, fill, repeats):
    encoded, encode_seconds = best_time(lambda: codec.encode(field, bound, fill), repeats)
    decoded, decode_seconds = best_time(lambda: codec.decode(encoded, field), repeats)
    _, copy_seconds = best_time(field.copy, max(repeats, 5))
    decoded = np.asarray(decoded).reshape(field.shape)
    special = is_special(field, fill)
    # Exact enough for doubles of any size, which a difference in double is not always.
    error = np.abs(decoded[~special].astype(np.longdouble) - field[~special].astype(np.longdouble))
    bits = np.uint32 if field.itemsize == 4 else np.uint64
    same = field[special].view(bits) == decoded[special].astype(field.dtype).view(bits)
    return {
        "ratio": field.nbytes / codec.size_of(encoded),
        "encode": field.nbytes / 1e6 / encode_seconds,
        "decode": field.nbytes / 1e6 / decode_seconds,
        "copy": field.nbytes / 1e6 / copy_seconds,
        "error": float(error.max() / bound) if error.size else 0.0,
        "held": bool(np.all(error <= bound)),
        "specials": int(same.size - same.sum()),
    }


def measure_in_child(codec, field, bound, fill, repeats):
    """measure(), or {"failure": why}."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        try:
            sender.send(measure(codec, field, bound, fill, repeats))
        except Exception as error:
            sender.send({"failure": f"{type(error).__name__}: {error}".splitlines()[0][:60]})

    child = context.Process(target=work)
    child.start()
    sender.close()
    try:
        if not receiver.poll(TIME_LIMIT_SECONDS):
            return {"failure": f"took more than {TIME_LIMIT_SECONDS} s"}
        return receiver.recv()
    except EOFError:
        child.join()
        return {"failure": f"crashed (exit code {child.exitcode})"}
    finally:
        if child.is_alive():
            child.join(5)
        if child.is_alive():
            child.kill()


def verdict(result):
    words = "yes" if result["held"] else f"NO: {result['error']:.4g} of it"
    if result["specials"]:
        words += f"; {result['specials']} NaN or fill values changed"
    return words


def print_summary(results, names):
    print(f"\n{'geometric means':<24}{'fields':>7}{'ratio':>9}{'compress':>10}{'decompress':>12}"
          "   bound held on")
    for name in names:
        good = [result for result in results[name] if "failure" not in result]
        if not good:
            print(f"{name:<24}{0:>7}   {results[name][0]['failure'] if results[name] else ''}")
            continue

        def mean(of):
            return math.exp(sum(math.log(of(result)) for result in good) / len(good))

        held = sum(result["held"] and not result["specials"] for result in good)
        print(
            f"{name:<24}{len(good):>7}{mean(lambda r: r['ratio']):>9.2f}"
            f"{mean(lambda r: r['encode'] / r['copy']):>10.3f}"
            f"{mean(lambda r: r['decode'] / r['copy']):>12.3f}   {held} of {len(results[name])}"
        )
    print("Speeds here are shares of a memory copy's.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--rel", type=float, default=1e-3, help="bound, as a fraction of the range")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="codecs whose names contain one of these")
    arguments = parser.parse_args()

    codecs = [
        codec
        for codec in all_codecs()
        if not arguments.only or any(word.lower() in codec.name.lower() for word in arguments.only)
    ]
    if not codecs:
        parser.error("no such codec")
    fields = fields_in(arguments.folder) if arguments.folder else default_fields()
    results = {codec.name: [] for codec in codecs}
    for name, field, fill in fields:
        valid = field[~is_special(field, fill)].astype(np.float64)
        # A bound that the field's own type can hold, so that nobody's rounding of it counts.
        bound = float(field.dtype.type(arguments.rel * (valid.max() - valid.min())))
        print(f"\n{name}: {'x'.join(map(str, field.shape))} {field.dtype.name}, bound {bound:.4g} "
              f"(rel {arguments.rel:g})")
        print(f"  {'codec':<24}{'ratio':>8}{'compress':>12}{'decompress':>12}   bound held")
        for codec in codecs:
            result = measure_in_child(codec, field, bound, fill, arguments.repeats)
            results[codec.name].append(result)
            if "failure" in result:
                print(f"  {codec.name:<24}{result['failure']}", flush=True)
                continue
            print(
                f"  {codec.name:<24}{result['ratio']:>8.2f}{result['encode']:>7.0f} MB/s"
                f"{result['decode']:>7.0f} MB/s   {verdict(result)}",
                flush=True,
            )
    print_summary(results, list(results))


if __name__ == "__main__":
    main()
