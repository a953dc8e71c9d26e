"""Section "Series" of docs/format.md: streams one after the other, and their directories.

decode() makes one array of them.
"""

import numpy

from .chunks import SMALLEST_RECORD, chunks_of, count_chunks, read_books, read_index, read_record
from .conventions import Reader, StreamError, require
from .header import read_header


def decode(stream):
    """The array that a stream or series holds. Raises StreamError unless every byte is right."""
    reader = Reader(stream, "header")
    arrays, parts = [], []
    while not arrays or reader.left():
        if arrays and bytes(reader.data[reader.position : reader.position + 4]) == b"FDIR":
            read_directory(reader, parts)
            continue
        start = reader.position
        arrays.append(decode_part(reader))
        require(arrays[0].dtype == arrays[-1].dtype and arrays[0].shape[1:] == arrays[-1].shape[1:],
                "the parts of the series do not fit each other")
        parts.append((reader.position - start, arrays[-1].shape[0]))
    return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)


def decode_part(reader):
    reader.what = "header"
    stream_start = reader.position
    header = read_header(reader)
    count = count_chunks(header)
    require(count * SMALLEST_RECORD <= reader.left(), f"the stream ends too early: its "
            f"{reader.left()} bytes after the header cannot hold {count} chunks")
    try:
        array = numpy.empty(header.extents, header.dtype)
    except (MemoryError, ValueError) as error:
        raise StreamError(f"an array of extents {header.extents}: {error}") from error
    records = []
    read_books(reader, header)
    first_record = reader.position - stream_start
    for number, chunk in enumerate(chunks_of(header) if count else ()):
        start = reader.position
        values, achieved_error = read_record(reader, chunk, number)
        array[chunk.box] = values.reshape(chunk.extents)
        records.append((reader.position - start, achieved_error))
    if count > 1:
        read_index(reader, header, first_record, records)
    return array


def read_directory(reader, parts):
    """A directory that describes `parts`, the bytes and slowest extents of those before it."""
    reader.what = "directory"
    start = reader.position
    reader.bytes(4)
    size = reader.number("I")
    listed = [(reader.varint(), reader.varint()) for _ in range(reader.varint())]
    reader.check_sum(start, 0)
    require(reader.number("I") == size and bytes(reader.bytes(4)) == b"FDIR" and
            reader.position - start == size, "the directory's sizes contradict each other")
    # One in the middle may have been written for the parts behind another series.
    require(listed == parts[len(parts) - len(listed):], "the directory does not describe the parts")
