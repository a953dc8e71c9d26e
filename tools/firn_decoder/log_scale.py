"""Section "Logarithmic scale" of docs/format.md.

Codes under a point-wise relative bound.
"""

import numpy


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
