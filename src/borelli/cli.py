"""The command `borelli`: its subcommands are in `borelli.commands`, one module each.

Heavy modules load inside the subcommands that need them, so that `borelli --help` is quick.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from borelli import __version__
from borelli.commands.analyze import analyze
from borelli.commands.animate import animate
from borelli.commands.clean import clean
from borelli.commands.compare import compare
from borelli.commands.console import error_line, out, print_error, print_json
from borelli.commands.convert import convert
from borelli.commands.demo import demo
from borelli.commands.doctor import doctor
from borelli.commands.experiment import bench, experiment
from borelli.commands.info import info
from borelli.commands.markers import markers
from borelli.commands.optimize import optimize
from borelli.commands.simulate import simulate
from borelli.commands.stages import energy, fit, id, ik, muscles, report
from borelli.errors import BorelliError
from borelli.files.inputs import protect_inputs

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
ANALYSIS = (demo, analyze, fit, ik, id, muscles, energy, report)
FILES = (info, markers, doctor, clean, convert, compare)
SIMULATION = (simulate, animate, optimize, experiment, bench)


class _Command(TyperCommand):
    """Command whose help shows arguments by their names alone, without types such as `list[Path]`."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for argument in (one for one in params if isinstance(one, TyperArgument)):
            vars(argument)["display_type_rich"] = lambda ctx: None
        return params


def _with_json_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command, which with `--json` also prints an error as one JSON object on stdout."""
    first = next(iter(signature(command).parameters))

    @wraps(command)
    def run(**values: Any) -> None:
        try:
            command(**values)
        except (BorelliError, OSError) as error:
            if values.get("json"):
                print_json({"error": error_line(error), "file": _file_of(error, values[first])})
            raise

    return run


def _file_of(error: BorelliError | OSError, argument: Any) -> str | None:
    """Return the file that an error is about: that of the error, else of the command's first argument, if any."""
    if stated := getattr(error, "path", None) or getattr(error, "filename", None):
        return str(stated)
    first = argument[0] if isinstance(argument, list) else argument
    return str(first) if isinstance(first, Path) else None


for command in (*ANALYSIS, *FILES, *SIMULATION):
    app.command(cls=_Command)(_with_json_errors(command))


def main() -> None:
    """Run the command; an error is printed in one line, with exit code 1."""
    # numba and xarray keep half a million objects alive, which each collection visits in 0.1 s
    gc.set_threshold(100_000, 20, 50)
    try:
        with protect_inputs():
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
