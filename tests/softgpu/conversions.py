#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All forms of cvt with their results for edge values, computed without rounding.

Writes one line "form INSTRUCTION TO-BITS FROM-BITS N-SOURCES", then a line of
hexadecimal numbers for each case: sources and result, or "nan" where PTX leaves the NaN
open. This shares no method with the code under test: a number is a pair of integers,
n * 2 ** e, and rounding chooses between its two neighbours in the format.
"""

import random
import sys

INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us"]
# name: bits, mantissa bits without the leading one, greatest and least exponent
FLOATS = {
    "f16": (16, 10, 15, -14),
    "bf16": (16, 7, 127, -126),
    "tf32": (32, 10, 127, -126),
    "f32": (32, 23, 127, -126),
    "f64": (64, 52, 1023, -1022),
}
# the same; how far the two of a pair are apart
SMALL = {
    "e4m3": (8, 3, 8, -6),
    "e5m2": (8, 2, 15, -14),
    "e2m3": (6, 3, 2, 0),
    "e3m2": (6, 2, 4, -2),
    "e2m1": (4, 1, 2, 0),
}
SMALL_STEPS = {"e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4, "ue8m0": 8}
CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x7FFFFFFF, "f32": 0x7FFFFFFF}
INTEGER_ROUNDS = ["rni", "rzi", "rmi", "rpi"]
FLOAT_ROUNDS = ["rn", "rz", "rm", "rp"]
CASES = 150
CASES_MAX = 512  # of one form


def bits_of(name):
    return FLOATS[name][0] if name in FLOATS else int(name[1:])


def is_signed(name):
    return name[0] == "s"


class Number:
    """n * 2 ** e with a sign also for zero, an infinity, or a NaN."""

    def __init__(self, n=None, e=0, negative=False, infinite=False):
        self.n = n
        self.e = e
        self.negative = negative if not n else n < 0
        self.infinite = infinite

    def is_nan(self):
        return self.n is None and not self.infinite

    def top(self):
        """The power of two at or below the absolute value."""
        return abs(self.n).bit_length() - 1 + self.e


def decode_float(name, bits):
    """The float of a bit pattern."""
    width, mantissa, _, low = FLOATS[name]
    # TF32 is stored as a float of 32 bits
    stored = 23 if name == "tf32" else mantissa
    negative = bool(bits >> (width - 1))
    exponent = bits >> stored & ((1 << (width - 1 - stored)) - 1)
    part = bits & ((1 << stored) - 1)
    if exponent == (1 << (width - 1 - stored)) - 1:
        return Number() if part else Number(None, 0, negative, True)
    whole = part + (1 << stored) if exponent else part
    return Number(-whole if negative else whole, low + max(exponent, 1) - 1 - stored, negative)


def encode_float(name, number):
    """The bits of a number that the format holds exactly."""
    width, mantissa, high, low = FLOATS[name]
    stored = 23 if name == "tf32" else mantissa
    sign = int(number.negative) << (width - 1)
    if number.infinite:
        return sign | ((1 << (width - 1 - stored)) - 1) << stored
    if number.n == 0:
        return sign
    exponent = max(number.top(), low)
    whole, rest = scaled(Number(abs(number.n), number.e), exponent - stored)
    assert exponent <= high and rest == 0, (name, number.n, number.e)
    if whole < 1 << stored:
        return sign | whole
    return sign | (exponent - low + 1) << stored | whole - (1 << stored)


def scaled(number, e):
    """The number in units of 2 ** e, rounded down, and a class of the remainder.

    The class is 0 for no remainder, 1 below the middle, 2 in the middle, 3 above it.
    """
    if number.e >= e:
        return number.n << (number.e - e), 0
    unit = 1 << (e - number.e)
    below, rest = number.n // unit, number.n % unit
    if rest == 0:
        return below, 0
    return below, 2 + (2 * rest > unit) - (2 * rest < unit)


def choose(number, mode, e=0):
    """The number as an integer, in units of 2 ** e."""
    below, rest = scaled(number, e)
    if rest == 0:
        return below
    mode = mode.rstrip("i")
    if mode == "rz":
        return below + (number.n < 0)
    if mode == "rm":
        return below
    if mode == "rp":
        return below + 1
    if rest != 2:
        return below + (rest > 2)
    if mode == "rna":
        return below + (number.n > 0)
    return below + below % 2


def round_to(name, number, mode):
    """The number in the format, by a rounding mode."""
    _, mantissa, high, low = FLOATS[name]
    if not number.n:
        return number
    negative = number.n < 0
    step = max(number.top(), low) - mantissa
    result = Number(choose(number, mode, step), step, negative)
    if not result.n or result.top() <= high:
        return result
    if mode == "rz" or mode == ("rp" if negative else "rm"):
        return largest(name, negative)
    return Number(None, 0, negative, True)


def largest(name, negative):
    _, mantissa, high, _ = FLOATS[name]
    n = (1 << (mantissa + 1)) - 1
    return Number(-n if negative else n, high - mantissa)


#
# Floats of 8 bits and less: ue8m0 is a power of two, of the others e5m2 alone has
# infinities, and e4m3 a NaN where its infinity would be
#


def largest_small(name):
    """The greatest number: of e4m3 the last mantissa is a NaN."""
    _, mantissa, high, _ = SMALL[name]
    n = (1 << (mantissa + 1)) - (2 if name == "e4m3" else 1)
    return Number(n, high - mantissa)


def decode_small(name, bits):
    if name == "ue8m0":
        return Number() if bits == 255 else Number(1, bits - 127)
    width, mantissa, _, low = SMALL[name]
    negative = bool(bits >> (width - 1) & 1)
    part = bits & ((1 << (width - 1)) - 1)
    if name == "e5m2" and part >= 0x7C:
        return Number(None, 0, negative, part == 0x7C)
    if name == "e4m3" and part == 0x7F:
        return Number()
    exponent, fraction = part >> mantissa, part & ((1 << mantissa) - 1)
    n = fraction + (1 << mantissa) if exponent else fraction
    return Number(-n if negative else n, max(exponent, 1) - 1 + low - mantissa, negative)


def all_small(name):
    """Each number of the format that is not negative, with its bits."""
    width = SMALL[name][0]
    numbers = [(decode_small(name, bits), bits) for bits in range(1 << (width - 1))]
    return [(number, bits) for number, bits in numbers if number.n is not None]


def below_or_equal(one, other):
    e = min(one.e, other.e)
    return abs(one.n) << (one.e - e) <= abs(other.n) << (other.e - e)


def twice_is_above(number, low, high):
    """-1, 0 or 1: where the number is in relation to the middle of two others."""
    e = min(number.e, low.e, high.e)
    double = 2 * abs(number.n) << (number.e - e)
    middle = (low.n << (low.e - e)) + (high.n << (high.e - e))
    return (double > middle) - (double < middle)


def to_scale(number, words):
    """ue8m0: the power of two above or below, without a sign."""
    greatest = 254 if words["satfinite"] else 255
    if number.is_nan():
        return 255
    if number.infinite:
        return greatest
    if number.n == 0:
        return 0
    top = number.top()
    exact = abs(number.n).bit_count() == 1
    power = top if words["round"] == "rz" or exact else top + 1
    return greatest if power > 127 else max(power, -127) + 127


def to_small(name, number, words):
    """The nearest number of all there are, by a search."""
    if name == "ue8m0":
        return to_scale(number, words)
    width = SMALL[name][0]
    if number.is_nan():
        if name in ("e4m3", "e5m2"):
            return 0x7F
        number = largest_small(name)
    if words["relu"] and (number.negative or number.n == 0):
        return 0
    sign = int(number.negative) << (width - 1)
    numbers = all_small(name)
    if number.infinite or below_or_equal(numbers[-1][0], number):
        return sign | numbers[-1][1]
    index = max(i for i, (x, _) in enumerate(numbers) if below_or_equal(x, number))
    (low, bits), (high, _) = numbers[index], numbers[index + 1]
    above = twice_is_above(number, low, high)
    return sign | bits + (above > 0 or (above == 0 and bits % 2))


def flush(number):
    if number.n and number.top() < -126:
        return Number(0, 0, number.negative)
    return number


def integer_limits(name):
    bits = bits_of(name)
    if is_signed(name):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def to_integer(to, source, number, words):
    """An integer, before it is cut to the destination's bits."""
    low, high = integer_limits(to)
    if number.is_nan():
        if source != "f64" and bits_of(to) != 64:
            return 0
        return 1 << (bits_of(to) - 1)
    if number.infinite:
        return low if number.negative else high
    value = choose(number, words["round"] or "rz")
    if source in FLOATS or words["sat"]:
        value = min(max(value, low), high)
    return value


