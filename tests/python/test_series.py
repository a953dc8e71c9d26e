"""Arrays written and read step by step."""

import io
import os
import socket
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import firn
from conftest import smooth_field


@pytest.mark.parametrize("shape", [(50, 20, 30), (40, 5, 6, 7), (300, 11), (5000,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_come_back_within_the_bound(in_tmp, shape, dtype):
    field = smooth_field(shape, dtype)
    with firn.StreamWriter("u.firn", abs=1e-3) as writer:
        writer.append(field[0])
        writer.extend(field[1:10])
        for step in field[10:20]:
            writer.append(step)
        writer.extend(field[20:])
    with firn.StreamReader("u.firn") as reader:
        assert reader.dtype == dtype and reader.step_shape == shape[1:]
        first, rest = reader.read(3), reader.read()
        assert len(reader.read(5)) == 0
    decoded = np.concatenate([first, rest])
    assert decoded.shape == shape and np.abs(decoded - field).max() <= 1e-3
    assert np.array_equal(firn.load("u.firn"), decoded)
    assert np.array_equal(firn.open("u.firn")[7:9], decoded[7:9])


def test_several_parts_are_one_array(in_tmp):
    field = smooth_field((24, 300, 400))  # more than two million values make several parts
    with firn.StreamWriter("u.firn", abs=1e-3, preset="fast") as writer:
        for step in field:
            writer.append(step[::-1])
    with firn.open("u.firn") as file:
        assert file.info.part_count > 1 and file.shape == field.shape
        assert np.abs(file[:, 3, ::-7] - field[:, -4, ::-7]).max() <= 1e-3
    assert firn.verify(field[:, ::-1], open("u.firn", "rb").read()).violations == 0
    with firn.StreamReader("u.firn") as reader:
        for step, original in zip(reader, field):
            assert np.abs(step[::-1] - original).max() <= 1e-3


def test_what_was_flushed_can_be_read_meanwhile(in_tmp):
    field = smooth_field((6, 40, 50))
    writer = firn.StreamWriter("u.firn", abs=1e-3)
    writer.extend(field[:4])
    writer.flush()
    assert firn.open("u.firn").shape == (4, 40, 50)
    writer.extend(field[4:])
    writer.close()
    writer.close()
    assert np.abs(firn.load("u.firn") - field).max() <= 1e-3
    with pytest.raises(ValueError, match="closed"):
        writer.append(field[0])


def test_files_are_continued(in_tmp):
    field = smooth_field((9, 40, 50))
    for first in (0, 3, 6):  # the first time, there is no file
        with firn.StreamWriter("u.firn", mode="a", abs=1e-3) as writer:
            writer.extend(field[first : first + 3])
    assert firn.load("u.firn").shape == field.shape
    assert np.abs(firn.load("u.firn") - field).max() <= 1e-3
    firn.save("v.firn", field, abs=1e-3)
    with firn.StreamWriter("v.firn", mode="a", abs=1e-3) as writer:
        writer.append(field[0])
    assert firn.open("v.firn").shape == (10, 40, 50)
    with pytest.raises(firn.InvalidArgument, match="step|shape"):
        with firn.StreamWriter("v.firn", mode="a", abs=1e-3) as writer:
            writer.append(field[0, :10])
    assert firn.open("v.firn").shape == (10, 40, 50)
    with pytest.raises(FileExistsError):
        firn.StreamWriter("v.firn", mode="x", abs=1e-3)
    with pytest.raises(firn.InvalidArgument, match="mode"):
        firn.StreamWriter("v.firn", mode="r", abs=1e-3)


def test_a_continued_file_is_read_before_it_is_closed(in_tmp):
    """Also when the new part is shorter than the directory in whose place it stands."""
    field = smooth_field((5, 10, 12))
    with firn.StreamWriter("u.firn", abs=1e-3) as writer:
        for i in range(200):
            writer.append(field[i % 5])
            writer.flush()
    writer = firn.StreamWriter("u.firn", mode="a", abs=1e-3)
    assert firn.load("u.firn").shape == (200, 10, 12)
    writer.append(0 * field[0])
    writer.flush()
    assert firn.load("u.firn").shape == (201, 10, 12)
    writer.close()
    assert firn.load("u.firn").shape == (201, 10, 12)


def append_integers(writer):
    writer.append(np.zeros((3, 3), int))


def append_five_axes(writer):
    writer.append(np.zeros((1, 1, 1, 1, 1), np.float32))


def append_no_array(writer):
    writer.append([[1.0], [1.0, 2.0]])


def append_nothing(writer):
    raise RuntimeError("before the first step")


@pytest.mark.parametrize("mode", ["w", "a"])
@pytest.mark.parametrize(
    "fail", [append_integers, append_five_axes, append_no_array, append_nothing]
)
def test_a_file_is_kept_when_no_step_is_accepted(in_tmp, mode, fail):
    firn.save("u.firn", smooth_field((4, 10, 12)), abs=1e-3)
    before = open("u.firn", "rb").read()
    with pytest.raises(Exception):
        with firn.StreamWriter("u.firn", mode=mode, abs=1e-3) as writer:
            fail(writer)
    assert open("u.firn", "rb").read() == before
    writer = firn.StreamWriter("u.firn", mode=mode, abs=1e-3)
    with pytest.raises(Exception):
        fail(writer)
    if fail is not append_nothing:  # which a writer without `with` does not learn of
        writer.close()
    assert open("u.firn", "rb").read() == before


@pytest.mark.parametrize(
    "options", [{}, {"abs": -1}, {"abs": 1, "rel": 1}, {"abs": 1, "chunk": (9, 9, 9, 9, 9)}]
)
def test_a_file_is_kept_when_options_are_wrong(in_tmp, options):
    firn.save("u.firn", smooth_field((4, 10, 12)), abs=1e-3)
    before = open("u.firn", "rb").read()
    with pytest.raises(firn.InvalidArgument):
        with firn.StreamWriter("u.firn", **options) as writer:
            writer.append(np.zeros((10, 12), np.float32))
    assert open("u.firn", "rb").read() == before


def test_a_longer_file_is_replaced(in_tmp):
    field = smooth_field((30, 10, 12))
    firn.save("u.firn", field, lossless=True)
    with firn.StreamWriter("u.firn", abs=1e-3) as writer:
        with pytest.raises(TypeError):
            append_integers(writer)
        writer.append(field[0])
    assert firn.load("u.firn").shape == (1, 10, 12)
    with firn.StreamWriter("u.firn", abs=1e-3):
        pass
    assert os.path.getsize("u.firn") == 0


@pytest.mark.parametrize("mode", ["w", "x", "a"])
def test_no_file_is_left_when_no_step_is_accepted(in_tmp, mode):
    with pytest.raises(TypeError):
        with firn.StreamWriter("u.firn", mode=mode, abs=1e-3) as writer:
            append_integers(writer)
    assert os.listdir() == []
    with pytest.raises(FileNotFoundError):
        firn.StreamWriter("missing/u.firn", mode=mode, abs=1e-3)


def test_a_path_may_be_a_pipe(in_tmp):
    os.mkfifo("pipe")
    arrived = []
    thread = threading.Thread(target=lambda: arrived.extend(firn.StreamReader("pipe")))
    thread.start()
    with firn.StreamWriter("pipe", abs=1e-3) as writer:
        writer.extend(smooth_field((5, 10, 12)))
    thread.join()
    assert len(arrived) == 5


def test_a_negative_count_is_refused(in_tmp):
    firn.save("u.firn", smooth_field((4, 10, 12)), abs=1e-3)
    with firn.StreamReader("u.firn") as reader:
        with pytest.raises(firn.InvalidArgument, match=r"-1 steps.*read\(\) gives all"):
            reader.read(-1)
        assert len(reader.read(0)) == 0 and len(reader.read()) == 4


def test_the_last_step_before_an_error_is_kept(in_tmp):
    field = smooth_field((5, 40, 50))
    with pytest.raises(RuntimeError, match="unstable"):
        with firn.StreamWriter("u.firn", abs=1e-3) as writer:
            writer.extend(field)
            raise RuntimeError("unstable")
    assert firn.open("u.firn").shape == field.shape


def test_a_socket_carries_steps_as_they_are_made():
    field = smooth_field((10, 30, 40))
    here, there = socket.socketpair()
    arrived = []

    def receive():
        with there, there.makefile("rb") as file:
            arrived.extend(firn.StreamReader(file))

    thread = threading.Thread(target=receive)
    thread.start()
    with here, here.makefile("wb") as file, firn.StreamWriter(file, abs=1e-3) as writer:
        writer.extend(field[:5])
        writer.flush()
        for _ in range(1000):
            if len(arrived) == 5:
                break
            threading.Event().wait(0.01)
        assert len(arrived) == 5  # before anything else was sent
        writer.extend(field[5:])
    thread.join()
    assert np.abs(np.array(arrived) - field).max() <= 1e-3


def test_a_pipe_from_the_command_line(in_tmp):
    field = smooth_field((10, 30, 40))
    firn.save("u.firn", field, abs=1e-3)
    program = "import sys, firn; print(sum(1 for _ in firn.StreamReader(sys.stdin.buffer)))"
    result = subprocess.run(
        [sys.executable, "-c", program], stdin=open("u.firn", "rb"), capture_output=True, check=True
    )
    assert result.stdout == b"10\n"


def test_damage_is_told_from_a_cut():
    buffer = io.BytesIO()
    with firn.StreamWriter(buffer, abs=1e-3) as writer:
        for step in smooth_field((9, 30, 40)):
            writer.append(step)
            writer.flush()
    stream = bytearray(buffer.getvalue())
    fourth = firn.info(stream, chunks=True).chunks[3]
    stream[fourth.offset + fourth.size_bytes // 2] ^= 1
    reader = firn.StreamReader(io.BytesIO(stream))
    assert reader.read(3).shape == (3, 30, 40)
    with pytest.raises(firn.Corrupt):
        reader.read(3)
    with pytest.raises(firn.Corrupt):
        firn.StreamReader(io.BytesIO(stream)).read()


def test_cut_and_foreign_streams_raise():
    buffer = io.BytesIO()
    with firn.StreamWriter(buffer, abs=1e-3) as writer:
        writer.extend(smooth_field((10, 30, 40)))
    stream = buffer.getvalue()
    with pytest.raises(firn.Truncated):
        firn.StreamReader(io.BytesIO(stream[: len(stream) // 2])).read()
    with pytest.raises(firn.Truncated):
        firn.StreamReader(io.BytesIO(stream[:5]))
    with pytest.raises(firn.Error):
        firn.StreamReader(io.BytesIO(b""))
    with pytest.raises(firn.NotFirn):
        firn.StreamReader(io.BytesIO(b"certainly no stream of ours, but long enough to be one" * 9))
    with pytest.raises(FileNotFoundError):
        firn.StreamReader("missing.firn")


def test_wrong_steps_are_refused(in_tmp):
    with firn.StreamWriter("u.firn", abs=1e-3) as writer:
        writer.append(np.zeros((3, 4), np.float32))
        for wrong in (np.zeros((4, 3), np.float32), np.zeros((3, 4)), np.zeros(3, np.float32)):
            with pytest.raises(firn.InvalidArgument):
                writer.append(wrong)
        with pytest.raises(TypeError, match="float32 and float64"):
            writer.append(np.zeros((3, 4), int))
        writer.append(np.ones((3, 4), np.float32))
    assert firn.load("u.firn").shape == (2, 3, 4)
    with pytest.raises(firn.InvalidArgument, match="one bound"):
        firn.StreamWriter("v.firn")
    assert not os.path.exists("v.firn")


def test_a_ratio_is_met():
    field = smooth_field((64, 128, 128))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = firn.compress(field, ratio=10)
    assert firn.info(stream).bound == "ratio"
    assert firn.info(stream).ratio == pytest.approx(10, rel=0.02)


def test_a_ratio_that_is_missed_is_warned_of(in_tmp):
    field = smooth_field((16, 32, 32))
    with pytest.warns(firn.RatioWarning, match="ratio 1000 was not met within max_abs: it is") as seen:
        capped = firn.compress(field, ratio=1000, max_abs=1e-3)
        firn.save("u.firn", field, ratio=1000, max_abs=1e-3)
    assert [warning.filename for warning in seen] == [__file__, __file__]
    assert f"{firn.info(capped).ratio:.2f}" in str(seen[0].message)
    assert np.abs(firn.decompress(capped) - field).max() <= 1e-3
    with pytest.warns(firn.RatioWarning, match="ratio 1e.06 was not met: it is"):
        firn.compress(field, ratio=1e6)


def test_a_ratio_that_a_series_misses_is_warned_of(in_tmp):
    field = smooth_field((16, 32, 32))

    def write(**options):
        with firn.StreamWriter("u.firn", **options) as writer:
            writer.extend(field)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(ratio=4)
        write(abs=1e-3)
        with pytest.raises(firn.InvalidArgument), firn.StreamWriter(
            "v.firn", ratio=1000, max_abs=1e-3
        ) as failing:
            failing.extend(field)
            failing.append(np.zeros(3, np.float32))
    with pytest.warns(firn.RatioWarning, match="ratio 1000 was not met within max_abs: it is") as seen:
        write(ratio=1000, max_abs=1e-3)
        writer = firn.StreamWriter("v.firn", ratio=1000, max_abs=1e-3)
        writer.extend(field)
        writer.close()
    assert [warning.filename for warning in seen] == [__file__, __file__]
    ratio = field.nbytes / os.path.getsize("u.firn")
    assert f"{ratio:.2f}" in str(seen[0].message)


def test_estimates_are_near(ocean):
    estimate = firn.estimate(ocean, rel=1e-3)
    assert estimate.bound == "rel" and estimate.bound_value == 1e-3
    assert estimate.ratio == pytest.approx(firn.info(firn.compress(ocean, rel=1e-3)).ratio, rel=0.25)
    found = firn.estimate(ocean, ratio=20)
    assert found.bound == "ratio"
    assert found.bound_abs == pytest.approx(firn.info(firn.compress(ocean, ratio=20)).bound_abs, rel=0.4)


def test_a_masked_step_is_refused(tmp_path):
    step = np.ma.masked_array(np.zeros((3, 3), np.float32), mask=np.eye(3, dtype=bool))
    with firn.StreamWriter(tmp_path / "m.firn", abs=1e-3) as writer:
        with pytest.raises(TypeError, match="masked"):
            writer.append(step)
