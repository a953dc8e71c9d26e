#!/usr/bin/env python3
"""Speed of the Python package beside the C++ interface on an array of 64 MB, call by call.

    cmake -B build/bench -DFIRN_BUILD_BENCHMARKS=ON && cmake --build build/bench -t cpp_api_speed
    python bench/python_overhead.py build/bench/bench/cpp_api_speed [--rounds 15]

Calls alternate between the two, in processes that both stay, on one thread; times are processor
times, the best of all rounds. A ratio of 1 means that Python adds nothing.
"""

import argparse
import subprocess
import tempfile
import time

import numpy as np

import firn

SHAPE = (64, 512, 512)  # of floats: 67 MB
REL = 1e-3


def make_field():
    z, y, x = np.meshgrid(*[np.linspace(0, 20, n) for n in SHAPE], indexing="ij", sparse=True)
    noise = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    return (np.sin(z) * np.cos(y) + np.sin(x + z) + 0.003 * noise).astype(np.float32)


def seconds_of(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    field = make_field()
    out = np.empty_like(field)
    print(f"{'preset':<10}{'call':<26}{'C++':>12}{'Python':>12}{'Python / C++':>14}")
    with tempfile.NamedTemporaryFile() as file:
        field.tofile(file.name)
        for preset in ("fast", "balanced", "small"):
            options = {"rel": REL, "preset": preset, "threads": 1}
            stream = firn.compress(field, **options)
            calls = {
                "compress": ("c", lambda: firn.compress(field, **options)),
                "decompress": ("d", lambda: firn.decompress(stream, threads=1)),
                "decompress, kept memory": (
                    "D",
                    lambda: firn.decompress(stream, out=out, threads=1),
                ),
            }
            with subprocess.Popen(
                [arguments.program, file.name, str(field.size), preset, str(REL)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            ) as other:

                def seconds_of_other(command):
                    other.stdin.write(command + "\n")
                    other.stdin.flush()
                    return float(other.stdout.readline())

                for name, (command, call) in calls.items():
                    ours, theirs = [], []
                    for _ in range(arguments.rounds):
                        theirs.append(seconds_of_other(command))
                        ours.append(seconds_of(call))
                    speeds = [field.nbytes / 1e6 / min(times) for times in (theirs, ours)]
                    print(
                        f"{preset:<10}{name:<26}{speeds[0]:>7.0f} MB/s{speeds[1]:>7.0f} MB/s"
                        f"{min(ours) / min(theirs):>14.3f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
