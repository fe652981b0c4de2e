"""The verb `parity`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from borelli.commands.console import err, out, print_json, say
from borelli.commands.options import Json


def parity(
    first: Annotated[Path, typer.Argument(metavar="A", help="A model.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The model to compare it with.")],
    poses: Annotated[int, typer.Option(min=1, help="How many random poses.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the random poses.")] = 0,
    body: Annotated[str | None, typer.Option("--seen-from", help="See places from this body of A's.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many rows of what differs most.")] = 5,
    json: Json = False,
) -> None:
    """Compare two models: masses, lengths, places and inverse dynamics over the same random poses."""
    from borelli.model.compare import compare_models as compare
    from borelli.model.io import read_model

    with err.status("reading and comparing"):
        labels = (first.name, second.name) if first.name != second.name else (str(first), str(second))
        report = compare(read_model(first), read_model(second), poses=poses, seed=seed, frame=body, labels=labels)
    if json:
        print_json(report.to_dict())
        return
    for table in report.tables(rows):
        table.title = escape(str(table.title))
        out.print(table)
    for which, only in ((report.a, report.only_a), (report.b, report.only_b)):
        for sort, names in only.items():
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            say(f"{sort} only in {which}: {', '.join(names[:8])}{more}")
    for note in report.notes:
        say(note)
