# SPDX-License-Identifier: Apache-2.0
"""Integer, logic and selection instructions, computed on integers without a width.

Each function makes one instruction of a straight-line program, or a few that belong
together: it appends the text and a function of the values of its sources. See straight.py.
"""

from straight_program import add_step, mask, registers, signed

WIDTHS = {"h": 16, "r": 32, "d": 64}


def value_of(type_name, bits):
    """The number that the bits of a register mean."""
    width = int(type_name[1:])
    return signed(bits, width) if type_name[0] == "s" else bits & mask(width)


def pool_of(type_name):
    return {16: "h", 32: "r", 64: "d"}[int(type_name[1:])]


def any_type(rng, widths=(16, 32, 64), kinds="us"):
    return rng.choice(kinds) + str(rng.choice(widths))


#
# Arithmetic
#


def add_sum(rng, program):
    name, compute = rng.choice([("add", lambda a, b: a + b), ("sub", lambda a, b: a - b)])
    kind = any_type(rng)
    pool = pool_of(kind)
    add_step(rng, program, f"{name}.{kind}", pool, pool * 2, compute)


def saturate(value):
    return min(max(value, -(1 << 31)), (1 << 31) - 1)


def add_saturated(rng, program):
    name, sign = rng.choice([("add", 1), ("sub", -1)])
    add_step(rng, program, f"{name}.sat.s32", "r", "rr",
             lambda a, b: saturate(signed(a, 32) + sign * signed(b, 32)))


def add_product(rng, program):
    """mul and mad, of all halves of the product."""
    kind, part = any_type(rng), rng.choice(["lo", "hi", "wide"])
    width, pool = int(kind[1:]), pool_of(kind)
    if part == "wide" and width == 64:
        part = "hi"
    wide = {"h": "r", "r": "d"}.get(pool) if part == "wide" else pool
    shift = width if part == "hi" else 0

    def product(a, b):
        return value_of(kind, a) * value_of(kind, b) >> shift

    if rng.random() < 0.5:
        add_step(rng, program, f"mul.{part}.{kind}", wide, pool * 2, product)
    elif part == "hi" and kind == "s32" and rng.random() < 0.5:
        add_step(rng, program, "mad.hi.sat.s32", "r", "rrr",
                 lambda a, b, c: saturate(product(a, b) + signed(c, 32)))
    else:
        add_step(rng, program, f"mad.{part}.{kind}", wide, pool * 2 + wide,
                 lambda a, b, c: product(a, b) + c)


def add_product24(rng, program):
    sign, part = rng.choice("us"), rng.choice(["lo", "hi"])

    def product(a, b):
        x, y = (signed(v, 24) if sign == "s" else v & mask(24) for v in (a, b))
        return x * y >> (16 if part == "hi" else 0)

    if rng.random() < 0.5:
        add_step(rng, program, f"mul24.{part}.{sign}32", "r", "rr", product)
    else:
        add_step(rng, program, f"mad24.{part}.{sign}32", "r", "rrr",
                 lambda a, b, c: product(a, b) + c)


def add_quotient(rng, program):
    """The divisor is made odd and positive: PTX leaves division by 0 open."""
    kind = any_type(rng)
    pool, width = pool_of(kind), int(kind[1:])
    name = rng.choice(["div", "rem"])
    to, a, b = registers(rng, pool, 3)
    limit = mask(width - 1)

    def compute(state):
        x, y = value_of(kind, state[a]), state[b] & limit | 1
        quotient = abs(x) // y * (-1 if x < 0 else 1)
        state[to] = (quotient if name == "div" else x - quotient * y) & mask(width)

    t = f"%{pool}t"
    program.add([f"and.b{width} {t}, %{b}, {limit}", f"or.b{width} {t}, {t}, 1",
                 f"{name}.{kind} %{to}, %{a}, {t}"], compute)


def add_extreme(rng, program):
    name, choose = rng.choice([("min", min), ("max", max)])
    if rng.random() < 0.3:
        sign = rng.choice("us")

        def pairs(a, b):
            kind = f"{sign}16"
            low, high = (choose(value_of(kind, a >> s), value_of(kind, b >> s)) & mask(16)
                         for s in (0, 16))
            return low | high << 16

        add_step(rng, program, f"{name}.{sign}16x2", "r", "rr", pairs)
        return
    kind = any_type(rng)
    pool = pool_of(kind)
    relu = kind == "s32" and rng.random() < 0.3
    add_step(rng, program, f"{name}{'.relu' if relu else ''}.{kind}", pool, pool * 2,
             lambda a, b: max(choose(value_of(kind, a), value_of(kind, b)),
                              0 if relu else -(1 << 64)))


