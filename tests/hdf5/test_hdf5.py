"""Runs the HDF5 tests; ctest calls it. tests/hdf5/CMakeLists.txt sets the environment it needs."""

import sys
import unittest

if __name__ == "__main__":
    sys.path.insert(0, sys.path[0])
    loader = unittest.TestLoader()
    names = sys.argv[1:] or [
        "filter_test", "programs_test", "direct_chunks_test", "compress_test", "documentation_test"]
    result = unittest.TextTestRunner(verbosity=2).run(loader.loadTestsFromNames(names))
    sys.exit(0 if result.wasSuccessful() else 1)
