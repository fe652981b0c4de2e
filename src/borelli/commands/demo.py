"""The subcommand `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table

from borelli.commands.console import compile_once, err, out, print_line
from borelli.commands.options import ForceFolder, option


def demo(
    folder: Annotated[Path, option("Folder for the results. Default: demo.", "FOLDER", "--out")] = Path("demo"),
    force: ForceFolder = False,
) -> None:
    """Run a demonstration with known results.

    Analyzes synthetic recordings and simulates scenes; writes reports, images and a table of computed and expected
    values.
    """
    from borelli.demo import run_demo

    compile_once()
    with err.status("starting") as status:
        findings, files = run_demo(folder, status.update, overwrite=force)
    table = Table("", "", "computed", "expected", title="computed and expected values", title_justify="left")
    last = None
    for finding in findings:
        if last not in (None, finding.scene):
            table.add_section()
        table.add_row(finding.scene if finding.scene != last else "", finding.name, finding.value, finding.expected)
        last = finding.scene
    out.print(table)
    for path in files:
        print_line(str(path))
    out.print(
        f"\nOpen [bold]{escape(str(files[0]))}[/], then try: borelli analyze YOUR.c3d, borelli simulate --list",
        soft_wrap=True,
    )
