"""The subcommands `experiment` and `bench`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import compile_once, err, out, print_json, print_line
from borelli.commands.options import ForceFolder, Json, option, output
from borelli.errors import BorelliError

if TYPE_CHECKING:
    from borelli.experiments.outcome import Outcome


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Experiment to run. Omit it to list all experiments.", show_default=False),
    ] = None,
    folder: Annotated[Path, output("Folder for tables and images. Default: experiment.", "FOLDER")] = Path(
        "experiment"
    ),
    recording: Annotated[Path | None, option("Recording to use instead of synthetic data.", "FILE")] = None,
    quick: Annotated[
        bool, option("Run few trials, to check that the experiment works; not for results.", None, "--quick")
    ] = False,
    force: ForceFolder = False,
    json: Json = False,
) -> None:
    """Reproduce a published experiment.

    Values are printed next to what the paper publishes, what this project derives, and what is required.
    """
    from borelli.experiments.catalog import EXPERIMENTS, run_experiment

    if name is None:
        if json:
            print_json({name: experiment.about for name, experiment in EXPERIMENTS.items()})
            return
        table = Table("name", "content", "paper", "figures")
        for known, experiment in EXPERIMENTS.items():
            table.add_row(known, experiment.about, experiment.paper, experiment.figures)
        out.print(table)
        return
    if name in EXPERIMENTS:
        compile_once(recording, control=True)
    with err.status("starting") as status:
        outcome = run_experiment(name, folder, recording=recording, quick=quick, overwrite=force, log=status.update)
    if json:
        from borelli.experiments.outcome import PASSED_MEANING

        claims, files = [asdict(claim) for claim in outcome.claims], [str(file) for file in outcome.files]
        meaning = PASSED_MEANING
        print_json({"name": name, "meaning": meaning, "claims": claims, "passed": outcome.passed, "files": files})
    else:
        _show(outcome)
    _check(name, outcome)


def _show(outcome: Outcome) -> None:
    from borelli.experiments.outcome import PASSED_MEANING

    print_line(outcome.about)
    derived = any(claim.derived for claim in outcome.claims)
    table = Table("", "value", "published", *(["derived"] if derived else []), "required", "passed")
    for claim in outcome.claims:
        own = [escape(claim.derived)] if derived else []
        cells = [escape(claim.text), f"{claim.value:.4g}", escape(claim.published), *own, escape(claim.required)]
        table.add_row(*cells, "yes" if claim.passed else "no")
    out.print(table)
    print_line(PASSED_MEANING)
    for file in outcome.files:
        print_line(str(file))


def _check(name: str, outcome: Outcome) -> None:
    """Raise BorelliError if a claim failed."""
    failed = [
        f"{claim.text}: {claim.value:.4g} (required: {claim.required})" for claim in outcome.claims if not claim.passed
    ]
    if failed:
        raise BorelliError(
            f"Experiment {name!r}: {len(failed)} of {len(outcome.claims)} claims failed: {'; '.join(failed)}."
        )


def bench(
    json: Json = False,
    peers: Annotated[
        bool, option("Include ODE, MuJoCo, Pinocchio and OpenSim, where installed.", None, "--peers")
    ] = False,
    quick: Annotated[bool, option("Short run that only checks that the benchmark works.", None, "--quick")] = False,
    data: Annotated[
        Path | None,
        option("Folder of public models and trials for muscles.", "FOLDER", "--data", envvar="BORELLI_DATA"),
    ] = None,
    markdown: Annotated[bool, option("Print the tables of docs/performance.md.", None, "--markdown")] = False,
) -> None:
    """Measure speed and accuracy, alone or next to other engines."""
    from borelli.bench.main import print_report, run
    from borelli.bench.markdown import markdown as to_markdown

    with err.status("starting") as status:
        result = run(peers=peers, quick=quick, progress=status.update, data=data)
    if json:
        print_json(result)
    elif markdown:
        print(to_markdown(result))
    else:
        print_report(result, out)
