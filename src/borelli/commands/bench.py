"""The subcommand `bench`."""

from __future__ import annotations

from typing import Annotated

from borelli.commands.console import err, out, print_json
from borelli.commands.options import Json, option


def bench(
    json: Json = False,
    peers: Annotated[bool, option("--peers", help="Include ODE, MuJoCo and Pinocchio, where installed.")] = False,
    quick: Annotated[bool, option("--quick", help="Short run that only checks that the benchmark works.")] = False,
    markdown: Annotated[bool, option("--markdown", help="Print the tables of docs/performance.md.")] = False,
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
