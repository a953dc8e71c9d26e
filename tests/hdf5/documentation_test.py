"""Runs docs/hdf5-and-netcdf.md: every fenced block whose language is followed by 'run', in order,
in one directory. 'file=NAME' saves a block instead, for a later one to use."""

import os
import re
import sys
from pathlib import Path

import hdf5_support as support

PAGE = support.REPOSITORY / "docs" / "hdf5-and-netcdf.md"


class DocumentationTest(support.Hdf5Test):
    def test_every_snippet_runs(self):
        blocks = re.findall(r"^```(\w+) (run|file=\S+)\n(.*?)^```$", PAGE.read_text(),
                            re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 8)
        environment = {
            "PATH": f"{Path(support.FIRN).parent}:{Path(sys.executable).parent}:"
                    f"{os.environ['PATH']}",
            "FIRN": str(support.REPOSITORY),
            "CPATH": f"{support.REPOSITORY}/hdf5/include:{support.REPOSITORY}/include",
        }
        for language, what, text in blocks:
            with self.subTest(language=language, text=text):
                if what.startswith("file="):
                    (self.directory / what.removeprefix("file=")).write_text(text)
                elif language == "sh":
                    self.succeeds("bash", "-euo", "pipefail", "-c", text, environment=environment)
                elif language == "python":
                    self.succeeds(sys.executable, "-c", text, environment=environment)
                else:
                    self.fail(f"a block of '{language}' cannot be run")

    def test_the_id_is_the_headers(self):
        header = (support.REPOSITORY / "hdf5/include/firn/hdf5_parameters.h").read_text()
        number = re.search(r"#define FIRN_HDF5_FILTER_ID (\d+)", header).group(1)
        self.assertEqual(int(number), support.FILTER_ID)
        self.assertIn(f"filter id is {number}", PAGE.read_text())
