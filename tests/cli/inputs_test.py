"""Inputs: names that carry dims, .npy files, pipes, and what is said when they do not fit."""

import array
import os

import firn_runner as runner
from firn_runner import CliTest, npy_bytes, parse_npy, read_array, smooth_field


class Names(CliTest):

    def dims_of(self, name, *options, count=6 * 20 * 30, width=4):
        self.write(name, bytes(count * width))
        self.succeeds("compress", "--abs", "1e-3", "--force", *options, name, "u.firn")
        info = self.succeeds("info", "--json", "u.firn").json
        return info["type"], info["dims"]

    def test_names_carry_dims_and_type(self):
        self.assertEqual(self.dims_of("u_6x20x30.f32"), ("f32", [6, 20, 30]))
        self.assertEqual(self.dims_of("6x20x30-u.d64", width=8), ("f64", [6, 20, 30]))
        self.assertEqual(self.dims_of("u.120x30.t5.f64", width=8), ("f64", [120, 30]))
        self.assertEqual(self.dims_of("run2x1_u_6x20x30_t7.f32"), ("f32", [6, 20, 30]))

    def test_the_last_dims_in_a_name_count(self):
        self.assertEqual(self.dims_of("grid_2x2_u_6x20x30.f32"), ("f32", [6, 20, 30]))

    def test_only_the_file_name_counts(self):
        os.mkdir(self.path("run_2x2.f64"))
        name = os.path.join("run_2x2.f64", "u_6x20x30.f32")
        self.assertEqual(self.dims_of(name), ("f32", [6, 20, 30]))

    def test_options_win_over_the_name(self):
        self.assertEqual(self.dims_of("u_2x2.f32", "--dims", "3600"), ("f32", [3600]))
        self.assertEqual(self.dims_of("u_6x20x30.f32", "--type", "f64", width=8),
                         ("f64", [6, 20, 30]))

    def test_reversed_dims_are_noticed(self):
        self.write("u_6x20x30.f32", bytes(14400))
        outcome = self.firn("compress", "--abs", "1e-3", "--dims", "30x20x6", "u_6x20x30.f32",
                            "u.firn")
        self.assertEqual(outcome.code, 0)
        self.assertRegex(outcome.stderr,
                         r"\Afirn: note: --dims 30x20x6 is the reverse .*slowest first.*\n\Z")


class Containers(CliTest):

    def test_are_not_taken_for_values(self):
        self.compressed()
        self.write("in.h5", b"\x89HDF\r\n\x1a\n" + bytes(392))
        for options in ((), ("--type", "f32", "--dims", "100")):
            self.fails(runner.USAGE, "compress", "--abs", "1", *options, "in.h5", "a",
                       says="firn h5 compress")
        size = len(self.read("u.firn"))
        self.write("v.firn", self.read("u.firn") + bytes(-size % 4))
        self.fails(runner.USAGE, "compress", "--abs", "1", "--type", "f32", "--dims",
                   str((size + 3) // 4), "v.firn", "a", says="Firn stream already")


class Mismatches(CliTest):

    def test_a_size_that_does_not_fit_says_what_would(self):
        name, _ = self.write_field((6, 20, 30), name="u.f32")
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--dims",
                   "6x20x3",
                   name,
                   "a",
                   says=("has 14400 bytes", "6x20x3 values of f32 take 1440", "--dims 6x20x30",
                         "--dims 60x20x3", "slowest first", "zfp and SZ"))
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--dims",
                   "6x20x15",
                   name,
                   "a",
                   says="--type f64")
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--dims",
                   "7x11x13",
                   name,
                   "a",
                   says="3600 values")

    def test_the_dims_of_the_name_are_proposed(self):
        name, _ = self.write_field((6, 20, 30))
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--dims",
                   "6x20",
                   name,
                   "a",
                   says="--dims 6x20x30 as its name says")

    def test_a_name_that_lies_is_found_out(self):
        self.write("u_6x20x30.f32", bytes(14399))
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "u_6x20x30.f32",
                   "a",
                   says=("14399", "no whole number"))

    def test_an_unknown_type_or_shape_is_asked_for(self):
        self.write("u_6x20x30.bin", bytes(14400))
        self.fails(runner.USAGE,
                   "compress",
                   "--abs",
                   "1",
                   "u_6x20x30.bin",
                   "a",
                   says=("--type f32", "6x20x30 of f32 would fit its 14400 bytes"))
        self.write("u.f32", bytes(14400))
        self.fails(runner.USAGE,
                   "compress",
                   "--abs",
                   "1",
                   "u.f32",
                   "a",
                   says=("3600 values of f32", "--dims 3600", "slowest first"))

    def test_files_that_cannot_be_read(self):
        self.fails(runner.CANNOT_READ,
                   "compress",
                   "--abs",
                   "1",
                   "none_2x2.f32",
                   "a",
                   says=("none_2x2.f32", "No such file"))
        os.mkdir(self.path("folder_2x2.f32"))
        self.fails(runner.CANNOT_READ,
                   "compress",
                   "--abs",
                   "1",
                   "folder_2x2.f32",
                   "a",
                   says="directory")
        for command in (("decompress", "none", "a"), ("info", "none"), ("verify", "none", "none"),
                        ("bench", "none_2x2.f32")):
            self.fails(runner.CANNOT_READ, *command, says="No such file")
        if os.getuid() != 0:
            self.write("secret_2x2.f32", bytes(16))
            os.chmod(self.path("secret_2x2.f32"), 0)
            self.fails(runner.CANNOT_READ,
                       "compress",
                       "--abs",
                       "1",
                       "secret_2x2.f32",
                       "a",
                       says="Permission denied")

    def test_bench_of_nothing(self):
        self.write("u_0x5.f32", b"")
        self.fails(runner.USAGE, "bench", "u_0x5.f32", says="nothing to measure")


