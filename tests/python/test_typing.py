"""The types that the package declares: against its code, its extension, and a user's program."""

import subprocess
import sys

import pytest

from conftest import REPOSITORY

pytest.importorskip("mypy")

CONFIGURATION = str(REPOSITORY / "pyproject.toml")


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, check=False
    )


def test_the_package_agrees_with_its_types(in_tmp):
    result = run("mypy", "--config-file", CONFIGURATION, "-p", "firn")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_stub_names_what_the_extension_has(in_tmp):
    result = run("mypy.stubtest", "--mypy-config-file", CONFIGURATION, "firn._core")
    assert result.returncode == 0, result.stdout + result.stderr


PROGRAM = """
import numpy as np
from typing import Any
from numpy.typing import NDArray
import firn

stream: bytes = firn.compress(np.zeros((3, 4)), rel=1e-3, chunk=(2, 2))
array: NDArray[Any] = firn.decompress(stream)
fraction: float = firn.info(stream).ratio
with firn.open("u.firn") as file:
    extents: tuple[int, ...] = file.shape
psnr: float = firn.metrics(array, stream).psnr_db
"""
MISTAKES = [
    "firn.compress(array, relative=1e-3)",
    "number: int = firn.compress(array, rel=1e-3)",
    "firn.info(stream).size",
    "firn.open(3)",
]


def test_a_users_program_is_checked(in_tmp):
    good = PROGRAM.count("\n")
    (in_tmp / "program.py").write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    result = run("mypy", "--strict", "program.py")
    lines = [int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line]
    assert lines == [good + 1 + number for number in range(len(MISTAKES))], result.stdout
