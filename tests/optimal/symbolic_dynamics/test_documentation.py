"""The example of docs/optimal-models.md runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "optimal-models.md"


def test_the_example_is_solved(capsys):
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(text, PAGE.name, "exec"), {})
    assert capsys.readouterr().out.strip()
