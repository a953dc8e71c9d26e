#!/usr/bin/env python3
"""Decodes a Firn stream: decode_stream.py IN.firn OUT.raw, or decode(bytes) -> numpy array.

Written from docs/format.md alone, whose sections it follows, to prove that the page suffices: it
is meant to be read, not to be fast. Needs python3-numpy, python3-xxhash, python3-zstandard.
"""

import bisect
import dataclasses
import functools
import heapq
import itertools
import math
import struct
import sys

import numpy
import xxhash
import zstandard


class StreamError(ValueError):
    """The bytes are not a valid Firn stream; the message says where and why."""


def require(condition, message):
    if not condition:
        raise StreamError(message)


# Conventions


def checksum(data, seed):
    return xxhash.xxh3_64_intdigest(data, seed) & 0xFFFFFFFF


class Reader:
    """Takes numbers and bytes from the front of a byte string and never reads past its end."""

    def __init__(self, data, what):
        self.data, self.position, self.what = memoryview(data), 0, what

    def left(self):
        return len(self.data) - self.position

    def bytes(self, count):
        require(count <= self.left(), f"{self.what} ends too early: {count} bytes are due at byte "
                f"{self.position}, {self.left()} are left")
        self.position += count
        return self.data[self.position - count : self.position]

    def rest(self):
        return self.bytes(self.left())

    def number(self, code):
        """One number: B, H, I for u8, u16, u32; f, d for f32, f64."""
        return struct.unpack("<" + code, self.bytes(struct.calcsize(code)))[0]

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                require(value < 1 << 64, f"{self.what}: a varint of more than 64 bits")
                return value
        raise StreamError(f"{self.what}: a varint of more than 10 bytes")

    def svarint(self):
        value = self.varint()
        return -((value + 1) // 2) if value % 2 else value // 2

    def check_sum(self, start, seed):
        """Reads a checksum of all bytes since `start`."""
        computed = checksum(self.data[start : self.position], seed)
        stored = self.number("I")
        require(computed == stored, f"{self.what} is damaged: its checksum is {computed:08x}, not "
                f"{stored:08x}")
        return stored

    def finish(self):
        require(self.left() == 0, f"{self.what} has {self.left()} bytes too many")


def unpack_bits(data):
    return numpy.unpackbits(numpy.frombuffer(data, numpy.uint8), bitorder="little")


def read_zstd(data, size, what):
    """The content of the one zstd frame that `data` is, which must have `size` bytes."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        content = frame.decompress(data)
    except zstandard.ZstdError as error:
        raise StreamError(f"{what}: {error}") from error
    require(frame.eof and not frame.unused_data, f"{what} is not one whole zstd frame")
    require(len(content) == size, f"{what} holds {len(content)} bytes, not {size}")
    return content


# Header

LOSSLESS, ABS, REL, PSNR, PWREL, RATIO = range(6)


@dataclasses.dataclass
class Header:
    dtype: numpy.dtype
    extents: list
    chunk_extents: list
    kind: int
    margin: int
    bound: float
    bound_asked: float
    fill: float
    checksum: int
    books: list = dataclasses.field(default_factory=list)  # that chunks share

    def is_pointwise(self):
        return self.kind == PWREL

    def step(self):
        """Distance of neighbouring codes' values, in the array's type."""
        number = self.dtype.type
        return number(2) * number(self.bound) * (number(1) - number(2.0**-self.margin))


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
            and math.prod(length for length, _ in boxes) <= 1 << 24, f"chunk extents "
            f"{chunk_extents}")

    bound = reader.number("d") if kind != LOSSLESS else 0.0
    with numpy.errstate(over="ignore"):
        bound_in_type = float(numpy.float32(bound)) if code == "f" else bound
    require(0 <= bound < math.inf and bound == bound_in_type, f"bound {bound}")
    require(2 <= margin <= 10 if bound > 0 and kind != PWREL else margin == 0,
            f"margin {margin}, bound {bound}")
    require(kind != PWREL or bound <= 0.5, f"point-wise bound {bound}")
    return Header(
        dtype=numpy.dtype("<f4" if code == "f" else "<f8"),
        extents=extents,
        chunk_extents=chunk_extents,
        kind=kind,
        margin=margin,
        bound=bound,
        bound_asked=reader.number("d") if kind in (REL, PSNR, PWREL, RATIO) else None,
        fill=reader.number(code) if flags >> 5 & 1 else None,
        checksum=reader.check_sum(start, seed=0),
    )


# Chunks


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


SMALLEST_RECORD = 9  # bytes


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


# Differences


def read_difference_lags(payload, chunk):
    """The lags that a byte of difference orders names, each as often as its order."""
    orders = payload.number("B")
    require(orders >> 2 * len(chunk.extents) == 0, f"{payload.what}: an order of a missing axis")
    order_of_axis = [orders >> 2 * axis & 3 for axis in range(len(chunk.extents))]
    require(max(order_of_axis) <= 2 and sum(order_of_axis) <= 4, f"{payload.what}: difference "
            f"orders {order_of_axis}")
    return [lag for lag, order in zip(chunk.lags(), order_of_axis) for _ in range(order)]


def undo_differences(residuals, lags):
    """Unsigned residuals to codes: c[i] += c[i - lag] for ascending i, for every lag."""
    codes = residuals
    for lag in lags:
        # A table of rows of `lag` values, the last one padded, so that i - lag is right above i.
        table = numpy.zeros(-(-len(codes) // lag) * lag, codes.dtype)
        table[: len(codes)] = codes
        sums = table.reshape(-1, lag).cumsum(axis=0, dtype=codes.dtype)
        codes = sums.reshape(-1)[: len(codes)]
    return codes


# Pipelines: payload and chunk to an array of the chunk's values


def decode_raw(payload, chunk):
    return numpy.frombuffer(payload.bytes(chunk.count * chunk.header.dtype.itemsize),
                            chunk.header.dtype)


def decode_constant(payload, chunk):
    value = numpy.frombuffer(payload.bytes(chunk.header.dtype.itemsize), chunk.header.dtype)
    return numpy.repeat(value, chunk.count)


def decode_shuffle(payload, chunk):
    unsigned = chunk.unsigned()
    width = unsigned.itemsize
    lags = read_difference_lags(payload, chunk)
    content = read_zstd(payload.rest(), chunk.count * width, payload.what)
    planes = numpy.frombuffer(content, numpy.uint8).reshape(width, chunk.count)
    zigzag = numpy.ascontiguousarray(planes.T).view(unsigned).reshape(-1)

    one = unsigned.type(1)
    residuals = (zigzag >> one) ^ -(zigzag & one)
    codes = undo_differences(residuals, lags)
    all_but_highest = unsigned.type((1 << 8 * width - 1) - 1)
    negative = codes > all_but_highest
    return numpy.where(negative, codes ^ all_but_highest, codes).view(chunk.header.dtype)


# Quantised codes and exact points: what pipelines 4 to 9 share


class QuantizedChunk:
    """Reads the common head of a payload; then values() makes values of residuals."""

    def __init__(self, payload, chunk, is_blockpack=False):
        require(chunk.header.bound > 0, f"{payload.what}: codes, but nothing may be lost")
        self.chunk = chunk
        flags = payload.number("B")
        allowed = 0b0001111 if chunk.header.is_pointwise() else 0b0011011
        if is_blockpack and not chunk.header.is_pointwise():
            allowed |= 0b0100000
        if is_blockpack and flags & 0b101:
            allowed |= 0b1000000
        require(flags & ~allowed == 0,
                f"{payload.what}: reserved flags are set")
        wide = flags >> 1 & 1
        require(not wide or chunk.header.dtype == "<f8", f"{payload.what}: 64-bit codes of f32")
        short = flags >> 5 & 1
        require(not (wide and short), f"{payload.what}: codes of 64 bits and of 16")
        self.is_wide = bool(wide)
        self.unsigned = numpy.dtype("<u8" if wide else "<u2" if short else "<u4")
        self.lags = read_difference_lags(payload, chunk)
        self.base = payload.svarint()
        if flags & 8:
            payload.number("B"), payload.number("B")  # for people: see docs/format.md
        finer = payload.number("B") if flags & 16 else 0
        require(finer <= 64, f"{payload.what}: a step finer by {finer}/256")
        number = chunk.header.dtype.type
        self.step = chunk.header.step() * (number(256 - finer) / number(256))
        self.is_exact = numpy.zeros(chunk.count, bool)
        self.exact_values = numpy.zeros(0, chunk.header.dtype)
        if flags & 1:
            self.is_exact, self.exact_values = read_exact_points(payload, chunk, flags & 64)
        self.has_signs = bool(flags >> 2 & 1)
        if self.has_signs:
            self.is_negative = read_bit_map(payload, chunk, flags & 64)

    def bits(self):
        return 8 * self.unsigned.itemsize

    def require_plain_codes(self, what):
        """For pipelines that have neither differences nor a base, and only 32-bit codes."""
        require(not self.lags and self.base == 0 and self.bits() == 32, f"{what}: its head has "
                "orders, a base or 64-bit codes")

    def require_no_signs(self, what):
        require(not self.has_signs, f"{what}: its head has signs")

    def values(self, residuals):
        """From the residuals of all points, unsigned."""
        codes = undo_differences(residuals, self.lags)
        if self.bits() == 16:
            codes = codes.view("<i2").astype("<i4").view("<u4")
        codes = codes + codes.dtype.type(self.base % (1 << 8 * codes.itemsize))
        signed = codes.view(f"<i{codes.itemsize}")
        if self.chunk.header.is_pointwise():
            scale = LogScale(self.chunk.header)
            require(scale.step > 0, "codes, but the bound is too tight for a logarithmic scale")
            values = scale.values(codes)
            if self.has_signs:
                values[self.is_negative] = -values[self.is_negative]
        else:
            with numpy.errstate(over="ignore"):  # at exact points codes mean nothing
                values = signed.astype(self.chunk.header.dtype) * self.step
        values[self.is_exact] = self.exact_values
        return values


# Logarithmic scale


class LogScale:
    """Indices of magnitudes and magnitudes of indices, under a point-wise bound."""

    def __init__(self, header):
        self.dtype = header.dtype
        self.is_single = header.dtype == "<f4"
        self.unsigned = numpy.dtype("<u4" if self.is_single else "<u8")
        self.mantissa_bits = 23 if self.is_single else 52
        self.fraction_bits = 24 if self.is_single else 52
        slack = 8 if self.is_single else 4096
        e = header.bound
        units = 2 * (e - e * e / 2) * 1.4134 * 2.0**self.fraction_bits - slack
        self.step = int(units) if units >= slack else 0

    def values(self, indices):
        """Magnitudes of unsigned indices."""
        number, unsigned = self.dtype.type, self.unsigned.type
        position = indices.astype(self.unsigned) * unsigned(self.step)
        exponent = position >> unsigned(self.fraction_bits)
        low = position & unsigned((1 << self.fraction_bits) - 1)
        f = low.astype(self.dtype) * number(2.0**-self.fraction_bits)
        mantissa = f * (f * number(11 / 32) + number(21 / 32)) + number(1)
        bits = mantissa.view(self.unsigned) + (exponent << unsigned(self.mantissa_bits))
        bias = (127 if self.is_single else 1023) << self.mantissa_bits
        return (bits - unsigned(bias)).view(self.dtype)

    def indices(self, values):
        """Indices of the magnitudes of values."""
        number, unsigned = self.dtype.type, self.unsigned.type
        bits = numpy.ascontiguousarray(values).view(self.unsigned)
        bits = bits & unsigned((1 << 8 * self.unsigned.itemsize - 1) - 1)
        exponent = bits >> unsigned(self.mantissa_bits)
        mantissa = bits & unsigned((1 << self.mantissa_bits) - 1)
        y = mantissa.astype(self.dtype) * number(2.0**-self.mantissa_bits)
        root = numpy.sqrt(number(441 / 1024) + y * number(11 / 8))
        fraction = (root - number(21 / 32)) * number(16 / 11)
        if self.is_single:
            low = (fraction * number(2.0**24)).astype(numpy.uint32)
            position = (exponent << unsigned(24)) + low + unsigned(self.step // 2)
            shift = self.step.bit_length() - 1
            inverse = min((1 << 32 + shift) // self.step, (1 << 32) - 1)
            product = position.astype(numpy.uint64) * numpy.uint64(inverse)
            return (product >> numpy.uint64(32 + shift)).astype(numpy.uint32)
        octaves = exponent.astype(self.dtype) + fraction
        shifted = octaves * (number(2.0**52) / number(self.step)) + number(1.5 * 2.0**52)
        return shifted.view(self.unsigned) - unsigned(0x4338000000000000)

    def restore(self, codes, predictions):
        """Values of 32-bit codes against signed predictions."""
        distances = (codes >> 1).astype(f"<i{self.unsigned.itemsize}").view(self.unsigned)
        magnitudes = self.values(self.indices(predictions) + distances)
        is_negative = numpy.signbit(predictions) != (codes & 1).astype(bool)
        return numpy.where(is_negative, -magnitudes, magnitudes)


# Exact points


def read_exact_points(payload, chunk, without_zeros=False):
    """Returns which points are exact, and their values."""
    is_exact = read_bit_map(payload, chunk, without_zeros)
    size = payload.varint()
    exact_size = int(is_exact.sum()) * chunk.header.dtype.itemsize
    if size == chunk.header.dtype.itemsize:  # all have this value
        value = numpy.frombuffer(payload.bytes(size), chunk.header.dtype)
        return is_exact, numpy.repeat(value, int(is_exact.sum()))
    values = read_zstd(payload.bytes(size), exact_size, f"{payload.what}, exact values")
    return is_exact, numpy.frombuffer(values, chunk.header.dtype)


def read_nonzero_bytes(content, size, what):
    """A map of so many bytes, stored without those that are 0."""
    sizes = [size]
    for _ in range(3):
        sizes.append(-(-sizes[-1] // 8))
    stored = numpy.frombuffer(content, "u1")
    level, stored = stored[: sizes[-1]], stored[sizes[-1] :]
    require(len(level) == sizes[-1], f"{what}: it is too short")
    for size in reversed(sizes[:-1]):
        there = unpack_bits(level).astype(bool)
        require(not there[size:].any(), f"{what}: bytes after the last")
        count = int(there.sum())
        require(len(stored) >= count, f"{what}: it is too short")
        level = numpy.zeros(size, "u1")
        level[there[:size]], stored = stored[:count], stored[count:]
    require(len(stored) == 0, f"{what}: it is too long")
    return level


def read_bit_map(payload, chunk, without_zeros=False):
    """One bit a point."""
    lag = payload.varint()
    require(lag == 0 or 64 <= lag < chunk.count, f"{payload.what}: lag {lag} of the bit map")
    size = payload.varint()
    map_size, what = -(-chunk.count // 8), f"{payload.what}, bit map"
    read = read_nonzero_bytes if without_zeros else read_zstd
    bits = unpack_bits(read(payload.bytes(size), map_size, what))
    require(not bits[chunk.count :].any(), f"{payload.what}: bits after the last point")
    bit_map = bits[: chunk.count].copy()
    if lag:
        # Piece after piece of `lag` bits, since a piece needs only the one before it; the first
        # of them likewise, but by rows.
        row_length = chunk.extents[-1]
        row_lag = -(-64 // row_length) * row_length
        for part, distance in ((bit_map[:lag], row_lag), (bit_map, lag)):
            for begin in range(distance, len(part), distance):
                piece = part[begin : begin + distance]
                piece ^= part[begin - distance : begin - distance + len(piece)]
    return bit_map.astype(bool)


# lorenzo


def decode_lorenzo(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    count = chunk.count - int(quantized.is_exact.sum())

    k = payload.number("B")
    require(3 <= k <= 12, f"{payload.what}: k is {k}, not 3 to 12")
    extra_bits = payload.bytes(payload.varint())
    mode = payload.number("B")
    alphabet_size = (1 << k + 1) + 65
    coding, book = mode & 15, mode >> 4
    if mode == 0:
        symbol = payload.number("H")
        require(symbol < alphabet_size, f"{payload.what}: symbol {symbol} is not in the alphabet")
        symbols = numpy.full(count, symbol)
    elif coding in (1, 2) and book in (0, 1, 2):
        if book == 0:
            lengths = read_code_lengths(payload, alphabet_size)
        elif book == 1:
            lengths = offline_book(payload, k, quantized.is_wide)
        else:
            lengths = shared_book(payload, k, chunk)
        streams = payload
        if coding == 2:
            size = payload.varint()
            what = f"{payload.what}, Huffman streams"
            streams = Reader(read_zstd(payload.rest(), size, what), what)
        symbols = read_huffman_streams(streams, lengths, count)
        streams.finish()
    else:
        raise StreamError(f"{payload.what}: unknown mode {mode}")
    residuals = numpy.zeros(chunk.count, quantized.unsigned)
    residuals[~quantized.is_exact] = residuals_of(symbols, k, extra_bits, payload.what)
    return quantized.values(residuals)


def residuals_of(symbols, k, extra_bits, what):
    """The residuals, modulo 2^64."""
    residuals = (symbols - (1 << k)).astype(numpy.uint64)
    is_large = symbols >= 1 << k + 1
    class_of = symbols[is_large] - (1 << k + 1)
    low_bits = numpy.maximum(class_of - 1, 0)  # how many, beside the sign

    bits = unpack_bits(extra_bits).astype(numpy.uint64)
    end = numpy.cumsum(1 + low_bits)
    total = int(end[-1]) if len(end) else 0
    require(len(extra_bits) == -(-total // 8), f"{what}: {len(extra_bits)} bytes of extra bits, "
            f"but the symbols need {total} bits")
    sign_at = end - 1 - low_bits
    is_negative = bits[sign_at] == 1
    magnitude = numpy.zeros(len(class_of), numpy.uint64)
    for bit in range(int(class_of.max(initial=0))):
        # Bit class - 1 is implied, those below it are stored.
        stored, implied = low_bits > bit, class_of == bit + 1
        magnitude[stored] |= bits[sign_at[stored] + 1 + bit] << numpy.uint64(bit)
        magnitude[implied] |= numpy.uint64(1 << bit)
    magnitude += numpy.uint64(1 << k)
    residuals[is_large] = numpy.where(is_negative, ~magnitude, magnitude)  # ~m = -m - 1
    return residuals


# Offline books, shared books


def offline_book(payload, k, is_wide):
    member, shift = payload.number("B"), payload.number("B")
    require(member < len(MEMBERS) and shift <= 12,
            f"{payload.what}: no offline book {member} with shift {shift}")
    frequency = family_distribution(member)

    def weight(residual, count):
        """Of a symbol that stands for so many residuals, of which this is one."""
        high = residual + (1 << shift >> 1) >> shift
        size = next((s for s in range(31, -1, -1) if token_class(s)[1] <= abs(high)), 0)
        extra, first = token_class(size)
        if abs(high) >= first + 2**extra:
            return 2**15
        found = frequency[size if high >= 0 else -size]
        return min(max((found * count << 18) >> shift + extra, 2**15), 2**30)

    edge = 1 << k
    weights = [weight(residual, 1) for residual in range(-edge, edge)]
    for width in range(65):
        if width < 24:
            weights.append(weight(edge + (1 << width >> 1), max(2, 1 << width)))
        else:
            weights.append(2**15 if width <= 32 or is_wide else 0)
    return lengths_from_weights(weights)


def lengths_from_weights(weights):
    order = sorted((weight, symbol) for symbol, weight in enumerate(weights) if weight)
    symbols = [symbol for _, symbol in order]
    depths = huffman_depths([weight for weight, _ in order])
    least = max(1, sum(weights) >> LONGEST_CODE + 1)
    while max(depths) > LONGEST_CODE:
        depths = huffman_depths([max(weight, least) for weight, _ in order])
        least += least // 4 + 1
    lengths = numpy.zeros(len(weights), int)
    lengths[symbols] = depths
    return lengths


def huffman_depths(weights):
    """Of equal weights leaves come first, in their order, then nodes, by age."""
    heap = [(weight, leaf) for leaf, weight in enumerate(weights)]
    parent = {}
    for node in range(len(weights), 2 * len(weights) - 1):
        (one, left), (other, right) = heapq.heappop(heap), heapq.heappop(heap)
        parent[left] = parent[right] = node
        heapq.heappush(heap, (one + other, node))
    depth = {heap[0][1]: 0}
    for node in sorted(parent, reverse=True):
        depth[node] = depth[parent[node]] + 1
    return [depth[leaf] for leaf in range(len(weights))]


def shared_book(payload, k, chunk):
    number = payload.number("B")
    require(number < len(chunk.header.books), f"{payload.what}: there is no book {number}")
    book = Reader(chunk.header.books[number], f"book {number}")
    require(book.number("B") == k, f"{payload.what}: book {number} has another k")
    lengths = read_code_lengths(book, (1 << k + 1) + 65)
    book.finish()
    return lengths


# Code lengths, codes, Huffman streams

LONGEST_CODE = 15


def read_code_lengths(payload, alphabet_size):
    lengths = []
    waiting = []  # the other nibble of the byte that was last read

    def nibble():
        if waiting:
            return waiting.pop()
        byte = payload.number("B")
        waiting.append(byte >> 4)
        return byte & 15

    while len(lengths) < alphabet_size:
        length = nibble()
        lengths += [length] if length else [0] * ((nibble() | nibble() << 4) + 1)
    require(len(lengths) == alphabet_size, f"{payload.what}: lengths of too many codes")
    require(not any(waiting), f"{payload.what}: the nibble after the code lengths is not 0")
    return numpy.array(lengths)


def read_huffman_streams(reader, lengths, count):
    # A code of b bits is what 2^(15 - b) of the 2^15 strings of 15 bits begin with, and canonical
    # codes have them one after the other: this is the whole decoding table.
    present = numpy.flatnonzero(lengths)
    by_code = present[numpy.argsort(lengths[present], kind="stable")]
    symbol_of = numpy.repeat(by_code, 1 << LONGEST_CODE - lengths[by_code])
    require(len(symbol_of) == 1 << LONGEST_CODE, f"{reader.what}: the prefix code is not complete")

    sizes = [reader.varint() for _ in range(3)]
    parts = [reader.bytes(size) for size in sizes] + [reader.rest()]
    part_count = -(-count // 4)
    symbols = []
    for number, part in enumerate(parts):
        due = min(part_count, max(0, count - number * part_count))
        symbols.append(read_huffman_stream(part, symbol_of, lengths, due,
                                           f"{reader.what}, Huffman stream {number}"))
    return numpy.concatenate(symbols)


def read_huffman_stream(data, symbol_of, lengths, count, what):
    # Look up the symbol that would begin at every single bit, then walk from code to code.
    bits = unpack_bits(data)
    padded = numpy.concatenate([bits, numpy.zeros(LONGEST_CODE, numpy.uint8)])
    window = numpy.zeros(len(bits), numpy.int64)
    for bit in range(LONGEST_CODE):
        window = window << 1 | padded[bit : bit + len(bits)]
    symbol_at = symbol_of[window]
    length_at = lengths[symbol_at].tolist()

    starts = []
    position = 0
    for _ in range(count):
        require(position < len(bits), f"{what} ends too early")
        starts.append(position)
        position += length_at[position]
    require(-(-position // 8) == len(data), f"{what} has {len(data)} bytes, but its {count} "
            f"symbols take {position} bits")
    return symbol_at[numpy.array(starts, numpy.int64)]


# blockpack

SUPERBLOCK = 256  # residuals
RUN_LIMIT = 4096  # no run of zeros crosses a multiple of this many residuals


def decode_blockpack(payload, chunk):
    quantized = QuantizedChunk(payload, chunk, is_blockpack=True)
    block_count = -(-chunk.count // SUPERBLOCK)
    zigzag = numpy.zeros((block_count, SUPERBLOCK), quantized.unsigned)
    block = 0
    while block < block_count:
        head = payload.number("B")
        width, dense = head >> 4, head & 15
        if width == 0:
            end = block + dense + 1
            limit = (block * SUPERBLOCK // RUN_LIMIT + 1) * RUN_LIMIT // SUPERBLOCK
            require(end <= min(limit, block_count), f"{payload.what}: too long a run of zeros")
            block = end
            continue
        if width == 15:
            require(dense == 0, f"{payload.what}: a long width with a nibble of {dense}")
            width, dense = payload.number("B"), payload.number("B")
            require(15 <= width <= quantized.bits(), f"{payload.what}: width {width}")
        require(dense <= width, f"{payload.what}: {dense} of {width} planes are dense")
        planes = [payload.bytes(SUPERBLOCK // 8) for _ in range(dense)]
        planes += read_sparse_planes(payload, width - dense)
        for number, plane in enumerate(planes):
            zigzag[block] |= unpack_bits(plane).astype(zigzag.dtype) << zigzag.dtype.type(number)
        block += 1

    zigzag = zigzag.reshape(-1)
    require(not zigzag[chunk.count :].any(), f"{payload.what}: residuals after the last point")
    one = zigzag.dtype.type(1)
    residuals = (zigzag >> one) ^ -(zigzag & one)
    return quantized.values(residuals[: chunk.count])


def read_sparse_planes(payload, count):
    """Bytes that are not 0, of planes whose masks say where, themselves without bytes that are 0."""
    nibbles = []
    for byte in payload.bytes(-(-count // 2)):
        nibbles += [byte & 15, byte >> 4]
    require(not any(nibbles[count:]), f"{payload.what}: the mask of a missing plane")
    masks = [scatter(payload, unpack_bits(bytes([nibble]))[:4]) for nibble in nibbles[:count]]
    return [scatter(payload, unpack_bits(mask)) for mask in masks]


def scatter(payload, is_present):
    """A byte of the payload wherever a bit is set, 0 elsewhere."""
    data = numpy.zeros(len(is_present), numpy.uint8)
    stored = numpy.frombuffer(payload.bytes(int(is_present.sum())), numpy.uint8)
    require(stored.all(), f"{payload.what}: a byte that is 0 is stored in a sparse plane")
    data[is_present == 1] = stored
    return data


# ceresz and ceresz4

CERESZ_BLOCK = 32  # codes


def decode_ceresz(payload, chunk, length_code="B"):
    quantized = QuantizedChunk(payload, chunk)
    quantized.require_plain_codes(payload.what)
    block_count = -(-chunk.count // CERESZ_BLOCK)
    differences = numpy.zeros((block_count, CERESZ_BLOCK), numpy.uint32)
    for block in differences:
        length = payload.number(length_code)
        require(length <= 32, f"{payload.what}: a block of {length} planes")
        if length == 0:
            continue
        is_negative = unpack_bits(payload.bytes(4)) == 1
        for number in range(length):
            block |= unpack_bits(payload.bytes(4)).astype(numpy.uint32) << numpy.uint32(number)
        block[is_negative] = -block[is_negative]
    require(not differences.reshape(-1)[chunk.count :].any(), f"{payload.what}: codes after the "
            "last point")
    codes = differences.cumsum(axis=1, dtype=numpy.uint32)
    return quantized.values(codes.reshape(-1)[: chunk.count])


def decode_ceresz4(payload, chunk):
    return decode_ceresz(payload, chunk, length_code="I")


# contexts

BATCH = 32  # all taps are at least as far, so that the contexts of a batch are known before it
LARGEST_MAGNITUDE = 2047
EXACT_CONTEXT = 33


def decode_contexts(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    shift = payload.number("B")
    rans = RansReader(payload, quantized.bits())

    taps = context_taps(chunk)
    weights = numpy.array(list(taps.values()))
    furthest = max(taps)
    taps_of_batch = numpy.arange(BATCH) + furthest - numpy.array(list(taps))[:, None]
    context_of_sum = [0]
    for number in range(1, LARGEST_MAGNITUDE * int(weights.sum()) + 1):
        width = number.bit_length()
        context_of_sum.append(2 * width - 1 + (number << 1 >> width - 1 & 1))
    context_of_sum = numpy.array(context_of_sum)

    # Magnitude i is at furthest + i, behind the zeros before the chunk.
    magnitudes = numpy.zeros(furthest + chunk.count + BATCH, numpy.int64)
    residuals = []
    for begin in range(0, chunk.count, BATCH):
        is_exact = quantized.is_exact[begin : begin + BATCH]
        contexts = context_of_sum[weights @ magnitudes[begin + taps_of_batch]]
        contexts = numpy.where(is_exact, EXACT_CONTEXT, contexts[: len(is_exact)])
        batch = rans.segment(contexts.tolist())
        residuals += batch
        magnitudes[furthest + begin : furthest + begin + len(batch)] = [
            min(abs(residual) >> shift, LARGEST_MAGNITUDE) for residual in batch
        ]
    rans.finish()
    return quantized.values(numpy.array(residuals, numpy.int64).astype(quantized.unsigned))


def context_taps(chunk):
    """Weights by distance."""
    rank = len(chunk.extents)
    if rank == 1:
        return {distance: 2 for distance in range(32, 48)}
    lags = chunk.lags()
    row = lags[-2]
    y = -(-33 // row) * row
    z = lags[-3] if rank >= 3 else 0
    t = lags[-4] if rank == 4 else 0
    if rank == 4 and z >= y + row and t >= z + row:
        return {y - 1: 4, y: 5, y + 1: 4, z - 1: 2, z: 4, z + 1: 2, t - 1: 2, t: 6, t + 1: 3}
    if rank >= 3 and z >= y + row:
        return {y - 1: 6, y: 8, y + 1: 6, z - 1: 3, z: 6, z + 1: 3}
    return {y - 1: 8, y: 12, y + 1: 8, y + row: 4}


# interp

ROOT_CONTEXT, EXACT_POINT_CONTEXT = 60, 61
LARGEST_NEIGHBOUR = 255
# Growth of a step's divisor per level, the most
FINENESS = [(1, 1), (1.125, 4), (1.1875, 4), (1.25, 4), (1.5, 4), (2, 8)]

# By which of the neighbours a, c, d exist: the cubic's weights of a, b, c, d in sixteenths, the
# linear's of b and c.
NEIGHBOUR_WEIGHTS = {
    (True, True, True): (-1, 9, 9, -1, 0.5, 0.5),
    (True, True, False): (-1, 10, 7, 0, 0.5, 0.5),
    (False, True, True): (0, 7, 10, -1, 0.5, 0.5),
    (False, True, False): (0, 8, 8, 0, 0.5, 0.5),
    (True, False, False): (-8, 24, 0, 0, 1, 0),
    (False, False, False): (0, 16, 0, 0, 1, 0),
}


def decode_interp(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    quantized.require_plain_codes(payload.what)
    quantized.require_no_signs(payload.what)
    scale = LogScale(chunk.header) if chunk.header.is_pointwise() else None
    require(scale is None or scale.step >= (1 if scale.is_single else 1 << 35),
            f"{payload.what}: the bound is too tight for 32-bit codes")
    packed = payload.number("B")
    frozen, fineness, any_stencil = packed & 15, packed >> 4 & 7, bool(packed & 128)
    require(scale is None or fineness == 0, f"{payload.what}: fineness under a point-wise bound")
    rank = len(chunk.extents)
    require(frozen >> rank == 0, f"{payload.what}: a missing axis is frozen")
    require(fineness < len(FINENESS), f"{payload.what}: fineness {fineness}")
    extents = [1] * (4 - rank) + chunk.extents
    is_frozen = [False] * (4 - rank) + [bool(frozen >> axis & 1) for axis in range(rank)]
    longest = max([extent for extent, cold in zip(extents, is_frozen) if not cold], default=1)
    levels = (longest - 1).bit_length()
    dtype = chunk.header.dtype
    schedule = []  # of each level from coarse to fine: its classes with their bases
    for level in reversed(range(levels)):
        grid = StencilGrid(extents, is_frozen, 1 << level)
        schedule.append((level, grid, [
            (box, odd_axes) + ((odd_axes, False, None) if scale else
                               read_base(payload, extents, box, odd_axes,
                                         grid if any_stencil else None))
            for box, odd_axes in interpolated_classes(extents, is_frozen, 1 << level)]))

    rans = RansReader(payload, quantized.bits())

    def step_of(level):
        growth, most = FINENESS[fineness]
        factor = 1.0
        for _ in range(level):
            factor = factor * growth if factor < most else factor
        return None if scale else quantized.step / dtype.type(min(factor, most))

    is_exact = quantized.is_exact.reshape(extents)
    values = numpy.zeros(extents, dtype)  # of exact points: what they count as
    codes = numpy.zeros(extents, numpy.int32)

    def read_codes(box, contexts):
        contexts = numpy.where(is_exact[box], EXACT_POINT_CONTEXT, contexts)
        residuals = numpy.array(rans.segment(contexts.reshape(-1).tolist()), numpy.int32)
        codes[box] = residuals.reshape(contexts.shape)

    with numpy.errstate(all="ignore"):
        roots = tuple(slice(None) if cold else slice(0, 1) for cold in is_frozen)
        read_codes(roots, ROOT_CONTEXT)
        if scale:
            root_values, previous = [], numpy.zeros(1, dtype)
            for code, exact in zip(codes[roots].reshape(-1), is_exact[roots].reshape(-1)):
                if not exact:
                    previous = scale.restore(numpy.array([code], numpy.int32), previous)
                root_values.append(previous[0])
            values[roots] = numpy.array(root_values, dtype).reshape(values[roots].shape)
        else:
            steps = codes[roots].reshape(-1).astype(dtype) * step_of(levels)
            values[roots] = numpy.add.accumulate(steps, dtype=dtype).reshape(values[roots].shape)

        for level, grid, classes in schedule:
            step = step_of(level)
            for box, odd_axes, along, is_linear, weights in classes:
                prediction, contexts = predict(values, codes, box, along, is_linear, step,
                                               chunk.header.bound)
                if weights:
                    prediction = grid.correct(values, odd_axes, weights, prediction)
                read_codes(box, contexts + min(level, 2) * 20)
                if scale:  # exact points too, whose code is 0
                    values[box] = scale.restore(codes[box], prediction)
                    continue
                values[box] = prediction + codes[box].astype(dtype) * step
                as_neighbour = numpy.where(numpy.isfinite(prediction), prediction, dtype.type(0))
                values[box] = numpy.where(is_exact[box], as_neighbour, values[box])
    rans.finish()
    values[is_exact] = quantized.exact_values
    return values.reshape(-1)


def interpolated_classes(extents, is_frozen, spacing):
    """The classes that have points: each its box of slices and its odd axes, slowest first."""
    for is_odd in itertools.product((False, True), repeat=4):
        odd_axes = [axis for axis in range(4) if is_odd[axis]]
        if not odd_axes or any(is_frozen[axis] or extents[axis] <= spacing for axis in odd_axes):
            continue
        yield tuple(slice(None) if cold else slice(spacing if odd else 0, None, 2 * spacing)
                    for cold, odd in zip(is_frozen, is_odd)), odd_axes


def read_base(payload, extents, box, odd_axes, grid):
    """The axes that a class is interpolated along, whether linearly, and the weights of its
    stencil if it has one, that of the interpolation first. Without a grid none may have."""
    if math.prod(len(range(*part.indices(extent))) for part, extent in zip(box, extents)) < 512:
        return odd_axes, False, None
    packed = payload.number("B")
    along = [axis for place, axis in enumerate(odd_axes) if packed >> place & 1]
    require(along and packed < 64 and (packed & 15) >> len(odd_axes) == 0,
            f"{payload.what}: base {packed}")
    if not packed & 32:
        return along, bool(packed >> 4), None
    require(grid is not None and all(grid.is_active[axis] for axis in odd_axes),
            f"{payload.what}: a stencil for axes {odd_axes}")
    shift = payload.number("B")
    weights = [payload.svarint() for _ in grid.pairs(odd_axes)]
    require(shift <= 20 and all(-1 << 24 <= weight <= 1 << 24 for weight in weights),
            f"{payload.what}: weights of a stencil")
    weights.insert(0, (1 << shift) - sum(weights))
    return along, bool(packed >> 4 & 1), (weights, shift)


class StencilGrid:
    """The points around those of a class that its trained stencil takes, on the grid of a level."""

    MOST_PAIRS = 12

    def __init__(self, extents, is_frozen, spacing):
        self.is_frozen = is_frozen
        self.steps = [1 if cold else spacing for cold in is_frozen]
        self.is_active = [-(-extent // step) >= 8 for extent, step in zip(extents, self.steps)]
        self.reach = 5 if sum(self.is_active) <= 2 else 3

    def parities(self, odd_axes, offset):
        """Of the point at that distance from one of a class: 1 along the axes where it is odd."""
        return tuple(0 if cold else ((axis in odd_axes) + far) % 2
                     for axis, (cold, far) in enumerate(zip(self.is_frozen, offset)))

    def pairs(self, odd_axes):
        """One offset of each pair, nearest first."""
        own = self.parities(odd_axes, (0, 0, 0, 0))
        most = [(1 if cold else (self.reach + 1) // 2) if active else 0
                for cold, active in zip(self.is_frozen, self.is_active)]
        offsets = [tuple(far if other == axis else 0 for other in range(4))
                   for axis in range(4) if self.is_active[axis]
                   for far in range(1, self.reach + 1)]
        offsets += [offset for offset in itertools.product(*(range(-far, far + 1) for far in most))
                    if offset > (0, 0, 0, 0) and 4 - offset.count(0) > 1]

        def distance(offset):
            square = sum(far * far * (4 if cold else 1)
                         for far, cold in zip(offset, self.is_frozen))
            return (6 if offset.count(0) == 3 else 10) * square, offset

        known = [offset for offset in offsets if self.parities(odd_axes, offset) < own]
        return sorted(known, key=distance)[: self.MOST_PAIRS]

    def correct(self, values, odd_axes, weights_and_shift, prediction):
        weights, shift = weights_and_shift
        number = values.dtype.type
        scale = number(1) / number(2 << shift)
        total = prediction * (number(weights[0]) * (number(2) * scale))
        for weight, offset in zip(weights[1:], self.pairs(odd_axes)):
            opposite = tuple(-far for far in offset)
            both = (self.neighbours(values, odd_axes, offset, prediction.shape) +
                    self.neighbours(values, odd_axes, opposite, prediction.shape))
            total = total + both * (number(weight) * scale)
        return total

    def neighbours(self, values, odd_axes, offset, shape):
        parities = self.parities(odd_axes, offset)
        points = values[tuple(slice(None) if cold else slice(parity * step, None, 2 * step)
                              for cold, parity, step in zip(self.is_frozen, parities, self.steps))]
        for axis in (3, 2, 1, 0):
            first = offset[axis]
            if not self.is_frozen[axis]:
                first = ((axis in odd_axes) + first) // 2
            points = continued(numpy.moveaxis(points, axis, -1), first, shape[axis])
            points = numpy.moveaxis(points, -1, axis)
        return points


def continued(lines, first, count):
    """`count` points of lines from `first` on, which go on in straight lines at both ends."""
    length = lines.shape[-1]
    points = [lines[..., place] for place in range(length)]
    start = points[0] - points[min(1, length - 1)]
    end = points[-1] - points[max(length - 2, 0)]
    before, behind = [points[0]], points
    while len(before) <= max(0, -first):
        before.append(before[-1] + start)
    while len(behind) < first + count:
        behind.append(behind[-1] + end)
    return numpy.stack((before[:0:-1] + behind)[len(before) - 1 + first:][:count], axis=-1)


def predict(values, codes, box, odd_axes, is_linear, step, bound):
    """The predictions of the points in a box, and their contexts but for the level's part.

    Without a step the bound is a point-wise one.
    """
    number = values.dtype.type
    share = number(1) / number(len(odd_axes))
    total = bend = spread = number(0)
    code_sum = 0
    chosen = []
    for axis in odd_axes:
        count = len(range(*box[axis].indices(values.shape[axis])))
        # The lines of known points along the axis, which is made the last one for a while.
        line_box = tuple(slice(0, None, box[axis].step) if other == axis else part
                         for other, part in enumerate(box))
        lines = numpy.moveaxis(values[line_box], axis, -1)
        cubic, linear = interpolate(lines, count, is_fastest=axis == 3)
        chosen.append(numpy.moveaxis(linear if is_linear else cubic, -1, axis))
        total = total + chosen[-1]
        bend = bend + numpy.moveaxis(numpy.abs(cubic - linear), -1, axis)

        sizes = numpy.minimum(numpy.abs(codes[line_box].astype(numpy.int64)), LARGEST_NEIGHBOUR)
        sizes = numpy.moveaxis(sizes, axis, -1)
        after = numpy.concatenate([sizes[..., 1:], sizes[..., -1:]], axis=-1)
        code_sum = code_sum + numpy.moveaxis((sizes + after)[..., :count], -1, axis)

    prediction = total * share
    for interpolant in chosen:
        spread = spread + numpy.abs(interpolant - prediction)

    bent = bend * number(0.35) + spread * number(0.25)
    if step is None:
        doubt, size = bent * share, numpy.abs(prediction)
        reference = numpy.where(doubt > size, doubt, size)
        inverse_step = number(1) / (number(2) * number(bound))
        steps = (doubt * inverse_step / reference).astype(numpy.float32)
        signed = numpy.copysign(reference, prediction)
        prediction = numpy.where(reference <= numpy.finfo(number).max, signed, number(0))
        weight = number(0.1)
    else:
        steps = (bent * (share * (number(1) / step))).astype(numpy.float32)
        weight = number(0.2)
    around = code_sum.astype(numpy.float32) * numpy.float32(share * weight)
    activity = (steps + around) + numpy.float32(0.03125)
    bits = activity.view(numpy.uint32).astype(numpy.int64)
    return prediction, numpy.clip((bits >> 22) - 244, 0, 19)


def interpolate(lines, count, is_fastest):
    """Cubic and linear of the `count` points behind the first ones of lines of known points."""
    known = lines.shape[-1]
    first, second = lines[..., :1], lines[..., 1:2] if known > 1 else lines[..., :1]
    last, before_last = lines[..., -1:], lines[..., -2:-1] if known > 1 else lines[..., -1:]
    if is_fastest:
        slope = last - before_last
        ends = [first + (first - second), last + slope, (last + slope) + slope]
        exist = [(True, True, True)] * count
    else:
        ends = [numpy.zeros_like(first)] * 3
        exist = [(j > 0, j + 1 < known, j + 2 < known) for j in range(count)]
    line = numpy.concatenate([ends[0], lines, ends[1], ends[2]], axis=-1)
    a, b, c, d = (line[..., place : place + count] for place in range(4))
    weights = numpy.array([NEIGHBOUR_WEIGHTS[which] for which in exist], lines.dtype).T
    w0, w1, w2, w3 = weights[:4] / lines.dtype.type(16)
    u0, u1 = weights[4:]
    return (b * w1 + c * w2) + (a * w0 + d * w3), b * u0 + c * u1


# fre

FRE_STREAMS, FRE_ONE_STREAM_BELOW = 8, 4096


def decode_fre(payload, chunk):
    require(chunk.header.is_pointwise(), f"{payload.what}: fre without a point-wise bound")
    is_single = chunk.header.dtype == "<f4"
    mantissa_bits, exponent_bits = (23, 8) if is_single else (52, 11)
    flags = payload.number("B")
    require(flags <= 7, f"{payload.what}: reserved flags are set")
    kept = payload.number("B")
    require(kept <= (20 if is_single else 45), f"{payload.what}: {kept} mantissa bits")
    rank_of = list(range(10))
    if flags & 4:
        rank_of = [byte >> shift & 15 for byte in payload.bytes(5) for shift in (0, 4)]
        require(sorted(rank_of) == list(range(10)), f"{payload.what}: code words {rank_of}")
    is_exact, exact_values = read_exact_points(payload, chunk) if flags & 1 else (None, None)

    streams = 1 if chunk.count < FRE_ONE_STREAM_BELOW else FRE_STREAMS
    sizes = [payload.varint() for _ in range(streams - 1)]
    sizes.append(payload.left() - sum(sizes))
    require(sizes[-1] >= 0, f"{payload.what}: streams of {sizes} bytes")
    length = -(-chunk.count // streams)
    patterns = []
    for size in sizes:
        count = min(length, chunk.count - len(patterns))
        patterns += fre_stream(payload.bytes(size), count, kept, mantissa_bits, exponent_bits,
                               rank_of, payload.what)
    values = numpy.array(patterns, chunk.unsigned()).view(chunk.header.dtype)
    if is_exact is not None:
        values[is_exact] = exact_values
    return values


def fre_stream(data, count, kept, mantissa_bits, exponent_bits, rank_of, what):
    """The bit patterns of one stream's values."""
    bits = iter(unpack_bits(data).tolist())

    def take(width):
        taken = list(itertools.islice(bits, width))
        require(len(taken) == width, f"{what}: a bit string ends too early")
        return sum(bit << place for place, bit in enumerate(taken))

    def take_rank():
        ones = 0
        while ones < 6 and take(1):
            ones += 1
        return 6 + 2 * take(1) + take(1) if ones == 6 else ones

    sign = exponent = mantissa = 0
    patterns = []
    dropped = mantissa_bits - kept
    for _ in range(count):
        if take(1):
            sign, mantissa = take(1), take(kept) << dropped
            difference = rank_of.index(take_rank())
            if difference and take(1):
                difference = -difference
            exponent = (exponent + difference) % (1 << exponent_bits)
        elif take(1):
            is_normal, sign = take(1), take(1)
            exponent = take(exponent_bits) if is_normal else 0
            mantissa = take(kept) << dropped if is_normal else take(mantissa_bits)
        patterns.append((sign << exponent_bits | exponent) << mantissa_bits | mantissa)
    padding = list(bits)
    require(len(padding) < 8 and not any(padding), f"{what}: bits after the last value")
    return patterns


# causal

NOT_CODED_CONTEXT = 32
WINDOW = 32  # rows under way at a time
TRAIL, ABOVE, BELOW = 2, 2, 1  # padding


def decode_causal(payload, chunk):
    quantized = QuantizedChunk(payload, chunk)
    require(not quantized.lags and quantized.bits() == 32 and -(1 << 31) <= quantized.base < 1 << 31,
            f"{payload.what}: its head has orders, 64-bit codes or a base that is too large")
    fast, shift = payload.number("B"), payload.number("B")
    require(fast <= len(chunk.extents) and shift < 31, f"{payload.what}: axis {fast}, shift {shift}")
    class_weights = [payload.number("B") for _ in range(5)]
    spread_weight, floor = payload.number("B"), payload.number("B")
    front = CausalFront(chunk, fast)
    kinds = sorted({kind for _, _, kind in front.runs})
    taps = {kind: front.taps(kind) for kind in kinds}
    number = chunk.header.dtype.type
    weights = {kind: read_stencil(payload, len(taps[kind]), number) for kind in kinds}
    rans = RansReader(payload, 32)

    step = quantized.step
    spread_scale = (number(1) / step) * (number(spread_weight) / (number(256) * number(1 << shift)))
    cells = numpy.full(front.shape, number(quantized.base) * step)
    sizes = numpy.zeros(front.shape, numpy.int64)  # magnitudes of the codes
    values = numpy.zeros(chunk.count, chunk.header.dtype)

    def predict_cell(row, column, kind):
        near = [cells[row + rows, column + columns] for rows, columns in taps[kind]]
        sums = [number(0), number(0)]
        for place in reversed(range(len(weights[kind]))):
            sums[place % 2] = sums[place % 2] + near[place] * weights[kind][place]
        prediction = sums[0] + sums[1]
        if not numpy.isfinite(prediction):
            prediction = number(0)
        spread = number(0)
        for value in reversed(near[: min(4, len(weights[kind]))]):
            spread = spread + abs(value - prediction)
        around = sum(class_weights[which] * int(sizes[row + rows, column + columns])
                     for which, rows, columns in front.context_taps(kind)) % (1 << 16)
        activity = ((numpy.float32(spread * spread_scale) + numpy.float32(around) / numpy.float32(64))
                    + numpy.float32(floor) / numpy.float32(256))
        context = (int(activity.view(numpy.uint32)) >> 22) - 242
        return prediction, min(max(context, 0), 31)

    with numpy.errstate(all="ignore"):
        for kind, lanes in front.steps(cells):
            contexts, predictions = [NOT_CODED_CONTEXT] * WINDOW, {}
            for lane, (row, column, place) in lanes.items():
                predictions[lane], context = predict_cell(row, column, kind)
                if not quantized.is_exact[place]:
                    contexts[lane] = context
            codes = rans.segment(contexts)
            for lane, (row, column, place) in lanes.items():
                cells[row, column] = predictions[lane] + number(codes[lane]) * step
                sizes[row, column] = min(abs(codes[lane]) >> shift, LARGEST_NEIGHBOUR)
                values[place] = cells[row, column]
    rans.finish()
    values[quantized.is_exact] = quantized.exact_values
    return values


def read_stencil(payload, most, number):
    """The weights of the taps."""
    count = payload.number("B")
    require(1 <= count <= most, f"{payload.what}: {count} taps")
    shift = payload.number("B") if count > 1 else 0
    require(shift <= 20, f"{payload.what}: weights in 2^-{shift}")
    others = [payload.svarint() for _ in range(count - 1)]
    require(all(abs(weight) <= 1 << 24 for weight in others), f"{payload.what}: a weight is too large")
    return [number(weight) / number(1 << shift) for weight in [(1 << shift) - sum(others)] + others]


class CausalFront:
    """The padded rows of a chunk, and the order in which their cells are visited."""

    def __init__(self, chunk, fast):
        rank = len(chunk.extents)
        axes = [axis for axis in range(rank) if axis != fast and chunk.extents[axis] > 1]
        self.is_line = fast == rank or not axes
        if self.is_line:
            length = -(-chunk.count // WINDOW)
            self.extents = [1, 1, 1, length]
            self.lead, self.skew, self.plane_rows, self.planes = 6, 0, WINDOW, 1
            self.row_starts = [min(row * length, chunk.count) for row in range(WINDOW)]
            self.row_lengths = [min(length, chunk.count - start) for start in self.row_starts]
            self.along = 1
            self.runs = [(0, WINDOW, 0)]
            self.shape = (WINDOW, 6 + length + TRAIL)
            return
        lags = chunk.lags()
        axes = [None] * (3 - len(axes)) + axes + [fast]
        self.extents = [1 if axis is None else chunk.extents[axis] for axis in axes]
        steps = [0 if axis is None else lags[axis] for axis in axes]
        self.along = steps[3]
        self.lead = 2 if self.extents[1] > 1 else 6
        columns = self.lead + self.extents[3] + TRAIL
        self.skew = max(2, -(-columns // WINDOW))
        self.plane_rows = ABOVE + self.extents[2] + BELOW
        before = 1 if self.extents[1] > 1 else 0
        self.planes = self.extents[1] + before
        self.shape = (self.extents[0] * self.planes * self.plane_rows, columns)
        self.row_starts = [None] * self.shape[0]  # of padding: None
        self.runs = []
        for w in range(self.extents[0]):
            first = (w * self.planes + before) * self.plane_rows
            for z in range(self.extents[1]):
                for y in range(self.extents[2]):
                    self.row_starts[first + z * self.plane_rows + ABOVE + y] = (
                        w * steps[0] + z * steps[1] + y * steps[2])
            kind = 2 if w else 0
            self.runs.append((first, first + self.plane_rows, kind))
            if before:
                self.runs.append((first + self.plane_rows,
                                  first + self.extents[1] * self.plane_rows, kind | 1))

    def rows_apart(self, w, z, y):
        return (w * self.planes + z) * self.plane_rows + y

    def taps(self, kind):
        """Rows and columns to each tap, nearest first."""
        found = []
        for w, z, y, x in itertools.product((-1, 0), (-2, -1, 0), (-2, -1, 0, 1), range(-6, 3)):
            axes = [offset for offset in (w, z, y, x) if offset]
            reach = max((abs(offset) for offset in axes), default=0)
            if (not axes or x < -self.lead or (w and not kind & 2) or (z and not kind & 1)
                    or (w and z == -2) or (self.is_line and y)
                    or (len(axes) > 1 and reach > 2) or (len(axes) > 2 and reach > 1)):
                continue
            if w == z == 0 and (y > 0 or (x >= 0 if y == 0 else x > -y)):
                continue
            square = sum(offset * offset for offset in axes) * (6 if len(axes) == 1 else 10)
            found.append((square, (-w, -z, -y, -x)))
        nearest = [tuple(-offset for offset in tap) for _, tap in sorted(found)[:24]]
        return [(self.rows_apart(w, z, y), x) for w, z, y, x in nearest]

    def context_taps(self, kind):
        """Class, rows and columns of each magnitude that counts."""
        if self.is_line:
            return [(0, 0, -1), (1, 0, -2), (2, 0, -3), (2, 0, -4)]
        z, w = (-1, 0) if kind & 1 else (0, -1)
        taps = [(0, 0, -1), (1, -1, 0), (2, -1, -1), (2, -1, 1), (2, 0, -2), (2, -2, 0)]
        if kind & 1:
            taps.append((3, self.rows_apart(0, -1, 0), 0))
        if kind & 2:
            taps.append((3, self.rows_apart(-1, 0, 0), 0))
        if kind:
            taps += [(4, self.rows_apart(w, z, y), x) for y, x in ((0, -1), (0, 1), (-1, 0), (1, 0))]
        return taps

    def steps(self, cells):
        """Each step's kind and its lanes: row, column and place in the chunk. Fills in padding."""
        if self.is_line:
            for x in range(self.extents[3]):
                yield 0, {row: (row, self.lead + x, self.row_starts[row] + x)
                          for row in range(WINDOW) if x < self.row_lengths[row]}
                if x == 0:
                    cells[:, : self.lead] = cells[:, self.lead : self.lead + 1]
            return
        for begin, end, kind in self.runs:
            for time in range(self.skew * begin, self.skew * (end - 1 + WINDOW)):
                first_row = time // self.skew - (WINDOW - 1)
                lanes, padding = {}, []
                for lane in range(WINDOW):
                    row = first_row + lane
                    column = time - self.skew * row
                    if not begin <= row < end or column >= self.shape[1]:
                        continue
                    x = column - self.lead
                    if self.row_starts[row] is None or not 0 <= x < self.extents[3]:
                        padding.append((row, column))
                    else:
                        lanes[lane] = row, column, self.row_starts[row] + x * self.along
                if lanes:
                    yield kind, lanes
                for row, column in padding:
                    source = self.source_of_padding(row, column, kind)
                    if source[1] >= 0:
                        cells[row, column] = cells[source]
            if self.planes > 1 and not kind & 1:
                cells[begin - self.plane_rows : end - self.plane_rows] = cells[begin:end]

    def source_of_padding(self, row, column, kind):
        if self.row_starts[row] is not None:
            return (row - 1, column + 1) if column < self.lead else (row, column - 1)
        place = row % self.plane_rows
        if place >= ABOVE:
            return row - 1, column
        to_first = ABOVE - place
        if kind == 0:  # the plane's first row, a step ago
            return row + to_first, column - self.skew * to_first - 1
        plane_before = self.plane_rows * (1 if kind & 1 else self.planes)
        return row + to_first - plane_before, column


# Context rANS section

ESCAPE = -32
TOKENS = range(-32, 32)
SLOT_ORDER = [0, *(token for token in TOKENS if token != 0)]
SLOT_BITS = 12
LOWEST_STATE, PIECE_BITS = 1 << 15, 15

FAMILY = [  # quarters of the exponent, and the rates
    (1, "490983 473079 455535 438369 421595 405228 389278 373754 358662 344004 329779 315982 "
        "302606 289638 277063 264863 253017 241500 230285 219344 208647 198164 187865"),
    (2, "440645 419352 398273 377436 356870 336607 316681 297123 277966 259238 240964 223166 "
        "205857 189046 172739 156938 141657 126924 112794 99360 86747 75093 64518"),
    (4, "545113 499687 476974 454261 431548 408835 386122 363410 340698 317987 295278 272573 "
        "249875 227194 204545 181959 159497 137279 115523 94610 75118 57761 43146 31492 22611 "
        "16102 11442"),
    (6, "339978 293842 270546 247017 223168 198886 174040 148522 122363 96028 70823 48831 31759 "
        "19836 12098 7273 4316 2569"),
    (8, "246883 222906 198368 173004 146421 118107 87899 58126 34349 18850 9904 5080 2573 1285 "
        "636"),
]
MEMBERS = [None] + [(quarters, int(rate)) for quarters, rates in FAMILY for rate in rates.split()]
# The first and the last member of each shape; the last has this level.
SHAPES = [(min(shape), max(shape)) for quarters, _ in FAMILY
          for shape in [[i for i, member in enumerate(MEMBERS) if member and member[0] == quarters]]]
TOP_LEVEL = 26
EXPECTED, UNUSED_CONTEXT, SHIFT, MEMBER, REPEATED, STORED_TABLE, CHANGED_TABLE = range(7)


def token_class(size):
    """How many extra bits a token of this magnitude has, and its first value."""
    if size < 16:
        return 0, size
    extra = 3 + (size - 16) // 2
    return extra, 2 + size % 2 << extra


TOKEN_CLASSES = {token: token_class(abs(token)) for token in TOKENS}


def exp_negative(y):
    if y > 60:
        return 0.0
    z, s = y / 256, 1.0
    for k in range(8, 0, -1):
        s = 1 + s * z / k
    r = 1 / s
    for _ in range(8):
        r = r * r
    return r


def power(quarters, c):
    return {1: math.sqrt(math.sqrt(c)), 2: math.sqrt(c), 4: c, 6: c * math.sqrt(c),
            8: c * c}[quarters]


@functools.lru_cache(maxsize=None)
def family_distribution(number):
    """The frequencies by token of a member of the family."""
    frequency = dict.fromkeys(TOKENS, 0)
    if number == 0:
        frequency.update({ESCAPE: 1, 0: 4095})
        return frequency
    quarters, rate = MEMBERS[number]
    weights = []
    for size in range(33):
        extra, first = token_class(size)
        middle = first + (2.0**extra - 1) / 2
        weights.append(2.0**extra * exp_negative(rate / 65536 * power(quarters, middle)))
    total = weights[0]
    for weight in weights[1:]:
        total += 2 * weight

    last = 0
    for size in range(1, 32):
        rounded = max(math.floor(weights[size] * 4096 / total + 0.5), 1 if size == 1 else 0)
        if rounded < 1:
            break
        frequency[size] = frequency[-size] = rounded
        last = size
    tail = 0.0
    for weight in weights[last + 1 :]:
        tail += 2 * weight
    frequency[ESCAPE] = max(1, math.floor(tail * 4096 / total + 0.5))
    frequency[0] = 4096 - sum(frequency.values())
    return frequency


class BitString:
    """Numbers of any width from the bytes of a reader, least significant bits first."""

    def __init__(self, payload):
        self.payload, self.what = payload, payload.what
        self.waiting = []  # the bits left of the byte that was last read, the next one last

    def number(self, width):
        value = 0
        for place in range(width):
            if not self.waiting:
                byte = self.payload.number("B")
                self.waiting = [byte >> bit & 1 for bit in reversed(range(8))]
            value |= self.waiting.pop() << place
        return value

    def unary(self, bit, most):
        """How often the bit comes before the other one."""
        count = 0
        while self.number(1) == bit:
            count += 1
            require(count <= most, f"{self.what}: a number in unary is too large")
        return count

    def finish(self):
        require(not any(self.waiting), f"{self.what}: bits that pad a byte are not 0")


def read_distribution(bits, reference):
    """The frequencies by token of a stored table, told from the reference's."""
    told, is_symmetric, is_fine, low_bits = (bits.number(width) for width in (5, 1, 1, 2))
    step_bits = 3 if is_fine else 2
    steps = 1 << step_bits
    largest_code = 14 - step_bits << step_bits
    weights = dict.fromkeys(TOKENS, 0)

    def weight_of_code(code):
        return code if code < steps else steps + code % steps << code // steps - 1

    def code_of_weight(weight):
        if weight < 2 * steps:
            return weight
        below = weight.bit_length() - step_bits - 1
        code = (below + 1 << step_bits) + (weight >> below) % steps
        above = weight_of_code(code + 1) - weight
        return min(code + 1 if weight - weight_of_code(code) > above else code, largest_code)

    def set_weight(token, excess):
        """Also returns by how much its code exceeds the reference's, or the excess given."""
        usual = code_of_weight(reference[token])
        code = min(max(usual + excess, 0), largest_code)
        if abs(token) <= told or token == ESCAPE:
            folded = bits.unary(1, 2 * largest_code) << low_bits
            folded |= bits.number(low_bits)
            code += -(folded + 1) // 2 if folded % 2 else folded // 2
            require(0 <= code <= largest_code, f"{bits.what}: code {code} in a stored table")
        else:
            code = max(code, 1) if usual > 0 else 0
        weights[token] = weight_of_code(code)
        return code - usual if code > 0 and abs(token) <= told else excess

    set_weight(ESCAPE, 0)
    require(weights[ESCAPE] > 0, f"{bits.what}: a stored table without the escape")
    positive = negative = set_weight(0, 0)
    for size in range(1, 32):
        positive = set_weight(size, positive)
        if is_symmetric:
            weights[-size] = weights[size]
        else:
            negative = set_weight(-size, negative)

    total = sum(weights.values())
    frequency = {token: max(1, (weight * 4096 + total // 2) // total) if weight else 0
                 for token, weight in weights.items()}
    largest = max(TOKENS, key=lambda token: frequency[token])  # the first among equals
    frequency[largest] += 4096 - sum(frequency.values())
    require(1 <= frequency[largest] <= 4095, f"{bits.what}: frequencies of a stored table")
    return frequency


class RansReader:
    """Reads a context rANS section, to the end of the payload; it has at least one residual."""

    def __init__(self, payload, bits):
        self.what, self.bits = payload.what, bits
        lanes_log2 = payload.number("B")
        require(3 <= lanes_log2 <= 5, f"{self.what}: 2^{lanes_log2} lanes")
        self.lanes = 1 << lanes_log2
        context_count = payload.number("B")
        require(context_count <= 64, f"{self.what}: {context_count} contexts")
        # Of each context: its shift, and of each token, in the order of slots, start and frequency.
        bits = BitString(payload)
        self.shape, self.level, self.shift = 2, -1, 0  # of the context before
        self.frequency = family_distribution(0)
        self.contexts = [self.read_context(bits) for _ in range(context_count)]
        self.states = [self.read_state(bits) for _ in range(self.lanes)]
        bits.finish()
        words = payload.rest()
        require(len(words) % 2 == 0, f"{self.what}: half a word at the end")
        self.words = iter(numpy.frombuffer(words, "<u2").tolist())

    def read_context(self, bits):
        kind = self.read_kind(bits)
        shift = self.shift
        if kind == SHIFT:
            shift = bits.number(6) if bits.number(1) else shift + 1
            require(shift <= 63, f"{self.what}: shift {shift} of a context")
            kind = self.read_kind(bits)
            require(kind not in (SHIFT, UNUSED_CONTEXT), f"{self.what}: what follows a shift")
        self.level = min(max(self.level + 1 - 2 * (shift - self.shift), 0), TOP_LEVEL)
        self.shift = shift
        if kind == UNUSED_CONTEXT:
            return None
        if kind == EXPECTED:
            self.frequency = family_distribution(self.member_here())
        elif kind == MEMBER:
            self.frequency = family_distribution(self.read_member(bits))
        elif kind == STORED_TABLE:
            self.frequency = read_distribution(bits, family_distribution(self.read_member(bits)))
        elif kind == CHANGED_TABLE:
            self.frequency = read_distribution(bits, self.frequency)
        frequencies = [self.frequency[token] for token in SLOT_ORDER]
        starts = list(itertools.accumulate(frequencies, initial=0))[:-1]
        return shift, starts, frequencies

    @staticmethod
    def read_kind(bits):
        kind = bits.number(2)
        return kind + 3 * bits.number(1) if kind else EXPECTED

    def read_member(self, bits):
        shape = bits.number(3) if bits.number(1) else self.shape
        if shape == len(SHAPES):
            return 0
        require(shape < len(SHAPES), f"{self.what}: shape {shape}")
        self.shape = shape
        if bits.number(1):
            is_negative = bits.number(1)
            more = bits.unary(0, 4)
            change = 1 << more | bits.number(more)
            self.level += -change if is_negative else change
        return self.member_here()

    def member_here(self):
        first, last = SHAPES[self.shape]
        member = last - (TOP_LEVEL - self.level)
        require(first <= member <= last, f"{self.what}: level {self.level} of shape {self.shape}")
        return member

    @staticmethod
    def read_state(bits):
        width = 15 + bits.number(4)
        return 1 << width | bits.number(width)

    def refill(self, lane, state):
        if state < LOWEST_STATE:
            word = next(self.words, None)
            require(word is not None, f"{self.what}: a word is missing")
            state = (state << 16) + word
        self.states[lane] = state

    def take(self, lane, count):
        state = self.states[lane]
        self.refill(lane, state >> count)
        return state & (1 << count) - 1

    def segment(self, contexts):
        """The residuals that have these contexts, a segment or whole groups of one."""
        residuals = []
        for begin in range(0, len(contexts), self.lanes):
            residuals += self.group(contexts[begin : begin + self.lanes])
        return residuals

    def group(self, contexts):
        shifts, tokens, raw_bits = [], [], []
        for lane, context in enumerate(contexts):
            described = self.contexts[context] if context < len(self.contexts) else None
            require(described, f"{self.what}: context {context} occurs, but is not described")
            shift, starts, frequencies = described
            state = self.states[lane]
            slot = state & (1 << SLOT_BITS) - 1
            # The last token that starts there or before: those of frequency 0 come before it.
            place = bisect.bisect_right(starts, slot) - 1
            self.refill(lane, frequencies[place] * (state >> SLOT_BITS) + slot - starts[place])
            token = SLOT_ORDER[place]
            shifts.append(shift)
            tokens.append(token)
            raw_bits.append(shift + (0 if token == ESCAPE else TOKEN_CLASSES[token][0]))

        raw = [0] * len(contexts)
        for done in range(0, max(raw_bits), PIECE_BITS):
            for lane, count in enumerate(raw_bits):
                if count > done:
                    raw[lane] |= self.take(lane, min(PIECE_BITS, count - done)) << done

        residuals = []
        modulus, half_modulus = 1 << self.bits, 1 << self.bits - 1
        for lane, (shift, token) in enumerate(zip(shifts, tokens)):
            if token == ESCAPE:
                high = self.escaped(lane)
            else:
                high = TOKEN_CLASSES[token][1] + (raw[lane] >> shift)
                high = -high if token < 0 else high
            low = raw[lane] & (1 << shift) - 1
            residual = (high << shift) + low - (1 << shift >> 1)
            residuals.append((residual + half_modulus) % modulus - half_modulus)
        return residuals

    def escaped(self, lane):
        length = self.take(lane, 6)
        size = (1 << length) - 1
        for done in range(0, length, PIECE_BITS):
            size += self.take(lane, min(PIECE_BITS, length - done)) << done
        return -size if self.take(lane, 1) else size

    def finish(self):
        require(all(state == LOWEST_STATE for state in self.states), f"{self.what}: a lane does "
                "not end in its first state")
        require(next(self.words, None) is None, f"{self.what}: words are left")


PIPELINES = {1: decode_raw, 2: decode_constant, 3: decode_shuffle, 4: decode_lorenzo,
             5: decode_blockpack, 6: decode_ceresz, 7: decode_ceresz4, 8: decode_contexts,
             9: decode_interp, 10: decode_fre, 11: decode_causal}


# Series


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
