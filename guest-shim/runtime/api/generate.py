#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything dull of libcudart.so from calls.txt, which explains its own format.

    generate.py PRODUCT VERSION CALLS TYPES NUMBERS OUTPUT

Products, each of one version, 12 or 13:

    entries     the exported functions
    map         version script
    symbols     the exported names, a list
    check       C++: signatures and layouts compared with a toolkit's header
    coverage    Markdown: what is implemented, on which call of the driver, and what not
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "protocol/gen"))
from writer import Writer  # noqa: E402

ENTRY = re.compile(r"(?P<name>\w+)\s*(?:\((?P<params>[^)]*)\))?\s*"
                   r"(?:\{(?P<options>[^}]*)\})?\s*=\s*(?P<body>[^;]*);")
OPTIONS = {"ptsz", "ptds", "init", "bare", "only", "12"}
PARAM = re.compile(r"(?P<type>.*?[\s*])(?P<name>\w+)$")


class Call:
    """One entry of calls.txt."""

    def __init__(self, family, match):
        self.family = family
        self.name = match["name"]
        self.has_params = match["params"] is not None
        params = " ".join((match["params"] or "").split())
        self.params = [] if params in ("", "void") else params.split(", ")
        self.options = {}
        for option in filter(None, re.split(r",\s*", (match["options"] or "").strip())):
            key, _, value = option.partition("=")
            if key not in OPTIONS:
                raise ValueError(f"{self.name}: no option {key}")
            self.options[key] = value
        body = " ".join(match["body"].split())
        self.kind = body.split()[0] if body.split()[0] in ("refused", "here") else "call"
        self.body = body
        if self.kind == "call" and not self.has_params:
            raise ValueError(f"{self.name}: no parameters")
        if self.kind == "refused" and not re.fullmatch(r'refused "[^"]+"', body):
            raise ValueError(f"{self.name}: a refused call needs a reason")

    @property
    def reason(self):
        return self.body.split('"')[1]

    def exported(self, version):
        """Returns the name in that version, None if it is not in it."""
        if self.options.get("only", version) != version:
            return None
        return self.options.get(version, self.name)

    @property
    def twin(self):
        return next((f"_{suffix}" for suffix in ("ptsz", "ptds") if suffix in self.options), "")

    @property
    def level(self):
        for level in ("init", "bare"):
            if level in self.options:
                return level
        return "context"

    def types(self):
        return [PARAM.match(param)["type"].strip() for param in self.params]

    def expression(self, is_twin):
        """The value in C; a twin replaces the stream of the process by that of the thread."""
        text = self.body
        if text.startswith("cu") and not text.startswith("cuda"):
            text = "rt_driver." + text
        if is_twin:
            text = re.sub(r"\bSYNC\b", "SYNC_PER_THREAD", text)
            for param, kind in zip(self.params, self.types()):
                if kind == "cudaStream_t":
                    name = PARAM.match(param)["name"]
                    text = re.sub(rf"\b{name}\b", f"rt_per_thread({name})", text)
        return text


def read(path):
    """Returns the calls, in the order of the file."""
    calls, family = [], None
    text = re.sub(r"(?m)^#.*$", "", Path(path).read_text(encoding="utf-8"))
    for part in re.split(r"(?m)^(\[\w+\])$", text):
        if re.fullmatch(r"\[\w+\]", part):
            family = part[1:-1]
            continue
        rest = ENTRY.sub(lambda match: calls.append(Call(family, match)) or "", part).strip()
        if rest:
            raise ValueError(f"{path}: not understood: {rest[:60]}")
    return calls


def exports(calls, version):
    """Returns (name, call, is_twin) of each exported symbol."""
    found = []
    for call in calls:
        name = call.exported(version)
        if name:
            found.append((name, call, False))
            if call.twin:
                found.append((name + call.twin, call, True))
    names = [name for name, _, _ in found]
    assert len(names) == len(set(names)), "a name is exported twice"
    return found


