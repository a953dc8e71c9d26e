#!/usr/bin/env python3
"""Runs the tests of the command line on the real program.

Usage: test_cli.py path/to/firn [unittest options and test names]
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import firn_runner  # noqa: E402
from commands_test import *  # noqa: E402,F401,F403
from damage_test import *  # noqa: E402,F401,F403
from inputs_test import *  # noqa: E402,F401,F403
from outputs_test import *  # noqa: E402,F401,F403
from steps_test import *  # noqa: E402,F401,F403

del CliTest  # noqa: F821  it has no tests of its own

if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    firn_runner.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