def to_float(to, source, number, words):
    """A float's bits, or None for any NaN."""
    mode = words["round"]
    if mode in INTEGER_ROUNDS and number.n is not None:
        number = Number(choose(number, mode), 0, number.negative)
    number = round_to(to, number, mode if mode in FLOAT_ROUNDS + ["rna"] else "rn")
    if words["ftz"] and to == "f32":
        number = flush(number)
    if words["sat"]:
        if number.is_nan() or number.negative or number.n == 0:
            return 0
        if number.infinite or number.top() >= 0:
            number = Number(1)
    if words["relu"] and not number.is_nan() and (number.negative or number.n == 0):
        return 0
    if words["satfinite"] and number.infinite:
        number = largest(to, number.negative)
    if not number.is_nan():
        return encode_float(to, number)
    # moves keep any NaN, and PTX does not specify these sources
    if to == "f64" or source == "bf16" or (to == source and not mode):
        return None if to in ("f32", "f64") else CANONICAL_NAN[to]
    return CANONICAL_NAN[to]


def convert(to, source, bits, words):
    if source in FLOATS:
        number = decode_float(source, bits)
        if words["ftz"] and source == "f32":
            number = flush(number)
    else:
        value = bits & ((1 << bits_of(source)) - 1)
        if is_signed(source) and value >> (bits_of(source) - 1):
            value -= 1 << bits_of(source)
        number = Number(value)
    if to in FLOATS:
        return to_float(to, source, number, words)
    value = to_integer(to, source, number, words)
    # cut, and as wide as the register: by the sign of a signed type
    value &= (1 << bits_of(to)) - 1
    if is_signed(to) and value >> (bits_of(to) - 1):
        value -= 1 << bits_of(to)
    return value & ((1 << max(bits_of(to), 32)) - 1)


