"""The command `borelli`: its subcommands are in `borelli.commands`, one module each.

Heavy modules load inside the subcommands that need them, so that `borelli --help` is quick.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated

import typer

from borelli import __version__
from borelli.commands.analyze import analyze
from borelli.commands.animate import animate
from borelli.commands.bench import bench
from borelli.commands.clean import clean
from borelli.commands.compare import compare
from borelli.commands.console import out, print_error
from borelli.commands.convert import convert
from borelli.commands.demo import demo
from borelli.commands.doctor import doctor
from borelli.commands.experiment import experiment
from borelli.commands.info import info
from borelli.commands.simulate import simulate
from borelli.commands.stages import energy, fit, id, ik, report
from borelli.errors import BorelliError

app = typer.Typer(
    help="Human movement as physics: recordings, models, and the forces that move them.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes a unit in square brackets for a style
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
LAST_RESORT = (
    "The memory of this computer does not suffice. Use a part of the recording (--start, --end), a shorter duration or "
    "fewer repeats.",
    "The input is nested too deeply to be processed. Simplify the file.",
)
"""Messages for a MemoryError and a RecursionError."""
ANALYSIS = (demo, analyze, fit, ik, id, energy, report)
FILES = (info, doctor, clean, convert, compare)
SIMULATION = (simulate, animate, experiment, bench)
for command in (*ANALYSIS, *FILES, *SIMULATION):
    app.command()(command)


def main() -> None:
    """Run the command; an error is printed in one line, with exit code 1."""
    # numba and xarray keep half a million objects alive, which each collection visits in 0.1 s
    gc.set_threshold(100_000, 20, 50)
    try:
        app()
    except BrokenPipeError:
        # the reader of the output has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (BorelliError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        print_error(error)
        sys.exit(1)
    except (MemoryError, RecursionError) as error:
        # requests are checked before they allocate (files/memory.py); this is for what no estimate foresaw
        if "--debug" in sys.argv:
            raise
        print_error(BorelliError(LAST_RESORT[isinstance(error, RecursionError)]))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if version:
        out.print(__version__, highlight=False)
        raise typer.Exit
