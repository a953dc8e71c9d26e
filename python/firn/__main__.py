"""`python -m firn` is the command line; this package carries the program."""

import os
import sys


def program_path():
    """Where the program is; None in a build without it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "firn")
    return path if os.path.exists(path) else None


def main():
    path = program_path()
    if path is None:
        sys.exit("firn: this package was built without the command line (FIRN_BUILD_CLI=OFF)")
    sys.stdout.flush()
    os.execv(path, ["firn", *sys.argv[1:]])


if __name__ == "__main__":
    main()
