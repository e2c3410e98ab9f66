#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Straight-line programs at random, with their results by a second implementation.

Writes each program as PTX, then for each thread the initial and the final values of the
registers. The results are computed on integers of any size (straight_integer.py) and on
pairs of integers n * 2 ** e (straight_real.py), and share nothing with the interpreter. Some
programs call functions (straight_calls.py).

    straight.py [--programs N] [--seed N] [--steps N] FILE
    STRAIGHT=FILE build/tests/softgpu/test-exec-straight
"""

import argparse
import random

from conversions import FLOATS, INTEGERS, around, edges_of, interesting
from straight_calls import add_call, declarations, make_functions, predicates, with_predicates
from straight_integer import INTEGER_STEPS
from straight_program import POOLS, PREDICATES, Program
from straight_real import NAN, REAL_STEPS, canonical

THREADS = 32
FUNCTIONS = 3  # of a program that has any
NAMES = [f"{pool}{i}" for pool, (n, _) in POOLS.items() for i in range(n)]
KINDS = {"h": "u16", "r": "u32", "d": "u64", "f": "f32", "g": "f64", "k": "f16", "b": "bf16"}


def header():
    loads = [f"ld.global.b{POOLS[name[0]][1]} %{name}, [%a+{8 * i}];"
             for i, name in enumerate(NAMES)]
    return [
        ".visible .entry k(.param .u64 in, .param .u64 out) {",
        *declarations(), ".reg .b64 %a, %z, %i;",
        "ld.param.u64 %a, [in]; ld.param.u64 %z, [out];",
        f"mov.u32 %rt, %tid.x; mul.wide.u32 %i, %rt, {8 * (len(NAMES) + 1)};",
        "add.u64 %a, %a, %i; add.u64 %z, %z, %i;", *loads,
        *predicates(),
    ]


def footer():
    stores = [f"st.global.b{POOLS[name[0]][1]} [%z+{8 * i}], %{name};"
              for i, name in enumerate(NAMES)]
    bits = ["mov.b32 %rt, 0;"]
    for i in range(PREDICATES):
        bits += [f"selp.b32 %rt0, {1 << i}, 0, %p{i};", "or.b32 %rt, %rt, %rt0;"]
    return [*stores, *bits, f"st.global.b32 [%z+{8 * len(NAMES)}], %rt;", "ret; }"]


def initial(rng, edges):
    """Edges, small numbers and any bits."""
    state = {}
    for name in NAMES:
        kind, bits = KINDS[name[0]], POOLS[name[0]][1]
        how = rng.random()
        if how < 0.5:
            state[name] = rng.choice(edges[kind])
        elif how < 0.7 and kind in FLOATS:
            _, mantissa, _, low = FLOATS[kind]
            exponent = rng.randrange(-4, 5) - low + 1
            state[name] = rng.getrandbits(1) << (bits - 1) | exponent << mantissa | \
                rng.getrandbits(mantissa)
        elif how < 0.7:
            state[name] = rng.randrange(100)
        else:
            state[name] = rng.getrandbits(bits)
        if kind in NAN:
            state[name] = canonical(kind, state[name])
    return state


def write_program(rng, edges, n_steps, out):
    program = Program(rng)
    steps = [INTEGER_STEPS, REAL_STEPS]
    if rng.random() < 0.3:
        program.functions = make_functions(rng, steps, FUNCTIONS)
        steps = [*steps, [add_call]]
    for _ in range(n_steps):
        rng.choice(rng.choice(steps))(rng, program)
    lines = [".version 9.0", ".target sm_121", ".address_size 64"]
    for function in program.functions:
        lines += function.lines()
    lines += header() + program.lines + footer()
    print("program", len(lines), THREADS, len(NAMES) + 1, file=out)
    print("\n".join(lines), file=out)
    for _ in range(THREADS):
        state = initial(rng, edges)
        before = [state[name] for name in NAMES]
        state = with_predicates(state)
        program.run(state)
        flags = sum(state[f"p{i}"] << i for i in range(PREDICATES))
        after = [state[name] for name in NAMES] + [flags]
        print(*(f"{value:x}" for value in before + [0] + after), file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--programs", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the numbers (default: 1)")
    parser.add_argument("--steps", type=int, default=40,
                        help="of each program (default: 40)")
    parser.add_argument("file", metavar="FILE", help="the file to write")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    numbers = [near for n, e in interesting() for near in around(n, e)]
    edges = {name: edges_of(name, numbers) for name in INTEGERS + list(FLOATS)}
    with open(options.file, "w", encoding="ascii") as out:
        for _ in range(options.programs):
            write_program(rng, edges, options.steps, out)


if __name__ == "__main__":
    main()
