"""Error messages: bounded length, candidates for unknown names."""

import ast
import re
import time
from pathlib import Path

import borelli
from borelli.errors import list_names, unknown_name


def test_unknown_name_shows_the_nearest_and_all():
    assert unknown_name("marker", "LKNEE", ["LKNE", "RKNE"]) == (
        "Unknown marker 'LKNEE' (did you mean 'LKNE'?); known: LKNE, RKNE"
    )
    assert unknown_name("marker", "x", []) == "Unknown marker 'x'; known: none"
    assert (
        unknown_name("marker", 3, ["LKNE"])
        == "Unknown marker: Expected a name, got an object of class int; known: LKNE"
    )


def test_very_long_names_are_truncated_and_not_compared():
    start = time.perf_counter()
    sentence = unknown_name("marker", "a" * 10**6, ["b" * 10**6] * 10**4)
    assert time.perf_counter() - start < 1.0
    assert len(sentence) < 5000
    assert sentence.endswith("(10000 in all)")


def test_long_list_states_its_total():
    assert list_names(["a", "b"]) == "a, b"
    assert list_names(list("abcdef"), 2) == "a, b, ... (6 in all)"


def test_messages_about_unknown_names_have_one_pattern():
    """All are of `unknown_name`; that a content is in no known format is not about a name."""
    formats = re.compile(r"Unknown ((model|file|recording) format|table)\b")
    found = [
        f"{path.name}:{text.lineno}: {text.value}"
        for path in sorted(Path(borelli.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        and re.search(r"\bUnknown \w|^ is unknown\b|\b[Kk]nown: ", text.value) and not formats.search(text.value)
    ]  # fmt: skip
    assert not found, "\n".join(found)
