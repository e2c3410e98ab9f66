# SPDX-License-Identifier: Apache-2.0
"""From XML files to the model.

Refuses what the vocabulary does not have: unknown elements and attributes, missing
ones, values outside a closed set, names used twice. api/vocabulary.md explains
each of them; a test compares the two lists.
"""

import re
from xml.parsers import expat

from model import (
    EXTRA_NUMBER,
    LIBRARIES,
    Answer,
    Api,
    AttributeTable,
    Call,
    Define,
    DescriptionError,
    Field,
    Param,
    Place,
    Row,
    Type,
    version_number,
)

YES = ("yes",)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
NUMBER = re.compile(r"-?[0-9]+\Z")
VERSION = re.compile(r"[0-9]+\.[0-9]+\Z")

# Form of an attribute: a tuple is a closed set, a pattern must match, None is free.
# How long a result stays valid, from long to short.
REMEMBERED = ("constant", "stream", "code", "setting")
FORGOTTEN = ("launches",) + REMEMBERED[1:3]
NULLS = ("default", "error", "ok")
PARAM_FORM = {
    "name": NAME,
    "type": None,
    "wire": ("no", "address", "fixed64"),
    "null": NULLS,
    "uses": NAME,
    "creates": NAME,
    "destroys": NAME,
    "range": ("device", "arena", "any"),
    "bytes": None,
    "max": NUMBER,
    "repeated": NUMBER,
    "memory": ("library",),
}
CALL_FORM = {
    "name": NAME,
    "symbol": NAME,
    "id": NUMBER,
    "since": VERSION,
    "reply": ("sync", "async", "local", "refused"),
    "blocks": ("never", "maybe"),
    "as": NAME,
    "guest": ("generated", "wrapped", "hand"),
    "host": ("generated", "hand"),
    "context": ("current", "none"),
    "order": ("stream",),
    "forgets": FORGOTTEN,
    "remembers": REMEMBERED,
    "pt": ("ptsz", "ptds"),
    "pt-since": VERSION,
    "minor": NUMBER,
    "macro": NAME,
    "header": None,
    "internal": YES,
    "callback": ("allowed",),
    "why": None,
    "code": ("NVML_ERROR_INVALID_ARGUMENT", "NVML_ERROR_NO_PERMISSION"),
    "init": ("no",),
    "returns": None,
}

# element: (attributes that must be there, form of all attributes, children)
VOCABULARY = {
    "api": ((), {"library": ("nvml",)},
            ("handle", "enum", "struct", "union", "scalar", "alias", "callback",
             "define", "call", "attributes")),
    "handle": (("name", "tag"),
               {"name": NAME, "tag": NAME, "kind": NAME}, ()),
    "enum": (("name",), {"name": NAME, "tag": NAME}, ("value",)),
    "value": (("name", "value"), {"name": NAME, "value": NUMBER, "answer": NUMBER}, ()),
    "struct": ((), {"name": NAME, "tag": NAME, "array": None, "align": NUMBER},
               ("field", "struct", "union")),
    "union": ((), {"name": NAME, "tag": NAME, "array": None, "align": NUMBER},
              ("field", "struct", "union")),
    "field": (("name", "type"), {"name": NAME, "type": None, "array": None}, ()),
    "scalar": (("name", "c"), {"name": NAME, "c": None, "wire": ("fixed64",)}, ()),
    "alias": (("name", "type"), {"name": NAME, "type": None}, ()),
    "callback": (("name", "returns", "params"),
                 {"name": NAME, "returns": None, "params": None}, ()),
    "define": (("name", "value"), {"name": NAME, "value": None}, ()),
    "call": (("name", "id", "reply"), CALL_FORM,
             ("brief", "in", "out", "inout", "extra", "extra-out")),
    "attributes": (("of", "call", "prefix"),
                   {"of": NAME, "call": NAME, "prefix": NAME, "samples": None},
                   ("brief", "row")),
    "row": (("names", "source"), {"names": None, "value": None, "source": None}, ()),
    "brief": ((), {}, ()),
    "in": (("name", "type"), PARAM_FORM, ()),
    "out": (("name", "type"), PARAM_FORM, ()),
    "inout": (("name", "type"), PARAM_FORM, ()),
    "extra": (("name", "type"), PARAM_FORM, ()),
    "extra-out": (("name", "type"), PARAM_FORM, ()),
}


