"""The verb `experiment`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import err, out, print_json, say
from borelli.commands.options import Json
from borelli.errors import BorelliError

if TYPE_CHECKING:
    from borelli.experiments.outcome import Outcome


def experiment(
    name: Annotated[str | None, typer.Argument(help="One of the list that is shown without it.")] = None,
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for tables and pictures.")] = Path("experiment"),
    recording: Annotated[Path | None, typer.Option(help="A recording to use instead of synthetic data.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials: to see that it runs, not for figures.")] = False,
    json: Json = False,
) -> None:
    """Run an experiment and set its figures beside published ones; without a name, list them."""
    from borelli.commands.compile_notice import compile_once
    from borelli.experiments.catalog import EXPERIMENTS, run_experiment

    if name is None:
        if json:
            print_json({name: experiment.about for name, experiment in EXPERIMENTS.items()})
            return
        table = Table("name", "what it shows", "paper", "figures")
        for known, experiment in EXPERIMENTS.items():
            table.add_row(known, experiment.about, experiment.paper, experiment.figures)
        out.print(table)
        return
    if name in EXPERIMENTS:
        compile_once(recording, control=True)
    with err.status("starting") as status:
        outcome = run_experiment(name, folder, recording=recording, quick=quick, say=status.update)
    if json:
        files = [str(file) for file in outcome.files]
        print_json(
            {"name": name, "claims": [asdict(c) for c in outcome.claims], "holds": outcome.passed, "files": files}
        )
        _check(name, outcome)
        return
    say(outcome.about)
    table = Table("", "ours", "published or asked", "holds")
    for claim in outcome.claims:
        table.add_row(escape(claim.text), f"{claim.value:.4g}", escape(claim.published), "yes" if claim.passed else "no")
    out.print(table)
    for file in outcome.files:
        say(str(file))
    _check(name, outcome)


def _check(name: str, outcome: Outcome) -> None:
    """Raises BorelliError if a figure is not what it must be."""
    broken = [
        f"{claim.text}: {claim.value:.4g}, asked: {claim.published}" for claim in outcome.claims if not claim.passed
    ]
    if broken:
        raise BorelliError(
            f"experiment {name!r}: {len(broken)} of {len(outcome.claims)} figures do not hold: {'; '.join(broken)}"
        )
