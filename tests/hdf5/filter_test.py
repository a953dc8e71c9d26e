"""The filter through h5py: what it takes, what it refuses, and what survives."""

import os
import sys
import textwrap

import hdf5_support as support
from hdf5_support import ABS, BALANCED, FAST, LOSSLESS, PSNR, PWREL, REL, SMALL, h5py, np

from h5py import h5d, h5p, h5s, h5t


class FilterTest(support.Hdf5Test):
    def round_trip(self, data, bound=1e-3, **keywords):
        keywords = {**support.with_firn(ABS, bound), **keywords}
        with h5py.File(self.path("f.h5"), "w") as file:
            file.create_dataset("u", data=data, **keywords)
        with h5py.File(self.path("f.h5")) as file:
            self.assert_filtered(file["u"])
            self.assert_within(file["u"][...], data, bound)
            return file["u"].id.get_storage_size()

    def test_types_and_byte_orders(self):
        sizes = {}
        for dtype in ("<f4", ">f4", "<f8", ">f8"):
            with self.subTest(dtype=dtype):
                data = support.smooth_field((40, 50, 60), dtype)
                sizes[dtype] = self.round_trip(data, chunks=(20, 25, 30))
                self.assertGreater(data.nbytes / sizes[dtype], 3)
        # The byte order costs nothing: values are swapped before they are compressed.
        self.assertEqual(sizes["<f4"], sizes[">f4"])
        self.assertEqual(sizes["<f8"], sizes[">f8"])

    def test_ranks_and_chunks_of_any_kind(self):
        for shape, chunk in (
                ((1000,), (256,)), ((1,), (1,)), ((7,), (1,)), ((5,), (3,)),
                ((30, 40), (30, 1)), ((9, 9, 9), (1, 9, 1)), ((6, 5, 4, 30), (2, 5, 4, 15)),
                ((3, 4, 5, 6, 7), (3, 2, 5, 6, 7)), ((2, 3, 4, 3, 8, 9), (2, 3, 4, 3, 8, 9)),
                ((1, 4, 1, 6, 1, 8, 1), (1, 2, 1, 6, 1, 5, 1)), ((2,) * 10, (2,) * 10)):
            with self.subTest(shape=shape, chunk=chunk):
                self.round_trip(support.smooth_field(shape), chunks=chunk)

    def test_every_bound_and_preset(self):
        data = support.smooth_field((64, 64))
        span = float(data.max() - data.min())
        for kind, value, allowed in ((ABS, 1e-2, 1e-2), (REL, 1e-3, 1e-3 * span),
                                     (PSNR, 60.0, span), (LOSSLESS, 0.0, 0.0)):
            for preset in (FAST, BALANCED, SMALL):
                with self.subTest(kind=kind, preset=preset):
                    with h5py.File(self.path("f.h5"), "w") as file:
                        dataset = file.create_dataset(
                            "u", data=data, chunks=data.shape,
                            **support.with_firn(kind, value, preset))
                        file.flush()
                        dataset.id.refresh()
                    with h5py.File(self.path("f.h5")) as file:
                        decoded = file["u"][...]
                        self.assert_filtered(file["u"])
                    self.assert_within(decoded, data, allowed)
                    if kind == PSNR:
                        error = np.mean((decoded.astype("f8") - data) ** 2)
                        self.assertGreaterEqual(20 * np.log10(span) - 10 * np.log10(error), 60)
                    if kind == LOSSLESS:
                        self.assert_identical(decoded, data)

    def test_errors_relative_to_each_value(self):
        data = support.smooth_field((64, 64)) * np.logspace(-20, 20, 64, dtype="f4")
        data[5, ::3] = 0
        for preset in (FAST, BALANCED, SMALL):
            with self.subTest(preset=preset):
                with h5py.File(self.path("f.h5"), "w") as file:
                    file.create_dataset("u", data=data, chunks=(16, 64),
                                        **support.with_firn(PWREL, 1e-3, preset))
                with h5py.File(self.path("f.h5")) as file:
                    self.assert_filtered(file["u"])
                    error = np.abs(file["u"][...].astype("f8") - data)
                self.assertTrue((error <= 1e-3 * np.abs(data.astype("f8"))).all())
                self.assertGreater(error.max(), 0)

    def test_lossless_needs_no_value(self):
        self.round_trip(support.smooth_field((50,)), bound=0.0, chunks=(50,),
                        compression_opts=(LOSSLESS, BALANCED))

    def test_specials_survive(self):
        data = support.smooth_field((32, 32))
        data[3, 4:9] = np.nan
        data[5] = np.inf
        data[6, ::2] = -np.inf
        self.round_trip(data, chunks=(16, 32))

    def test_fill_value_is_a_mask(self):
        data = support.smooth_field((64, 64)) * 1e-3
        data[10:30, 20:50] = 9.96921e36
        with h5py.File(self.path("f.h5"), "w") as file:
            # Of the chunk's range, which the fill values would blow up if they counted.
            file.create_dataset("u", data=data, chunks=(64, 64), fillvalue=9.96921e36,
                                **support.with_firn(REL, 1e-3))
        with h5py.File(self.path("f.h5")) as file:
            decoded = file["u"][...]
        land = data > 1e30
        self.assert_identical(decoded[land], data[land])
        sea = data[~land]
        self.assert_within(decoded[~land], sea, 1e-3 * float(sea.max() - sea.min()))

    def test_datasets_grow(self):
        with h5py.File(self.path("f.h5"), "w") as file:
            dataset = file.create_dataset("t", (0, 30), "<f4", maxshape=(None, 30), chunks=(7, 30),
                                          fillvalue=-1.0, **support.with_firn(ABS, 1e-3))
            data = support.smooth_field((40, 30))
            for step in range(0, 40, 4):
                dataset.resize(step + 4, axis=0)
                dataset[step:step + 4] = data[step:step + 4]
            dataset.resize(45, axis=0)
        with h5py.File(self.path("f.h5")) as file:
            # A chunk that is written to again was decoded in between.
            self.assert_within(file["t"][:40], data, 4e-3)
            self.assert_identical(file["t"][40:], np.full((5, 30), -1, "<f4"))

    def test_other_filters_may_follow(self):
        data = support.smooth_field((64, 64))
        self.round_trip(data, chunks=(32, 64), fletcher32=True)

    def create(self, dtype, chunk, filters, flags=0):
        """A dataset by HDF5's own calls, where the filter is not optional as h5py makes it."""
        creation = h5p.create(h5p.DATASET_CREATE)
        creation.set_chunk(chunk)
        for number, options in filters:
            creation.set_filter(number, flags, options)
        shape = tuple(4 * extent for extent in chunk)
        with h5py.File(self.path("c.h5"), "w") as file:
            h5d.create(file.id, b"x", h5t.py_create(np.dtype(dtype)), h5s.create_simple(shape),
                       creation)

    def test_refusals_have_reasons(self):
        firn = (support.FILTER_ID, support.parameters(ABS, 1e-3))
        long_double = np.dtype(np.longdouble)
        for dtype, filters, reason in (
                ("<i4", [firn], "not floating-point"),
                ("<f2", [firn], "2 bytes"),
                (long_double, [firn], f"{long_double.itemsize} bytes"),
                (np.dtype([("a", "<f4")]), [firn], "not floating-point"),
                ("<f4", [(h5py.h5z.FILTER_SHUFFLE, ()), firn], "turn shuffle off"),
                ("<f4", [(h5py.h5z.FILTER_DEFLATE, (4,)), firn], "deflate"),
                ("<f4", [(support.FILTER_ID, ())], "how exact"),
                ("<f4", [(support.FILTER_ID, (1, 1))], "2 given"),
                ("<f4", [(support.FILTER_ID, support.parameters(7, 1.0))], "kind of bound 7"),
                ("<f4", [(support.FILTER_ID, support.parameters(ABS, 1.0, 9))], "preset 9"),
                ("<f4", [(support.FILTER_ID, support.parameters(ABS, -1.0))], "positive"),
                ("<f4", [(support.FILTER_ID, support.parameters(ABS, float("nan")))], "positive"),
                ("<f4", [(support.FILTER_ID, support.parameters(ABS, 1.0) + (99,))], "pipeline 99"),
        ):
            with self.subTest(dtype=dtype, filters=filters):
                with self.assertRaises(Exception) as caught:
                    self.create(dtype, (8, 8), filters)
                self.assertIn(reason, self.full_message(caught.exception, dtype, filters))

    def full_message(self, exception, dtype, filters):
        """h5py shows one line of HDF5's stack; a program that prints it all shows the others."""
        script = textwrap.dedent(f"""
            import numpy as np, h5py
            from h5py import h5d, h5p, h5s, h5t, h5e
            h5py._errors.unsilence_errors()
            creation = h5p.create(h5p.DATASET_CREATE)
            creation.set_chunk((8, 8))
            for number, options in {filters!r}:
                creation.set_filter(number, 0, options)
            file = h5py.File({self.path("d.h5")!r}, "w")
            h5d.create(file.id, b"x", h5t.py_create(np.dtype({np.dtype(dtype).descr!r})
                       if {np.dtype(dtype).names!r} else np.dtype({np.dtype(dtype).str!r})),
                       h5s.create_simple((32, 32)), creation)
            """)
        result = self.run_program(sys.executable, "-c", script)
        return str(exception) + result.stderr

    def test_an_optional_filter_leaves_other_types_alone(self):
        # h5py makes every filter optional: an integer dataset is stored as it is.
        numbers = np.arange(4000, dtype="<i8").reshape(40, 100)
        with h5py.File(self.path("f.h5"), "w") as file:
            file.create_dataset("i", data=numbers, chunks=(10, 100), **support.with_firn(ABS, 10.0))
            file.create_dataset("s", data=numbers.astype("<f8"), chunks=(10, 100), shuffle=True,
                                **support.with_firn(ABS, 10.0))
        with h5py.File(self.path("f.h5")) as file:
            self.assert_identical(file["i"][...], numbers)
            self.assert_identical(file["s"][...], numbers.astype("<f8"))

    def damage(self, path):
        with h5py.File(path) as file:
            info = file["u"].id.get_chunk_info(0)
        with open(path, "r+b") as raw:
            raw.seek(info.byte_offset + info.size // 2)
            byte = raw.read(1)[0]
            raw.seek(info.byte_offset + info.size // 2)
            raw.write(bytes([byte ^ 0x10]))

    def test_a_damaged_chunk_is_an_error_with_a_reason(self):
        self.round_trip(support.smooth_field((64, 64)), chunks=(32, 64))
        self.damage(self.path("f.h5"))
        with h5py.File(self.path("f.h5")) as file:
            with self.assertRaises(OSError):
                file["u"][...]
            file["u"][32:]  # the other chunk is well
        shown = self.run_program("h5dump", "--enable-error-stack", "-d", "/u", self.path("f.h5"))
        self.assertIn("Firn: a compressed chunk", shown.stdout + shown.stderr)

    def test_every_damaged_byte_is_noticed(self):
        data = support.smooth_field((8, 16))
        self.round_trip(data, chunks=(8, 16))
        with h5py.File(self.path("f.h5")) as file:
            info = file["u"].id.get_chunk_info(0)
        whole = (self.directory / "f.h5").read_bytes()
        for at in range(info.byte_offset, info.byte_offset + info.size):
            damaged = bytearray(whole)
            damaged[at] ^= 0x41
            (self.directory / "g.h5").write_bytes(damaged)
            with h5py.File(self.path("g.h5")) as file, self.assertRaises(OSError):
                file["u"][...]

    def test_threads_change_no_byte(self):
        script = textwrap.dedent(f"""
            import sys, zlib
            sys.path.insert(0, {os.path.dirname(support.__file__)!r})
            import hdf5_support as support
            from hdf5_support import h5py
            with h5py.File(sys.argv[1], "w") as file:
                file.create_dataset("u", data=support.smooth_field((90, 100, 110)),
                                    chunks=(90, 100, 110), **support.with_firn(support.ABS, 1e-3))
            with h5py.File(sys.argv[1]) as file:
                print(zlib.crc32(file["u"][...].tobytes()),
                      zlib.crc32(file["u"].id.read_direct_chunk((0, 0, 0))[1]))
            """)
        outputs = [self.succeeds(sys.executable, "-c", script, self.path(f"{threads}.h5"),
                                 environment={"FIRN_HDF5_THREADS": threads})
                   for threads in ("1", "2", "2", "2", "0", "nonsense")]
        self.assertEqual(len(set(outputs)), 1)

    def test_parameters_are_stored_in_full(self):
        data = support.smooth_field((2, 3, 4, 5, 6), ">f8")
        with h5py.File(self.path("f.h5"), "w") as file:
            dataset = file.create_dataset("u", data=data, chunks=(2, 3, 4, 5, 6), fillvalue=1e20,
                                          **support.with_firn(ABS, 1e-3, SMALL))
            fill = support.parameters(ABS, 1e20)[2:]
            bound = support.parameters(ABS, 1e-3)[2:]
            self.assertEqual(
                dataset._filters[str(support.FILTER_ID)],
                (0x4649524E, 1, ABS | SMALL << 8, *bound, 2 | 1 << 8 | 1 << 9, *fill,
                 0, 6, 0, 4, 0, 5, 0, 6))

    def test_golden_files_decode_for_ever(self):
        directory = support.REPOSITORY / "tests" / "golden" / "hdf5"
        files = sorted(directory.glob("*.h5"))
        self.assertGreater(len(files), 0)
        for path in files:
            with h5py.File(path) as file:
                for name in file["compressed"]:
                    with self.subTest(file=path.name, dataset=name):
                        self.assert_filtered(file["compressed"][name])
                        self.assert_identical(file["compressed"][name][...],
                                              file["decoded"][name][...])
