"""The threaded writer and reader against HDF5's own filter pipeline."""

import hdf5_support as support
from hdf5_support import ABS, h5py, np


class DirectChunksTest(support.Hdf5Test):
    def create(self, shape, chunk, dtype="<f4", bound=1e-3, data=None, **keywords):
        with h5py.File(self.path("f.h5"), "w") as file:
            file.create_dataset("u", shape, dtype, chunks=chunk, data=data,
                                **{**support.with_firn(ABS, bound), **keywords})

    def write(self, data, threads=2, box=()):
        native = np.ascontiguousarray(data, data.dtype.newbyteorder("="))
        (self.directory / "values").write_bytes(native.tobytes())
        return self.succeeds(support.DIRECT_CHUNKS, "write", "f.h5", "u", "values", threads, *box)

    def read(self, shape, dtype, threads=2, box=()):
        self.succeeds(support.DIRECT_CHUNKS, "read", "f.h5", "u", "read", threads, *box)
        return np.frombuffer((self.directory / "read").read_bytes(),
                             np.dtype(dtype).newbyteorder("=")).reshape(shape)

    def stored(self):
        with h5py.File(self.path("f.h5")) as file:
            dataset = file["u"]
            return [dataset.id.read_direct_chunk(dataset.id.get_chunk_info(i).chunk_offset)
                    for i in range(dataset.id.get_num_chunks())]

    SHAPES = (((100,), (32,)), ((50, 70), (16, 70)), ((30, 40, 50), (16, 16, 16)),
              ((6, 7, 8, 9), (4, 4, 4, 4)), ((3, 4, 5, 6, 7), (2, 3, 5, 4, 7)),
              ((2, 3, 4, 3, 4, 5), (1, 2, 3, 3, 4, 2)), ((5, 1, 9), (1, 1, 1)), ((3,), (5,)))

    def test_the_same_bytes_as_the_filter(self):
        for shape, chunk in self.SHAPES:
            for dtype in ("<f4", ">f8"):
                with self.subTest(shape=shape, dtype=dtype):
                    data = support.smooth_field(shape, dtype)
                    grows = {"maxshape": (None,) * len(shape)}
                    self.create(shape, chunk, dtype, data=data, fillvalue=-1.0, **grows)
                    expected = self.stored()
                    self.create(shape, chunk, dtype, fillvalue=-1.0, **grows)
                    self.write(data)
                    self.assertEqual(self.stored(), expected)
                    with h5py.File(self.path("f.h5")) as file:
                        through_filter = file["u"][...]
                        self.assert_within(through_filter, data, 1e-3)
                    decoded = self.read(shape, dtype)
                    self.assertTrue(np.array_equal(decoded, through_filter))

    def test_thread_counts_change_nothing(self):
        data = support.smooth_field((60, 70, 80))
        self.create(data.shape, (16, 32, 40))
        self.write(data, threads=1)
        expected = self.stored()
        for threads in (2, 5, 0):
            self.create(data.shape, (16, 32, 40))
            self.write(data, threads)
            self.assertEqual(self.stored(), expected)
            self.assert_within(self.read(data.shape, "<f4", threads), data, 1e-3)

    def test_the_report_is_right(self):
        data = support.smooth_field((64, 64))
        self.create(data.shape, (32, 64))
        *_, original, compressed, error = self.write(data).split()
        self.assertEqual(int(original), data.nbytes)
        self.assertEqual(int(compressed), sum(len(stream) for _, stream in self.stored()))
        with h5py.File(self.path("f.h5")) as file:
            largest = np.abs(file["u"][...].astype("f8") - data).max()
        self.assertGreaterEqual(float(error), largest)
        self.assertLessEqual(float(error), 1e-3)

    def test_boxes_of_chunks(self):
        data = support.smooth_field((40, 50))
        self.create(data.shape, (16, 20))
        self.write(data[16:32, 20:], box=("16,20", "16,30"))
        self.write(data[32:, :20], box=("32,0", "8,20"))
        with h5py.File(self.path("f.h5")) as file:
            self.assert_within(file["u"][16:32, 20:], data[16:32, 20:], 1e-3)
            self.assert_within(file["u"][32:, :20], data[32:, :20], 1e-3)
            self.assertTrue((file["u"][:16] == 0).all())
        part = self.read((24, 20), "<f4", box=("16,0", "24,20"))
        self.assertTrue((part[:16] == 0).all())
        self.assert_within(part[16:], data[32:, :20], 1e-3)

    def test_boxes_across_chunks_are_refused(self):
        self.create((40, 50), (16, 20))
        (self.directory / "values").write_bytes(bytes(40 * 50 * 4))
        for box, reason in ((("8,0", "16,20"), "axis 0"), (("0,0", "16,30"), "axis 1"),
                            (("32,0", "16,20"), "beyond"), (("0", "16"), "rank")):
            with self.subTest(box=box):
                self.assertIn(reason, self.fails(support.DIRECT_CHUNKS, "write", "f.h5", "u",
                                                 "values", 2, *box))

    def test_what_was_never_written_is_the_fill_value(self):
        self.create((40, 50), (16, 20), fillvalue=7.5)
        self.assertTrue((self.read((40, 50), "<f4") == 7.5).all())

    def test_chunks_that_skipped_the_filter(self):
        data = support.smooth_field((8, 10), ">f4")
        self.create(data.shape, data.shape, ">f4")
        with h5py.File(self.path("f.h5"), "r+") as file:
            file["u"].id.write_direct_chunk((0, 0), data.tobytes(), filter_mask=1)
        self.assertTrue(np.array_equal(self.read(data.shape, ">f4"), data))

    def test_other_filters_are_refused(self):
        self.create((40, 50), (16, 20), fletcher32=True)
        self.assertIn("one filter", self.fails(support.DIRECT_CHUNKS, "read", "f.h5", "u", "r", 2))

    def test_damage_names_the_chunk(self):
        data = support.smooth_field((40, 50))
        self.create(data.shape, (16, 20), data=data)
        with h5py.File(self.path("f.h5"), "r+") as file:
            mask, stream = file["u"].id.read_direct_chunk((16, 20))
            damaged = bytearray(stream)
            damaged[len(damaged) // 2] ^= 1
            file["u"].id.write_direct_chunk((16, 20), bytes(damaged), mask)
        message = self.fails(support.DIRECT_CHUNKS, "read", "f.h5", "u", "r", 2)
        self.assertIn("[16, 20]", message)