class Node:
    """An element of the file."""

    def __init__(self, tag, attributes, place):
        self.tag = tag
        self.attributes = attributes
        self.place = place
        self.children = []
        self.text = ""

    def get(self, name, default=""):
        return self.attributes.get(name, default)

    def number(self, name):
        return int(self.attributes.get(name, "0"))


def read_nodes(path, shown):
    """The root element of a file. Line numbers are those where an element begins."""
    stack = []
    roots = []
    parser = expat.ParserCreate()

    def start(tag, attributes):
        node = Node(tag, attributes, Place(shown, parser.CurrentLineNumber))
        check_node(node, stack[-1] if stack else None, roots[0] if roots else node)
        if stack:
            stack[-1].children.append(node)
        else:
            roots.append(node)
        stack.append(node)

    def end(tag):
        stack.pop()

    def text(data):
        if stack[-1].tag == "brief":
            stack[-1].text += data
        elif data.strip():
            raise DescriptionError(
                Place(shown, parser.CurrentLineNumber),
                f"text {data.strip()!r} is outside of <brief>")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise DescriptionError(
            Place(shown, error.lineno),
            f"this is not well-formed XML: {expat.ErrorString(error.code)}") from error
    return roots[0]


def check_node(node, parent, root):
    """Refuses what the vocabulary does not have."""
    if parent is None and node.tag != "api":
        raise DescriptionError(node.place, f"the root element is <{node.tag}>, not <api>")
    if node.tag not in VOCABULARY:
        raise DescriptionError(node.place, f"there is no element <{node.tag}>")
    if parent is not None and node.tag not in VOCABULARY[parent.tag][2]:
        raise DescriptionError(
            node.place, f"<{node.tag}> is not allowed inside <{parent.tag}>")
    required, form, _ = VOCABULARY[node.tag]
    for name in required:
        if name == "id" and not LIBRARIES[root.get("library")].travels:
            continue
        if not node.get(name):
            raise DescriptionError(
                node.place, f"<{node.tag}> needs the attribute {name!r}")
    for name, value in node.attributes.items():
        if name not in form:
            raise DescriptionError(
                node.place, f"<{node.tag}> has no attribute {name!r}")
        allowed = form[name]
        if isinstance(allowed, tuple) and value not in allowed:
            raise DescriptionError(
                node.place,
                f"{name}={value!r} is not one of: {', '.join(allowed)}")
        if isinstance(allowed, re.Pattern) and not allowed.match(value):
            raise DescriptionError(node.place, f"{name}={value!r} is malformed")


def build_fields(node):
    fields = []
    for child in node.children:
        if child.tag == "field":
            fields.append(Field(child.place, child.get("name"), child.get("type"),
                                child.get("array")))
        else:
            fields.append(Field(child.place, child.get("name"), child.tag,
                                child.get("array"), build_fields(child)))
    return fields


def build_type(node):
    if not node.get("name"):
        raise DescriptionError(node.place, f"<{node.tag}> needs the attribute 'name'")
    return Type(
        place=node.place,
        kind=node.tag,
        name=node.get("name"),
        tag=node.get("tag"),
        c=node.get("c") or node.get("type"),
        wire=node.get("wire"),
        object_kind=node.get("kind"),
        returns=node.get("returns"),
        params=node.get("params"),
        align=node.number("align"),
        values=[(v.get("name"), int(v.get("value")), v.place)
                for v in node.children if v.tag == "value"],
        answers=[Answer(v.place, v.get("name"), v.number("value"), v.number("answer"))
                 for v in node.children if v.get("answer")],
        fields=build_fields(node) if node.tag in ("struct", "union") else [],
    )