class Pipes(CliTest):

    def test_both_ways_through_pipes(self):
        values = smooth_field((6, 20, 30))
        packed = self.succeeds("compress",
                               "--abs",
                               "1e-3",
                               "--type",
                               "f32",
                               "--dims",
                               "6x20x30",
                               "-",
                               "-",
                               stdin=values.tobytes()).stdout
        self.write("u_6x20x30.f32", values.tobytes())
        self.succeeds("compress", "--abs", "1e-3", "u_6x20x30.f32", "u.firn")
        self.assertEqual(packed, self.read("u.firn"))
        back = self.succeeds("decompress", "-", "-", stdin=packed).stdout
        self.assert_within(array.array("f", back), values, 1e-3)

    def test_a_pipe_that_is_too_short_or_too_long(self):
        options = ("compress", "--abs", "1", "--type", "f32", "--dims", "6x20x30", "-", "a")
        self.fails(runner.SIZE_MISMATCH,
                   *options,
                   stdin=bytes(14396),
                   says=("standard input has 14396 bytes", "take 14400"))
        self.fails(runner.SIZE_MISMATCH, *options, stdin=bytes(99999), says="more than 14400 bytes")

    def test_a_pipe_without_a_description(self):
        self.fails(runner.USAGE, "compress", "--abs", "1", "-", "a", stdin=bytes(64), says="--type")
        self.fails(runner.USAGE,
                   "compress",
                   "--abs",
                   "1",
                   "--type",
                   "f64",
                   "-",
                   "a",
                   stdin=bytes(64),
                   says="8 values of f64")

    def test_named_pipes_are_inputs_too(self):
        values = smooth_field((50, 60))
        self.write("source", values.tobytes())
        os.mkfifo(self.path("pipe_50x60.f32"))
        feeder = os.fork()
        if feeder == 0:
            with open(self.path("pipe_50x60.f32"), "wb") as pipe:
                pipe.write(values.tobytes())
            os._exit(0)
        self.succeeds("compress", "--abs", "1e-3", "pipe_50x60.f32", "u.firn")
        os.waitpid(feeder, 0)
        self.succeeds("verify", "source", "u.firn")


