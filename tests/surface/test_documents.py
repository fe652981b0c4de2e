"""The documentation: every code block and every example runs, and every link leads somewhere."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import typer

import borelli
from borelli.cli import app, main
from borelli.model.formats.native import model_from_text
from borelli.recording.identify_marker_set import read_name_set
from borelli.scenes.gallery import GALLERY
from borelli.scenes.scene_files import scene_from_text
from borelli.synthetic.recordings import synthetic_recording

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TUTORIALS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "tutorials").glob("*.md"))
ELSEWHERE = {
    "docs/optimal-control.md": "optimal/test_problem_files.py",
    "docs/optimal-models.md": "optimal/symbolic_dynamics/test_documentation.py",
    "docs/optimal-tracking.md": "optimal/tracking/test_documentation.py",
}
"""Pages whose blocks other tests run, next to what they are about."""
LANGUAGES = ("python", "sh", "toml", "console")
"""Languages of code blocks: `python` and `sh` run; `console` does not, since it installs, builds or takes minutes."""
PAGES = ["README.md", "docs/tour.md", "docs/first-analysis.md", "docs/markers.md", "docs/labeling.md", *TUTORIALS]


def blocks(page, *languages):
    """Languages and texts of the code blocks of a page, in order."""
    return re.findall(rf"```({'|'.join(languages)})\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with the recordings that pages take for granted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(borelli, "show", lambda result: None)  # serves until interrupted
    return tmp_path


def run_commands(text, monkeypatch):
    for line in text.splitlines():
        arguments = shlex.split(line, comments=True)
        if arguments:
            monkeypatch.setattr(sys, "argv", arguments)
            with pytest.raises(SystemExit) as done:
                main()
            assert not done.value.code, line


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_run(page, folder, monkeypatch):
    if page == "docs/tour.md":
        borelli.write_recording(synthetic_recording("walk").recording, "walk.c3d")
    names: dict[str, object] = {}
    for language, text in blocks(page, "python", "sh"):
        if language == "python":
            exec(compile(text, page, "exec"), names)
        else:
            run_commands(text, monkeypatch)


def documents():
    folders = (ROOT.glob("*.md"), ROOT.glob("docs/**/*.md"), ROOT.glob("examples/*.md"))
    return sorted(path.relative_to(ROOT).as_posix() for folder in folders for path in folder)


def fences(page):
    """Return the languages of the code blocks of a page, "" of one without."""
    lines = [line.strip() for line in (ROOT / page).read_text().splitlines()]
    marks = [line.lstrip("`~") for line in lines if line.startswith(("```", "~~~"))]
    assert len(marks) % 2 == 0, page
    return marks[::2]


@pytest.mark.parametrize("page", documents())
def test_every_code_block_states_a_language_and_runs(page):
    found = set(fences(page))
    assert found <= set(LANGUAGES), f"{page}: label each code block with one of {', '.join(LANGUAGES)}"
    if found & {"python", "sh"}:
        assert page in PAGES or page in ELSEWHERE, f"{page}: add it to the pages whose code blocks run"


def test_tests_elsewhere_read_their_pages():
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / test).read_text()


@pytest.mark.parametrize("page", documents())
def test_commands_that_do_not_run_are_understood(page):
    """Arguments and options of `borelli` in console blocks exist."""
    command = typer.main.get_command(app)
    for _, text in blocks(page, "console"):
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["borelli"]:
                name, *arguments = words[1:]
                command.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, folder, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_examples_are_listed_and_numbered():
    page = (ROOT / "examples" / "README.md").read_text()
    assert EXAMPLES and all(
        f"`{path.name}`" in page and path.name[:2] == f"{i:02d}" for i, path in enumerate(EXAMPLES, 1)
    )


def test_examples_of_the_formats_page_read(tmp_path):
    (_, model), (_, scene), (_, elements), (_, marker_set) = blocks("docs/formats.md", "toml")
    (tmp_path / "set.toml").write_text(marker_set)
    assert read_name_set(tmp_path / "set.toml").name == "My laboratory"
    assert model_from_text(model).name == "pendulum"
    assert scene_from_text(scene).model.mass == pytest.approx(72.6)
    assert len(scene_from_text(scene + elements).sensors) == 3


def test_scenes_of_the_documentation_exist():
    for page in ("README.md", "docs/gallery.md"):
        for name in re.findall(r"borelli simulate ([a-z_]+) ", (ROOT / page).read_text()):
            assert name in GALLERY


def test_links_between_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if page not in nav and not page.startswith("decisions/")]
