"""Outputs appear under their name only when complete, and never replace anything unasked."""

import os
import resource
import signal
import stat
import subprocess
import time

import firn_runner as runner
from firn_runner import CliTest

BIG = 256 << 20  # bytes of a field that takes a moment to write


class Existing(CliTest):

    def test_nothing_is_replaced_without_force(self):
        name, _ = self.compressed()
        self.write("kept", b"precious")
        self.fails(runner.OUTPUT_EXISTS, "compress", "--abs", "1", name, "kept", says="--force")
        self.fails(runner.OUTPUT_EXISTS, "decompress", "u.firn", "kept", says="kept exists")
        self.assertEqual(self.read("kept"), b"precious")
        self.succeeds("decompress", "--force", "u.firn", "kept")
        self.assertEqual(len(self.read("kept")), 14400)

    def test_a_failed_replacement_leaves_the_old_file(self):
        self.compressed()
        self.write("cut.firn", self.read("u.firn")[:-60])
        self.write("kept", b"precious")
        self.fails(runner.TRUNCATED, "decompress", "--force", "cut.firn", "kept")
        self.assertEqual(self.read("kept"), b"precious")

    def test_a_name_that_says_another_type_is_pointed_out(self):
        _, values = self.compressed("--lossless")
        stream = self.read("u.firn")
        for arguments in (("u.firn", "a.f64"), ("--region", "0:6,:,:", "u.firn", "b.d64"),
                          ("-", "c.f64")):
            outcome = self.firn("decompress", *arguments, stdin=stream)
            self.assertEqual(outcome.code, 0)
            self.assertEqual(outcome.stderr, f"firn: {arguments[-1]} holds f32 values, as the stream "
                             "does, not f64 as its name says\n")
            self.assertEqual(self.read(arguments[-1]), values.tobytes())
        self.succeeds("decompress", "u.firn", "a.f32")
        self.compressed("--lossless", "--force", code="d")
        self.assertIn("holds f64 values", self.firn("decompress", "u.firn", "d.f32").stderr)

    def test_the_input_may_be_replaced_by_the_output(self):
        name, values = self.compressed("--lossless")
        self.succeeds("compress", "--lossless", "--force", name, name)
        self.assertEqual(self.read(name), self.read("u.firn"))
        self.succeeds("decompress", "--force", name, name)
        self.assertEqual(self.read(name), values.tobytes())

    def test_modes_follow_the_umask_or_the_replaced_file(self):
        self.compressed()
        self.succeeds("decompress", "u.firn", "new", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("new")).st_mode), 0o640)
        os.chmod(self.path("new"), 0o604)
        self.succeeds("decompress", "--force", "u.firn", "new")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("new")).st_mode), 0o604)

    def test_a_symbolic_link_stays_one(self):
        self.compressed()
        self.write("target", b"old")
        os.symlink("target", self.path("link"))
        self.succeeds("decompress", "--force", "u.firn", "link")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(len(self.read("target")), 14400)

    def test_devices_and_pipes_are_written_to_and_not_replaced(self):
        self.compressed()
        self.succeeds("decompress", "u.firn", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE) as reader:
            self.succeeds("decompress", "u.firn", "pipe")
            self.assertEqual(len(reader.stdout.read()), 14400)