class Npy(CliTest):

    def test_npy_files_describe_themselves(self):
        for code, kind in (("f", "f32"), ("d", "f64")):
            for version in (1, 2, 3):
                with self.subTest(code=code, version=version):
                    values = smooth_field((6, 20, 30), code)
                    self.write("u.npy", npy_bytes(values, (6, 20, 30), version=version))
                    self.succeeds("compress", "--abs", "1e-3", "--force", "u.npy", "u.firn")
                    info = self.succeeds("info", "--json", "u.firn").json
                    self.assertEqual((info["type"], info["dims"]), (kind, [6, 20, 30]))
                    self.succeeds("verify", "u.npy", "u.firn")

    def test_npy_is_written_by_name(self):
        _, values = self.compressed("--lossless", dims=(6, 20, 30))
        self.succeeds("decompress", "u.firn", "back.npy")
        data = self.read("back.npy")
        header, body = parse_npy(data)
        self.assertEqual(header, {"descr": "<f4", "fortran_order": False, "shape": (6, 20, 30)})
        self.assertEqual((len(data) - len(body)) % 64, 0)
        self.assertEqual(body, values.tobytes())

    def test_one_dimension_is_a_tuple(self):
        self.compressed("--lossless", dims=(77,), code="d")
        self.succeeds("decompress", "u.firn", "back.npy")
        self.assertEqual(parse_npy(self.read("back.npy"))[0]["shape"], (77,))

    def test_fortran_order_is_put_right(self):
        dims = (4, 5, 6)
        values = smooth_field(dims)
        swapped = array.array(
            "f",
            [values[(z * 5 + y) * 6 + x] for x in range(6) for y in range(5) for z in range(4)])
        self.write("u.npy", npy_bytes(swapped, dims, fortran=True))
        self.succeeds("compress", "--lossless", "u.npy", "u.firn")
        self.succeeds("decompress", "u.firn", "back")
        self.assertEqual(read_array(self.path("back")), values)
        self.succeeds("verify", "u.npy", "u.firn")
        self.succeeds("bench", "--repeat", "1", "u.npy")

    def test_values_need_not_be_aligned(self):
        values = smooth_field((6, 20), "d")
        data = npy_bytes(values, (6, 20), padding=0)
        self.assertNotEqual((len(data) - 960) % 8, 0)
        self.write("u.npy", data)
        self.succeeds("compress", "--lossless", "u.npy", "u.firn")
        self.succeeds("decompress", "u.firn", "back")
        self.assertEqual(self.read("back"), values.tobytes())

    def test_npy_through_a_pipe(self):
        values = smooth_field((6, 20))
        self.succeeds("compress", "--lossless", "-", "u.firn", stdin=npy_bytes(values, (6, 20)))
        self.succeeds("decompress", "u.firn", "back")
        self.assertEqual(self.read("back"), values.tobytes())

    def test_a_single_value_and_many_axes(self):
        self.write("one.npy", npy_bytes(array.array("d", [1.5]), ()))
        self.succeeds("compress", "--lossless", "one.npy", "one.firn")
        self.assertEqual(self.succeeds("info", "--json", "one.firn").json["dims"], [1])
        self.write("five.npy", npy_bytes(smooth_field((120,)), (1, 2, 3, 4, 5)))
        self.fails(runner.UNSUPPORTED,
                   "compress",
                   "--lossless",
                   "five.npy",
                   "a",
                   says=("5 dim", "--dims"))
        self.succeeds("compress", "--lossless", "--dims", "6x4x5", "five.npy", "five.firn")

    def test_headers_that_contradict_the_options(self):
        self.write("u.npy", npy_bytes(smooth_field((6, 20, 30)), (6, 20, 30)))
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--dims",
                   "30x20x6",
                   "u.npy",
                   "a",
                   says=("6x20x30", "the reverse", "slowest first"))
        self.fails(runner.SIZE_MISMATCH,
                   "compress",
                   "--abs",
                   "1",
                   "--type",
                   "f64",
                   "u.npy",
                   "a",
                   says=("f32", "f64"))
        self.compressed(dims=(30, 20, 6))
        self.fails(runner.SIZE_MISMATCH, "verify", "u.npy", "u.firn", says="the reverse")

    def test_bad_npy_files(self):
        values = smooth_field((4, 5))
        good = npy_bytes(values, (4, 5))
        for name, data, code, says in (
            ("short", good[:-4], runner.SIZE_MISMATCH, "76 bytes of values"),
            ("long", good + b"1234", runner.SIZE_MISMATCH, "84 bytes of values"),
            ("cut", good[:40], runner.TRUNCATED, "header"),
            ("stub", good[:7], runner.TRUNCATED, "header"),
            ("other", b"GIF89a" + good[6:], runner.DAMAGED, "no .npy file"),
            ("version", good[:6] + b"\x09" + good[7:], runner.UNSUPPORTED, "version 9"),
            ("garbled", good.replace(b"'shape'", b"'shade'"), runner.DAMAGED, "header"),
            ("negative", good.replace(b"(4, 5)", b"(-4,5)"), runner.DAMAGED, "header"),
            ("open", good.replace(b"}", b" "), runner.DAMAGED, "header"),
            ("big", npy_bytes(values, (4, 5), descr=">f4"), runner.UNSUPPORTED, "big-endian"),
            ("int", npy_bytes(values, (4, 5), descr="<i4"), runner.UNSUPPORTED, "'<i4'"),
            ("huge", npy_bytes(values, (2**40, 2**40)), runner.USAGE, "2^63"),
        ):
            with self.subTest(name=name):
                self.write(name + ".npy", data)
                self.fails(code, "compress", "--abs", "1", name + ".npy", "a", says=says)
