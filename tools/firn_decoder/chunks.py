"""Section "Chunks" of docs/format.md: book records, chunk records, index.

Also how an array is cut into chunks.
"""

import dataclasses
import itertools
import math

import numpy

from .conventions import Reader, require
from .header import Header
from .pipelines import PIPELINES

SMALLEST_RECORD = 9  # bytes


@dataclasses.dataclass
class Chunk:
    header: Header
    box: tuple  # of slices, in the array
    extents: list
    count: int

    def unsigned(self):
        """The unsigned integer of a value's width."""
        return numpy.dtype(f"<u{self.header.dtype.itemsize}")

    def lags(self):
        """Of each axis, slowest first."""
        return [math.prod(self.extents[axis + 1 :]) for axis in range(len(self.extents))]


def count_chunks(header):
    if 0 in header.extents:
        return 0
    return math.prod(-(-extent // length)
                     for extent, length in zip(header.extents, header.chunk_extents))


def chunks_of(header):
    """The chunks of an array that has values, in row-major order."""
    axes = [
        [slice(begin, min(begin + length, extent)) for begin in range(0, extent, length)]
        for extent, length in zip(header.extents, header.chunk_extents)
    ]
    for box in itertools.product(*axes):
        extents = [part.stop - part.start for part in box]
        yield Chunk(header, box, extents, math.prod(extents))


def read_books(reader, header):
    """Reads the book records, which come before the chunks'."""
    while reader.left() and reader.data[reader.position] == 15:
        number = len(header.books)
        require(number < 64, "there are more than 64 books")
        reader.what = f"book {number}"
        start = reader.position
        reader.number("B")
        header.books.append(bytes(reader.bytes(reader.number("H"))))
        reader.check_sum(start, seed=header.checksum << 32 ^ (1 << 63) + number)


def read_record(reader, chunk, number):
    """Returns the chunk's values and its achieved error in units of bound / 65535."""
    reader.what = f"chunk {number}"
    start = reader.position
    size = chunk.count * chunk.header.dtype.itemsize
    pipeline = reader.number("B")
    achieved_error = reader.number("H")
    payload_size = reader.number("H" if size < 65536 else "I")
    require(payload_size <= size, f"chunk {number} has {payload_size} bytes of payload, but its "
            f"values take {size}")
    payload = Reader(reader.bytes(payload_size), f"payload of chunk {number}")
    reader.check_sum(start, seed=chunk.header.checksum << 32 ^ number)

    require(pipeline in PIPELINES, f"chunk {number} has the unknown pipeline {pipeline}")
    values = PIPELINES[pipeline](payload, chunk)
    payload.finish()
    return values, achieved_error


def read_index(reader, header, first, records):
    """Checks that the index says what the records, (size, achieved error), said."""
    reader.what = "index"
    start = reader.position
    require(reader.number("B") == 0, "the index does not begin with 0")
    count = reader.varint()
    require(count == len(records), f"the index has {count} chunks, not {len(records)}")
    require(reader.varint() == first, "the index misplaces the first record")
    for number, record in enumerate(records):
        require((reader.varint(), reader.number("H")) == record,
                f"the index and the record of chunk {number} disagree")
    reader.check_sum(start, seed=header.checksum << 32 ^ (1 << 64) - 1)
    size = reader.position - start
    require(reader.number("I") == size, "the index's size is wrong")
    require(bytes(reader.bytes(4)) == b"FIDX", "the stream does not end in FIDX")
