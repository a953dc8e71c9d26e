"""Sections "Tokens" and "Distributions" of docs/format.md.

The static family, and stored tables, which are told by how they differ from another one.
"""

import functools
import math

from .conventions import require

ESCAPE = -32
TOKENS = range(-32, 32)

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


def token_class(size):
    """How many extra bits a token of this magnitude has, and its first value."""
    if size < 16:
        return 0, size
    extra = 3 + (size - 16) // 2
    return extra, 2 + size % 2 << extra


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
