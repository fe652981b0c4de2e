"""XML from strangers: elements with their lines, no entities, no document types, bounded in size, depth and number."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from borelli.errors import FileFormatError
from borelli.files.text import read_bytes

MAX_DEPTH = 200
"""Elements inside one another; the deepest model met has 40."""
MAX_ELEMENTS = 200_000
"""In one file; the largest model met has 60 thousand."""


@dataclass(slots=True)
class Element:
    """An XML element as it stands in its file."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    line: int = 0
    path: object = ""

    def all(self, tag: str) -> Iterator[Element]:
        """The children of that tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """The first child of that tag."""
        return next(self.all(tag), None)

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def error(self, problem: str) -> FileFormatError:
        """The error that names this element's file and line."""
        return FileFormatError(self.path, problem, line=self.line)


def read_xml(path: str | os.PathLike[str]) -> Element:
    """The root element of an XML file."""
    return parse_xml(read_bytes(path), path)


def parse_xml(content: bytes, path: object) -> Element:
    """The root element of XML text; `path` is named in errors."""
    try:
        return _parsed(content, path)
    except _NotWellFormedError as error:
        raise FileFormatError(path, f"not valid XML: {error.text}", line=error.line) from None


def read_lenient_xml(path: str | os.PathLike[str]) -> tuple[Element, str]:
    """The root element of an XML file, and what was wrong with it; empty: nothing.

    Attributes with no space between them and `--` inside comments, which some programs write and read, are taken.
    """
    content = read_bytes(path)
    try:
        return _parsed(content, path), ""
    except _NotWellFormedError as error:
        try:
            return _parsed(_mended(content), path), f"line {error.line}: {error.text}"
        except _NotWellFormedError:
            raise FileFormatError(path, f"not valid XML: {error.text}", line=error.line) from None


class _NotWellFormedError(Exception):
    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.text, self.line = what, line


def find_root_tag(content: bytes) -> str | None:
    """The tag of the first element of what may be XML text; None if there is none before the text goes wrong."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: found.append(tag) if not found else None
    try:
        for start in range(0, len(content), 4096):
            parser.Parse(content[start : start + 4096], False)
            if found:
                break
    except (expat.ExpatError, LookupError, ValueError):
        pass
    return found[0] if found else None


def make_element(tag: str, /, *children: Element | None, text: str = "", **attributes: str | None) -> Element:
    """An element to be written; children and attributes that are None are left out."""
    stated = {key: value for key, value in attributes.items() if value is not None}
    return Element(tag, stated, [child for child in children if child is not None], text)


def format_xml(root: Element) -> str:
    """The XML text of an element and all below it."""
    lines = ['<?xml version="1.0" encoding="UTF-8" ?>']
    waiting: list[tuple[Element | str, int]] = [(root, 0)]
    while waiting:
        element, depth = waiting.pop()
        indent = "\t" * depth
        if isinstance(element, str):
            lines.append(f"{indent}</{element}>")
            continue
        start = element.tag + "".join(f" {key}={quoteattr(value)}" for key, value in element.attributes.items())
        if element.children:
            lines.append(f"{indent}<{start}>")
            waiting.append((element.tag, depth))
            waiting.extend((child, depth + 1) for child in reversed(element.children))
        else:
            lines.append(f"{indent}<{start}>{escape(element.text)}</{element.tag}>")
    return "\n".join((*lines, ""))


class _Builder:
    """The tree as the parser walks through the text."""

    def __init__(self, path: object) -> None:
        self.path = path
        self.root: Element | None = None
        self.open: list[Element] = []
        self.texts: list[list[str]] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.parser.EntityDeclHandler = self.refuse
        self.parser.buffer_text = True

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise FileFormatError(self.path, f"more than {MAX_ELEMENTS} elements are not read", line=line)
        if len(self.open) >= MAX_DEPTH:
            raise FileFormatError(self.path, f"elements are nested more than {MAX_DEPTH} deep", line=line)
        element = Element(tag, attributes, line=line, path=self.path)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def end(self, tag: str) -> None:
        self.open.pop().text = "".join(self.texts.pop()).strip()

    def characters(self, text: str) -> None:
        # text between children is layout; only that before the first child can be content
        if self.open and not self.open[-1].children:
            self.texts[-1].append(text)

    def refuse(self, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise FileFormatError(
            self.path, "the XML declares a document type or entities, which are not read; remove them", line=line
        )


def _parsed(content: bytes, path: object) -> Element:
    if not content.strip():
        raise FileFormatError(path, "the file is empty")
    builder = _Builder(path)
    try:
        builder.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise _NotWellFormedError(expat.ErrorString(error.code), error.lineno) from None
    except (LookupError, ValueError) as error:  # an encoding that does not exist
        raise FileFormatError(path, f"not readable as XML text: {error}") from None
    assert builder.root is not None
    return builder.root


def _mended(content: bytes) -> bytes:
    """The text with spaces between attributes and empty comments; lines stay where they are."""
    parts, place = [], 0
    while (start := content.find(b"<!--", place)) >= 0:
        end = content.find(b"-->", start + 4)
        if end < 0:
            break
        parts += [content[place:start], b"\n" * content.count(b"\n", start, end)]
        place = end + 3
    parts.append(content[place:])
    return re.sub(rb"<[A-Za-z_][^<>]*>", lambda tag: re.sub(rb"(\"[^\"]*\"|'[^']*')", rb"\1 ", tag[0]), b"".join(parts))