def head(w, title, comment="/* {} */"):
    w.line(comment.format("Generated from calls.txt by generate.py; do not edit."))
    w.line(comment.format("SPDX-License-Identifier: Apache-2.0"))
    w.line(comment.format(title))
    w.blank()


def emit_entries(calls, version):
    w = Writer()
    head(w, f"Exported functions of libcudart.so.{version}")
    w.line('#include "runtime/calls.h"')
    w.blank()
    w.line("#define EXPORT __attribute__((visibility(\"default\")))")
    w.blank()
    w.line(f"const int rt_version = {'13000' if version == '13' else '12090'};")
    for name, call, is_twin in exports(calls, version):
        if call.kind == "here":
            continue
        params = call.params or ["void"]
        if call.kind == "refused":
            params = ["void"]
        w.blank()
        declaration = f"EXPORT cudaError_t {name}("
        w.wrapped(declaration, params, ");")
        w.wrapped(declaration, params, ")")
        w.line("{")
        if call.kind == "refused":
            w.line("\treturn rt_leave(cudaErrorNotSupported);")
        else:
            w.line(f"\tint error = rt_enter_{call.level}();")
            w.blank()
            w.line("\tif (!error)")
            pieces = call.expression(is_twin).split(", ")
            w.wrapped("\t\terror = ", pieces, ";")
            w.line("\treturn rt_leave(error);")
        w.line("}")
    return w.finish()


def emit_map(calls, version):
    w = Writer()
    head(w, "Exported symbols")
    w.line(f"libcudart.so.{version} {{")
    w.line("global:")
    for name, _, _ in sorted(exports(calls, version), key=lambda item: item[0]):
        w.line(f"\t{name};")
    w.line("local:")
    w.line("\t*;")
    w.line("};")
    return w.finish()


def emit_symbols(calls, version):
    return "\n".join(sorted(name for name, _, _ in exports(calls, version))) + "\n"


CHECK = """
#define __CUDA_API_VERSION_INTERNAL
#include <cstddef>
#include <type_traits>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

namespace ours {
#if CUDART_VERSION < 13000
typedef int CUatomicOperation; /* of calls that 12 lacks */
#endif
#define VGPU_RUNTIME_CHECK
#include "runtime/types.h"
}

#define SAME_TYPE(_name, ...) \\
	static_assert(std::is_same<decltype(_name), __VA_ARGS__>::value, #_name)
#define SAME_VALUE(_name) static_assert((long)::_name == (long)ours::_name, #_name)
#define SAME_NUMBER(_name, _driver) static_assert((long)_name == (long)_driver, #_name)
#define SAME_SIZE(_type) static_assert(sizeof(::_type) == sizeof(ours::_type), #_type)
#define SAME_OFFSET(_type, _field) static_assert(offsetof(::_type, _field) == \\
	offsetof(ours::_type, _field), #_type "." #_field)
"""

# Structures of which CUDA 12 has the first members only.
GREW = {
    "cudaPointerAttributes": {"reserved"},
    "cudaResourceDesc": {"flags"},
    "cudaResourceViewDesc": {"reserved"},
}

# Types of ours that have another name in the toolkit's header.
ALIASES = {
    "rt_device_prop_12": "cudaDeviceProp",
    "rt_device_prop_11": None,
    "CUlogIterator": "cudaLogIterator",
    "CUlogsCallbackHandle": "cudaLogsCallbackHandle",
}


def members(text):
    """Names of the members of a structure, without those inside unions and structures."""
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", "", text)
    found = []
    for statement in text.split(";"):
        found += re.findall(r"(\w+)(?:\[[\w *-]+\])*\s*(?:,|$)", statement.strip())
    return [name for name in found if name not in ("union", "struct")]


def read_numbers(path):
    """Returns pairs of names, of the Runtime API and of the Driver API."""
    names = re.sub(r"(?m)^#.*$", "", Path(path).read_text(encoding="utf-8")).split()
    return list(zip(names[::2], names[1::2], strict=True))


