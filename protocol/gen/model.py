# SPDX-License-Identifier: Apache-2.0
"""The description of the API, as the emitters see it.

parse.py builds these objects from the XML, check.py refuses contradictions, and
emit_*.py only read them. Each object knows its place, for errors with file and line.
"""

import re
from dataclasses import dataclass, field


class DescriptionError(Exception):
    """An error of the description: place and sentence."""

    def __init__(self, place, sentence):
        super().__init__(f"{place}: {sentence}")


@dataclass(frozen=True)
class Place:
    file: str
    line: int

    def __str__(self):
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Library:
    """What a description is of."""

    prefix: str  # of its symbols
    type_names: str  # pattern of the names that have to be described
    travels: bool  # whether calls may be sent to the host, so have numbers


LIBRARIES = {
    "": Library("cu", r"\b(?:CU|cu)[A-Za-z0-9_]+\b", True),
    "nvml": Library("nvml", r"\bnvml[A-Za-z0-9_]+\b", False),
}


@dataclass
class Type:
    """A name that C code may use for a type; kind determines the valid fields."""

    place: Place
    kind: str  # handle enum struct union scalar alias callback
    name: str
    tag: str = ""
    c: str = ""  # scalar: the C type behind it; alias: the other type
    wire: str = ""
    object_kind: str = ""  # handle: the kind of object it names
    returns: str = ""
    params: str = ""
    align: int = 0
    values: list = field(default_factory=list)  # enum: (name, value, place)
    answers: list = field(default_factory=list)  # enum of device attributes: Answer
    fields: list = field(default_factory=list)  # struct, union: Field


@dataclass
class Answer:
    """A device attribute with a fixed value for guests."""

    place: Place
    name: str
    number: int
    answer: int


@dataclass
class Row:
    """The value of some attributes on softgpu, and why; value "" if it is fixed."""

    place: Place
    names: list  # without the prefix of the table
    value: str
    source: str


@dataclass
class AttributeTable:
    """One row or none for each enumerator of an enumeration."""

    place: Place
    enum: str
    call: str
    prefix: str
    brief: str = ""
    samples: list = field(default_factory=list)  # the subjects of a row's values
    rows: list = field(default_factory=list)


@dataclass
class Field:
    """A member; type is "struct" or "union" if it has members."""

    place: Place
    name: str
    type: str
    array: str = ""
    fields: list = field(default_factory=list)


@dataclass
class Define:
    place: Place
    name: str
    value: str


# Packed size of a value without its tag, at most.
WIRE_MAX = {
    "int32": 10,
    "uint32": 5,
    "uint64": 10,
    "int64": 10,
    "fixed64": 8,
    "float": 4,
    "double": 8,
}

BASE_WIRE = {
    "int": "int32",
    "unsigned int": "uint32",
    "unsigned char": "uint32",
    "unsigned short": "uint32",
    "size_t": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
}

EXTRA_NUMBER = 100  # first field number of wire-only fields

ATTRIBUTES = "CUdevice_attribute"  # the enumeration that may have answers


@dataclass
class Param:
    place: Place
    direction: str  # in out inout extra extra-out
    name: str
    type: str
    wire: str = ""  # protobuf type, "" where it does not travel
    address: bool = False  # a pointer that travels as its value
    null: str = ""  # default error ok
    role: str = ""  # uses creates destroys, for handles that travel
    object_kind: str = ""
    range: str = ""  # device arena any
    bytes: str = ""
    max: int = 0
    repeated: int = 0
    memory: str = ""  # library: bytes that no program can take away
    number: int = 0  # field number
    position: int = -1  # in the C prototype; -1 for wire-only fields

    @property
    def in_request(self):
        return bool(self.wire) and self.direction in ("in", "inout", "extra")

    @property
    def in_reply(self):
        return bool(self.wire) and self.direction in ("out", "inout", "extra-out")

    @property
    def is_output(self):
        return self.direction in ("out", "inout")

    @property
    def field(self):
        return snake_case(self.name)

    @property
    def c_type(self):
        """The type in the prototype."""
        if self.type == "string":
            return "const char *"
        return pointer_to(self.type) if self.is_output else self.type

    @property
    def packed_max(self):
        """Bound of the packed size, tag included; variable parts without a bound: 0."""
        tag = 1 if self.number < 16 else 2
        if self.wire in ("string", "bytes"):
            return tag + 5 + self.max
        if self.repeated:
            return tag + 5 + self.repeated * WIRE_MAX[self.wire]
        return tag + WIRE_MAX[self.wire]


