"""The types that the package declares: against its code, its extension, and a user's program."""

import ast
import re
import subprocess
import sys

import pytest

import firn
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


def test_the_stub_names_what_the_extension_has():
    stub = ast.parse((REPOSITORY / "python" / "firn" / "_core.pyi").read_text())
    named = {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            named[node.name] = [argument.arg for argument in node.args.args]
        elif isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            named[node.name] = sorted(part.name for part in methods if part.name != "__init__")
    for name, parts in named.items():
        thing = getattr(firn._core, name)
        if isinstance(thing, type):
            assert sorted(part for part in vars(thing) if part[0] != "_") == parts, name
        else:
            # nanobind's signature: "def name(first: type, second: type) -> type"
            given = re.search(r"\((.*)\)", thing.__nb_signature__[0][0]).group(1)
            assert re.findall(r"(\w+): ", given) == parts, name
    public = {name for name in dir(firn._core) if name[0] != "_"}
    assert public == {*named, "hdf5_filter_id"}


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
