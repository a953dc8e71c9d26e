"""Steps that come through a pipe, as many as there are: --dims Nx20x30."""

import array
import contextlib
import fcntl
import os
import random
import resource
import signal
import subprocess
import sys
import termios
import threading
import time

import firn_runner as runner
from firn_runner import CliTest, default_signals, npy_bytes, smooth_field

STEP = 20 * 30  # values
ENDLESS = ("compress", "--type", "f32", "--dims", "Nx20x30", "--abs", "1e-3")


class Steps(CliTest):

    @contextlib.contextmanager
    def start(self, *arguments, stdin=subprocess.PIPE):
        """Runs the program beside the test, and not longer."""
        with subprocess.Popen([runner.PROGRAM, *arguments],
                              stdin=stdin,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              cwd=self.folder,
                              preexec_fn=default_signals) as process:
            watch = threading.Timer(100, process.kill)
            watch.start()
            try:
                yield process
            except BaseException:
                process.kill()
                raise
            finally:
                watch.cancel()

    def dims(self, name):
        return self.succeeds("info", "--json", name).json["dims"]

    def test_a_file_has_as_many_as_it_has(self):
        name, values = self.write_field((6, 20, 30), name="u.f32")
        for dims, found in (("Nx20x30", [6, 20, 30]), ("Nx30", [120, 30]), ("N", [3600])):
            self.succeeds("compress", "--abs", "1e-3", "--dims", dims, "--force", name, "u.firn")
            self.assertEqual(self.dims("u.firn"), found)
        self.write("u.npy", npy_bytes(values, (6, 20, 30)))
        self.succeeds("compress", "--abs", "1e-3", "--dims", "Nx20x30", "--force", "u.npy",
                      "u.firn")
        self.assertEqual(self.dims("u.firn"), [6, 20, 30])
        self.fails(runner.SIZE_MISMATCH, "compress", "--abs", "1", "--dims", "Nx30x30", "u.npy",
                   "a", says=("dims are 6x20x30", "the options say Nx30x30"))

    def test_a_file_that_ends_within_a_step(self):
        self.write("u.f32", bytes(14400))
        self.fails(runner.SIZE_MISMATCH, "compress", "--abs", "1", "--dims", "Nx7x30", "u.f32", "a",
                   says=("14400 bytes", "no whole number of steps", "1x7x30", "takes 840"))
        self.fails(runner.SIZE_MISMATCH, "compress", "--abs", "1", "--dims", "Nx0", "u.f32", "a",
                   says="a step of 1x0 has no values")

    def test_mistakes_in_dims(self):
        for dims in "N20", "NxN", "20xN", "n", "Nx", "Nx2x3x4x5":
            self.fails(runner.USAGE, "compress", "--abs", "1", "--type", "f32", "--dims", dims, "-",
                       "a", says=("Nx500x500", dims))
        self.fails(runner.USAGE, "compress", "--abs", "1", "--dims", "Nx5", "-", "a", says="--type")
        self.fails(runner.USAGE, "compress", "--abs", "1", "--type", "f32", "--dims", "Nx0", "-",
                   "a", says="no values")
        self.write("u_2x5.f32", bytes(40))
        self.fails(runner.USAGE, "compress", "--abs", "1", "--flush", "2", "u_2x5.f32", "a",
                   says=("--flush", "Nx500x400"))

    def test_both_ways(self):
        values = smooth_field((50, 20, 30))
        self.write("u_50x20x30.f32", values.tobytes())
        for options in (), ("--flush", "7"), ("--preset", "fast"), ("--threads", "1"):
            with self.subTest(options=options):
                outcome = self.succeeds(*ENDLESS, *options, "--json", "--force", "-", "u.firn",
                                        stdin=values.tobytes())
                info = self.succeeds("info", "--json", "u.firn").json
                for key in ("original_bytes", "compressed_bytes", "bound_abs", "max_abs_error",
                            "dims"):
                    self.assertEqual(outcome.json[key], info[key], key)
                self.assertEqual(info["dims"], [50, 20, 30])
                self.assertEqual(info["part_count"], 8 if options[:1] == ("--flush",) else 1)
                self.succeeds("verify", "u_50x20x30.f32", "u.firn")
                back = self.succeeds("decompress", "-", "-", stdin=self.read("u.firn")).stdout
                self.assert_within(array.array("f", back), values, 1e-3)
                line = self.succeeds("decompress", "-", "--force", "u.f32",
                                     stdin=self.read("u.firn")).stdout
                self.assertIn(b"standard input: 50x20x30 of f32 -> u.f32", line)
                self.assertEqual(self.read("u.f32"), back)

    def test_single_values_are_steps_too(self):
        values = smooth_field((1000,), "d")
        packed = self.succeeds("compress", "--type", "f64", "--dims", "N", "--abs", "1e-3", "-",
                               "-", stdin=values.tobytes()).stdout
        back = self.succeeds("decompress", "-", "-", stdin=packed).stdout
        self.assert_within(array.array("d", back), values, 1e-3)

    def test_a_ratio_is_held_on_the_way(self):
        values = smooth_field((60, 64, 64))
        self.write("u_60x64x64.f32", values.tobytes())
        outcome = self.succeeds("compress", "--type", "f32", "--dims", "Nx64x64", "--ratio", "12",
                                "--preset", "fast", "--flush", "6", "--json", "-", "u.firn",
                                stdin=values.tobytes())
        self.assertAlmostEqual(outcome.json["ratio"], 12, delta=0.6)
        self.succeeds("verify", "u_60x64x64.f32", "u.firn")

    def test_steps_come_out_before_the_last_has_gone_in(self):
        values = smooth_field((9, 20, 30))
        with self.start(*ENDLESS, "--flush", "2", "-", "-") as packer:
            with self.start("decompress", "-", "-", stdin=packer.stdout) as unpacker:
                for first in 0, 2, 4:
                    packer.stdin.write(values[first * STEP:(first + 2) * STEP].tobytes())
                    packer.stdin.flush()
                    back = array.array("f", unpacker.stdout.read(2 * STEP * 4))
                    self.assert_within(back, values[first * STEP:(first + 2) * STEP], 1e-3)
                packer.stdin.write(values[6 * STEP:].tobytes())
                packer.stdin.close()
                self.assertEqual(len(unpacker.stdout.read()), 3 * STEP * 4)
                self.assertEqual(packer.stderr.read(), b"")
        self.assertEqual((packer.returncode, unpacker.returncode), (0, 0))

    def test_an_input_that_ends_within_a_step(self):
        values = smooth_field((4, 20, 30))
        outcome = self.firn(*ENDLESS, "-", "u.firn", stdin=values.tobytes()[:-5])
        self.assertEqual(outcome.code, runner.INCOMPLETE)
        self.assertIn("ended within a step, of which 2395 of 2400 bytes came; the 3 whole steps "
                      "before are in u.firn", outcome.stderr)
        self.assertEqual(self.dims("u.firn"), [3, 20, 30])
        self.fails(runner.SIZE_MISMATCH, *ENDLESS, "-", "a", stdin=bytes(5),
                   says=("5 bytes", "no whole number of steps"))
        self.fails(runner.SIZE_MISMATCH, *ENDLESS, "-", "a", says="has no values")
        self.write("empty.f32", b"")
        self.fails(runner.SIZE_MISMATCH, *ENDLESS, "empty.f32", "a", says="has no values")

    def wait_for_parts(self, packer):
        """Until something of the output has been written."""
        deadline = time.monotonic() + 60
        while not any(name.endswith(".part") and os.path.getsize(self.path(name)) > 0
                      for name in os.listdir(self.folder)):
            self.assertIsNone(packer.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_signals_end_the_input_and_keep_what_came(self):
        values = smooth_field((4, 20, 30))
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.start(*ENDLESS, "--flush", "1", "--force", "-", "u.firn") as packer:
                packer.stdin.write(values.tobytes()[:-5])
                packer.stdin.flush()
                self.wait_for_parts(packer)
                packer.send_signal(number)
                self.assertEqual(packer.wait(60), runner.INCOMPLETE)
                said = packer.stderr.read()
            self.assertIn(b"was interrupted", said)
            steps = self.dims("u.firn")[0]
            self.assertIn(steps, (1, 2, 3))
            self.assertIn(f"the {steps} whole steps before are in u.firn".encode(), said)

    def test_signals_end_an_input_that_never_ends(self):
        with open("/dev/zero", "rb") as zeros, self.start(*ENDLESS, "--flush", "1", "-", "u.firn",
                                                          stdin=zeros) as packer:
            self.wait_for_parts(packer)
            packer.send_signal(signal.SIGINT)
            self.assertEqual(packer.wait(60), runner.INCOMPLETE)
        self.assertGreater(self.dims("u.firn")[0], 0)

    def test_signals_before_the_first_step(self):
        os.mkfifo(self.path("pipe"))  # that nobody writes to
        for source in "-", "pipe":
            with self.start(*ENDLESS, source, "u.firn") as packer:
                self.wait_until_deferring(packer)
                packer.send_signal(signal.SIGTERM)
                self.assertEqual(packer.wait(60), runner.INCOMPLETE)
                self.assertIn(b"interrupted before a whole step", packer.stderr.read())
            self.assertEqual(os.listdir(self.folder), ["pipe"])

    def test_a_second_signal_ends_what_the_first_does_not(self):
        # Its output is not read, so that it cannot go on.
        with self.start("compress", "--type", "f32", "--dims", "Nx20x30", "--lossless", "--flush",
                        "1", "-", "-") as packer:
            os.set_blocking(packer.stdin.fileno(), False)
            chance = random.Random(3).randbytes(STEP * 4)
            deadline = time.monotonic() + 60
            waiting = same = 0
            while waiting == 0 or same < 50:
                self.assertLess(time.monotonic(), deadline)
                try:
                    os.write(packer.stdin.fileno(), chance)
                except BlockingIOError:
                    time.sleep(0.01)
                size = fcntl.ioctl(packer.stdout, termios.FIONREAD, bytes(4))
                before, waiting = waiting, int.from_bytes(size, sys.byteorder)
                same = same + 1 if waiting == before else 0
            packer.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            packer.send_signal(signal.SIGTERM)
            self.assertEqual(packer.wait(60), -signal.SIGTERM)

    def wait_until_deferring(self, process):
        """Until it has the pipe of its own that signals are told through."""

        def pipes():
            folder = f"/proc/{process.pid}/fd"
            try:
                links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)
                         if int(name) > 2]
            except OSError:  # one was closed meanwhile
                return 0
            return sum(link.startswith("pipe:") for link in links)

        deadline = time.monotonic() + 60
        while pipes() < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.5)

    def test_an_output_that_comes_into_being_meanwhile(self):
        values = smooth_field((4, 20, 30))
        with self.start(*ENDLESS, "--flush", "1", "-", "u.firn") as packer:
            packer.stdin.write(values.tobytes())
            packer.stdin.flush()
            self.wait_for_parts(packer)
            self.write("u.firn", b"mine")
            packer.stdin.close()
            self.assertEqual(packer.wait(60), runner.OUTPUT_EXISTS)
            self.assertIn(b"the 4 steps before are in ", packer.stderr.read())
        self.assertEqual(self.read("u.firn"), b"mine")
        self.assertEqual(self.dims("u.firn.1"), [4, 20, 30])

    def test_many_quiet_parts_and_an_empty_one_come_through(self):
        zeros = bytes(STEP * 4 * 300)
        many = self.succeeds(*ENDLESS, "--flush", "1", "-", "-", stdin=zeros).stdout
        self.assertEqual(self.succeeds("decompress", "-", "-", stdin=many).stdout, zeros)
        empty = self.succeeds("compress", "--type", "f32", "--dims", "0x20x30", "--abs", "1e-3",
                              "-", "-").stdout
        self.assertEqual(self.succeeds("decompress", "-", "-", stdin=empty).stdout, b"")
        # One read may see no more than the empty part.
        with self.start("decompress", "-", "-") as unpacker:
            unpacker.stdin.write(empty)
            unpacker.stdin.flush()
            time.sleep(0.3)
            unpacker.stdin.write(many)
            unpacker.stdin.close()
            self.assertEqual(unpacker.stdout.read(), zeros)
            self.assertEqual(unpacker.wait(60), 0)

    def test_without_standard_input(self):
        outcome = subprocess.run(f"'{runner.PROGRAM}' {' '.join(ENDLESS)} - u.firn <&-",
                                 shell=True, cwd=self.folder, capture_output=True, timeout=60,
                                 check=False)
        self.assertEqual(outcome.returncode, runner.CANNOT_READ)

    def test_npy_files_describe_themselves(self):
        values = smooth_field((6, 20, 30))
        file = npy_bytes(values, (6, 20, 30))
        self.fails(runner.USAGE, *ENDLESS, "-", "a", stdin=file, says="leave out --type and --dims")
        self.succeeds("compress", "--abs", "1e-3", "-", "u.firn", stdin=file)
        self.assertEqual(self.dims("u.firn"), [6, 20, 30])

    def test_a_full_disk_keeps_what_was_written(self):
        chance = random.Random(5)
        noise = array.array("f", [chance.random() for _ in range(40 * STEP)])

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))

        outcome = self.firn("compress", "--type", "f32", "--dims", "Nx20x30", "--abs", "1e-4",
                            "--flush", "5", "-", "u.firn", stdin=noise.tobytes(), preexec_fn=limit)
        self.assertEqual(outcome.code, runner.CANNOT_WRITE)
        steps = self.dims("u.firn")[0]
        self.assertIn(f"the {steps} steps before are in u.firn", outcome.stderr)
        self.assertIn(steps, range(5, 40, 5))
        self.write("u.f32", noise[:steps * STEP].tobytes())
        self.succeeds("verify", "u.f32", "u.firn")

    def test_a_stream_that_ends_too_early(self):
        self.compressed("--abs", "1e-3", "--chunk", "2x20x30")
        whole = self.read("u.firn")
        for size in 0, 1, 20, len(whole) // 2:
            self.write("cut.firn", whole[:size])
            code = self.firn("decompress", "cut.firn", "a").code
            self.assertIn(code, (runner.TRUNCATED, runner.NOT_FIRN) if size < 20 else
                          (runner.TRUNCATED,))
            self.fails(code, "decompress", "-", "a", stdin=whole[:size], says="standard input")
        self.fails(runner.NOT_FIRN, "decompress", "-", "a", stdin=bytes(1000))
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 1
        self.fails(runner.DAMAGED, "decompress", "-", "a", stdin=bytes(broken))

    def test_a_stream_that_lacks_its_end_is_decoded_as_a_file_is(self):
        self.compressed("--abs", "1e-3", "--chunk", "2x20x30")
        whole = self.read("u.firn")
        end = max(each["offset"] + each["bytes"] for each in
                  self.succeeds("info", "--chunks", "--json", "u.firn").json["chunks"])
        self.succeeds("decompress", "u.firn", "whole")
        for size in range(end, len(whole)):
            self.succeeds("decompress", "--force", "-", "u.f32", stdin=whole[:size])
            self.assertEqual(self.read("u.f32"), self.read("whole"))
        self.assertEqual(self.succeeds("decompress", "-", "-", stdin=whole[:-1]).stdout,
                         self.read("whole"))
        self.fails(runner.TRUNCATED, "decompress", "-", "a", stdin=whole[:end - 1],
                   says="chunk 2 of 3")

    def test_streams_of_other_dims_cannot_be_joined(self):
        for name, dims, ending in (("u", (6, 20, 30), "f"), ("v", (6, 30, 20), "f"),
                                   ("w", (6, 20, 30), "d")):
            file, _ = self.write_field(dims, ending)
            self.succeeds("compress", "--abs", "1e-3", file, name)
        for other in "vw":
            joined = self.read("u") + self.read(other)
            self.write("joined", joined)
            for arguments in ("joined", "a"), ("-", "a"):
                self.fails(runner.DAMAGED, "decompress", *arguments, stdin=joined,
                           says="may differ in the slowest extent only")

    def test_salvage_of_a_series_that_is_cut(self):
        values = smooth_field((9, 20, 30))
        whole = self.succeeds(*ENDLESS, "--flush", "3", "-", "-", stdin=values.tobytes()).stdout
        self.write("cut.firn", whole[:len(whole) // 2])
        self.fails(runner.TRUNCATED, "decompress", "cut.firn", "a", says="cut off behind its first 3 ")
        outcome = self.firn("decompress", "--salvage", "cut.firn", "u.f32")
        self.assertEqual(outcome.code, runner.INCOMPLETE)
        self.assertIn("1 of 2 chunks (1800 of 3600 values) are missing", outcome.stderr)
        decoded = runner.read_array(self.path("u.f32"))
        self.assert_within(decoded[:3 * STEP], values[:3 * STEP], 1e-3)
        self.assertTrue(all(value != value for value in decoded[3 * STEP:]))
        info = self.firn("info", "cut.firn")
        self.assertEqual(info.code, runner.TRUNCATED)
        self.assertIn("cut off or damaged", info.stderr)
        self.write("more.firn", whole + bytes(100))
        outcome = self.firn("decompress", "--salvage", "--force", "more.firn", "u.f32")
        self.assertEqual(outcome.code, runner.INCOMPLETE)
        self.assertIn("all 5400 values that are there are good and in u.f32", outcome.stderr)
        self.fails(runner.TRUNCATED, "decompress", "more.firn", "a", says="something else follows")
        self.fails(runner.TRUNCATED, "decompress", "-", "a", stdin=whole + bytes(100),
                   says="something else follows")
        self.fails(runner.TRUNCATED, "decompress", "--preview", "2", "cut.firn", "a")
