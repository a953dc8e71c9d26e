#!/usr/bin/env python3
"""Ratio and speed of every preset and pipeline over a folder of fields, next to memcpy and zfp.

    bench/table.py build/release/apps/firn/firn [FOLDER] [--rel 1e-2 1e-3] [--pwrel 0.015625]
                   [--lossless] [--tile 64] [--chunk-values 16384] [--threads 1 2] [--known-range] [--fields]

Fields are files whose names carry their dims (u_25x125x125.f32), or those of a MANIFEST.tsv with the
columns file, dtype, dims. Each figure is a geometric mean over the fields, all from one run; speeds
are fractions of memcpy's, and multiples of zfp's when firn was built with it. With --tile only fields
of at least 1 MB count, each repeated to that many MB. --chunk-values: in chunks of at most so many
values, as HDF5 and Zarr have them, made by halving the longest extent.
"""

import argparse
import json
import math
import pathlib
import re
import struct
import subprocess
import sys

CODECS = [("--preset", name) for name in ("fast", "balanced", "small")] + [
    ("--pipeline", name)
    for name in ("lorenzo", "blockpack", "ceresz", "ceresz4", "contexts", "interp", "causal", "fre",
                 "fre-round", "bits", "shuffle")
]
# Which of them take only this kind of bound.
ONLY = {"causal": "--rel", "fre": "--pwrel", "fre-round": "--pwrel", "bits": "--lossless", "shuffle": "--lossless"}


def takes(option, name, kind):
    if option == "--pipeline" and kind == "--lossless":
        return ONLY.get(name) == kind
    return ONLY.get(name, kind) == kind


def fields_of(folder):
    """(path, extra arguments) of each field."""
    manifest = folder / "MANIFEST.tsv"
    if not manifest.exists():
        names = (p for p in sorted(folder.iterdir()) if p.suffix in (".f32", ".f64", ".npy"))
        return [(path, []) for path in names]
    rows = [line.split("\t") for line in manifest.read_text().splitlines()]
    column = {name: i for i, name in enumerate(rows[0])}
    fields = []
    for row in rows[1:]:
        path = folder / row[column["file"]]
        arguments = ["--type", row[column["dtype"]], "--dims", row[column["dims"]]]
        if "fill" in path.stem and row[column["dtype"]] == "f32":
            arguments += ["--fill", repr(largest_f32(path))]
        fields.append((path, arguments))
    return fields


def largest_f32(path):
    """The fill value of a field that has one: its largest value."""
    data = path.read_bytes()
    return max(value for (value,) in struct.iter_unpack("<f", data))


def chunk_of(path, described, most):
    """Options for chunks of at most so many values."""
    found = re.search(r"_(\d+(?:x\d+)*)$", path.stem)
    if "--dims" not in described and not found:
        sys.exit(f"{path}: --chunk-values needs the dims in the name or a MANIFEST.tsv")
    dims = described[described.index("--dims") + 1] if "--dims" in described else found.group(1)
    extents = [int(extent) for extent in dims.split("x")]
    while math.prod(extents) > most:
        longest = extents.index(max(extents))
        extents[longest] = (extents[longest] + 1) // 2
    return ["--chunk", "x".join(map(str, extents))]


def mean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("firn")
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=here.parent / "data")
    parser.add_argument("--rel", nargs="+", default=[])
    parser.add_argument("--pwrel", nargs="+", default=[], help="relative to each value")
    parser.add_argument("--lossless", action="store_true")
    parser.add_argument("--tile", type=int, default=0)
    parser.add_argument("--chunk-values", type=int, default=0)
    parser.add_argument("--threads", nargs="+", default=["1"],
                        help="several: each, and how many times as fast as the first")
    parser.add_argument("--known-range", action="store_true",
                        help="give each field the absolute bound that --rel comes to: without the pass over "
                             "memory that finds the range")
    parser.add_argument("--codecs", nargs="+", help="only these presets and pipelines")
    parser.add_argument("--fields", action="store_true", help="a line for each field as well")
    arguments = parser.parse_args()

    fields = fields_of(arguments.folder)
    if arguments.tile:
        fields = [f for f in fields if f[0].stat().st_size >= 1_000_000]
    if arguments.chunk_values:
        fields = [(path, described + chunk_of(path, described, arguments.chunk_values))
                  for path, described in fields]
    if not fields:
        sys.exit(f"no fields in {arguments.folder}")
    print(f"{len(fields)} fields of {arguments.folder}, {' and '.join(arguments.threads)} thread(s)")
    print("bound  codec       ratio   of memcpy: compress decompress   of zfp: compress decompress  bound held")
    bounds = [("--rel", value) for value in arguments.rel]
    bounds += [("--pwrel", value) for value in arguments.pwrel]
    bounds += [("--lossless",)] if arguments.lossless else []
    for asked in bounds or [("--rel", rel) for rel in ("1e-2", "1e-3", "1e-4")]:
        kind, value = asked[0], asked[-1].removeprefix("--")
        for option, name in CODECS:
            if arguments.codecs and name not in arguments.codecs or not takes(option, name, kind):
                continue
            rows = {threads: [] for threads in arguments.threads}
            for path, described in fields:
                bound = list(asked)
                if arguments.known_range and kind == "--rel":
                    report = bench(arguments.firn, "--repeat", "1", *bound, option, name, *described, path)
                    bound = ["--abs", repr(report["bound_abs"])]
                tile = ["--tile", arguments.tile] if arguments.tile else []
                for threads in arguments.threads:
                    rows[threads].append(bench(arguments.firn, *bound, option, name, "--threads", threads,
                                               *described, path, *tile))
            for threads in arguments.threads:
                if arguments.fields:
                    for (path, _), row in zip(fields, rows[threads]):
                        print(line(value, name, [row]) + "  " + path.stem)
                print(line(value, name, rows[threads]))
            for threads in arguments.threads[1:]:
                pairs = list(zip(rows[arguments.threads[0]], rows[threads]))
                gains = [mean(more[key] / one[key] for one, more in pairs)
                         for key in ("compress_mb_s", "decompress_mb_s", "memcpy_mb_s")]
                print(f"{'':8} {threads} threads / {arguments.threads[0]}: compress {gains[0]:.2f}, "
                      f"decompress {gains[1]:.2f}, memcpy {gains[2]:.2f}")


def bench(firn, *options):
    command = [firn, "bench", "--json", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def line(bound, name, rows):
    text = f"{bound:8} {name:10} {mean(r['ratio'] for r in rows):7.2f}"
    for key in ("compress_mb_s", "decompress_mb_s"):
        text += f" {mean(r[key] / r['memcpy_mb_s'] for r in rows):18.3f}"
    zfp = [r for r in rows if r.get("zfp")]
    for key in ("compress_mb_s", "decompress_mb_s"):
        text += f" {mean(r[key] / r['zfp'][key] for r in zfp):16.2f}" if zfp else f"{'-':>17}"
    held = all(r["max_error_over_bound"] <= 1 for r in rows)
    return text + ("         yes" if held else "          NO")


if __name__ == "__main__":
    main()
