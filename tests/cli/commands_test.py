"""Each command does its job, and says what it did."""

import array
import fcntl
import json
import os
import pty
import re
import subprocess
import time

import firn_runner as runner
from firn_runner import CliTest, read_array, smooth_field, take_region


class CompressAndDecompress(CliTest):

    def test_every_kind_of_bound_holds(self):
        name, values = self.write_field((7, 33, 31))
        span = max(values) - min(values)
        for options, bound in ((("--abs", "1e-3"), 1e-3), (("--rel", "1e-3"), 1e-3 * span),
                               (("--lossless",), 0)):
            with self.subTest(options=options):
                self.succeeds("compress", *options, "--force", name, "u.firn")
                self.succeeds("decompress", "--force", "u.firn", "back.f32")
                self.assert_within(read_array(self.path("back.f32")), values, bound)

    def test_psnr_is_met_or_exceeded(self):
        name, _ = self.write_field((7, 33, 31))
        self.succeeds("compress", "--psnr", "70", name, "u.firn")
        self.assertGreaterEqual(
            self.succeeds("verify", "--json", name, "u.firn").json["psnr_db"], 70)

    def test_doubles_and_every_rank(self):
        for dims in ((501,), (20, 31), (5, 6, 7), (3, 4, 5, 6)):
            for code in "fd":
                with self.subTest(dims=dims, code=code):
                    name, values = self.write_field(dims, code, name="field.raw")
                    self.succeeds("compress", "--abs", "1e-4", "--type", runner.TYPES[code],
                                  "--dims", "x".join(map(str, dims)), "--force", name, "u.firn")
                    self.succeeds("decompress", "--force", "u.firn", "back")
                    self.assert_within(read_array(self.path("back"), code), values, 1e-4)

    def test_a_preview_has_every_second_value_and_says_what_was_read(self):
        name, _ = self.write_field((7, 33, 31))
        for pipeline, whole in (("interp", 0), ("causal", 1)):
            with self.subTest(pipeline=pipeline):
                self.succeeds("compress", "--abs", "1e-3", "--pipeline", pipeline, "--force", name,
                              "u.firn")
                self.succeeds("decompress", "--force", "u.firn", "back")
                full = read_array(self.path("back"))
                report = self.succeeds("decompress", "--preview", "2", "--force", "--json",
                                       "u.firn", "small").json
                self.assertEqual(report["dims"], [4, 17, 16])
                self.assertEqual(report["chunks_decoded_whole"], whole)
                self.assertEqual(list(read_array(self.path("small"))),
                                 [full[(z * 33 + y) * 31 + x] for z in range(0, 7, 2)
                                  for y in range(0, 33, 2) for x in range(0, 31, 2)])
        text = self.succeeds("decompress", "--preview", "4", "--force", "u.firn", "small").stdout
        self.assertIn("decoded whole", text.decode())

    def test_options_stand_before_or_after_the_files(self):
        name, _ = self.write_field()
        self.succeeds("compress", "--abs", "1e-3", name, "a.firn")
        self.succeeds("compress", name, "b.firn", "--abs", "1e-3")
        self.succeeds("compress", name, "--abs=1e-3", "c.firn")
        self.assertEqual(self.read("a.firn"), self.read("b.firn"))
        self.assertEqual(self.read("a.firn"), self.read("c.firn"))

    def test_presets_pipelines_and_chunks_are_taken(self):
        name, values = self.write_field((20, 30, 40))
        for options in (("--preset", "fast"), ("--preset", "balanced"), ("--preset", "small"),
                        ("--pipeline", "lorenzo"), ("--pipeline", "raw"), ("--chunk", "10x10x10")):
            with self.subTest(options=options):
                self.succeeds("compress", "--abs", "1e-3", *options, "--force", name, "u.firn")
                self.succeeds("decompress", "--force", "u.firn", "back")
                self.assert_within(read_array(self.path("back")), values, 1e-3)
        info = self.succeeds("info", "--chunks", "--json", "u.firn").json
        self.assertEqual(info["chunk_dims"], [10, 10, 10])
        self.assertEqual(len(info["chunks"]), 24)

    def test_threads_do_not_change_the_bytes(self):
        name, _ = self.write_field((20, 30, 40))
        for threads in "1", "2", "3":
            self.succeeds("compress", "--rel", "1e-3", "--chunk", "8x8x8", "--threads", threads,
                          name, f"{threads}.firn")
        self.assertEqual(self.read("1.firn"), self.read("2.firn"))
        self.assertEqual(self.read("1.firn"), self.read("3.firn"))

    def test_fill_values_are_kept_and_do_not_widen_the_range(self):
        values = smooth_field((20, 30))
        span = max(values) - min(values)
        for index in range(0, 300):
            values[index] = 1e20
        self.write("t_20x30.f32", values.tobytes())
        report = self.succeeds("compress", "--rel", "1e-2", "--fill", "1e20", "--json",
                               "t_20x30.f32", "t.firn").json
        self.assertLess(report["bound_abs"], 1.01e-2 * span)
        self.succeeds("decompress", "t.firn", "back")
        back = read_array(self.path("back"))
        self.assertEqual(back[:300], values[:300])
        self.assert_within(back[300:], values[300:], 1e-2 * span)
        self.succeeds("verify", "t_20x30.f32", "t.firn")

    def test_a_fill_value_that_was_not_named_is_pointed_out(self):
        values = smooth_field((20, 30))
        self.write("u_20x30.f32", values.tobytes())
        for index in range(0, 300, 2):
            values[index] = -9999
        self.write("t_20x30.f32", values.tobytes())
        for options in ("--rel", "1e-3"), ("--ratio", "10"), ("--psnr", "60"):
            with self.subTest(options=options):
                said = self.firn("compress", "--force", *options, "t_20x30.f32", "t.firn").stderr
                self.assertIn("150 values are -9999", said)
                self.assertIn("say --fill -9999;", said)
                self.succeeds("compress", "--force", *options, "--fill", "-9999", "t_20x30.f32",
                              "t.firn")
                self.succeeds("compress", "--force", *options, "u_20x30.f32", "t.firn")
        self.succeeds("compress", "--force", "--abs", "1e-3", "t_20x30.f32", "t.firn")

    def test_also_by_append_and_estimate(self):
        values = runner.smooth_field((20, 30))
        self.write("u_20x30.f32", values.tobytes())
        self.succeeds("compress", "--rel", "1e-2", "u_20x30.f32", "u.firn")
        values[7] = values[300] = -9999
        self.write("t_20x30.f32", values.tobytes())
        for arguments in (("estimate", "--rel", "1e-2", "t_20x30.f32"),
                          ("append", "u.firn", "t_20x30.f32")):
            outcome = self.firn(*arguments)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertIn("say --fill -9999;", outcome.stderr)

    def test_also_through_a_pipe_of_steps(self):
        values = runner.smooth_field((20, 30))
        steps = "compress", "--type", "f32", "--dims", "Nx30", "--flush", "5", "--rel", "1e-2"
        self.succeeds(*steps, "-", "u.firn", stdin=values.tobytes())
        values[300] = values[595] = 1e20
        outcome = self.firn(*steps, "-", "t.firn", stdin=values.tobytes())
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("2 values are 1e+20", outcome.stderr)
        self.assertIn("say --fill 1e+20;", outcome.stderr)
        self.succeeds(*steps, "--fill", "1e20", "-", "v.firn", stdin=values.tobytes())

    def test_negative_fill_values_are_taken_as_numbers(self):
        name, _ = self.write_field()
        self.succeeds("compress", "--abs", "1e-3", "--fill", "-999", name, "u.firn")
        self.assertEqual(self.succeeds("info", "--json", "u.firn").json["fill"], -999)

    def test_pointwise_bounds_hold_for_each_value(self):
        values = smooth_field((20, 30))
        for index in range(600):
            values[index] = values[index] * 10.0**(index % 20 - 10)
        values[5], values[6] = 0.0, -0.0
        self.write("w_20x30.f32", values.tobytes())
        for pipeline in "auto", "blockpack", "fre", "fre-round":
            with self.subTest(pipeline=pipeline):
                report = self.succeeds("compress", "--force", "--pwrel", "0.01", "--pipeline",
                                       pipeline, "--json", "w_20x30.f32", "w.firn").json
                self.assertIsNone(report["bound_abs"])
                self.assertAlmostEqual(report["bound_pwrel"], 0.01, places=6)
                self.assertLessEqual(report["max_pwrel_error"], report["bound_pwrel"])
                self.succeeds("decompress", "--force", "w.firn", "back")
                for got, wanted in zip(read_array(self.path("back")), values):
                    self.assertLessEqual(abs(got - wanted), 0.01 * abs(wanted))
                text = self.succeeds("verify", "w_20x30.f32", "w.firn").stdout.decode()
                self.assertIn("(pwrel 0.01)", text)
        self.assertIn("pwrel 0.01", self.succeeds("info", "w.firn").stdout.decode())
        values[100] *= 1.1
        self.write("other_20x30.f32", values.tobytes())
        self.fails(runner.BOUND_EXCEEDED, "verify", "other_20x30.f32", "w.firn")

    def test_pipeline_fre_asks_for_a_pointwise_bound(self):
        name, _ = self.write_field()
        self.fails(runner.USAGE, "compress", "--abs", "1e-3", "--pipeline", "fre", name, "u.firn",
                   says="pwrel")

    def test_nan_and_infinities_return_bit_for_bit(self):
        values = smooth_field((20, 30))
        values[7], values[99], values[100] = float("inf"), float("-inf"), float("nan")
        data = bytearray(values.tobytes())
        data[4 * 200:4 * 201] = b"\x01\x02\xc0\x7f"  # a NaN with a payload
        self.write("u_20x30.f32", data)
        self.succeeds("compress", "--abs", "1e-3", "u_20x30.f32", "u.firn")
        self.succeeds("decompress", "u.firn", "back")
        back = self.read("back")
        for index in (7, 99, 100, 200):
            self.assertEqual(back[4 * index:4 * index + 4], data[4 * index:4 * index + 4])
        self.succeeds("verify", "u_20x30.f32", "u.firn")

    def test_empty_and_single_values(self):
        for dims, count in (("0", 0), ("5x0x3", 0), ("1", 1), ("1x1x1x1", 1)):
            with self.subTest(dims=dims):
                self.write("raw", array.array("f", [2.5] * count).tobytes())
                self.succeeds("compress", "--abs", "1e-3", "--type", "f32", "--dims", dims,
                              "--force", "raw", "u.firn")
                self.succeeds("verify", "raw", "u.firn")
                self.succeeds("decompress", "--force", "u.firn", "back")
                self.assertEqual(len(self.read("back")), 4 * count)

    def test_the_real_field(self):
        self.succeeds("compress", "--rel", "1e-3", runner.REAL_FIELD, "u.firn")
        self.assertLess(os.path.getsize(self.path("u.firn")), 2000000 / 20)
        self.succeeds("verify", runner.REAL_FIELD, "u.firn")

    def test_compress_says_what_it_did(self):
        name, _ = self.write_field()
        line = self.succeeds("compress", "--rel", "1e-3", name, "u.firn").stdout.decode()
        self.assertRegex(
            line, r"\Au_6x20x30\.f32: 14\.4 kB -> \S+ k?B, ratio [\d.]+, "
            r"bound \S+ \(rel 0\.001\), max error \S+, \d+ MB/s\n\Z")


