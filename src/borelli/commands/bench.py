"""The subcommand `bench`."""

from __future__ import annotations

from typing import Annotated

from borelli.commands.console import err, out, print_json
from borelli.commands.options import Json, option


def bench(
    json: Json = False,
    peers: Annotated[bool, option("Include ODE, MuJoCo and Pinocchio, where installed.", None, "--peers")] = False,
    quick: Annotated[bool, option("Short run that only checks that the benchmark works.", None, "--quick")] = False,
    markdown: Annotated[bool, option("Print the tables of docs/performance.md.", None, "--markdown")] = False,
) -> None:
    """Measure speed and accuracy, alone or next to other engines."""
    from borelli.bench.main import print_report, run
    from borelli.bench.markdown import markdown as to_markdown

    with err.status("starting") as status:
        result = run(peers=peers, quick=quick, progress=status.update)
    if json:
        print_json(result)
    elif markdown:
        print(to_markdown(result))
    else:
        print_report(result, out)
