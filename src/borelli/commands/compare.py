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
    poses: Annotated[int, option("Number of random poses. Default: 100.", "N", min=1)] = 100,
    seed: Annotated[int, option("Seed of the random poses. Default: 0.", "N")] = 0,
    frame: Annotated[
        str | None, option("Express positions in the frame of this body of model A. Default: the world frame.", "BODY")
    ] = None,
    rows: Annotated[int, option("Number of rows with the largest differences. Default: 5.", "N", min=1)] = 5,
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