class Regions(CliTest):

    def test_regions_are_slices(self):
        dims = (11, 23, 17)
        self.compressed("--abs", "1e-4", "--chunk", "4x8x8", dims=dims)
        self.succeeds("decompress", "u.firn", "whole")
        whole = read_array(self.path("whole"))
        for text, ranges in (("0:10,:,5:7", ((0, 10), (0, 23),
                                             (5, 7))), (":,:,:", ((0, 11), (0, 23), (0, 17))),
                             ("3:,:9,16", ((3, 11), (0, 9),
                                           (16, 17))), ("10,22,0:1", ((10, 11), (22, 23), (0, 1))),
                             ("4:4,:,:", ((4, 4), (0, 23), (0, 17)))):
            with self.subTest(region=text):
                self.succeeds("decompress", "--region", text, "--force", "u.firn", "part")
                self.assertEqual(read_array(self.path("part")), take_region(whole, dims, ranges))

    def test_regions_of_one_and_four_axes(self):
        for dims, text, ranges in (((1000,), "990:", ((990, 1000),)),
                                   ((5, 6, 7, 8), "1:3,2,:,5:", ((1, 3), (2, 3), (0, 7), (5, 8)))):
            with self.subTest(dims=dims):
                name, _ = self.write_field(dims, "d")
                self.succeeds("compress", "--abs", "1e-6", "--dims", "x".join(map(str, dims)),
                              "--force", name, "u.firn")
                self.succeeds("decompress", "--force", "u.firn", "whole")
                self.succeeds("decompress", "--force", "--region", text, "u.firn", "part.npy")
                header, data = runner.parse_npy(self.read("part.npy"))
                self.assertEqual(header["shape"], tuple(b - a for a, b in ranges))
                self.assertEqual(array.array("d", data),
                                 take_region(read_array(self.path("whole"), "d"), dims, ranges))

    def test_wrong_regions_are_explained(self):
        self.compressed(dims=(6, 20, 30))
        for text, says in (("0:7,:,:", "axis 0 of 6x20x30, which has 6 values"),
                           ("0:3,:", "2 ranges, but the field 6x20x30 has 3 axes"),
                           ("3:1,:,:", "3:1 is not within axis 0"), ("0:30,:,:6", "reverse order"),
                           ("a,b,c", "0:10,:,5:7"), ("0:1:2,:,:", "0:10,:,5:7"), ("-1,:,:",
                                                                                  "ranges")):
            with self.subTest(region=text):
                self.fails(runner.USAGE,
                           "decompress",
                           "--region=" + text,
                           "u.firn",
                           "out",
                           says=says)


