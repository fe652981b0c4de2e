"""MJCF files with their includes expanded.

As in MuJoCo, the root element of an included file is removed and its children replace the include; the path is relative
to the folder of the main file or else of the including one; no file is included twice. Unlike in MuJoCo, a missing file
is left out and noted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from borelli.errors import FileFormatError
from borelli.files.outside_paths import outside_notes
from borelli.files.paths import as_path
from borelli.files.text import MAX_BYTES
from borelli.files.xml import MAX_DEPTH, Element, read_lenient_xml

MAX_ELEMENTS = 50_000
"""Elements of a model with its includes; the largest known has 6 thousand."""
MAX_INCLUDES = 1000
"""Maximum number of included files."""
LISTS = ("vertex", "face", "normal", "texcoord", "elevation", "qpos", "qvel", "act", "ctrl", "data", "user", "userdata")
"""Attributes that can contain many numbers."""
MAX_TEXT, MAX_LIST_TEXT = 10_000, 4_000_000
"""Maximum number of characters of an attribute, and of one that can contain many numbers."""
MAX_SEARCHED_FILES = 1000
"""Maximum number of files and folders searched for one that includes a fragment."""
MAX_SEARCHED_BYTES = 5_000_000
"""Maximum number of bytes read in this search."""


@dataclass(slots=True)
class Included:
    """Files and notes collected while includes are expanded."""

    main: Path
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    paths: list[tuple[str, str]] = field(default_factory=list)
    """Use ("include") and path of every included file, relative to the main file's folder."""
    bytes: int = 0


def load(path: str | Path) -> tuple[Element, Included]:
    """Return the root element of a main MJCF file with its includes expanded, and the notes."""
    main = as_path(path)
    root, problem = read_lenient_xml(main)
    includes = Included(main)
    if problem:
        includes.notes.append(f"{main.name}: {problem}; repaired, as MuJoCo does.")
    if root.tag == "mujocoinclude":
        raise FileFormatError(main, f"The file is a fragment for inclusion in other files. {_main_files(main)}")
    if root.tag != "mujoco":
        raise FileFormatError(main, f"The root element is <{root.tag}>. An MJCF model begins with <mujoco>.", line=1)
    _expand(root, main.parent, includes, 0)
    _refuse_excess(root)
    includes.notes += outside_notes(includes.paths, main.parent)
    for name in includes.missing:
        includes.notes.append(
            f"The included file {name!r} is missing: its content (floor, lights, bodies, defaults) is not read."
        )
    return root, includes


def _refuse_excess(root: Element) -> None:
    """Raise FileFormatError for implausibly many elements or long texts, which would cost time and memory."""
    for number, element in enumerate(root.walk()):
        if number > MAX_ELEMENTS:
            raise element.error(f"The model has more than {MAX_ELEMENTS} elements.")
        for key, value in element.attributes.items():
            if len(value) > (MAX_LIST_TEXT if key in LISTS else MAX_TEXT):
                raise element.error(f"{element.tag}: {key[:40]} has {len(value)} characters, which is too long.")


def _expand(element: Element, folder: Path, includes: Included, depth: int) -> None:
    """Replace the includes below this element by the included elements."""
    if depth > MAX_DEPTH:
        raise element.error(f"Elements are nested more than {MAX_DEPTH} deep.")
    children: list[Element] = []
    for child in element.children:
        if child.tag == "include":
            children.extend(_included(child, folder, includes, depth))
        else:
            _expand(child, folder, includes, depth + 1)
            children.append(child)
    element.children = children


def _included(element: Element, folder: Path, includes: Included, depth: int) -> list[Element]:
    name = element.attributes.get("file", "")
    if not name:
        raise element.error("The include has no file. Give it the attribute file.")
    path = _located(name, folder, includes.main.parent)
    if path is None:
        includes.missing.append(name)
        includes.paths.append(("include", name))
        return []
    includes.paths.append(("include", _relative(path, name, includes.main.parent)))
    key = os.path.realpath(path)
    if key in includes.files or key == os.path.realpath(includes.main):
        raise element.error(f"The file {name!r} is included twice, which MuJoCo does not allow. Remove one include.")
    includes.files.add(key)
    if len(includes.files) > MAX_INCLUDES:
        raise element.error(f"The model includes more than {MAX_INCLUDES} files.")
    includes.bytes += path.stat().st_size
    if includes.bytes > MAX_BYTES:
        raise element.error(f"The included files have more than {MAX_BYTES} bytes.")
    root, problem = read_lenient_xml(path)
    if problem:
        includes.notes.append(f"{name}: {problem}; repaired, as MuJoCo does.")
    _expand(root, path.parent, includes, depth + 1)
    return root.children


def _relative(path: Path, name: str, main: Path) -> str:
    """Return the name of an included file as the main file would state it."""
    return name if path == main / name else os.path.relpath(path, main)


def _located(name: str, folder: Path, main: Path) -> Path | None:
    """Return the file of an include: relative to the main file's folder, or else to the including file's."""
    for base in (main, folder):
        try:
            path = base / name
            if path.is_file():
                return path
        except (OSError, ValueError):  # a name too long, or with a zero byte
            continue
    return None


def _main_files(fragment: Path) -> str:
    """Return which files to read instead of a fragment: those nearby that include it, directly or indirectly."""
    included = {path: _names_included(path) for path in _nearby(fragment)}
    names_searched, complete = {fragment.name}, set()
    for _ in range(4):  # through includes of includes
        users = [path for path, (_, names) in included.items() if names & names_searched]
        complete |= {path for path in users if included[path][0]}
        names_searched = {path.name for path in users if not included[path][0]}
    if not complete:
        return "Pass the main file (none was found nearby)."
    shown = sorted(os.path.relpath(path, fragment.parent) for path in complete)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    verb = "includes" if len(shown) == 1 else "include"
    return f"Read {' or '.join(shown[:5])}{more}, which {verb} it."


def _nearby(fragment: Path) -> list[Path]:
    """Return XML files in the folders around a file: its own, the two above it, and two levels below each."""
    includes: dict[str, Path] = {}
    visited, budget = 0, MAX_SEARCHED_BYTES
    for base in (fragment.parent, fragment.parent / "..", fragment.parent / ".." / ".."):
        queue = [(base, 0)]
        while queue and visited < MAX_SEARCHED_FILES:
            folder, depth = queue.pop(0)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries[: MAX_SEARCHED_FILES - visited]:
                visited += 1
                if entry.is_dir(follow_symlinks=False):
                    queue += [(Path(entry.path), depth + 1)] if depth < 2 else []
                elif entry.name.endswith(".xml") and entry.is_file() and entry.stat().st_size <= budget:
                    budget -= entry.stat().st_size
                    includes.setdefault(os.path.realpath(entry.path), Path(entry.path))
    return list(includes.values())


def _names_included(path: Path) -> tuple[bool, set[str]]:
    """Return whether a file is a complete model, and the names (without folders) of the files it includes."""
    try:
        root, _ = read_lenient_xml(path)
    except FileFormatError:
        return False, set()
    names = {Path(e.attributes.get("file", "")).name for e in root.walk() if e.tag == "include"}
    return root.tag == "mujoco", names
