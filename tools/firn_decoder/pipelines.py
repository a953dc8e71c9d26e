"""Section "Payloads" of docs/format.md: the pipelines by their ids.

Each is a function of a payload and its chunk that returns the chunk's values.
"""

from .blockpack import decode_blockpack
from .causal import decode_causal
from .ceresz import decode_ceresz, decode_ceresz4
from .contexts import decode_bits, decode_contexts
from .fre import decode_fre
from .interp import decode_interp
from .lorenzo import decode_lorenzo
from .lossless import decode_constant, decode_raw, decode_shuffle

PIPELINES = {
    1: decode_raw,
    2: decode_constant,
    3: decode_shuffle,
    4: decode_lorenzo,
    5: decode_blockpack,
    6: decode_ceresz,
    7: decode_ceresz4,
    8: decode_contexts,
    9: decode_interp,
    10: decode_fre,
    11: decode_causal,
    12: decode_bits,
}