@dataclass
class Call:
    place: Place
    name: str
    symbol: str
    id: int
    since: int = 0
    minor: int = 0  # version of the protocol that added it
    reply: str = "refused"
    blocks: str = ""
    same_as: str = ""  # symbol of the call that this one goes on to
    guest: str = ""  # generated wrapped hand
    host: str = ""  # generated hand
    context: str = ""
    order: str = ""
    forgets: str = ""
    remembers: str = ""
    pt: str = ""
    pt_since: int = 0
    macro: str = ""
    header: str = ""
    internal: bool = False
    in_callback: bool = False  # may be made by a function that a stream calls
    why: str = ""
    code: str = ""  # of a refused call of NVML, if not NVML_ERROR_NOT_SUPPORTED
    before_init: bool = False  # NVML: may be called before nvmlInit
    returns: str = ""  # the C type of the result, if not the usual one
    brief: str = ""
    family: str = ""
    params: list = field(default_factory=list)  # of the prototype
    extras: list = field(default_factory=list)

    @property
    def remoted(self):
        return self.reply in ("sync", "async")

    @property
    def is_async(self):
        return self.reply == "async"

    @property
    def guest_by_hand(self):
        return self.reply == "local" or self.guest == "hand"

    @property
    def guest_wrapped(self):
        """Whether the entry point is by hand, and what it sends is not."""
        return self.guest == "wrapped"

    @property
    def host_by_hand(self):
        return self.host == "hand"

    @property
    def pt_symbol(self):
        return f"{self.symbol}_{self.pt}"

    @property
    def stream(self):
        """The parameter that a per-thread twin replaces, or that orders the call."""
        for p in self.params + self.extras:
            if p.type == "CUstream" and p.direction in ("in", "extra"):
                return p
        return None

    @property
    def takes_default_stream(self):
        """Whether it and its twin are one function by hand with the default stream."""
        has_stream = self.stream is not None and self.stream.position >= 0
        return bool(self.pt) and self.reply != "refused" and not has_stream

    @property
    def request_fields(self):
        return [p for p in self.params + self.extras if p.in_request]

    @property
    def in_place(self):
        """Whether packing the request reads none of the program's memory."""
        return not any(p.repeated or p.wire == "string" or
                       (p.wire == "bytes" and p.memory != "library")
                       for p in self.request_fields)

    @property
    def reply_fields(self):
        return [p for p in self.params + self.extras if p.in_reply]

    @property
    def public_name(self):
        """The name under which programs reach this symbol, and none other does."""
        return self.symbol if self.macro in ("", "no") else self.macro

    @property
    def message(self):
        """The stem of the message names: cuMemAlloc_v2 -> CuMemAllocV2."""
        return "".join(word[:1].upper() + word[1:] for word in self.symbol.split("_"))

    def c_struct(self, part):
        return f"Vgpu__{self.message}{part}"

    def c_macro(self, part):
        return f"VGPU__{camel_to_upper(self.message + part)}__INIT"

    def c_prefix(self, part):
        return f"vgpu__{camel_to_upper(self.message + part).lower()}"


@dataclass
class Api:
    library: Library = LIBRARIES[""]
    types: dict = field(default_factory=dict)
    defines: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    files: list = field(default_factory=list)
    tables: list = field(default_factory=list)  # AttributeTable
    proofs: dict = field(default_factory=dict)  # symbol: (program, test) that claim it

    @property
    def public(self):
        return [c for c in self.calls if not c.internal]

    @property
    def remoted(self):
        return [c for c in self.calls if c.remoted]

    def by_family(self, calls):
        """These calls by the file they are described in."""
        families = {}
        for call in calls:
            families.setdefault(call.family, []).append(call)
        return families

    @property
    def answers(self):
        """Device attributes with a fixed value for guests."""
        found = self.types.get(ATTRIBUTES)
        return found.answers if found else []

    def table_lines(self, table):
        """(enumerator, number, value, row) in the order of the numbers, one a number."""
        answers = {a.number: str(a.answer) for a in self.answers
                   if table.enum == ATTRIBUTES}
        numbers = {name: number for name, number, _ in self.types[table.enum].values}
        lines = []
        for row in table.rows:
            for name in row.names:
                number = numbers[table.prefix + name]
                lines.append((table.prefix + name, number,
                              row.value or answers[number], row))
        return sorted(lines, key=lambda line: line[1])

    @property
    def object_kinds(self):
        """Handles that name objects of the worker."""
        return [t for t in self.types.values() if t.object_kind]

    def resolve(self, name):
        """The type of a chain of aliases, or None."""
        seen = set()
        while name in self.types and self.types[name].kind == "alias":
            if name in seen:
                return None
            seen.add(name)
            name = self.types[name].c
        return self.types.get(name)

    def wire_of(self, name):
        """The protobuf type of a C type, or "" where it has none."""
        if name in BASE_WIRE:
            return BASE_WIRE[name]
        found = self.resolve(name)
        if found is None:
            return ""
        if found.kind == "handle":
            return "fixed64" if found.object_kind else ""
        if found.kind == "enum":
            return "int32"
        if found.kind == "scalar":
            return found.wire or BASE_WIRE.get(found.c, "")
        return ""

    def object_kind_of(self, name):
        found = self.resolve(name)
        return found.object_kind if found and found.kind == "handle" else ""

    def symbols(self):
        """All exported names, twins included, sorted."""
        names = [c.symbol for c in self.public]
        names += [c.pt_symbol for c in self.public if c.pt]
        return sorted(names)


def pointer_to(c_type):
    return c_type + "*" if c_type.endswith("*") else c_type + " *"


def declare(c_type, name):
    """A declaration: "int" "x" -> "int x", "char *" "p" -> "char *p"."""
    return c_type + name if c_type.endswith("*") else f"{c_type} {name}"


def snake_case(name):
    """dstDevice -> dst_device, hStream -> h_stream, ByteCount -> byte_count."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def camel_to_upper(name):
    """As protoc-c does it: an underscore before each capital that follows none."""
    out = []
    was_upper = True
    for c in name:
        if c.isupper() and not was_upper:
            out.append("_")
        out.append(c.upper())
        was_upper = c.isupper()
    return "".join(out)


def version_number(text):
    """3.2 -> 3020, as CUDA_VERSION counts."""
    major, minor = text.split(".")
    return int(major) * 1000 + int(minor) * 10