class Failures(CliTest):

    def test_places_that_cannot_be_written(self):
        name, _ = self.compressed()
        os.mkdir(self.path("folder"))
        for output, says in (("nowhere/a", "No such file or directory"),
                             ("folder", "Is a directory"), (name + "/a", "Not a directory")):
            self.fails(runner.CANNOT_WRITE, "compress", "--abs", "1", name, output, says=says)
            self.fails(runner.CANNOT_WRITE, "decompress", "u.firn", output, says=says)

    def test_binary_output_is_not_thrown_at_a_terminal(self):
        self.compressed()
        outer, inner = os.openpty()
        result = subprocess.run([runner.PROGRAM, "decompress", "u.firn", "-"],
                                stdout=inner,
                                stderr=subprocess.PIPE,
                                cwd=self.folder,
                                check=False)
        os.close(inner)
        os.close(outer)
        self.assertEqual(result.returncode, runner.USAGE)
        self.assertIn(b"terminal", result.stderr)

    def test_a_file_size_limit(self):
        name, _ = self.compressed("--lossless")

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.fails(runner.CANNOT_WRITE,
                   "decompress",
                   "u.firn",
                   "a",
                   says="cannot write a",
                   preexec_fn=limited)
        self.fails(runner.CANNOT_WRITE,
                   "compress",
                   "--lossless",
                   name,
                   "a",
                   says="cannot write a",
                   preexec_fn=limited)

    def test_a_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
                                 stderr=subprocess.DEVNULL,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("needs root to mount a small file system")
        try:
            name = self.write("noise_100x100x10.f32", os.urandom(400000))
            self.succeeds("compress", "--lossless", name, "u.firn")
            self.fails(runner.CANNOT_WRITE, "decompress", "u.firn", "disk/a", says="No space left")
            self.fails(runner.CANNOT_WRITE,
                       "compress",
                       "--lossless",
                       name,
                       "disk/a",
                       says="No space left")
            self.assertEqual(os.listdir(disk), [])
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_reports_and_data_that_do_not_reach_standard_output(self):
        self.compressed()
        with open("/dev/full", "wb") as full:
            for arguments in (("info", "u.firn"), ("decompress", "u.firn", "-")):
                result = subprocess.run([runner.PROGRAM, *arguments],
                                        stdout=full,
                                        stderr=subprocess.PIPE,
                                        cwd=self.folder,
                                        check=False)
                self.assertEqual(result.returncode, runner.CANNOT_WRITE)
                self.assertRegex(result.stderr.decode(),
                                 r"\Afirn: cannot write standard output: .*\n\Z")


class Interruptions(CliTest):
    """Signals in the middle of writing."""

    def setUp(self):
        super().setUp()
        with open(self.path("zeros.f32"), "wb") as file:
            file.truncate(BIG)

    def interrupt(self, number, *arguments):
        """Sends a signal once the temporary file is there; returns what is left beside it."""
        before = set(os.listdir(self.folder))
        process = subprocess.Popen([runner.PROGRAM, *arguments],
                                   cwd=self.folder,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   preexec_fn=runner.default_signals)
        deadline = time.monotonic() + 60
        while set(os.listdir(self.folder)) == before and process.poll() is None:
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(number)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, -number)
        return set(os.listdir(self.folder)) - before

    def test_decompress_leaves_nothing_when_interrupted(self):
        self.succeeds("compress", "--abs", "1", "--dims", str(BIG // 4), "zeros.f32", "u.firn")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.assertEqual(self.interrupt(number, "decompress", "u.firn", "out"), set())

    def test_compress_leaves_nothing_when_interrupted(self):
        with open(self.path("noise.f32"), "wb") as file:
            file.write(os.urandom(1 << 20) * (BIG >> 22))
        count = str(BIG >> 4)
        self.assertEqual(
            self.interrupt(signal.SIGTERM, "compress", "--lossless", "--pipeline", "raw", "--dims",
                           count, "noise.f32", "out"), set())

    def test_a_kill_leaves_no_file_under_the_final_name(self):
        self.succeeds("compress", "--abs", "1", "--dims", str(BIG // 4), "zeros.f32", "u.firn")
        left = self.interrupt(signal.SIGKILL, "decompress", "u.firn", "out")
        self.assertNotIn("out", left)
        self.assertTrue(all(name.startswith(".out.") and name.endswith(".part") for name in left))

    def test_an_input_that_shrinks_is_an_error(self):
        _, values = self.compressed("--lossless")
        process = subprocess.Popen([runner.PROGRAM, "verify", "-", "u.firn"],
                                   cwd=self.folder,
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        # The stream is mapped before the original is read from the pipe.
        deadline = time.monotonic() + 60
        while "u.firn" not in self.mappings_of(process.pid):
            self.assertLess(time.monotonic(), deadline)
        os.truncate(self.path("u.firn"), 0)
        stdout, stderr = process.communicate(values.tobytes(), timeout=60)
        self.assertEqual((process.returncode, stdout), (runner.CANNOT_READ, b""))
        self.assertRegex(stderr.decode(), r"\Afirn: the input cannot be read: [^\n]+\n\Z")

    @staticmethod
    def mappings_of(process_id):
        with open(f"/proc/{process_id}/maps", encoding="utf-8") as file:
            return file.read()
