# SPDX-License-Identifier: Apache-2.0
"""Floating-point instructions and conversions, computed on pairs of integers.

A result is computed without rounding, or with more bits than any format has and one that
says whether anything is missing, and is then rounded once by conversions.py.
"""

import math

import conversions
from conversions import CANONICAL_NAN, FLOATS, Number, decode_float, encode_float, round_to
from straight_integer import COMPARISONS, add_comparison_of
from straight_program import add_step, mask, registers, signed

POOL = {"f32": "f", "f64": "g", "f16": "k", "bf16": "b"}
NAN = dict(CANONICAL_NAN, f64=0x7FF8000000000000)
# PTX leaves these NaNs open: they are replaced before the next instruction.
FIX = {
    "f": ("setp.nan.f32 %pt, $, $", "selp.b32 $, 0x7fffffff, $, %pt"),
    "g": ("setp.nan.f64 %pt, $, $", "selp.b64 $, 0x7ff8000000000000, $, %pt"),
    "k": ("setp.nan.f16 %pt, $, $", "selp.b16 $, 0x7fff, $, %pt"),
    "b": ("setp.nan.bf16 %pt, $, $", "selp.b16 $, 0x7fff, $, %pt"),
}
MODES = ["rn", "rz", "rm", "rp"]
EXTRA = 80  # bits of a quotient or a root before it is rounded


def infinity(negative):
    return Number(None, 0, negative, True)


def zero(negative):
    return Number(0, 0, negative)


def flush(name, number):
    if number.n and number.top() < FLOATS[name][3]:
        return zero(number.negative)
    return number


def negated(number):
    if number.n:
        return Number(-number.n, number.e)
    return Number(number.n, 0, not number.negative, number.infinite)


def add(x, y, mode):
    if x.is_nan() or y.is_nan():
        return Number()
    if x.infinite or y.infinite:
        if x.infinite and y.infinite and x.negative != y.negative:
            return Number()
        return x if x.infinite else y
    e = min(x.e, y.e)
    n = (x.n << (x.e - e)) + (y.n << (y.e - e))
    if n:
        return Number(n, e)
    if not x.n and x.negative == y.negative:
        return zero(x.negative)
    return zero(mode == "rm")


def multiply(x, y):
    if x.is_nan() or y.is_nan():
        return Number()
    negative = x.negative != y.negative
    if x.infinite or y.infinite:
        return Number() if x.n == 0 or y.n == 0 else infinity(negative)
    return Number(x.n * y.n, x.e + y.e, negative)


def divide(x, y):
    if x.is_nan() or y.is_nan():
        return Number()
    negative = x.negative != y.negative
    if x.infinite:
        return Number() if y.infinite else infinity(negative)
    if y.infinite or (x.n == 0 and y.n):
        return zero(negative)
    if y.n == 0:
        return infinity(negative) if x.n else Number()
    up = EXTRA + abs(y.n).bit_length()
    quotient, rest = divmod(abs(x.n) << up, abs(y.n))
    n = quotient << 1 | bool(rest)
    return Number(-n if negative else n, x.e - y.e - up - 1, negative)


