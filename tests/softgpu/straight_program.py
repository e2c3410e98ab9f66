# SPDX-License-Identifier: Apache-2.0
"""A straight-line program as text, and as steps on the values of its registers."""

# letter of the registers: how many, and their bits; f and g are floats in registers
# without a type, k and b those of 16 bits
POOLS = {"h": (3, 16), "r": (5, 32), "d": (3, 64), "f": (5, 32), "g": (4, 64),
         "k": (4, 16), "b": (4, 16)}
PREDICATES = 4


def mask(width):
    return (1 << width) - 1


def signed(bits, width):
    bits &= mask(width)
    return bits - (1 << width) if bits >> (width - 1) else bits


def registers(rng, pool, n):
    count = PREDICATES if pool == "p" else POOLS[pool][0]
    return [f"{pool}{rng.randrange(count)}" for _ in range(n)]


class Program:
    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.steps = []
        self.functions = []  # that it may call
        self.depth = 0  # of its calls
        self.n_calls = 0  # through pointers

    def add(self, lines, compute):
        """Instructions that belong together; a single one may get a guard."""
        guard = ""
        if len(lines) == 1 and self.rng.random() < 0.2:
            register = registers(self.rng, "p", 1)[0]
            negated = self.rng.random() < 0.5
            guard = f"@{'!' if negated else ''}%{register} "
            inner = compute

            def compute(state):
                if state[register] != negated:
                    inner(state)

        self.lines += [f"{guard}{line};" for line in lines]
        self.steps.append(compute)

    def run(self, state):
        for step in self.steps:
            step(state)


def add_step(rng, program, text, to_pool, pools, compute, tail="", last=None, after=()):
    """One instruction with a destination and sources; `last`, an immediate for the last."""
    to = registers(rng, to_pool, 1)[0]
    sources = [registers(rng, pool, 1)[0] for pool in pools]
    names = [f"%{name}" for name in sources]
    if last is not None:
        names[-1] = str(last)
    width = POOLS[to_pool][1]

    def step(state):
        values = [state[name] for name in sources]
        if last is not None:
            values[-1] = last
        state[to] = compute(*values) & mask(width)

    lines = [f"{text} %{to}, {', '.join(names)}{tail}"]
    program.add(lines + [line.replace("$", f"%{to}") for line in after], step)
