"""Section "Quantised codes" of docs/format.md.

The head that payloads of most lossy pipelines share, and values of residuals.
"""

import numpy

from .conventions import require
from .differences import read_difference_lags, undo_differences
from .exact_points import read_bit_map, read_exact_points
from .log_scale import LogScale


class QuantizedChunk:
    """Reads the common head of a payload; then values() makes values of residuals."""

    def __init__(self, payload, chunk, is_blockpack=False, may_have_phase=False):
        require(chunk.header.bound > 0, f"{payload.what}: codes, but nothing may be lost")
        self.chunk = chunk
        flags = payload.number("B")
        allowed = 0b0001111 if chunk.header.is_pointwise() else 0b0011011
        if is_blockpack and not chunk.header.is_pointwise():
            allowed |= 0b0100000
        if may_have_phase and not chunk.header.is_pointwise():
            allowed |= 0b10000000
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
        require(finer <= 200, f"{payload.what}: a step finer by {finer}/256")
        self.step = chunk.header.step(finer)
        phase = payload.number("B") if flags & 128 else 0
        require(phase > 0 or not flags & 128, f"{payload.what}: a phase of 0")
        number = numpy.dtype(chunk.header.dtype).type
        self.phase = number(phase) / number(256)
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
                values = (signed.astype(self.chunk.header.dtype) + self.phase) * self.step
        values[self.is_exact] = self.exact_values
        return values