def add_unary(rng, program):
    kind = any_type(rng, kinds="s")
    pool = pool_of(kind)
    name, compute = rng.choice([("abs", abs), ("neg", lambda x: -x)])
    add_step(rng, program, f"{name}.{kind}", pool, pool,
             lambda a: compute(value_of(kind, a)))


def add_difference(rng, program):
    kind = any_type(rng)
    pool = pool_of(kind)
    add_step(rng, program, f"sad.{kind}", pool, pool * 3,
             lambda a, b, c: abs(value_of(kind, a) - value_of(kind, b)) + c)


def add_dot(rng, program):
    a_type, b_type = rng.choice("us"), rng.choice("us")
    half = rng.choice(["lo", "hi"])

    def part(bits, kind, width, i):
        return value_of(f"{kind}{width}", bits >> (i * width))

    if rng.random() < 0.5:
        add_step(rng, program, f"dp4a.{a_type}32.{b_type}32", "r", "rrr",
                 lambda a, b, c: c + sum(part(a, a_type, 8, i) * part(b, b_type, 8, i)
                                         for i in range(4)))
        return
    base = 2 if half == "hi" else 0
    add_step(rng, program, f"dp2a.{half}.{a_type}32.{b_type}32", "r", "rrr",
             lambda a, b, c: c + sum(part(a, a_type, 16, i) * part(b, b_type, 8, i + base)
                                     for i in range(2)))


def add_carries(rng, program):
    """A number of three words, by the carry flag."""
    width = rng.choice([32, 64])
    pool = {32: "r", 64: "d"}[width]
    kind = rng.choice("us") + str(width)
    to = rng.sample(registers(rng, pool, 4), 3)
    if len(set(to)) < 3:
        to = [f"{pool}{i}" for i in (0, 1, 2)]
    names = rng.choice([("add.cc", "addc.cc", "addc"), ("sub.cc", "subc.cc", "subc"),
                        ("mad.lo.cc", "madc.hi.cc", "madc.lo")])
    sources = [registers(rng, pool, 3) for _ in names]
    products = names[0].startswith("mad")
    # a destination must not be a later source's register: each is read as it was
    lines = [f"{name}.{kind} %{pool}t{i}, " + ", ".join(
        f"%{s}" for s in (source if products else source[:2]))
             for i, (name, source) in enumerate(zip(names, sources))]
    lines += [f"mov.b{width} %{t}, %{pool}t{i}" for i, t in enumerate(to)]

    def compute(state):
        carry, results = 0, []
        for i, source in enumerate(sources):
            a, b, c = (state[s] for s in source)
            if products:
                x, y = value_of(kind, a), value_of(kind, b)
                a, b = (x * y >> (width if "hi" in names[i] else 0)) & mask(width), c
            elif names[0] == "sub.cc":
                total = a - b - carry
                results.append(total & mask(width))
                carry = int(total < 0)
                continue
            total = a + b + carry
            results.append(total & mask(width))
            carry = total >> width
        for name, result in zip(to, results):
            state[name] = result

    program.add(lines, compute)


#
# Bits
#


def add_logic(rng, program):
    pool = rng.choice("hrd")
    name, compute = rng.choice([("and", lambda a, b: a & b), ("or", lambda a, b: a | b),
                                ("xor", lambda a, b: a ^ b)])
    add_step(rng, program, f"{name}.b{WIDTHS[pool]}", pool, pool * 2, compute)


def add_not(rng, program):
    pool = rng.choice("hrd")
    name, compute = rng.choice([("not", lambda a: ~a), ("cnot", lambda a: int(not a))])
    add_step(rng, program, f"{name}.b{WIDTHS[pool]}", pool, pool, compute)


def add_table(rng, program):
    """lop3: bit i of the table is the result where a, b and c form i."""
    table = rng.getrandbits(8)

    def compute(a, b, c):
        result = 0
        for i in range(32):
            index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)
            result |= (table >> index & 1) << i
        return result

    add_step(rng, program, "lop3.b32", "r", "rrr", compute, tail=f", {table}")


def add_shift(rng, program):
    pool = rng.choice("hrd")
    width = WIDTHS[pool]
    name, kind = rng.choice([("shl", "b"), ("shr", "u"), ("shr", "s")])

    def compute(a, by):
        by = min(by, width)
        if name == "shl":
            return a << by
        return value_of(f"{kind}{width}", a) >> by

    small = rng.random() < 0.7
    add_step(rng, program, f"{name}.{kind}{width}", pool, pool + "r", compute,
             last=rng.randrange(width + 2) if small else None)


