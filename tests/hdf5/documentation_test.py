"""Runs docs/hdf5-and-netcdf.md with Firn as it is installed: every fenced block whose language is
followed by 'run', in order, in one directory. 'file=NAME' saves a block instead, for a later one."""

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
        prefix = Path(os.environ["FIRN_PREFIX"])
        plugin, = prefix.glob("lib*/**/libh5z_firn.so")
        environment = {
            "PATH": f"{prefix}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CPATH": f"{prefix}/include",
            "CMAKE_PREFIX_PATH": str(prefix),
            "HDF5_PLUGIN_PATH": str(plugin.parent),
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
