"""The subcommand `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from borelli.commands.console import err, out, print_json, print_line
from borelli.commands.options import Json, option
from borelli.errors import list_names


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="First model.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Second model.")],
    poses: Annotated[int, option(min=1, help="Number of random poses. Default: 100.", metavar="N")] = 100,
    seed: Annotated[int, option(help="Seed of the random poses. Default: 0.", metavar="N")] = 0,
    frame: Annotated[
        str | None,
        option(
            help="Express positions in the frame of this body of model A. Default: the world frame.", metavar="BODY"
        ),
    ] = None,
    rows: Annotated[
        int, option(min=1, help="Number of rows with the largest differences. Default: 5.", metavar="N")
    ] = 5,
    json: Json = False,
) -> None:
    """Compare two models.

    Masses, lengths, positions and inverse dynamics are compared in the same random poses.
    """
    from borelli.model.compare import compare_models
    from borelli.model.io import read_model

    with err.status("reading and comparing"):
        labels = (first.name, second.name) if first.name != second.name else (str(first), str(second))
        result = compare_models(
            read_model(first), read_model(second), poses=poses, seed=seed, frame=frame, labels=labels
        )
    if json:
        print_json(result.to_dict())
        return
    for table in result.tables(rows):
        table.title = escape(str(table.title))
        out.print(table)
    for model, only in ((result.a, result.only_a), (result.b, result.only_b)):
        for kind, names in only.items():
            print_line(f"{kind} only in {model}: {list_names(names)}")
    for note in result.notes:
        print_line(note)