def build_table(node):
    table = AttributeTable(
        place=node.place,
        enum=node.get("of"),
        call=node.get("call"),
        prefix=node.get("prefix"),
        samples=[s.strip() for s in node.get("samples").split("/")],
    )
    for child in node.children:
        if child.tag == "brief":
            table.brief = " ".join(child.text.split())
        else:
            table.rows.append(Row(child.place, child.get("names").split(),
                                  child.get("value"), child.get("source")))
    return table


def build_param(api, node, remoted):
    wire = ""
    if remoted and node.get("wire") != "no":
        wire = "fixed64" if node.get("wire") else api.wire_of(node.get("type"))
    if remoted and not wire and node.get("wire") != "no":
        raise DescriptionError(
            node.place,
            f"{node.get('name')!r} of type {node.get('type')!r} cannot travel: "
            "describe the type, or say wire=\"no\"")
    param = Param(
        place=node.place,
        direction=node.tag,
        name=node.get("name"),
        type=node.get("type"),
        wire=wire,
        address=node.get("wire") == "address",
        null=node.get("null"),
        range=node.get("range"),
        bytes=node.get("bytes"),
        max=node.number("max"),
        repeated=node.number("repeated"),
        memory=node.get("memory"),
    )
    roles = [r for r in ("uses", "creates", "destroys") if node.get(r)]
    if len(roles) > 1:
        raise DescriptionError(
            node.place, f"{param.name!r} has two roles: {' and '.join(roles)}")
    kind = api.object_kind_of(param.type)
    if roles:
        param.role, param.object_kind = roles[0], node.get(roles[0])
    elif kind and wire:
        param.role = "uses" if param.in_request else ""
        param.object_kind = kind
    return param


def build_call(api, node, family):
    call = Call(
        place=node.place,
        name=node.get("name"),
        symbol=node.get("symbol") or node.get("name"),
        id=node.number("id"),
        since=version_number(node.get("since", "0.0")),
        reply=node.get("reply"),
        blocks=node.get("blocks"),
        same_as=node.get("as"),
        guest=node.get("guest"),
        host=node.get("host"),
        context=node.get("context"),
        order=node.get("order"),
        forgets=node.get("forgets"),
        remembers=node.get("remembers"),
        minor=node.number("minor"),
        pt=node.get("pt"),
        pt_since=version_number(node.get("pt-since", "0.0")),
        macro=node.get("macro"),
        header=node.get("header"),
        internal=node.get("internal") == "yes",
        in_callback=node.get("callback") == "allowed",
        why=node.get("why"),
        code=node.get("code"),
        before_init=node.get("init") == "no",
        returns=node.get("returns"),
        family=family,
    )
    for child in node.children:
        if child.tag == "brief":
            call.brief = " ".join(child.text.split())
            continue
        param = build_param(api, child, call.remoted)
        if child.tag.startswith("extra"):
            param.number = EXTRA_NUMBER + len(call.extras)
            call.extras.append(param)
        else:
            param.position = len(call.params)
            param.number = param.position + 2
            call.params.append(param)
    return call


def load(paths, shown=None):
    """Reads the files in this order and returns the whole description."""
    api = Api()
    pending = []
    for path in paths:
        name = shown(path) if shown else path
        api.files.append(name)
        root = read_nodes(path, name)
        library = LIBRARIES[root.get("library")]
        if api.files[1:] and library is not api.library:
            raise DescriptionError(root.place, "this file describes another library than "
                                               f"{api.files[0]}")
        api.library = library
        for node in root.children:
            if node.tag == "call":
                family = re.sub(r"^(driver|nvml)-|\.xml$", "", name.split("/")[-1])
                pending.append((node, family))
            elif node.tag == "attributes":
                api.tables.append(build_table(node))
            elif node.tag == "define":
                api.defines.append(Define(node.place, node.get("name"), node.get("value")))
            else:
                found = build_type(node)
                if found.name in api.types:
                    raise DescriptionError(
                        found.place,
                        f"type {found.name!r} is already defined at "
                        f"{api.types[found.name].place}")
                api.types[found.name] = found
    # Calls last: a type may be defined in any file.
    api.calls = [build_call(api, node, family) for node, family in pending]
    return api