class Info(CliTest):

    def test_info_says_what_a_stream_holds(self):
        self.compressed("--rel", "1e-3", "--chunk", "6x10x30", dims=(6, 20, 30))
        text = self.succeeds("info", "u.firn").stdout.decode()
        for part in ("format version 1", "f32", "6x20x30 (slowest first)", "2 of 6x10x30",
                     "rel 0.001", "14400 bytes", "simd"):
            self.assertIn(part, text)
        with_chunks = self.succeeds("info", "--chunks", "u.firn").stdout.decode()
        self.assertTrue(with_chunks.startswith(text))
        self.assertRegex(with_chunks, r"(?m)^1 +0,10,0 +6x10x30 ")

    def test_info_names_the_simd_target_in_use(self):
        self.compressed()
        targets = self.succeeds("info", "u.firn").stdout.decode()
        chosen = re.search(r"simd +(\S+) here", targets).group(1)
        self.assertEqual(self.succeeds("info", "--json", "u.firn").json["simd_target"], chosen)
        forced = self.succeeds("info",
                               "--json",
                               "u.firn",
                               env={
                                   **os.environ, "FIRN_SIMD": "reference"
                               })
        self.assertEqual(forced.json["simd_target"], "reference")

    def test_info_reads_from_a_pipe(self):
        self.compressed()
        outcome = self.succeeds("info", "--json", "-", stdin=self.read("u.firn"))
        self.assertEqual(outcome.json["dims"], [6, 20, 30])