def parse(form):
    """The modifiers of an instruction, and its types."""
    parts = form.split(".")[1:]
    words = {key: key in parts for key in ("ftz", "sat", "relu", "satfinite")}
    words["round"] = next((p for p in parts if p[0] == "r" and p != "relu"), "")
    return parts[-2], parts[-1], words


#
# Which forms there are: what ptxas 13.0 takes for sm_121
#


def with_flags(rounds, flags, pair):
    return [
        "cvt" + (f".{r}" if r else "") + flag + "." + pair for r in rounds for flag in flags
    ]


def forms_of_integers():
    forms = []
    for to in INTEGERS:
        low, high = integer_limits(to)
        for source in INTEGERS:
            source_low, source_high = integer_limits(source)
            exceeds = source_low < low or source_high > high
            flags = ["", ".sat"] if exceeds else [""]
            forms += with_flags([""], flags, f"{to}.{source}")
    return forms


def forms_between_kinds():
    forms = []
    for integer in INTEGERS:
        for real in ("f16", "f32", "f64", "bf16"):
            if real == "bf16":
                if bits_of(integer) == 8:
                    continue
                flags = [""]
            elif real == "f32":
                flags = ["", ".sat", ".ftz", ".ftz.sat"]
            else:
                flags = ["", ".sat"]
            forms += with_flags(INTEGER_ROUNDS, flags, f"{integer}.{real}")
            forms += with_flags(FLOAT_ROUNDS, flags, f"{real}.{integer}")
    return forms


