"""Draws a slice of a field, of its decoded copy and of the error, side by side, as a PNG.

Python's standard library only.
"""

import math
import struct
import zlib

import bitmap_font

INK = (32, 36, 44)
FAINT = (110, 116, 128)
PAPER = (255, 255, 255)
NOT_A_NUMBER = (200, 200, 200)


def _srgb_from_oklab(lightness, a, b):
    """Oklab is even to the eye: equal steps in it look equally large."""
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b)**3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b)**3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b)**3
    linear = (
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    )
    channels = []
    for value in linear:
        value = min(1.0, max(0.0, value))
        encoded = 12.92 * value if value <= 0.0031308 else 1.055 * value**(1 / 2.4) - 0.055
        channels.append(round(255 * encoded))
    return tuple(channels)


def _ramp(anchors, steps=257):
    """Colours along (position, lightness, chroma, hue in degrees) anchors; an odd number, so that
    there is one for the middle."""
    colours = []
    for step in range(steps):
        at = step / (steps - 1)
        for low, high in zip(anchors, anchors[1:]):
            if at <= high[0]:
                break
        weight = (at - low[0]) / (high[0] - low[0])
        lightness, chroma, hue = (p + weight * (q - p) for p, q in zip(low[1:], high[1:]))
        angle = math.radians(hue)
        colours.append(
            _srgb_from_oklab(lightness, chroma * math.cos(angle), chroma * math.sin(angle)))
    return colours


# Lightness falls evenly from calm (the middle) to strong, in two hues.
FIELD_COLOURS = _ramp([(0.0, 0.27, 0.10, 265), (0.25, 0.58, 0.12, 245), (0.5, 0.985, 0.0, 235),
                       (0.501, 0.985, 0.0, 55), (0.75, 0.64, 0.15, 45), (1.0, 0.30, 0.10, 25)])
ERROR_COLOURS = _ramp([(0.0, 0.36, 0.14, 300), (0.5, 0.98, 0.0, 300), (0.501, 0.98, 0.0, 145),
                       (1.0, 0.40, 0.11, 145)])


class Canvas:

    def __init__(self, width, height):
        self.width = width
        self.height = height
        self.pixels = bytearray(bytes(PAPER) * (width * height))

    def row(self, x, y, pixels):
        start = 3 * (y * self.width + x)
        self.pixels[start:start + len(pixels)] = pixels

    def box(self, x, y, width, height, colour):
        for line in range(y, y + height):
            self.row(x, line, bytes(colour) * width)

    def frame(self, x, y, width, height, colour):
        self.box(x - 1, y - 1, width + 2, 1, colour)
        self.box(x - 1, y + height, width + 2, 1, colour)
        self.box(x - 1, y, 1, height, colour)
        self.box(x + width, y, 1, height, colour)

    def text(self, x, y, text, scale=2, colour=INK):
        for character in text:
            rows = bitmap_font.GLYPHS.get(character, bitmap_font.GLYPHS["?"])
            for row, bits in enumerate(rows):
                for column, bit in enumerate(bits):
                    if bit == "#":
                        self.box(x + column * scale, y + row * scale, scale, scale, colour)
            x += (bitmap_font.WIDTH + 1) * scale

    def centred(self, x, y, width, text, scale=2, colour=INK):
        self.text(x + (width - bitmap_font.text_width(text, scale)) // 2, y, text, scale, colour)

    def save(self, path):

        def block(kind, data):
            checksum = zlib.crc32(kind + data)
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

        stride = 3 * self.width
        lines = b"".join(b"\0" + self.pixels[start:start + stride]
                         for start in range(0, len(self.pixels), stride))
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) +
                       block(b"IDAT", zlib.compress(lines, 9)) + block(b"IEND", b""))


def _paint(canvas, x, y, scale, values, rows, columns, limit, colours):
    """Values from -limit to limit, one square each."""
    last = len(colours) - 1
    for row in range(rows):
        line = bytearray()
        for value in values[row * columns:(row + 1) * columns]:
            if value != value:
                colour = NOT_A_NUMBER
            else:
                at = (value / limit + 1) / 2
                colour = colours[min(last, max(0, round(at * last)))]
            line += bytes(colour) * scale
        for repeat in range(scale):
            canvas.row(x, y + row * scale + repeat, line)


def _scale_bar(canvas, x, y, width, colours, labels):
    height = 14
    line = b"".join(
        bytes(colours[column * (len(colours) - 1) // (width - 1)]) for column in range(width))
    for row in range(height):
        canvas.row(x, y + row, line)
    canvas.frame(x, y, width, height, FAINT)
    canvas.text(x, y + height + 8, labels[0])
    canvas.centred(x, y + height + 8, width, labels[1])
    canvas.text(x + width - bitmap_font.text_width(labels[2], 2), y + height + 8, labels[2])


def draw(path, original, decoded, rows, columns, bound, heading, titles):
    """Writes the picture. `original` and `decoded` are one slice each, row by row; `titles` are
    two lines for each of the three panels."""
    panel = 400
    scale = max(1, panel // max(rows, columns))
    width, height = columns * scale, rows * scale
    margin, gap, top = 32, 40, 118
    canvas = Canvas(2 * margin + 3 * width + 2 * gap, top + height + 76)
    canvas.text(margin, 24, heading[0], scale=3)
    canvas.text(margin, 56, heading[1], scale=2, colour=FAINT)

    errors = [after - before for before, after in zip(original, decoded)]
    limit = max(abs(value) for value in original if value == value) or 1.0
    number = "{:+.3g}".format
    field_labels = (number(-limit), "0", number(limit))
    error_labels = (number(-bound), "0", number(bound))
    panels = ((original, limit, FIELD_COLOURS, field_labels),
              (decoded, limit, FIELD_COLOURS, field_labels), (errors, bound, ERROR_COLOURS,
                                                              error_labels))
    for index, (values, extreme, colours, labels) in enumerate(panels):
        x = margin + index * (width + gap)
        canvas.text(x, top - 24, titles[index][0])
        shift = bitmap_font.text_width(titles[index][0] + "  ", 2)
        canvas.text(x + shift, top - 24, titles[index][1], colour=FAINT)
        _paint(canvas, x, top, scale, values, rows, columns, extreme, colours)
        canvas.frame(x, top, width, height, FAINT)
        _scale_bar(canvas, x, top + height + 16, width, colours, labels)
    canvas.save(path)