class Verify(CliTest):

    def test_verify_accepts_the_original(self):
        name, _ = self.compressed()
        line = self.succeeds("verify", name, "u.firn").stdout.decode()
        self.assertIn("all 3600 values are within the bound 0.001", line)

    def test_verify_finds_a_value_out_of_bound(self):
        name, values = self.compressed()
        values[1 * 600 + 2 * 30 + 3] += 0.01
        self.write(name, values.tobytes())
        outcome = self.firn("verify", name, "u.firn")
        self.assertEqual(outcome.code, runner.BOUND_EXCEEDED)
        self.assertRegex(
            outcome.stderr, r"\Afirn: u\.firn: 1 of 3600 values are out of bound 0\.001 "
            r"\(first at \[1, 2, 3\] of u_6x20x30\.f32.*\n\Z")
        self.assertEqual(outcome.stdout, b"")
        report = self.firn("verify", "--json", name, "u.firn")
        self.assertEqual(report.code, runner.BOUND_EXCEEDED)
        self.assertEqual((report.json["within_bound"], report.json["violations"]), (False, 1))

    def test_verify_of_a_lossless_stream_is_bit_for_bit(self):
        name, values = self.compressed("--lossless")
        self.assertIn("bit for bit", self.succeeds("verify", name, "u.firn").stdout.decode())
        data = bytearray(values.tobytes())
        data[40] ^= 1
        self.write(name, data)
        self.assertEqual(self.firn("verify", name, "u.firn").code, runner.BOUND_EXCEEDED)

    def test_verify_needs_an_original_of_the_same_size(self):
        self.compressed()
        self.write("short.f32", bytes(400))
        self.fails(runner.SIZE_MISMATCH,
                   "verify",
                   "short.f32",
                   "u.firn",
                   says=("has 400 bytes", "6x20x30 of f32", "14400 bytes"))

    def test_verify_reads_either_side_from_a_pipe(self):
        name, values = self.compressed()
        self.succeeds("verify", "-", "u.firn", stdin=values.tobytes())
        self.succeeds("verify", name, "-", stdin=self.read("u.firn"))
        self.fails(runner.USAGE, "verify", "-", "-", says="only one of")


