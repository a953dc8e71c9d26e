#!/usr/bin/env python3
"""Installs the package from the source tree into a virtual environment and runs its tests there.

    run_in_venv.py SOURCE WORK [NAME=VALUE ...] [ARGUMENTS OF PYTEST]

NAME=VALUE are CMake's. WORK is kept: a second run rebuilds only what has changed. Needs the standard
library and PyPI.
"""

import os
import pathlib
import re
import subprocess
import sys
import venv


def main():
    source, work, *arguments = sys.argv[1:]
    source, work = pathlib.Path(source).resolve(), pathlib.Path(work).resolve()
    definitions = [text for text in arguments if re.match("[A-Z_0-9]+=", text)]
    arguments = [text for text in arguments if text not in definitions]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if "FIRN_WITH_HDF5=ON" in definitions:
        environment["FIRN_EXPECT_HDF5_PLUGIN"] = "1"
    # Not what a surrounding environment has installed.
    environment.pop("PYTHONPATH", None)
    environment.pop("HDF5_PLUGIN_PATH", None)

    directory = work / "venv"
    python = directory / "bin" / "python"
    if not python.exists():
        venv.create(directory, with_pip=True, clear=True)

    def run(*command):
        print("+", *command, flush=True)
        subprocess.run([str(python), *map(str, command)], check=True, env=environment)

    tests = source / "tests" / "python"
    run("-m", "pip", "install", "--quiet", "-r", tests / "requirements.txt")
    # What `pip install .` does, but in a build directory, with build tools that stay, and without
    # the SIMD kernels that the library's own tests cover.
    settings = [f"build-dir={work / 'build'}", "cmake.define.FIRN_FEW_TARGETS=ON"]
    settings += [*(f"cmake.define.{text}" for text in definitions)]
    run(
        "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps",
        "--no-build-isolation", source, *(f"-C{setting}" for setting in settings),
    )
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests, *arguments)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
