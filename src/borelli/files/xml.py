"""Untrusted XML: elements with their line numbers, no entities or document types, bounded in size and depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from borelli.errors import FileFormatError
from borelli.files.text import read_bytes

MAX_DEPTH = 200
"""Nested elements; the deepest known model has 40."""
MAX_ELEMENTS = 200_000
"""Elements in one file; the largest known model has 60 thousand."""


@dataclass(slots=True)
class Element:
    """XML element with its position in the file."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    line: int = 0
    path: object = ""
    was_read: bool = False
    """Whether a reader used a property of it; see `unread`."""

    def all(self, tag: str) -> Iterator[Element]:
        """Return the children with that tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """Return the first child with that tag, or None."""
        return next(self.all(tag), None)

    def walk(self) -> Iterator[Element]:
        """Yield this element and its descendants in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def unread(self, is_object: Callable[[Element], bool]) -> Iterator[tuple[Element, str]]:
        """Yield the outermost objects among the descendants of which a reader used nothing, with their owner's name.

        The owner is the nearest element around the object that has a name.
        """
        used = self._used()
        waiting = [(child, self.attributes.get("name", "")) for child in reversed(self.children)]
        while waiting:
            element, owner = waiting.pop()
            if is_object(element) and id(element) not in used:
                yield element, owner
            else:
                owner = element.attributes.get("name", "") or owner
                waiting.extend((child, owner) for child in reversed(element.children))

    def _used(self) -> set[int]:
        """Return the identities of the elements of which, or of a descendant of which, a reader used something."""
        elements, parents = [self], [0]
        for i, element in enumerate(elements):  # grows: parents come before their children
            elements.extend(element.children)
            parents.extend([i] * len(element.children))
        used = [element.was_read for element in elements]
        for i in range(len(elements) - 1, 0, -1):
            used[parents[i]] |= used[i]
        return {id(element) for element, is_used in zip(elements, used, strict=True) if is_used}

    def error(self, problem: str) -> FileFormatError:
        """Return an error that names this element's file and line."""
        return FileFormatError(self.path, problem, line=self.line)


def read_xml(path: str | PathLike[str]) -> Element:
    """Return the root element of an XML file."""
    return parse_xml(read_bytes(path), path)


def parse_xml(content: bytes, path: object) -> Element:
    """Return the root element of XML text; `path` is named in errors."""
    try:
        return _parsed(content, path)
    except _NotWellFormedError as error:
        raise FileFormatError(path, f"Invalid XML: {error.text}.", line=error.line) from None


def read_lenient_xml(path: str | PathLike[str]) -> tuple[Element, str]:
    """Return the root element of an XML file, and the syntax error that was repaired ("" for none).

    Attributes without a space between them and `--` inside comments, which some programs write, are accepted.
    """
    content = read_bytes(path)
    try:
        return _parsed(content, path), ""
    except _NotWellFormedError as error:
        try:
            return _parsed(_repair_syntax(content), path), f"line {error.line}: {error.text}"
        except _NotWellFormedError:
            raise FileFormatError(path, f"Invalid XML: {error.text}.", line=error.line) from None


class _NotWellFormedError(Exception):
    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.text, self.line = text, line


def find_root_tag(content: bytes) -> str | None:
    """Return the tag of the first element of what may be XML text; None if there is none."""
    tags: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: tags.append(tag) if not tags else None
    try:
        for start in range(0, len(content), 4096):
            parser.Parse(content[start : start + 4096], False)
            if tags:
                break
        else:
            parser.Parse(b"", True)  # from 2.6 on, expat keeps a long token back until it gets more or the end
    except (expat.ExpatError, LookupError, ValueError):
        pass
    return tags[0] if tags else None


def make_element(tag: str, /, *children: Element | None, text: str = "", **attributes: str | None) -> Element:
    """Return an element to write; children and attributes that are None are omitted."""
    stated = {key: value for key, value in attributes.items() if value is not None}
    return Element(tag, stated, [child for child in children if child is not None], text)


def format_xml(root: Element) -> str:
    """Return the XML text of an element and its descendants."""
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
    """Tree of elements, built by the callbacks of the parser."""

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
            raise FileFormatError(self.path, f"The file has more than {MAX_ELEMENTS} elements.", line=line)
        if len(self.open) >= MAX_DEPTH:
            raise FileFormatError(self.path, f"Elements are nested more than {MAX_DEPTH} deep.", line=line)
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
        # text between children is white space; only text before the first child is content
        if self.open and not self.open[-1].children:
            self.texts[-1].append(text)

    def refuse(self, *_: object) -> None:
        what = "The XML declares a document type or entities, which are not supported. Remove them."
        raise FileFormatError(self.path, what, line=self.parser.CurrentLineNumber)


def _parsed(content: bytes, path: object) -> Element:
    if not content.strip():
        raise FileFormatError(path, "The file is empty. Copy or export it again.")
    builder = _Builder(path)
    try:
        builder.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise _NotWellFormedError(expat.ErrorString(error.code), error.lineno) from None
    except (LookupError, ValueError) as error:  # unknown encoding
        raise FileFormatError(path, f"The file cannot be read as XML ({error}).") from None
    assert builder.root is not None
    return builder.root


def _repair_syntax(content: bytes) -> bytes:
    """Return the text with spaces between attributes and with empty comments; line numbers are kept."""
    parts, position = [], 0
    while (start := content.find(b"<!--", position)) >= 0:
        end = content.find(b"-->", start + 4)
        if end < 0:
            break
        parts += [content[position:start], b"\n" * content.count(b"\n", start, end)]
        position = end + 3
    parts.append(content[position:])
    return re.sub(rb"<[A-Za-z_][^<>]*>", lambda tag: re.sub(rb"(\"[^\"]*\"|'[^']*')", rb"\1 ", tag[0]), b"".join(parts))
