"""`python -m firn` is the command line; this package carries the program."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "firn")
    if not os.path.exists(program):
        sys.exit("firn: this package was built without the command line (FIRN_BUILD_CLI=OFF)")
    os.execv(program, ["firn", *sys.argv[1:]])


if __name__ == "__main__":
    main()
