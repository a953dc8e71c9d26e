#!/usr/bin/env python3
"""Ratio and PSNR of firn's presets at equal bounds, next to those of other compressors.

    bench/against_peers.py build/release/apps/firn/firn FOLDER PEERS.tsv [--rel 1e-2 1e-3] [--codecs small]
                           [--best SZ3 SPERR] [--quality SZ3] [--without FIELD] [--fields]

FOLDER is one that bench/table.py takes, with a MANIFEST.tsv. PEERS.tsv has the columns field (a file's
name without its end), bound_rel, peer, ratio and psnr_db, measured elsewhere on the same fields with
the same bounds. Ratios are compared with the best of --best (all peers if it is not given), PSNR with
that of --quality. Values that are masked do not count for firn's PSNR; a peer that has them as
ordinary values gains by each of them that is easy.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

from table import fields_of, mean


def read_peers(path):
    """{(field, bound): {peer: (ratio, psnr)}}, without peers that failed ("-")"""
    peers = {}
    with open(path, newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if "-" in (row["ratio"], row["psnr_db"]):
                continue
            of_field = peers.setdefault((row["field"], float(row["bound_rel"])), {})
            of_field[row["peer"]] = (float(row["ratio"]), float(row["psnr_db"]))
    return peers


def measure(firn, codec, bound, path, described):
    command = [firn, "bench", "--json", "--repeat", "1", "--threads", "1", "--rel", bound]
    command += ["--preset", codec, *described, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("firn")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("peers")
    parser.add_argument("--rel", nargs="+", default=["1e-2", "1e-3", "1e-4"])
    parser.add_argument("--codecs", nargs="+", default=["balanced", "small"], help="presets")
    parser.add_argument("--best", nargs="+", help="peers whose best ratio counts")
    parser.add_argument("--quality", default="SZ3", help="the peer whose PSNR counts")
    parser.add_argument("--without", nargs="+", default=[], help="fields to leave out")
    parser.add_argument("--fields", action="store_true", help="a line for each field as well")
    arguments = parser.parse_args()

    peers = read_peers(arguments.peers)
    for codec in arguments.codecs:
        gains, behind, dim = [], [], []
        for path, described in fields_of(arguments.folder):
            for bound in arguments.rel:
                of_field = peers.get((path.stem, float(bound)))
                if of_field is None or path.stem in arguments.without:
                    continue
                ratio, best = max((of_field[name][0], name)
                                  for name in arguments.best or of_field if name in of_field)
                row = measure(arguments.firn, codec, bound, path, described)
                gain = row["ratio"] / ratio
                decibels = row["psnr_db"] - of_field[arguments.quality][1]
                gains.append(gain)
                if gain < 1:
                    behind.append(f"{path.stem} {bound}: {gain:.3f}")
                if decibels < -0.5:
                    dim.append(f"{path.stem} {bound}: {decibels:+.2f} dB")
                if arguments.fields:
                    print(f"{path.stem:24} {bound:6} {codec:9} ratio {row['ratio']:8.2f}, "
                          f"{gain:6.3f} of {best:12} PSNR {row['psnr_db']:6.2f} dB, {decibels:+6.2f}")
        if not gains:
            sys.exit("no field of the folder is in the table of peers")
        print(f"{codec}: {mean(gains):.3f} times the best ratio of the peers, {len(gains)} cases")
        print(f"  below it: {'; '.join(behind) or 'none'}")
        print(f"  PSNR more than 0.5 dB below that of {arguments.quality}: {'; '.join(dim) or 'none'}")


main()
