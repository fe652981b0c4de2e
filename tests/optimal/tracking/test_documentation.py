"""The examples of docs/optimal-tracking.md run; that of walking, which takes minutes, in `../walking`."""

import re
from pathlib import Path

from .arm import recorded_torques

PAGE = Path(__file__).parents[3] / "docs" / "optimal-tracking.md"


def python_blocks():
    """Return the code blocks of the page: tracking, and prediction of walking."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_of_tracking_is_solved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tracking, walking = python_blocks()
    names = {"torques": recorded_torques()}
    exec(compile(tracking, PAGE.name, "exec"), names)
    assert names["tracked"].solved and (tmp_path / "track.png").exists()
    assert names["motion"].data["time"].size > 10
    assert capsys.readouterr().out.strip()
    assert "predict_walk(model, speed=1.2)" in walking
