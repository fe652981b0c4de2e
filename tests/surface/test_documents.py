"""What the documents show must run, and what they name must exist."""

import re
from pathlib import Path

import pytest

import borelli
from borelli.model.formats.native import model_from_text
from borelli.scenes.gallery import GALLERY
from borelli.scenes.scene_files import scene_from_text

from ..recording import walker

ROOT = Path(__file__).parents[2]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_readme_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for code in blocks("README.md", "python"):
        exec(compile(code, "README.md", "exec"), {})
    assert "N" in capsys.readouterr().out
    assert {"human.png", "plot.png", "human.nc"} <= {path.name for path in tmp_path.iterdir()}


def test_tour_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    borelli.write_recording(walker.recording(), "walk.c3d")
    monkeypatch.setattr(borelli, "show", lambda result: None)  # serves until interrupted
    names: dict[str, object] = {}
    for code in blocks("docs/tour.md", "python"):
        exec(compile(code, "tour.md", "exec"), names)
    assert (tmp_path / "motion.gif").exists()
    assert borelli.read_recording("walk.trc").markers == borelli.read_recording("walk.c3d").markers


def test_examples_of_the_formats_page_read():
    model, scene = blocks("docs/formats.md", "toml")
    assert model_from_text(model).name == "pendulum"
    assert scene_from_text(scene).model.mass == pytest.approx(72.6)


def test_readme_scenes_exist():
    for name in re.findall(r"borelli simulate ([a-z_]+) ", (ROOT / "README.md").read_text()):
        assert name in GALLERY


def test_links_between_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"