class Bench(CliTest):

    def test_bench_prints_a_row_for_each_input_and_a_mean(self):
        first, _ = self.write_field((6, 20, 30))
        second, _ = self.write_field((20, 40), "d")
        text = self.succeeds("bench", "--repeat", "1", first, second).stdout.decode()
        for part in ("ratio", "memcpy", "PSNR", first, second, "geometric mean", "1 thread"):
            self.assertIn(part, text)
        alone = self.succeeds("bench", "--repeat", "1", first).stdout.decode()
        self.assertNotIn("geometric mean", alone)

    def test_bench_json_has_the_mean_and_each_result(self):
        first, _ = self.write_field((6, 20, 30))
        second, _ = self.write_field((20, 40), "d")
        report = self.succeeds("bench", "--repeat", "1", "--abs", "1e-3", "--json", first,
                               second).json
        self.assertLessEqual(runner.JSON_KEYS, report.keys())
        self.assertEqual([r["name"] for r in report["results"]], [first, second])
        ratios = [r["ratio"] for r in report["results"]]
        self.assertAlmostEqual(report["ratio"], (ratios[0] * ratios[1])**0.5, places=6)
        for result in report["results"]:
            self.assertTrue(all(result[key] > 0 for key in runner.JSON_KEYS))
            self.assertLessEqual(result["max_abs_error"], 1e-3)

    def test_a_tiled_field_is_repeated_along_its_slowest_axis(self):
        name, _ = self.write_field((6, 20, 30))
        report = self.succeeds("bench", "--repeat", "1", "--tile", "0.1", "--json", name).json
        self.assertEqual(report["results"][0]["dims"], [42, 20, 30])
        self.assertEqual(report["original_bytes"], 42 * 20 * 30 * 4)

    def test_bench_defaults_to_a_relative_bound(self):
        name, values = self.write_field()
        report = self.succeeds("bench", "--repeat", "1", "--json", name).json
        self.assertEqual(report["bound"], {"kind": "rel", "value": 1e-3})
        self.assertAlmostEqual(report["bound_abs"], 1e-3 * (max(values) - min(values)), places=6)


class Json(CliTest):

    def test_every_command_has_the_same_keys(self):
        name, _ = self.write_field()
        for arguments in (("compress", "--abs", "1e-3", name,
                           "u.firn"), ("decompress", "u.firn", "back"), ("info", "u.firn"),
                          ("verify", name, "u.firn"), ("bench", "--repeat", "1", name)):
            with self.subTest(command=arguments[0]):
                report = self.succeeds(*arguments, "--json").json
                self.assertLessEqual(runner.JSON_KEYS, report.keys())
                self.assertEqual(report["original_bytes"], 14400)
                self.assertEqual(report["ratio"], 14400 / report["compressed_bytes"])
                self.assertLessEqual(report["max_abs_error"], report["bound_abs"])

    def test_reports_go_to_stderr_when_stdout_carries_data(self):
        name, values = self.write_field()
        packed = self.firn("compress", "--abs", "1e-3", "--json", name, "-")
        self.assertEqual(json.loads(packed.stderr)["compressed_bytes"], len(packed.stdout))
        unpacked = self.firn("decompress", "--json", "-", "-", stdin=packed.stdout)
        self.assertEqual(json.loads(unpacked.stderr)["dims"], [6, 20, 30])
        self.assert_within(array.array("f", unpacked.stdout), values, 1e-3)


