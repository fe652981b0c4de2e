"""The subcommand `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from borelli.commands.console import err, out, print_json
from borelli.commands.options import Json, option


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
