"""Section "Header" of docs/format.md.

What holds for all chunks of an array: its type, extents and bound.
"""

import dataclasses
import math

import numpy

from .conventions import require

LOSSLESS, ABS, REL, PSNR, PWREL, RATIO = range(6)
GRID = 15  # instead of a margin


@dataclasses.dataclass
class Header:
    dtype: numpy.dtype
    extents: list
    chunk_extents: list
    kind: int
    margin: int
    grain_bits: int
    bound: float
    bound_asked: float
    tighter: int
    fill: float
    checksum: int
    books: list = dataclasses.field(default_factory=list)  # that chunks share

    def is_pointwise(self):
        return self.kind == PWREL

    def step(self, finer):
        """Distance of neighbouring codes' values, in the array's type; finer by so many 256ths."""
        number = self.dtype.type
        step = number(2) * number(self.bound)
        if self.grain_bits is None:
            step = step * (number(1) - number(2.0**-self.margin))
        return self.cut(step * (number(256 - finer) / number(256)))

    def cut(self, step):
        """The largest step on the grid that is not larger, if there is a grid."""
        if self.grain_bits is None:
            return step
        number = self.dtype.type
        exponent = math.frexp(2 * self.bound)[1] - 1
        grain = number(2.0**exponent) / number(2.0**self.grain_bits)
        return max(numpy.floor(step / grain), number(1)) * grain


def read_header(reader):
    start = reader.position
    require(bytes(reader.bytes(4)) == b"FIRN", "not a Firn stream: it does not begin with FIRN")
    version = reader.number("B")
    require(version == 1, f"format version {version}; this decoder knows version 1")

    flags = reader.number("B")
    rank = flags >> 2 & 7
    require(flags & 3 in (1, 2), f"unknown type {flags & 3}")
    require(1 <= rank <= 4, f"rank {rank} is not 1 to 4")
    require(flags >> 7 == 0, "a reserved bit is set in the header")
    code = "f" if flags & 3 == 1 else "d"

    bound_byte = reader.number("B")
    kind, margin = bound_byte & 15, bound_byte >> 4
    require(kind <= RATIO, f"unknown kind of bound {kind}")

    extents = [reader.varint() for _ in range(rank)]
    one_chunk = flags >> 6 & 1
    chunk_extents = extents if one_chunk else [reader.varint() for _ in range(rank)]
    boxes = [(min(extent, length), extent) for extent, length in zip(extents, chunk_extents)]
    require(all(length > 0 or extent == 0 for length, extent in boxes)
            and math.prod(chunk_extents) <= 1 << 24, f"chunk extents "
            f"{chunk_extents}")

    bound = reader.number("d") if kind != LOSSLESS else 0.0
    with numpy.errstate(over="ignore"):
        bound_in_type = float(numpy.float32(bound)) if code == "f" else bound
    require(0 <= bound < math.inf and bound == bound_in_type, f"bound {bound}")
    require(2 <= margin <= 10 or margin == GRID if bound > 0 and kind != PWREL else margin == 0,
            f"margin {margin}, bound {bound}")
    grain_bits = reader.number("B") if margin == GRID else None
    require(margin != GRID or grain_bits <= 15, f"a grain of {grain_bits} bits")
    require(kind != PWREL or bound <= 0.5, f"point-wise bound {bound}")
    return Header(
        dtype=numpy.dtype("<f4" if code == "f" else "<f8"),
        extents=extents,
        chunk_extents=chunk_extents,
        kind=kind,
        margin=margin,
        grain_bits=grain_bits,
        bound=bound,
        bound_asked=reader.number("d") if kind in (REL, PSNR, PWREL, RATIO) else None,
        tighter=reader.number("B") if kind == RATIO else 0,
        fill=reader.number(code) if flags >> 5 & 1 else None,
        checksum=reader.check_sum(start, seed=0),
    )