class HelpAndMisuse(CliTest):

    def test_help_and_version(self):
        self.assertRegex(self.succeeds("--version").stdout.decode(), r"\Afirn \d+\.\d+\.\d+ .*\n\Z")
        overview = self.succeeds("help").stdout.decode()
        self.assertEqual(self.succeeds("--help").stdout.decode(), overview)
        for command in ("compress", "decompress", "info", "verify", "bench"):
            self.assertIn(command, overview)
            text = self.succeeds("help", command).stdout.decode()
            self.assertEqual(self.succeeds(command, "--help").stdout.decode(), text)
            self.assertIn(f"firn {command}", text)
        self.assertIn("slowest", overview.lower())
        self.assertIn("SLOWEST", self.succeeds("help", "compress").stdout.decode())

    def test_misuse_is_one_line(self):
        name, _ = self.write_field()
        for arguments, says in (
            ((), "a command is needed"),
            (("frobnicate",), "no command 'frobnicate'"),
            (("help", "frobnicate"), "no command 'frobnicate'"),
            (("compress",), "INPUT is required"),
            (("compress", "--abs", "1", name), "OUTPUT is required"),
            (("compress", "--abs", "1", name, "a", "b"), "b"),
            (("compress", "--frob", "--abs", "1", name, "a"), "--frob"),
            (("compress", name, "a"), "--abs E, --rel E"),
            (("compress", "--abs", "1", "--rel", "1", name, "a"), "only one of"),
            (("compress", "--abs", "nan", name, "a"), "--abs takes a positive number"),
            (("compress", "--abs", "inf", name, "a"), "--abs takes a positive number"),
            (("compress", "--abs", "-1e-3", name, "a"), "--abs takes a positive number"),
            (("compress", "--abs", "0", name, "a"), "--lossless"),
            (("compress", "--rel", "small", name, "a"), "'small'"),
            (("compress", "--rel", "1e-3x", name, "a"), "'1e-3x'"),
            (("compress", "--psnr", "nan", name, "a"), "--psnr takes a positive number"),
            (("compress", "--ratio", "1", name, "a"), "above 1"),
            (("compress", "--ratio", "1e30", name, "a"), "up to 1e9"),
            (("compress", "--ratio", "-1", name, "a"), "such as 10"),
            (("compress", "--ratio", "0", name, "a"), "above 1"),
            (("compress", "--ratio", "0.5", name, "a"), "above 1"),
            (("compress", "--ratio", "nan", name, "a"), "above 1"),
            (("compress", "--bits", "1e-9", name, "a"), "--bits takes a number from 1e-7"),
            (("compress", "--bits", "0", name, "a"), "--bits takes a number from 1e-7"),
            (("compress", "--bits", "inf", name, "a"), "--bits takes a number from 1e-7"),
            (("compress", "--bits", "32", name, "a"), "below what values have, 32 (f32)"),
            (("compress", "--psnr", "0", name, "a"), "such as 60"),
            (("compress", "--psnr", "2000", name, "a"), "--psnr: psnr 2000; it must be"),
            (("compress", "--pwrel", "1", name, "a"), "--pwrel: pwrel bound 1; it must be"),
            (("compress", "--ratio", "9", "--max-abs", "0", name, "a"), "--max-abs takes a positive"),
            (("compress", "--abs", "1", "--preset", "best", name, "a"), "fast, balanced, small"),
            (("compress", "--abs", "1", "--pipeline", "zip", name, "a"), "lorenzo"),
            (("compress", "--abs", "1", "--threads", "-1", name, "a"), "--threads"),
            (("compress", "--abs", "1", "--threads", "many", name, "a"), "--threads"),
            (("compress", "--abs", "1", "--fill", "land", name, "a"), "--fill"),
            (("compress", "--abs", "1", "--fill", "nan", name, "a"), "NaN needs none"),
            (("compress", "--abs", "1", "--fill", "1e39", name, "a"), "no value of f32"),
            (("metrics", "--fill", "nan", name, name), "NaN needs none"),
            (("compress", "--abs", "1", "--type", "f16", name, "a"), "f32 or f64"),
            (("compress", "--abs", "1", "--dims", "6x-20", name, "a"), "100x500x500"),
            (("compress", "--abs", "1", "--dims", "6x20x", name, "a"), "100x500x500"),
            (("compress", "--abs", "1", "--dims", "1x2x3x4x5", name, "a"), "1 to 4"),
            (("compress", "--abs", "1", "--dims", "6000000000x6000000000", name, "a"), "2^63"),
            (("compress", "--abs", "1", "--chunk", "8x8", name, "a"), "rank 2"),
            (("compress", "--abs", "1", "--chunk", "0x8x8", name, "a"), "must be 1 or more"),
            (("decompress", "--salvage", "--region", ":,:,:", name, "a"), "whole field"),
            (("decompress", "--preview", "2", "--region", ":,:,:", name, "a"), "whole field"),
            (("decompress", "--preview", "1", name, "a"), "--preview"),
            (("compress", "--abs", "1", "--tune", "speed", name, "a"), "there are size, psnr"),
            (("bench",), "INPUT is required"),
            (("bench", "--repeat", "0", name), "--repeat"),
            (("bench", "--tile", "nan", name), "--tile takes a positive number such as 64"),
            (("bench", "--tile", "1e10", name), "--tile takes at most 1e9"),
        ):
            with self.subTest(arguments=arguments):
                self.fails(runner.USAGE, *arguments, says=says)