def root(x):
    if x.is_nan() or x.n == 0:
        return x
    if x.negative:
        return Number()
    if x.infinite:
        return x
    up = 2 * EXTRA + (x.e & 1)
    n = x.n << up
    whole = math.isqrt(n)
    return Number(whole << 1 | (whole * whole != n), (x.e - up) // 2 - 1)


def finish(name, number, mode, words):
    """The bits of an exact result."""
    if number.n:
        number = round_to(name, number, mode)
    if "ftz" in words:
        number = flush(name, number)
    if "sat" in words:
        if number.is_nan() or number.negative or number.n == 0:
            return 0
        if number.infinite or number.top() >= 0:
            number = Number(1)
    if "relu" in words and not number.is_nan() and (number.negative or number.n == 0):
        return 0
    return NAN[name] if number.is_nan() else encode_float(name, number)


def decoded(name, bits, words):
    number = decode_float(name, bits)
    return flush(name, number) if "ftz" in words else number


def choose_words(rng, name, fused):
    """Modifiers that PTX has for sums and products of a format."""
    if name == "f64":
        return rng.choice(MODES), []
    if name == "f32":
        return rng.choice(MODES), [w for w in ("ftz", "sat") if rng.random() < 0.3]
    if name == "bf16":
        return "rn", ["relu"] if fused and rng.random() < 0.3 else []
    words = ["ftz"] if rng.random() < 0.3 else []
    return "rn", words + rng.choice([[], ["sat"], ["relu"] if fused else []])


def spelled(name, mode, words, kind):
    return ".".join([name, mode, *words, kind])


def compute_sum(operation, name, mode, words):
    """A function of bits for add, sub, mul or fma."""
    def compute(*sources):
        numbers = [decoded(name, bits, words) for bits in sources]
        if operation in ("mul", "fma"):
            result = multiply(*numbers[:2])
            if operation == "fma":
                result = add(result, numbers[2], mode)
        else:
            other = negated(numbers[1]) if operation == "sub" else numbers[1]
            result = add(numbers[0], other, mode)
        return finish(name, result, mode, words)

    return compute


def add_arithmetic(rng, program):
    name = rng.choice(["f32", "f32", "f64", "f16", "bf16"])
    operation = rng.choice(["add", "sub", "mul", "fma", "fma"])
    mode, words = choose_words(rng, name, operation == "fma")
    pool = POOL[name]
    add_step(rng, program, spelled(operation, mode, words, name), pool,
             pool * (3 if operation == "fma" else 2),
             compute_sum(operation, name, mode, words),
             after=FIX["g"] if name == "f64" else ())


def add_pair(rng, program):
    """The same on two halves, or on two floats, of one register."""
    name = rng.choice(["f16", "bf16", "f32"])
    operation = rng.choice(["add", "sub", "mul", "fma"])
    pool, width = POOL[name], FLOATS[name][0]
    if name == "f32":
        mode, words = rng.choice(MODES), ["ftz"] if rng.random() < 0.3 else []
    else:
        mode, words = choose_words(rng, name, operation == "fma")
    compute = compute_sum(operation, name, mode, words)
    n = 3 if operation == "fma" else 2
    sources = [registers(rng, pool, 2) for _ in range(n)]
    to = registers(rng, pool, 2)
    if to[0] == to[1]:
        to[1] = f"{pool}{1 if to[0] == f'{pool}0' else 0}"
    wide = "dt" if name == "f32" else "rt"
    lines = [f"mov.b{2 * width} %{wide}{i}, {{%{low}, %{high}}}"
             for i, (low, high) in enumerate(sources)]
    lines.append(f"{spelled(operation, mode, words, name + 'x2')} %{wide}3, "
                 + ", ".join(f"%{wide}{i}" for i in range(n)))
    lines.append(f"mov.b{2 * width} {{%{to[0]}, %{to[1]}}}, %{wide}3")

    def step(state):
        results = [compute(*(state[pair[i]] for pair in sources)) for i in (0, 1)]
        state[to[0]], state[to[1]] = results

    program.add(lines, step)


def add_quotient(rng, program):
    name = rng.choice(["f32", "f32", "f64"])
    operation = rng.choice(["div", "rcp", "sqrt"])
    mode = rng.choice(MODES)
    words = ["ftz"] if name == "f32" and rng.random() < 0.3 else []
    pool = POOL[name]

    def compute(*sources):
        numbers = [decoded(name, bits, words) for bits in sources]
        if operation == "div":
            result = divide(*numbers)
        else:
            result = divide(Number(1), numbers[0]) if operation == "rcp" else root(numbers[0])
        return finish(name, result, mode, words)

    add_step(rng, program, spelled(operation, mode, words, name), pool,
             pool * (2 if operation == "div" else 1), compute,
             after=FIX["g"] if name == "f64" else ())


def below(x, y):
    """Of numbers that are not NaN; -0 is below +0."""
    if x.infinite or y.infinite:
        def rank(v):
            return 0 if not v.infinite else -1 if v.negative else 1

        return rank(x) < rank(y)
    e = min(x.e, y.e)
    a, b = x.n << (x.e - e), y.n << (y.e - e)
    return a < b or (a == b == 0 and x.negative and not y.negative)


def extreme(operation, x, y, nan):
    if x.is_nan() or y.is_nan():
        return Number() if nan or x.is_nan() and y.is_nan() else y if x.is_nan() else x
    return x if below(x, y) == (operation == "min") else y


def add_extreme(rng, program):
    name = rng.choice(["f32", "f32", "f64", "f16", "bf16"])
    operation = rng.choice(["min", "max"])
    words, pool = [], POOL[name]
    if name in ("f32", "f16") and rng.random() < 0.3:
        words.append("ftz")
    if name != "f64" and rng.random() < 0.3:
        words.append("NaN")
    if name != "f64" and rng.random() < 0.3:
        words += ["xorsign", "abs"]
    sign = 1 << (FLOATS[name][0] - 1)

    def compute(a, b):
        x, y = (decoded(name, bits & ~sign if "abs" in words else bits, words)
                for bits in (a, b))
        result = extreme(operation, x, y, "NaN" in words)
        bits = NAN[name] if result.is_nan() else encode_float(name, result)
        if "abs" in words and not result.is_nan():
            bits |= (a ^ b) & sign
        return bits

    after = FIX[pool] if name == "f64" or "abs" in words else ()
    add_step(rng, program, ".".join([operation, *words, name]), pool, pool * 2, compute,
             after=after)


def add_extreme_of_three(rng, program):
    operation = rng.choice(["min", "max"])
    words = [word for word in ("ftz", "NaN", "abs") if rng.random() < 0.3]

    def compute(*sources):
        x, y, z = (decoded("f32", bits & mask(31) if "abs" in words else bits, words)
                   for bits in sources)
        nan = "NaN" in words
        result = extreme(operation, extreme(operation, x, y, nan), z, nan)
        return NAN["f32"] if result.is_nan() else encode_float("f32", result)

    add_step(rng, program, ".".join([operation, *words, "f32"]), "f", "fff", compute)


def add_mixed(rng, program):
    """Sums in f32 of floats of 16 bits, which become f32 without rounding."""
    name = rng.choice(["f16", "bf16"])
    operation = rng.choice(["add", "sub", "fma"])
    mode = rng.choice(MODES)
    words = ["sat"] if rng.random() < 0.3 else []
    pools = POOL[name] * (2 if operation == "fma" else 1) + "f"

    def compute(*sources):
        numbers = [decode_float(name, bits) for bits in sources[:-1]]
        last = decode_float("f32", sources[-1])
        product = multiply(*numbers) if operation == "fma" else numbers[0]
        result = add(product, negated(last) if operation == "sub" else last, mode)
        return finish("f32", result, mode, words)

    add_step(rng, program, spelled(operation, mode, words, f"f32.{name}"), "f", pools, compute)


def add_sign(rng, program):
    """abs, neg and copysign."""
    name = rng.choice(["f32", "f64", "f16", "bf16"])
    pool, sign = POOL[name], 1 << (FLOATS[name][0] - 1)
    operation = rng.choice(["abs", "neg", "copysign"])
    if operation == "copysign" and name in ("f32", "f64"):
        add_step(rng, program, f"copysign.{name}", pool, pool * 2,
                 lambda a, b: canonical(name, a & sign | b & ~sign), after=FIX[pool])
        return
    operation = "neg" if operation == "copysign" else operation
    words = ["ftz"] if name in ("f32", "f16") and rng.random() < 0.3 else []

    def compute(a):
        number = decoded(name, a, words)
        if number.is_nan():
            return NAN[name]
        bits = encode_float(name, number)
        return bits ^ sign if operation == "neg" else bits & ~sign

    add_step(rng, program, ".".join([operation, *words, name]), pool, pool, compute,
             after=FIX[pool])


def canonical(name, bits):
    return NAN[name] if decode_float(name, bits).is_nan() else bits


def compare_floats(how, x, y):
    if how in ("num", "nan"):
        return (x.is_nan() or y.is_nan()) == (how == "nan")
    if x.is_nan() or y.is_nan():
        return how.endswith("u")
    order = 0
    if not (x.n == 0 and y.n == 0):
        order = -1 if below(x, y) else 1 if below(y, x) else 0
    return COMPARISONS[how.removesuffix("u")](order, 0)


def add_comparison(rng, program):
    name = rng.choice(["f32", "f32", "f64", "f16", "bf16"])
    how = rng.choice([*COMPARISONS, *(f"{c}u" for c in COMPARISONS), "num", "nan"])
    words = ["ftz"] if name in ("f32", "f16") and rng.random() < 0.3 else []

    def compare(a, b):
        return compare_floats(how, decoded(name, a, words), decoded(name, b, words))

    # set of halves has other results than set of floats
    kind = ("ftz." if words else "") + name
    if name in ("f16", "bf16"):
        add_half_comparison(rng, program, how, kind, compare)
    else:
        add_comparison_of(rng, program, kind, POOL[name], compare, how)


def add_half_comparison(rng, program, how, kind, compare):
    name = kind.removeprefix("ftz.")
    a, b = registers(rng, POOL[name], 2)
    p = registers(rng, "p", 1)[0]

    def compute(state):
        state[p] = bool(compare(state[a], state[b]))

    program.add([f"setp.{how}.{kind} %{p}, %{a}, %{b}"], compute)


TESTS = {
    "finite": lambda x, low: x.n is not None,
    "infinite": lambda x, low: x.infinite,
    "number": lambda x, low: not x.is_nan(),
    "notanumber": lambda x, low: x.is_nan(),
    "normal": lambda x, low: bool(x.n) and x.top() >= low,
    "subnormal": lambda x, low: bool(x.n) and x.top() < low,
}


def add_test(rng, program):
    name, how = rng.choice(["f32", "f64"]), rng.choice(list(TESTS))
    a, p = registers(rng, POOL[name], 1)[0], registers(rng, "p", 1)[0]

    def compute(state):
        state[p] = bool(TESTS[how](decode_float(name, state[a]), FLOATS[name][3]))

    program.add([f"testp.{how}.{name} %{p}, %{a}"], compute)


def add_choice(rng, program):
    """slct by a float: one that is not a number chooses the second."""
    name = rng.choice(["f32", "f64"])
    ftz = ".ftz" if rng.random() < 0.3 else ""

    def compute(a, b, c):
        number = decode_float("f32", c)
        chosen = not number.is_nan() and (not number.negative or number.n == 0 or
                                          bool(ftz and flush("f32", number).n == 0))
        return a if chosen else b

    pool = POOL[name]
    add_step(rng, program, f"slct{ftz}.{name}.f32", pool, pool * 2 + "f", compute)


#
# Conversions
#

FORMS = [form for form in conversions.all_forms() if not form.endswith("x2.f32")]


def pool_of(name, is_source):
    if name in ("f32", "tf32"):
        return "f"
    if name in FLOATS:
        return POOL[name]
    bits = int(name[1:])
    return "d" if bits == 64 else "h" if bits == 16 and is_source else "r"


def add_conversion(rng, program):
    form = rng.choice(FORMS)
    to, source, words = conversions.parse(form)
    to_pool, from_pool = pool_of(to, False), pool_of(source, True)

    def compute(a):
        result = conversions.convert(to, source, a, words)
        if result is None:
            return NAN[to]
        return canonical(to, result) if to in ("f32", "f64") else result

    add_step(rng, program, form, to_pool, from_pool, compute,
             after=FIX[to_pool] if to in ("f32", "f64") else ())


def add_move(rng, program):
    """Bits of an integer as a float, and the reverse."""
    one, other = rng.choice([("r", "f"), ("d", "g"), ("h", "k"), ("h", "b"), ("f", "r"),
                             ("g", "d"), ("k", "h"), ("b", "h")])
    width = {"f": 32, "r": 32, "g": 64, "d": 64}.get(one, 16)
    add_step(rng, program, f"mov.b{width}", one, other, lambda a: a & mask(width))


def add_constant(rng, program):
    """A float of ordinary size in place of what has become infinite or not a number."""
    name = rng.choice(list(POOL))
    pool, width = POOL[name], FLOATS[name][0]
    number = Number(signed(rng.getrandbits(12), 12), rng.randrange(-14, 3))
    bits = encode_float(name, round_to(name, number, "rz"))
    to = registers(rng, pool, 1)[0]

    def compute(state):
        state[to] = bits

    program.add([f"mov.b{width} %{to}, {bits:#x}"], compute)


REAL_STEPS = [
    add_arithmetic, add_arithmetic, add_arithmetic, add_pair, add_quotient, add_quotient,
    add_extreme, add_extreme, add_extreme_of_three, add_mixed, add_mixed, add_sign,
    add_comparison, add_comparison, add_test, add_choice, add_conversion, add_conversion,
    add_conversion, add_move, add_constant,
]
