#!/usr/bin/env python3
"""Compares the decoder that was written from docs/format.md with the real one, bit for bit.

Usage: test_format.py path/to/firn [unittest options and test names]
"""

import contextlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))

import numpy  # noqa: E402

import decode_stream  # noqa: E402

PROGRAM = None  # set below
DECODER = os.path.join(ROOT, "tools", "decode_stream.py")
REAL_FIELD = os.path.join(ROOT, "data", "mitgcm_conv_u_50x100x100.f32")
FILL = 1e20

# By what decode_stream.PIPELINES calls the function that decodes it.
DECODED_PIPELINES = {
    function.__name__.removeprefix("decode_"): number
    for number, function in decode_stream.PIPELINES.items()
}


# Fields: dims and type to an array


def smooth(dims, dtype):
    grid = numpy.indices(dims).reshape(len(dims), -1)
    phase = 0.3 + sum((0.05 + 0.03 * axis) * index for axis, index in enumerate(grid))
    return (numpy.sin(phase) + 0.25 * numpy.cos(2.7 * phase)).reshape(dims).astype(dtype)


def noise(dims, dtype):
    return numpy.random.default_rng(1).normal(size=dims).astype(dtype)


def noisy(dims, dtype):
    return smooth(dims, dtype) + dtype(1e-3) * noise(dims, dtype)


def steps(dims, dtype):
    """Long runs of one residual, so that Huffman streams compress further."""
    return numpy.round(2 * smooth(dims, dtype)) * dtype(0.5)


def bursts(dims, dtype):
    """Residuals of all sizes, some beyond any alphabet."""
    exponents = numpy.random.default_rng(2).uniform(0, 7, size=dims)
    rare = numpy.random.default_rng(3).random(size=dims) < 0.05
    return (noisy(dims, dtype) * numpy.where(rare, 10**exponents, 1)).astype(dtype)


def offset(dims, dtype):
    """Codes far from zero: 64-bit ones where the type has room for them."""
    return noisy(dims, dtype) + dtype(1e7)


def specials(dims, dtype):
    field = noisy(dims, dtype)
    kinds = numpy.array([numpy.nan, numpy.inf, -numpy.inf, -0.0, 1e-42, 1e30, FILL], dtype)
    at = numpy.random.default_rng(4).random(size=dims) < 0.1
    field[at] = numpy.resize(kinds, int(at.sum()))
    return field


def nan_payloads(dims, dtype):
    """NaNs that differ, a signalling one among them."""
    field = noisy(dims, dtype)
    bits = field.view(f"u{field.itemsize}").reshape(-1)
    quiet = numpy.array(numpy.nan, dtype).view(bits.dtype)
    bits[::3] = quiet + (numpy.arange(len(bits[::3])) % 7).astype(bits.dtype)
    bits[:1] = quiet - bits.dtype.type(1)
    return field


def land(dims, dtype):
    """One coast in every slice: the map of exact points repeats itself."""
    field = noisy(dims, dtype)
    mask = smooth(dims[-2:], dtype) > 0.4
    field[..., mask] = FILL
    return field


def crossings(dims, dtype):
    """Signs that change, magnitudes of many octaves, and zeros."""
    field = noisy(dims, dtype)
    field = field * field * field * numpy.exp2(20 * smooth(dims, dtype)).astype(dtype)
    field[field > dtype(2)] = 0
    return field


def constant(dims, dtype):
    return numpy.full(dims, 2.5, dtype)


def ripple(dims, dtype):
    """Not constant, but of one code at most bounds: all points have one symbol."""
    return constant(dims, dtype) + dtype(1e-6) * noise(dims, dtype)


FIELDS = [
    smooth, noise, noisy, steps, bursts, offset, specials, nan_payloads, land, constant, ripple
]
SHAPES = [
    (1,), (7,), (65,), (1000,), (1, 9), (9, 1), (33, 40), (3, 4, 5), (17, 9, 23), (9, 33, 70),
    (2, 3, 4, 5), (4, 9, 11, 13), (300, 7, 1), (40, 1, 1, 1)
]
TYPES = [numpy.float32, numpy.float64]
PRESETS = ["fast", "balanced", "small"]
BOUNDS = [("--abs", 1e-2), ("--abs", 1e-6), ("--rel", 1e-4), ("--psnr", 70), ("--lossless",),
          ("--pwrel", 1 / 64)]
