"""Section "Context rANS section" of docs/format.md: contexts, lanes and groups.

The distributions of the contexts are in distributions.py.
"""

import bisect
import itertools

import numpy

from .conventions import BitString, require
from .distributions import (ESCAPE, SHAPES, TOKENS, TOP_LEVEL, family_distribution,
                            read_distribution, token_class)

SLOT_ORDER = [0, *(token for token in TOKENS if token != 0)]
SLOT_BITS = 12
LOWEST_STATE, PIECE_BITS = 1 << 15, 15
TOKEN_CLASSES = {token: token_class(abs(token)) for token in TOKENS}
EXPECTED, UNUSED_CONTEXT, SHIFT, MEMBER, REPEATED, STORED_TABLE, CHANGED_TABLE = range(7)


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