def add_funnel(rng, program):
    side, how = rng.choice("lr"), rng.choice(["clamp", "wrap"])

    def compute(a, b, c):
        n = min(c, 32) if how == "clamp" else c & 31
        both = b << 32 | a
        return both << n >> 32 if side == "l" else both >> n

    add_step(rng, program, f"shf.{side}.{how}.b32", "r", "rrr", compute,
             last=rng.choice([None, rng.randrange(34)]))


def add_field(rng, program):
    """bfe and bfi: position and length are the low bytes of their operands."""
    width = rng.choice([32, 64])
    pool, top = {32: "r", 64: "d"}[width], width - 1
    lines = [f"and.b32 %rt0, %{registers(rng, 'r', 1)[0]}, {rng.choice([255, 63, 31])}",
             f"and.b32 %rt1, %{registers(rng, 'r', 1)[0]}, {rng.choice([255, 31, 7])}"]
    places = [line.split("%")[2].split(",")[0] for line in lines]
    limits = [int(line.rsplit(" ", 1)[1]) for line in lines]
    to, a, b = registers(rng, pool, 3)
    if rng.random() < 0.5:
        sign = rng.choice("us")

        def extract(state):
            position, length = (state[p] & m for p, m in zip(places, limits))
            fill = 0
            if sign == "s" and length:
                fill = state[a] >> min(position + length - 1, top) & 1
            bits = [state[a] >> (position + i) & 1 if i < length and position + i <= top
                    else fill for i in range(width)]
            state[to] = sum(bit << i for i, bit in enumerate(bits))

        program.add(lines + [f"bfe.{sign}{width} %{to}, %{a}, %rt0, %rt1"], extract)
        return

    def insert(state):
        position, length = (state[p] & m for p, m in zip(places, limits))
        bits = [state[b] >> i & 1 for i in range(width)]
        for i in range(min(length, max(width - position, 0))):
            bits[position + i] = state[a] >> i & 1
        state[to] = sum(bit << i for i, bit in enumerate(bits))

    program.add(lines + [f"bfi.b{width} %{to}, %{a}, %{b}, %rt0, %rt1"], insert)


def find_top(kind, bits, amount):
    width = int(kind[1:])
    bits &= mask(width)
    if kind[0] == "s" and bits >> (width - 1):
        bits = ~bits & mask(width)
    if not bits:
        return mask(32)
    top = bits.bit_length() - 1
    return width - 1 - top if amount else top


def add_count(rng, program):
    pool = rng.choice("rd")
    width = WIDTHS[pool]
    sign, amount = rng.choice("us"), rng.random() < 0.5
    name, compute = rng.choice([
        (f"popc.b{width}", lambda a: bin(a).count("1")),
        (f"clz.b{width}", lambda a: width - a.bit_length()),
        (f"bfind{'.shiftamt' if amount else ''}.{sign}{width}",
         lambda a: find_top(f"{sign}{width}", a, amount))])
    add_step(rng, program, name, "r", pool, compute)


def add_reverse(rng, program):
    pool = rng.choice("rd")
    width = WIDTHS[pool]
    add_step(rng, program, f"brev.b{width}", pool, pool,
             lambda a: int(f"{a:0{width}b}"[::-1], 2))


PERMUTES = {
    "f4e": [(3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)],
    "b4e": [(5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)],
    "rc8": [(i, i, i, i) for i in range(4)],
    "ecl": [(3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)],
    "rc16": [(1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)],
}


def add_permute(rng, program):
    mode = rng.choice([None] * 4 + list(PERMUTES))

    def compute(a, b, c):
        source = b << 32 | a
        if mode:
            places = reversed(PERMUTES[mode][c & 3])
            return sum((source >> 8 * p & 255) << 8 * i for i, p in enumerate(places))
        result = 0
        for i in range(4):
            nibble = c >> 4 * i & 15
            byte = source >> 8 * (nibble & 7) & 255
            if nibble & 8:
                byte = 255 if byte & 128 else 0
            result |= byte << 8 * i
        return result

    add_step(rng, program, "prmt.b32" + (f".{mode}" if mode else ""), "r", "rrr", compute)


