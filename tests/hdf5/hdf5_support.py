"""What the HDF5 tests share: the programs under test, fields, parameters, a directory per test."""

import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGIN_DIR = os.environ["FIRN_PLUGIN_DIR"]
FIRN = os.environ["FIRN_PROGRAM"]
DIRECT_CHUNKS = os.environ["FIRN_DIRECT_CHUNKS"]
CC = os.environ.get("FIRN_CC", "cc")
CXX = os.environ.get("FIRN_CXX", "c++")
# Before h5py is imported, so that its HDF5 sees it.
os.environ["HDF5_PLUGIN_PATH"] = PLUGIN_DIR

import h5py  # noqa: E402
import numpy as np  # noqa: E402

FILTER_ID = 478
LOSSLESS, ABS, REL, PSNR, PWREL = range(5)
FAST, BALANCED, SMALL = range(3)
INCLUDE_FLAGS = [f"-I{REPOSITORY}/hdf5/include", f"-I{REPOSITORY}/include"]


def parameters(kind, value=0.0, preset=BALANCED):
    high, low = struct.unpack(">II", struct.pack(">d", value))
    return (kind, preset, high, low)


def with_firn(kind, value=0.0, preset=BALANCED):
    """Keywords for h5py's create_dataset."""
    return {"compression": FILTER_ID, "compression_opts": parameters(kind, value, preset)}


def smooth_field(shape, dtype="<f4"):
    """A field that compresses, of any rank."""
    axes = np.meshgrid(*[np.linspace(0, 2 + axis, extent) for axis, extent in enumerate(shape)],
                       indexing="ij")
    field = sum(np.sin(axis * (2 + number)) for number, axis in enumerate(axes))
    noise = np.random.default_rng(7).normal(scale=1e-3, size=shape)
    return (field + noise).astype(dtype)


class Hdf5Test(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="firn-hdf5-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name):
        return str(self.directory / name)

    def run_program(self, *arguments, environment=None, **keywords):
        return subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                              cwd=self.directory, env={**os.environ, **(environment or {})},
                              timeout=300, **keywords)

    def succeeds(self, *arguments, **keywords):
        result = self.run_program(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, f"{arguments}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def fails(self, *arguments, **keywords):
        result = self.run_program(*arguments, **keywords)
        self.assertNotEqual(result.returncode, 0, f"{arguments} should fail\n{result.stdout}")
        return result.stderr

    def assert_within(self, decoded, original, bound):
        """Finite values within the bound, the others bit for bit."""
        original = np.asarray(original)
        decoded = np.asarray(decoded)
        self.assertEqual(decoded.shape, original.shape)
        finite = np.isfinite(original)
        native = original.dtype.newbyteorder("=")
        integers = f"u{native.itemsize}"
        if not finite.all():
            self.assertTrue(np.array_equal(
                decoded[~finite].astype(native).view(integers),
                original[~finite].astype(native).view(integers)))
        error = np.abs(decoded[finite].astype("f8") - original[finite].astype("f8"))
        self.assertLessEqual(error.max(initial=0), bound)

    def assert_identical(self, decoded, original):
        self.assertEqual(np.asarray(decoded).tobytes(), np.asarray(original).tobytes())

    def assert_filtered(self, dataset):
        """The dataset's chunks did go through Firn: the filter's mask is 0 for each."""
        self.assertIn(str(FILTER_ID), dataset._filters)
        count = dataset.id.get_num_chunks()
        self.assertGreater(count, 0)
        for number in range(count):
            self.assertEqual(dataset.id.get_chunk_info(number).filter_mask, 0)
