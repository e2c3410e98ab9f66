# SPDX-License-Identifier: Apache-2.0
"""Text as we would write it by hand: tabs of 8, 90 columns."""

COLUMNS = 90
TAB = 8


def width(text):
    """Columns that a line takes; tabs count to the next multiple of 8."""
    columns = 0
    for c in text:
        columns = (columns // TAB + 1) * TAB if c == "\t" else columns + 1
    return columns


def wrap(head, items, tail, columns=COLUMNS, separator=","):
    """head + items joined by ", " + tail, broken after commas where it gets too long.

    Further lines are indented by one tab more than the first.
    """
    indent = "\t" * (len(head) - len(head.lstrip("\t")) + 1)
    lines = []
    line = head
    for i, item in enumerate(items):
        last = i == len(items) - 1
        piece = item + (tail if last else separator)
        space = "" if line == head or line == indent else " "
        if width(line + space + piece) > columns and line not in (head, indent):
            lines.append(line)
            line, space = indent, ""
        elif width(line + piece) > columns and line == head and head.strip():
            lines.append(line.rstrip())
            line, space = indent, ""
        line += space + piece
    if not items:
        line += tail
    lines.append(line)
    return "\n".join(lines)


class Writer:
    """Collects lines."""

    def __init__(self):
        self.lines = []

    def line(self, text=""):
        self.lines.append(text)

    def wrapped_value(self, head, value, tail=";"):
        """An initialisation, its value on a separate line if it gets too long."""
        self.line(wrap(head + " ", [value], tail))

    def text(self, block):
        """A block of lines, with its common indentation."""
        self.lines += block.strip("\n").split("\n")

    def wrapped(self, head, items, tail):
        self.line(wrap(head, items, tail))

    def wrapped_or(self, head, items, tail):
        """items joined by " | ", broken in front of a bar that gets too far right."""
        self.line(wrap(head, items, tail, separator=" |"))

    def blank(self):
        """One empty line, unless there is one already."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def c_comment(self, text):
        """A comment of one or more lines."""
        words = text.split()
        if width("/* " + text + " */") <= COLUMNS and "\n" not in text:
            self.line(f"/* {text} */")
            return
        self.line("/*")
        line = " *"
        for word in words:
            if width(line + " " + word) > COLUMNS:
                self.line(line)
                line = " *"
            line += " " + word
        self.line(line)
        self.line(" */")

    def head(self, api, title, comment="/* {} */"):
        """First lines of every product: where it comes from, licence, title."""
        source = "protocol/api" if len(api.files) > 1 else api.files[0]
        self.line(comment.format(f"Generated from {source} by protocol/gen; do not edit."))
        self.line(comment.format("SPDX-License-Identifier: Apache-2.0"))
        self.line(comment.format(title))
        self.blank()

    def finish(self):
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        return "\n".join(self.lines) + "\n"
