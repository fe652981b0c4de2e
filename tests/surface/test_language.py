"""The words of the project: phrases that user-facing text must not have, and the field's words that it must have."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "borelli").rglob("*.py"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*")),
]
DATA_SUFFIXES = (".toml", ".csv", ".txt", ".css", ".js", ".c", ".pyi", ".cff", ".yml")
DATA = [
    ROOT / "CHANGELOG.md",
    *(path for path in sorted((ROOT / "src" / "borelli").rglob("*")) if path.suffix in DATA_SUFFIXES),
    *(path for path in sorted(ROOT.iterdir()) if path.suffix in DATA_SUFFIXES),
]
"""Further files whose words a user may meet: names and sources of marker sets, comments of tables, changes."""

BANNED = {
    r"\b(told|tells?|telling)\b(?! apart)|\b(is|are|be) said\b": "report, state, show",
    r"\bdoubt(s|ful)?\b": "uncertainty",
    r"\bbands?\b(?! ?-?pass|width|ed)": "interval",
    r"\bshak(e|en|es)\b": "add noise",
    r"\bbeside\b": "next to, compared with",
    r"\bmend(s|ed)?\b|\bnot a number\b": "fix; NaN",
    r"\bseed 00\d\b|\bspec \d": "cite author and year",
    r"\b(nought|for ever|without end|anew)\b": "zero, forever, infinite, again",
    r"\bas asked\b|\basked for\b": "requested, as specified",
    r"\b(not|never|was|were) seen\b": "missing, visible, measured",
    r"\bkept apart\b": "held out, separate",
    r"\b(is|are|was|were) taken (as|for|off)\b": "assumed, subtracted",
    r"\btrades? places\b|\bleap(s|t)?\b": "swap, jump, spike",
    r"\bg(ive|ives|ave|iving) way\b": "yield, comply",
    r"\bwho (walks|stands|lies|controls)\b": "a walking subject",
    r"\b(ours|theirs)\b": "name the method",
    r"\b(is|are) no (model|person|folder|direction|JSON|text|spline|recording|C3D|marker|measurement)\b"
    r"|\bof no (kind|mass)\b": "is not a ...; unknown, massless",
    r"\bhow sure\b|\bmeans? (little|nothing)\b": "uncertainty; not reliable",
    r"\bin a circle\b|\bculprit\b|\bstranger": "cycle; error; any user",
    r"\bthe way (walked|the)\b|\bthe middle (one|marker)\b": "direction; median",
    r"\bwears?\b|\bworn\b": "has markers",
    r"\bholds (a|an|no|nothing)\b": "contains",
    r"\b(joint|marker) places?\b": "joint center, marker offset",
    r"\b(cent|met)res?\b|\bcolour|\bneighbour|\banalys(e|ed|ing)\b|\b(recogni|stabili|minimi|optimi)s(e|es|ed|ing)\b"
    r"|\b(label|model)led\b|\bgrey\b|\bfibre": "American spelling",
}
"""Phrases and what to write instead (case-insensitive)."""

ALLOWED = {
    # where, the phrase as it stands, and why it may
    ("docs/references.md", "Prediction of the hip joint centre in adults"),  # title of a paper
}

REQUIRED = (
    "inverse kinematics", "forward kinematics", "ground reaction", "angular velocity", "joint limit", "joint reaction",
    "generalized coordinate", "internal rotation", "normative", "anthropometr", "fill-in", "Delassus", "RNEA",
    "uncertainty", "Schur complement", "GJK", "residual reduction", "covariance", "obliquity",
)  # fmt: skip
"""Words of the field that a newcomer searches for, in the source and in the documentation."""


def texts(path):
    """Yield numbered lines that a user may read: in sources, docstrings and strings with a space; elsewhere all."""
    if path.suffix != ".py":
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for i, line in enumerate(node.value.splitlines()):
                yield node.lineno + i, line


def readable(paths):
    return [path for path in paths if path.suffix in (".py", ".md")]


@pytest.mark.parametrize("phrase", BANNED, ids=BANNED.get)
def test_banned_phrases_are_not_used(phrase):
    pattern = re.compile(phrase, re.IGNORECASE)
    hits = []
    for path in [*readable([*SOURCES, *PAGES]), *DATA]:
        name = path.relative_to(ROOT).as_posix()
        for line, text in texts(path):
            for match in pattern.finditer(text):
                if not any(name.startswith(where) and words in text for where, words in ALLOWED):
                    hits.append(f"{name}:{line}: {match.group(0)!r} in {text.strip()[:100]!r}")
    assert not hits, f"write {BANNED[phrase]!r} instead:\n" + "\n".join(hits[:40])


@pytest.mark.parametrize("word", REQUIRED)
def test_words_of_the_field_are_found(word):
    pattern = re.compile(re.escape(word), re.IGNORECASE)
    assert any(pattern.search(path.read_text(encoding="utf-8")) for path in SOURCES), f"{word!r} is not in the source"
    pages = readable(PAGES)
    assert any(pattern.search(path.read_text(encoding="utf-8")) for path in pages), (
        f"{word!r} is not in the documentation"
    )


def options():
    import typer

    from borelli.cli import app

    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            yield f"{name} {option.opts[-1]}", getattr(option, "help", None) or ""


def test_help_texts_begin_with_a_noun_or_verb():
    bad = [
        f"{name}: {text}"
        for name, text in options()
        if re.match(r"(Of|What|Where|Whether|How|Which|Most)\b", text) or re.search(r";\s*(else|none)\b|: none", text)
    ]
    assert not bad, bad


def test_help_texts_are_sentences_of_one_pattern():
    """A capital first, a full stop last, and one word for options that may be given several times."""
    import typer

    from borelli.cli import app

    assert not [name for name, text in options() if text and not (text[0].isupper() and text.endswith("."))]
    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            repeatable = option.multiple if option.param_type_name == "option" else False
            assert (option.help or "").endswith("Repeatable.") == repeatable, f"{name} {option.name}"


def test_help_shows_no_python_types():
    from typer.testing import CliRunner

    from borelli.cli import app

    for name in {name.split()[0] for name, _ in options()}:
        text = CliRunner().invoke(app, [name, "--help"]).output
        assert "Usage:" in text and not re.search(r"<\w|list\[", text), text


def test_options_of_one_name_mean_one_thing():
    """A flag of one command takes no value in another; --video is one file of simulate, and one in animate's folder."""
    import typer

    from borelli.cli import app

    kinds: dict[str, set[bool]] = {}
    for command in typer.main.get_command(app).commands.values():
        for option in command.params:
            if option.param_type_name == "option":
                kinds.setdefault(option.opts[-1], set()).add(option.is_flag)
    assert [name for name, found in kinds.items() if len(found) > 1] == ["--video"]


def test_function_docstrings_begin_with_an_imperative():
    """An article or a question word at its start describes a thing, not what the function does."""
    bad = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not any(_is_property(d) for d in node.decorator_list):
                first = (ast.get_docstring(node) or "").split(" ")[0]
                if first in ("The", "A", "An", "What", "Whether", "How", "Where", "Of", "Who", "Which"):
                    bad.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not bad, "\n".join(bad[:60])


def _is_property(decorator):
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return "property" in name or name in ("setter", "fixture")
