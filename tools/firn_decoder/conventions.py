"""Section "Conventions" of docs/format.md: numbers, checksums, bit strings, zstd frames.

Everything that a stream holds is read by these, which never go past its end.
"""

import struct

import numpy
import xxhash
import zstandard


class StreamError(ValueError):
    """The bytes are not a valid Firn stream; the message says where and why."""


def require(condition, message):
    if not condition:
        raise StreamError(message)


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


def unpack_bits(data):
    return numpy.unpackbits(numpy.frombuffer(data, numpy.uint8), bitorder="little")


def undo_zigzag(folded):
    """Unsigned numbers to signed ones, modulo their width."""
    one = folded.dtype.type(1)
    return (folded >> one) ^ -(folded & one)


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