class RatesAndSeries(CliTest):

    def test_ratio_and_bits_are_held(self):
        name, _ = self.write_field((64, 70, 80))
        for options, ratio in ((("--ratio", "20"), 20), (("--bits", "2"), 16)):
            with self.subTest(options=options):
                report = self.succeeds("compress", *options, "--json", "--force", name,
                                       "u.firn").json
                self.assertAlmostEqual(report["ratio"] / ratio, 1, delta=0.011)
                self.succeeds("verify", name, "u.firn")

    def test_ratios_of_a_real_field_are_held_by_every_preset(self):
        for preset in "fast", "balanced", "small":
            for ratio in 4.5, 10.5, 36:
                with self.subTest(preset=preset, ratio=ratio):
                    report = self.succeeds("compress", "--ratio", str(ratio), "--preset", preset,
                                           "--json", "--force", runner.REAL_FIELD, "u.firn").json
                    self.assertAlmostEqual(report["ratio"] / ratio, 1, delta=0.01)
                    self.succeeds("verify", runner.REAL_FIELD, "u.firn")

    def test_a_ratio_that_max_abs_forbids_is_said(self):
        name, _ = self.write_field((64, 70, 80))
        run = self.firn("compress", "--ratio", "1000", "--max-abs", "1e-6", name, "u.firn")
        self.assertEqual(run.code, 0)
        self.assertIn("the ratio 1000 (0.032 bits a value) was not met within --max-abs", run.stderr)
        self.assertLessEqual(self.succeeds("info", "--json", "u.firn").json["bound_abs"], 1e-6)
        self.fails(runner.USAGE, "compress", "--abs", "1", "--max-abs", "1", name, "v.firn",
                   says="--ratio or --bits")
        self.fails(runner.USAGE, "compress", "--bits", "33", name, "v.firn", says="32 (f32)")

    def test_bits_are_of_the_values_type(self):
        name, _ = self.write_field((64, 70, 80), code="d")
        report = self.succeeds("compress", "--bits", "40", "--json", name, "u.firn").json
        self.assertGreaterEqual(report["ratio"], 1.58)
        self.fails(runner.USAGE, "compress", "--bits", "64", name, "v.firn", says="64 (f64)")
        report = self.succeeds("bench", "--bits", "4", "--repeat", "1", "--json", name).json
        self.assertAlmostEqual(report["ratio"] / 16, 1, delta=0.011)
        self.assertEqual(report["bound"], {"kind": "ratio", "value": 16})

    def test_info_says_the_bound_of_each_part(self):
        name, _ = self.write_field((6, 20, 30), name="u_6x20x30.f32")
        self.succeeds("compress", "--lossless", name, "u.firn")
        self.succeeds("append", "--abs", "0.25", "u.firn", name)
        info = self.succeeds("info", "--chunks", "--json", "u.firn").json
        self.assertEqual(info["part_count"], 2)
        self.assertEqual(info["bound"], {"kind": "abs", "value": 0.25})
        self.assertEqual([chunk["bound_abs"] for chunk in info["chunks"]], [0, 0.25])
        self.assertIn("2 parts", self.succeeds("info", "--chunks", "u.firn").stdout.decode())
        self.fails(runner.USAGE, "append", "--pwrel", "0.1", "u.firn", name, says="pwrel")

    def test_estimate_prints_a_ladder_or_one_bound(self):
        name, _ = self.write_field((64, 70, 80))
        self.assertIn("rel 0.001 ", self.succeeds("estimate", name).stdout.decode())
        estimates = self.succeeds("estimate", "--abs", "1e-4", "--json", name).json["estimates"]
        self.assertEqual(len(estimates), 1)
        self.assertGreater(estimates[0]["ratio"], 1)
        for bound, kind, value in (("--ratio", "ratio", "20"), ("--bits", "ratio", "1.6"),
                                   ("--psnr", "psnr", "70"), ("--pwrel", "pwrel", "0.01")):
            options = ("estimate", bound, value, name)
            self.assertIn(f"{kind} {'20' if bound == '--bits' else value} ",
                          self.succeeds(*options).stdout.decode())
            found = self.succeeds(*options, "--json").json["estimates"][0]
            self.assertEqual(found["bound"]["kind"], kind)
            if kind == "ratio":
                self.assertAlmostEqual(found["ratio"], 20, delta=1)
        self.assertRegex(self.succeeds("estimate", "--lossless", name).stdout.decode(),
                         r"lossless +- +\d")

    def test_append_makes_one_array_of_both(self):
        name, values = self.write_field((6, 20, 30), name="u_6x20x30.f32")
        self.succeeds("compress", "--abs", "1e-3", name, "u.firn")
        self.succeeds("append", "u.firn", name)
        self.succeeds("append", "--abs", "1e-4", "u.firn", name)
        self.assertEqual(self.succeeds("info", "--json", "u.firn").json["dims"], [18, 20, 30])
        self.succeeds("decompress", "u.firn", "back")
        self.assert_within(read_array(self.path("back")), list(values) * 3, 1e-3)
        self.succeeds("decompress", "--region", "5:7,:,3", "u.firn", "part.npy")

    def test_append_refuses_while_another_process_adds(self):
        name, _ = self.compressed()
        before = self.read("u.firn")
        with open(self.path("u.firn"), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.fails(runner.CANNOT_WRITE, "append", "u.firn", name, says="another process")
        self.assertEqual(self.read("u.firn"), before)
        self.succeeds("append", "u.firn", name)

    def test_empty_values_are_mistakes(self):
        name, _ = self.compressed()
        for arguments, says in (
            (("compress", "--ratio", "9", "--max-abs", "", name, "a"), "--max-abs is empty"),
            (("compress", "--rel", "1e-3", "--fill=", name, "a"), "--fill is empty"),
            (("decompress", "--region", "", "u.firn", "a"), "--region is empty"),
            (("compress", "--rel", "1e-3", name, ""), "empty"),
        ):
            self.fails(runner.USAGE, *arguments, says=says)

    def test_append_knows_type_and_dims_from_the_stream(self):
        name, values = self.write_field((6, 20, 30), code="d", name="u_6x20x30.d64")
        self.succeeds("compress", "--abs", "1e-3", name, "u.firn")
        self.write("raw", values.tobytes())
        self.succeeds("append", "u.firn", "raw")
        self.succeeds("append", "u.firn", "-", stdin=values[:2 * 20 * 30].tobytes())
        self.succeeds("append", "u.firn", "-", stdin=runner.npy_bytes(values, (6, 20, 30)))
        self.assertEqual(self.succeeds("info", "--json", "u.firn").json["dims"], [20, 20, 30])
        before = self.read("u.firn")
        self.fails(runner.USAGE, "append", "--dims", "Nx20x30", "u.firn", "-",
                   stdin=runner.npy_bytes(values, (6, 20, 30)), says="leave out --type and --dims")
        self.fails(runner.UNSUPPORTED, "append", "u.firn", "-",
                   stdin=runner.npy_bytes(values, (6, 5, 4, 6, 5)), says="5 dimensions")
        self.fails(runner.SIZE_MISMATCH, "append", "u.firn", "-", stdin=bytes(4801),
                   says=("4801 bytes", "1x20x30 values of f64 takes 4800"))
        self.fails(runner.SIZE_MISMATCH, "append", "u.firn", "-", says="has no values")
        self.fails(runner.SIZE_MISMATCH, "append", "u.firn", "-",
                   stdin=runner.npy_bytes(values, (6, 30, 20)), says="the stream has Nx20x30")
        self.assertEqual(self.read("u.firn"), before)

    def test_append_says_when_the_ratio_is_missed(self):
        name, _ = self.write_field((6, 20, 30), name="u_6x20x30.f32")
        self.succeeds("compress", "--ratio", "4", name, "u.firn")
        run = self.firn("append", "--max-abs", "1e-7", "u.firn", name)
        self.assertEqual(run.code, 0)
        self.assertIn("was not met within --max-abs", run.stderr)

    def test_append_of_what_does_not_fit_changes_nothing(self):
        name, _ = self.write_field((6, 20, 30), name="u_6x20x30.f32")
        self.succeeds("compress", "--abs", "1e-3", name, "u.firn")
        before = self.read("u.firn")
        self.fails(runner.USAGE, "append", "--dims", "6x30x20", "u.firn", name, says="20x30")
        self.assertEqual(self.read("u.firn"), before)


class Progress(CliTest):

    def run_on_a_terminal(self, seconds):
        """Compresses a pipe that stalls for some seconds; what the terminal on stderr saw."""
        _, values = self.write_field()
        outer, inner = pty.openpty()
        process = subprocess.Popen([
            runner.PROGRAM, "compress", "--abs", "1e-3", "--type", "f32", "--dims", "6x20x30", "-",
            "u.firn"
        ],
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE,
                                   stderr=inner,
                                   cwd=self.folder)
        os.close(inner)
        time.sleep(seconds)
        process.communicate(values.tobytes(), timeout=60)
        self.assertEqual(process.returncode, 0)
        seen = b""
        try:
            while True:
                seen += os.read(outer, 4096)
        except OSError:  # the other end is closed
            os.close(outer)
        return seen.decode()

    def test_a_bar_shows_on_a_terminal_after_a_second_and_goes_away(self):
        seen = self.run_on_a_terminal(1.2)
        self.assertRegex(seen, r"compressing \[[#.]{30}\] +\d+ %")
        self.assertTrue(seen.endswith("\r\x1b[K"))

    def test_quick_work_shows_no_bar(self):
        self.assertEqual(self.run_on_a_terminal(0), "")