def add_mask(rng, program):
    how = rng.choice(["clamp", "wrap"])

    def compute(a, b):
        low, n = a & 31, b & 31
        bits = mask(32) << low & ~(mask(32) << (low + n)) & mask(32)
        if low + n >= 32 or (how == "clamp" and b >= 32):
            bits = mask(32) << low & mask(32)
        return 0 if how == "clamp" and a >= 32 else bits

    lines = [f"and.b32 %rt{i}, %{name}, 63" for i, name in
             enumerate(registers(rng, "r", 2))]
    places = [line.split("%")[2].split(",")[0] for line in lines]
    to = registers(rng, "r", 1)[0]

    def step(state):
        state[to] = compute(state[places[0]] & 63, state[places[1]] & 63)

    program.add(lines + [f"bmsk.{how}.b32 %{to}, %rt0, %rt1"], step)


def add_extension(rng, program):
    how, sign = rng.choice(["clamp", "wrap"]), rng.choice("us")

    def compute(a, b):
        if how == "clamp" and b >= 32:
            return a
        n = b & 31
        low = a & mask(n)
        return signed(low, n) if sign == "s" and n else low

    add_step(rng, program, f"szext.{how}.{sign}32", "r", "rr", compute,
             last=rng.choice([None, rng.randrange(36)]))


#
# Comparison and selection
#

COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINE = {"and": lambda t, c: t and c, "or": lambda t, c: t or c,
           "xor": lambda t, c: t != c}


def add_comparison_of(rng, program, kind, pool, compare, how):
    """setp or set with the result of a comparison, perhaps combined with a predicate."""
    a, b = registers(rng, pool, 2)
    word, p, q, c = rng.choice([None, *COMBINE]), *registers(rng, "p", 3)
    negated = rng.random() < 0.5
    tail = f", {'!' if negated else ''}%{c}" if word else ""
    middle = f"{how}{f'.{word}' if word else ''}"
    pair = p != q and rng.random() < 0.5
    to, result = registers(rng, "r", 1)[0], rng.choice(["u32", "s32", "f32"])
    is_set = rng.random() < 0.3 and kind[0] != "b"
    ftz = ".ftz" if kind.startswith("ftz.") else ""
    kind = kind.removeprefix("ftz.")

    def compute(state):
        t = compare(state[a], state[b])
        other = state[c] != negated
        values = [COMBINE[word](x, other) if word else x for x in (t, not t)]
        if is_set:
            true = 0x3F800000 if result == "f32" else mask(32)
            state[to] = true if values[0] else 0
            return
        state[p] = bool(values[0])
        if pair:
            state[q] = bool(values[1])

    if is_set:
        program.add([f"set.{middle}{ftz}.{result}.{kind} %{to}, %{a}, %{b}{tail}"], compute)
    else:
        program.add([f"setp.{middle}{ftz}.{kind} %{p}{f'|%{q}' if pair else ''}, "
                     f"%{a}, %{b}{tail}"], compute)


def add_comparison(rng, program):
    kind = any_type(rng, kinds="usb")
    names = ["eq", "ne"] if kind[0] == "b" else list(COMPARISONS)
    how = rng.choice(names + (list(UNSIGNED) if kind[0] == "u" else []))
    compare = COMPARISONS[UNSIGNED.get(how, how)]
    add_comparison_of(rng, program, kind, pool_of(kind),
                      lambda a, b: compare(value_of(kind, a), value_of(kind, b)), how)


def add_choice(rng, program):
    pool = rng.choice("hrd")
    to, a, b = registers(rng, pool, 3)
    if rng.random() < 0.5:
        p = registers(rng, "p", 1)[0]

        def by_predicate(state):
            state[to] = state[a] if state[p] else state[b]

        program.add([f"selp.b{WIDTHS[pool]} %{to}, %{a}, %{b}, %{p}"], by_predicate)
        return
    c = registers(rng, "r", 1)[0]

    def by_sign(state):
        state[to] = state[a] if signed(state[c], 32) >= 0 else state[b]

    program.add([f"slct.b{WIDTHS[pool]}.s32 %{to}, %{a}, %{b}, %{c}"], by_sign)


def add_predicate(rng, program):
    to, a, b = registers(rng, "p", 3)
    name = rng.choice(["and", "or", "xor", "not"])

    def compute(state):
        state[to] = not state[a] if name == "not" else COMBINE[name](state[a], state[b])

    program.add([f"{name}.pred %{to}, %{a}" + ("" if name == "not" else f", %{b}")], compute)


INTEGER_STEPS = [
    add_sum, add_saturated, add_product, add_product, add_product24, add_quotient,
    add_extreme, add_unary, add_difference, add_dot, add_carries, add_logic, add_not,
    add_table, add_shift, add_shift, add_funnel, add_field, add_field, add_count,
    add_reverse, add_permute, add_mask, add_extension, add_comparison, add_choice,
    add_predicate,
]
