"""Streams that are not streams, too new, cut off or damaged; and what can be salvaged of them."""

import array
import math
import os

import firn_runner as runner
from firn_runner import CliTest, read_array

DIMS = (24, 20, 30)
CHUNK = (8, 20, 30)
PER_CHUNK = math.prod(CHUNK)


class Damage(CliTest):

    def setUp(self):
        super().setUp()
        self.name, self.values = self.compressed("--abs", "1e-4", "--chunk", "8x20x30", dims=DIMS)
        self.stream = self.read("u.firn")
        self.chunks = self.succeeds("info", "--chunks", "--json", "u.firn").json["chunks"]
        self.assertEqual(len(self.chunks), 3)

    def damage_chunk(self, number):
        """Changes a byte in the middle of a chunk's record."""
        data = bytearray(self.stream)
        chunk = self.chunks[number]
        data[chunk["offset"] + chunk["bytes"] // 2] ^= 0x10
        return self.write("bad.firn", data)

    def every_reader_fails(self, code, stream, says):
        for command in (("decompress", stream, "a"), ("verify", self.name, stream)):
            self.fails(code, *command, says=says)

    def test_not_a_stream(self):
        self.write("empty", b"")
        for stream in (self.name, "empty"):
            self.every_reader_fails(runner.NOT_FIRN, stream, "not a Firn stream")
            self.fails(runner.NOT_FIRN, "info", stream, says=stream)

    def test_a_newer_version(self):
        self.write("new.firn", self.stream[:4] + bytes([self.stream[4] + 1]) + self.stream[5:])
        self.every_reader_fails(runner.NEWER_VERSION, "new.firn", "newer Firn")
        self.fails(runner.NEWER_VERSION, "info", "new.firn")

    def test_a_damaged_header(self):
        data = bytearray(self.stream)
        data[7] ^= 0x01  # the first extent
        self.write("bad.firn", data)
        self.every_reader_fails(runner.DAMAGED, "bad.firn", "header")
        self.fails(runner.DAMAGED, "decompress", "--salvage", "bad.firn", "a")

    def test_a_damaged_chunk_is_named(self):
        self.damage_chunk(1)
        self.every_reader_fails(runner.DAMAGED, "bad.firn", "chunk 1 of 3")

    def test_a_truncated_stream_names_the_chunk(self):
        end = self.chunks[1]["offset"] + 5
        self.write("cut.firn", self.stream[:end])
        self.every_reader_fails(runner.TRUNCATED, "cut.firn", "chunk 1 of 3")
        self.write("stub.firn", self.stream[:6])
        self.every_reader_fails(runner.TRUNCATED, "stub.firn", "header")

    def test_info_says_that_a_stream_is_cut_off(self):
        self.write("cut.firn", self.stream[:self.chunks[1]["offset"] + 5])
        outcome = self.firn("info", "cut.firn")
        self.assertEqual(outcome.code, runner.TRUNCATED)
        self.assertIn("24x20x30", outcome.stdout.decode())
        self.assertRegex(outcome.stderr, r"\Afirn: cut\.firn: only 1 of 3 chunks .*\n\Z")
        self.assertFalse(self.firn("info", "--json", "cut.firn").json["complete"])

    def test_no_truncation_gives_wrong_values(self):
        self.succeeds("decompress", "u.firn", "whole")
        whole = self.read("whole")
        for size in range(0, len(self.stream), max(1, len(self.stream) // 60)):
            self.write("cut.firn", self.stream[:size])
            outcome = self.firn("decompress", "--force", "cut.firn", "a")
            if outcome.code == 0:  # only what comes after the last chunk was lost
                self.assertEqual(self.read("a"), whole)
            else:
                self.assertIn(outcome.code, (runner.NOT_FIRN, runner.TRUNCATED, runner.DAMAGED))
                self.assertRegex(outcome.stderr, r"\Afirn: [^\n]+\n\Z")

    def salvage(self, stream, missing):
        """Salvages with exactly these chunks missing; checks the values and the report."""
        outcome = self.firn("decompress", "--salvage", "--force", "--json", stream, "back")
        self.assertEqual(outcome.code, runner.INCOMPLETE if missing else 0, outcome.stderr)
        self.assertEqual([m["chunk"] for m in outcome.json["missing"]], missing)
        back = read_array(self.path("back"))
        self.assertEqual(len(back), len(self.values))
        for number in range(3):
            part = slice(number * PER_CHUNK, (number + 1) * PER_CHUNK)
            if number in missing:
                self.assertTrue(all(math.isnan(value) for value in back[part]))
            else:
                self.assert_within(back[part], self.values[part], 1e-4)
        return outcome

    def test_salvage_of_a_damaged_chunk(self):
        self.damage_chunk(1)
        outcome = self.salvage("bad.firn", [1])
        lines = outcome.stderr.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("missing: values 8:16,0:20,0:30", lines[0])
        self.assertIn("1 of 3 chunks (4800 of 14400 values) are missing", lines[1])

    def test_salvage_of_a_truncated_stream(self):
        self.write("cut.firn", self.stream[:self.chunks[2]["offset"] + 5])
        self.salvage("cut.firn", [2])
        self.write("cut.firn", self.stream[:self.chunks[0]["offset"] + 5])
        self.salvage("cut.firn", [0, 1, 2])

    def test_salvage_through_a_pipe(self):
        self.damage_chunk(0)
        outcome = self.firn("decompress", "--salvage", "-", "-", stdin=self.read("bad.firn"))
        self.assertEqual(outcome.code, runner.INCOMPLETE)
        back = array.array("f", outcome.stdout)
        self.assert_within(back[PER_CHUNK:], self.values[PER_CHUNK:], 1e-4)

    def test_salvage_of_a_good_stream(self):
        outcome = self.salvage("u.firn", [])
        self.assertEqual(outcome.stderr, "")

    def test_a_region_beside_the_damage_still_decodes(self):
        self.damage_chunk(1)
        self.succeeds("decompress", "--region", "0:8,:,:", "bad.firn", "first")
        self.assert_within(read_array(self.path("first")), self.values[:PER_CHUNK], 1e-4)
        self.fails(runner.DAMAGED,
                   "decompress",
                   "--region",
                   "7:9,:,:",
                   "bad.firn",
                   "a",
                   says="chunk 1 of 3")

    def test_salvage_lists_at_most_some_chunks_on_stderr(self):
        self.succeeds("compress", "--abs", "1e-4", "--chunk", "4x4x6", "--force", self.name,
                      "u.firn")
        self.write("cut.firn", self.read("u.firn")[:100])
        outcome = self.firn("decompress", "--salvage", "cut.firn", "back")
        self.assertEqual(outcome.code, runner.INCOMPLETE)
        self.assertEqual(len(outcome.stderr.splitlines()), 22)
        self.assertIn("more chunks", outcome.stderr)
        self.assertTrue(os.path.exists(self.path("back")))
