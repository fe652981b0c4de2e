"""An MJCF file with the files it includes, as one tree of elements.

As MuJoCo does it: the root element of an included file is taken off and its children stand where the include stood; the
file's place is counted from the folder of the main file or, failing that, of the including one; no file is included
twice. Unlike MuJoCo, a file that is not there is left out, and said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from borelli.errors import FileFormatError
from borelli.files.text import MAX_BYTES
from borelli.files.xml import MAX_DEPTH, Element, read_lenient_xml

MAX_ELEMENTS = 50_000
"""Of a model with all it includes; the largest met has 6 thousand."""
MAX_INCLUDES = 1000
"""Files one model may include."""
LISTS = ("vertex", "face", "normal", "texcoord", "elevation", "qpos", "qvel", "act", "ctrl", "data", "user", "userdata")
"""Attributes that may hold many numbers."""
LONG_TEXT, LONG_LIST = 10_000, 4_000_000
"""Most characters of an attribute, and of one that may hold many numbers."""
SEARCHED_FILES = 1000
"""How many files and folders are looked through for one that includes a fragment."""
SEARCHED_BYTES = 5_000_000
"""How much of them is read for it."""


@dataclass(slots=True)
class Included:
    """What came together while files were included."""

    main: Path
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    outside: list[str] = field(default_factory=list)
    bytes: int = 0


def load(path: str | os.PathLike[str]) -> tuple[Element, Included]:
    """The root element of a main MJCF file, its includes put in place, and what was noticed."""
    main = Path(path)
    root, fault = read_lenient_xml(main)
    found = Included(main)
    if fault:
        found.notes.append(f"{main.name}: {fault}; read as it was meant, as MuJoCo does")
    if root.tag == "mujocoinclude":
        raise FileFormatError(main, f"this is a part of a model, for others to include; {_whole_models(main)}")
    if root.tag != "mujoco":
        raise FileFormatError(main, f"the root element is <{root.tag}>, but an MJCF model begins with <mujoco>", line=1)
    _expand(root, main.parent, found, 0)
    _refuse_excess(root)
    if found.outside:
        shown = ", ".join(found.outside[:6]) + (", ..." if len(found.outside) > 6 else "")
        found.notes.append(f"{len(found.outside)} included files lie outside the model's own folder: {shown}")
    for name in found.missing:
        found.notes.append(
            f"the included file {name!r} is not there: what it would add (floor, lights, bodies, defaults) is left out"
        )
    return root, found


def _refuse_excess(root: Element) -> None:
    """Elements and texts in absurd number or length would cost time and memory before they turn out to mean nothing."""
    for number, element in enumerate(root.walk()):
        if number > MAX_ELEMENTS:
            raise element.error(f"the model has more than {MAX_ELEMENTS} elements, which are not read")
        for key, value in element.attributes.items():
            if len(value) > (LONG_LIST if key in LISTS else LONG_TEXT):
                raise element.error(
                    f"{element.tag}: {key[:40]} has {len(value)} characters, which is too long to be meant"
                )


def _expand(element: Element, folder: Path, found: Included, depth: int) -> None:
    """Puts included elements where the includes below this element stand."""
    if depth > MAX_DEPTH:
        raise element.error(f"includes nest elements more than {MAX_DEPTH} deep")
    children: list[Element] = []
    for child in element.children:
        if child.tag == "include":
            children.extend(_included(child, folder, found, depth))
        else:
            _expand(child, folder, found, depth + 1)
            children.append(child)
    element.children = children


def _included(element: Element, folder: Path, found: Included, depth: int) -> list[Element]:
    """The elements that stand in place of an include."""
    name = element.attributes.get("file", "")
    if not name:
        raise element.error("an include must name a file; give it the attribute file")
    path = _located(name, folder, found.main.parent)
    if path is None:
        found.missing.append(name)
        return []
    key = os.path.realpath(path)
    if key in found.files or key == os.path.realpath(found.main):
        raise element.error(f"the file {name!r} is included twice; MuJoCo refuses this too")
    found.files.add(key)
    if len(found.files) > MAX_INCLUDES:
        raise element.error(f"the model includes more than {MAX_INCLUDES} files")
    found.bytes += path.stat().st_size
    if found.bytes > MAX_BYTES:
        raise element.error(f"the included files have more than {MAX_BYTES} bytes")
    if not Path(key).is_relative_to(os.path.realpath(found.main.parent)):
        found.outside.append(name)
    root, fault = read_lenient_xml(path)
    if fault:
        found.notes.append(f"{name}: {fault}; read as it was meant, as MuJoCo does")
    _expand(root, path.parent, found, depth + 1)
    return root.children


def _located(name: str, folder: Path, main: Path) -> Path | None:
    """The file meant by an include: seen from the main file's folder, else from the including file's."""
    for base in (main, folder):
        try:
            path = base / name
            if path.is_file():
                return path
        except (OSError, ValueError):  # a name too long, or with a zero byte
            continue
    return None


def _whole_models(fragment: Path) -> str:
    """What to read instead of a part of a model: the files nearby that include it, directly or through others."""
    included = {path: _names_included(path) for path in _nearby(fragment)}
    wanted, whole = {fragment.name}, set()
    for _ in range(4):  # through includes of includes
        users = [path for path, (_, names) in included.items() if names & wanted]
        whole |= {path for path in users if included[path][0]}
        wanted = {path.name for path in users if not included[path][0]}
    if not whole:
        return "no file nearby includes it"
    shown = sorted(os.path.relpath(path, fragment.parent) for path in whole)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    verb = "includes" if len(shown) == 1 else "include"
    return f"read {' or '.join(shown[:5])}{more}, which {verb} it"


def _nearby(fragment: Path) -> list[Path]:
    """XML files in the folders around a file: its own, the two above it, and two levels below each."""
    found: dict[str, Path] = {}
    seen, budget = 0, SEARCHED_BYTES
    for base in (fragment.parent, fragment.parent / "..", fragment.parent / ".." / ".."):
        waiting = [(base, 0)]
        while waiting and seen < SEARCHED_FILES:
            folder, depth = waiting.pop(0)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries[: SEARCHED_FILES - seen]:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(Path(entry.path), depth + 1)] if depth < 2 else []
                elif entry.name.endswith(".xml") and entry.is_file() and entry.stat().st_size <= budget:
                    budget -= entry.stat().st_size
                    found.setdefault(os.path.realpath(entry.path), Path(entry.path))
    return list(found.values())


def _names_included(path: Path) -> tuple[bool, set[str]]:
    """Whether a file is a whole model, and the names (without folders) of the files it includes."""
    try:
        root, _ = read_lenient_xml(path)
    except FileFormatError:
        return False, set()
    names = {Path(e.attributes.get("file", "")).name for e in root.walk() if e.tag == "include"}
    return root.tag == "mujoco", names