POINTWISE_BOUNDS = [("--pwrel", 1 / 64), ("--pwrel", 0.3), ("--pwrel", 1e-5), ("--pwrel", 1e-9)]


def bounds_for(pipeline):
    if pipeline == "causal":  # absolute bounds only
        return [bound for bound in BOUNDS if bound[0] != "--pwrel"]
    return POINTWISE_BOUNDS if pipeline == "fre" else BOUNDS


def by_x(dims):
    return "x".join(str(extent) for extent in dims)


class FormatTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_firn(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)

    def compress(self, field, *options):
        """The stream that the program makes of a field, as bytes."""
        field.tofile(self.path("in.raw"))
        run = self.run_firn("compress", "--force", "--threads", 1,
                            "--type", "f32" if field.itemsize == 4 else "f64",
                            "--dims", by_x(field.shape), *options,
                            self.path("in.raw"), self.path("stream.firn"))
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("stream.firn"), "rb") as file:
            return file.read()

    def decompress(self, stream):
        """What the program makes of a stream, as bytes."""
        with open(self.path("stream.firn"), "wb") as file:
            file.write(stream)
        run = self.run_firn("decompress", "--force", "--threads", 1,
                            self.path("stream.firn"), self.path("out.raw"))
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("out.raw"), "rb") as file:
            return file.read()

    def check(self, field, *options):
        """Compresses, and compares the two decoders. Returns the stream."""
        stream = self.compress(field, *options)
        decoded = decode_stream.decode(stream)
        self.assertEqual(decoded.shape, field.shape)
        self.assertEqual(decoded.dtype, field.dtype)
        self.assertEqual(decoded.tobytes(), self.decompress(stream))
        return stream

    @contextlib.contextmanager
    def counted_pipelines(self):
        """Gives a dictionary that holds how many chunks of each pipeline's id were decoded."""
        counts = dict.fromkeys(decode_stream.PIPELINES, 0)

        def counting(number, function):
            def decode(payload, chunk):
                counts[number] += 1
                return function(payload, chunk)
            return decode

        counting_pipelines = {number: counting(number, function)
                              for number, function in decode_stream.PIPELINES.items()}
        with mock.patch.dict(decode_stream.PIPELINES, counting_pipelines):
            yield counts

    def test_decoder_knows_every_pipeline_of_the_program(self):
        run = self.run_firn("compress", "--abs", 1, "--pipeline", "nonsense", "in", "out")
        names = re.search(r"there are (.*)$", run.stderr.strip())
        self.assertIsNotNone(names, run.stderr)
        # fre-round is the same to a decoder as fre.
        self.assertEqual(set(names[1].split(", ")) - {"auto", "fre-round"}, set(DECODED_PIPELINES),
                         "docs/format.md and tools/firn_decoder describe every pipeline")

    def test_every_pipeline_decodes_the_same_bits(self):
        for name, number in DECODED_PIPELINES.items():
            with self.counted_pipelines() as counts:
                for turn in range(2 * len(FIELDS)):  # other combinations for every pipeline
                    make, dims = FIELDS[turn % len(FIELDS)], SHAPES[turn % len(SHAPES)]
                    dtype = TYPES[(turn + number) % 2]
                    bounds = bounds_for(name)
                    bound = bounds[(turn + turn // len(SHAPES) + number) % len(bounds)]
                    with self.subTest(pipeline=name, field=make.__name__, dims=dims,
                                      type=dtype.__name__, bound=bound):
                        self.check(make(dims, dtype), *bound, "--fill", FILL, "--pipeline", name)
            self.assertGreater(counts[number], 0, f"no chunk was encoded by {name}")

    def test_pointwise_bounds_decode_the_same_bits(self):
        names = ["lorenzo", "blockpack", "ceresz", "contexts", "interp", "fre", "fre-round"]
        fields = [smooth, noise, bursts, specials, land, crossings]
        for index, (name, make) in enumerate(itertools.product(names, fields)):
            dims = SHAPES[3 + index % (len(SHAPES) - 3)]
            dtype = TYPES[(index // 2) % 2]
            bound = POINTWISE_BOUNDS[index % len(POINTWISE_BOUNDS)]
            with self.subTest(pipeline=name, field=make.__name__, dims=dims, type=dtype.__name__,
                              bound=bound):
                self.check(make(dims, dtype), *bound, "--pipeline", name)
        self.check(crossings((90, 100), numpy.float32), "--pwrel", 0.01, "--pipeline", "fre")

    def test_every_bound_and_preset_decodes_the_same_bits(self):
        for index, (preset, make) in enumerate(itertools.product(PRESETS, FIELDS)):
            dtype, bound = TYPES[index % 2], BOUNDS[index % len(BOUNDS)]
            with self.subTest(field=make.__name__, type=dtype.__name__, bound=bound,
                              preset=preset):
                self.check(make((30, 40), dtype), *bound, "--preset", preset)

    def test_trained_stencils_decode_the_same_bits(self):
        # Chunks with enough points for stencils; with "auto" also axes that are left out.
        shapes = [(5000,), (60, 80), (8, 1000), (20, 22, 24), (12, 13, 14, 15)]
        for index, (dims, make) in enumerate(itertools.product(shapes, (noisy, specials, land))):
            dtype = TYPES[(index + index // len(shapes)) % 2]
            for name in ("interp", "auto"):
                with self.subTest(dims=dims, field=make.__name__, type=dtype.__name__,
                                  pipeline=name):
                    self.check(make(dims, dtype), "--abs", 0.01, "--fill", FILL, "--preset",
                               "small", "--pipeline", name)

    def test_masks_decode_the_same_bits(self):
        # Maps of exact points that repeat after a slice (lag 600), a row (lag 100), two short
        # rows (lag 64 or more), or not at all.
        names = ["lorenzo", "blockpack", "contexts", "interp", "causal"]
        shapes = [(10, 20, 30), (50, 100), (400, 33), (3000,)]
        for index, (name, dims) in enumerate(itertools.product(names, shapes)):
            dtype = TYPES[(index + index // len(shapes)) % 2]
            with self.subTest(dims=dims, type=dtype.__name__, pipeline=name):
                self.check(land(dims, dtype), "--rel", 1e-3, "--fill", FILL, "--pipeline", name)

    def test_chunks_decode_the_same_bits(self):
        cases = [((1000,), (300,)), ((40, 50), (16, 16)), ((9, 10, 11), (4, 10, 7)),
                 ((3, 4, 5, 6), (2, 2, 3, 6)), ((5, 6), (100, 3))]
        for name, number in DECODED_PIPELINES.items():
            for dims, chunk in (cases[number % 5], cases[(number + 2) % 5]):
                with self.subTest(dims=dims, chunk=chunk, pipeline=name):
                    self.check(specials(dims, numpy.float32), *bounds_for(name)[0], "--chunk",
                               by_x(chunk), "--pipeline", name)

    def test_every_book_policy_decodes_the_same_bits(self):
        for policy, dtype in itertools.product(["cost", "chi", "stored", "offline"], TYPES):
            for make in (noisy, bursts, offset):
                with self.subTest(policy=policy, field=make.__name__, type=dtype.__name__):
                    self.check(make((6000,), dtype), "--rel", 1e-3, "--chunk", 1000,
                               "--pipeline", "lorenzo", "--books", policy)

    def test_shared_books_decode_the_same_bits(self):
        # Residuals of few, oddly spread values: chunks are too small for books of their own.
        teeth = numpy.random.default_rng(5).integers(-6, 7, size=60000)
        field = numpy.cumsum(5 * teeth).astype(numpy.float32)
        stream = self.check(field, "--abs", 0.49, "--chunk", 3000, "--pipeline", "lorenzo")
        header = decode_stream.read_header(reader := decode_stream.Reader(stream, "stream"))
        decode_stream.read_books(reader, header)
        self.assertGreater(len(header.books), 0)

    def test_payload_size_fields_of_two_and_four_bytes(self):
        for count in (16383, 16384):  # x 4 bytes: the last size of u16 and the first of u32
            with self.subTest(count=count):
                self.check(noise((count,), numpy.float32), "--abs", 1e-3)

    def test_arrays_without_values_decode_to_nothing(self):
        for dims in [(0,), (3, 0), (0, 2, 3, 4)]:
            with self.subTest(dims=dims):
                self.check(numpy.zeros(dims, numpy.float64), "--abs", 1e-3)
                self.check(numpy.zeros(dims, numpy.float32), "--abs", 1e-3, "--chunk",
                           by_x([2] * len(dims)))

    def test_a_real_field_decodes_the_same_bits_and_within_the_bound(self):
        field = numpy.fromfile(REAL_FIELD, "<f4").reshape(50, 100, 100)[10:30, :60, :70].copy()
        for name in DECODED_PIPELINES:
            with self.subTest(pipeline=name):
                bound = ("--pwrel", 1e-3) if name == "fre" else ("--abs", 1e-4)
                stream = self.check(field, *bound, "--pipeline", name)
                error = numpy.abs(decode_stream.decode(stream).astype(float) - field)
                limit = 1e-3 * numpy.abs(field.astype(float)) if name == "fre" else 1e-4
                self.assertTrue((error <= limit).all())

    def test_family_of_distributions_has_the_check_value_of_the_document(self):
        check = 0xCBF29CE484222325  # FNV-1a
        for number in range(len(decode_stream.MEMBERS)):
            for frequency in decode_stream.family_distribution(number).values():
                for byte in frequency.to_bytes(2, "little"):
                    check = (check ^ byte) * 0x100000001B3 % 2**64
        self.assertEqual(check, 0xBAE23E25058F2B9F)
        self.assertEqual(len(decode_stream.MEMBERS), 107)

    def test_ratios_decode_and_promise_what_was_achieved(self):
        for preset in ("fast", "balanced"):
            field = noisy((20, 24, 32), numpy.float32)
            stream = self.compress(field, "--ratio", 5, "--preset", preset, "--chunk", "4x24x32")
            decoded = decode_stream.decode(stream)
            self.assertEqual(self.decompress(stream), decoded.tobytes())
            header = decode_stream.read_header(decode_stream.Reader(stream, "stream"))
            self.assertGreater(header.tighter, 0)
            error = numpy.abs(decoded.astype(float) - field).max()
            self.assertLessEqual(error, header.bound * (256 - header.tighter) / 256)

    def test_series_decode_to_one_array(self):
        fields = [noisy((steps, 6, 7), numpy.float32) for steps in (3, 1, 4)]
        stream = self.compress(fields[0], "--abs", 1e-2)
        whole = numpy.concatenate(fields)
        for field in fields[1:]:
            with open(self.path("stream.firn"), "wb") as file:
                file.write(stream)
            field.tofile(self.path("more.raw"))
            subprocess.run([PROGRAM, "append", self.path("stream.firn"), self.path("more.raw"),
                            "--type", "f32", "--dims", by_x(field.shape), "--ratio", "3"],
                           check=True, capture_output=True)
            with open(self.path("stream.firn"), "rb") as file:
                stream = file.read()
        self.assertEqual(decode_stream.decode(stream).shape, whole.shape)
        self.assertEqual(self.decompress(stream), decode_stream.decode(stream).tobytes())
        joined = stream + stream
        self.assertEqual(self.decompress(joined), decode_stream.decode(joined).tobytes())
        for size in range(len(stream)):
            with self.subTest(size=size):
                try:  # a series may end behind any part, and before its directory
                    self.assertIn(decode_stream.decode(stream[:size]).shape[0], (3, 4, 8))
                except decode_stream.StreamError:
                    pass

    def test_command_writes_the_values(self):
        field = noisy((5, 6), numpy.float64)
        stream = self.compress(field, "--lossless")
        run = subprocess.run([sys.executable, "-B", DECODER, self.path("stream.firn"),
                              self.path("decoded.raw")], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("decoded.raw"), "rb") as file:
            self.assertEqual(file.read(), field.tobytes())
        self.assertEqual(self.decompress(stream), field.tobytes())

    def test_every_truncation_is_refused(self):
        stream = self.compress(specials((8, 9), numpy.float32), "--abs", 1e-2, "--chunk", "5x9")
        for size in range(len(stream)):
            with self.subTest(size=size), self.assertRaises(decode_stream.StreamError):
                decode_stream.decode(stream[:size])

    def test_every_flipped_bit_is_refused(self):
        stream = self.compress(specials((8, 9), numpy.float32), "--abs", 1e-2, "--chunk", "5x9")
        for bit in range(8 * len(stream)):
            damaged = bytearray(stream)
            damaged[bit // 8] ^= 1 << bit % 8
            with self.subTest(bit=bit), self.assertRaises(decode_stream.StreamError):
                decode_stream.decode(bytes(damaged))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
