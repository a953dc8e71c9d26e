#!/usr/bin/env python3
"""Decodes a Firn stream: decode_stream.py IN.firn OUT.raw, or decode(bytes) -> numpy array.

The decoder is the package firn_decoder beside this file, written from docs/format.md alone. Needs
python3-numpy, python3-xxhash, python3-zstandard.
"""

import sys

from firn_decoder.chunks import read_books
from firn_decoder.conventions import Reader, StreamError
from firn_decoder.distributions import MEMBERS, family_distribution
from firn_decoder.header import read_header
from firn_decoder.pipelines import PIPELINES
from firn_decoder.series import decode

__all__ = ["MEMBERS", "PIPELINES", "Reader", "StreamError", "decode", "family_distribution",
           "read_books", "read_header"]


def main(arguments):
    if len(arguments) != 2:
        print("usage: decode_stream.py IN.firn OUT.raw", file=sys.stderr)
        return 1
    try:
        with open(arguments[0], "rb") as file:
            array = decode(file.read())
        with open(arguments[1], "wb") as file:
            file.write(array.tobytes())
    except (OSError, StreamError) as error:
        print(f"decode_stream.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
