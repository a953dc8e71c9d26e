"""Every snippet of the Python pages and every docstring example is run."""

import contextlib
import doctest
import importlib
import io
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import firn
from conftest import REPOSITORY

PAGES = ["python.md", "zarr-and-xarray.md", "metrics.md"]
BLOCK = re.compile(r"(?:<!-- tests: (?P<note>[a-z ]+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.S)


def blocks_of(page):
    return [match.groupdict() for match in BLOCK.finditer((REPOSITORY / "docs" / page).read_text())]


@pytest.fixture
def sample_files(in_tmp):
    """What the pages take as given."""
    name = "mitgcm_conv_u_50x100x100.f32"
    shutil.copy(REPOSITORY / "data" / name, in_tmp / "u_50x100x100.f32")
    return in_tmp


@pytest.mark.parametrize("page", PAGES)
def test_pages(page, sample_files, request):
    pytest.importorskip("zarr")
    names = {}
    ran = 0
    for block in blocks_of(page):
        if block["note"] == "run when installing":
            continue  # what run_in_venv.py has done
        if block["note"] == "needs the plugin":
            request.getfixturevalue("need_hdf5")
        if block["kind"] == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block["body"], page, "exec"), names)
            expected = re.findall(r"#> (.*)", block["body"])
            assert printed.getvalue().splitlines() == expected, block["body"]
        elif block["kind"] == "sh":
            environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
            subprocess.run(["bash", "-euo", "pipefail", "-c", block["body"]], check=True, env=environment)
        else:
            assert block["kind"] == "text", f"{page}: who runs a block of {block['kind']}?"
            continue
        ran += 1
    assert ran > 0


MODULES = ["firn", "firn._api", "firn._files", "firn._streams", "firn._errors"]
CODECS = ["firn.numcodecs", "firn.zarr"]
HDF5 = ["firn._hdf5", "firn.h5py"]


@pytest.mark.parametrize("name", MODULES + CODECS + HDF5)
def test_docstrings(name, in_tmp, request):
    if name in CODECS:
        pytest.importorskip(name.split(".")[1])
    if name in HDF5:
        request.getfixturevalue("need_hdf5")
    module = importlib.import_module(name)
    result = doctest.testmod(
        module, extraglobs={"firn": firn, "np": np}, optionflags=doctest.ELLIPSIS
    )
    assert result.failed == 0 and result.attempted > 0


def test_every_public_name_has_a_docstring():
    for name in firn.__all__:
        thing = getattr(firn, name)
        assert name.startswith("simd") or name == "version" or thing.__doc__, name
