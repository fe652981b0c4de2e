"""The verb `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import err, out, say


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Where to put pictures and results.")] = Path("demo"),
) -> None:
    """Analyse a walk, a jump and a reach, drop a human, spin a top: reports, pictures, and a table of what is true."""
    from borelli.commands.compile_notice import compile_once
    from borelli.demo import run_demo

    compile_once()
    with err.status("starting") as status:
        findings, files = run_demo(folder, status.update)
    table = Table("", "", "found", "expected", title="found against expected", title_justify="left")
    last = None
    for finding in findings:
        if last not in (None, finding.scene):
            table.add_section()
        table.add_row(finding.scene if finding.scene != last else "", finding.text, finding.got, finding.expected)
        last = finding.scene
    out.print(table)
    for path in files:
        say(str(path))
    out.print(
        f"\nLook at [bold]{escape(str(files[0]))}[/]; then try: borelli analyze YOUR.c3d, borelli simulate --list",
        soft_wrap=True,
    )