def emit_check(calls, version, types, numbers):
    w = Writer()
    head(w, "The description against NVIDIA's cuda_runtime_api.h")
    w.text(CHECK)
    w.blank()
    for name, call, _ in exports(calls, version):
        if call.kind != "call" or name.startswith("__"):
            continue
        kinds = [ALIASES.get(kind.rstrip(" *"), kind.rstrip(" *")) and
                 re.sub(r"\w+", lambda m: ALIASES.get(m[0], m[0]) or "", kind)
                 for kind in call.types()]
        if None in kinds:
            continue
        w.wrapped(f"SAME_TYPE({name}, cudaError_t(", kinds or ["void"], "));")
    w.blank()
    text = re.sub(r"/\*.*?\*/", "", Path(types).read_text(encoding="utf-8"), flags=re.S)
    for body, _ in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        for name in re.findall(r"(\w+) =", body):
            w.line(f"SAME_VALUE({name});")
    w.blank()
    for match in re.finditer(r"^typedef (?:struct|union) \w+ \{\n(.*?)^\} (\w+);", text,
                             flags=re.S | re.M):
        body, name = match.groups()
        if name.startswith("rt_") or name in ("dim3",):
            continue
        if name == "cudaDeviceProp" and version != "13":
            continue
        later = GREW.get(name, set()) if version == "12" else set()
        if not later:
            w.line(f"SAME_SIZE({name});")
        for member in members(body):
            if member not in later:
                w.line(f"SAME_OFFSET({name}, {member});")
    w.blank()
    for name in re.findall(r"^typedef [\w *]+?(cuda\w+);", text, flags=re.M):
        if name not in GREW and not (version == "12" and "tomic" in name):
            w.line(f"SAME_SIZE({name});")
    if version == "13":
        w.blank()
        for name, driver_name in read_numbers(numbers):
            w.wrapped("SAME_NUMBER(", [name, driver_name], ");")
    if version == "12":
        w.blank()
        w.line("static_assert(sizeof(::cudaDeviceProp) == "
               "sizeof(ours::rt_device_prop_12), \"size\");")
        body = re.search(r"^typedef struct rt_device_prop_12 \{\n(.*?)^\}", text,
                         flags=re.S | re.M)[1]
        for member in members(body):
            w.line(f"static_assert(offsetof(::cudaDeviceProp, {member}) == "
                   f"offsetof(ours::rt_device_prop_12, {member}), \"{member}\");")
    return w.finish()


def emit_coverage(calls, _):
    n = {kind: sum(1 for call in calls if call.kind == kind)
         for kind in ("call", "here", "refused")}
    lines = ["# Coverage of the CUDA Runtime API", "",
             "Generated from guest-shim/runtime/api/calls.txt. Our libcudart.so.12 and .13 have "
             f"{n['call'] + n['here']} calls; {n['refused']} more exist and return "
             "cudaErrorNotSupported.", "",
             "| call | in | per-thread twin | made of |", "|---|---|---|---|"]
    for call in sorted(calls, key=lambda call: (call.name.lower(), call.options.get("only", ""))):
        where = call.options.get("only", "12, 13")
        if "12" in call.options:
            where = f"13; in 12 `{call.options['12']}`"
        made = f"refused: {call.reason}" if call.kind == "refused" else "by hand"
        if call.kind == "call" and call.body.startswith("cu"):
            made = f"`{call.body.split('(')[0]}`"
        lines.append(f"| `{call.name}` | {where} | {call.twin.lstrip('_')} | {made} |")
    return "\n".join(lines) + "\n"


def main():
    product, version, path, types, numbers, output = sys.argv[1:]
    calls = read(path)
    text = {
        "entries": lambda: emit_entries(calls, version),
        "map": lambda: emit_map(calls, version),
        "symbols": lambda: emit_symbols(calls, version),
        "check": lambda: emit_check(calls, version, types, numbers),
        "coverage": lambda: emit_coverage(calls, version),
    }[product]()
    Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
