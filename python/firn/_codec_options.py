"""What the Zarr codecs of both versions share: options as JSON, and a chunk to and from bytes."""

from . import _core
from ._api import bound_of, compress_array, decompress
from ._arrays import as_input

_DEFAULTS = {"preset": "balanced", "pipeline": None, "fill": None}


class CodecOptions:
    """The options of a codec, checked and in the form that its metadata keeps."""

    def __init__(self, *, abs=None, rel=None, psnr=None, lossless=False, **others):
        self.bound = bound_of(abs, rel, psnr, lossless)
        unknown = set(others) - set(_DEFAULTS)
        if unknown:
            raise TypeError(f"no option {', '.join(sorted(unknown))}")
        self.others = {**_DEFAULTS, **others}
        _core.check_names(self.others["preset"], self.others["pipeline"])

    def to_json(self):
        kind, value = self.bound
        options = {kind: True if kind == "lossless" else value}
        for name, value in self.others.items():
            if value is not None and value != _DEFAULTS[name]:
                options[name] = float(value) if name == "fill" else value
        return options

    def encode(self, array, *, fill=None, threads=1):
        options = dict(self.others)
        if options["fill"] is None:
            options["fill"] = fill
        return compress_array(
            as_input(array, merge_axes=True), self.bound, chunk=None, threads=threads, **options
        )

    @staticmethod
    def decode(stream, *, threads=1):
        return decompress(stream, threads=threads)
