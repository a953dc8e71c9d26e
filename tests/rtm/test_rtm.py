"""Runs firn-rtm on a survey of a second or two: python3 test_rtm.py PROGRAM"""

import array
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = sys.argv.pop(1)
SIZE = ["--size", "32", "28", "30", "--sponge", "10", "--steps", "120", "--quiet"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def decode_png(path):
    """Width, height and pixels, every checksum tested."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 0) and b"IEND" in chunks
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (width + 1)
    return width, height, [rows[y * (width + 1) + 1 : (y + 1) * (width + 1)] for y in range(height)]


class Rtm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def migrate(self, *arguments):
        done = run(*SIZE, "--json", "--scratch", self.path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_images_raw_and_png(self):
        report = self.migrate("--policy", "memory", "--output", self.path / "out")
        image = self.path / "out" / "image_32x28x30.f32"
        self.assertEqual(image.stat().st_size, 32 * 28 * 30 * 4)
        values = array.array("f", image.read_bytes())
        self.assertGreater(max(map(abs, values)), 0)
        for name, width, height in ("xz", 30, 32), ("yz", 28, 32), ("xy", 30, 28):
            got = decode_png(self.path / "out" / f"slice_{name}.png")
            self.assertEqual(got[:2], (width, height))
            self.assertGreater(len(set(b"".join(got[2]))), 5)
        self.assertEqual(report["frames"], 15)
        self.assertGreater(report["total_seconds"], 0)

    def test_policies_and_the_reference_image(self):
        traces = ["--traces", self.path / "traces"]
        self.migrate("--policy", "memory", "--output", self.path / "exact", *traces)
        reference = ["--reference", self.path / "exact" / "image_32x28x30.f32"]
        raw = self.migrate("--policy", "disk", *traces, *reference)
        self.assertIsNone(raw["snr_db"])  # the same image
        for policy in "compressed-disk", "compressed-memory":
            lossy = self.migrate("--policy", policy, "--rel", "1e-4", *traces, *reference)
            self.assertGreater(lossy["snr_db"], 40)
            self.assertGreater(lossy["ratio"], 2)
        self.assertEqual([p.name for p in self.path.iterdir() if "frames" in p.name], [])

    def test_models_and_shots(self):
        self.migrate("--model", "salt", "--shots", "2")
        velocity = self.path / "velocity.f32"
        velocity.write_bytes(array.array("f", [2000.0] * (32 * 28 * 30)).tobytes())
        self.migrate("--model", velocity)

    def test_mistakes_are_one_line(self):
        for arguments, code in (
            (["--model", "nothing-there"], 20),
            (["--policy", "disc"], 1),
            (["--size", "8", "8", "8"], 1),
            (["--policy", "disk", "--scratch", "/no/such/folder"], 11),
            (["--policy", "automatic", "--budget", "1"], 1),
            (["--unknown"], 1),
        ):
            done = run(*SIZE, *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, r"\Afirn-rtm: .*\n\Z")


unittest.main()