def forms_of_floats():
    none, sat, ftz = [""], ["", ".sat"], ["", ".ftz"]
    both = ["", ".sat", ".ftz", ".ftz.sat"]
    limits = ["", ".relu", ".satfinite", ".relu.satfinite"]
    any_round = none + FLOAT_ROUNDS
    forms = []
    forms += with_flags(none + INTEGER_ROUNDS, sat, "f16.f16")
    forms += with_flags(none + INTEGER_ROUNDS, none, "bf16.bf16")
    forms += with_flags(none + INTEGER_ROUNDS, both, "f32.f32")
    forms += with_flags(none + INTEGER_ROUNDS, sat, "f64.f64")
    forms += with_flags(any_round, none, "f16.bf16")
    forms += with_flags(any_round, none, "bf16.f16")
    forms += with_flags(any_round, none, "f64.bf16")
    forms += with_flags(any_round, ftz, "f32.bf16")
    forms += with_flags(none, both, "f32.f16") + with_flags(none, both, "f64.f32")
    forms += with_flags(none, sat, "f64.f16")
    forms += with_flags(FLOAT_ROUNDS, both, "f16.f32")
    forms += with_flags(FLOAT_ROUNDS, ftz, "bf16.f32")
    forms += with_flags(FLOAT_ROUNDS, both, "f32.f64")
    forms += with_flags(FLOAT_ROUNDS, sat, "f16.f64")
    forms += with_flags(FLOAT_ROUNDS, none, "bf16.f64")
    for to in ("f16", "bf16"):
        forms += with_flags(["rn", "rz"], limits[1:], f"{to}.f32")
        forms += with_flags(["rn", "rz"], limits, f"{to}x2.f32")
    forms += with_flags(["rn", "rz"], limits + [".satfinite.relu"], "tf32.f32")
    forms += with_flags(["rna"], ["", ".satfinite"], "tf32.f32")
    return forms


def forms_of_small():
    """With those that ptxas 13.0 takes for sm_121a alone."""
    limits = [".satfinite", ".relu.satfinite", ".satfinite.relu"]
    forms = []
    for small in SMALL:
        forms += with_flags(["rn"], limits, f"{small}x2.f32")
        if small not in ("e2m3", "e3m2"):
            forms += with_flags(["rn"], limits, f"{small}x2.f16x2")
        forms += with_flags(["rn"], ["", ".relu"], f"f16x2.{small}x2")
    for source in ("f32", "bf16x2"):
        forms += with_flags(["rz", "rp"], ["", ".satfinite"], f"ue8m0x2.{source}")
    forms += with_flags(["rn"], [""], "bf16x2.ue8m0x2")
    return forms


def all_forms():
    return forms_of_integers() + forms_between_kinds() + forms_of_floats()


#
# Sources
#


def around(n, e):
    """A number, its neighbours, and their negatives."""
    for bits in (60, 24, 11):
        for sign in (-1, 1):
            yield Number(n * ((1 << bits) + sign), e - bits)
    yield Number(n, e)
    yield Number(-n, e)


def interesting():
    """Numbers, as n and e, at which the result of some destination changes."""
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        for difference in (-2, -1, 0, 1):
            yield (2 << bits) + difference, -1
    for name in ("f16", "bf16", "tf32", "f32"):
        _, mantissa, high, low = FLOATS[name]
        # the least, its half, and so on; then the least that is not subnormal
        for n in (1, 2, 4, 6, (4 << mantissa) - 2, 4 << mantissa):
            yield n, low - mantissa - 2
        # the greatest, and the least that overflow in each rounding mode
        for more in (0, 2, 3, 4):
            yield (8 << mantissa) - 4 + more, high - mantissa - 2
        # ties, to an even and to an odd neighbour
        for more in (2, 6, 5, 4):
            yield (4 << mantissa) + more, -mantissa - 2
    for halves in (1, 3, 5, 7, 255, 511):
        yield halves, -1
    yield from ((0, 0), (1, 0), (0x5555555555555555, -64), (4097, 0), (2049, 0))


def edges_of(name, numbers):
    """Bits of a type for tests, the most interesting first."""
    bits = bits_of(name)
    mask = (1 << bits) - 1
    found = {}
    if name in FLOATS:
        _, mantissa, _, _ = FLOATS[name]
        top = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
        edges = [0, 1, top, top | 1, top | 1 << (mantissa - 1), top | (1 << mantissa) - 1]
        edges += [1 << mantissa, (1 << mantissa) - 1, top - 1]
        for edge in edges + [edge | 1 << (bits - 1) for edge in edges]:
            found[edge] = True
        for number in numbers:
            for mode in ("rz", "rp"):
                found[encode_float(name, round_to(name, number, mode))] = True
    else:
        for edge in (0, 1, 2, 3, mask, mask - 1, mask >> 1, (mask >> 1) + 1):
            found[edge] = True
        for number in numbers:
            found[choose(number, "rz") & mask] = True
    return list(found)


