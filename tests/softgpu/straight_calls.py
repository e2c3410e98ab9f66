# SPDX-License-Identifier: Apache-2.0
"""Functions of straight-line programs: random steps on registers of their own.

A function has an argument of each kind and a result of one; its other registers begin as
copies of the arguments. A call names it, or has its address in a register; functions call
those that were made before them.
"""

from straight_program import POOLS, PREDICATES, Program, registers

DEPTH_MAX = 3


def declarations():
    return [*(f".reg .b{bits} %{pool}<{n}>, %{pool}t;" for pool, (n, bits) in POOLS.items()),
            ".reg .b32 %rt<4>; .reg .b64 %dt<4>;", f".reg .pred %p<{PREDICATES}>, %pt;"]


def predicates():
    return [f"and.b32 %rt, %r{i}, 1; setp.ne.b32 %p{i}, %rt, 0;" for i in range(PREDICATES)]


def with_predicates(state):
    return state | {f"p{i}": bool(state[f"r{i}"] & 1) for i in range(PREDICATES)}


def signature(name, to_pool):
    arguments = ", ".join(f".reg .b{bits} %a{pool}" for pool, (_, bits) in POOLS.items())
    return f"(.reg .b{POOLS[to_pool][1]} %o) {name} ({arguments})"


class Function:
    def __init__(self, rng, name, steps, functions):
        self.name = name
        self.body = Program(rng)
        self.body.functions = functions
        self.depth = 1
        for _ in range(rng.randrange(1, 7)):
            rng.choice(rng.choice(steps))(rng, self.body)
        self.depth += self.body.depth
        self.result = registers(rng, rng.choice(list(POOLS)), 1)[0]

    def lines(self):
        copies = [f"mov.b{bits} %{pool}{i}, %a{pool};"
                  for pool, (n, bits) in POOLS.items() for i in range(n)]
        return [f".func {signature(self.name, self.result[0])} {{", *declarations(), *copies,
                *predicates(), *self.body.lines,
                f"mov.b{POOLS[self.result[0]][1]} %o, %{self.result}; ret; }}"]

    def compute(self, arguments):
        state = {f"{pool}{i}": value for (pool, (n, _)), value in
                 zip(POOLS.items(), arguments) for i in range(n)}
        state = with_predicates(state)
        self.body.run(state)
        return state[self.result]


def add_call(rng, program):
    candidates = [f for f in program.functions if f.depth < DEPTH_MAX]
    if not candidates:
        return
    function = rng.choice(candidates)
    arguments = [registers(rng, pool, 1)[0] for pool in POOLS]
    to = registers(rng, function.result[0], 1)[0]
    listed = ", ".join(f"%{name}" for name in arguments)
    program.depth = max(program.depth, function.depth)

    def step(state):
        state[to] = function.compute([state[name] for name in arguments])

    if rng.random() < 0.5:
        program.add([f"call (%{to}), {function.name}, ({listed})"], step)
        return
    program.n_calls += 1
    prototype = f"P{program.n_calls}"
    program.lines.append(f"{prototype}: .callprototype {signature('_', function.result[0])};")
    program.add([f"mov.u64 %dt0, {function.name}",
                 f"call (%{to}), %dt0, ({listed}), {prototype}"], step)


def make_functions(rng, steps, n):
    functions = []
    for i in range(n):
        functions.append(Function(rng, f"f{i}", [*steps, [add_call]], functions[:]))
    return functions
