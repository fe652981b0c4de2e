"""The verb `bench`."""

from __future__ import annotations

from typing import Annotated

import typer

from borelli.commands.console import err, out, print_json
from borelli.commands.options import Json


def bench(
    json: Json = False,
    peers: Annotated[bool, typer.Option("--peers", help="Also ODE, MuJoCo, Pinocchio, where installed.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Little of everything: to see that it runs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables for docs/performance.md.")] = False,
) -> None:
    """Measure speed and accuracy, alone or beside other engines."""
    from borelli.bench.main import print_report, run

    with err.status("starting") as status:
        figures = run(peers=peers, quick=quick, progress=status.update)
    if json:
        print_json(figures)
    elif markdown:
        from borelli.bench.markdown import markdown as tables

        print(tables(figures))
    else:
        print_report(figures, out)
