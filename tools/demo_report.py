"""The demo's main job: compresses a real field in several ways with the program, decompresses and
verifies each, prints one table and draws one picture. Usage: demo_report.py FIRN FIELD FOLDER
"""

import array
import json
import os
import re
import subprocess
import sys

import field_picture

BOUNDS = (("rel", "1e-2"), ("rel", "1e-3"), ("rel", "1e-4"), ("psnr", "80"), ("lossless", None))
PRESETS = ("fast", "balanced", "small")
PICTURE = (("rel", "1e-2"), "small")
LEVEL = 0  # of the slice: the surface, where the motion is strongest


class Demo:

    def __init__(self, program, field, folder):
        self.program = program
        self.field = field
        self.folder = folder
        self.rows = []

    def firn(self, *arguments):
        result = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, check=False)
        if result.returncode != 0:
            sys.exit(f"demo: firn {' '.join(arguments)} failed with {result.returncode}")
        return json.loads(result.stdout)

    def path(self, bound, preset, ending):
        kind, value = bound
        return os.path.join(self.folder, f"u_{kind}{value or ''}_{preset}.{ending}")

    def run(self, bound, preset):
        """One row: through files with verification, then in memory for the speeds."""
        kind, value = bound
        options = [f"--{kind}"] + ([value] if value else []) + ["--preset", preset]
        stream = self.path(bound, preset, "firn")
        decoded = self.path(bound, preset, "f32")
        self.firn("compress", *options, "--force", "--json", self.field, stream)
        self.firn("decompress", "--force", "--json", stream, decoded)
        verified = self.firn("verify", "--json", self.field, stream)  # exits when out of bound
        speeds = self.firn("bench", *options, "--repeat", "20", "--json", self.field)
        label = f"{kind} {value}" if value else kind
        self.rows.append((label, preset, verified, speeds, "yes"))
        return speeds

    def print_table(self):
        head = (("bound", ""), ("codec", ""), ("", "ratio"), ("compress", "MB/s"),
                ("decompress", "MB/s"), ("memcpy", "MB/s"), ("max error", "/ bound"),
                ("PSNR", "dB"), ("in bound,", "by verify"))
        lines = [[top for top, _ in head], [bottom for _, bottom in head]]
        previous = None
        for label, codec, quality, speeds, verified in self.rows:
            if label != previous:
                lines.append(None)
            bound, error = quality["bound_abs"], quality["max_abs_error"]
            lines.append([
                label if label != previous else "", codec, f"{quality['ratio']:.2f}",
                f"{speeds['compress_mb_s']:.0f}", f"{speeds['decompress_mb_s']:.0f}",
                f"{speeds['memcpy_mb_s']:.0f}", f"{error / bound:.4f}" if bound else "exact",
                f"{quality['psnr_db']:.1f}" if quality["psnr_db"] else "-", verified
            ])
            previous = label
        widths = [max(len(line[i]) for line in lines if line) for i in range(len(head))]
        for line in lines:
            if line is None:
                print("  ".join("-" * width for width in widths))
                continue
            cells = [
                cell.ljust(width) if column < 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths))
            ]
            print("  ".join(cells).rstrip())

    def draw_picture(self):
        dims = [int(n) for n in re.search(r"(\d+)x(\d+)x(\d+)", self.field).groups()]
        bound, preset = PICTURE
        label, _, quality, _, _ = next(
            row for row in self.rows if row[0] == " ".join(bound) and row[1] == preset)
        slices = []
        for path in (self.field, self.path(bound, preset, "f32")):
            count = dims[1] * dims[2]
            with open(path, "rb") as file:
                file.seek(LEVEL * count * 4)
                values = array.array("f", file.read(count * 4))
            if sys.byteorder == "big":
                values.byteswap()
            slices.append(values)
        picture = os.path.join(self.folder, "demo.png")
        kilobytes = quality["compressed_bytes"] / 1000
        field_picture.draw(
            picture, slices[0], slices[1], dims[1], dims[2], quality["bound_abs"],
            ("Eastward velocity of cooled ocean water, surface level (m/s)",
             f"MITgcm deep convection, {dims[0]} x {dims[1]} x {dims[2]} values of f32; "
             f"firn compress --{label} --preset {preset}"),
            (("original", f"{quality['original_bytes'] / 1000:.0f} kB"),
             ("decoded", f"from {kilobytes:.1f} kB, 1/{quality['ratio']:.0f}"),
             ("error", f"at most {quality['max_abs_error'] / quality['bound_abs']:.3f} of the "
              "bound")))
        return picture


def main():
    program, field, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    demo = Demo(program, field, folder)
    print(f"{os.path.relpath(field)}: velocity in a model of the ocean (see data/README.md), 2 MB.")
    print("Speeds on one thread, in memory, in MB (1e6 bytes) of the field per second; memcpy in "
          "the same run.\n")
    for bound in BOUNDS:
        for preset in PRESETS:
            speeds = demo.run(bound, preset)
        if speeds["zfp"] and bound[0] != "psnr":  # zfp has no such mode
            label = " ".join(part for part in bound if part)
            demo.rows.append((label, "zfp", speeds["zfp"], speeds["zfp"], ""))
    demo.print_table()
    print(f"\nA slice of the original, of the decoded field and of the error: "
          f"{os.path.relpath(demo.draw_picture())}")


if __name__ == "__main__":
    main()
