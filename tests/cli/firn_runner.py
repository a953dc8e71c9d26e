"""What the tests of the command line share: running the program, and making and reading fields.

Python's standard library only.
"""

import array
import ast
import json
import math
import os
import signal
import struct
import subprocess
import tempfile
import unittest

PROGRAM = None  # set by test_cli.py
REAL_FIELD = os.path.join(os.path.dirname(__file__), "../../data/mitgcm_conv_u_50x100x100.f32")

TYPES = {"f": "f32", "d": "f64"}  # by the array module's codes

# Exit codes, as docs/command-line.md lists them.
USAGE = 1
UNSUPPORTED = 2
NOT_FIRN = 4
NEWER_VERSION = 5
TRUNCATED = 6
DAMAGED = 7
BOUND_EXCEEDED = 9
CANNOT_READ = 20
SIZE_MISMATCH = 21
OUTPUT_EXISTS = 22
CANNOT_WRITE = 23
INCOMPLETE = 24

JSON_KEYS = {
    "original_bytes", "compressed_bytes", "ratio", "bound_abs", "max_abs_error", "psnr_db",
    "compress_mb_s", "decompress_mb_s", "memcpy_mb_s"
}


def default_signals():
    """A shell lets its background jobs ignore SIGINT, and tests may be one."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


def smooth_field(dims, code="f"):
    """Values of a smooth function, row-major; `code` is array's, "f" or "d"."""
    count = math.prod(dims)
    values = array.array(code, bytes(array.array(code).itemsize * count))
    for index in range(count):
        rest, phase = index, 0.3
        for axis, extent in reversed(list(enumerate(dims))):
            phase += (rest % extent) * (0.05 + 0.03 * axis)
            rest //= extent
        values[index] = math.sin(phase) + 0.25 * math.cos(2.7 * phase)
    return values


def read_array(path, code="f"):
    with open(path, "rb") as file:
        return array.array(code, file.read())


def take_region(values, dims, ranges):
    """The values of a box, as numpy's values[a:b, c:d, ...] would have them."""
    result = array.array(values.typecode)
    strides = [math.prod(dims[axis + 1:]) for axis in range(len(dims))]

    def walk(axis, offset):
        if axis == len(dims):
            result.append(values[offset])
            return
        for index in range(*ranges[axis]):
            walk(axis + 1, offset + index * strides[axis])

    walk(0, 0)
    return result


def npy_bytes(values, dims, descr=None, fortran=False, version=1, padding=64):
    """A .npy file as numpy writes it."""
    descr = descr or {"f": "<f4", "d": "<f8"}[values.typecode]
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(dims)!r}, }}"
    width = 2 if version == 1 else 4
    prefix = 8 + width
    if padding:
        text += " " * ((-(prefix + len(text) + 1)) % padding)
    text += "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + values.tobytes()


def parse_npy(data):
    """(header dictionary, bytes of the values)"""
    length = struct.unpack("<H", data[8:10])[0]
    return ast.literal_eval(data[10:10 + length].decode()), data[10 + length:]


class Outcome:

    def __init__(self, code, stdout, stderr):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    @property
    def json(self):
        return json.loads(self.stdout)


class CliTest(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="firn-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(bytes(data))
        return name

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write_field(self, dims=(6, 20, 30), code="f", name=None):
        """A raw file whose name says all; returns its name and values."""
        values = smooth_field(dims, code)
        ending = {"f": "f32", "d": "d64"}[code]
        name = name or f"u_{'x'.join(map(str, dims))}.{ending}"
        self.write(name, values.tobytes())
        return name, values

    def firn(self, *arguments, stdin=b"", **options):
        """Runs the program in the test's folder."""
        result = subprocess.run([PROGRAM, *arguments],
                                input=stdin,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                cwd=self.folder,
                                timeout=120,
                                check=False,
                                **options)
        return Outcome(result.returncode, result.stdout, result.stderr.decode())

    def succeeds(self, *arguments, **options):
        outcome = self.firn(*arguments, **options)
        self.assertEqual(outcome.code, 0, f"firn {arguments}: {outcome.stderr}")
        self.assertEqual(outcome.stderr, "")
        return outcome

    def fails(self, code, *arguments, says=(), **options):
        """Fails with that exit code and one line on stderr, and leaves nothing behind."""
        before = set(os.listdir(self.folder))
        outcome = self.firn(*arguments, **options)
        self.assertEqual(outcome.code, code, f"firn {arguments}: {outcome.stderr}")
        self.assertRegex(outcome.stderr, r"\Afirn: [^\n]+\n\Z")
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, outcome.stderr)
        self.assertEqual(outcome.stdout, b"")
        self.assertEqual(set(os.listdir(self.folder)), before)
        return outcome

    def compressed(self, *options, dims=(6, 20, 30), code="f"):
        """A stream u.firn of a smooth field; returns the field's name and values."""
        name, values = self.write_field(dims, code)
        self.succeeds("compress", *(options or ("--abs", "1e-3")), "--dims",
                      "x".join(map(str, dims)), name, "u.firn")
        return name, values

    def assert_within(self, decoded, values, bound):
        self.assertEqual(len(decoded), len(values))
        worst = max((abs(a - b) for a, b in zip(decoded, values)), default=0)
        self.assertLessEqual(worst, bound)