def sources_of(name, edges):
    """Some of them, as all would be too many for each form, and some at random."""
    rest = random.sample(edges[24:], min(max(len(edges) - 24, 0), CASES - 44))
    return edges[:24] + rest + [random.getrandbits(bits_of(name)) for _ in range(20)]


def edges_of_small(name):
    """All numbers, the middles between them and their neighbours, as f32."""
    found = {}
    numbers = [decode_small("ue8m0", i) for i in (0, 1, 2, 126, 127, 128, 253, 254)]
    if name != "ue8m0":
        numbers = [number for number, _ in all_small(name)]
    for low, high in zip(numbers, numbers[1:] + [Number(numbers[-1].n * 2, numbers[-1].e)]):
        e = min(low.e, high.e) - 1
        middle = Number(((low.n << (low.e - e)) + (high.n << (high.e - e))) // 2, e)
        for number in (low, middle):
            bits = encode_float("f32", round_to("f32", number, "rn"))
            for near in (bits, bits + 1, max(bits - 1, 0)):
                found[near] = found[near | 1 << 31] = True
    return list(found)


def print_small(form, edges, out):
    """Pairs of small floats, from or to pairs of others."""
    to, source, words = parse(form)
    if source == "f32":
        one = to.removesuffix("x2")
        step = SMALL_STEPS[one]
        sources = edges_of_small(one) + sources_of("f32", edges["f32"])
        results = [to_small(one, decode_float("f32", bits), words) for bits in sources]
        sources = [bits for bits, _ in zip(sources, range(CASES_MAX))]
        print("form", form, 2 * step, 32, 2, file=out)
        for i, bits in enumerate(sources):
            low = (i + 1) % len(sources)
            print(f"{bits:x} {sources[low]:x} {results[i] << step | results[low]:x}", file=out)
        return
    if to.removesuffix("x2") in SMALL_STEPS:
        one, wide = to.removesuffix("x2"), source.removesuffix("x2")
        step = SMALL_STEPS[one]
        sources = sources_of(wide, edges[wide])
        sources += [encode_float(wide, round_to(wide, decode_float("f32", bits), "rz"))
                    for bits in edges_of_small(one)]
        results = [to_small(one, decode_float(wide, bits), words) for bits in sources]
        print("form", form, 2 * step, 32, 1, file=out)
        for i, bits in enumerate(sources[:CASES_MAX]):
            low = (i + 1) % len(sources)
            result = results[i] << step | results[low]
            print(f"{bits << 16 | sources[low]:x} {result:x}", file=out)
        return
    one, wide = source.removesuffix("x2"), to.removesuffix("x2")
    step = SMALL_STEPS[one]
    print("form", form, 32, 2 * step, 1, file=out)
    for high in range(1 << step):
        low = (high * 7 + 3) % (1 << step)
        # bits that no format has are not defined to be anything
        if one in ("e2m3", "e3m2"):
            high, low = high & 63, low & 63
        parts = [to_float(wide, wide, decode_small(one, bits), words) for bits in (high, low)]
        print(f"{high << step | low:x} {parts[0] << 16 | parts[1]:x}", file=out)


def main():
    random.seed(1)
    numbers = [near for n, e in interesting() for near in around(n, e)]
    edges = {name: edges_of(name, numbers) for name in INTEGERS + list(FLOATS)}
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for form in all_forms():
            to, source, words = parse(form)
            sources = sources_of(source, edges[source])
            pair = to.endswith("x2")
            one = to.removesuffix("x2")
            to_bits = 32 if pair else bits_of(to)
            print("form", form, to_bits, bits_of(source), 2 if pair else 1, file=out)
            results = [convert(one, source, bits, words) for bits in sources]
            for i, bits in enumerate(sources):
                if pair:
                    low = (i + 1) % len(sources)
                    result = results[i] << 16 | results[low]
                    print(f"{bits:x} {sources[low]:x} {result:x}", file=out)
                elif results[i] is None:
                    print(f"{bits:x} nan", file=out)
                else:
                    print(f"{bits:x} {results[i]:x}", file=out)
        for form in forms_of_small():
            print_small(form, edges, out)


if __name__ == "__main__":
    main()
