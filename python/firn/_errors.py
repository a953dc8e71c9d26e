"""The library's errors as exceptions, each also the built-in one that Python's users expect."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._types import Comparison


class ErrorCode(enum.IntEnum):
    """The library's error codes; also the exit codes of the command line."""

    INVALID_ARGUMENT = 1
    UNSUPPORTED = 2
    BUFFER_TOO_SMALL = 3
    NOT_FIRN = 4
    NEWER_VERSION = 5
    TRUNCATED = 6
    CORRUPT = 7
    OUT_OF_MEMORY = 8
    BOUND_EXCEEDED = 9
    CANCELLED = 10
    IO_ERROR = 11


class Error(Exception):
    """What the library reports. `code` is its ErrorCode; str() gives the library's message.

    >>> try:
    ...     firn.decompress(b"something else entirely")
    ... except firn.Error as error:
    ...     print(error.code.name)
    NOT_FIRN
    """

    code: ErrorCode


class InvalidArgument(Error, ValueError):
    """An option, shape or array that cannot be right."""

    code = ErrorCode.INVALID_ARGUMENT


class Unsupported(Error, NotImplementedError):
    """Right, but not something that this build or this stream can do."""

    code = ErrorCode.UNSUPPORTED


class BufferTooSmall(Error, ValueError):
    """The caller's memory cannot hold the result."""

    code = ErrorCode.BUFFER_TOO_SMALL


class NotFirn(Error, ValueError):
    """The bytes are not a Firn stream."""

    code = ErrorCode.NOT_FIRN


class NewerVersion(Error, NotImplementedError):
    """A stream of a format version that this library does not know."""

    code = ErrorCode.NEWER_VERSION


class Truncated(Error, EOFError):
    """The stream ends too early."""

    code = ErrorCode.TRUNCATED


class Corrupt(Error, ValueError):
    """A checksum or a value in the stream is wrong."""

    code = ErrorCode.CORRUPT


class OutOfMemory(Error, MemoryError):
    """Memory is short."""

    code = ErrorCode.OUT_OF_MEMORY


class BoundExceeded(Error, ArithmeticError):
    """verify() found values further from the original than the bound; `comparison` has it all."""

    code = ErrorCode.BOUND_EXCEEDED
    comparison: Comparison | None = None


class Cancelled(Error):
    """The caller asked to stop."""

    code = ErrorCode.CANCELLED


class IoError(Error, OSError):
    """A file cannot be opened, read or written."""

    code = ErrorCode.IO_ERROR


class RatioWarning(UserWarning):
    """A ratio was asked for, and the stream is larger than that by more than 1 %."""


_BY_CODE = {int(kind.code): kind for kind in Error.__subclasses__()}


def error_of(code: int, message: str) -> Error:
    """The exception for a code of the library; the extension module calls this."""
    return _BY_CODE[code](message)
